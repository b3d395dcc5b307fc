//! A file under construction with page boundaries.
//!
//! Source: `PageAware`, `SequentialWriter`.

use crate::bti::node::PAGE_LEN;

/// A growing file: bytes that have not been written out, and the position of the first of them.
#[derive(Clone, Debug, Default)]
pub struct PagedOutput {
    bytes: Vec<u8>,
    taken: u64,
}

impl PagedOutput {
    /// Creates an empty file.
    pub fn new() -> PagedOutput {
        PagedOutput::default()
    }

    /// Position of the next byte.
    pub fn position(&self) -> u64 {
        self.taken + self.bytes.len() as u64
    }

    /// Bytes that have not been written out.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Removes the bytes, after the caller has written them to the file.
    pub fn clear(&mut self) {
        self.taken += self.bytes.len() as u64;
        self.bytes.clear();
    }

    /// Buffer to append to.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Number of bytes to the next page boundary; a whole page at a boundary.
    pub(super) fn left_in_page(&self) -> u64 {
        PAGE_LEN - self.position() % PAGE_LEN
    }

    /// Appends zeros up to the next page boundary.
    pub(super) fn pad_to_page(&mut self) {
        let left = self.left_in_page() % PAGE_LEN;
        self.bytes.resize(self.bytes.len() + left as usize, 0);
    }
}
