//! Aligned buffer of a pool.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use crate::aligned_memory::AlignedMemory;
use crate::free_buffers::FreeBuffers;

/// A buffer whose address and capacity are multiples of [`DEFAULT_ALIGNMENT`](crate::DEFAULT_ALIGNMENT). Dereferences to its whole
/// capacity. Bytes that have not been written since it was taken have old content (initially zeroes).
///
/// Dropping it returns the memory to its [`BufferPool`](crate::BufferPool).
pub struct AlignedBuffer {
    memory: AlignedMemory,
    pool: Arc<FreeBuffers>,
}

impl AlignedBuffer {
    pub(crate) fn new(memory: AlignedMemory, pool: Arc<FreeBuffers>) -> AlignedBuffer {
        AlignedBuffer { memory, pool }
    }

    /// Length of the whole buffer, bytes.
    pub fn capacity(&self) -> usize {
        self.memory.capacity()
    }
}

impl Deref for AlignedBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.memory.bytes()
    }
}

impl DerefMut for AlignedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.memory.bytes_mut()
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        self.pool.recycle(std::mem::take(&mut self.memory));
    }
}

impl fmt::Debug for AlignedBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AlignedBuffer")
            .field("capacity", &self.capacity())
            .finish()
    }
}
