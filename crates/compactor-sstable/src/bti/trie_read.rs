//! Reading tries from bytes that may be hostile.
//!
//! A child precedes its parent, so no path is endless; but nodes may share children, which can make
//! exponentially many paths. A walk therefore counts the nodes it visits: in a valid trie they cannot
//! outnumber the bytes. Depth is limited as well, since the stack of a walk takes more memory than the bytes
//! of a node.
//!
//! Source: `Walker`, `ValueIterator`.

use crate::bti::node::{Node, PAGE_LEN};
use crate::error::{Error, Result};

/// Maximum length of a key that is followed. Cassandra's are at most 64 KiB, and encoding at most doubles
/// them.
const MAX_DEPTH: usize = 1 << 20;

/// A trie in a file.
#[derive(Clone, Copy, Debug)]
pub struct Trie<'a> {
    bytes: &'a [u8],
    start: u64,
    root: u64,
}

impl<'a> Trie<'a> {
    /// Creates a trie with its root at `root` of `bytes`, the file up to the end of the nodes. The first node
    /// may be at `start`.
    pub fn new(bytes: &'a [u8], start: u64, root: u64) -> Trie<'a> {
        Trie { bytes, start, root }
    }

    fn node(&self, position: u64) -> Result<Node<'a>> {
        if position < self.start {
            return Err(Error::corrupt(
                "trie.node",
                position,
                format!("a node at {} or after it", self.start),
                "one before",
            ));
        }
        Node::parse(self.bytes, position)
    }

    /// Checks that a node and its payload of `payload_len` bytes are in one page: Cassandra maps or loads one
    /// page at a time.
    ///
    /// # Errors
    /// Corruption if they are not.
    pub fn check_page(&self, node: &Node<'_>, payload_len: usize) -> Result<()> {
        let after = node.after().len().saturating_sub(payload_len);
        let end = (self.bytes.len() - after) as u64;
        if node.position() / PAGE_LEN == end.saturating_sub(1) / PAGE_LEN {
            return Ok(());
        }
        Err(Error::corrupt(
            "trie.node",
            node.position(),
            format!("a node within one page of {PAGE_LEN} bytes"),
            format!("one that ends at {end}"),
        ))
    }

    /// Follows `key` as far as there are transitions for it (`Walker.follow`). Returns the last node reached, and
    /// whether the whole key was followed.
    ///
    /// # Errors
    /// Corruption in the trie.
    pub fn follow(&self, key: &[u8]) -> Result<(Node<'a>, bool)> {
        let mut node = self.node(self.root)?;
        for byte in key {
            match node.search(*byte) {
                Ok(index) => node = self.child(&node, index)?,
                Err(_) => return Ok((node, false)),
            }
        }
        Ok((node, true))
    }

    /// Returns the node with the payload of the greatest separator that is not greater than `key`. A
    /// separator that is a prefix of the key counts only if no other is between them
    /// (`RowIndexReader.separatorFloor`). `None` if the key is before all.
    ///
    /// # Errors
    /// Corruption in the trie.
    pub fn floor(&self, key: &[u8]) -> Result<Option<Node<'a>>> {
        let mut node = self.node(self.root)?;
        let mut payload = None;
        let mut lesser = None;
        let mut bytes = key.iter();
        loop {
            let found = match bytes.next() {
                Some(byte) => node.search(*byte),
                None => Err(0),
            };
            let (Ok(index) | Err(index)) = found;
            match self.child_before(&node, index)? {
                Some(child) => {
                    lesser = Some(child);
                    payload = None;
                }
                None if node.payload_bits() != 0 => payload = Some(node),
                None => {}
            }
            match found {
                Ok(index) => node = self.child(&node, index)?,
                Err(_) => break,
            }
        }
        if payload.is_some() {
            return Ok(payload);
        }
        let Some(position) = lesser else {
            return Ok(None);
        };
        let mut node = self.node(position)?;
        while let Some(child) = self.child_before(&node, node.range())? {
            node = self.node(child)?;
        }
        Ok(Some(node))
    }

    fn child(&self, node: &Node<'a>, index: usize) -> Result<Node<'a>> {
        match node.child(index)? {
            Some(position) => self.node(position),
            None => Err(Error::corrupt(
                "trie.node",
                node.position(),
                "a child",
                "none",
            )),
        }
    }

    /// Last child before slot `index`.
    fn child_before(&self, node: &Node<'a>, index: usize) -> Result<Option<u64>> {
        for place in (0..index).rev() {
            if let Some(child) = node.child(place)? {
                return Ok(Some(child));
            }
        }
        Ok(None)
    }

    /// Walks over the payloads that are not before `key`, in key order. The first is returned separately if
    /// its key is equal to `key` or a prefix of it.
    ///
    /// # Errors
    /// Corruption in the trie.
    pub fn walk_from(&self, key: &[u8]) -> Result<(Option<Node<'a>>, Walk<'a>)> {
        let mut walk = self.walk();
        let mut beginning = walk.enter(self.root)?;
        for byte in key {
            let Some(frame) = walk.stack.last_mut() else {
                break;
            };
            let place = match frame.node.search(*byte) {
                Ok(place) => place,
                Err(place) => {
                    frame.next = place;
                    break;
                }
            };
            frame.next = place + 1;
            let Some(child) = frame.node.child(place)? else {
                break;
            };
            walk.key.push(*byte);
            beginning = walk.enter(child)?.or(beginning);
        }
        Ok((beginning, walk))
    }

    /// Walks over all payloads in key order.
    pub fn walk(&self) -> Walk<'a> {
        Walk {
            trie: *self,
            stack: Vec::new(),
            key: Vec::new(),
            visited: 0,
        }
    }
}

/// A node on the path to the current one, and the slot of its next child.
#[derive(Clone, Copy, Debug)]
struct Frame<'a> {
    node: Node<'a>,
    next: usize,
}

/// Iterator over the payloads of a trie.
#[derive(Clone, Debug)]
pub struct Walk<'a> {
    trie: Trie<'a>,
    stack: Vec<Frame<'a>>,
    key: Vec<u8>,
    visited: u64,
}

impl<'a> Walk<'a> {
    /// Returns the next node that has a payload; `None` at the end.
    ///
    /// # Errors
    /// Corruption in the trie. The walk ends then.
    pub fn next_payload(&mut self) -> Result<Option<Node<'a>>> {
        let result = self.advance();
        if result.is_err() {
            self.stack.clear();
        }
        result
    }

    fn advance(&mut self) -> Result<Option<Node<'a>>> {
        if self.visited == 0 {
            let root = self.trie.root;
            if let Some(node) = self.enter(root)? {
                return Ok(Some(node));
            }
        }
        while let Some(frame) = self.stack.last_mut() {
            if frame.next >= frame.node.range() {
                self.stack.pop();
                self.key.pop();
                continue;
            }
            let place = frame.next;
            frame.next += 1;
            let Some(child) = frame.node.child(place)? else {
                continue;
            };
            let transition = frame.node.transition(place);
            self.key.push(transition);
            if let Some(node) = self.enter(child)? {
                return Ok(Some(node));
            }
        }
        Ok(None)
    }

    /// Bytes on the path to the node that was returned last.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    fn enter(&mut self, position: u64) -> Result<Option<Node<'a>>> {
        self.visited += 1;
        let node = self.trie.node(position)?;
        let limit = (self.trie.bytes.len() as u64).saturating_sub(self.trie.start);
        if self.visited > limit {
            return Err(Error::corrupt(
                "trie",
                position,
                format!("at most {limit} nodes"),
                "more: branches are shared",
            ));
        }
        if self.stack.len() >= MAX_DEPTH {
            return Err(Error::corrupt(
                "trie",
                position,
                format!("keys of at most {MAX_DEPTH} bytes"),
                "a longer one",
            ));
        }
        if node.range() == 0 && node.payload_bits() == 0 {
            return Err(Error::corrupt(
                "trie.node",
                position,
                "a payload or children",
                "neither",
            ));
        }
        self.stack.push(Frame { node, next: 0 });
        Ok((node.payload_bits() != 0).then_some(node))
    }
}

#[cfg(test)]
mod tests;
