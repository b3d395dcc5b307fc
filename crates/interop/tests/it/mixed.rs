//! Inputs of different versions in one merge: Cassandra in mode NONE reads them all, and so must we, whatever the output.

use std::path::PathBuf;

use anyhow::{Context, Result};
use compactor_testkit::campaign;
use interop::Mode;
use interop::cases::Case;
use interop::pool::Shared;
use interop::scenarios::{self, Scenario};

use crate::support::{self, Expected, Output, server};

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
    let selected = scenarios::selected();
    let mut failures = Vec::new();
    for scenario in selected
        .iter()
        .filter(|scenario| NAMES.contains(&scenario.name.as_str()))
    {
        match run(&mut servers, scenario) {
            Ok(found) => failures.extend(
                found
                    .into_iter()
                    .map(|line| format!("{}: {line}", scenario.name)),
            ),
            Err(error) => failures.push(format!("{}: {error:#}", scenario.name)),
        }
    }
    assert!(
        failures.is_empty(),
        "{} failures:\n{}",
        failures.len(),
        failures.join("\n")
    );
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
    let output = compacted.outputs.first().context("no output")?;
    let mut failures: Vec<String> = cassandra
        .verify(&case.table, output)?
        .iter()
        .map(|finding| format!("oracle: {finding}"))
        .collect();
    let rows = cassandra.dump(&case.table, output)?;
    let expected = Expected {
        data: output,
        rows,
        granted: Vec::new(),
    };
    for mode in Mode::ALL {
        let output = Output {
            version: mode,
            compression: None,
        };
        let directory = place.path().join(format!("ours-{mode}"));
        let found = support::ours(cassandra, &case, output, &directory, Some(&expected))?;
        failures.extend(found.into_iter().map(|line| format!("to {mode}: {line}")));
    }
    Ok(failures)
}
