//! Cassandra 5, which alone writes `da`: scenarios as in [`scenario`](crate::scenario), with its own inputs, compaction,
//! dump and verifier.

use compactor_testkit::campaign::{self, cases};
use interop::random::{self, Campaign};
use interop::scenarios;
use interop::{Mode, Release};

use crate::scenario;
use crate::support::{are_scenarios_named, each_of, five, has_five, scenarios_named};

/// Scenarios run unless `COMPACTOR_INTEROP_SCENARIO` names others: every kind of content, and rows that produce tries.
const NAMES: [&str; 18] = [
    "simple_kv",
    "many_small",
    "four_inputs",
    "long_keys",
    "value_ties",
    "types_regular",
    "sets_and_maps",
    "complex_under_deletions",
    "statics",
    "counters",
    "partition_deletions",
    "range_overlapping",
    "wide_ranges",
    "wide_static",
    "wide_uncompressed",
    "ttl_purged",
    "purge_held_back",
    "random_mixed_2",
];

#[test]
fn da() {
    if !campaign::is_full() {
        return;
    }
    merges_match_cassandra(Mode::Da, Mode::Ea);
}

#[test]
fn oa() {
    if !campaign::is_full() {
        return;
    }
    merges_match_cassandra(Mode::Oa, Mode::Oa);
}

/// Compares the scenarios of `like`, the mode of Cassandra 6 that can produce the same ones.
fn merges_match_cassandra(mode: Mode, like: Mode) {
    if !has_five() {
        return;
    }
    let mut cassandra = five(mode);
    let mut selected = if are_scenarios_named() {
        scenarios::selected()
    } else {
        scenarios_named(&NAMES)
    };
    selected.retain(|scenario| scenario.modes.contains(&like));
    each_of(&mut cassandra, &selected, scenario::run);
}

#[test]
fn seeds() {
    if !has_five() {
        return;
    }
    let campaign = Campaign::of(1);
    let plans = (1..=cases(40) as u64).map(|seed| random::plan_for(seed, Some(Mode::Da)));
    let report = campaign.run(plans.collect()).expect("servers");
    println!("Cassandra {}: {report:?}", Release::Five.version());
    assert!(report.failed.is_empty(), "seeds {:?} differ", report.failed);
}
