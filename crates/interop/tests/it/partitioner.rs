//! Tables of clusters with partitioners other than Murmur3Partitioner, which order partitions differently.

use compactor_testkit::campaign;
use interop::{Cassandra, Mode, Options};

use crate::scenario;
use crate::support::{Failures, scenarios_named};

/// Scenarios with many partitions, keys of many kinds, and purging with overlapping SSTables: some in each format,
/// since formats differ in how keys are looked up, not in their order.
const BIG: [&str; 5] = [
    "simple_kv",
    "long_keys",
    "twelve_inputs",
    "statics",
    "purge_held_back",
];
const BTI: [&str; 5] = [
    "simple_kv",
    "composite_key",
    "long_keys",
    "four_inputs",
    "partition_deletions",
];

#[test]
fn random() {
    if !campaign::is_full() {
        return;
    }
    merges_match_cassandra("RandomPartitioner");
}

#[test]
fn byte_ordered() {
    if !campaign::is_full() {
        return;
    }
    merges_match_cassandra("ByteOrderedPartitioner");
}

fn merges_match_cassandra(partitioner: &str) {
    if interop::skip::without_cassandra() {
        return;
    }
    let options = Options {
        partitioner: partitioner.to_owned(),
        ..Options::default()
    };
    let mut failures = Failures::default();
    let mut count = 0;
    for (mode, names) in [(Mode::Pa, BIG), (Mode::Ea, BTI)] {
        let mut cassandra = Cassandra::start(mode, &options).expect("Cassandra starts");
        for scenario in scenarios_named(&names) {
            assert!(scenario.modes.contains(&mode), "{}", scenario.name);
            count += 1;
            let found = scenario::run(&mut cassandra, &scenario);
            failures.add(format_args!("{mode}/{}", scenario.name), found);
        }
    }
    println!(
        "{partitioner}: {count} scenarios, {} failures",
        failures.count()
    );
    failures.check();
}
