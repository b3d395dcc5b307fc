//! Page-aligned memory for direct I/O.
//!
//! The memory is zeroed once when it is allocated, and reused with its old content: every byte is always
//! initialised, so a buffer can be viewed as `&[u8]` at any time, without tracking an initialised length.
#![expect(
    unsafe_code,
    reason = "aligned allocation: std has no safe type for it"
)]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

use crate::align::DEFAULT_ALIGNMENT;

/// One aligned allocation, or none if its capacity is zero.
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
        // Only a capacity near isize::MAX gets here, which cannot be allocated.
        Err(_) => panic!("a buffer of {capacity} bytes exceeds the address space"),
    }
}

impl AlignedMemory {
    /// Allocates `capacity` zeroed bytes; nothing for 0.
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

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the invariant of `pointer`: `capacity` initialised bytes (or a dangling aligned
        // pointer with length 0), borrowed for as long as `self` is.
        unsafe { std::slice::from_raw_parts(self.pointer.as_ptr(), self.capacity) }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
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

/// Determines the alignment of the dangling pointer of an empty allocation.
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
