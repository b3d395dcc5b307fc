//! Helpers of the test modules.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use anyhow::Result;
use compactor_testkit::{Need, campaign, skip};
use interop::cases::Case;
use interop::ours::{self, Compression, MergeRequest};
use interop::parity::{self, Exception};
use interop::pool::Shared;
use interop::scenarios::{self, Scenario};
use interop::{Cassandra, Compacted, Mode, Release, Table, compare, files, old};

/// A server that tests share, or `None` if there is no Cassandra.
#[track_caller]
pub(crate) fn server(mode: Mode) -> Option<Shared> {
    if interop::skip::without_cassandra() {
        return None;
    }
    Some(Shared::take(mode, mode.release()).expect("Cassandra starts"))
}

/// Servers of all of these modes, or of one of them in a short campaign; none if there is no Cassandra.
#[track_caller]
pub(crate) fn servers<const N: usize>(all: [Mode; N]) -> impl Iterator<Item = Shared> {
    let first = if all.contains(&Mode::Pa) {
        Mode::Pa
    } else {
        all[N - 1]
    };
    let is_whole = campaign::is_full_or_in_part();
    let is_there = !interop::skip::without_cassandra();
    all.into_iter()
        .filter(move |mode| is_there && (is_whole || *mode == first))
        .map(|mode| Shared::take(mode, mode.release()).expect("Cassandra starts"))
}

/// A server for a test that may damage it and after which no other test gets it, or `None` if there is no Cassandra.
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

/// Whether the environment names the scenarios to run.
pub(crate) fn are_scenarios_named() -> bool {
    std::env::var_os("COMPACTOR_INTEROP_SCENARIO").is_some()
}

/// The selected scenarios that have one of these names.
pub(crate) fn scenarios_named(names: &[&str]) -> Vec<Scenario> {
    let mut selected = scenarios::selected();
    selected.retain(|scenario| names.contains(&scenario.name.as_str()));
    selected
}

/// Failures of several cases, a line each.
#[derive(Default)]
pub(crate) struct Failures(Vec<String>);

impl Failures {
    /// Adds the failures of a case; an error counts as one.
    pub(crate) fn add(&mut self, name: impl Display, found: Result<Vec<String>>) {
        let found = found.unwrap_or_else(|error| vec![format!("{error:#}")]);
        let lines = found.into_iter().map(|line| format!("{name}: {line}"));
        self.0.extend(lines);
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// Panics with all failures, if there are any.
    #[track_caller]
    pub(crate) fn check(self) {
        let lines = self.0.join("\n");
        assert!(self.0.is_empty(), "{} failures:\n{lines}", self.0.len());
    }
}

/// Panics with the failures of a case, if there are any.
#[track_caller]
pub(crate) fn check(name: impl Display, found: Result<Vec<String>>) {
    let mut failures = Failures::default();
    failures.add(name, found);
    failures.check();
}

/// Runs each scenario of the mode, and panics at the end with all failures, by name.
#[track_caller]
pub(crate) fn each(mode: Mode, run: impl FnMut(&mut Cassandra, &Scenario) -> Result<Vec<String>>) {
    let Some(mut cassandra) = server(mode) else {
        return;
    };
    let mut selected = scenarios::selected();
    selected.retain(|scenario| scenario.modes.contains(&mode));
    if !are_scenarios_named() {
        selected = campaign::some_of(selected);
    }
    each_of(&mut cassandra, &selected, run);
}

/// Runs scenarios, and panics at the end with all failures, by name.
pub(crate) fn each_of(
    cassandra: &mut Cassandra,
    scenarios: &[Scenario],
    mut run: impl FnMut(&mut Cassandra, &Scenario) -> Result<Vec<String>>,
) {
    let mode = cassandra.mode();
    let mut failures = Failures::default();
    for scenario in scenarios {
        let found = run(cassandra, scenario);
        failures.add(format_args!("{mode}/{}", scenario.name), found);
    }
    println!(
        "Cassandra {} writing {mode}: {} scenarios, {} failures",
        cassandra.release(),
        scenarios.len(),
        failures.count()
    );
    failures.check();
}

/// Cassandra's own compaction, with which an output of ours is compared.
pub(crate) struct Expected {
    /// Data.db of its output.
    pub(crate) data: PathBuf,
    /// Canonical rows of its output.
    pub(crate) rows: String,
    /// Permitted differences, where our output has the version that the server writes.
    granted: &'static [Exception],
}

impl Expected {
    /// The first output of a compaction, if there is one.
    pub(crate) fn of(
        cassandra: &mut Cassandra,
        table: &Table,
        compacted: &Compacted,
        granted: &'static [Exception],
    ) -> Result<Option<Expected>> {
        let data = compacted.outputs.first();
        data.map(|data| Expected::of_output(cassandra, table, data, granted))
            .transpose()
    }

    /// An output of a compaction.
    pub(crate) fn of_output(
        cassandra: &mut Cassandra,
        table: &Table,
        data: &Path,
        granted: &'static [Exception],
    ) -> Result<Expected> {
        Ok(Expected {
            data: data.to_owned(),
            rows: cassandra.dump(table, data)?,
            granted,
        })
    }
}

/// Form of our merge's output.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    /// Version.
    pub(crate) version: Mode,
    /// Compression; that of the inputs if absent.
    pub(crate) compression: Option<Compression>,
}

impl Output {
    /// A version, with the compression of the inputs.
    pub(crate) fn of(version: Mode) -> Output {
        Output {
            version,
            compression: None,
        }
    }
}

/// Request of our merge of a case.
pub(crate) fn request(case: &Case, output: Output) -> MergeRequest {
    MergeRequest {
        version: output.version.version().to_owned(),
        now_s: case.now_s,
        gc_before_s: case.gc_before_s,
        complete: case.others.is_empty(),
        others: case.others.clone(),
        provided: None,
        strict_liveness: None,
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
    expected: Option<&Expected>,
) -> Result<Vec<String>> {
    let output = match ours::merge(&case.inputs, directory, &request(case, output)) {
        Ok(output) => output,
        Err(error) => return Ok(vec![format!("ours: merge failed: {error:#}")]),
    };
    compare_output(cassandra, case, output, expected)
}

/// Lists everything that Cassandra finds wrong with an output of ours.
pub(crate) fn compare_output(
    cassandra: &mut Cassandra,
    case: &Case,
    output: Option<PathBuf>,
    expected: Option<&Expected>,
) -> Result<Vec<String>> {
    let (output, expected) = match (output, expected) {
        (None, None) => return Ok(Vec::new()),
        (Some(_), None) => {
            let failure = "ours: an output where Cassandra leaves none";
            return Ok(vec![failure.to_owned()]);
        }
        (None, Some(_)) => {
            let failure = "ours: no output where Cassandra leaves one";
            return Ok(vec![failure.to_owned()]);
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
    let theirs = &expected.data;
    if failures.is_empty() && files::version(&output)? == files::version(theirs)? {
        failures = parity::differences(cassandra, &case.table, theirs, &output, expected.granted)?;
    }
    Ok(failures
        .into_iter()
        .map(|line| format!("ours: {line}"))
        .collect())
}
