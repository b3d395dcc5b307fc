//! Execution of a merge: ranges of partitions, merged by several threads.
//!
//! Each thread does the most urgent work: it compresses a block whose position is known, merges the next
//! range, or decodes ahead for a range that is being merged. Ranges are appended to the output in order
//! ([`RangeSequencer`]), so that it is the same to the byte for any number of threads.

use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use compactor_io::lock;

use compactor_sstable::data::layout::Layout;
use compactor_sstable::statistics::MetadataCollector;
use crossbeam_channel::Sender;

use crate::error::{Error, Result};
use crate::job::earlier_passes::Progress;
use crate::job::merge_job::MergeJob;
use crate::job::merged_input::MergedInput;
use crate::job::range_output::{Piece, PieceSink, RangeOutput, RangeTrace};
use crate::job::range_plan::RangePlan;
use crate::job::range_sequencer::{Next, RangeSequencer};
use crate::job::range_summary::{RangeRead, RangeSummary};
use crate::job::splicer::{Replay, Splicer};
use crate::merge::merge_input::MergeInput;
use crate::merge::observer::Observer;
use crate::merge::partition_merge::PartitionMerger;
use crate::read::cursor::Cursor;
use crate::read::decode::DecodedBlocks;
use crate::read::reading::Reading;
use crate::read::workers::WorkerQueue;
use crate::write::discard_output::DiscardOutput;
use crate::write::index_builder::IndexBuilder;
use crate::write::output_blocks::OutputBlocks;
use crate::write::partition_sink::PartitionSink;
use crate::write::partition_writer::PartitionWriter;

/// State that all threads of a merge share.
#[derive(Debug)]
pub(crate) struct RangeMerge {
    /// The job, without its inputs.
    pub(crate) job: MergeJob,
    pub(crate) plan: RangePlan,
    pub(crate) inputs: Vec<MergedInput>,
    pub(crate) layout: Arc<Layout>,
    /// Inputs grouped by scanner, if the order of all partitions matters.
    pub(crate) scanner_order: Option<Vec<Vec<u32>>>,
    pub(crate) reading: Reading,
    pub(crate) blocks: Arc<OutputBlocks>,
    /// Whether partitions without content are written: how many inputs have a partition decides how it is merged.
    pub(crate) keeps_empty_partitions: bool,
    /// The following ranges, whose first blocks are being read.
    pub(crate) prepared: Mutex<PreparedRanges>,
    pub(crate) sequencer: RangeSequencer,
    /// Locked by the thread that has acquired the output.
    pub(crate) destination: Mutex<Option<Destination>>,
    pub(crate) progress: MergeProgress,
}

/// Cursors over the inputs that have partitions in a range, each with the number of the input and the range's bytes
/// of it.
type RangeCursors = Vec<(usize, Range<u64>, Cursor<DecodedBlocks>)>;

/// Cursors that were opened before their range is merged.
#[derive(Debug, Default)]
pub(crate) struct PreparedRanges {
    cursors: BTreeMap<usize, RangeCursors>,
    /// Number of ranges whose merge has begun: cursors for them would never be used.
    taken: usize,
}

/// Merge of a range before its first partition.
struct BegunRange<O> {
    merger: PartitionMerger<DecodedBlocks, O>,
    /// Numbers of its inputs.
    numbers: Vec<usize>,
    /// Sum of the start positions in its inputs.
    before: u64,
}

/// Destination of merged ranges.
#[derive(Debug)]
pub(crate) enum Destination {
    /// SSTables.
    Outputs(Box<Splicer>),
    /// Receiver of the blocks, which reads them as they are merged ([`RowBlocks`](crate::job::merged_rows::RowBlocks)).
    Rows(Sender<Result<Vec<u8>>>),
}

/// Progress of a merge, for its observer.
#[derive(Debug, Default)]
pub(crate) struct MergeProgress {
    pub(crate) of_passes: Progress,
    pub(crate) read_bytes: AtomicU64,
    pub(crate) rows: AtomicU64,
    pub(crate) partitions: AtomicU64,
    /// Time for which a thread held the output.
    pub(crate) ordered_ns: AtomicU64,
}

impl MergeProgress {
    pub(crate) fn ordered(&self) -> Duration {
        Duration::from_nanos(self.ordered_ns.load(Ordering::Relaxed))
    }
}

impl RangeMerge {
    pub(crate) fn queue(&self) -> &WorkerQueue {
        &self.reading.queue
    }

    pub(crate) fn take_destination(&self) -> Option<Destination> {
        lock(&self.destination).take()
    }

    /// Notifies the traces of the end of their inputs.
    pub(crate) fn end_traces(&self) {
        for input in &self.inputs {
            // The listener is notified of the end by the drop.
            if let Some(mut trace) = lock(&input.trace).take() {
                trace.end();
            }
        }
    }

    pub(crate) fn report_progress(&self, observer: &mut dyn Observer) {
        let now = |total: &AtomicU64| total.load(Ordering::Relaxed);
        let MergeProgress {
            of_passes,
            read_bytes,
            rows,
            partitions,
            ..
        } = &self.progress;
        let read = of_passes.shown(now(read_bytes));
        observer.progress(read, now(rows), now(partitions));
    }

    /// Works until nothing is left to do.
    pub(crate) fn work(self: &Arc<Self>) {
        loop {
            let next = self.queue().wait_for(|| {
                if self.queue().has_tasks() {
                    // Blocks whose position is known come first.
                    None
                } else {
                    self.sequencer.next()
                }
            });
            match next {
                Next::Stop => return,
                Next::Merge(range) => {
                    let merged = catch_unwind(AssertUnwindSafe(|| self.merge(range)));
                    // The panic hook has reported a panic.
                    let lost = |_| Err(Error::internal("the merge of a range ended"));
                    let end = merged.unwrap_or_else(lost).map(Box::new);
                    // First, since appending this piece may continue with those of other ranges.
                    self.sequencer.merged();
                    Arc::clone(self).push(range, Piece::End(end), 0);
                }
            }
        }
    }

    /// Stops the merge with an error.
    pub(crate) fn fail(&self, error: Error) {
        self.reading.cancelled.store(true, Ordering::Relaxed);
        self.sequencer.fail(error);
    }

    fn add_to_output(self: &Arc<Self>) -> Result<()> {
        let mut destination = lock(&self.destination);
        let no_output = || Error::internal("no output is left");
        let destination = destination.as_mut().ok_or_else(no_output)?;
        while let Some((range, piece)) = self.sequencer.pop() {
            match (piece, &mut *destination) {
                (Piece::Block(block), Destination::Outputs(splicer)) => {
                    splicer.add_block(&|| self.replay(range), block)?;
                }
                // An empty block would end them.
                (Piece::Block(block), Destination::Rows(_)) if block.bytes.is_empty() => {}
                (Piece::Block(block), Destination::Rows(rows)) => {
                    let sent = rows.send(Ok(block.bytes));
                    sent.map_err(|_| Error::Cancelled)?;
                }
                (Piece::Trace(input, batch), _) => {
                    if let Some(traced) = self.inputs.get(input)
                        && let Some(trace) = &mut *lock(&traced.trace)
                    {
                        trace.batch(batch);
                    }
                }
                (Piece::End(end), destination) => {
                    let end = *end?;
                    if let Destination::Outputs(splicer) = destination {
                        splicer.end_range(end, self.plan.begins_output(range + 1))?;
                    }
                    self.plan.forget(range);
                    self.sequencer.advance();
                }
            }
        }
        Ok(())
    }

    /// Opens cursors over the inputs of a range.
    fn cursors(&self, range: usize, reading: &Reading) -> Result<RangeCursors> {
        let key_at = |input: usize, position: u64| match self.inputs.get(input) {
            Some(input) => input.file.key_at(position, reading),
            None => Err(Error::internal("an input number beyond the last")),
        };
        let starts = self.plan.starts(range, key_at)?;
        let ends = self.plan.starts(range + 1, key_at)?;
        let splits = self.plan.splits(range);
        let mut cursors = Vec::new();
        let bounds = starts.into_iter().zip(ends);
        for ((number, input), (start, end)) in self.inputs.iter().enumerate().zip(bounds) {
            if start == end && self.plan.len() > 1 {
                continue;
            }
            let cursor = (input.file).cursor((start, end), splits, reading.clone())?;
            cursors.push((number, start..end, cursor));
        }
        Ok(cursors)
    }

    /// Opens cursors for a following range, if there is one.
    fn prepare(&self, range: usize) -> Result<()> {
        // Under the lock, so that no other thread opens the same cursors concurrently.
        let mut prepared = lock(&self.prepared);
        let is_to_come = prepared.taken <= range && range < self.plan.len();
        if is_to_come && !prepared.cursors.contains_key(&range) {
            let cursors = self.cursors(range, &self.reading)?;
            prepared.cursors.insert(range, cursors);
        }
        Ok(())
    }

    /// Creates the merge of a range into `writer`.
    fn merger<O: PartitionSink>(
        self: &Arc<Self>,
        range: usize,
        cursors: RangeCursors,
        reading: &Reading,
        writer: PartitionWriter<O>,
        is_traced: bool,
    ) -> Result<BegunRange<O>> {
        let mut inputs = Vec::new();
        let mut numbers = Vec::new();
        let mut before = 0;
        for (number, bytes, mut cursor) in cursors {
            let Some(input) = self.inputs.get(number) else {
                continue;
            };
            before += bytes.start;
            if let Some(trace) = lock(&input.trace).as_mut().filter(|_| is_traced) {
                cursor.set_trace(trace.of_part(bytes).unwrap_or_else(|| {
                    Box::new(RangeTrace::new(number, Arc::clone(self) as _, range))
                }));
            }
            inputs.push(MergeInput::new(cursor, input.facts.clone(), &self.layout));
            numbers.push(number);
        }
        let bounds = self.plan.splits(range);
        let options = &self.job.options;
        let shadow = self.job.shadow.as_ref();
        let now_s = if options.keeps_expired {
            i64::MIN
        } else {
            options.now_s
        };
        let merger =
            PartitionMerger::new(
                inputs,
                writer,
                Arc::clone(&self.layout),
                now_s,
                options.gc_before_s.unwrap_or(i64::MIN),
            )
            .with_drops(self.job.drops.clone())
            .stripping_ttl(options.strip_ttl)
            .with_strict_liveness(options.strict_liveness)
            .with_scanner_order(self.scanner_order_of(&numbers))
            .with_shadow(shadow.map(|shadow| {
                shadow.start(&self.job.io, options.read_mode, reading.clone(), bounds)
            }));
        Ok(BegunRange {
            merger,
            numbers,
            before,
        })
    }

    /// Begins to merge a range again, only for its statistics, because an output ended in it.
    fn replay(self: &Arc<Self>, range: usize) -> Result<Replay> {
        let reading = Reading {
            limiter: None,
            ..self.reading.clone()
        };
        let writer = self.discarding_writer(MetadataCollector::for_part())?;
        let cursors = self.cursors(range, &reading)?;
        let mut merger = self.merger(range, cursors, &reading, writer, false)?.merger;
        let merge = Arc::clone(self);
        // Of the next partition in the range.
        let mut position = 0;
        Ok(Box::new(move |end, before| {
            let idle = merger.replace_writer(merge.discarding_writer(before)?);
            let mut observer = RangeObserver {
                merge: &merge,
                seen: None,
            };
            merger.run_until(
                |writer| Ok(position + writer.position() >= end),
                &merge.job.outside,
                &mut observer,
            )?;
            let writer = merger.replace_writer(idle);
            position += writer.position();
            Ok(writer.finish().1)
        }))
    }

    /// Returns a writer that only collects statistics, with those `before`.
    fn discarding_writer(
        &self,
        before: MetadataCollector,
    ) -> Result<PartitionWriter<DiscardOutput>> {
        let output = DiscardOutput::new(self.job.budget.block_len);
        self.writer(output, before, IndexBuilder::none())
    }

    fn writer<O: PartitionSink>(
        &self,
        output: O,
        collector: MetadataCollector,
        index: IndexBuilder,
    ) -> Result<PartitionWriter<O>> {
        let writer = PartitionWriter::new(Arc::clone(&self.layout), output, collector, index)?;
        Ok(writer.keeping_empty_partitions(self.keeps_empty_partitions))
    }

    /// Inputs of a range, of which these are all, grouped by scanner. A range of several, each of which is an output,
    /// has only the inputs with partitions in it.
    fn scanner_order_of(&self, numbers: &[usize]) -> Option<Vec<Vec<u32>>> {
        let order = self.scanner_order.as_ref()?;
        let place = |number: &u32| numbers.iter().position(|n| *n == *number as usize);
        let scanners = order.iter().map(|scanner| {
            let inputs = scanner.iter().filter_map(place);
            inputs.map(|place| place as u32).collect::<Vec<u32>>()
        });
        Some(scanners.filter(|inputs| !inputs.is_empty()).collect())
    }

    /// Merges one range.
    fn merge(self: &Arc<Self>, range: usize) -> Result<RangeSummary> {
        let output = RangeOutput {
            merge: Arc::clone(self) as _,
            range,
            block_len: self.job.budget.block_len,
        };
        let index = IndexBuilder::of(&self.job.settings)?;
        let writer = self.writer(output, MetadataCollector::for_part(), index)?;
        let prepared = {
            let mut prepared = lock(&self.prepared);
            prepared.taken = prepared.taken.max(range + 1);
            prepared.cursors.remove(&range)
        };
        let cursors = match prepared {
            Some(cursors) => cursors,
            None => self.cursors(range, &self.reading)?,
        };
        let concurrent = self.job.budget.concurrent_ranges;
        // Looked up early, so that no thread waits for the indexes when the range is prepared.
        self.plan.read_ahead(range + 2 * concurrent + 1);
        self.prepare(range + concurrent)?;
        let BegunRange {
            mut merger,
            numbers,
            before,
        } = self.merger(range, cursors, &self.reading, writer, true)?;
        let mut observer = RangeObserver {
            merge: self,
            seen: Some([before, 0, 0]),
        };
        merger.run_until(|_| Ok(false), &self.job.outside, &mut observer)?;
        let (mut inputs, writer, counts) = merger.end();
        for input in &mut inputs {
            input.cursor.release();
        }
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
        let (_, statistics) = writer.finish();
        Ok(RangeSummary {
            statistics,
            counts,
            reads,
        })
    }
}

impl PieceSink for RangeMerge {
    fn take_buffer(&self, len: usize) -> Result<Vec<u8>> {
        self.blocks.wait(self.queue());
        if self.reading.cancelled.load(Ordering::Relaxed) {
            Err(Error::Cancelled)
        } else {
            Ok(self.blocks.take(len))
        }
    }

    /// Passes on a piece of a range, and appends to the output if this thread acquires it.
    fn push(self: Arc<Self>, range: usize, piece: Piece, len: usize) {
        if self.sequencer.push(range, piece, len) {
            let started = Instant::now();
            let added = catch_unwind(AssertUnwindSafe(|| self.add_to_output()));
            let ns = started.elapsed().as_nanos() as u64;
            self.progress.ordered_ns.fetch_add(ns, Ordering::Relaxed);
            let panicked = || Err(Error::internal("panic while ranges were joined"));
            if let Err(error) = added.unwrap_or_else(|_| panicked()) {
                self.fail(error);
            }
        }
    }
}

/// Observer that counts the bytes read in a range, and cancels its merge.
struct RangeObserver<'a> {
    merge: &'a RangeMerge,
    /// Counts reported so far for the range; `None` if they are not reported.
    seen: Option<[u64; 3]>,
}

impl Observer for RangeObserver<'_> {
    fn is_cancelled(&self) -> bool {
        self.merge.reading.cancelled.load(Ordering::Relaxed)
    }

    fn progress(&mut self, read_bytes: u64, rows: u64, partitions: u64) {
        let totals = &self.merge.progress;
        let totals = [&totals.read_bytes, &totals.rows, &totals.partitions];
        let now = [read_bytes, rows, partitions];
        for ((total, seen), now) in totals.iter().zip(self.seen.iter_mut().flatten()).zip(now) {
            total.fetch_add(now.saturating_sub(*seen), Ordering::Relaxed);
            *seen = now.max(*seen);
        }
    }
}
