//! Simulations with known results, and properties of all simulations.

use compactor_simulate::{Distribution, Outcome, Selection, Setup, simulate, simulate_with};
use compactor_strategy::options::Options;
use compactor_strategy::release::Release;
use compactor_strategy::sstable::{Sstable, SstableId};
use compactor_strategy::task::Task;
use compactor_strategy::{CompactionParams, CompactionStrategyManager};
use compactor_testkit::campaign;
use proptest::prelude::*;
use std::collections::BTreeSet;

const MIB: f64 = (1u64 << 20) as f64;
const GIB: f64 = (1u64 << 30) as f64;
const DAY_S: u64 = 86_400;

const CLASSES: [&str; 5] = [
    "SizeTieredCompactionStrategy",
    "LeveledCompactionStrategy",
    "TimeWindowCompactionStrategy",
    "UnifiedCompactionStrategy",
    "LevelCountCompactionStrategy",
];

fn setup(class: &str, options: &[(&str, &str)]) -> Setup {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let options: Options = options.iter().map(owned).collect();
    let strategy = CompactionParams::from_options(class, &options, Release::V5_0);
    Setup::new(strategy.expect("valid options"))
}

fn run(setup: &Setup) -> Outcome {
    simulate(setup).expect("a valid setup")
}

/// The experiment of CASSANDRA-7871: 88 hours of 1 MiB/s of inserts that live for two days.
fn of_7871(fanout: &str, sstable_mib: &str) -> Setup {
    let options = [("fanout_size", fanout), ("sstable_size_in_mb", sstable_mib)];
    let mut setup = setup("LeveledCompactionStrategy", &options);
    setup.workload.ttl_s = Some(2 * DAY_S);
    setup.workload.gc_grace_s = 60;
    setup.duration_s = 88 * 3600;
    setup
}

fn is_within(found: f64, expected: f64, part: f64) -> bool {
    (found / expected - 1.0).abs() <= part
}

/// The issue does not specify the size on disk of its cells of 64 bytes, nor the size of a flush. With a quarter
/// more than the cells, as the headers of cells take in the format of the time, and flushes of 200 MiB, all nine
/// measured figures are met within 15%.
#[test]
fn measured_figures_of_7871() {
    for (fanout, sstable_mib, write_mb_per_s, levels, size_gb) in [
        ("10", "160", 32.0, 4.1, 301.0),
        ("4", "160", 28.0, 6.1, 261.0),
        ("4", "1024", 20.4, 4.8, 258.0),
    ] {
        let mut setup = of_7871(fanout, sstable_mib);
        setup.workload.compression_ratio = 1.25;
        setup.workload.flush_bytes = 200.0 * MIB;
        let found = run(&setup);
        let found_gb = found.dataset_bytes as f64 / GIB;
        let text = format!(
            "{} MB/s, {} levels, {found_gb} GB",
            found.write_mb_per_s, found.levels
        );
        assert!(
            is_within(found.write_mb_per_s, write_mb_per_s, 0.15),
            "{text}"
        );
        assert!(is_within(found.levels, levels, 0.15), "{text}");
        assert!(is_within(found_gb, size_gb, 0.15), "{text}");
    }
}

#[test]
fn predicted_figures_of_7871() {
    for (fanout, sstable_mib, write_mb_per_s, levels) in [
        ("10", "160", "34.4", "3.0"),
        ("4", "160", "26.2", "5.0"),
        ("4", "1024", "20.5", "3.7"),
    ] {
        let mut setup = of_7871(fanout, sstable_mib);
        // The formula applies once the first rows have expired.
        setup.duration_s = 50 * 3600;
        let model = run(&setup).model.expect("leveled compaction has one");
        assert_eq!(format!("{:.1}", model.write_mb_per_s), write_mb_per_s);
        assert_eq!(format!("{:.1}", model.levels), levels);
    }
}

/// With inserts only, four SSTables are merged at a time in each tier.
#[test]
fn size_tiers_write_each_row_once_per_tier() {
    let mut setup = setup("SizeTieredCompactionStrategy", &[]);
    setup.throughput_bytes_per_s = None;
    // 256 flushes of 128 MiB: four tiers above the flush.
    setup.duration_s = 256 * 128;
    let found = run(&setup);
    assert_eq!(found.sstables, 1);
    assert_eq!(found.compactions.merges, 64 + 16 + 4 + 1);
    assert!(
        is_within(found.write_amplification, 5.0, 1e-6),
        "{}",
        found.write_amplification
    );
    assert_eq!(found.levels, 1.0);
}

/// If rows are updated, only the newest version remains.
#[test]
fn updates_take_no_space_after_they_are_merged() {
    let mut setup = setup("LeveledCompactionStrategy", &[]);
    setup.workload.updates = 1.0;
    setup.workload.rows = 10.0 * GIB / 1024.0;
    setup.duration_s = DAY_S;
    let found = run(&setup);
    assert!(
        is_within(found.live_bytes, 10.0 * GIB, 0.01),
        "{}",
        found.live_bytes
    );
    assert!(
        (1.0..1.4).contains(&found.space_amplification),
        "{}",
        found.space_amplification
    );
    // Most rows are in the highest level, and a tenth of them in the one below.
    assert!(
        (1.0..2.0).contains(&found.sstables_per_point_read),
        "{}",
        found.sstables_per_point_read
    );
}

/// If rows are not updated, whole windows expire, and are dropped without a rewrite.
#[test]
fn time_windows_expire_as_a_whole() {
    let options = [
        ("compaction_window_unit", "HOURS"),
        ("compaction_window_size", "6"),
    ];
    let mut setup = setup("TimeWindowCompactionStrategy", &options);
    setup.workload.distribution = Distribution::TimeOrdered;
    setup.workload.ttl_s = Some(2 * DAY_S);
    setup.workload.gc_grace_s = 3600;
    setup.duration_s = 10 * DAY_S;
    let found = run(&setup);
    assert!(
        found.compactions.expired_sstables > 20,
        "{:?}",
        found.compactions
    );
    // Two days, an hour, an unfinished window, and its last flush.
    assert!(
        (1.0..1.25).contains(&found.space_amplification),
        "{}",
        found.space_amplification
    );
    assert!(
        found.write_amplification < 5.0,
        "{}",
        found.write_amplification
    );
}

/// More is written with leveled compaction than by size tiers, and fewer SSTables are read.
#[test]
fn levels_write_more_and_read_less() {
    let of = |class| {
        let mut setup = setup(class, &[]);
        setup.workload.updates = 0.5;
        setup.duration_s = 3 * DAY_S;
        run(&setup)
    };
    let (tiers, levels) = (of(CLASSES[0]), of(CLASSES[1]));
    assert!(levels.write_amplification > 1.5 * tiers.write_amplification);
    assert!(levels.sstables_per_range_read < tiers.sstables_per_range_read);
    assert!(levels.space_amplification < tiers.space_amplification);
    assert!(levels.greatest_temporary_bytes < tiers.greatest_temporary_bytes / 4.0);
}

/// As the issue expects of a fixed number of levels: from 1 GB to 256 GB, reads need as many SSTables, and growing data
/// is written less often than with SSTables of 160 MiB.
#[test]
fn a_fixed_number_of_levels_reads_the_same_at_any_size() {
    let of = |class, gib: f64| {
        let mut setup = setup(class, &[]);
        setup.workload.ingest_bytes_per_s = gib * GIB / DAY_S as f64;
        setup.workload.flush_bytes = (gib / 256.0).clamp(1.0 / 64.0, 0.5) * GIB;
        setup.throughput_bytes_per_s = None;
        setup.duration_s = DAY_S;
        run(&setup)
    };
    let found = [1.0, 16.0, 256.0].map(|gib| (of(CLASSES[4], gib), of(CLASSES[1], gib)));
    for (count, _) in &found {
        assert!(count.levels <= 5.0, "{}", count.levels);
    }
    let [.., (count, leveled)] = &found;
    assert!(count.write_amplification < leveled.write_amplification);
}

#[test]
fn an_overload_ends_the_simulation() {
    let mut setup = setup("LeveledCompactionStrategy", &[]);
    setup.throughput_bytes_per_s = Some(0.1 * MIB);
    setup.workload.flush_bytes = 8.0 * MIB;
    setup.duration_s = 300 * DAY_S;
    let found = run(&setup);
    assert!(
        found.duration_s < 10.0 * DAY_S as f64,
        "{}",
        found.duration_s
    );
    assert!(
        found.caveats[0].contains("falls behind"),
        "{:?}",
        found.caveats
    );
}

#[test]
fn contradictions_are_refused() {
    let mut short = setup("LeveledCompactionStrategy", &[]);
    short.duration_s = 60;
    let error = simulate(&short).expect_err("no flush").to_string();
    assert!(error.contains("first flush"), "{error}");
}

/// Maintains the set of ids of the table from its notifications.
#[derive(Default)]
struct Follower {
    live: BTreeSet<SstableId>,
    tasks: usize,
}

impl Selection for Follower {
    fn start(&mut self, sstables: &[Sstable], _now_ms: i64) {
        self.live.extend(sstables.iter().map(|sstable| sstable.id));
    }

    fn next_task(&mut self, manager: &mut CompactionStrategyManager, now_ms: i64) -> Option<Task> {
        let live = manager.live().iter().map(|sstable| sstable.id);
        assert_eq!(live.collect::<BTreeSet<_>>(), self.live);
        let task = manager.next_task(now_ms).ok()?;
        self.tasks += 1;
        Some(task)
    }

    fn flushed(&mut self, sstable: &Sstable) {
        assert!(self.live.insert(sstable.id));
    }

    fn completed(&mut self, task: &Task, outputs: &[Sstable]) {
        for input in &task.inputs {
            assert!(self.live.remove(input));
        }
        self.live.extend(outputs.iter().map(|output| output.id));
    }
}

#[test]
fn a_selection_sees_every_change() {
    for class in CLASSES {
        let mut setup = setup(class, &[]);
        setup.workload.ttl_s = Some(DAY_S);
        setup.workload.gc_grace_s = 60;
        setup.duration_s = 3 * DAY_S;
        let mut follower = Follower::default();
        let found = simulate_with(&setup, &mut follower).expect("a valid setup");
        assert!(follower.tasks > 20, "{class}: {} tasks", follower.tasks);
        assert_eq!(found, run(&setup), "{class}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(campaign::cases(48) as u32))]

    /// Rows are neither lost nor created by any strategy: without updates and expiry the table has the bytes that
    /// were flushed, and equal seeds give equal outcomes.
    #[test]
    fn bytes_are_conserved(class in 0..5usize, seed: u64, flush_mib in 8..200u32, hours in 20..50u64) {
        let mut setup = setup(CLASSES[class], &[]);
        setup.seed = seed;
        setup.workload.flush_bytes = f64::from(flush_mib) * MIB;
        setup.duration_s = hours * 3600;
        let found = run(&setup);
        prop_assert!(is_within(found.dataset_bytes as f64, found.flushed_bytes, 1e-4));
        prop_assert!(found.write_amplification >= 1.0);
        prop_assert!(found.sstables_per_point_read >= 0.99, "{}", found.sstables_per_point_read);
        prop_assert!(found.sstables_per_range_read >= 0.9);
        let by_level: f64 = found.by_level.iter().map(|level| level.written_bytes).sum();
        prop_assert!(is_within(by_level, found.flushed_bytes + found.compacted_bytes, 1e-9));
        prop_assert_eq!(run(&setup), found);
    }

    /// With updates, deletes and expiry all figures are numbers, and no table is smaller than its rows.
    #[test]
    fn any_workload_has_valid_figures(
        class in 0..5usize,
        updates in 0..50u32,
        deletes in 0..40u32,
        zipf: bool,
        ttl in proptest::option::of(3600..500_000u64),
        rows_per_partition in 1..50u32,
    ) {
        let mut setup = setup(CLASSES[class], &[]);
        let workload = &mut setup.workload;
        workload.updates = f64::from(updates) / 100.0;
        workload.deletes = f64::from(deletes) / 100.0;
        workload.rows = match updates + deletes {
            0 => 0.0,
            // Enough for the deletes, of which there are more than inserts.
            again if again + deletes > 100 => 1e9,
            _ => 1e6,
        };
        workload.partition_bytes = workload.row_bytes * f64::from(rows_per_partition);
        workload.ttl_s = ttl;
        workload.gc_grace_s = 7200;
        if zipf {
            workload.distribution = Distribution::Zipf { exponent: 0.99 };
        }
        setup.duration_s = 3 * DAY_S;
        let found = run(&setup);
        let text = serde_json::to_string(&found).expect("JSON");
        prop_assert!(!text.contains("null,\"levels") && !text.contains("NaN"));
        prop_assert!(found.write_amplification >= 1.0);
        prop_assert!(found.space_amplification > 0.9, "{}", found.space_amplification);
        prop_assert!(found.sstables_per_point_read <= found.sstables_per_range_read + 1e-9);
    }
}
