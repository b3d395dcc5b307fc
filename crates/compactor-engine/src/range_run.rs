//! A merge that several threads are at, each with a range of partitions.
//!
//! Ranges are merged ahead of one another, as far as memory allows, and added to the output in their
//! order: it is the same to the byte as that of one thread. The range whose turn it is streams into the
//! output; what the ones behind it come to waits, and who has too much waiting waits himself. Ranges are
//! taken in their order, so the one whose turn it is never waits for another.
//!
//! What is told of the inputs is told in their order, too.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use compactor_io::InputFile;
use compactor_sstable::Component;
use compactor_sstable::Error as FormatError;
use compactor_sstable::compression::crc32_run::Crc32Run;
use compactor_sstable::data::layout::Layout;
use compactor_sstable::partitioner::{Partitioner, Position};
use compactor_sstable::statistics::MetadataCollector;

use crate::byte_queue::ByteQueue;
use crate::cursor::{
    Cursor, CursorRange, DataTrace, ExpectedPartitions, PlacesHash, RowCounts, hex,
};
use crate::decode::{DecodeOptions, DecodedBlocks, Encoding, Recycled};
use crate::dropped_columns::DropTimes;
use crate::error::{Error, Result};
use crate::header_union::{ColumnMap, column_map};
use crate::input::InputSstable;
use crate::key_estimate::partition_count;
use crate::merge_counts::MergeCounts;
use crate::merge_input::MergeInput;
use crate::merge_job::MergeOptions;
use crate::observer::{InputRead, Observer};
use crate::overlapping::Surroundings;
use crate::partition_merge::{Merged, PartitionMerger};
use crate::partition_writer::PartitionWriter;
use crate::range_output::{Piece, RangeBlocks, RangeIndex, RangeTrace, SpareBlocks};
use crate::range_plan::RangePlan;
use crate::rate_limiter::RateLimiter;
use crate::sstable_index::IndexSettings;
use crate::sstable_writer::{FilePartitionWriter, SstableSettings};
use crate::workers::WorkerQueue;

/// How long to wait for something before looking whether somebody wants to stop.
const PATIENCE: Duration = Duration::from_millis(20);
/// Longest block of a range.
const MAX_BLOCK_LEN: usize = 128 << 10;
/// Blocks that what a range may have waiting is enough for, at least.
const BLOCKS_WAITING: usize = 8;
/// Shortest block of a range.
const MIN_BLOCK_LEN: usize = 8 << 10;

/// An input that is read in ranges.
#[derive(Debug)]
pub(crate) struct RangeInput {
    file: InputFile,
    encoding: Arc<Encoding>,
    recycled: Arc<Recycled>,
    layout: Arc<Layout>,
    path: PathBuf,
    partitioner: Partitioner,
    map: ColumnMap,
    min_local_deletion_time_s: i64,
    may_have_dropped: bool,
    expected: ExpectedPartitions,
}

/// What the merge of a range came to, beyond what was handed over on the way.
#[derive(Debug)]
pub(crate) struct RangeEnd {
    collected: Collected,
    counts: MergeCounts,
    /// Of each input that has partitions in the range.
    reads: Vec<RangeRead>,
}

/// What was counted of the partitions written.
#[derive(Debug)]
struct Collected {
    rows: u64,
    partitions: u64,
    statistics: MetadataCollector,
}

/// What was read of an input in one range, or in all so far.
#[derive(Clone, Debug, Default)]
struct RangeRead {
    input: usize,
    places: PlacesHash,
    rows: RowCounts,
    digest: Crc32Run,
    first_key: Vec<u8>,
    last_key: Vec<u8>,
}

type Queue = Arc<ByteQueue<Piece<Result<Box<RangeEnd>>>>>;

/// What all ranges of a merge have in common.
#[derive(Debug)]
pub(crate) struct Ranges<'a> {
    pub(crate) plan: &'a RangePlan,
    pub(crate) inputs: Vec<RangeInput>,
    pub(crate) options: &'a MergeOptions,
    pub(crate) settings: &'a SstableSettings,
    pub(crate) surroundings: &'a Surroundings,
    pub(crate) layout: Arc<Layout>,
    pub(crate) drops: DropTimes,
    pub(crate) workers: WorkerQueue,
    pub(crate) cancelled: Arc<AtomicBool>,
    pub(crate) limiter: Option<Arc<RateLimiter>>,
}

/// What came out of all ranges.
#[derive(Debug)]
pub(crate) struct RangesRead {
    pub(crate) counts: MergeCounts,
    pub(crate) reads: Vec<InputRead>,
}

/// How far the ranges have come.
#[derive(Debug)]
struct Turn {
    /// The range whose turn it is.
    range: Mutex<usize>,
    changed: Condvar,
    next: AtomicUsize,
    /// By the number of the range, in turns.
    queues: Vec<Mutex<Queue>>,
    waiting_bytes: usize,
    spare: Arc<SpareBlocks>,
    is_over: AtomicBool,
    read_bytes: AtomicU64,
}

impl Turn {
    fn new(plan: &RangePlan) -> Turn {
        let waiting_bytes = plan.sizes.waiting_bytes;
        let queue = |_| Mutex::new(Arc::new(ByteQueue::new(waiting_bytes)));
        Turn {
            range: Mutex::new(0),
            changed: Condvar::new(),
            next: AtomicUsize::new(0),
            queues: (0..plan.sizes.under_way).map(queue).collect(),
            waiting_bytes,
            spare: Arc::default(),
            is_over: AtomicBool::new(false),
            read_bytes: AtomicU64::new(0),
        }
    }

    /// The queue of a range that is under way.
    fn queue(&self, range: usize) -> Queue {
        let slot = &self.queues[range % self.queues.len()];
        Arc::clone(&slot.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The next range to be merged, once it may begin.
    fn take(&self, plan: &RangePlan) -> Option<usize> {
        let range = self.next.fetch_add(1, Ordering::Relaxed);
        if range >= plan.len() {
            return None;
        }
        let mut turn = self.range.lock().unwrap_or_else(PoisonError::into_inner);
        while range >= *turn + self.queues.len() && !self.is_over.load(Ordering::Relaxed) {
            let waited = self.changed.wait(turn);
            turn = waited.unwrap_or_else(PoisonError::into_inner);
        }
        (!self.is_over.load(Ordering::Relaxed)).then_some(range)
    }

    /// The range whose turn it was has been written.
    fn pass_on(&self) {
        let mut turn = self.range.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = &self.queues[*turn % self.queues.len()];
        *slot.lock().unwrap_or_else(PoisonError::into_inner) =
            Arc::new(ByteQueue::new(self.waiting_bytes));
        *turn += 1;
        drop(turn);
        self.changed.notify_all();
    }

    /// Nobody waits any more.
    fn end(&self) {
        let turn = self.range.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_over.store(true, Ordering::Relaxed);
        for queue in &self.queues {
            queue.lock().unwrap_or_else(PoisonError::into_inner).close();
        }
        drop(turn);
        self.changed.notify_all();
    }
}

/// Lets nobody wait any more when the thread that adds ranges to the output leaves.
struct EndTurns<'a> {
    turn: &'a Turn,
    cancelled: &'a AtomicBool,
    is_complete: bool,
}

impl Drop for EndTurns<'_> {
    fn drop(&mut self) {
        if !self.is_complete {
            // What is read and decoded is for nobody.
            self.cancelled.store(true, Ordering::Relaxed);
        }
        self.turn.end();
    }
}

/// Says that a range has ended, also if its thread panics.
struct SayEnd {
    queue: Queue,
    end: Option<Result<Box<RangeEnd>>>,
}

impl Drop for SayEnd {
    fn drop(&mut self) {
        let lost = || Err(Error::Internal("the merge of a range ended".to_owned()));
        let end = self.end.take().unwrap_or_else(lost);
        self.queue.push_at_once(Piece::End(end));
    }
}

impl RangeInput {
    /// Opens an input to be read in ranges; once.
    ///
    /// # Errors
    /// If it is being read already; as [`DataFile::open`](crate::input::DataFile::open).
    pub(crate) fn open(
        io: &compactor_io::Io,
        input: &mut InputSstable,
        layout: &Layout,
        drops: &DropTimes,
    ) -> Result<RangeInput> {
        let Some(encoding) = input.encoding.take() else {
            return Err(Error::Internal("an SSTable was read twice".to_owned()));
        };
        let stats = &input.statistics.stats;
        Ok(RangeInput {
            file: input.data.open(io)?,
            encoding: Arc::new(encoding),
            recycled: Arc::default(),
            layout: input.bounded_layout(),
            path: input.data_path(),
            partitioner: input.partitioner,
            map: column_map(&input.layout, layout)?,
            min_local_deletion_time_s: stats.min_local_deletion_time,
            may_have_dropped: drops.may_cover(stats.min_timestamp),
            expected: ExpectedPartitions {
                count: partition_count(stats),
                first_key: stats.first_key.clone(),
                last_key: stats.last_key.clone(),
            },
        })
    }

    /// Whether all ranges together are what the statistics speak of.
    fn check(&self, first_key: &[u8], last_key: &[u8], partitions: u64) -> Result<()> {
        let corrupt = |structure, expected: String, found: String| {
            let error = FormatError::corrupt(structure, 0, expected, found);
            Err(Error::Format(error.with_file(&self.path, Component::Data)))
        };
        if self.expected.count != partitions {
            let expected = format!("{} of them, as Statistics.db says", self.expected.count);
            return corrupt("partitions", expected, partitions.to_string());
        }
        let keys = [
            ("first", &self.expected.first_key, first_key),
            ("last", &self.expected.last_key, last_key),
        ];
        for (which, expected, found) in keys {
            if let Some(expected) = expected.as_ref().filter(|expected| **expected != found) {
                let expected = format!("{which} key {}, as Statistics.db says", hex(expected));
                return corrupt("partition.key", expected, hex(found));
            }
        }
        Ok(())
    }
}

impl Ranges<'_> {
    /// Merges all ranges into `writer`. `next_output` is asked after each range but the last whether the
    /// one behind it begins another output.
    ///
    /// # Errors
    /// Damage in an input, a failed read or write, or cancellation.
    pub(crate) fn run(
        &self,
        mut writer: FilePartitionWriter,
        mut traces: Vec<Option<Box<dyn DataTrace>>>,
        observer: &mut dyn Observer,
        mut next_output: impl FnMut(usize, FilePartitionWriter) -> Result<FilePartitionWriter>,
    ) -> Result<(FilePartitionWriter, RangesRead)> {
        let turn = Turn::new(self.plan);
        let is_traced: Vec<bool> = traces.iter().map(Option::is_some).collect();
        let mut whole = Whole::of(self.inputs.len());
        let writer = std::thread::scope(|scope| {
            let mut end = EndTurns {
                turn: &turn,
                cancelled: &self.cancelled,
                is_complete: false,
            };
            for number in 0..self.plan.sizes.threads {
                let (turn, is_traced) = (&turn, &is_traced);
                let work = move || self.merge_ranges(turn, is_traced);
                let started = std::thread::Builder::new()
                    .name(format!("merge-{number}"))
                    .spawn_scoped(scope, move || {
                        // `SayEnd` tells of a panic; the scope would pass it on.
                        let _ = catch_unwind(AssertUnwindSafe(work));
                    });
                match started {
                    Ok(_) => {}
                    // Ranges are taken in turn: any number of threads merges all of them.
                    Err(_) if number > 0 => break,
                    Err(error) => {
                        return Err(Error::thread("a range of the merge")(error));
                    }
                }
            }
            let mut wants_rows = vec![false; self.inputs.len()];
            for range in 0..self.plan.len() {
                let base = writer.position();
                let queue = turn.queue(range);
                let range_end = loop {
                    if observer.is_cancelled() {
                        return Err(Error::Cancelled);
                    }
                    let read = turn.read_bytes.load(Ordering::Relaxed);
                    observer.progress(read, whole.rows, whole.partitions);
                    match queue.pop(PATIENCE) {
                        None => {}
                        Some(Piece::Data(block)) => {
                            writer.splice_data(&block)?;
                            turn.spare
                                .put(block, BLOCKS_WAITING * self.plan.sizes.under_way);
                        }
                        Some(Piece::Index(batch)) => writer.splice_index(&batch, base)?,
                        Some(Piece::Times(times)) => writer.splice_times(&times),
                        Some(Piece::Trace(input, batch)) => {
                            let trace = traces.get_mut(input).and_then(Option::as_mut);
                            if let (Some(trace), Some(wants)) = (trace, wants_rows.get_mut(input)) {
                                batch.tell(&mut **trace, wants);
                            }
                        }
                        Some(Piece::End(range_end)) => break range_end?,
                    }
                };
                let collected = whole.add(*range_end);
                writer.splice_end(collected.rows, collected.partitions, collected.statistics);
                turn.pass_on();
                self.plan.forget(range);
                if range + 1 < self.plan.len() {
                    writer = next_output(range + 1, writer)?;
                }
            }
            end.is_complete = true;
            Ok(writer)
        })?;
        observer.progress(
            turn.read_bytes.load(Ordering::Relaxed),
            whole.rows,
            whole.partitions,
        );
        let reads = whole.reads(&self.inputs)?;
        for trace in traces.iter_mut().flatten() {
            trace.end();
        }
        let counts = whole.counts;
        Ok((writer, RangesRead { counts, reads }))
    }

    /// Merges one range after the other, until all have been taken.
    fn merge_ranges(&self, turn: &Turn, is_traced: &[bool]) {
        while let Some(range) = turn.take(self.plan) {
            let queue = turn.queue(range);
            let mut say = SayEnd {
                queue: Arc::clone(&queue),
                end: None,
            };
            say.end = Some(self.merge(range, &queue, turn, is_traced).map(Box::new));
        }
    }

    /// Where the partition of an input at a position of its data stands in the ring.
    fn key_at(&self, input: usize, position: u64) -> Result<Position> {
        let Some(input) = self.inputs.get(input) else {
            return Err(Error::Internal("an input too many".to_owned()));
        };
        let blocks = DecodedBlocks::start_range(
            input.file.clone(),
            Arc::clone(&input.encoding),
            Arc::default(),
            position..input.encoding.data_len(),
            DecodeOptions {
                block_len: 0,
                depth: 1,
                headroom: 0,
            },
            self.workers.clone(),
            Arc::clone(&self.cancelled),
        );
        let lead_len = blocks.lead_len();
        let bounds = CursorRange {
            start: position,
            from: None,
            below: None,
        };
        let layout = Arc::clone(&input.layout);
        let mut cursor = Cursor::over_range(blocks, lead_len, bounds, layout, input.path.clone())
            .with_partitioner(input.partitioner);
        cursor.next_partition()?;
        Ok(cursor.position_in_ring())
    }

    /// Merges one range.
    fn merge(
        &self,
        range: usize,
        queue: &Queue,
        turn: &Turn,
        is_traced: &[bool],
    ) -> Result<RangeEnd> {
        let key_at = |input: usize, position: u64| self.key_at(input, position);
        let starts = self.plan.starts(range, key_at)?;
        let ends = self.plan.starts(range + 1, key_at)?;
        let (from, below) = self.plan.borders(range);
        let mut inputs = Vec::new();
        let mut numbers = Vec::new();
        let mut before = 0;
        for (number, input) in self.inputs.iter().enumerate() {
            let (start, end) = (starts[number], ends[number]);
            if end < start {
                let error = FormatError::corrupt(
                    "index.position",
                    end,
                    format!("{start} or more, where the partitions before it end"),
                    end.to_string(),
                );
                return Err(Error::Format(error.with_file(&input.path, Component::Data)));
            }
            if start == end {
                continue;
            }
            let blocks = DecodedBlocks::start_range(
                input.file.clone(),
                Arc::clone(&input.encoding),
                Arc::clone(&input.recycled),
                start..end,
                self.plan.budget.decode,
                self.workers.clone(),
                Arc::clone(&self.cancelled),
            )
            .limited_by(self.limiter.clone());
            let lead_len = blocks.lead_len();
            let bounds = CursorRange { start, from, below };
            let layout = Arc::clone(&input.layout);
            let mut cursor =
                Cursor::over_range(blocks, lead_len, bounds, layout, input.path.clone())
                    .with_partitioner(input.partitioner);
            if is_traced.get(number) == Some(&true) {
                cursor.set_trace(Box::new(RangeTrace::new(number, Arc::clone(queue))));
            }
            let merge_input = MergeInput::new(
                cursor,
                input.map.clone(),
                &self.layout,
                input.min_local_deletion_time_s,
                self.options.now_s,
            );
            inputs.push(match input.may_have_dropped {
                true => merge_input.with_dropped_cells(),
                false => merge_input,
            });
            numbers.push(number);
            before += start;
        }
        let block_len = self.plan.sizes.waiting_bytes / BLOCKS_WAITING;
        let blocks = RangeBlocks {
            queue: Arc::clone(queue),
            spare: Arc::clone(&turn.spare),
            block_len: block_len.clamp(MIN_BLOCK_LEN, MAX_BLOCK_LEN),
        };
        let index = RangeIndex::new(
            &IndexSettings {
                version: self.settings.descriptor.version,
                header: &self.settings.header,
                column_index_size: self.settings.column_index_size,
                min_index_interval: self.settings.min_index_interval,
            },
            Arc::clone(queue),
        )?;
        let layout = Arc::clone(&self.layout);
        let writer = PartitionWriter::new(layout, blocks, index, MetadataCollector::of_a_part())?;
        let mut merger = PartitionMerger::new(
            inputs,
            writer,
            Arc::clone(&self.layout),
            self.options.now_s,
            self.options.gc_before_s.unwrap_or(i64::MIN),
        )
        .with_drops(self.drops.clone())
        .with_inputs_of_whole(self.inputs.len());
        let mut observer = RangeObserver {
            cancelled: &self.cancelled,
            read_bytes: &turn.read_bytes,
            seen: before,
        };
        merger.run_until(|_| Ok(false), self.surroundings, &mut observer)?;
        let Merged {
            mut inputs,
            writer,
            counts,
        } = merger.end();
        for input in &mut inputs {
            input.cursor.give_back();
        }
        let (rows, partitions) = (writer.rows(), writer.partitions());
        let reads = numbers.into_iter().zip(&inputs).map(|(number, input)| {
            let cursor = input.cursor();
            RangeRead {
                input: number,
                places: cursor.places(),
                rows: cursor.rows(),
                digest: *cursor.source().digest_of_range(),
                first_key: cursor.first_key().to_vec(),
                last_key: cursor.key().to_vec(),
            }
        });
        let reads = reads.collect();
        drop(inputs);
        let (_, index, statistics) = writer.finish();
        index.finish()?;
        Ok(RangeEnd {
            collected: Collected {
                rows,
                partitions,
                statistics,
            },
            counts,
            reads,
        })
    }
}

/// What has been read of all ranges so far.
struct Whole {
    counts: MergeCounts,
    rows: u64,
    partitions: u64,
    reads: Vec<RangeRead>,
}

impl Whole {
    fn of(inputs: usize) -> Whole {
        Whole {
            counts: MergeCounts {
                partitions_by_inputs: vec![0; inputs],
                ..MergeCounts::default()
            },
            rows: 0,
            partitions: 0,
            reads: vec![RangeRead::default(); inputs],
        }
    }

    fn add(&mut self, end: RangeEnd) -> Collected {
        self.counts.add_range(&end.counts);
        self.rows += end.collected.rows;
        self.partitions += end.collected.partitions;
        for read in end.reads {
            let Some(whole) = self.reads.get_mut(read.input) else {
                continue;
            };
            if whole.places.partitions() == 0 {
                whole.first_key = read.first_key;
            }
            whole.places.append(read.places);
            whole.rows.rows += read.rows.rows;
            whole.rows.empty_static_rows += read.rows.empty_static_rows;
            whole.digest.append_run(&read.digest);
            whole.last_key = read.last_key;
        }
        end.collected
    }

    /// What was read of each input, if it is what its statistics speak of.
    fn reads(&mut self, inputs: &[RangeInput]) -> Result<Vec<InputRead>> {
        let mut reads = Vec::with_capacity(inputs.len());
        for (input, read) in inputs.iter().zip(std::mem::take(&mut self.reads)) {
            input.check(&read.first_key, &read.last_key, read.places.partitions())?;
            reads.push(InputRead {
                data_path: input.path.clone(),
                places: read.places,
                rows: read.rows,
                digest: read.digest.value(),
            });
        }
        Ok(reads)
    }
}

/// Counts what is read in a range, and tells it to stop.
struct RangeObserver<'a> {
    cancelled: &'a AtomicBool,
    read_bytes: &'a AtomicU64,
    seen: u64,
}

impl Observer for RangeObserver<'_> {
    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    fn progress(&mut self, read_bytes: u64, _rows: u64, _partitions: u64) {
        let more = read_bytes.saturating_sub(self.seen);
        self.seen += more;
        self.read_bytes.fetch_add(more, Ordering::Relaxed);
    }
}
