//! The Bloom filter of an output, which any thread adds keys to.
//!
//! Its bits lie all over memory that no near cache holds: of tables of small partitions that is most of what there
//! is to do for an entry, and it would hold up all that waits for its turn.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use compactor_sstable::bloom_filter::{BloomFilter, FilterFilling};
use compactor_sstable::partitioner::KeyHash;

use crate::error::{Error, Result};
use crate::read::workers::WorkerQueue;
use crate::write::output_blocks::OutputBlocks;

/// Keys that are added as one task.
const BATCH_LEN: usize = 1024;

/// A filter on its way: its keys come in batches.
#[derive(Debug)]
pub(crate) struct FilterOutput {
    shared: Arc<Shared>,
    queue: WorkerQueue,
    batch: Vec<KeyHash>,
    keys: u64,
}

#[derive(Debug)]
struct Shared {
    /// With how many keys it has; `None` once it is complete.
    filling: Mutex<(Option<FilterFilling>, u64)>,
    /// What comes while another adds keys: nobody waits for that one.
    waiting: Mutex<Vec<Vec<KeyHash>>>,
    /// Batches that are yet to be added.
    batches: OutputBlocks,
}

/// A batch that counts as under way until it is dropped.
struct Batch {
    shared: Arc<Shared>,
    keys: Vec<KeyHash>,
}

impl FilterOutput {
    pub(crate) fn new(filter: BloomFilter, queue: WorkerQueue) -> FilterOutput {
        let shared = Shared {
            filling: Mutex::new((Some(FilterFilling::new(filter)), 0)),
            waiting: Mutex::default(),
            batches: OutputBlocks::new(1),
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

    /// The filter with all keys.
    ///
    /// # Errors
    /// If a thread ended before it had added its keys.
    pub(crate) fn finish(mut self) -> Result<BloomFilter> {
        self.submit();
        self.shared.batches.wait_for_less(1, &self.queue);
        let filling = self.shared.filling.lock();
        let mut filling = filling.unwrap_or_else(PoisonError::into_inner);
        // Those that were left as the last one ended.
        self.shared.add_waiting(&mut filling);
        let (filling, keys) = &mut *filling;
        match filling.take().filter(|_| *keys == self.keys) {
            Some(filling) => Ok(filling.finish()),
            None => Err(Error::Internal(
                "keys of the filter were dropped".to_owned(),
            )),
        }
    }
}

impl Batch {
    fn add(mut self) {
        self.shared.waiting().push(std::mem::take(&mut self.keys));
        if let Ok(mut filling) = self.shared.filling.try_lock() {
            self.shared.add_waiting(&mut filling);
        }
    }
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, Vec<Vec<KeyHash>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keys of one that is in a panic are missing in the count.
    fn add_waiting(&self, (filling, count): &mut (Option<FilterFilling>, u64)) {
        loop {
            let keys = self.waiting().pop();
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
    fn has_all_keys_or_is_none() {
        for count in [0, 1, 1023, 1024, 1025, 5000u64] {
            let of_keys = || BloomFilter::for_keys(5000, 0.01).unwrap().unwrap();
            let mut output = FilterOutput::new(of_keys(), WorkerQueue::default());
            let mut expected = FilterFilling::new(of_keys());
            for key in 0..count {
                let hash = Partitioner::Murmur3.hash_key(&key.to_be_bytes());
                output.add_key(&hash);
                expected.add_key(&hash);
            }
            assert_eq!(output.finish().unwrap(), expected.finish());
        }
        let filter = BloomFilter::for_keys(5000, 0.01).unwrap().unwrap();
        let mut output = FilterOutput::new(filter, WorkerQueue::default());
        output.add_key(&Partitioner::Murmur3.hash_key(b"key"));
        let lost = std::mem::take(&mut output.batch);
        output.keys += lost.len() as u64;
        assert!(output.finish().is_err());
    }
}
