//! Shared by the modules.

use std::path::{Path, PathBuf};

use anyhow::Result;
use compactor_testkit::{Need, campaign, skip};
use interop::cases::Case;
use interop::ours::{self, Compression, MergeRequest};
use interop::parity::{self, Exception};
use interop::pool::Shared;
use interop::scenarios::{self, Scenario};
use interop::{Cassandra, Mode, Release, compare, old};

/// A server that tests share, or `None` if there is no Cassandra.
#[track_caller]
pub(crate) fn server(mode: Mode) -> Option<Shared> {
    if interop::skip::without_cassandra() {
        return None;
    }
    Some(Shared::take(mode, mode.release()).expect("Cassandra starts"))
}

/// Modes that a test runs in: all of these, or one of them in a short campaign.
#[track_caller]
pub(crate) fn modes<const N: usize>(all: [Mode; N]) -> Vec<Mode> {
    let is_first = |mode: &Mode| match all.contains(&Mode::Pa) {
        true => *mode == Mode::Pa,
        false => *mode == all[N - 1],
    };
    let every = campaign::is_full_or_in_part();
    let selected = all.iter().filter(|mode| every || is_first(mode));
    selected.copied().collect()
}

/// A server for a test that may harm it, which no other has after it, or `None` if there is no Cassandra.
#[track_caller]
pub(crate) fn last_use_of_server(mode: Mode) -> Option<Shared> {
    server(mode).map(Shared::for_the_last_time)
}

/// A Cassandra 5 that tests share.
pub(crate) fn five(mode: Mode) -> Shared {
    Shared::take(mode, Release::Five).expect("Cassandra starts")
}

/// Whether there is a Cassandra 5.
#[track_caller]
pub(crate) fn has_five() -> bool {
    if interop::skip::without_cassandra() {
        return false;
    }
    let version = Release::Five.version();
    match Release::Five.prepare() {
        Ok(()) => true,
        Err(error) => {
            let reason = format!("no Cassandra {version}: {error:#}");
            assert!(!old::is_named(&version), "{reason}");
            skip(Need::Cassandra, reason);
            false
        }
    }
}

/// Runs each scenario of the mode, and fails at the end with everything that went wrong, by name.
#[track_caller]
pub(crate) fn each(mode: Mode, run: impl FnMut(&mut Cassandra, &Scenario) -> Result<Vec<String>>) {
    let Some(mut cassandra) = server(mode) else {
        return;
    };
    let mut selected = scenarios::selected();
    selected.retain(|scenario| scenario.modes.contains(&mode));
    let is_named = std::env::var_os("COMPACTOR_INTEROP_SCENARIO").is_some();
    if !is_named {
        selected = campaign::some_of(selected);
    }
    each_of(&mut cassandra, &selected, run);
}

/// Runs scenarios, and fails at the end with everything that went wrong, by name.
pub(crate) fn each_of(
    cassandra: &mut Cassandra,
    scenarios: &[Scenario],
    mut run: impl FnMut(&mut Cassandra, &Scenario) -> Result<Vec<String>>,
) {
    let mode = cassandra.mode();
    let mut failures = Vec::new();
    for scenario in scenarios {
        match run(cassandra, scenario) {
            Ok(found) => failures.extend(
                found
                    .into_iter()
                    .map(|line| format!("{mode}/{}: {line}", scenario.name)),
            ),
            Err(error) => failures.push(format!("{mode}/{}: {error:#}", scenario.name)),
        }
    }
    println!(
        "Cassandra {} writing {mode}: {} scenarios, {} failures",
        cassandra.release(),
        scenarios.len(),
        failures.len()
    );
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
    /// Parts that may differ, where ours has the version that the server writes.
    pub(crate) granted: Vec<Exception>,
}

/// Form of our merge's output.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    /// Version.
    pub(crate) version: Mode,
    /// The inputs' choice when absent.
    pub(crate) compression: Option<Compression>,
}

/// The merge of a case.
pub(crate) fn request(case: &Case, output: Output) -> MergeRequest {
    MergeRequest {
        version: output.version.version().to_owned(),
        now_s: case.now_s,
        gc_before_s: case.gc_before_s,
        complete: case.others.is_empty(),
        others: case.others.clone(),
        provided: None,
        schema: case.schema.clone(),
        compression: output.compression,
    }
}

/// Merges the case's inputs and lists everything that Cassandra finds wrong with the result.
pub(crate) fn ours(
    cassandra: &mut Cassandra,
    case: &Case,
    output: Output,
    directory: &Path,
    expected: Option<&Expected<'_>>,
) -> Result<Vec<String>> {
    let output = match ours::merge(&case.inputs, directory, &request(case, output)) {
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
        Ok(found) => {
            failures.extend(
                compare::lines(&expected.rows, &found).map(|text| format!("rows differ, {text}")),
            );
        }
        Err(error) => failures.push(format!("dump failed: {error:#}")),
    }
    let version = |data: &Path| {
        data.file_name()
            .map(|name| name.as_encoded_bytes()[..2].to_vec())
    };
    if failures.is_empty() && version(&output) == version(expected.data) {
        failures = parity::differences(
            cassandra,
            &case.table,
            expected.data,
            &output,
            &expected.granted,
        )?;
    }
    Ok(failures
        .into_iter()
        .map(|line| format!("ours: {line}"))
        .collect())
}
