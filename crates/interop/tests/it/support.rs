//! What the modules share.

use std::path::{Path, PathBuf};

use anyhow::Result;
use interop::cases::Case;
use interop::ours::{self, Compression, MergeRequest};
use interop::scenarios::{self, Scenario};
use interop::{Cassandra, Mode, Options, compare};

/// A server, or `None` where there is no Cassandra (said loudly).
pub(crate) fn server(mode: Mode) -> Option<Cassandra> {
    if interop::skip::without_cassandra() {
        return None;
    }
    Some(Cassandra::start(mode, &Options::default()).expect("Cassandra starts"))
}

/// Runs each scenario of the mode, and fails at the end with everything that went wrong, by name.
pub(crate) fn each(
    mode: Mode,
    mut run: impl FnMut(&mut Cassandra, &Scenario) -> Result<Vec<String>>,
) {
    let Some(mut cassandra) = server(mode) else {
        return;
    };
    let mut failures = Vec::new();
    let mut count = 0;
    for scenario in scenarios::selected() {
        if !scenario.modes.contains(&mode) {
            continue;
        }
        count += 1;
        match run(&mut cassandra, &scenario) {
            Ok(found) => failures.extend(
                found
                    .into_iter()
                    .map(|line| format!("{mode}/{}: {line}", scenario.name)),
            ),
            Err(error) => failures.push(format!("{mode}/{}: {error:#}", scenario.name)),
        }
    }
    println!("{mode}: {count} scenarios, {} failures", failures.len());
    assert!(
        failures.is_empty(),
        "{} failures:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

/// Cassandra's own compaction, against which an output of ours is held.
pub(crate) struct Expected<'a> {
    /// Its Data.db.
    pub(crate) data: &'a Path,
    /// Canonical rows of it.
    pub(crate) rows: String,
    /// Its statistics must be ours too; not where versions are mixed.
    pub(crate) metadata: bool,
    /// Equal clusterings may have other bytes; then statistics are not compared either.
    pub(crate) any_spelling: bool,
}

/// What our merge writes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    /// Version.
    pub(crate) version: Mode,
    /// The inputs' choice when absent.
    pub(crate) compression: Option<Compression>,
}

/// Merges the case's inputs and lists everything that Cassandra finds wrong with the result.
pub(crate) fn ours(
    cassandra: &mut Cassandra,
    case: &Case,
    output: Output,
    directory: &Path,
    expected: Option<&Expected<'_>>,
) -> Result<Vec<String>> {
    let request = MergeRequest {
        version: output.version.version().to_owned(),
        now_s: case.now_s,
        gc_before_s: case.gc_before_s,
        complete: case.others.is_empty(),
        others: case.others.clone(),
        schema: case.schema.clone(),
        compression: output.compression,
    };
    let output = match ours::merge(&case.inputs, directory, &request) {
        Ok(output) => output,
        Err(error) => return Ok(vec![format!("ours: merge failed: {error:#}")]),
    };
    hold(cassandra, case, output, expected)
}

/// Lists everything that Cassandra finds wrong with an output of ours.
pub(crate) fn hold(
    cassandra: &mut Cassandra,
    case: &Case,
    output: Option<PathBuf>,
    expected: Option<&Expected<'_>>,
) -> Result<Vec<String>> {
    let (output, expected) = match (output, expected) {
        (None, None) => return Ok(Vec::new()),
        (Some(_), None) => {
            return Ok(vec![
                "ours: an output where Cassandra leaves none".to_owned(),
            ]);
        }
        (None, Some(_)) => {
            return Ok(vec![
                "ours: no output where Cassandra leaves one".to_owned(),
            ]);
        }
        (Some(output), Some(expected)) => (output, expected),
    };
    let findings = cassandra.verify(&case.table, &output)?;
    let mut failures: Vec<String> = findings.iter().map(ToString::to_string).collect();
    match cassandra.dump(&case.table, &output) {
        Ok(found) if expected.any_spelling => {
            let expected = compare::without_spelling(&expected.rows)?;
            let found = compare::without_spelling(&found)?;
            failures.extend(
                compare::lines(&expected, &found).map(|text| format!("rows differ, {text}")),
            );
        }
        Ok(found) => {
            failures.extend(
                compare::lines(&expected.rows, &found).map(|text| format!("rows differ, {text}")),
            );
        }
        Err(error) => failures.push(format!("dump failed: {error:#}")),
    }
    if std::env::var_os("COMPACTOR_INTEROP_PARITY").is_some() {
        parity(cassandra, case, expected.data, &output)?;
    }
    if expected.metadata && !expected.any_spelling {
        match metadata(cassandra, case, expected.data, &output) {
            Ok(differences) => {
                failures.extend(
                    differences
                        .into_iter()
                        .map(|text| format!("metadata{text}")),
                );
            }
            Err(error) => failures.push(format!("metadata: {error:#}")),
        }
    }
    Ok(failures
        .into_iter()
        .map(|line| format!("ours: {line}"))
        .collect())
}

/// Differences of Statistics.db and of the compression's parameters.
fn metadata(
    cassandra: &mut Cassandra,
    case: &Case,
    theirs: &Path,
    ours: &Path,
) -> Result<Vec<String>> {
    let mut both = Vec::new();
    for data in [theirs, ours] {
        let mut metadata = cassandra.metadata(&case.table, data)?;
        // Two LZ4 encoders do not find the same matches.
        if let Some(stats) = metadata["stats"].as_object_mut() {
            stats.remove("compression_ratio");
        }
        // How hard the encoder tries is the writer's own affair.
        if let Some(compression) = metadata["compression"].as_object_mut() {
            compression.remove("options");
        }
        both.push(metadata);
    }
    let mut differences = Vec::new();
    compare::json("", &both[0], &both[1], &mut differences);
    Ok(differences)
}

/// Prints which components are byte for byte Cassandra's: not required, but where they differ one wants to know why.
fn parity(cassandra: &mut Cassandra, case: &Case, theirs: &Path, ours: &Path) -> Result<()> {
    let expected = cassandra.hashes(&case.table, theirs)?;
    let found = cassandra.hashes(&case.table, ours)?;
    let mut differing = Vec::new();
    if let (Some(expected), Some(found)) = (expected.as_object(), found.as_object()) {
        for (component, hash) in expected {
            if found.get(component) != Some(hash) {
                differing.push(component.as_str());
            }
        }
    }
    println!("PARITY {}: differing {differing:?}", case.table.keyspace);
    Ok(())
}
