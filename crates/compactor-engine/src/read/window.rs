//! Sliding window of contiguous uncompressed bytes over one input.
//!
//! Decoded blocks have headroom before their data. When the cursor needs bytes beyond the current block, the
//! bytes that it has not consumed are copied into the headroom of the next block, so that a row that
//! straddles two blocks is contiguous at the cost of copying its first part. Only a row longer than the
//! headroom makes the window grow.

use crate::error::Result;

/// Default headroom of a block, bytes, if memory allows.
pub const HEADROOM: usize = 32 << 10;

/// A decoded block: data after spare bytes of undefined content.
#[derive(Debug, Default)]
pub struct Block {
    /// `headroom` bytes, then the data.
    pub bytes: Vec<u8>,
    /// Spare bytes before the data.
    pub headroom: usize,
}

impl Block {
    /// Removes the data and sets the headroom.
    pub fn clear(&mut self, headroom: usize) {
        self.bytes.truncate(headroom);
        self.resize(headroom, 0);
    }

    /// Sizes the block for `headroom` spare bytes and `len` bytes of data, all of undefined content.
    pub(crate) fn resize(&mut self, headroom: usize, len: usize) {
        self.headroom = headroom;
        self.bytes.resize(headroom + len, 0);
    }

    /// The data.
    pub fn data(&self) -> &[u8] {
        self.bytes.get(self.headroom..).unwrap_or_default()
    }

    /// Truncates the data to its first `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        self.bytes.truncate(self.headroom.saturating_add(len));
    }

    /// Removes the first `len` bytes of the data.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn skip(&mut self, len: usize) {
        self.bytes.drain(self.headroom..self.headroom + len);
    }

    /// Length of the data.
    pub fn len(&self) -> usize {
        self.data().len()
    }

    /// Whether there is no data.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Source of blocks in file order.
pub trait BlockSource {
    /// The next block; `None` at the end of the file.
    ///
    /// # Errors
    /// A failed read, a damaged chunk, or cancellation.
    fn next_block(&mut self) -> Result<Option<Block>>;

    /// Returns a consumed block's memory, once per block that was taken. Its content is undefined, and the
    /// first block may be empty.
    fn recycle(&mut self, block: Block);

    /// Uncompressed length of the whole file.
    fn total_len(&self) -> u64;
}

/// Window of the bytes from the cursor's position on.
#[derive(Debug)]
pub struct Window<S> {
    source: S,
    bytes: Vec<u8>,
    start: usize,
    position: u64,
    at_end: bool,
    /// Bytes of the first block before the start of the window.
    lead_len: usize,
}

impl<S: BlockSource> Window<S> {
    /// An empty window at the start of `source`.
    pub fn new(source: S) -> Window<S> {
        Window {
            source,
            bytes: Vec::new(),
            start: 0,
            position: 0,
            at_end: false,
            lead_len: 0,
        }
    }

    /// Moves an empty window to `position` of the file, which is `lead_len` bytes after the start of the first
    /// block.
    pub fn start_at(&mut self, position: u64, lead_len: usize) {
        debug_assert!(self.bytes.is_empty());
        self.position = position;
        self.lead_len = lead_len;
    }

    /// Decoded bytes that are not consumed yet.
    #[inline(always)]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// Uncompressed position of the first of [`Window::bytes`].
    #[inline]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Number of bytes from the window's start to the end of the file.
    #[inline]
    pub fn file_remaining(&self) -> u64 {
        self.source.total_len().saturating_sub(self.position)
    }

    /// Advances by `len` bytes, which must be in the window.
    #[inline(always)]
    pub fn consume(&mut self, len: usize) {
        debug_assert!(len <= self.bytes.len() - self.start);
        self.start += len;
        self.position += len as u64;
    }

    /// Source of the blocks.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// Returns the window's memory to the source.
    pub(crate) fn release(&mut self) {
        self.start = 0;
        let bytes = std::mem::take(&mut self.bytes);
        if bytes.capacity() > 0 {
            self.source.recycle(Block { bytes, headroom: 0 });
        }
    }

    /// Appends the next block; returns false at the end of the file. Offsets into [`Window::bytes`] stay
    /// valid, addresses do not.
    pub fn refill(&mut self) -> Result<bool> {
        if self.at_end {
            return Ok(false);
        }
        let Some(mut block) = self.source.next_block()? else {
            self.at_end = true;
            return Ok(false);
        };
        let rest = self.bytes.len() - self.start;
        let headroom = block.headroom;
        if rest <= headroom && block.bytes.len() >= headroom {
            let target = headroom - rest;
            block.bytes[target..headroom].copy_from_slice(&self.bytes[self.start..]);
            std::mem::swap(&mut self.bytes, &mut block.bytes);
            self.start = target;
            self.source.recycle(block);
        } else {
            // A long row is kept in one piece. `Vec` grows by doubling, so the copies stay linear.
            self.bytes.copy_within(self.start.., 0);
            self.bytes.truncate(rest);
            self.start = 0;
            self.bytes.extend_from_slice(block.data());
            self.source.recycle(block);
        }
        if self.lead_len > 0 {
            self.start += std::mem::take(&mut self.lead_len).min(self.bytes.len() - self.start);
        }
        Ok(true)
    }
}

/// Source over bytes in memory, split into blocks of a given length.
#[derive(Debug)]
pub struct MemorySource {
    bytes: Vec<u8>,
    at: usize,
    block_len: usize,
    spare: Vec<Block>,
}

impl MemorySource {
    /// Creates a source of `block_len` bytes per block.
    pub fn new(bytes: Vec<u8>, block_len: usize) -> MemorySource {
        assert!(block_len > 0);
        MemorySource {
            bytes,
            at: 0,
            block_len,
            spare: Vec::new(),
        }
    }
}

impl BlockSource for MemorySource {
    fn next_block(&mut self) -> Result<Option<Block>> {
        let end = (self.at + self.block_len).min(self.bytes.len());
        if self.at == end {
            return Ok(None);
        }
        let mut block = self.spare.pop().unwrap_or_default();
        block.clear(HEADROOM);
        block.bytes.extend_from_slice(&self.bytes[self.at..end]);
        self.at = end;
        Ok(Some(block))
    }

    fn recycle(&mut self, block: Block) {
        self.spare.push(block);
    }

    fn total_len(&self) -> u64 {
        self.bytes.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        /// The bytes come out in order and contiguous for any sizes of consumed steps.
        #[test]
        fn slides_without_losing_bytes(
            len in 0usize..200_000,
            block_len in 1usize..40_000,
            steps in proptest::collection::vec(1usize..90_000, 1..40),
        ) {
            let bytes: Vec<u8> = (0..len).map(|i| (i * 7 + i / 251) as u8).collect();
            let mut window = Window::new(MemorySource::new(bytes.clone(), block_len));
            let mut at = 0;
            for step in steps {
                while window.bytes().len() < step && window.refill().unwrap() {}
                let got = step.min(len - at);
                proptest::prop_assert!(window.bytes().len() >= got);
                proptest::prop_assert_eq!(&window.bytes()[..got], &bytes[at..at + got]);
                proptest::prop_assert_eq!(window.position(), at as u64);
                window.consume(got);
                at += got;
                proptest::prop_assert_eq!(window.file_remaining(), (len - at) as u64);
            }
        }
    }
}
