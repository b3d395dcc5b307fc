//! A merge that was decided on, from its inputs' first read to its published output.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use compactor_sstable::partitioner::Partitioner;

use crate::budget::Budget;
use crate::decode::Encoding;
use crate::error::{Error, Result};
use crate::header_union::column_map;
use crate::input::InputSstable;
use crate::inputs_at_open::InputsAtOpen;
use crate::key_estimate::keys_per_sstable;
use crate::merge_counts::MergeCounts;
use crate::merge_input::MergeInput;
use crate::merge_job::MergeJob;
use crate::observer::{InputRead, Observer};
use crate::origin_counts::OriginCountsWriter;
use crate::output_claim::OutputClaim;
use crate::outputs::{OutputSettings, Outputs};
use crate::partition_merge::{Merged, PartitionMerger};
use crate::passes::EarlierPasses;
use crate::range_plan::{Cut, RangePlan};
use crate::range_run::{RangeInput, Ranges, RangesRead};
use crate::rate_limiter::RateLimiter;
use crate::sstable_writer::{
    FilePartitionWriter, StagedSstable, WriteSettings, WrittenSstable, publish_together,
};
use crate::staging::Staging;
use crate::workers::Workers;

/// File of an earlier pass that tells how many inputs its partitions come from.
const ORIGINS: &str = "origins";

/// What a merge did.
#[derive(Debug)]
pub struct MergeOutcome {
    /// The outputs in the order of their partitions; none if nothing was left to write, and one
    /// unless a greatest size was asked for.
    pub outputs: Vec<WrittenSstable>,
    /// Counts of the merge.
    pub counts: MergeCounts,
    /// Bytes of `Data.db` of all inputs.
    pub stored_bytes_read: u64,
    /// Uncompressed bytes of all inputs.
    pub uncompressed_bytes_read: u64,
    /// Ranges that it was cut into, several of which were merged at a time; one if it was not cut.
    pub ranges: usize,
    /// Why it was not cut, if that was asked for.
    pub uncut: Option<String>,
    /// Outputs that were asked for: one for each range, or one.
    pub outputs_asked: usize,
    /// Passes that the inputs went through: one, unless there were more than memory or descriptors
    /// allow.
    pub passes: usize,
    /// Time from the first read to the last sync.
    pub elapsed: Duration,
}

/// A merge that is done but for the publication of its outputs.
#[derive(Debug)]
pub struct StagedMerge {
    /// `None` of an intermediate SSTable.
    claim: Option<Arc<OutputClaim>>,
    outputs: Vec<StagedSstable>,
    outcome: MergeOutcome,
    /// What its inputs were before they were opened.
    at_open: Option<Arc<InputsAtOpen>>,
}

impl StagedMerge {
    /// `Data.db` of each output in its staging directory, its other components beside it.
    pub fn data_paths(&self) -> impl Iterator<Item = PathBuf> + '_ {
        self.outputs.iter().map(StagedSstable::data_path)
    }

    /// `Data.db` of the output in its staging directory, and its rows.
    pub(crate) fn output(&self) -> Option<(PathBuf, u64)> {
        let output = self.outputs.first()?;
        Some((output.data_path(), output.rows()))
    }

    /// What was counted.
    pub(crate) fn counts(&self) -> &MergeCounts {
        &self.outcome.counts
    }
}

/// Threads of a pass, and how they are held back.
struct Work<'a> {
    workers: &'a Workers,
    cancelled: &'a Arc<AtomicBool>,
    limiter: Option<Arc<RateLimiter>>,
}

/// A pass whose inputs have been read to their ends.
struct AllRead {
    outputs: Outputs,
    /// The writer of the last output.
    partitions: FilePartitionWriter,
    counts: MergeCounts,
    read: Vec<InputRead>,
}

/// A pass over inputs: the last, or one before it.
struct Pass<'a> {
    earlier: &'a EarlierPasses,
    is_last: bool,
    whole: Whole,
}

/// What is known of all its inputs before they are read.
struct Whole {
    started: Instant,
    stored_bytes: u64,
    uncompressed_bytes: u64,
    output: OutputSettings,
}

/// Publishes the outputs of merges into one directory, all or none of them.
///
/// # Errors
/// Inputs that were replaced meanwhile ([`InputsAtOpen::look_again`]), or a failed sync or rename. Nothing
/// of any output stays then.
pub fn publish(merges: Vec<StagedMerge>) -> Result<Vec<MergeOutcome>> {
    let started = Instant::now();
    let mut outcomes = Vec::with_capacity(merges.len());
    let mut staged = Vec::with_capacity(merges.len());
    let mut looked_at: Option<Arc<InputsAtOpen>> = None;
    let mut claims: Vec<Arc<OutputClaim>> = Vec::new();
    for merge in merges {
        if let Some(at_open) = merge.at_open {
            if !looked_at.is_some_and(|seen| Arc::ptr_eq(&seen, &at_open)) {
                at_open.look_again()?;
            }
            looked_at = Some(at_open);
        }
        outcomes.push((merge.outputs.len(), merge.outcome));
        staged.extend(merge.outputs);
        claims.extend(merge.claim);
    }
    let mut written = publish_together(staged)?.into_iter();
    claims.dedup_by(|a, b| Arc::ptr_eq(a, b));
    for claim in claims {
        claim.commit()?;
    }
    let outcomes = outcomes.into_iter().map(|(outputs, outcome)| MergeOutcome {
        outputs: written.by_ref().take(outputs).collect(),
        elapsed: outcome.elapsed + started.elapsed(),
        ..outcome
    });
    Ok(outcomes.collect())
}

impl MergeJob {
    /// Merges and publishes.
    ///
    /// # Errors
    /// Damage in an input, a failed read or write, or cancellation. Nothing of the output stays.
    pub fn run(self, observer: &mut dyn Observer) -> Result<MergeOutcome> {
        let staged = self.stage(observer)?;
        let mut outcomes = publish(vec![staged])?;
        outcomes
            .pop()
            .ok_or_else(|| Error::Internal("a merge without an outcome".to_owned()))
    }

    /// Merges, and leaves the output where nobody sees it until it is published.
    ///
    /// # Errors
    /// Damage in an input, a failed read or write, or cancellation. Nothing of the output stays.
    pub fn stage(mut self, observer: &mut dyn Observer) -> Result<StagedMerge> {
        self.claim()?;
        let whole = self.whole();
        let at_open = self.at_open.take();
        let earlier = self.earlier_passes(observer)?;
        let mut observer = earlier.observer(observer);
        let pass = Pass {
            earlier: &earlier,
            is_last: true,
            whole,
        };
        let (staged, _) = self.run_pass(&mut observer, &pass)?;
        Ok(StagedMerge { at_open, ..staged })
    }

    /// Merges some inputs of a whole into an intermediate SSTable. Returns also where it is told how many
    /// inputs of the whole its partitions come from, and what was read.
    ///
    /// # Errors
    /// As [`MergeJob::stage`].
    pub(crate) fn stage_intermediate(
        self,
        earlier: &EarlierPasses,
        observer: &mut dyn Observer,
    ) -> Result<(StagedMerge, PathBuf, Vec<InputRead>)> {
        let whole = self.whole();
        let mut observer = earlier.observer(observer);
        let pass = Pass {
            earlier,
            is_last: false,
            whole,
        };
        let (staged, mut reads) = self.run_pass(&mut observer, &pass)?;
        let origins = staged
            .output()
            .and_then(|(data_path, _)| Some(data_path.parent()?.join(ORIGINS)))
            .ok_or_else(|| Error::Internal("an intermediate SSTable without a row".to_owned()))?;
        earlier.retain_inputs(&mut reads);
        Ok((staged, origins, reads))
    }

    /// Claims the output directory, unless that has been done.
    ///
    /// # Errors
    /// As [`OutputClaim::take`].
    pub fn claim(&mut self) -> Result<Arc<OutputClaim>> {
        let claim = match self.options.claim.take() {
            Some(claim) => claim,
            None => {
                let newest = self.inputs.first().or(self.fully_expired().first());
                let like = newest.map(InputSstable::data_path);
                let options = &self.options;
                let directory = &options.output_directory;
                OutputClaim::take(directory, options.existing_output, like.as_deref())?
            }
        };
        self.options.claim = Some(Arc::clone(&claim));
        Ok(claim)
    }

    /// Uses a claim that is shared with other merges into the same directory.
    pub fn use_claim(&mut self, claim: &Arc<OutputClaim>) {
        self.options.claim = Some(Arc::clone(claim));
    }

    fn whole(&self) -> Whole {
        let stored_bytes = self.inputs.iter().map(|i| i.data.len()).sum();
        Whole {
            started: Instant::now(),
            stored_bytes,
            uncompressed_bytes: self.uncompressed_bytes(),
            output: self.output_settings(stored_bytes),
        }
    }

    fn run_pass(
        mut self,
        observer: &mut dyn Observer,
        pass: &Pass<'_>,
    ) -> Result<(StagedMerge, Vec<InputRead>)> {
        let cancelled = Arc::new(AtomicBool::new(false));
        let staging = match pass.earlier.work() {
            Some(work) if !pass.is_last => Staging::inside(work)?,
            _ => Staging::create(&self.claim()?)?,
        };
        let workers = Workers::start(self.options.threads)?;
        let result = self.merge(observer, staging, &workers, &cancelled, pass);
        // Tasks still queued after a failure have nobody to work for.
        cancelled.store(result.is_err(), Ordering::Relaxed);
        drop(workers);
        result
    }

    fn merge(
        &mut self,
        observer: &mut dyn Observer,
        staging: Staging,
        workers: &Workers,
        cancelled: &Arc<AtomicBool>,
        pass: &Pass<'_>,
    ) -> Result<(StagedMerge, Vec<InputRead>)> {
        let cut = match pass.is_last {
            true => Cut::of(self, pass.earlier.passes)?,
            false => Cut::Whole,
        };
        let origins_path = staging.directory().join(ORIGINS);
        let mut output = pass.whole.output.clone();
        if let Cut::Ranges(plan) = &cut {
            output.share_among(self.outputs_asked().min(plan.len()));
            output.write = self.write_settings(&plan.budget, output.write.expected_len);
        }
        let (outputs, partitions) = Outputs::begin(
            self.io.clone(),
            staging,
            output,
            workers.queue(),
            Arc::clone(cancelled),
        )?;
        let work = Work {
            workers,
            cancelled,
            limiter: self.options.rate_limiter.clone(),
        };
        let (ranges, uncut) = match &cut {
            Cut::Ranges(plan) => (plan.len(), None),
            Cut::Whole => (1, None),
            Cut::Uncut(why) => (1, self.wants_ranges().then(|| why.clone())),
        };
        let merged = match &cut {
            Cut::Ranges(plan) => self.merge_ranges(observer, outputs, partitions, plan, work)?,
            Cut::Whole | Cut::Uncut(_) => {
                let origin_output = match pass.is_last {
                    true => None,
                    false => Some(OriginCountsWriter::create(
                        &self.io,
                        &origins_path,
                        self.options.write_mode,
                    )?),
                };
                self.merge_whole(observer, outputs, partitions, pass, origin_output, work)?
            }
        };
        let AllRead {
            outputs,
            partitions,
            mut counts,
            mut read,
        } = merged;
        if pass.is_last {
            pass.earlier.complete_reads(&mut read);
            pass.earlier.complete_counts(&mut counts);
            observer.inputs_read(&read)?;
        }
        let outputs = outputs.end(partitions)?;
        for output in outputs.iter().filter(|_| pass.is_last) {
            observer.before_publish(&output.data_path())?;
        }
        let staged = StagedMerge {
            claim: self.options.claim.clone().filter(|_| pass.is_last),
            outputs,
            at_open: None,
            outcome: MergeOutcome {
                outputs: Vec::new(),
                counts,
                stored_bytes_read: pass.whole.stored_bytes,
                uncompressed_bytes_read: pass.whole.uncompressed_bytes,
                ranges,
                uncut,
                outputs_asked: self.outputs_asked(),
                passes: pass.earlier.passes,
                elapsed: pass.whole.started.elapsed(),
            },
        };
        Ok((staged, read))
    }

    /// Merges all partitions one after the other.
    fn merge_whole(
        &mut self,
        observer: &mut dyn Observer,
        mut outputs: Outputs,
        partitions: FilePartitionWriter,
        pass: &Pass<'_>,
        origin_output: Option<OriginCountsWriter>,
        work: Work<'_>,
    ) -> Result<AllRead> {
        let layout = Arc::clone(outputs.current().layout());
        let mut merge_inputs = Vec::with_capacity(self.inputs.len());
        let Work {
            workers,
            cancelled,
            limiter,
        } = work;
        let scanner_order = (pass.is_last && pass.earlier.passes == 1)
            .then(|| self.scanner_order())
            .flatten();
        let mut inputs = std::mem::take(&mut self.inputs);
        for input in &mut inputs {
            let map = column_map(&input.layout, &layout)?;
            let mut cursor = input.start(
                &self.io,
                self.budget.decode,
                workers.queue(),
                Arc::clone(cancelled),
                limiter.clone(),
            )?;
            if let Some(trace) = observer.trace(cursor.path()) {
                cursor.set_trace(trace);
            }
            let merge_input = MergeInput::new(
                cursor,
                map,
                &layout,
                input.statistics.stats.min_local_deletion_time,
                self.options.now_s,
            );
            let may_be_dropped = self.drops.may_cover(input.statistics.stats.min_timestamp);
            let merge_input = match may_be_dropped {
                true => merge_input.with_dropped_cells(),
                false => merge_input,
            };
            merge_inputs.push(match pass.earlier.origins(input, self) {
                Some(origins) => merge_input.with_origins(origins),
                None => merge_input,
            });
        }
        drop(inputs);
        let mut merger = PartitionMerger::new(
            merge_inputs,
            partitions,
            layout,
            self.options.now_s,
            self.options.gc_before_s.unwrap_or(i64::MIN),
        )
        .with_drops(std::mem::take(&mut self.drops))
        .with_scanner_order(scanner_order)
        .with_inputs_of_whole(pass.earlier.inputs)
        .with_origin_output(origin_output)
        .with_shadow(self.shadow.take().map(|shadow| {
            shadow.start(
                self.io.clone(),
                self.budget.decode,
                workers.queue(),
                Arc::clone(cancelled),
                limiter.clone(),
            )
        }));
        let limit = self.options.max_sstable_size.unwrap_or(u64::MAX);
        let is_full = |writer: &mut FilePartitionWriter| writer.exceeds_on_disk(limit);
        while merger.run_until(is_full, &self.surroundings, observer)? {
            (outputs, merger) = merger.change_writer(|full| outputs.next(full))?;
        }
        let Merged {
            inputs,
            writer: partitions,
            counts,
        } = merger.end();
        let read = inputs
            .iter()
            .map(|input| InputRead {
                data_path: input.cursor().path().clone(),
                places: input.cursor().places(),
                rows: input.cursor().rows(),
                digest: input.cursor().source().digest(),
            })
            .collect();
        // Windows and readahead are not needed any more.
        drop(inputs);
        Ok(AllRead {
            outputs,
            partitions,
            counts,
            read,
        })
    }

    /// Merges ranges of partitions at the same time.
    fn merge_ranges(
        &mut self,
        observer: &mut dyn Observer,
        outputs: Outputs,
        partitions: FilePartitionWriter,
        plan: &RangePlan,
        work: Work<'_>,
    ) -> Result<AllRead> {
        let layout = Arc::clone(outputs.current().layout());
        let mut inputs = Vec::with_capacity(self.inputs.len());
        let mut traces = Vec::with_capacity(self.inputs.len());
        for input in &mut self.inputs {
            inputs.push(RangeInput::open(&self.io, input, &layout, &self.drops)?);
            traces.push(observer.trace(&input.data_path()));
        }
        let ranges = Ranges {
            plan,
            inputs,
            options: &self.options,
            settings: &self.settings,
            surroundings: &self.surroundings,
            layout,
            drops: self.drops.clone(),
            workers: work.workers.queue(),
            cancelled: Arc::clone(work.cancelled),
            limiter: work.limiter,
        };
        let wanted = self.outputs_asked().min(plan.len());
        // Given back by the closure, which needs it by value.
        let mut slot = Some(outputs);
        let next_output = |range: usize, full: FilePartitionWriter| {
            let begins = range * wanted / plan.len() > (range - 1) * wanted / plan.len();
            match slot.take() {
                Some(outputs) if begins && full.partitions() > 0 => {
                    let (outputs, writer) = outputs.next(full)?;
                    slot = Some(outputs);
                    Ok(writer)
                }
                kept => {
                    slot = kept;
                    Ok(full)
                }
            }
        };
        let (partitions, RangesRead { counts, reads }) =
            ranges.run(partitions, traces, observer, next_output)?;
        let outputs = slot.ok_or_else(|| Error::Internal("no output is left".to_owned()))?;
        Ok(AllRead {
            outputs,
            partitions,
            counts,
            read: reads,
        })
    }

    /// Somebody asked for more than one range.
    fn wants_ranges(&self) -> bool {
        self.options.output_per_range || self.options.sub_compactions.is_some()
    }

    fn outputs_asked(&self) -> usize {
        match (self.options.output_per_range, self.options.sub_compactions) {
            (true, Some(wanted)) => wanted.get(),
            _ => 1,
        }
    }

    fn output_settings(&self, stored_bytes_read: u64) -> OutputSettings {
        let expected_len = self.expected_output_len(stored_bytes_read);
        let expected_keys = self.settings.expected_keys;
        let max_len = self.options.max_sstable_size;
        OutputSettings {
            sstable: self.settings.clone(),
            keys_per_sstable: max_len.map_or(expected_keys, |max| {
                keys_per_sstable(&self.inputs, expected_keys, max)
            }),
            ids: self.ids.clone(),
            partitioner: self
                .inputs
                .first()
                .map_or(Partitioner::Murmur3, |input| input.partitioner),
            write: self.write_settings(
                &self.budget,
                Some(max_len.map_or(expected_len, |max| expected_len.min(max))),
            ),
        }
    }

    fn write_settings(&self, budget: &Budget, expected_len: Option<u64>) -> WriteSettings {
        WriteSettings {
            mode: self.options.write_mode,
            buffer_bytes: budget.write_buffer_bytes,
            in_flight: budget.write_buffers,
            max_blocks: budget.output_blocks,
            expected_len,
        }
    }

    /// At most what came in, unless compression is given up.
    fn expected_output_len(&self, stored: u64) -> u64 {
        let inputs_are_compressed = self
            .inputs
            .iter()
            .any(|i| matches!(i.encoding, Some(Encoding::Compressed { .. })));
        if inputs_are_compressed && self.settings.compression.is_none() {
            self.uncompressed_bytes()
        } else {
            stored
        }
    }
}
