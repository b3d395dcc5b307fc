//! State of the table at a time.

use std::collections::BTreeMap;

use compactor_strategy::CompactionParams;
use compactor_strategy::StrategyOptions;
use compactor_strategy::leveled::LevelSizes;

use crate::cohort::{Cohort, Kind, US};
use crate::outcome::Level;
use crate::popularity::Popularity;
use crate::stored::Stored;
use crate::table::Table;
use crate::workload::Workload;

/// Expected number of SSTables of a read.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Reads {
    /// SSTables whose Bloom filter has the partition of a row that exists and has been flushed.
    pub(crate) point: f64,
    /// SSTables between whose first and last token a token is.
    pub(crate) range: f64,
}

/// Averages over all tokens, and over rows as they are read.
pub(crate) fn reads(
    table: &Table,
    workload: &Workload,
    popularity: &Popularity,
    fp_chance: f64,
    (start_us, elapsed_s): (i64, f64),
) -> Reads {
    let now_us = start_us + (elapsed_s * US) as i64;
    let expired_us = workload
        .ttl_s
        .map_or(i64::MIN, |ttl| now_us - (ttl as f64 * US) as i64);
    let initial = table.iter().filter(|(_, s)| s.oldest_us < start_us);
    let initial: f64 = initial
        .flat_map(|(_, s)| &s.cohorts)
        .filter(|cohort| cohort.newest_us < start_us)
        .map(|cohort| live_rows(cohort, expired_us))
        .sum();
    let unflushed = workload.inserts_since_flush(elapsed_s);
    let classes = (0..popularity.len()).map(|class| {
        let rows = workload.live_rows(elapsed_s, popularity, class);
        let rows = (rows - unflushed * popularity.rows(class)).max(0.0);
        // Initial SSTables have no classes.
        let rows = if class == 0 { rows + initial } else { rows };
        (popularity.writes(class), rows)
    });
    let classes: Vec<(f64, f64)> = classes.collect();
    let mut reads = Reads::default();
    for (_, stored) in table.iter() {
        let coverage = stored.range.coverage();
        let has = contained(stored, &classes, workload, expired_us);
        reads.range += coverage;
        reads.point += coverage * (has + (1.0 - has).max(0.0) * fp_chance);
    }
    reads
}

/// Number of times that an SSTable has the partition of a row that is read, per average row between its tokens: at most
/// about 1.
fn contained(stored: &Stored, classes: &[(f64, f64)], workload: &Workload, expired_us: i64) -> f64 {
    let coverage = stored.range.coverage();
    let scattered = workload.scattered_rows();
    let by_class = classes.iter().enumerate().map(|(class, (reads, rows))| {
        let own = stored.cohorts.iter();
        let own = own.filter(|cohort| usize::from(cohort.class) == class);
        let own: f64 = own.map(|cohort| live_rows(cohort, expired_us)).sum();
        let part = own / (rows * coverage).max(1e-9);
        let has = if scattered > 1.0 {
            1.0 - (1.0 - part.min(1.0)).powf(scattered)
        } else {
            // Of a narrow range with more rows than the average, as many more are read.
            part
        };
        reads * has
    });
    by_class.sum()
}

/// Rows of a cohort that have values and are not expired.
fn live_rows(cohort: &Cohort, expired_us: i64) -> f64 {
    match cohort.kind {
        Kind::Dead => 0.0,
        Kind::Live => cohort.rows * (1.0 - cohort.part_before(expired_us)),
    }
}

/// SSTables and bytes of each level, ascending.
pub(crate) fn levels(table: &Table) -> Vec<Level> {
    let mut levels: Vec<Level> = Vec::new();
    for (id, _) in table.iter() {
        let level = table.level(id);
        let bytes = table.manager.live().get(id).map_or(0, |s| s.data_bytes);
        let level = Level::among(&mut levels, level);
        level.sstables += 1;
        level.bytes += bytes;
    }
    levels
}

/// Number of levels with data, L0 included, by the bytes of each. With limits of levels the highest one counts by the
/// part of its limit that it holds.
pub fn level_count(level_bytes: &BTreeMap<u32, u64>, params: &CompactionParams) -> f64 {
    let with_data = level_bytes.iter().filter(|(_, bytes)| **bytes > 0);
    let Some((&highest, &bytes)) = with_data.clone().next_back() else {
        return 0.0;
    };
    let sizes: Option<LevelSizes> = match &params.strategy {
        StrategyOptions::Leveled(options) => Some(options.sizes),
        StrategyOptions::LevelCount(options) => {
            Some(options.sizing.sizes(level_bytes.values().sum()))
        }
        _ => None,
    };
    match sizes {
        Some(sizes) if highest > 0 => {
            let limit = sizes.max_bytes(highest as usize) as f64;
            f64::from(highest) + (bytes as f64 / limit).min(1.0)
        }
        _ => with_data.count() as f64,
    }
}
