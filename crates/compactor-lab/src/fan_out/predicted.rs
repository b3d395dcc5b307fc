//! Figures of the simulator and of the formula for the same flushes.

use compactor::{Error, Result};
use compactor_simulate::outcome::Outcome;
use compactor_simulate::{Setup, Workload, simulate};
use compactor_strategy::CompactionParams;

use super::options::FanOutOptions;
use super::outcome::{Figures, FlushRecord, Formula};
use crate::report::units::MIB;

/// Simulations, with seeds that follow one another. A little more or less in an SSTable changes what is selected from
/// then on: a single one may be 2% from the others. Of an odd number one is in the middle.
const SIMULATIONS: u64 = 9;

/// Simulates a strategy, with compactions that take no time: the simulation in the middle by the bytes that are
/// written, the least and most that one writes, and the formula's figures.
///
/// # Errors
/// Options that cannot be simulated.
pub(super) fn predict(
    strategy: CompactionParams,
    options: &FanOutOptions,
    flushes: &FlushRecord,
) -> Result<(Figures, [f64; 2], Option<Formula>)> {
    let inserted = flushes.inserted_row_bytes as f64;
    let per_flush = inserted * flushes.rows_per_flush as f64;
    let mut setup = Setup::new(strategy);
    setup.throughput_bytes_per_s = None;
    setup.concurrent_compactors = 1;
    setup.duration_s = options.duration_s;
    setup.workload = Workload {
        ingest_bytes_per_s: per_flush / flushes.interval_s,
        row_bytes: inserted,
        partition_bytes: inserted,
        compression_ratio: flushes.stored_row_bytes() / inserted,
        ttl_s: Some(options.ttl_s.into()),
        gc_grace_s: options.gc_grace_s.into(),
        flush_bytes: flushes.data_bytes_per_flush(),
        ..Workload::default()
    };
    let simulate = |seed| {
        setup.seed = seed;
        simulate(&setup).map_err(|error| Error::invalid(error.to_string()))
    };
    let seeds = (0..SIMULATIONS).map(|n| options.seed.wrapping_add(n));
    let mut outcomes: Vec<Outcome> = seeds.map(simulate).collect::<Result<_>>()?;
    let written = |outcome: &Outcome| outcome.flushed_bytes + outcome.compacted_bytes;
    outcomes.sort_by(|a, b| written(a).total_cmp(&written(b)));
    let range_bytes = [outcomes.first(), outcomes.last()];
    let middle = &outcomes[outcomes.len() / 2];
    let stored_per_s = flushes.data_bytes_per_flush() / flushes.interval_s;
    let range_bytes = range_bytes.map(|outcome| outcome.map_or(0.0, written));
    let formula = middle.model.map(|model| Formula {
        write_amplification: model.write_mb_per_s * MIB / stored_per_s,
        levels: model.levels,
    });
    Ok((figures(middle), range_bytes, formula))
}

fn figures(outcome: &Outcome) -> Figures {
    let mut figures = Figures {
        flushed_bytes: outcome.flushed_bytes,
        compacted_bytes: outcome.compacted_bytes,
        merges: outcome.compactions.merges + outcome.compactions.tombstones,
        level_changes: outcome.compactions.level_only,
        levels: outcome.levels,
        sstables: outcome.sstables as u64,
        dataset_bytes: outcome.dataset_bytes as f64,
        sstables_per_point_read: outcome.sstables_per_point_read,
        sstables_per_range_read: outcome.sstables_per_range_read,
        by_level: Vec::new(),
    };
    for level in &outcome.by_level {
        let to = figures.level(level.level);
        to.sstables = level.sstables as u64;
        to.bytes = level.bytes as f64;
        to.written_bytes = level.written_bytes;
    }
    figures
}
