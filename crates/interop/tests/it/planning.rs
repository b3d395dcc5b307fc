//! The tasks that our strategies select, compared with those that Cassandra's select.

use std::collections::BTreeMap;

use compactor_strategy::CompactionParams;
use compactor_strategy::release::Release;
use compactor_testkit::campaign::{self, cases};
use interop::planning::{Compared, Strategy, compare, compare_simulations};
use interop::pool::Shared;
use interop::{Cassandra, Mode, Release as Server};

use crate::support::has_five;

/// Random tables per strategy and release in a full campaign.
const TABLES: usize = 40;
/// Random simulations, likewise.
const SIMULATIONS: usize = 5;

#[track_caller]
fn servers() -> Vec<(Release, Mode, Server)> {
    if interop::skip::without_cassandra() {
        return Vec::new();
    }
    let mut servers = vec![(Release::V6_0, Mode::Pa, Server::Six)];
    if campaign::is_full_or_in_part() && has_five() {
        servers.push((Release::V5_0, Mode::Da, Server::Five));
    }
    servers
}

/// Compares random tables, simulations and refused options with Cassandra 6, in a full campaign also with 5. Returns
/// the counts of the random tables.
#[track_caller]
fn compare_all(strategy: Strategy, options: &[&str]) -> Vec<Compared> {
    let compare_with = |(release, mode, server)| {
        let mut cassandra = Shared::take(mode, server).expect("Cassandra starts");
        let tables = compare(&mut cassandra, strategy, release, 0..cases(TABLES) as u64);
        let tables = tables.unwrap_or_else(|error| panic!("{error:#}"));
        println!("{strategy:?}, {release:?}: {tables:?}");
        // No two of their SSTables have the same size.
        assert_eq!(tables.ties, 0);
        let seeds = 0..cases(SIMULATIONS) as u64;
        let simulated = compare_simulations(&mut cassandra, strategy, release, seeds);
        let simulated = simulated.unwrap_or_else(|error| panic!("{error:#}"));
        println!("{strategy:?}, {release:?}, simulated: {simulated:?}");
        expect_enough(&simulated, &[("simulated tasks", simulated.tasks > 50)]);
        check_refusals(&mut cassandra, strategy, release, options);
        tables
    };
    servers().into_iter().map(compare_with).collect()
}

/// Panics if the tables of a full campaign did not produce enough of the cases that a test is about.
fn expect_enough(compared: &Compared, found: &[(&str, bool)]) {
    assert!(compared.tasks > 0 && compared.idle > 0, "{compared:?}");
    if cases(TABLES) < TABLES {
        return;
    }
    for (name, is_enough) in found {
        assert!(is_enough, "{name}: {compared:?}");
    }
}

/// Values for any option: numbers, sizes and words close to what is valid.
const VALUES: [&str; 28] = [
    "",
    "-1",
    "0",
    "1",
    "2",
    "3",
    "40",
    "0.5",
    "1.5",
    "abc",
    "99999999999",
    "true",
    "FALSE",
    " 7 ",
    "1f",
    "1e3",
    "+2",
    "DAYS",
    "SECONDS",
    "100MiB",
    "500KiB",
    "1.5 GiB",
    "0B",
    "10%",
    "T4, L4",
    "Q6",
    "none",
    "-5B",
];

/// Checks that each option is refused with each value as Cassandra refuses it.
fn check_refusals(cassandra: &mut Cassandra, strategy: Strategy, release: Release, names: &[&str]) {
    let one = |name: &str, value: &str| [(name.to_owned(), value.to_owned())].into();
    let pairs = names
        .iter()
        .flat_map(|name| VALUES.iter().map(move |value| (*name, *value)));
    let mut sets: Vec<BTreeMap<String, String>> =
        pairs.map(|(name, value)| one(name, value)).collect();
    sets.push(BTreeMap::new());
    let theirs = interop::strategy::refusals(cassandra, strategy.class(), &sets);
    let theirs = theirs.expect("Cassandra judges");
    for (set, theirs) in sets.iter().zip(theirs) {
        let ours = CompactionParams::from_options(strategy.class(), set, release);
        let ours = ours.err().map(|error| error.0);
        match theirs.as_deref() {
            // An exception that Cassandra does not handle.
            Some(text)
                if text.is_empty()
                    || (strategy != Strategy::SizeTiered && text.contains("threw an error")) =>
            {
                assert!(ours.is_some(), "{release:?}, {set:?}: {text}");
            }
            _ => assert_eq!(ours, theirs, "{release:?}, {set:?}"),
        }
    }
}

#[test]
fn size_tiered() {
    let options = [
        "min_threshold",
        "max_threshold",
        "bucket_low",
        "bucket_high",
        "min_sstable_size",
        "tombstone_threshold",
        "tombstone_compaction_interval",
        "unchecked_tombstone_compaction",
        "log_all",
        "enabled",
    ];
    for compared in compare_all(Strategy::SizeTiered, &options) {
        let found = [
            ("tasks", compared.tasks > 300),
            ("tombstones", compared.tombstones > 10),
        ];
        expect_enough(&compared, &found);
    }
}

#[test]
fn leveled() {
    let options = [
        "sstable_size_in_mb",
        "fanout_size",
        "single_sstable_uplevel",
        "min_threshold",
    ];
    for compared in compare_all(Strategy::Leveled, &options) {
        let found = [
            ("tasks", compared.tasks > 300),
            ("tombstones", compared.tombstones > 10),
            ("level only", compared.level_only > 10),
        ];
        expect_enough(&compared, &found);
    }
}

#[test]
fn time_window() {
    let options = [
        "compaction_window_unit",
        "compaction_window_size",
        "timestamp_resolution",
        "expired_sstable_check_frequency_seconds",
        "max_threshold",
    ];
    for compared in compare_all(Strategy::TimeWindow, &options) {
        let found = [
            ("tasks", compared.tasks > 300),
            ("tombstones", compared.tombstones > 10),
            ("expired", compared.expired > 0),
        ];
        expect_enough(&compared, &found);
    }
}

#[test]
fn unified() {
    let options = [
        "scaling_parameters",
        "base_shard_count",
        "target_sstable_size",
        "flush_size_override",
        "max_sstables_to_compact",
        "expired_sstable_check_frequency_seconds",
        "unsafe_aggressive_sstable_expiration",
        "overlap_inclusion_method",
        "min_sstable_size",
        "sstable_growth",
        "parallelize_output_shards",
        "min_threshold",
    ];
    for compared in compare_all(Strategy::Unified, &options) {
        let found = [
            ("tasks", compared.tasks > 200),
            ("expired", compared.expired > 0),
        ];
        expect_enough(&compared, &found);
    }
}
