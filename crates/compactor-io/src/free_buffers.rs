//! Unused memory of a buffer pool, by size class.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::aligned_memory::AlignedMemory;
use crate::lock;

/// Unused memory of a pool, and the numbers of bytes that it reports.
pub(crate) struct FreeBuffers {
    free: Mutex<FreeLists>,
    pub(crate) free_bytes_limit: usize,
    pub(crate) current_bytes: AtomicU64,
    pub(crate) peak_bytes: AtomicU64,
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

impl FreeBuffers {
    pub(crate) fn new(free_bytes_limit: usize) -> FreeBuffers {
        FreeBuffers {
            free: Mutex::new(FreeLists::default()),
            free_bytes_limit,
            current_bytes: AtomicU64::new(0),
            peak_bytes: AtomicU64::new(0),
        }
    }

    pub(crate) fn take_free(&self, capacity: usize) -> Option<AlignedMemory> {
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
        Some(memory)
    }

    pub(crate) fn count_allocation(&self, capacity: usize) {
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
        }
        // Freed outside the lock: releasing a mebibyte to the system takes longer than taking a buffer.
        self.release(surplus);
    }

    /// Frees all unused memory.
    pub(crate) fn trim(&self) {
        let free = {
            let mut free = lock(&self.free);
            free.bytes = 0;
            std::mem::take(&mut free.classes)
        };
        let memory = free.into_values().flat_map(|class| class.buffers);
        self.release(memory.collect());
    }

    fn release(&self, surplus: Vec<AlignedMemory>) {
        for memory in surplus {
            self.current_bytes
                .fetch_sub(memory.capacity() as u64, Ordering::Relaxed);
        }
    }

    /// Number of unused bytes.
    pub(crate) fn free_bytes(&self) -> u64 {
        lock(&self.free).bytes as u64
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
