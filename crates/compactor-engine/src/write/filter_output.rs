//! Construction of an output's Bloom filter by any thread.
//!
//! Setting its bits misses the CPU caches. For small partitions that would be most of the serial work of
//! appending ranges, so keys are added in batches, by tasks.

use std::sync::{Arc, Mutex};

use compactor_io::lock;

use compactor_sstable::bloom_filter::{BloomFilter, FilterBuilder};
use compactor_sstable::partitioner::KeyHash;

use crate::error::{Error, Result};
use crate::read::workers::WorkerQueue;
use crate::write::pending::Pending;

/// Number of keys added by one task.
const BATCH_LEN: usize = 1024;

/// A Bloom filter under construction.
#[derive(Debug)]
pub(crate) struct FilterOutput {
    shared: Arc<Shared>,
    queue: WorkerQueue,
    batch: Vec<KeyHash>,
    keys: u64,
}

#[derive(Debug)]
struct Shared {
    /// The filter, `None` once it is complete, and the number of keys added.
    filling: Mutex<(Option<FilterBuilder>, u64)>,
    /// Batches to be added by the thread that holds the lock of the filter: no task waits for another.
    waiting: Mutex<Vec<Vec<KeyHash>>>,
    /// Submitted batches.
    batches: Pending,
}

/// A batch, which counts as pending until it is dropped.
struct Batch {
    shared: Arc<Shared>,
    keys: Vec<KeyHash>,
}

impl FilterOutput {
    pub(crate) fn new(filter: BloomFilter, queue: WorkerQueue) -> FilterOutput {
        let shared = Shared {
            filling: Mutex::new((Some(FilterBuilder::new(filter)), 0)),
            waiting: Mutex::default(),
            batches: Pending::default(),
        };
        FilterOutput {
            shared: Arc::new(shared),
            queue,
            batch: Vec::new(),
            keys: 0,
        }
    }

    #[inline]
    pub(crate) fn add_key(&mut self, key: &KeyHash) {
        self.batch.push(*key);
        if self.batch.len() == BATCH_LEN {
            self.submit();
        }
    }

    fn submit(&mut self) {
        let keys = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH_LEN));
        self.keys += keys.len() as u64;
        self.shared.batches.begin();
        let shared = Arc::clone(&self.shared);
        let batch = Batch { shared, keys };
        self.queue.submit(Box::new(move || batch.add()));
    }

    /// Returns the filter with all keys.
    ///
    /// # Errors
    /// Keys were lost in a panic of a task.
    pub(crate) fn finish(mut self) -> Result<BloomFilter> {
        self.submit();
        self.shared.batches.wait_for_less(1, &self.queue);
        let mut filling = lock(&self.shared.filling);
        // A batch may have been queued just as the thread that held the lock found no more.
        self.shared.add_waiting(&mut filling);
        let (filling, keys) = &mut *filling;
        match filling.take().filter(|_| *keys == self.keys) {
            Some(filling) => Ok(filling.finish()),
            None => Err(Error::internal("keys of the filter were dropped")),
        }
    }
}

impl Batch {
    fn add(mut self) {
        lock(&self.shared.waiting).push(std::mem::take(&mut self.keys));
        if let Ok(mut filling) = self.shared.filling.try_lock() {
            self.shared.add_waiting(&mut filling);
        }
    }
}

impl Shared {
    /// Adds all waiting batches. Keys lost in a panic are missing from the count.
    fn add_waiting(&self, (filling, count): &mut (Option<FilterBuilder>, u64)) {
        loop {
            let keys = lock(&self.waiting).pop();
            let (Some(keys), Some(filling)) = (keys, filling.as_mut()) else {
                return;
            };
            keys.iter().for_each(|key| filling.add_key(key));
            *count += keys.len() as u64;
        }
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        self.shared.batches.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use compactor_sstable::partitioner::Partitioner;

    #[test]
    fn has_all_keys() {
        for count in [0, 1, 1023, 1024, 1025, 5000u64] {
            let of_keys = || BloomFilter::for_keys(5000, 0.01).unwrap().unwrap();
            let mut output = FilterOutput::new(of_keys(), WorkerQueue::default());
            let mut expected = FilterBuilder::new(of_keys());
            for key in 0..count {
                let hash = Partitioner::Murmur3.hash_key(&key.to_be_bytes());
                output.add_key(&hash);
                expected.add_key(&hash);
            }
            assert_eq!(output.finish().unwrap(), expected.finish());
        }
    }

    /// A batch that is submitted while another thread holds the lock is added later.
    #[test]
    fn a_batch_does_not_wait_for_another() {
        let of_keys = || BloomFilter::for_keys(5000, 0.01).unwrap().unwrap();
        let mut output = FilterOutput::new(of_keys(), WorkerQueue::default());
        let mut expected = FilterBuilder::new(of_keys());
        let shared = Arc::clone(&output.shared);
        let locked = shared.filling.lock().unwrap();
        for key in 0..3 * BATCH_LEN {
            let hash = Partitioner::Murmur3.hash_key(&key.to_be_bytes());
            output.add_key(&hash);
            expected.add_key(&hash);
        }
        shared.batches.wait_for_less(1, &output.queue);
        assert_eq!((locked.1, lock(&shared.waiting).len()), (0, 3));
        drop(locked);
        assert_eq!(output.finish().unwrap(), expected.finish());
    }

    #[test]
    fn a_lost_batch_is_an_error() {
        let filter = BloomFilter::for_keys(5000, 0.01).unwrap().unwrap();
        let mut output = FilterOutput::new(filter, WorkerQueue::default());
        output.add_key(&Partitioner::Murmur3.hash_key(b"key"));
        let lost = std::mem::take(&mut output.batch);
        output.keys += lost.len() as u64;
        assert!(output.finish().is_err());
    }
}
