//! Every scenario in every mode: Cassandra's own inputs and compaction pass our verification, and our merge of the
//! same inputs passes it too and holds the same rows. A merge in passes produces the same bytes.

use std::path::Path;

use anyhow::{Result, ensure};
use compactor_testkit::campaign;
use interop::cases::Case;
use interop::ours;
use interop::scenarios::Scenario;
use interop::{Cassandra, Mode, compare, passes};

use crate::support::{self, Expected, Output, each};

#[test]
fn nb() {
    if !campaign::is_full() {
        return;
    }
    each(Mode::Nb, run);
}

#[test]
fn oa() {
    if !campaign::is_full() {
        return;
    }
    each(Mode::Oa, run);
}

#[test]
fn pa() {
    each(Mode::Pa, run);
}

#[test]
fn ea() {
    if !campaign::is_full() {
        return;
    }
    each(Mode::Ea, run);
}

pub(crate) fn run(cassandra: &mut Cassandra, scenario: &Scenario) -> Result<Vec<String>> {
    let place = tempfile::tempdir()?;
    let case = Case::prepare(cassandra, scenario, &place.path().join("inputs"))?;
    let mut failures = Vec::new();
    // One mode per format is enough to test that the verifier accepts what Cassandra writes.
    let is_native = matches!(cassandra.mode(), Mode::Pa | Mode::Ea);
    let seen = case.inputs.iter().chain(&case.others);
    for input in seen.filter(|_| !scenario.hides_cells) {
        let name = input
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        if is_native {
            for finding in cassandra.verify(&case.table, input)? {
                failures.push(format!("oracle: {name}: {finding}"));
            }
        }
        for difference in sstabledump(cassandra, &case, input)? {
            failures.push(format!("ours: dump of {name}: {difference}"));
        }
    }
    let compacted = case.compact(cassandra, &place.path().join("cassandra"))?;
    let case = case.named_as(&compacted, &place.path().join("named"))?;
    ensure!(
        compacted.outputs.len() <= 1,
        "oracle: {} outputs",
        compacted.outputs.len()
    );
    ensure!(
        compacted.outputs.is_empty() == scenario.empty,
        "oracle: empty is {}",
        !scenario.empty
    );
    let expected = Expected::of(cassandra, &case.table, &compacted, &[])?;
    if is_native && let Some(expected) = &expected {
        for finding in cassandra.verify(&case.table, &expected.data)? {
            failures.push(format!("oracle: {finding}"));
        }
    }
    let output = Output::of(cassandra.mode());
    let directory = place.path().join("ours");
    let found = support::ours(cassandra, &case, output, &directory, expected.as_ref())?;
    failures.extend(found);
    let request = support::request(&case, output);
    let in_passes = passes::compare(&case.inputs, &request, place.path())?;
    let lines = in_passes.failures.into_iter().chain(in_passes.differences);
    failures.extend(lines.map(|line| format!("ours, {line}")));
    Ok(failures)
}

/// Returns the differences of our `dump` from `sstabledump -l`.
fn sstabledump(cassandra: &mut Cassandra, case: &Case, data: &Path) -> Result<Vec<String>> {
    cassandra.set_now(case.now_s)?;
    let found = match ours::dump(data, case.now_s) {
        Ok(found) => found,
        Err(error) => return Ok(vec![format!("{error:#}")]),
    };
    let expected = cassandra.sstabledump(&case.table, data)?;
    let mut differences = compare::json_lines(&expected, &found)?;
    differences.truncate(3);
    Ok(differences)
}
