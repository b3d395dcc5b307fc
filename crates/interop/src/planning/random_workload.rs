//! Random workloads of simulations: flushes of about an SSTable's size, so that a hundred of them fill several levels,
//! tiers or windows.

use anyhow::Result;
use compactor_simulate::{Distribution, Setup};
use compactor_strategy::CompactionParams;
use compactor_strategy::release::Release;
use compactor_testkit::Random;

use super::pair::Opening;
use super::random::{RandomTable, Strategy, random_options};

const KIB: f64 = 1024.0;
const HOUR_S: u64 = 3600;

/// A setup, and the table to open in Cassandra.
pub(super) struct RandomWorkload {
    pub(super) setup: Setup,
    pub(super) opening: Opening,
}

impl RandomWorkload {
    pub(super) fn new(strategy: Strategy, release: Release, seed: u64) -> Result<RandomWorkload> {
        let mut rng = Random::new(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
        let mut options = random_options(strategy, &mut rng);
        if strategy == Strategy::Unified {
            // Cassandra flushes nothing here, so it has observed no size.
            options.insert("flush_size_override".to_owned(), "1MiB".to_owned());
            // Few enough shards that all equal selections are compared.
            options.insert("target_sstable_size".to_owned(), "100MiB".to_owned());
        }
        let params = CompactionParams::from_options(strategy.class(), &options, release)?;
        let setup = random_setup(Setup::new(params), strategy, release, seed, &mut rng);
        let opening = Opening {
            strategy,
            release,
            options,
            gc_grace_s: i64::try_from(setup.workload.gc_grace_s)?,
            now_ms: 0,
        };
        Ok(RandomWorkload { setup, opening })
    }
}

fn random_setup(
    mut setup: Setup,
    strategy: Strategy,
    release: Release,
    seed: u64,
    rng: &mut Random,
) -> Setup {
    let interval_s = *rng.pick(&[60, 600, HOUR_S]);
    let flushes = 40 + rng.below(80);
    setup.duration_s = flushes * interval_s;
    setup.concurrent_compactors = 1 + rng.index(4);
    setup.seed = seed;
    let workload = &mut setup.workload;
    // Not round numbers, like real sizes.
    workload.flush_bytes = KIB * *rng.pick(&[311.0, 1013.0, 3989.0]);
    workload.ingest_bytes_per_s = workload.flush_bytes / interval_s as f64;
    workload.partition_bytes = workload.row_bytes * *rng.pick(&[1.0, 10.0]);
    workload.gc_grace_s = *rng.pick(&[0, HOUR_S, 24 * HOUR_S]);
    let distributions = [
        Distribution::Uniform,
        Distribution::Zipf { exponent: 0.9 },
        Distribution::TimeOrdered,
    ];
    workload.distribution = *rng.pick(&distributions);
    if workload.distribution != Distribution::TimeOrdered {
        workload.updates = *rng.pick(&[0.0, 0.3, 0.8]);
        workload.deletes = *rng.pick(&[0.0, 0.1]);
        if workload.updates + workload.deletes > 0.0 {
            workload.rows = workload.flush_bytes / workload.row_bytes * (1 + rng.below(40)) as f64;
        }
    }
    if rng.one_in(2) {
        workload.ttl_s = Some(setup.duration_s / (2 + rng.below(20)));
    }
    // From no time to longer than the interval between flushes.
    setup.throughput_bytes_per_s = match rng.below(4) {
        0 => None,
        _ => Some(setup.workload.ingest_bytes_per_s * (2 + rng.below(30)) as f64),
    };
    if rng.one_in(2) {
        setup.initial = RandomTable::new(strategy, release, seed).first_sstables();
    }
    setup
}
