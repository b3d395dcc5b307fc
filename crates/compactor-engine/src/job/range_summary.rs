//! Results of merging a range other than its bytes, and the totals of all ranges.

use compactor_sstable::compression::crc32_run::Crc32Run;
use compactor_sstable::statistics::MetadataCollector;

use crate::error::Result;
use crate::job::merged_input::MergedInput;
use crate::merge::merge_counts::MergeCounts;
use crate::merge::observer::InputRead;
use crate::read::key_position_checksum::KeyPositionChecksum;
use crate::read::row_counts::RowCounts;

/// Results of merging a range, in addition to the pieces that were already passed on.
#[derive(Debug)]
pub(crate) struct RangeSummary {
    /// Statistics of the partitions written.
    pub(crate) statistics: MetadataCollector,
    pub(crate) counts: MergeCounts,
    /// Results of reading each input that has partitions in the range.
    pub(crate) reads: Vec<RangeRead>,
}

/// Results of reading an input in one range, or in all ranges so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct RangeRead {
    pub(crate) input: usize,
    pub(crate) places: KeyPositionChecksum,
    pub(crate) rows: RowCounts,
    pub(crate) digest: Crc32Run,
    pub(crate) first_key: Vec<u8>,
    pub(crate) last_key: Vec<u8>,
}

/// Totals of all ranges so far.
#[derive(Debug)]
pub(crate) struct MergeTotals {
    pub(crate) counts: MergeCounts,
    reads: Vec<RangeRead>,
}

impl MergeTotals {
    pub(crate) fn of(inputs: usize) -> MergeTotals {
        MergeTotals {
            counts: MergeCounts {
                partitions_by_inputs: vec![0; inputs],
                ..MergeCounts::default()
            },
            reads: vec![RangeRead::default(); inputs],
        }
    }

    pub(crate) fn add(&mut self, end: RangeSummary) -> MetadataCollector {
        self.counts.add(&end.counts);
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
        end.statistics
    }

    /// Returns the results of reading each input, after validating them against its statistics.
    pub(crate) fn reads(&mut self, inputs: &[MergedInput]) -> Result<Vec<InputRead>> {
        let mut reads = Vec::with_capacity(inputs.len());
        for (input, read) in inputs.iter().zip(std::mem::take(&mut self.reads)) {
            let file = &input.file;
            file.check(&read.first_key, &read.last_key, read.places.partitions())?;
            reads.push(InputRead {
                data_path: file.path.clone(),
                places: read.places,
                rows: read.rows,
                digest: read.digest.value(),
            });
        }
        Ok(reads)
    }
}
