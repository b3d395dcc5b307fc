//! Pool of aligned buffers, which counts them.
//!
//! Buffers have size classes: whole pages up to eight, then eight classes per doubling, so that at most an
//! eighth of a buffer is unused. A returned buffer is kept for reuse; the number of bytes kept is limited,
//! and buffers of the least recently used class are freed first.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::align::DEFAULT_ALIGNMENT;
use crate::aligned_memory::AlignedMemory;
use crate::buffer::AlignedBuffer;
use crate::free_buffers::FreeBuffers;

/// Pool of reusable [`AlignedBuffer`]s; clones share it. Each of its figures is read separately, so two of them may be
/// from different times.
#[derive(Clone)]
pub struct BufferPool {
    shared: Arc<FreeBuffers>,
}

impl BufferPool {
    /// Creates a pool that keeps at most `free_bytes_limit` bytes of unused buffers. It does not limit the
    /// buffers in use, which is up to its users.
    pub fn new(free_bytes_limit: usize) -> BufferPool {
        BufferPool {
            shared: Arc::new(FreeBuffers::new(free_bytes_limit)),
        }
    }

    /// Takes a buffer with a capacity of at least `min_len` bytes. Its content is unspecified (zeroes, or old
    /// content); `take(0)` allocates nothing.
    pub fn take(&self, min_len: usize) -> AlignedBuffer {
        let capacity = class_capacity(min_len);
        let memory = match self.shared.take_free(capacity) {
            Some(memory) => memory,
            None => {
                self.shared.count_allocation(capacity);
                AlignedMemory::zeroed(capacity)
            }
        };
        AlignedBuffer::new(memory, Arc::clone(&self.shared))
    }

    /// Frees every unused buffer.
    pub fn trim(&self) {
        self.shared.trim();
    }

    /// Memory allocated: buffers in use and buffers kept for reuse, bytes.
    pub fn current_bytes(&self) -> u64 {
        self.shared.current_bytes.load(Ordering::Relaxed)
    }

    /// Maximum of [`current_bytes`](Self::current_bytes) so far.
    pub fn peak_bytes(&self) -> u64 {
        self.shared.peak_bytes.load(Ordering::Relaxed)
    }

    /// Memory of unused buffers in the pool, bytes.
    pub fn pooled_bytes(&self) -> u64 {
        self.shared.free_bytes()
    }

    /// Memory of buffers in use, bytes.
    pub fn in_use_bytes(&self) -> u64 {
        self.current_bytes().saturating_sub(self.pooled_bytes())
    }
}

impl fmt::Debug for BufferPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BufferPool")
            .field("free_bytes_limit", &self.shared.free_bytes_limit)
            .field("current_bytes", &self.current_bytes())
            .field("peak_bytes", &self.peak_bytes())
            .field("pooled_bytes", &self.pooled_bytes())
            .finish()
    }
}

/// Capacity of the size class for `min_len` bytes.
fn class_capacity(min_len: usize) -> usize {
    let pages = min_len.div_ceil(DEFAULT_ALIGNMENT);
    let step = match pages {
        0..=8 => 1,
        // Eight classes between consecutive powers of two.
        _ => 1usize << (pages - 1).ilog2().saturating_sub(3),
    };
    match pages.div_ceil(step).checked_mul(step * DEFAULT_ALIGNMENT) {
        Some(capacity) => capacity,
        None => panic!("a buffer of {min_len} bytes exceeds the address space"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn a_class_wastes_at_most_an_eighth() {
        assert_eq!(class_capacity(0), 0);
        assert_eq!(class_capacity(1), 4096);
        assert_eq!(class_capacity(MIB), MIB);
        assert_eq!(class_capacity(MIB + 1), MIB + MIB / 8);
        for min_len in (1..64 * MIB).step_by(4093) {
            let capacity = class_capacity(min_len);
            assert!(capacity >= min_len);
            let wanted = min_len.next_multiple_of(4096);
            assert!(capacity - wanted <= wanted / 8, "{min_len} got {capacity}");
        }
    }

    #[test]
    fn a_returned_buffer_is_taken_again() {
        let pool = BufferPool::new(4 * MIB);
        let mut buffer = pool.take(MIB);
        buffer[0] = 7;
        let address = buffer.as_ptr().addr();
        drop(buffer);
        let buffer = pool.take(MIB - 5);
        assert_eq!(buffer.as_ptr().addr(), address);
        assert_eq!(pool.current_bytes(), MIB as u64);
        assert_eq!(pool.in_use_bytes(), MIB as u64);
    }

    #[test]
    fn the_gauge_counts_in_use_and_pooled_and_remembers_the_peak() {
        let pool = BufferPool::new(2 * MIB);
        let held: Vec<_> = (0..5).map(|_| pool.take(MIB)).collect();
        assert_eq!(pool.current_bytes(), 5 * MIB as u64);
        assert_eq!(pool.pooled_bytes(), 0);
        drop(held);
        // Beyond the limit of free bytes, memory was released to the system.
        assert_eq!(pool.current_bytes(), 2 * MIB as u64);
        assert_eq!(pool.pooled_bytes(), 2 * MIB as u64);
        assert_eq!(pool.in_use_bytes(), 0);
        assert_eq!(pool.peak_bytes(), 5 * MIB as u64);
        pool.trim();
        assert_eq!(pool.current_bytes(), 0);
        assert_eq!(pool.pooled_bytes(), 0);
    }

    #[test]
    fn an_unused_class_is_freed_first() {
        let pool = BufferPool::new(2 * MIB);
        drop([pool.take(MIB), pool.take(MIB)]);
        drop([pool.take(MIB / 2), pool.take(MIB / 2)]);
        let small = pool.take(MIB / 2);
        assert_eq!(pool.current_bytes(), 2 * MIB as u64);
        drop(small);
        assert_eq!(pool.pooled_bytes(), 2 * MIB as u64);
    }

    #[test]
    fn many_threads_leave_only_pooled_bytes() {
        let pool = BufferPool::new(MIB);
        std::thread::scope(|scope| {
            for seed in 0..4usize {
                let pool = &pool;
                scope.spawn(move || {
                    let mut held = Vec::new();
                    for round in 0..200 {
                        held.push(pool.take((round * 7919 + seed * 104_729) % 300_000 + 1));
                        if round % 3 == 0 {
                            held.swap_remove(0);
                        }
                    }
                });
            }
        });
        assert_eq!(pool.in_use_bytes(), 0);
        assert!(pool.current_bytes() <= MIB as u64);
    }
}
