//! Bytes read from a file.

use std::fmt;
use std::ops::Deref;

use crate::buffer::AlignedBuffer;
use crate::pool::BufferPool;

/// The bytes that one read asked for. Dereferences to exactly those, although the buffer under it
/// may hold more, for alignment's sake. Dropping it returns the buffer to its pool.
pub struct Extent {
    buffer: AlignedBuffer,
    start: usize,
    len: usize,
    offset: u64,
}

impl Extent {
    /// `buffer[start..start + len]`, which stems from `offset` of a file. The range must lie
    /// within the buffer.
    pub(crate) fn new(buffer: AlignedBuffer, start: usize, len: usize, offset: u64) -> Extent {
        assert!(start <= buffer.capacity() && len <= buffer.capacity() - start);
        Extent {
            buffer,
            start,
            len,
            offset,
        }
    }

    /// An extent of bytes that come from memory, as if they had been read at `offset`.
    pub fn copy_from(pool: &BufferPool, bytes: &[u8], offset: u64) -> Extent {
        let mut buffer = pool.take(bytes.len());
        buffer[..bytes.len()].copy_from_slice(bytes);
        Extent::new(buffer, 0, bytes.len(), offset)
    }

    /// Where in the file the bytes start.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Bytes of memory that the extent holds on to: at least its length.
    pub fn buffer_bytes(&self) -> usize {
        self.buffer.capacity()
    }
}

impl Deref for Extent {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.buffer[self.start..self.start + self.len]
    }
}

impl AsRef<[u8]> for Extent {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Extent")
            .field("offset", &self.offset)
            .field("len", &self.len)
            .finish()
    }
}
