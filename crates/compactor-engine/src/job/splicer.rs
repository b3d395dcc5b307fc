//! Appends merged ranges to the outputs in order.
//!
//! Bytes are passed on unchanged. The work done here is small, since it is done by one thread at a time.

use std::sync::Arc;

use compactor_sstable::statistics::MetadataCollector;

use crate::error::{Error, Result};
use crate::job::range_output::RangeBlock;
use crate::job::range_plan::PlannedOutput;
use crate::job::range_summary::{MergeTotals, RangeSummary};
use crate::read::batch::Batch;
use crate::write::index_part::IndexPart;
use crate::write::outputs::Outputs;
use crate::write::sstable_writer::{OutputParts, StagedSstable};

/// Merges a range in which an output ended again, output by output, only for its statistics: continues with the
/// partitions up to a position of the range, and adds their statistics to the given ones.
pub(crate) type Replay = Box<dyn FnMut(u64, MetadataCollector) -> Result<MetadataCollector> + Send>;

/// Starts merging the current range again.
type StartReplay<'a> = &'a dyn Fn() -> Result<Replay>;

/// Outputs of a merge.
#[derive(Debug)]
pub(crate) struct Splicer {
    /// `None` while the next output is begun.
    output: Option<Outputs>,
    pub(crate) totals: MergeTotals,
    /// Position of the range's start in the output, wrapping if it is in the previous output.
    base: u64,
    /// Maximum length of an output on disk, bytes.
    limit: Option<u64>,
    range: CurrentRange,
}

/// State of the range being appended.
#[derive(Default)]
struct CurrentRange {
    /// Bytes appended.
    len: u64,
    /// Position of the next partition, and whether it has been decided that it goes into this output.
    next_start: u64,
    is_next_decided: bool,
    /// Statistics of the output before this range.
    before: Option<Box<MetadataCollector>>,
    /// Statistics of the range computed again, if an output ended in it.
    replay: Option<Replay>,
}

impl std::fmt::Debug for CurrentRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CurrentRange").finish_non_exhaustive()
    }
}

impl Splicer {
    pub(crate) fn new(outputs: Outputs, inputs: usize, limit: Option<u64>) -> Splicer {
        let mut splicer = Splicer {
            output: Some(outputs),
            totals: MergeTotals::of(inputs),
            base: 0,
            limit,
            range: CurrentRange::default(),
        };
        splicer.begin_range();
        splicer
    }

    fn parts(&mut self) -> Result<&mut OutputParts> {
        let output = self.output.as_mut().ok_or_else(no_output)?;
        Ok(&mut output.parts)
    }

    fn begin_range(&mut self) {
        let Some(Outputs { parts, .. }) = &self.output else {
            return;
        };
        self.base = parts.data.position();
        self.range = CurrentRange {
            before: self.limit.map(|_| Box::new(parts.collector.clone())),
            ..CurrentRange::default()
        };
    }

    /// Appends the next bytes of the range.
    ///
    /// # Errors
    /// A failed write.
    pub(crate) fn add_block(
        &mut self,
        start_replay: StartReplay<'_>,
        block: RangeBlock,
    ) -> Result<()> {
        let start = self.range.len;
        self.range.len += block.bytes.len() as u64;
        let end = self.range.len;
        // Number of bytes of the block that have been appended, and its parts of the index that have not.
        let mut appended = 0;
        let mut index = block.index;
        let mut number = 0;
        while let Some(part) = index.event(number) {
            let part_end = part.end();
            if !self.range.is_next_decided && self.is_full(&block.bytes, start, &mut appended)? {
                self.end_output(start_replay, index.take_first(number))?;
                number = 0;
            }
            number += 1;
            if let Some(next_start) = part_end {
                self.range.next_start = next_start;
                self.range.is_next_decided = self.limit.is_none();
                self.parts()?.partitions += 1;
            }
        }
        if !self.range.is_next_decided
            && self.range.next_start < end
            && self.is_full(&block.bytes, start, &mut appended)?
        {
            self.end_output(start_replay, index.take_first(number))?;
        }
        let is_replayed = self.range.replay.is_some();
        let base = self.base;
        let parts = self.parts()?;
        parts.index.submit(index, base);
        if !is_replayed {
            parts.collector.add_times(&block.times);
        }
        parts.data.append_block_from(block.bytes, appended);
        parts.index.check()?;
        parts.data.check()
    }

    /// Decides whether the output has no room for the next partition. `appended` bytes of the block, which begins
    /// at `start` in the range, have been appended.
    fn is_full(&mut self, block: &[u8], start: u64, appended: &mut usize) -> Result<bool> {
        self.range.is_next_decided = true;
        let Some(limit) = self.limit else {
            return Ok(false);
        };
        let at = self.range.next_start;
        let before = (at.saturating_sub(start) as usize).clamp(*appended, block.len());
        let parts = self.parts()?;
        if parts.partitions == 0 {
            return Ok(false);
        }
        let rest = block.get(*appended..before).unwrap_or_default();
        if parts.data.may_exceed(rest.len() as u64, limit) == Some(false) {
            return Ok(false);
        }
        parts.data.append(rest);
        *appended = before;
        parts.data.exceeds(limit)
    }

    /// Ends the output before the next partition of the range. `index` are its last parts.
    fn end_output(&mut self, start_replay: StartReplay<'_>, index: Batch<IndexPart>) -> Result<()> {
        let (at, base) = (self.range.next_start, self.base);
        self.parts()?.index.submit(index, base);
        if at > 0 {
            let before = self.range.before.take();
            let before = *before.ok_or_else(no_output)?;
            let replay = match &mut self.range.replay {
                Some(replay) => replay,
                none => none.insert(start_replay()?),
            };
            self.parts()?.collector = replay(at, before)?;
        }
        self.next_output(None)?;
        let parts = self.parts()?;
        let (position, collector) = (parts.data.position(), parts.collector.clone());
        self.base = position.wrapping_sub(at);
        self.range.before = Some(Box::new(collector));
        Ok(())
    }

    fn next_output(&mut self, expected_keys: Option<u64>) -> Result<()> {
        let outputs = self.output.take().ok_or_else(no_output)?;
        self.output = Some(outputs.next(expected_keys)?);
        Ok(())
    }

    /// Ends the range. Another output may begin after it.
    ///
    /// # Errors
    /// A failed write.
    pub(crate) fn end_range(
        &mut self,
        end: RangeSummary,
        next_output: Option<PlannedOutput>,
    ) -> Result<()> {
        let statistics = self.totals.add(end);
        if let Some(mut replay) = self.range.replay.take() {
            let before = self.range.before.take();
            let before = *before.ok_or_else(no_output)?;
            self.parts()?.collector = replay(u64::MAX, before)?;
        } else {
            let output = self.output.as_mut().ok_or_else(no_output)?;
            let layout = Arc::clone(output.current().layout());
            output
                .parts
                .collector
                .append(statistics, &layout.clustering);
        }
        let parts = self.parts()?;
        if let Some(next) = next_output.filter(|_| parts.partitions > 0) {
            self.next_output(next.expected_keys)?;
        }
        self.begin_range();
        Ok(())
    }

    /// Completes the last output.
    ///
    /// # Errors
    /// A failed write or sync.
    pub(crate) fn end(self) -> Result<Vec<StagedSstable>> {
        self.output.ok_or_else(no_output)?.end()
    }
}

#[cold]
fn no_output() -> Error {
    Error::internal("no output is left")
}
