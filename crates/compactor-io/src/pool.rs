//! Pool of aligned buffers, and the gauge that counts them.
//!
//! Buffers have size classes: whole pages up to eight, then eight classes per doubling, so that at most an
//! eighth of a buffer is unused. A returned buffer is kept for reuse; the number of bytes kept is limited,
//! and buffers of the least recently used class are freed first.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::align::DEFAULT_ALIGNMENT;
use crate::buffer::{AlignedBuffer, AlignedMemory};
use crate::lock;

/// Pool of reusable [`AlignedBuffer`]s; clones share it.
#[derive(Clone)]
pub struct BufferPool {
    shared: Arc<PoolShared>,
}

impl BufferPool {
    /// Creates a pool that keeps at most `free_bytes_limit` bytes of unused buffers. It does not limit the
    /// buffers in use, which is up to its users.
    pub fn new(free_bytes_limit: usize) -> BufferPool {
        BufferPool {
            shared: Arc::new(PoolShared {
                free: Mutex::new(FreeLists::default()),
                free_bytes_limit,
                current_bytes: AtomicU64::new(0),
                peak_bytes: AtomicU64::new(0),
                free_bytes: AtomicU64::new(0),
            }),
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
        let free = {
            let mut free = lock(&self.shared.free);
            free.bytes = 0;
            std::mem::take(&mut free.classes)
        };
        let memory = free.into_values().flat_map(|class| class.buffers);
        self.shared.release(memory.collect());
    }

    /// Gauge of this pool's memory.
    pub fn gauge(&self) -> MemoryGauge {
        MemoryGauge {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl fmt::Debug for BufferPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BufferPool")
            .field("free_bytes_limit", &self.shared.free_bytes_limit)
            .field("gauge", &self.gauge())
            .finish()
    }
}

/// Memory of the buffers that a [`BufferPool`] has allocated, bytes. Each figure is read separately, so two
/// of them may be from different times.
#[derive(Clone)]
pub struct MemoryGauge {
    shared: Arc<PoolShared>,
}

impl MemoryGauge {
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
        self.shared.free_bytes.load(Ordering::Relaxed)
    }

    /// Memory of buffers in use, bytes.
    pub fn in_use_bytes(&self) -> u64 {
        self.current_bytes().saturating_sub(self.pooled_bytes())
    }
}

impl fmt::Debug for MemoryGauge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryGauge")
            .field("current_bytes", &self.current_bytes())
            .field("peak_bytes", &self.peak_bytes())
            .field("pooled_bytes", &self.pooled_bytes())
            .finish()
    }
}

pub(crate) struct PoolShared {
    free: Mutex<FreeLists>,
    free_bytes_limit: usize,
    current_bytes: AtomicU64,
    peak_bytes: AtomicU64,
    /// Copy of `FreeLists::bytes`, so that the gauge takes no lock.
    free_bytes: AtomicU64,
}

#[derive(Default)]
struct FreeLists {
    /// Classes by capacity.
    classes: BTreeMap<usize, Class>,
    bytes: usize,
    /// Number of takes; a class records that of its last one.
    clock: u64,
}

#[derive(Default)]
struct Class {
    buffers: Vec<AlignedMemory>,
    last_taken: u64,
}

impl PoolShared {
    fn take_free(&self, capacity: usize) -> Option<AlignedMemory> {
        if capacity == 0 {
            return None;
        }
        let mut free = lock(&self.free);
        free.clock += 1;
        let now = free.clock;
        let class = free.classes.entry(capacity).or_default();
        class.last_taken = now;
        let memory = class.buffers.pop()?;
        free.bytes -= capacity;
        self.free_bytes.store(free.bytes as u64, Ordering::Relaxed);
        Some(memory)
    }

    fn count_allocation(&self, capacity: usize) {
        let bytes = capacity as u64;
        let now = self.current_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.peak_bytes.fetch_max(now, Ordering::Relaxed);
    }

    pub(crate) fn recycle(&self, memory: AlignedMemory) {
        let capacity = memory.capacity();
        if capacity == 0 {
            return;
        }
        let mut surplus = Vec::new();
        {
            let mut free = lock(&self.free);
            free.bytes += capacity;
            free.classes
                .entry(capacity)
                .or_default()
                .buffers
                .push(memory);
            while free.bytes > self.free_bytes_limit {
                let Some(memory) = free.pop_least_recently_taken() else {
                    break;
                };
                surplus.push(memory);
            }
            self.free_bytes.store(free.bytes as u64, Ordering::Relaxed);
        }
        // Freed outside the lock: releasing a mebibyte to the system takes longer than taking a buffer.
        self.release(surplus);
    }

    fn release(&self, surplus: Vec<AlignedMemory>) {
        for memory in surplus {
            self.current_bytes
                .fetch_sub(memory.capacity() as u64, Ordering::Relaxed);
        }
        self.free_bytes
            .store(lock(&self.free).bytes as u64, Ordering::Relaxed);
    }
}

impl FreeLists {
    fn pop_least_recently_taken(&mut self) -> Option<AlignedMemory> {
        let class = self
            .classes
            .values_mut()
            .filter(|class| !class.buffers.is_empty())
            .min_by_key(|class| class.last_taken)?;
        let memory = class.buffers.pop()?;
        self.bytes -= memory.capacity();
        Some(memory)
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
        assert_eq!(pool.gauge().current_bytes(), MIB as u64);
        assert_eq!(pool.gauge().in_use_bytes(), MIB as u64);
    }

    #[test]
    fn the_gauge_counts_in_use_and_pooled_and_remembers_the_peak() {
        let pool = BufferPool::new(2 * MIB);
        let held: Vec<_> = (0..5).map(|_| pool.take(MIB)).collect();
        assert_eq!(pool.gauge().current_bytes(), 5 * MIB as u64);
        assert_eq!(pool.gauge().pooled_bytes(), 0);
        drop(held);
        // Beyond the limit of free bytes, memory was released to the system.
        assert_eq!(pool.gauge().current_bytes(), 2 * MIB as u64);
        assert_eq!(pool.gauge().pooled_bytes(), 2 * MIB as u64);
        assert_eq!(pool.gauge().in_use_bytes(), 0);
        assert_eq!(pool.gauge().peak_bytes(), 5 * MIB as u64);
        pool.trim();
        assert_eq!(pool.gauge().current_bytes(), 0);
        assert_eq!(pool.gauge().pooled_bytes(), 0);
    }

    #[test]
    fn an_unused_class_is_freed_first() {
        let pool = BufferPool::new(2 * MIB);
        drop([pool.take(MIB), pool.take(MIB)]);
        drop([pool.take(MIB / 2), pool.take(MIB / 2)]);
        let small = pool.take(MIB / 2);
        assert_eq!(pool.gauge().current_bytes(), 2 * MIB as u64);
        drop(small);
        assert_eq!(pool.gauge().pooled_bytes(), 2 * MIB as u64);
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
        assert_eq!(pool.gauge().in_use_bytes(), 0);
        assert!(pool.gauge().current_bytes() <= MIB as u64);
    }
}
