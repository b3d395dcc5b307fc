//! Nodes of a trie file.
//!
//! ```text
//! node := u8 type << 4 | payload bits | transitions and distances by type | payload
//! ```
//!
//! | Type | Name | After the first byte |
//! |---|---|---|
//! | 0 | PAYLOAD_ONLY | nothing |
//! | 1 | SINGLE_NOPAYLOAD_4 | `u8 transition`; the distance is in the first byte |
//! | 2, 4 | SINGLE_8, 16 | `u8 transition`, distance |
//! | 3 | SINGLE_NOPAYLOAD_12 | low 8 bits of the distance, `u8 transition` |
//! | 5 to 9 | SPARSE_8, 12, 16, 24, 40 | `u8 count`, that many transitions, that many distances |
//! | 10 to 14 | DENSE_12, 16, 24, 32, 40 | `u8 first`, `u8 count - 1`, that many distances, 0 for none |
//! | 15 | LONG_DENSE | the same with distances of 64 bits |
//!
//! A child precedes its parent in the file: distances are measured backwards. Two distances of 12 bits are
//! packed into three bytes. The payload depends on the file; its bits are not 0 if there is one.
//!
//! Source: `TrieNode`.

use crate::error::{Error, Result};

/// Length of a page into which nodes are packed (`PageAware.PAGE_SIZE`).
pub const PAGE_LEN: u64 = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    PayloadOnly,
    Single,
    Sparse,
    Dense,
}

/// Width of a distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Width {
    Bits4,
    Bits12,
    Bytes(usize),
}

/// One of the sixteen types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeType {
    ordinal: u8,
    shape: Shape,
    width: Width,
}

const fn node_type(ordinal: u8, shape: Shape, width: Width) -> NodeType {
    NodeType {
        ordinal,
        shape,
        width,
    }
}

const TYPES: [NodeType; 16] = [
    node_type(0, Shape::PayloadOnly, Width::Bytes(0)),
    node_type(1, Shape::Single, Width::Bits4),
    node_type(2, Shape::Single, Width::Bytes(1)),
    node_type(3, Shape::Single, Width::Bits12),
    node_type(4, Shape::Single, Width::Bytes(2)),
    node_type(5, Shape::Sparse, Width::Bytes(1)),
    node_type(6, Shape::Sparse, Width::Bits12),
    node_type(7, Shape::Sparse, Width::Bytes(2)),
    node_type(8, Shape::Sparse, Width::Bytes(3)),
    node_type(9, Shape::Sparse, Width::Bytes(5)),
    node_type(10, Shape::Dense, Width::Bits12),
    node_type(11, Shape::Dense, Width::Bytes(2)),
    node_type(12, Shape::Dense, Width::Bytes(3)),
    node_type(13, Shape::Dense, Width::Bytes(4)),
    node_type(14, Shape::Dense, Width::Bytes(5)),
    node_type(15, Shape::Dense, Width::Bytes(8)),
];

/// Types by the width that a distance needs (4, 8, 12, 16, 24, 32, 40, 64 bits), with substitutes for the
/// sizes that a shape does not have.
const SINGLES: [usize; 8] = [1, 2, 3, 4, 12, 13, 14, 15];
const SPARSES: [usize; 8] = [5, 5, 6, 7, 8, 9, 9, 15];
const DENSES: [usize; 8] = [10, 10, 10, 11, 12, 13, 14, 15];

/// Properties that determine the size of a node, besides its payload's length.
#[derive(Clone, Copy, Debug)]
pub struct NodeShape {
    /// Number of children, at most 256.
    pub children: usize,
    /// Transition to the first child.
    pub first: u8,
    /// Transition to the last child.
    pub last: u8,
    /// The largest distance to a child.
    pub max_distance: u64,
    /// Whether there is a payload.
    pub has_payload: bool,
}

impl NodeType {
    /// Returns the type that Cassandra chooses (`TrieNode.typeFor`).
    pub fn of(shape: &NodeShape) -> NodeType {
        if shape.children == 0 {
            return TYPES[0];
        }
        let bits = 64 - shape.max_distance.leading_zeros();
        let mut width = match bits {
            0..=4 => 0,
            5..=8 => 1,
            9..=12 => 2,
            13..=16 => 3,
            17..=24 => 4,
            25..=32 => 5,
            33..=40 => 6,
            _ => 7,
        };
        if shape.children == 1 {
            // The narrow ones of these have no payload bits.
            let is_narrow = matches!(TYPES[SINGLES[width]].width, Width::Bits4 | Width::Bits12);
            if shape.has_payload && is_narrow {
                width += 1;
            }
            return TYPES[SINGLES[width]];
        }
        let (sparse, dense) = (TYPES[SPARSES[width]], TYPES[DENSES[width]]);
        let span = usize::from(shape.last - shape.first) + 1;
        if sparse.len(shape.children, span) < dense.len(shape.children, span) {
            sparse
        } else {
            dense
        }
    }

    /// Length of a node without payload, bytes. `span` is the number of transitions from the first to the
    /// last child.
    fn len(self, children: usize, span: usize) -> usize {
        match (self.shape, self.width) {
            (Shape::PayloadOnly, _) => 1,
            (Shape::Single, Width::Bits4) => 2,
            (Shape::Single, Width::Bits12) => 3,
            (Shape::Single, Width::Bytes(n)) => 2 + n,
            (Shape::Sparse, Width::Bytes(n)) => 2 + children * (1 + n),
            (Shape::Sparse, _) => 2 + (5 * children).div_ceil(2),
            (Shape::Dense, Width::Bytes(n)) => 3 + span * n,
            (Shape::Dense, _) => 3 + (3 * span).div_ceil(2),
        }
    }

    /// Length of a node of this type and shape without its payload, bytes.
    pub fn len_of(self, shape: &NodeShape) -> usize {
        self.len(shape.children, usize::from(shape.last - shape.first) + 1)
    }
}

/// Appends a node without its payload. `children` are transitions, ascending, and distances that fit
/// `node_type`.
pub fn write_node(
    out: &mut Vec<u8>,
    node_type: NodeType,
    payload_bits: u8,
    children: &[(u8, u64)],
) {
    let head = node_type.ordinal << 4;
    match (node_type.shape, node_type.width, children) {
        (Shape::PayloadOnly, _, _) | (_, _, []) => out.push(head | payload_bits),
        (Shape::Single, Width::Bits4, [(transition, distance), ..]) => {
            out.extend_from_slice(&[head | (*distance as u8 & 0xf), *transition]);
        }
        (Shape::Single, Width::Bits12, [(transition, distance), ..]) => {
            let high = (*distance >> 8) as u8 & 0xf;
            out.extend_from_slice(&[head | high, *distance as u8, *transition]);
        }
        (Shape::Single, Width::Bytes(n), [(transition, distance), ..]) => {
            out.extend_from_slice(&[head | payload_bits, *transition]);
            put_distance(out, *distance, n);
        }
        (Shape::Sparse, width, _) => {
            out.extend_from_slice(&[head | payload_bits, children.len() as u8]);
            out.extend(children.iter().map(|(transition, _)| *transition));
            put_distances(out, width, children.iter().map(|(_, distance)| *distance));
        }
        (Shape::Dense, width, [(first, _), ..]) => {
            let last = children.last().map_or(first, |(transition, _)| transition);
            out.extend_from_slice(&[head | payload_bits, *first, last - first]);
            let mut next = children.iter().peekable();
            put_distances(
                out,
                width,
                (*first..=*last).map(|at| {
                    match next.next_if(|(transition, _)| *transition == at) {
                        Some((_, distance)) => *distance,
                        None => 0,
                    }
                }),
            );
        }
    }
}

fn put_distance(out: &mut Vec<u8>, distance: u64, len: usize) {
    out.extend_from_slice(&distance.to_be_bytes()[8 - len..]);
}

fn put_distances(out: &mut Vec<u8>, width: Width, distances: impl Iterator<Item = u64>) {
    if let Width::Bytes(len) = width {
        for distance in distances {
            put_distance(out, distance, len);
        }
        return;
    }
    let mut carry = None;
    for distance in distances {
        match carry.take() {
            None => {
                out.push((distance >> 4) as u8);
                carry = Some((distance << 4) as u8);
            }
            Some(high) => {
                out.extend_from_slice(&[high | (distance >> 8) as u8 & 0xf, distance as u8]);
            }
        }
    }
    out.extend(carry);
}

/// A node in a file, with its bounds checked.
#[derive(Clone, Copy, Debug)]
pub struct Node<'a> {
    node_type: NodeType,
    position: u64,
    payload_bits: u8,
    /// Transitions of a sparse node, the only one of a single.
    transitions: &'a [u8],
    /// First transition of a dense node.
    first: u8,
    distances: &'a [u8],
    /// Number of slots: children, or the span of a dense node.
    range: usize,
    /// All bytes after the node.
    after: &'a [u8],
}

impl<'a> Node<'a> {
    /// Parses the node at `position` of `bytes`, the start of the file.
    ///
    /// # Errors
    /// Corruption if it is not entirely in `bytes`, or its transitions are inconsistent.
    pub fn parse(bytes: &'a [u8], position: u64) -> Result<Node<'a>> {
        let tail = usize::try_from(position)
            .ok()
            .and_then(|at| bytes.get(at..))
            .unwrap_or_default();
        let short = || {
            let found = format!("{} bytes left", tail.len());
            Error::corrupt("trie.node", position, "a whole node", found)
        };
        let (&head, rest) = tail.split_first().ok_or_else(short)?;
        let node_type = TYPES[usize::from(head >> 4)];
        let mut node = Node {
            node_type,
            position,
            payload_bits: head & 0xf,
            transitions: &[],
            first: 0,
            distances: &[],
            range: 0,
            after: rest,
        };
        match node_type.shape {
            Shape::PayloadOnly => return Ok(node),
            Shape::Single => {
                node.range = 1;
                let (transition_at, len) = match node_type.width {
                    Width::Bits4 => (1, 2),
                    Width::Bits12 => (2, 3),
                    Width::Bytes(n) => (1, 2 + n),
                };
                let whole = tail.get(..len).ok_or_else(short)?;
                node.transitions = &whole[transition_at..=transition_at];
                node.distances = match node_type.width {
                    Width::Bytes(_) => &whole[2..],
                    _ => &whole[..transition_at],
                };
                if !matches!(node_type.width, Width::Bytes(_)) {
                    node.payload_bits = 0;
                }
                node.after = &tail[len..];
            }
            Shape::Sparse => {
                node.range = usize::from(*rest.first().ok_or_else(short)?);
                let len = node_type.len(node.range, 0);
                let whole = tail.get(..len).ok_or_else(short)?;
                (node.transitions, node.distances) = whole[2..].split_at(node.range);
                node.after = &tail[len..];
                if node.range == 0 || !node.transitions.is_sorted_by(|a, b| a < b) {
                    return Err(Error::corrupt(
                        "trie.node.transitions",
                        position,
                        "one or more transitions in ascending order",
                        format!("{:02x?}", node.transitions),
                    ));
                }
            }
            Shape::Dense => {
                let &[first, more] = rest.first_chunk::<2>().ok_or_else(short)?;
                if first.checked_add(more).is_none() {
                    return Err(Error::corrupt(
                        "trie.node.transitions",
                        position,
                        "a last transition up to ff",
                        format!("{more} after {first:02x}"),
                    ));
                }
                node.first = first;
                node.range = usize::from(more) + 1;
                let len = node_type.len(node.range, node.range);
                let whole = tail.get(..len).ok_or_else(short)?;
                node.distances = &whole[3..];
                node.after = &tail[len..];
                if node.distance(0) == 0 || node.distance(node.range - 1) == 0 {
                    return Err(Error::corrupt(
                        "trie.node.transitions",
                        position,
                        "a child at both ends of a dense node",
                        "none",
                    ));
                }
            }
        }
        Ok(node)
    }

    /// Position of the node.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Bits of its payload; 0 if it has none.
    pub fn payload_bits(&self) -> u8 {
        self.payload_bits
    }

    /// All bytes after the node in the file, beginning with its payload.
    pub fn after(&self) -> &'a [u8] {
        self.after
    }

    /// Number of slots for children; some slots of a dense node are vacant.
    pub fn range(&self) -> usize {
        self.range
    }

    /// Transition byte of slot `index`.
    pub fn transition(&self, index: usize) -> u8 {
        match self.node_type.shape {
            // The range has been checked, so this does not wrap.
            Shape::Dense => self.first.wrapping_add(index as u8),
            _ => self.transitions.get(index).copied().unwrap_or_default(),
        }
    }

    /// Returns the slot of a transition, or the slot where it would be inserted.
    pub fn search(&self, transition: u8) -> Result<usize, usize> {
        match self.node_type.shape {
            Shape::PayloadOnly => Err(0),
            Shape::Single | Shape::Sparse => self.transitions.binary_search(&transition),
            Shape::Dense => match transition.checked_sub(self.first).map(usize::from) {
                None => Err(0),
                Some(index) if index >= self.range => Err(self.range),
                Some(index) if self.distance(index) == 0 => Err(index),
                Some(index) => Ok(index),
            },
        }
    }

    /// Distance to the child in slot `index`, 0 if vacant.
    fn distance(&self, index: usize) -> u64 {
        let number = |bytes: &[u8]| {
            bytes
                .iter()
                .fold(0u64, |n, byte| (n << 8) | u64::from(*byte))
        };
        match (self.node_type.shape, self.node_type.width) {
            (_, Width::Bytes(n)) => self
                .distances
                .get(index * n..(index + 1) * n)
                .map_or(0, number),
            (Shape::Single, Width::Bits4) => number(self.distances) & 0xf,
            (Shape::Single, Width::Bits12) => number(self.distances) & 0xfff,
            (_, _) => {
                let at = 3 * index / 2;
                let pair = self.distances.get(at..at + 2).map_or(0, number);
                if index.is_multiple_of(2) {
                    pair >> 4
                } else {
                    pair & 0xfff
                }
            }
        }
    }

    /// Position of the child in slot `index`; `None` if vacant.
    ///
    /// # Errors
    /// Corruption if a distance is 0 where a child is required, or leads out of the file.
    pub fn child(&self, index: usize) -> Result<Option<u64>> {
        let distance = self.distance(index);
        if distance == 0 && self.node_type.shape == Shape::Dense {
            return Ok(None);
        }
        match self.position.checked_sub(distance) {
            Some(child) if distance > 0 => Ok(Some(child)),
            _ => Err(Error::corrupt(
                "trie.node.distance",
                self.position,
                format!("1 to {}", self.position),
                distance,
            )),
        }
    }
}

#[cfg(test)]
mod tests;
