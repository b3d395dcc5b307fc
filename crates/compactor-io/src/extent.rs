//! Bytes read from a file.

use std::fmt;
use std::ops::Deref;

use crate::buffer::AlignedBuffer;

/// Bytes requested by one read. Dereferences to exactly those, although the underlying buffer may be larger
/// because of alignment. Dropping it returns the buffer to its pool.
pub struct Extent {
    buffer: AlignedBuffer,
    start: usize,
    len: usize,
    offset: u64,
}

impl Extent {
    /// Creates an extent of `buffer[start..start + len]`, read at `offset` of a file. The range must be
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

    /// Offset of the bytes in the file.
    pub fn offset(&self) -> u64 {
        self.offset
    }
}

impl Deref for Extent {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.buffer[self.start..self.start + self.len]
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
