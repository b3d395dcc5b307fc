//! Writing sorted keys as a trie file, page by page.
//!
//! The nodes on the path to the last key are under construction. A node is complete when a key does not share
//! it. If it and everything below it fit a page, they stay in memory. If not, the branches below it are
//! written, the largest that fits the rest of the page first, and it becomes the root of a new, small branch.
//! So pages are full of whole branches, and a lookup reads few of them.
//!
//! A node's length depends on the distances to its children, and thus on its own position if children have
//! already been written: lengths are recalculated once it is known. The steps, their order and the
//! recalculations are those of Cassandra, since each affects the bytes.
//!
//! Memory is bounded by the key's length times 256 branches of a page. Nothing recurses: a key of 64 KiB
//! makes a trie of that depth.
//!
//! Source: `IncrementalTrieWriterBase`, `IncrementalTrieWriterPageAware`,
//! `IncrementalDeepTrieWriterPageAware`.

use crate::bti::node::{NodeShape, NodeType, PAGE_LEN, write_node};
use crate::bti::paged_output::PagedOutput;
use crate::error::{Error, Result};
use crate::hex::hex;

/// Payload of a key.
pub trait Payload: Copy {
    /// Length after the node, bytes.
    fn encoded_len(&self) -> usize;
    /// Payload bits in the node's first byte: 1 to 15.
    fn bits(&self) -> u8;
    /// Appends its bytes.
    fn write(&self, out: &mut Vec<u8>);
}

const NONE: u32 = u32::MAX;
const UNPLACED: u64 = u64::MAX;

#[derive(Clone, Debug)]
struct Node<P> {
    payload: Option<P>,
    /// Position in the file, once written.
    position: u64,
    first_child: u32,
    last_child: u32,
    next_sibling: u32,
    children: u16,
    transition: u8,
    /// Whether a child has already been written, so that the length depends on the node's position. Also true
    /// before completion, as in Cassandra: the distances of a node being sized for the first time are
    /// examined one by one.
    has_out_of_page_children: bool,
    /// Whether a descendant has such children.
    has_out_of_page_in_branch: bool,
    /// Length of everything below the node that has not been written.
    branch_len: u64,
    /// Length of the node with its payload.
    node_len: u64,
}

impl<P> Node<P> {
    fn new(transition: u8) -> Node<P> {
        Node {
            payload: None,
            position: UNPLACED,
            first_child: NONE,
            last_child: NONE,
            next_sibling: NONE,
            children: 0,
            transition,
            has_out_of_page_children: true,
            has_out_of_page_in_branch: false,
            branch_len: 0,
            node_len: 0,
        }
    }

    fn is_placed(&self) -> bool {
        self.position != UNPLACED
    }

    fn total_len(&self) -> u64 {
        self.branch_len + self.node_len
    }
}

/// Frame of a walk below a node: the node, its next child to visit, the start of the branch and the length
/// visited so far.
#[derive(Clone, Copy, Debug)]
struct Frame {
    node: u32,
    next_child: u32,
    start: u64,
    len: u64,
}

/// A child that has not been written: the length of its branch, its place among its siblings, and the child. In the
/// order in which the last is the first to be written.
type Unplaced = (u64, u32, u32);

/// A node whose children are being written, and those that have not been.
struct Layout {
    node: u32,
    place: u32,
    /// Ascending.
    unplaced: Vec<Unplaced>,
}

impl Layout {
    fn insert(&mut self, child: Unplaced) {
        let at = self.unplaced.partition_point(|other| *other < child);
        self.unplaced.insert(at, child);
    }

    /// Takes the child with the longest branch that is not longer than `limit`; of equal ones the last.
    fn take(&mut self, limit: u64) -> Option<Unplaced> {
        let fitting = self.unplaced.partition_point(|(len, ..)| *len <= limit);
        Some(self.unplaced.remove(fitting.checked_sub(1)?))
    }
}

/// Writer of tries, one after the other, in reused buffers.
#[derive(Debug)]
pub struct TrieWriter<P> {
    nodes: Vec<Node<P>>,
    free: Vec<u32>,
    /// Nodes under construction, the root first.
    stack: Vec<u32>,
    key: Vec<u8>,
    count: u64,
    walk: Vec<Frame>,
    children: Vec<(u8, u64)>,
}

impl<P: Payload> Default for TrieWriter<P> {
    fn default() -> TrieWriter<P> {
        TrieWriter::new()
    }
}

impl<P: Payload> TrieWriter<P> {
    /// Creates a writer of an empty trie.
    pub fn new() -> TrieWriter<P> {
        let mut writer = TrieWriter {
            nodes: Vec::new(),
            free: Vec::new(),
            stack: Vec::new(),
            key: Vec::new(),
            count: 0,
            walk: Vec::new(),
            children: Vec::new(),
        };
        writer.reset();
        writer
    }

    /// Starts another trie and discards the nodes of the last one.
    pub fn reset(&mut self) {
        self.nodes.clear();
        self.free.clear();
        self.stack.clear();
        self.key.clear();
        self.count = 0;
        let root = self.new_node(0);
        self.stack.push(root);
    }

    /// Adds a key greater than all before.
    ///
    /// # Errors
    /// Unsupported if it is not.
    pub fn add(&mut self, out: &mut PagedOutput, key: &[u8], payload: P) -> Result<()> {
        let common = self.key.iter().zip(key).take_while(|(a, b)| a == b).count();
        if self.count > 0 && (key.len() == common || self.key.get(common) > key.get(common)) {
            return Err(Error::unsupported(format!(
                "keys of a trie that do not ascend: {} after {}",
                shown(key),
                shown(&self.key)
            )));
        }
        self.count += 1;
        while self.stack.len() > common + 1 {
            self.complete_last(out);
        }
        self.key.truncate(common);
        for &transition in &key[common..] {
            self.key.push(transition);
            let child = self.new_node(transition);
            if let Some(&parent) = self.stack.last() {
                self.append_child(parent, child);
            }
            self.stack.push(child);
        }
        if let Some(&last) = self.stack.last() {
            self.node_mut(last).payload = Some(payload);
        }
        Ok(())
    }

    /// Writes the remaining nodes. Returns the position of the root; [`TrieWriter::reset`] must be called
    /// next.
    pub fn complete(&mut self, out: &mut PagedOutput) -> u64 {
        let mut root = NONE;
        while let Some(last) = self.complete_last(out) {
            root = last;
        }
        let mut len = self.recalculate(root, out.position());
        if len > out.left_in_page() {
            if len <= PAGE_LEN {
                out.pad_to_page();
                len = self.recalculate(root, out.position());
            }
            if len > out.left_in_page() {
                self.lay_out_children(out, root);
                if self.node(root).node_len > out.left_in_page() {
                    out.pad_to_page();
                    self.recalculate(root, out.position());
                }
            }
        }
        self.write_branch(out, root);
        self.node(root).position
    }

    fn new_node(&mut self, transition: u8) -> u32 {
        let node = Node::new(transition);
        match self.free.pop() {
            Some(index) => {
                *self.node_mut(index) = node;
                index
            }
            None => {
                self.nodes.push(node);
                (self.nodes.len() - 1) as u32
            }
        }
    }

    fn node(&self, index: u32) -> &Node<P> {
        &self.nodes[index as usize]
    }

    fn node_mut(&mut self, index: u32) -> &mut Node<P> {
        &mut self.nodes[index as usize]
    }

    fn append_child(&mut self, parent: u32, child: u32) {
        let last = self.node(parent).last_child;
        if last == NONE {
            self.node_mut(parent).first_child = child;
        } else {
            self.node_mut(last).next_sibling = child;
        }
        let parent = self.node_mut(parent);
        parent.last_child = child;
        parent.children += 1;
    }

    fn children(&self, parent: u32) -> impl Iterator<Item = u32> {
        let mut next = self.node(parent).first_child;
        std::iter::from_fn(move || {
            if next == NONE {
                return None;
            }
            let child = next;
            next = self.node(child).next_sibling;
            Some(child)
        })
    }

    fn complete_last(&mut self, out: &mut PagedOutput) -> Option<u32> {
        let last = self.stack.pop()?;
        self.complete_node(out, last);
        Some(last)
    }

    fn complete_node(&mut self, out: &mut PagedOutput, index: u32) {
        let branch_len = self
            .children(index)
            .map(|child| self.node(child).total_len())
            .sum();
        self.node_mut(index).branch_len = branch_len;
        let node_len = self.len_at(index, out.position());
        if node_len + branch_len >= PAGE_LEN {
            self.lay_out_children(out, index);
            return;
        }
        let (mut children, mut in_branch) = (false, false);
        for child in self.children(index) {
            let child = self.node(child);
            if child.is_placed() {
                children = true;
            } else if child.has_out_of_page_children || child.has_out_of_page_in_branch {
                in_branch = true;
            }
        }
        let node = self.node_mut(index);
        node.node_len = node_len;
        node.has_out_of_page_children = children;
        node.has_out_of_page_in_branch = in_branch;
    }

    /// Writes the branches below a node, and below those of its children that do not fit a page after
    /// recalculation.
    fn lay_out_children(&mut self, out: &mut PagedOutput, index: u32) {
        let mut layouts = vec![self.layout(index, 0)];
        while let Some(layout) = layouts.last_mut() {
            let mut left = out.left_in_page();
            let mut chosen = layout.take(left);
            if chosen.is_none() {
                chosen = layout.unplaced.pop();
                if chosen.is_some() {
                    out.pad_to_page();
                    left = PAGE_LEN;
                }
            }
            let Some((_, place, child)) = chosen else {
                let Layout {
                    node: done, place, ..
                } = *layout;
                let node = self.node_mut(done);
                node.branch_len = 0;
                node.has_out_of_page_children = true;
                node.has_out_of_page_in_branch = false;
                let len = self.len_at(done, out.position());
                self.node_mut(done).node_len = len;
                layouts.pop();
                if let Some(parent) = layouts.last_mut() {
                    parent.insert((len, place, done));
                }
                continue;
            };
            let node = self.node(child);
            if node.has_out_of_page_children || node.has_out_of_page_in_branch {
                // Its position, and so its length, is known only now.
                let len = self.recalculate(child, out.position());
                if len > left {
                    if left == PAGE_LEN {
                        let layout = self.layout(child, place);
                        layouts.push(layout);
                    } else {
                        layout.insert((len, place, child));
                    }
                    continue;
                }
            }
            self.write_branch(out, child);
        }
    }

    fn layout(&self, node: u32, place: u32) -> Layout {
        let unplaced = self.children(node).zip(0..);
        let unplaced = unplaced.filter(|(child, _)| !self.node(*child).is_placed());
        let unplaced = unplaced.map(|(child, place)| (self.node(child).total_len(), place, child));
        let mut unplaced: Vec<_> = unplaced.collect();
        unplaced.sort_unstable();
        Layout {
            node,
            place,
            unplaced,
        }
    }

    /// Returns the largest distance of a node at `position`: to a child in the file, or to the first one that
    /// is not (`maxPositionDelta`).
    fn max_distance(&self, index: u32, position: u64) -> u64 {
        let node = self.node(index);
        let unplaced = |child: &Node<P>| node.branch_len - child.branch_len;
        if !node.has_out_of_page_children {
            return match node.first_child {
                NONE => 0,
                first => unplaced(self.node(first)),
            };
        }
        let mut max = 0;
        let mut seen_unplaced = false;
        for child in self.children(index) {
            let child = self.node(child);
            if child.is_placed() {
                max = max.max(position - child.position);
            } else if !seen_unplaced {
                seen_unplaced = true;
                max = max.max(unplaced(child));
            }
        }
        max
    }

    fn shape_at(&self, index: u32, position: u64) -> NodeShape {
        let node = self.node(index);
        let transition = |child| {
            if child == NONE {
                0
            } else {
                self.node(child).transition
            }
        };
        NodeShape {
            children: usize::from(node.children),
            first: transition(node.first_child),
            last: transition(node.last_child),
            max_distance: self.max_distance(index, position),
            has_payload: node.payload.is_some(),
        }
    }

    /// Length of a node at `position`.
    fn len_at(&self, index: u32, position: u64) -> u64 {
        let shape = self.shape_at(index, position);
        let payload = self
            .node(index)
            .payload
            .map_or(0, |payload| payload.encoded_len());
        (NodeType::of(&shape).len_of(&shape) + payload) as u64
    }

    /// Recalculates the lengths of a branch that begins at `position`; returns its total length.
    fn recalculate(&mut self, index: u32, position: u64) -> u64 {
        let mut walk = std::mem::take(&mut self.walk);
        walk.push(self.frame(index, position));
        let mut total = 0;
        while let Some(frame) = walk.last_mut() {
            let node = &self.nodes[frame.node as usize];
            if node.has_out_of_page_in_branch && frame.next_child != NONE {
                let child = frame.next_child;
                frame.next_child = self.nodes[child as usize].next_sibling;
                let start = frame.start + frame.len;
                walk.push(self.frame(child, start));
                continue;
            }
            let Frame {
                node: done,
                start,
                len,
                ..
            } = *frame;
            walk.pop();
            if self.node(done).has_out_of_page_in_branch {
                self.node_mut(done).branch_len = len;
            }
            let node = self.node(done);
            if node.has_out_of_page_children || node.has_out_of_page_in_branch {
                let len = self.len_at(done, start + node.branch_len);
                self.node_mut(done).node_len = len;
            }
            total = self.node(done).total_len();
            if let Some(parent) = walk.last_mut() {
                parent.len += total;
            }
        }
        self.walk = walk;
        total
    }

    fn frame(&self, node: u32, start: u64) -> Frame {
        Frame {
            node,
            next_child: self.node(node).first_child,
            start,
            len: 0,
        }
    }

    /// Writes a branch: children ascending, each with all its descendants, then the node.
    fn write_branch(&mut self, out: &mut PagedOutput, index: u32) {
        let mut walk = std::mem::take(&mut self.walk);
        walk.push(self.frame(index, out.position()));
        while let Some(frame) = walk.last_mut() {
            if frame.next_child != NONE {
                let child = frame.next_child;
                frame.next_child = self.nodes[child as usize].next_sibling;
                if !self.node(child).is_placed() {
                    walk.push(self.frame(child, out.position()));
                }
                continue;
            }
            let Frame {
                node: done, start, ..
            } = *frame;
            walk.pop();
            debug_assert_eq!(out.position(), start + self.node(done).branch_len);
            self.write_one(out, done);
        }
        self.walk = walk;
        // It takes no space in the branch above it.
        let node = self.node_mut(index);
        node.branch_len = 0;
        node.node_len = 0;
        node.has_out_of_page_children = false;
        node.has_out_of_page_in_branch = false;
    }

    /// Writes a node whose children are in the file, and frees the children.
    fn write_one(&mut self, out: &mut PagedOutput, index: u32) {
        let position = out.position();
        let node_type = NodeType::of(&self.shape_at(index, position));
        let mut children = std::mem::take(&mut self.children);
        children.clear();
        let mut next = self.node(index).first_child;
        while next != NONE {
            let child = self.node(next);
            children.push((child.transition, position - child.position));
            let free = next;
            next = child.next_sibling;
            self.free.push(free);
        }
        let node = self.node_mut(index);
        let payload = node.payload.take();
        node.first_child = NONE;
        node.last_child = NONE;
        node.children = 0;
        node.position = position;
        let bits = payload.map_or(0, |payload| payload.bits());
        write_node(out.buffer(), node_type, bits, &children);
        if let Some(payload) = payload {
            payload.write(out.buffer());
        }
        debug_assert_eq!(out.position(), position + self.node(index).node_len);
        self.children = children;
    }
}

/// First bytes of a key in hexadecimal, for an error.
fn shown(key: &[u8]) -> String {
    const SHOWN: usize = 64;
    let dots = if key.len() > SHOWN { "…" } else { "" };
    hex(&key[..key.len().min(SHOWN)]) + dots
}

#[cfg(test)]
mod tests;
