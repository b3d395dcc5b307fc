//! Construction of an output's index, Bloom filter and cardinality sketch by any thread.
//!
//! They depend on the order of partitions, but nothing else waits for them: appending ranges only passes on what was
//! collected for them with each block. Setting the bits of the filter misses the CPU caches, and a trie is built node
//! by node, so for small partitions this is most of the work that is done in order.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use compactor_io::lock;
use compactor_sstable::bti::rows::SeparatedBlock;
use compactor_sstable::statistics::HyperLogLogPlus;

use crate::error::{Error, Result};
use crate::read::batch::Batch;
use crate::read::workers::WorkerQueue;
use crate::write::format_index::FormatIndex;
use crate::write::index_part::IndexPart;
use crate::write::pending::Pending;

/// Bytes of waiting batches above which the thread that appends ranges adds them itself: with many threads one may be
/// too slow for what the others pass on.
const WAITING_BYTES_MAX: usize = 1 << 20;

/// An index under construction.
#[derive(Debug)]
pub struct IndexOutput {
    shared: Arc<Shared>,
    queue: WorkerQueue,
    batches: u64,
}

#[derive(Debug)]
struct Shared {
    index: Mutex<KeyIndex>,
    /// Batches in order, each with the position of its range in the output, to be added by the thread that holds
    /// the lock of the index: no task waits for another.
    waiting: Mutex<Waiting>,
    /// Tasks that have not ended.
    tasks: Pending,
    has_failed: AtomicBool,
}

#[derive(Debug, Default)]
struct Waiting {
    batches: VecDeque<(Batch<IndexPart>, u64)>,
    bytes: usize,
}

impl Waiting {
    fn push(&mut self, parts: Batch<IndexPart>, base: u64) {
        self.bytes += parts.occupied_bytes();
        self.batches.push_back((parts, base));
    }

    fn pop(&mut self) -> Option<(Batch<IndexPart>, u64)> {
        let (parts, base) = self.batches.pop_front()?;
        self.bytes -= parts.occupied_bytes();
        Some((parts, base))
    }
}

#[derive(Debug)]
struct KeyIndex {
    /// `None` once it is complete.
    index: Option<FormatIndex>,
    cardinality: HyperLogLogPlus,
    /// Number of batches added.
    batches: u64,
    error: Option<Error>,
}

/// A task that adds the batches that wait. It counts as pending until it is dropped.
struct Task(Arc<Shared>);

impl IndexOutput {
    pub(crate) fn new(index: FormatIndex, queue: WorkerQueue) -> IndexOutput {
        let shared = Shared {
            index: Mutex::new(KeyIndex {
                index: Some(index),
                cardinality: HyperLogLogPlus::new(),
                batches: 0,
                error: None,
            }),
            waiting: Mutex::default(),
            tasks: Pending::default(),
            has_failed: AtomicBool::new(false),
        };
        IndexOutput {
            shared: Arc::new(shared),
            queue,
            batches: 0,
        }
    }

    /// Adds parts of a range that begins at `base` in the output. If too much waits, all of it is added before this
    /// returns.
    pub(crate) fn submit(&mut self, parts: Batch<IndexPart>, base: u64) {
        if parts.is_empty() {
            return;
        }
        self.batches += 1;
        let waiting_bytes = {
            let mut waiting = lock(&self.shared.waiting);
            waiting.push(parts, base);
            waiting.bytes
        };
        if waiting_bytes > WAITING_BYTES_MAX {
            return self.shared.add_waiting(&mut lock(&self.shared.index));
        }
        self.shared.tasks.begin();
        let task = Task(Arc::clone(&self.shared));
        self.queue.submit(Box::new(move || task.run()));
    }

    /// Returns the first error of a batch, once.
    ///
    /// # Errors
    /// A failed write, a block that the format cannot represent, or a panic of a task.
    pub(crate) fn check(&self) -> Result<()> {
        let has_failed = self.shared.has_failed.load(Ordering::Relaxed);
        if !has_failed && !self.shared.index.is_poisoned() {
            return Ok(());
        }
        let error = lock(&self.shared.index).error.take();
        Err(error.unwrap_or_else(parts_lost))
    }

    /// Returns the index with all parts, and the sketch of its keys.
    ///
    /// # Errors
    /// As [`IndexOutput::check`].
    pub(crate) fn complete(self) -> Result<(FormatIndex, HyperLogLogPlus)> {
        self.shared.tasks.wait_for_less(1, &self.queue);
        let mut index = lock(&self.shared.index);
        // A batch may have been queued just as the thread that held the lock found no more.
        self.shared.add_waiting(&mut index);
        if let Some(error) = index.error.take() {
            return Err(error);
        }
        let cardinality = std::mem::take(&mut index.cardinality);
        match index.index.take() {
            Some(complete) if index.batches == self.batches => Ok((complete, cardinality)),
            _ => Err(parts_lost()),
        }
    }
}

#[cold]
fn parts_lost() -> Error {
    Error::internal("parts of the index were lost")
}

impl Task {
    fn run(self) {
        if let Ok(mut index) = self.0.index.try_lock() {
            self.0.add_waiting(&mut index);
        }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.tasks.end();
    }
}

impl Shared {
    /// Adds all waiting batches. Parts lost in a panic are missing from the count.
    fn add_waiting(&self, index: &mut KeyIndex) {
        loop {
            let Some((parts, base)) = lock(&self.waiting).pop() else {
                return;
            };
            if self.has_failed.load(Ordering::Relaxed) {
                continue;
            }
            if let Err(error) = index.add(&parts, base) {
                index.error = Some(error);
                self.has_failed.store(true, Ordering::Relaxed);
            }
        }
    }
}

impl KeyIndex {
    fn add(&mut self, parts: &Batch<IndexPart>, base: u64) -> Result<()> {
        let Some(index) = &mut self.index else {
            return Ok(());
        };
        for (bytes, part) in parts.events() {
            match *part {
                IndexPart::Block { offset, open } => index.add_block(SeparatedBlock {
                    separator: bytes,
                    offset,
                    open,
                })?,
                IndexPart::Partition {
                    hash,
                    cardinality_hash,
                    position,
                    deletion,
                    promoted_len,
                    blocks,
                    ..
                } => {
                    let (promoted, key) = bytes.split_at(promoted_len.min(bytes.len()));
                    let at = base.wrapping_add(position);
                    self.cardinality.add_hash(cardinality_hash);
                    index.add_entry(key, &hash, at, &deletion, promoted, blocks)?;
                }
            }
        }
        index.write_blocks()?;
        self.batches += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use compactor_io::{Io, IoOptions, WriteMode, WriterOptions};
    use compactor_sstable::bloom_filter::{BloomFilter, FilterBuilder};
    use compactor_sstable::data::deletion_time::DeletionTime;
    use compactor_sstable::partitioner::Partitioner;
    use compactor_sstable::{Component, Format};
    use tempfile::TempDir;

    use super::*;

    fn filter() -> BloomFilter {
        BloomFilter::for_keys(5000, 0.01).unwrap().unwrap()
    }

    /// An index in a directory of its own.
    fn output(format: Format) -> (TempDir, IndexOutput) {
        let directory = tempfile::tempdir().unwrap();
        let io = Io::new(IoOptions::default()).unwrap();
        let create = |component: Component| {
            let path = directory.path().join(component.to_string());
            let options = WriterOptions::default();
            Ok(io.create(&path, WriteMode::Buffered, options)?)
        };
        let index = FormatIndex::create(format, 128, Some(filter()), create).unwrap();
        let output = IndexOutput::new(index, WorkerQueue::default());
        (directory, output)
    }

    /// Keys in the order of their tokens.
    fn keys(count: u64) -> Vec<Vec<u8>> {
        let mut keys: Vec<_> = (0..count).map(|n| n.to_be_bytes().to_vec()).collect();
        keys.sort_by_key(|key| Partitioner::Murmur3.token(key));
        keys
    }

    fn batch(keys: &[Vec<u8>], first: u64) -> Batch<IndexPart> {
        let mut batch = Batch::default();
        for (key, number) in keys.iter().zip(first..) {
            let part = IndexPart::Partition {
                hash: Partitioner::Murmur3.hash_key(key),
                cardinality_hash: HyperLogLogPlus::hash(key),
                position: 100 * number,
                len: 100,
                deletion: DeletionTime::LIVE,
                promoted_len: 0,
                blocks: 0,
            };
            batch.add([key], part);
        }
        batch
    }

    /// Whatever batches the same entries are submitted in, the files are the same.
    #[test]
    fn batches_are_added_in_order() {
        for format in [Format::Big, Format::Bti] {
            let mut expected = None;
            for batch_len in [5000, 1, 1024] {
                let keys = keys(3000);
                let (directory, mut output) = output(format);
                for (number, some) in keys.chunks(batch_len).enumerate() {
                    output.submit(batch(some, (number * batch_len) as u64), 7);
                }
                let (index, cardinality) = output.complete().unwrap();
                let finished = index.finish().unwrap();
                let mut filled = FilterBuilder::new(filter());
                let mut counted = HyperLogLogPlus::new();
                for key in &keys {
                    filled.add_key(&Partitioner::Murmur3.hash_key(key));
                    counted.add(key);
                }
                assert_eq!(finished.filter, Some(filled.finish()));
                assert_eq!(cardinality, counted);
                assert_eq!(finished.first_key, keys[0]);
                let read = |(component, _): &(Component, u64)| {
                    std::fs::read(directory.path().join(component.to_string())).unwrap()
                };
                let files: Vec<_> = finished.files.iter().map(read).collect();
                assert!(expected.get_or_insert_with(|| files.clone()) == &files);
            }
        }
    }

    /// A batch that is submitted while another thread holds the lock is added later.
    #[test]
    fn a_batch_does_not_wait_for_another() {
        let (_directory, mut output) = output(Format::Big);
        let shared = Arc::clone(&output.shared);
        let locked = shared.index.lock().unwrap();
        for (number, some) in keys(30).chunks(10).enumerate() {
            output.submit(batch(some, 10 * number as u64), 0);
        }
        shared.tasks.wait_for_less(1, &output.queue);
        let waiting = lock(&shared.waiting).batches.len();
        assert_eq!((locked.batches, waiting), (0, 3));
        drop(locked);
        let (index, _) = output.complete().unwrap();
        assert_eq!(index.finish().unwrap().last_key, keys(30)[29]);
    }

    #[test]
    fn little_waits() {
        let (_directory, mut output) = output(Format::Big);
        let keys = keys(20_000);
        let mut most = 0;
        for (number, some) in keys.chunks(10).enumerate() {
            // Nothing takes the tasks.
            output.submit(batch(some, 10 * number as u64), 0);
            most = most.max(lock(&output.shared.waiting).bytes);
        }
        assert!((WAITING_BYTES_MAX / 2..=WAITING_BYTES_MAX).contains(&most));
        let (index, _) = output.complete().unwrap();
        assert_eq!(index.finish().unwrap().last_key, keys[keys.len() - 1]);
    }

    /// Before the output ends: the rest of it would be written in vain.
    #[test]
    fn a_panic_is_noticed_at_once() {
        let (_directory, output) = output(Format::Big);
        let shared = Arc::clone(&output.shared);
        let panicked = std::thread::spawn(move || {
            let _index = shared.index.lock();
            std::panic::resume_unwind(Box::new("while adding"));
        });
        assert!(panicked.join().is_err());
        assert!(output.check().is_err());
    }

    #[test]
    fn a_lost_batch_is_an_error() {
        let (_directory, mut output) = output(Format::Big);
        output.submit(batch(&keys(3), 0), 0);
        lock(&output.shared.waiting).batches.clear();
        assert!(output.complete().is_err());
    }

    /// The first error stops the merge, and is not replaced by those that follow from it.
    #[test]
    fn an_entry_that_cannot_be_written_is_reported() {
        let (_directory, mut output) = output(Format::Bti);
        let mut keys = keys(3);
        keys.reverse();
        output.submit(batch(&keys, 0), 0);
        output.submit(batch(&keys, 0), 0);
        output.shared.tasks.wait_for_less(1, &output.queue);
        let error = output.check().unwrap_err().to_string();
        assert!(error.contains("do not ascend"), "{error}");
        assert!(output.complete().is_err());
    }
}
