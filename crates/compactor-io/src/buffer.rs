//! Page-aligned memory for direct I/O.
//!
//! The memory is allocated zeroed, once, and reused with old bytes in it: every byte is always
//! initialised, so a buffer can be shown as `&[u8]` at any time and no length of "initialised so
//! far" has to be kept in step with the kernel.
#![expect(
    unsafe_code,
    reason = "aligned allocation: std has no safe type for it"
)]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

use crate::align::DEFAULT_ALIGNMENT;
use crate::pool::PoolShared;

/// One aligned allocation, or none when its capacity is zero.
pub(crate) struct AlignedMemory {
    /// Invariant: valid for reads and writes of `capacity` initialised bytes; allocated with
    /// `layout(capacity)` when `capacity > 0`, dangling (but aligned) when it is 0; owned by this
    /// value alone.
    pointer: NonNull<u8>,
    capacity: usize,
}

// SAFETY: the memory is owned by this value alone and plain bytes have no thread affinity; the
// global allocator may free on any thread.
unsafe impl Send for AlignedMemory {}
// SAFETY: a shared reference gives only `&[u8]`; writing needs `&mut self`.
unsafe impl Sync for AlignedMemory {}

fn layout(capacity: usize) -> Layout {
    match Layout::from_size_align(capacity, DEFAULT_ALIGNMENT) {
        Ok(layout) => layout,
        // Only a capacity near isize::MAX gets here, which no caller could be served with.
        Err(_) => panic!("a buffer of {capacity} bytes is beyond the address space"),
    }
}

impl AlignedMemory {
    /// Allocates `capacity` zeroed bytes; none at all for 0.
    pub(crate) fn zeroed(capacity: usize) -> AlignedMemory {
        if capacity == 0 {
            return AlignedMemory::default();
        }
        let layout = layout(capacity);
        // SAFETY: the layout's size is not zero (checked above).
        let raw = unsafe { alloc_zeroed(layout) };
        match NonNull::new(raw) {
            Some(pointer) => AlignedMemory { pointer, capacity },
            None => handle_alloc_error(layout),
        }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: the invariant of `pointer`: `capacity` initialised bytes (or a dangling aligned
        // pointer with length 0), borrowed for as long as `self` is.
        unsafe { std::slice::from_raw_parts(self.pointer.as_ptr(), self.capacity) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.pointer.as_ptr(), self.capacity) }
    }
}

impl Default for AlignedMemory {
    fn default() -> Self {
        AlignedMemory {
            pointer: NonNull::<Page>::dangling().cast(),
            capacity: 0,
        }
    }
}

/// Gives the dangling pointer of an empty allocation its alignment.
#[repr(align(4096))]
struct Page;
const _: () = assert!(align_of::<Page>() == DEFAULT_ALIGNMENT);

impl Drop for AlignedMemory {
    fn drop(&mut self) {
        if self.capacity > 0 {
            // SAFETY: allocated in `zeroed` with this very layout and freed only here, once.
            unsafe { dealloc(self.pointer.as_ptr(), layout(self.capacity)) }
        }
    }
}

/// A buffer whose address is a multiple of [`DEFAULT_ALIGNMENT`] and whose capacity is a multiple
/// of it too. Dereferences to all of its capacity; what it holds besides the bytes that somebody
/// put there is old data (zeroes at first).
///
/// Dropping it gives the memory back to the [`BufferPool`](crate::BufferPool) it came from.
pub struct AlignedBuffer {
    memory: AlignedMemory,
    pool: Arc<PoolShared>,
}

impl AlignedBuffer {
    pub(crate) fn new(memory: AlignedMemory, pool: Arc<PoolShared>) -> AlignedBuffer {
        AlignedBuffer { memory, pool }
    }

    /// Length of the whole buffer in bytes.
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
        self.pool.give_back(std::mem::take(&mut self.memory));
    }
}

impl fmt::Debug for AlignedBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AlignedBuffer")
            .field("capacity", &self.capacity())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_zeroed_and_writable_to_its_end() {
        for capacity in [4096, 8192, 1 << 20] {
            let mut memory = AlignedMemory::zeroed(capacity);
            assert_eq!(memory.bytes().as_ptr().addr() % DEFAULT_ALIGNMENT, 0);
            assert!(memory.bytes().iter().all(|&byte| byte == 0));
            memory.bytes_mut().fill(0xa5);
            assert_eq!(memory.bytes()[capacity - 1], 0xa5);
        }
    }

    #[test]
    fn an_empty_buffer_allocates_nothing() {
        let mut memory = AlignedMemory::zeroed(0);
        assert!(memory.bytes().is_empty());
        assert!(memory.bytes_mut().is_empty());
        assert_eq!(memory.bytes().as_ptr().addr() % DEFAULT_ALIGNMENT, 0);
    }
}
