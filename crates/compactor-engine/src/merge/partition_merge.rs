//! Merge of the partitions of many inputs into one stream.
//!
//! A tournament on (token, key) selects the inputs with the next partition; a second one, on the clustering,
//! merges the rows inside it. Plain rows, as INSERT leaves them, that only one input has are copied after
//! their new times, in runs while that input is ahead of all others. All other rows go through [`RowMerger`].
//!
//! A partition that only one input has is copied row by row. Nothing in it shadows anything else, as in
//! Cassandra: each SSTable contains no data that its own deletions cover.
//!
//! Source: `UnfilteredPartitionIterators.merge`, `UnfilteredRowIterators.merge`,
//! `RangeTombstoneMarker.Merger`, `CompactionIterator.Purger`.

use std::cmp::Ordering;
use std::sync::Arc;

use compactor_sstable::Version;
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::data::layout::Layout;

use crate::error::{Error, Result};
use crate::merge::contest::Contest;
use crate::merge::marker::effective;
use crate::merge::merge_counts::MergeCounts;
use crate::merge::merge_input::{MergeInput, compare_unfiltereds, has_unfiltered};
use crate::merge::observer::Observer;
use crate::merge::shadow_sources::ShadowSources;
use crate::read::window::BlockSource;
use crate::row::dropped_columns::DropTimes;
use crate::row::purge::{PurgeLimit, PurgeLimits, Purger};
use crate::row::row_merge::{RowMerger, Visits};
use crate::write::partition_sink::PartitionSink;
use crate::write::partition_writer::PartitionWriter;

mod equal_clusterings;
mod markers;
mod partitions;
mod rows;
mod runs;

use partitions::Partitions;

/// Rows, markers and partitions between calls of the observer.
const STEPS_PER_REPORT: u32 = 1024;

/// A merge in progress.
#[derive(Debug)]
pub struct PartitionMerger<S, O> {
    inputs: Vec<MergeInput<S>>,
    writer: PartitionWriter<O>,
    output: Arc<Layout>,
    shadow: Option<ShadowSources<S>>,
    purger: Purger,
    rows: RowMerger,
    counts: MergeCounts,
    /// Steps since the observer was last called.
    steps: u32,
    /// Inputs by their current partition; `None` before the first.
    partitions: Option<Partitions>,
    /// Inputs grouped by their scanners in Cassandra's compaction, before the first partition.
    scanner_order: Option<Vec<Vec<u32>>>,
    /// Whether, of equal clusterings, the bytes that Cassandra chooses are written, instead of the least.
    in_cassandra_order: bool,
    /// Reused lists: inputs of the partition, those of a step, and the positions of the latter among the
    /// former. If Cassandra's choice is reproduced, all are in the order in which it visits them.
    group: Vec<u32>,
    step: Vec<u32>,
    places: Vec<u32>,
    clusterings: Contest,
    bound: Vec<u8>,
    prefix: Vec<u8>,
}

impl<S: BlockSource, O: PartitionSink> PartitionMerger<S, O> {
    /// Creates a merge of `inputs` into `writer`.
    pub fn new(
        inputs: Vec<MergeInput<S>>,
        writer: PartitionWriter<O>,
        output: Arc<Layout>,
        now_s: i64,
        gc_before_s: i64,
    ) -> PartitionMerger<S, O> {
        let counts = MergeCounts {
            partitions_by_inputs: vec![0; inputs.len()],
            ..MergeCounts::default()
        };
        PartitionMerger {
            inputs,
            writer,
            shadow: None,
            purger: Purger {
                now_s,
                gc_before_s,
                limit: PurgeLimit::KeepAll,
                strict_liveness: false,
            },
            rows: RowMerger::new(Arc::clone(&output)),
            output,
            counts,
            steps: 0,
            partitions: None,
            scanner_order: None,
            in_cassandra_order: false,
            group: Vec::new(),
            step: Vec::new(),
            places: Vec::new(),
            clusterings: Contest::new(false),
            bound: Vec::new(),
            prefix: Vec::new(),
        }
    }

    /// Removes data of dropped columns from inputs that may have some. `drops` are those of the output's
    /// columns.
    #[must_use]
    pub fn with_drops(mut self, drops: DropTimes) -> Self {
        self.rows = self.rows.with_drops(&drops);
        self
    }

    /// Sets whether cells and rows lose their TTL before they are reconciled. Inputs that may have some must
    /// be marked ([`InputFacts::has_ttl_to_strip`](crate::merge::InputFacts::has_ttl_to_strip)).
    #[must_use]
    pub fn stripping_ttl(mut self, strips_ttl: bool) -> Self {
        self.rows = self.rows.stripping_ttl(strips_ttl);
        self
    }

    /// Sets whether rows are dropped with their last liveness or deletion, as those of some views.
    #[must_use]
    pub fn with_strict_liveness(mut self, strict_liveness: bool) -> Self {
        self.purger.strict_liveness = strict_liveness;
        self
    }

    /// Sets the order of Cassandra's scanners: of clusterings, bounds and paths that compare equal but differ
    /// in their bytes, those that its compaction would choose are written. Without it the least bytes are
    /// written, which does not depend on any order.
    #[must_use]
    pub fn with_scanner_order(mut self, order: Option<Vec<Vec<u32>>>) -> Self {
        self.in_cassandra_order = order.is_some();
        self.clusterings = Contest::new(order.is_some());
        self.scanner_order = order;
        self
    }

    /// Removes data that these SSTables shadow.
    #[must_use]
    pub fn with_shadow(mut self, shadow: Option<ShadowSources<S>>) -> Self {
        self.shadow = shadow;
        self
    }

    /// Runs to the end and returns the writer.
    ///
    /// # Errors
    /// Damage in an input, a failed read or write, or cancellation.
    pub fn run(
        mut self,
        limits: &dyn PurgeLimits,
        observer: &mut dyn Observer,
    ) -> Result<(PartitionWriter<O>, MergeCounts)> {
        self.run_until(|_| Ok(false), limits, observer)?;
        let (_, writer, counts) = self.end();
        Ok((writer, counts))
    }

    /// Runs until the inputs end or `is_full`, called before each partition, returns true for the writer.
    /// Returns whether there are more partitions.
    ///
    /// # Errors
    /// As [`PartitionMerger::run`], or the error of `is_full`.
    pub fn run_until(
        &mut self,
        mut is_full: impl FnMut(&mut PartitionWriter<O>) -> Result<bool>,
        limits: &dyn PurgeLimits,
        observer: &mut dyn Observer,
    ) -> Result<bool> {
        let mut partitions = match self.partitions.take() {
            Some(partitions) => partitions,
            None => {
                for input in &mut self.inputs {
                    input.cursor.next_partition()?;
                }
                Partitions::start(self.scanner_order.take(), &self.inputs)
            }
        };
        loop {
            let mut group = std::mem::take(&mut self.group);
            group.clear();
            partitions.winners(&mut group);
            let Some(first) = group.first().map(|i| &self.inputs[*i as usize].cursor) else {
                break;
            };
            if !first.has_partition() {
                break;
            }
            if self.writer.partitions() > 0 && is_full(&mut self.writer)? {
                self.group = group;
                self.partitions = Some(partitions);
                return Ok(true);
            }
            let first = &self.inputs[group[0] as usize].cursor;
            if let Some(shadow) = &mut self.shadow {
                let place = (first.position_in_ring(), first.key());
                shadow.seek(place, &|| observer.is_cancelled())?;
            }
            // The lookup may involve thousands of SSTables.
            let purger = &self.purger;
            let may_purge = |i: &u32| !self.inputs[*i as usize].has_nothing_to_purge(purger);
            self.purger.limit = if group.iter().any(may_purge) {
                limits.limit(first.key(), first.key_hash())
            } else {
                PurgeLimit::KeepAll
            };
            self.merge_partition(&group, observer)?;
            for &member in &group {
                self.inputs[member as usize].cursor.next_partition()?;
            }
            partitions.replay(&self.inputs);
            self.group = group;
            self.step(observer)?;
        }
        self.report(observer)?;
        Ok(false)
    }

    /// Returns inputs, writer and counts.
    pub fn end(self) -> (Vec<MergeInput<S>>, PartitionWriter<O>, MergeCounts) {
        (self.inputs, self.writer, self.counts)
    }

    /// Replaces the writer, between two partitions, and returns the one before.
    pub fn replace_writer(&mut self, writer: PartitionWriter<O>) -> PartitionWriter<O> {
        std::mem::replace(&mut self.writer, writer)
    }

    #[inline]
    fn step(&mut self, observer: &mut dyn Observer) -> Result<()> {
        self.steps += 1;
        if self.steps < STEPS_PER_REPORT {
            return Ok(());
        }
        self.steps = 0;
        self.report(observer)
    }

    #[cold]
    fn report(&self, observer: &mut dyn Observer) -> Result<()> {
        if observer.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let read = self.inputs.iter().map(|i| i.cursor.position()).sum();
        observer.progress(read, self.writer.rows(), self.writer.partitions());
        Ok(())
    }

    fn merge_partition(&mut self, group: &[u32], observer: &mut dyn Observer) -> Result<()> {
        let mut deletion = DeletionTime::LIVE;
        for &member in group {
            let input = &mut self.inputs[member as usize];
            deletion = deletion.max(input.cursor.partition_deletion());
            input.open = DeletionTime::LIVE;
        }
        let left = match &self.shadow {
            Some(shadow) => shadow.shadow_partition_deletion(deletion),
            None => deletion,
        };
        self.counts.purged.shadowed += u64::from(left != deletion);
        let kept = self.purger.purge_deletion(left);
        if kept != left {
            self.counts.purged.partition_deletions += 1;
        }
        let first = &self.inputs[group[0] as usize].cursor;
        check_deletion(first.key(), &kept, self.output.version)?;
        self.writer
            .start_partition(first.key(), first.key_hash(), kept);
        self.merge_static_row(group, deletion)?;
        if let Some(shadow) = &mut self.shadow {
            shadow.begin_rows()?;
        }
        for &member in group {
            self.next_unfiltered(member, observer)?;
        }
        if let [only] = group {
            self.copy_unfiltereds(*only as usize, observer)?;
        } else {
            self.merge_unfiltereds(group, deletion, observer)?;
        }
        self.writer.end_partition()?;
        let counts = &mut self.counts.partitions_by_inputs;
        if let Some(count) = counts.get_mut(group.len() - 1) {
            *count += 1;
        }
        Ok(())
    }

    /// Copies the unfiltereds of a partition that only one input has.
    fn copy_unfiltereds(&mut self, only: usize, observer: &mut dyn Observer) -> Result<()> {
        loop {
            self.step(observer)?;
            self.copy_run(only, None, DeletionTime::LIVE)?;
            self.advance_shadow(only as u32)?;
            let input = &self.inputs[only];
            if input.cursor.row().is_some() {
                // Cassandra does not merge rows of such a partition, whatever is active: a complex deletion
                // equal to that of its row is kept.
                self.merge_rows(&[only as u32], Visits::SINGLE, DeletionTime::LIVE)?;
            } else if let Some(marker) = input.cursor.marker() {
                self.counts.markers_read += u64::from(!input.facts.is_intermediate);
                // Copied unchanged, even if it changes nothing or the partition deletion is newer.
                let (close, open) = (marker.close, marker.open);
                let side = self.note_bound(&[only as u32]);
                self.add_marker(side, close, open)?;
            } else {
                return Ok(());
            }
            self.next_unfiltered(only as u32, observer)?;
        }
    }

    fn merge_unfiltereds(
        &mut self,
        group: &[u32],
        deletion: DeletionTime,
        observer: &mut dyn Observer,
    ) -> Result<()> {
        let mut clusterings = std::mem::replace(&mut self.clusterings, Contest::new(false));
        let mut step = std::mem::take(&mut self.step);
        let mut places = std::mem::take(&mut self.places);
        let (inputs, output) = (&self.inputs, &self.output);
        clusterings.start(
            group.len(),
            |member| has_unfiltered(inputs, group, member),
            |a, b| compare_unfiltereds(inputs, output, group, a, b),
        );
        let mut open = DeletionTime::LIVE;
        // A marker that is not written yet: the deletion open before it, and its side.
        let mut pending: Option<(DeletionTime, Ordering)> = None;
        loop {
            self.step(observer)?;
            let active = if open.is_live() { deletion } else { open };
            if pending.is_none()
                && let Some(place) = clusterings.only_winner()
                && let first = group[place as usize] as usize
                && self.inputs[first].cursor.is_on_plain_row()
            {
                let limit = match &clusterings {
                    Contest::Tournament(tournament) => {
                        self.least_memcomparable_prefix(group, tournament.rivals(place))
                    }
                    Contest::Heap(heap) => {
                        self.least_memcomparable_prefix(group, heap.second().into_iter())
                    }
                };
                if self.copy_run(first, limit, active)? {
                    let (inputs, output) = (&self.inputs, &self.output);
                    clusterings.replay(
                        &[place],
                        |member| has_unfiltered(inputs, group, member),
                        |a, b| compare_unfiltereds(inputs, output, group, a, b),
                    );
                    continue;
                }
            }
            places.clear();
            clusterings.winners(&mut places);
            step.clear();
            step.extend(places.iter().map(|place| group[*place as usize]));
            let Some(&first) = step.first() else { break };
            if pending.is_none() {
                self.advance_shadow(first)?;
            }
            let cursor = &self.inputs[first as usize].cursor;
            if cursor.row().is_some() {
                let visits = Visits {
                    places: &places,
                    sources: group.len(),
                };
                self.merge_rows(&step, visits, active)?;
            } else if cursor.marker().is_some() {
                let is_read = |i: &&u32| !self.inputs[**i as usize].facts.is_intermediate;
                self.counts.markers_read += step.iter().filter(is_read).count() as u64;
                for &member in &step {
                    let input = &mut self.inputs[member as usize];
                    if let Some(marker) = input.cursor.marker() {
                        input.open = marker.open;
                    }
                }
                let biggest = group
                    .iter()
                    .map(|i| self.inputs[*i as usize].open)
                    .fold(DeletionTime::LIVE, DeletionTime::max);
                if pending.is_none() {
                    pending = Some((open, self.note_bound(&step)));
                }
                open = effective(biggest, deletion);
            } else {
                break;
            }
            for &member in &step {
                self.next_unfiltered(member, observer)?;
            }
            // A bound that opens where another has just closed follows, and makes one marker with it.
            let continues = |member: &u32| self.inputs[*member as usize].cursor.is_second_half();
            if pending.is_some()
                && !step.iter().any(continues)
                && let Some((before, side)) = pending.take()
            {
                self.add_change(side, before, open)?;
            }
            let (inputs, output) = (&self.inputs, &self.output);
            clusterings.replay(
                &places,
                |member| has_unfiltered(inputs, group, member),
                |a, b| compare_unfiltereds(inputs, output, group, a, b),
            );
        }
        self.clusterings = clusterings;
        self.step = step;
        self.places = places;
        Ok(())
    }
}

/// Checks a partition deletion. Since `oa` the sign of its timestamp means that there is none: Cassandra does
/// not check this, and writes partitions that it cannot read.
fn check_deletion(key: &[u8], deletion: &DeletionTime, version: Version) -> Result<()> {
    let timestamp = deletion.marked_for_delete_at;
    if deletion.is_live() || timestamp >= 0 || !version.has_uint_deletion_time() {
        return Ok(());
    }
    Err(Error::Refused(format!(
        "partition {} was deleted at timestamp {timestamp}, and SSTables of version {version} cannot \
         hold deletions of partitions before 1970: write version nb",
        crate::read::hex::hex(key)
    )))
}
