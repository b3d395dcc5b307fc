//! Choice of the overlapping SSTables that may remove what they shadow.

use std::sync::Arc;

use compactor_io::{Io, ReadMode};
use compactor_sstable::Component;
use compactor_sstable::statistics::commit_log::IntervalSet;
use compactor_sstable::statistics::stats::StatsMetadata;

use crate::error::Result;
use crate::input::component_file::read_small;
use crate::input::key_range::KeyRange;
use crate::input::sstable::InputSstable;
use crate::job::options::MergeOptions;
use crate::job::tombstone_option::TombstoneOption;

/// An SSTable that may be read for the tombstones it contains.
#[derive(Clone, Debug)]
pub(crate) struct TombstoneSource {
    pub(crate) keys: KeyRange,
    pub(crate) sstable: Arc<InputSstable>,
}

/// Opens the overlapping SSTables that may remove what they shadow, if the options permit it. Copies of
/// inputs are excluded, including inputs of another job that runs at the same time.
pub(crate) fn open_tombstone_sources(
    io: &Io,
    options: &MergeOptions,
    inputs: &[InputSstable],
) -> Result<Vec<TombstoneSource>> {
    let mut sources = Vec::new();
    if options.overlapping_tombstones != TombstoneOption::None {
        let mode = options.read_mode;
        for path in options.overlapping_paths(inputs.iter().map(InputSstable::data_path)) {
            let keys = options.overlapping.open(io, &path, mode)?.keys.clone();
            let sstable = Arc::new(InputSstable::open(io, &path, mode)?);
            let mut inputs = inputs.iter();
            if !inputs.any(|input| is_copy(io, mode, input, &sstable)) {
                sources.push(TombstoneSource { keys, sstable });
            }
        }
    }
    Ok(sources)
}

/// Whether an SSTable is a copy of an input, such as one in a snapshot and the same in the table's directory.
/// It would remove the input's own deletions, which would be lost when the input is replaced. Its id may
/// differ after `nodetool import`, and so may fields that a node sets in an existing file: level and repair
/// state.
fn is_copy(io: &Io, mode: ReadMode, input: &InputSstable, other: &InputSstable) -> bool {
    let of_the_data = |sstable: &InputSstable| StatsMetadata {
        level: 0,
        repaired_at: 0,
        pending_repair: None,
        is_transient: false,
        originating_host_id: None,
        commit_log_intervals: IntervalSet::default(),
        // NaN if unknown, which is not equal to itself.
        token_space_coverage: 0.0,
        ..sstable.statistics.stats.clone()
    };
    let digest = |sstable: &InputSstable| {
        let path = sstable.descriptor.path(Component::Digest);
        read_small(io, mode, &path).ok()
    };
    let may_differ = || match (digest(input), digest(other)) {
        (Some(a), Some(b)) => a != b,
        _ => false,
    };
    input.data.len() == other.data.len()
        && of_the_data(input) == of_the_data(other)
        && !may_differ()
}
