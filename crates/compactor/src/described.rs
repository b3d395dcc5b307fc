//! An SSTable as the strategies see it, from its statistics and index summary.

use std::time::UNIX_EPOCH;

use compactor_engine::input::{InputSstable, KeyRange};
use compactor_io::{Io, ReadMode};
use compactor_sstable::Format;
use compactor_sstable::big::Summary;
use compactor_sstable::big::summary::BASE_SAMPLING_LEVEL;
use compactor_sstable::partitioner::{Partitioner, Position as RingPosition};
use compactor_sstable::statistics::StatsMetadata;
use compactor_strategy::droppable::DroppableTombstones;
use compactor_strategy::key_estimate::{KeyEstimate, KeySamples};
use compactor_strategy::sstable::{RepairState, Session, Sstable};
use compactor_strategy::token::{Position, Token};
use compactor_strategy::{CompactionParams, StrategyOptions};

use crate::{Error, Result};

/// Name of a strategy that divides the ring, which is supported with Murmur3Partitioner only.
pub(crate) fn needs_tokens(params: &CompactionParams) -> Option<&'static str> {
    let is_sharded = matches!(params.strategy, StrategyOptions::Unified(_));
    is_sharded.then(|| params.class())
}

/// Describes an SSTable, without an id. It must be of Murmur3Partitioner if `needs_tokens` names something that needs
/// it.
///
/// # Errors
/// An index summary that cannot be read, or another partitioner.
pub(crate) fn describe(
    needs_tokens: Option<&str>,
    io: &Io,
    input: &InputSstable,
    keys: &KeyRange,
    mode: ReadMode,
) -> Result<Sstable> {
    if let Some(name) = needs_tokens
        && input.partitioner != Partitioner::Murmur3
    {
        return Err(Error::invalid(format!(
            "{}: {name} is supported with Murmur3Partitioner, this SSTable is of {:?}Partitioner",
            input.data_path().display(),
            input.partitioner
        )));
    }
    let stats = &input.statistics.stats;
    let position =
        |(at, key): (RingPosition, &[u8])| Position::new(token(input.partitioner, at), key);
    Ok(Sstable {
        data_bytes: input.data.len(),
        bytes_on_disk: input.disk_len(),
        first: position(keys.first()),
        last: position(keys.last()),
        min_timestamp: stats.min_timestamp,
        max_timestamp: stats.max_timestamp,
        max_local_deletion_time: input.max_local_deletion_time_s(),
        level: stats.level.try_into().unwrap_or(0),
        repair: repair_state(stats),
        created_ms: created_ms(input)?,
        // A reported one is a share of the tokens that the node owns, which are not known. By the whole ring both the
        // density and the limits of levels are less, by the same factor; and outputs report none.
        token_space_coverage: None,
        tombstones: tombstones(stats),
        keys: key_estimate(io, input, mode)?,
        ..Sstable::default()
    })
}

/// Murmur3Partitioner: the token. Others: a number that orders partitions as their tokens do.
fn token(partitioner: Partitioner, (high, low): RingPosition) -> Token {
    match partitioner {
        Partitioner::Murmur3 => Token(high.into()),
        _ => Token((i128::from(high) << 64) | i128::from(low)),
    }
}

fn repair_state(stats: &StatsMetadata) -> RepairState {
    match stats.pending_repair.map(u128::from_be_bytes).map(Session) {
        Some(session) if stats.is_transient => RepairState::Transient(session),
        Some(session) => RepairState::Pending(session),
        None if stats.repaired_at != 0 => RepairState::Repaired,
        None => RepairState::Unrepaired,
    }
}

/// Time of the last modification of `Data.db` (`SSTableReader.getDataCreationTime`).
fn created_ms(input: &InputSstable) -> Result<i64> {
    let path = input.data_path();
    let modified = std::fs::metadata(&path).and_then(|metadata| metadata.modified());
    let modified = modified.map_err(Error::file("look up", &path))?;
    let since = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Source: `StatsMetadata.getEstimatedDroppableTombstoneRatio`.
fn tombstones(stats: &StatsMetadata) -> DroppableTombstones {
    let cells = &stats.cells_per_partition;
    let cells = cells.mean().unwrap_or(0).saturating_mul(cells.count());
    let points: Vec<(i64, u32)> = (stats.tombstone_drop_times.bins().iter())
        .map(|&(point, count)| (point, count.unsigned_abs()))
        .collect();
    DroppableTombstones::new(&points, cells)
}

/// Source: `BigTableReader.estimatedKeys`, `BtiTableReader.estimatedKeys`.
fn key_estimate(io: &Io, input: &InputSstable, mode: ReadMode) -> Result<KeyEstimate> {
    let stats = &input.statistics.stats;
    let partitions = stats.cells_per_partition.count();
    let partitions = u64::try_from(partitions).unwrap_or(0);
    // Only a compaction for tombstones depends on it.
    let is_needed = !stats.tombstone_drop_times.bins().is_empty();
    let summary = match input.descriptor.version.format() {
        Format::Big if is_needed => input.summary(io, mode)?,
        _ => None,
    };
    let Some(summary) = summary else {
        return Ok(KeyEstimate {
            keys: partitions,
            partitions,
            samples: None,
        });
    };
    Ok(KeyEstimate {
        keys: (u64::from(summary.size_at_full_sampling) + 1)
            * u64::from(summary.min_index_interval),
        partitions,
        samples: Some(samples(input.partitioner, &summary)),
    })
}

fn samples(partitioner: Partitioner, summary: &Summary) -> KeySamples {
    let at_full_sampling = u64::from(BASE_SAMPLING_LEVEL) * u64::from(summary.min_index_interval);
    KeySamples {
        tokens: (summary.entries())
            .map(|(key, _)| token(partitioner, partitioner.position(key)))
            .collect(),
        keys_per_sample: at_full_sampling / u64::from(summary.sampling_level.max(1)),
    }
}
