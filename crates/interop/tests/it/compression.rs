//! Outputs whose compression differs from that of their inputs.

use anyhow::{Context, Result};
use compactor_testkit::campaign;
use interop::cases::Case;
use interop::ours::Compression;
use interop::parity::Exception;
use interop::scenarios::Scenario;
use interop::{Cassandra, Mode};

use crate::support::{self, Expected, Failures, Output, scenarios_named, server};

/// Small rows, wide partitions, values longer than any chunk, no compression to begin with.
const NAMES: [&str; 4] = [
    "random_mixed_1",
    "wide_ranges",
    "large_values",
    "uncompressed",
];

const CHOICES: [Compression; 4] = [
    Compression::Lz4 { chunk_kib: 4 },
    Compression::None,
    Compression::Lz4 { chunk_kib: 16 },
    Compression::Lz4 { chunk_kib: 256 },
];

#[test]
fn choices() {
    let Some(mut cassandra) = server(Mode::Pa) else {
        return;
    };
    let choices = campaign::some_of(CHOICES);
    let mut failures = Failures::default();
    for scenario in campaign::some_of(scenarios_named(&NAMES)) {
        failures.add(&scenario.name, run(&mut cassandra, &scenario, &choices));
    }
    failures.check();
}

fn run(
    cassandra: &mut Cassandra,
    scenario: &Scenario,
    choices: &[Compression],
) -> Result<Vec<String>> {
    let place = tempfile::tempdir()?;
    let case = Case::prepare(cassandra, scenario, &place.path().join("inputs"))?;
    let compacted = case.compact(cassandra, &place.path().join("cassandra"))?;
    let granted = &[Exception::OwnCompression];
    let expected = Expected::of(cassandra, &case.table, &compacted, granted)?;
    let expected = expected.context("no output")?;
    let mut failures = Vec::new();
    for (n, &compression) in choices.iter().enumerate() {
        let output = Output {
            version: Mode::Pa,
            compression: Some(compression),
        };
        let directory = place.path().join(format!("ours-{n}"));
        let found = support::ours(cassandra, &case, output, &directory, Some(&expected))?;
        failures.extend(
            found
                .into_iter()
                .map(|line| format!("{compression:?}: {line}")),
        );
    }
    Ok(failures)
}
