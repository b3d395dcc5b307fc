//! One pass over inputs, from their first read to outputs in a staging directory.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use compactor_sstable::data::layout::Layout;

use crate::error::{Error, Result};
use crate::input::header_union::column_map;
use crate::input::key_estimate::keys_per_sstable;
use crate::input::range_input::RangeInput;
use crate::job::earlier_passes::EarlierPasses;
use crate::job::merge_job::MergeJob;
use crate::job::merged_input::MergedInput;
use crate::job::range_plan::RangePlan;
use crate::job::range_run::{Destination, MergeProgress, RangeMerge};
use crate::job::range_sequencer::RangeSequencer;
use crate::job::splicer::Splicer;
use crate::job::staged_merge::{MergeOutcome, SerialTimes, StagedMerge};
use crate::merge::merge_counts::MergeCounts;
use crate::merge::merge_input::InputFacts;
use crate::merge::observer::{InputRead, Observer};
use crate::publish::staging::Staging;
use crate::read::encoding::Encoding;
use crate::read::reading::Reading;
use crate::read::workers::WorkerQueue;
use crate::write::output_blocks::OutputBlocks;
use crate::write::outputs::{OutputSettings, Outputs};
use crate::write::sstable_writer::{StagedSstable, WriteSettings};

/// Maximum sleep of the caller before it reports progress and checks for cancellation.
const PATIENCE: Duration = Duration::from_millis(20);

/// A pass over inputs.
pub(crate) struct Pass<'a> {
    pub(crate) earlier: &'a EarlierPasses,
    pub(crate) is_last: bool,
    /// Time of the first read; for the last pass, that of the earlier passes.
    pub(crate) started: Instant,
}

impl MergeJob {
    /// Merges in one pass to outputs with these settings. Also returns the results of reading.
    ///
    /// # Errors
    /// Damage in an input, a failed read or write, or cancellation. Nothing of the output stays.
    pub(crate) fn run_pass(
        mut self,
        observer: &mut dyn Observer,
        pass: &Pass<'_>,
        mut output: OutputSettings,
    ) -> Result<(StagedMerge, Vec<InputRead>)> {
        let started = Instant::now();
        let at_open = self.at_open.take();
        let claim = self.claim()?;
        let staging = Staging::create(&claim)?;
        let plan = RangePlan::of(&self, self.output_plan()?)?;
        let (ranges, unsplit_reason) = (plan.len(), plan.unsplit_reason);
        output.share_among(plan.outputs.count());
        if let Some(keys) = plan.outputs.keys.first() {
            output.keys_per_sstable = *keys;
        }
        let write = output.write.clone();
        let outputs = Outputs::begin(self.io.clone(), staging, output)?;
        let layout = Arc::clone(outputs.current().layout());
        let (limit, inputs) = (self.options.split.max_bytes(), self.inputs.len());
        let splicer = Splicer::new(outputs, inputs, limit);
        let destination = Destination::Outputs(Box::new(splicer));
        let merge = self.share(observer, plan, destination, layout, write, pass)?;
        let planning = started.elapsed();
        let (outputs, counts, reads, publication) =
            run_ranges(&merge, observer, |destination, observer| {
                complete(&merge, destination, observer, pass)
            })?;
        let outputs_asked = merge.job.options.split.count();
        let order = merge.progress.ordered();
        // The check of outputs may take as much memory as the index files of inputs.
        drop(merge);
        for output in outputs.iter().filter(|_| pass.is_last) {
            observer.before_publish(&output.data_path())?;
        }
        let staged = StagedMerge {
            claim,
            outputs,
            at_open,
            outcome: MergeOutcome {
                outputs: Vec::new(),
                counts,
                ranges,
                unsplit_reason,
                outputs_asked,
                serial: SerialTimes {
                    planning,
                    order,
                    publication,
                }
                .added_to(pass.earlier.serial),
                passes: pass.earlier.passes,
                elapsed: pass.started.elapsed(),
            },
        };
        Ok((staged, reads))
    }

    /// Creates the state that all threads of a merge share. `layout` is that of the merged rows.
    pub(crate) fn share(
        mut self,
        observer: &mut dyn Observer,
        plan: RangePlan,
        destination: Destination,
        layout: Arc<Layout>,
        write: WriteSettings,
        pass: &Pass<'_>,
    ) -> Result<Arc<RangeMerge>> {
        let scanner_order = (pass.is_last && pass.earlier.intermediates.is_empty())
            .then(|| self.scanner_order())
            .flatten();
        let mut inputs = Vec::with_capacity(self.inputs.len());
        for input in std::mem::take(&mut self.inputs) {
            let stats = &input.statistics.stats;
            let path = input.data_path();
            let is_intermediate = pass.earlier.is_intermediate(&path);
            // Intermediate SSTables are hidden from the caller.
            let trace = if is_intermediate {
                None
            } else {
                observer.trace(&path)
            };
            let file = RangeInput::open(&self.io, &input)?;
            inputs.push(MergedInput {
                facts: InputFacts {
                    map: column_map(&file.layout, &layout)?,
                    min_local_deletion_time_s: stats.min_local_deletion_time,
                    may_have_dropped: self.drops.may_cover(stats.min_timestamp),
                    has_ttl_to_strip: self.options.strip_ttl && input.may_have_ttl(),
                    is_intermediate,
                },
                file,
                trace: Mutex::new(trace),
            });
        }
        let budget = self.budget;
        Ok(Arc::new(RangeMerge {
            inputs,
            layout,
            scanner_order,
            reading: Reading {
                decode: budget.decode,
                queue: write.queue.clone(),
                cancelled: write.cancelled,
                limiter: self.options.rate_limiter.clone(),
            },
            blocks: write.blocks,
            keeps_empty_partitions: !pass.is_last,
            prepared: Mutex::default(),
            sequencer: RangeSequencer::new(plan.len(), budget, write.queue),
            plan,
            destination: Mutex::new(Some(destination)),
            progress: MergeProgress {
                of_passes: pass.earlier.progress,
                ..MergeProgress::default()
            },
            job: self,
        }))
    }

    /// Returns the settings of the outputs, estimated from the inputs.
    pub(crate) fn output_settings(&self) -> OutputSettings {
        let expected_len = self.expected_output_len();
        let expected_keys = self.settings.expected_keys;
        let max_len = self.options.split.max_bytes();
        // The limit is checked after a partition, so an output is a little longer. A file that exceeds its expected
        // length reserves many times the difference.
        let longest = max_len.map(|max| max.saturating_add(max / 16));
        OutputSettings {
            sstable: self.settings.clone(),
            keys_per_sstable: max_len.map_or(expected_keys, |max| {
                keys_per_sstable(&self.inputs, expected_keys, max)
            }),
            ids: self.ids.clone(),
            partitioner: self.partitioner,
            write: WriteSettings {
                mode: self.options.write_mode,
                buffer_bytes: self.budget.write_buffer_bytes,
                blocks: Arc::new(OutputBlocks::new(self.budget.output_blocks)),
                expected_len: Some(longest.map_or(expected_len, |len| expected_len.min(len))),
                queue: WorkerQueue::default(),
                cancelled: Arc::new(AtomicBool::new(false)),
            },
        }
    }

    /// Returns an upper bound of the output's length: that of the inputs, unless the output is not compressed
    /// and they are.
    fn expected_output_len(&self) -> u64 {
        let inputs_are_compressed = self
            .inputs
            .iter()
            .any(|i| matches!(&*i.encoding, Encoding::Compressed { .. }));
        if inputs_are_compressed && self.settings.compression.is_none() {
            self.uncompressed_bytes()
        } else {
            self.inputs.iter().map(|i| i.data.len()).sum()
        }
    }
}

/// Merges the ranges with the job's threads, and then completes their destination.
///
/// # Errors
/// Those of the merge and of `complete`, or the system refuses a thread.
pub(crate) fn run_ranges<T>(
    merge: &Arc<RangeMerge>,
    observer: &mut dyn Observer,
    complete: impl FnOnce(Destination, &mut dyn Observer) -> Result<T>,
) -> Result<T> {
    let ended = std::thread::scope(|scope| {
        let closes = CloseGuard(merge);
        let mut count = 0;
        for number in 0..merge.job.options.threads.max(1) {
            let merge = Arc::clone(merge);
            let started = std::thread::Builder::new()
                .name(format!("merge-{number}"))
                .spawn_scoped(scope, move || merge.work());
            match started {
                Ok(_) => count += 1,
                // Any number of threads can do all the work.
                Err(_) if number > 0 => break,
                Err(error) => return Err(Error::thread("the merge")(error)),
            }
        }
        merge.queue().set_thread_count(count);
        let ended =
            await_end(merge, observer).and_then(|destination| complete(destination, observer));
        if ended.is_err() {
            // Data that is still being read and decoded is not needed any more.
            merge.reading.cancelled.store(true, Ordering::Relaxed);
        }
        drop(closes);
        ended
    });
    // Drops its references to the merge.
    drop(merge.take_destination());
    ended
}

/// Validates the results of reading, and completes the outputs.
fn complete(
    merge: &RangeMerge,
    destination: Destination,
    observer: &mut dyn Observer,
    pass: &Pass<'_>,
) -> Result<(Vec<StagedSstable>, MergeCounts, Vec<InputRead>, Duration)> {
    let Destination::Outputs(mut splicer) = destination else {
        return Err(Error::internal("a merge without outputs"));
    };
    merge.report_progress(observer);
    let mut reads = splicer.totals.reads(&merge.inputs)?;
    merge.end_traces();
    let mut counts = std::mem::take(&mut splicer.totals.counts);
    if pass.is_last {
        pass.earlier.complete_reads(&mut reads);
        pass.earlier.complete_counts(&mut counts);
        counts.partitions_read = reads.iter().map(|read| read.places.partitions()).sum();
        observer.inputs_read(&reads)?;
    }
    if observer.is_cancelled() {
        return Err(Error::Cancelled);
    }
    let started = Instant::now();
    let outputs = splicer.end()?;
    Ok((outputs, counts, reads, started.elapsed()))
}

/// Closes the sequencer on drop, so that the threads of a merge end.
struct CloseGuard<'a>(&'a RangeMerge);

impl Drop for CloseGuard<'_> {
    fn drop(&mut self) {
        self.0.sequencer.close();
    }
}

/// Reports progress until all ranges have been appended to their destination.
fn await_end(merge: &RangeMerge, observer: &mut dyn Observer) -> Result<Destination> {
    loop {
        if let Some(end) = merge.sequencer.take_result() {
            end?;
            return merge
                .take_destination()
                .ok_or_else(|| Error::internal("no output is left"));
        }
        if observer.is_cancelled() {
            merge.fail(Error::Cancelled);
            return Err(Error::Cancelled);
        }
        merge.report_progress(observer);
        std::thread::park_timeout(PATIENCE);
    }
}
