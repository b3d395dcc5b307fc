//! Inputs of different versions in one merge: Cassandra in mode NONE reads them all, and so must our merge, whatever
//! the version of its output.

use std::path::PathBuf;

use anyhow::{Context, Result};
use compactor_testkit::campaign;
use interop::Mode;
use interop::cases::Case;
use interop::pool::Shared;
use interop::scenarios::Scenario;

use crate::support::{self, Expected, Failures, Output, scenarios_named, server};

/// Scenarios with several inputs, of all kinds of content.
const NAMES: [&str; 13] = [
    "four_inputs",
    "value_ties",
    "extreme_timestamps",
    "types_regular",
    "type_vector_variable",
    "sets_and_maps",
    "complex_under_deletions",
    "statics",
    "partition_deletions",
    "range_overlapping",
    "ttl_purged",
    "random_mixed_2",
    "wide_ranges",
];

#[test]
fn versions() {
    if !campaign::is_full() {
        return;
    }
    let mut servers = Vec::new();
    for mode in Mode::ALL {
        let Some(cassandra) = server(mode) else {
            return;
        };
        servers.push(cassandra);
    }
    let mut failures = Failures::default();
    for scenario in scenarios_named(&NAMES) {
        failures.add(&scenario.name, run(&mut servers, &scenario));
    }
    failures.check();
}

fn run(servers: &mut [Shared], scenario: &Scenario) -> Result<Vec<String>> {
    let place = tempfile::tempdir()?;
    let mut inputs: Vec<PathBuf> = Vec::new();
    let mut newest = None;
    // The first input is nb, the second oa, the third pa, the fourth ea.
    for (turn, cassandra) in servers.iter_mut().enumerate() {
        let directory = place.path().join(cassandra.mode().version());
        let case = Case::prepare(cassandra, scenario, &directory)?;
        for (n, input) in case.inputs.iter().enumerate() {
            if n % Mode::ALL.len() == turn {
                inputs.push(input.clone());
            }
        }
        if turn + 1 == Mode::ALL.len() {
            newest = Some(case);
        }
    }
    let cassandra = servers.last_mut().context("no server")?;
    let mut case = newest.context("no case")?;
    case.inputs = inputs;
    let compacted = case.compact(cassandra, &place.path().join("cassandra"))?;
    let expected = Expected::of(cassandra, &case.table, &compacted, &[])?;
    let expected = expected.context("no output")?;
    let mut failures: Vec<String> = cassandra
        .verify(&case.table, &expected.data)?
        .iter()
        .map(|finding| format!("oracle: {finding}"))
        .collect();
    for mode in Mode::ALL {
        let output = Output::of(mode);
        let directory = place.path().join(format!("ours-{mode}"));
        let found = support::ours(cassandra, &case, output, &directory, Some(&expected))?;
        failures.extend(found.into_iter().map(|line| format!("to {mode}: {line}")));
    }
    Ok(failures)
}
