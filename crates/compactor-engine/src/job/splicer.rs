//! Ranges that were merged elsewhere, added to the outputs one behind the other.
//!
//! Bytes go on as they came; what is done here is little, since one thread at a time does it.

use std::fmt::Debug;
use std::sync::Arc;

use compactor_sstable::bti::rows::SeparatedBlock;
use compactor_sstable::data::layout::Layout;
use compactor_sstable::statistics::MetadataCollector;

use crate::error::{Error, Result};
use crate::job::range_output::{IndexPart, RangeBlock};
use crate::job::range_summary::{MergeTotals, RangeSummary};
use crate::read::data_trace::DataTrace;
use crate::read::trace_batch::TraceBatch;
use crate::write::format_index::IndexEntries;
use crate::write::outputs::Outputs;
use crate::write::sstable_writer::{OutputParts, StagedSstable};

/// The statistics of a range that an output ended in, output by output.
pub(crate) trait StatisticsReplay: Debug + Send {
    /// Goes on with the partitions of another output.
    ///
    /// # Errors
    /// Those of a writer.
    fn begin(&mut self, collector: MetadataCollector) -> Result<()>;

    /// Goes on up to a position of the range. Returns the statistics, and rows.
    ///
    /// # Errors
    /// Damage in an input, or a failed read.
    fn run_to(&mut self, end: u64) -> Result<(MetadataCollector, u64)>;
}

/// Merges the range whose turn it is again, for a collector that is told of its partitions.
type StartReplay<'a> = &'a dyn Fn(MetadataCollector) -> Result<Box<dyn StatisticsReplay>>;

/// The outputs of a merge, and what has been told of its inputs.
#[derive(Debug)]
pub(crate) struct Splicer {
    layout: Arc<Layout>,
    /// `None` while the next is begun.
    output: Option<(Outputs, OutputParts)>,
    /// Whether the trace of an input wants to be told of the current partition's rows.
    wants_rows: Vec<bool>,
    pub(crate) whole: MergeTotals,
    /// Where the range begins in the output; wraps where it began in the one before.
    base: u64,
    /// Bytes on disk that end an output.
    limit: Option<u64>,
    range: CurrentRange,
}

/// What has come of the range whose turn it is.
#[derive(Debug, Default)]
struct CurrentRange {
    /// Bytes.
    len: u64,
    /// Where the next partition begins, and whether it is known that it goes into this output.
    next_start: u64,
    is_next_decided: bool,
    /// Statistics of what was in the output before.
    before: Option<Box<MetadataCollector>>,
    /// Its statistics anew, if an output ended in it.
    again: Option<Box<dyn StatisticsReplay>>,
}

impl Splicer {
    pub(crate) fn new(
        layout: Arc<Layout>,
        (outputs, parts): (Outputs, OutputParts),
        inputs: usize,
        limit: Option<u64>,
    ) -> Splicer {
        let mut splicer = Splicer {
            layout,
            output: Some((outputs, parts)),
            wants_rows: vec![false; inputs],
            whole: MergeTotals::of(inputs),
            base: 0,
            limit,
            range: CurrentRange::default(),
        };
        splicer.begin_range();
        splicer
    }

    fn parts(&mut self) -> Result<&mut OutputParts> {
        match &mut self.output {
            Some((_, parts)) => Ok(parts),
            None => Err(no_output()),
        }
    }

    fn begin_range(&mut self) {
        let Some((_, parts)) = &self.output else {
            return;
        };
        self.base = parts.data.position();
        self.range = CurrentRange {
            before: self.limit.map(|_| Box::new(parts.collector.clone())),
            ..CurrentRange::default()
        };
    }

    /// Adds the next bytes of the range.
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
        // How much of the block has been appended.
        let mut appended = 0;
        let mut bytes = &block.index.bytes[..];
        for part in &block.index.parts {
            if !self.range.is_next_decided {
                self.decide(start_replay, &block.bytes, start, &mut appended)?;
            }
            let base = self.base;
            let next = splice_part(self.parts()?, part, &mut bytes, base)?;
            if let Some(next_start) = next {
                self.range.next_start = next_start;
                self.range.is_next_decided = self.limit.is_none();
            }
        }
        if !self.range.is_next_decided && self.range.next_start < end {
            self.decide(start_replay, &block.bytes, start, &mut appended)?;
        }
        let is_again = self.range.again.is_some();
        let parts = self.parts()?;
        if !is_again {
            parts.collector.add_times(&block.times);
        }
        match appended {
            0 => parts.data.append_block(block.bytes),
            _ => parts
                .data
                .append(block.bytes.get(appended..).unwrap_or_default()),
        }
        parts.data.check()
    }

    /// Decides whether the next partition goes into another output. So many bytes of the block, which begins
    /// at `start` of the range, have been appended.
    fn decide(
        &mut self,
        start_replay: StartReplay<'_>,
        block: &[u8],
        start: u64,
        appended: &mut usize,
    ) -> Result<()> {
        self.range.is_next_decided = true;
        let Some(limit) = self.limit else {
            return Ok(());
        };
        let at = self.range.next_start;
        let before = (at.saturating_sub(start) as usize).clamp(*appended, block.len());
        let parts = self.parts()?;
        if parts.partitions == 0 {
            return Ok(());
        }
        let rest = block.get(*appended..before).unwrap_or_default();
        let is_full = match parts.data.may_exceed(rest.len() as u64, limit) {
            Some(false) => return Ok(()),
            known => {
                parts.data.append(rest);
                *appended = before;
                match known {
                    Some(is_full) => is_full,
                    None => parts.data.exceeds(limit)?,
                }
            }
        };
        if is_full {
            self.end_output_at(start_replay, at)?;
        }
        Ok(())
    }

    /// Ends the output in the midst of the range.
    fn end_output_at(&mut self, start_replay: StartReplay<'_>, at: u64) -> Result<()> {
        if at > 0 {
            let before = self.range.before.take();
            let before = *before.ok_or_else(no_output)?;
            let again = match self.range.again.take() {
                Some(mut again) => {
                    again.begin(before)?;
                    again
                }
                None => start_replay(before)?,
            };
            let again = self.range.again.insert(again);
            let (collector, rows) = again.run_to(at)?;
            let parts = self.parts()?;
            parts.collector = collector;
            parts.rows += rows;
        }
        self.next_output()?;
        let Some((_, parts)) = &self.output else {
            return Err(no_output());
        };
        self.base = parts.data.position().wrapping_sub(at);
        self.range.before = Some(Box::new(parts.collector.clone()));
        Ok(())
    }

    fn next_output(&mut self) -> Result<()> {
        let (outputs, full) = self.output.take().ok_or_else(no_output)?;
        self.output = Some(outputs.next(full)?);
        Ok(())
    }

    /// Tells the trace of an input.
    pub(crate) fn tell(&mut self, input: usize, batch: &TraceBatch, trace: &mut dyn DataTrace) {
        if let Some(wants) = self.wants_rows.get_mut(input) {
            batch.tell(trace, wants);
        }
    }

    /// Ends the range. Another output may begin behind it.
    ///
    /// # Errors
    /// A failed write.
    pub(crate) fn end_range(&mut self, end: RangeSummary, begins_output: bool) -> Result<()> {
        let mut collected = self.whole.add(end);
        if let Some(mut again) = self.range.again.take() {
            let before = self.range.before.take();
            again.begin(*before.ok_or_else(no_output)?)?;
            let (collector, rows) = again.run_to(u64::MAX)?;
            self.parts()?.collector = collector;
            collected.rows = rows;
        } else {
            let layout = Arc::clone(&self.layout);
            let collector = &mut self.parts()?.collector;
            collector.append(collected.statistics, &layout.clustering);
        }
        let parts = self.parts()?;
        parts.rows += collected.rows;
        if begins_output && parts.partitions > 0 {
            self.next_output()?;
        }
        self.begin_range();
        Ok(())
    }

    /// Completes the last output.
    ///
    /// # Errors
    /// A failed write or sync.
    pub(crate) fn end(self) -> Result<Vec<StagedSstable>> {
        let (outputs, parts) = self.output.ok_or_else(no_output)?;
        outputs.end(parts)
    }
}

/// Adds a part of the index, whose bytes are the next. Returns where the next partition begins in the
/// range, if this is the end of one.
fn splice_part(
    output: &mut OutputParts,
    part: &IndexPart,
    bytes: &mut &[u8],
    base: u64,
) -> Result<Option<u64>> {
    let mut next = |len: usize| {
        let (taken, rest) = bytes.split_at(len.min(bytes.len()));
        *bytes = rest;
        taken
    };
    match *part {
        IndexPart::Block {
            separator_len,
            offset,
            open,
        } => {
            let separator = next(separator_len);
            if let IndexEntries::Bti(index) = &mut output.index.entries {
                index.add_block(SeparatedBlock {
                    separator,
                    offset,
                    open,
                })?;
            }
            Ok(None)
        }
        IndexPart::Partition {
            hash,
            cardinality_hash,
            position,
            len,
            deletion,
            key_len,
            promoted_len,
            blocks,
        } => {
            let promoted = next(promoted_len);
            let key = next(key_len);
            let at = base.wrapping_add(position);
            output.partitions += 1;
            output.collector.add_key_hash(cardinality_hash);
            if let Some(filter) = &mut output.index.filter {
                filter.add_key(&hash);
            }
            match &mut output.index.entries {
                IndexEntries::Big(index) => index.add_entry(key, at, promoted)?,
                IndexEntries::Bti(index) => index.add_entry(key, &hash, at, &deletion, blocks)?,
            }
            Ok(Some(position + len))
        }
    }
}

#[cold]
fn no_output() -> Error {
    Error::Internal("no output is left".to_owned())
}
