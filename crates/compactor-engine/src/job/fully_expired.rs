//! Inputs that are dropped without being read.
//!
//! Source: `CompactionController.getFullyExpiredSSTables`.

use compactor_io::{Io, ReadMode};

use crate::error::{Error, Result};
use crate::input::key_range::KeyRange;
use crate::input::sstable::InputSstable;
use crate::job::overlapping::OutsideSstables;

/// Splits off the inputs that need not be read: all their data is past its grace period, and none of it is
/// newer than any data that is not. With `strips_ttl`, an SSTable that may have data with a TTL counts as live,
/// whether it is an input or not.
pub(crate) fn split_off_fully_expired(
    io: &Io,
    mode: ReadMode,
    strips_ttl: bool,
    inputs: Vec<InputSstable>,
    gc_before_s: i64,
    outside: &OutsideSstables,
) -> Result<(Vec<InputSstable>, Vec<InputSstable>)> {
    let OutsideSstables::Overlapping(overlapping) = outside else {
        return Ok((Vec::new(), inputs));
    };
    let has_expired = |input: &InputSstable| {
        input.max_local_deletion_time_s() < gc_before_s && !(strips_ttl && input.may_have_ttl())
    };
    let is_candidate = |input: &InputSstable, min_timestamp: i64| {
        // The data is not read, so the statistics must be shown to belong to it.
        input.matches_compression_ratio()
            && has_expired(input)
            && input.statistics.stats.max_timestamp < min_timestamp
    };
    let mut min_timestamp = inputs
        .iter()
        .filter(|input| !has_expired(input))
        .map(|input| input.statistics.stats.min_timestamp)
        .min()
        .unwrap_or(i64::MAX);
    let mut asked: Vec<_> = (overlapping.as_slice().iter())
        .filter(|s| s.max_local_deletion_time_s >= gc_before_s || (strips_ttl && s.may_have_ttl))
        .collect();
    if !asked.is_empty()
        && inputs
            .iter()
            .any(|input| is_candidate(input, min_timestamp))
    {
        // Of the table's SSTables those are relevant that may have a partition of some input, expired or not
        // (`ColumnFamilyStore.getOverlappingLiveSSTables`).
        let range_of = |input| match KeyRange::of(io, input, mode) {
            Ok(range) => Ok(Some(range)),
            // An input whose range cannot be determined may have any partition; validation reports the error.
            Err(Error::Format(_)) => Ok(None),
            Err(error) => Err(error),
        };
        let ranges: Vec<Option<KeyRange>> = inputs.iter().map(range_of).collect::<Result<_>>()?;
        let may_meet = |keys| {
            let mut ranges = ranges.iter();
            ranges.any(|range| range.as_ref().is_none_or(|range| range.overlaps(keys)))
        };
        asked.retain(|s| may_meet(&s.keys));
        let timestamps = asked.iter().map(|s| s.min_timestamp);
        min_timestamp = timestamps.fold(min_timestamp, i64::min);
    }
    Ok(inputs
        .into_iter()
        .partition(|input| is_candidate(input, min_timestamp)))
}
