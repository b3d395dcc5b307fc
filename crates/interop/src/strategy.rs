//! Selections of Cassandra's strategies, by its own classes.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::json;

use crate::cassandra::{Cassandra, Table};
use compactor_testkit::Random;

/// Sizes to be put into buckets.
#[derive(Debug, Clone, serde::Serialize)]
pub struct SizeList {
    /// Bytes of each SSTable.
    pub sizes: Vec<i64>,
    /// `bucket_low`.
    pub low: f64,
    /// `bucket_high`.
    pub high: f64,
    /// `min_sstable_size`.
    pub min: i64,
}

/// Next compaction.
#[derive(Debug, Clone, Deserialize)]
pub struct Next {
    /// Indices in the list of SSTables.
    pub next: Vec<usize>,
    /// Bytes of each SSTable.
    pub sizes: Vec<Bytes>,
}

/// Bytes of one SSTable.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Bytes {
    /// Length of `Data.db`.
    pub data: u64,
    /// Length of all components.
    pub all: u64,
}

/// Buckets of each list, as indices into it (`getBuckets`).
pub fn buckets(cassandra: &mut Cassandra, lists: &[SizeList]) -> Result<Vec<Vec<Vec<usize>>>> {
    let reply = cassandra.request(json!({"op": "size_tiered_buckets", "lists": lists}))?;
    serde_json::from_value(reply).context("buckets in the reply")
}

/// Returns which of these SSTables Cassandra compacts next (`mostInterestingBucket`).
pub fn next(
    cassandra: &mut Cassandra,
    table: &Table,
    inputs: &[PathBuf],
    list: &SizeList,
    thresholds: (usize, usize),
) -> Result<Next> {
    let fields = json!({
        "inputs": inputs, "low": list.low, "high": list.high, "min": list.min,
        "min_threshold": thresholds.0, "max_threshold": thresholds.1,
    });
    let reply = cassandra.ask("size_tiered_next", table, fields)?;
    serde_json::from_value(reply).context("the next compaction in the reply")
}

/// First selection and levels of a strategy when a node starts with some SSTables.
#[derive(Debug, Clone, Deserialize)]
pub struct Started {
    /// Indices of the SSTables that it compacts next.
    pub selected: Vec<usize>,
    /// Number of SSTables in each level, for a strategy with levels.
    pub levels: Vec<usize>,
}

/// Starts a strategy with these SSTables, and asks it for a task (`getNextBackgroundTasks`).
pub fn start(
    cassandra: &mut Cassandra,
    table: &Table,
    inputs: &[PathBuf],
    (class, options): (&str, &BTreeMap<String, String>),
    (now_s, gc_before_s): (i64, i64),
) -> Result<Started> {
    let fields = json!({
        "inputs": inputs, "class": class, "options": options, "now_s": now_s, "gc_before_s": gc_before_s,
    });
    let reply = cassandra.ask("strategy_of_files", table, fields)?;
    serde_json::from_value(reply).context("levels in the reply")
}

/// Returns the reason why each set of options is refused; `None` if it is not (`CompactionParams.validate`).
pub fn refusals(
    cassandra: &mut Cassandra,
    class: &str,
    sets: &[BTreeMap<String, String>],
) -> Result<Vec<Option<String>>> {
    let reply =
        cassandra.request(json!({"op": "strategy_options", "class": class, "sets": sets}))?;
    serde_json::from_value(reply).context("messages in the reply")
}

/// Lists of sizes that come close to every bound: of all magnitudes, in clusters, with equal ones, and
/// with bounds that make few buckets or very many.
#[must_use]
pub fn random_lists(seed: u64, count: usize) -> Vec<SizeList> {
    let mut rng = Random::new(seed);
    (0..count).map(|_| random_list(&mut rng)).collect()
}

fn random_list(rng: &mut Random) -> SizeList {
    let (low, high) = *rng.pick(&[
        (0.5, 1.5),
        (0.5, 1.5),
        (0.9, 1.1),
        (0.99, 1.01),
        (0.0, 3.0),
        (1.2, 1.6),
    ]);
    let min = *rng.pick(&[0, 50 << 20, 1000, 1 << 40]);
    let shape = rng.below(4);
    let count = rng.index(if shape == 3 { 300 } else { 60 });
    let mut sizes: Vec<i64> = Vec::with_capacity(count);
    for _ in 0..count {
        let any = (rng.number() >> (1 + rng.below(62))).cast_signed();
        sizes.push(match shape {
            0 => any,
            1 => rng.below(500).cast_signed(),
            // Near an earlier size, half of it, or one and a half times it.
            2 if !sizes.is_empty() => {
                let near = *rng.pick(&sizes) / 8 * (*rng.pick(&[4, 8, 12]));
                (near + rng.below(3).cast_signed() - 1).clamp(0, 1 << 60)
            }
            _ => any >> 20,
        });
    }
    SizeList {
        sizes,
        low,
        high,
        min,
    }
}
