//! SSTables written by Cassandra 3.0 to 4.1, of every version before `oa`: our dump, verification and merge of them,
//! alone and with newer ones, compared with Cassandra 6's compaction of the same.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use compactor_testkit::campaign;
use interop::cases::{self, Case};
use interop::old::{self, OldCassandra};
use interop::ours::{self, Compression};
use interop::parity::Exception;
use interop::scenarios::{self, Scenario};
use interop::{Cassandra, Mode, compare};

use crate::old_scenarios;
use crate::support::{
    self, Expected, Failures, Output, are_scenarios_named, scenarios_named, server,
};

/// Scenarios run unless `COMPACTOR_INTEROP_SCENARIO` names others.
const NAMES: [&str; 14] = [
    "four_inputs",
    "sets_and_maps",
    "statics",
    "counters",
    "partition_deletions",
    "range_overlapping",
    "range_nested",
    "wide_ranges",
    "random_mixed_2",
    "storage_counters",
    "storage_dense",
    "storage_fixed",
    "storage_no_value",
    "ttl_purged",
];

/// A merge time after all expirations that versions before `oa` can still store.
const LATER_S: i64 = 2_100_000_000;

#[test]
fn written_by_old_releases() {
    if !campaign::is_full() {
        return;
    }
    let Some(mut judge) = server(Mode::Pa) else {
        return;
    };
    let mut failures = Failures::default();
    for (release, version) in old::selected() {
        let Some(mut writer) = OldCassandra::start(release).expect("the old release starts") else {
            continue;
        };
        let (mut compared, mut left_out) = (0, Vec::new());
        for mut scenario in selected() {
            // The judge holds the tables of all releases, which need different names.
            scenario.name = format!("{}_{version}", scenario.name);
            let place = tempfile::tempdir().expect("a temporary directory");
            let written = cases::write_inputs(&mut writer, &scenario, &place.path().join("old"));
            let inputs = match written {
                Ok(inputs) => inputs,
                // The scenario has types or statements of later releases.
                Err(error) if are_scenarios_named() => {
                    let text = format!("{error:#}");
                    let text = text.lines().next().unwrap_or_default();
                    left_out.push(format!("{}: {text}", scenario.name));
                    continue;
                }
                Err(error) => {
                    failures.add(&scenario.name, Err(error));
                    continue;
                }
            };
            compared += 1;
            let found = run(&mut judge, &scenario, inputs, version, place.path());
            failures.add(&scenario.name, found);
        }
        println!(
            "Cassandra {release} ({version}): {compared} scenarios, {} that it cannot write",
            left_out.len()
        );
        left_out.iter().for_each(|text| println!("  {text}"));
    }
    failures.check();
}

fn selected() -> Vec<Scenario> {
    let mut selected = if are_scenarios_named() {
        scenarios::selected()
    } else {
        scenarios_named(&NAMES)
    };
    selected.push(old_scenarios::types());
    selected
}

fn run(
    judge: &mut Cassandra,
    scenario: &Scenario,
    inputs: Vec<PathBuf>,
    version: &str,
    place: &Path,
) -> Result<Vec<String>> {
    let newer = Case::prepare(judge, scenario, &place.join("new"))?;
    let mut failures = Vec::new();
    // Cassandra's tool has no schema to tell it that user types of 3.0 are frozen (CASSANDRA-15035).
    let has_user_types = scenario.name.starts_with(old_scenarios::TYPES_NAME);
    let is_dumped = !(has_user_types && matches!(version, "ma" | "mb" | "mc"));
    for input in &inputs {
        let name = input.file_name().context("a file name")?.to_string_lossy();
        anyhow::ensure!(name.starts_with(version), "{name} is not {version}");
        if is_dumped {
            judge.set_now(LATER_S)?;
            let expected = judge.sstabledump(&newer.table, input)?;
            let found = ours::dump(input, LATER_S)?;
            let differences = compare::json_lines(&expected, &found)?;
            failures.extend(
                differences
                    .iter()
                    .take(3)
                    .map(|text| format!("dump of {name}: {text}")),
            );
        }
        let damage = ours::damage(input)?;
        if !damage.is_empty() {
            failures.push(format!("verify of {name}: {damage:?}"));
        }
    }
    let mixed: Vec<PathBuf> = inputs
        .iter()
        .zip(newer.inputs.iter().chain(&newer.others))
        .enumerate()
        .map(|(n, (old, new))| if n % 2 == 0 { old } else { new })
        .cloned()
        .collect();
    let of = |inputs: Vec<PathBuf>, gc_before_s| Case {
        table: newer.table.clone(),
        inputs,
        others: Vec::new(),
        schema: newer.schema.clone(),
        now_s: LATER_S,
        gc_before_s,
    };
    for (what, case, output) in [
        ("kept", of(inputs.clone(), None), Mode::Nb),
        ("purged", of(inputs, Some(LATER_S)), Mode::Pa),
        ("mixed", of(mixed, None), Mode::Oa),
    ] {
        let found = merge(judge, &case, output, &place.join(what))?;
        failures.extend(found.into_iter().map(|text| format!("{what}: {text}")));
    }
    Ok(failures)
}

fn merge(judge: &mut Cassandra, case: &Case, output: Mode, place: &Path) -> Result<Vec<String>> {
    let compacted = case.compact(judge, &place.join("cassandra"))?;
    let case = &case.named_as(&compacted, &place.join("named"))?;
    let granted = &[Exception::ForeignInputs];
    let expected = Expected::of(judge, &case.table, &compacted, granted)?;
    // Chunk length of the judge's table.
    let compression = Some(Compression::Lz4 { chunk_kib: 16 });
    let output = Output {
        version: output,
        compression,
    };
    support::ours(judge, case, output, &place.join("ours"), expected.as_ref())
}
