//! Verdicts of Cassandra and of ours on one changed SSTable.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use anyhow::Result;
use compactor::verify::{Severity, VerifyOptions, VerifyReport};
use compactor::{Error, ErrorKind, NoObserver};
use compactor_io::{Io, IoOptions};
use compactor_sstable::Component;

use crate::cassandra::{Cassandra, CompactRequest, Table};
use crate::compare;
use crate::files;
use crate::ours::{self, MergeRequest};

/// Cassandra's verdict.
#[derive(Debug, Clone)]
pub(super) struct Theirs {
    open: Option<String>,
    read: Option<String>,
    verify: Option<String>,
    rows: String,
}

impl Theirs {
    pub(super) fn of(cassandra: &mut Cassandra, table: &Table, data: &Path) -> Result<Theirs> {
        let (verdict, rows) = cassandra.judge(table, data)?;
        let wrong = |name: &str| verdict[name].as_str().map(str::to_owned);
        Ok(Theirs {
            open: wrong("open"),
            read: wrong("read"),
            verify: wrong("verify"),
            rows: String::from_utf8(rows)?,
        })
    }

    /// Whether nothing is wrong.
    pub(super) fn is_good(&self) -> bool {
        self.open.is_none() && self.read.is_none() && self.verify.is_none()
    }

    /// Whether both reader and verifier refuse it.
    pub(super) fn is_refused(&self) -> bool {
        self.open.is_some() || self.read.is_some() && self.verify.is_some()
    }

    fn why(&self) -> String {
        let wrong = [&self.open, &self.read, &self.verify];
        let wrong: Vec<&str> = wrong.into_iter().flatten().map(String::as_str).collect();
        wrong.join("; ").chars().take(600).collect()
    }
}

/// A refusal, or damage found: component, structure and message.
#[derive(Debug, Clone)]
pub(super) struct Refusal {
    pub(super) by: &'static str,
    pub(super) kind: String,
    pub(super) text: String,
}

/// Our verdict.
#[derive(Debug, Default)]
pub(super) struct Ours {
    /// Refusals by merge, dump and metadata.
    pub(super) refusals: Vec<Refusal>,
    /// Damage that verification finds.
    pub(super) damage: Vec<Refusal>,
    /// Bugs: panics, and errors that are not about the SSTable.
    pub(super) bugs: Vec<String>,
    /// Whether the merge has warnings.
    pub(super) has_warnings: bool,
    has_notes: bool,
    /// Data.db of the merge's output.
    pub(super) merged: Option<std::path::PathBuf>,
}

impl Ours {
    pub(super) fn of(data: &Path, place: &Path) -> Result<Ours> {
        let _ = fs::remove_dir_all(place);
        fs::create_dir_all(place)?;
        let mut ours = Ours::default();
        let request = MergeRequest {
            version: files::version(data)?.to_string(),
            // At time 0 nothing has expired yet.
            now_s: 0,
            ..MergeRequest::default()
        };
        let options = ours::options(&[data.to_owned()], place, &request)?;
        let merge = || compactor::merge::merge(options, &mut NoObserver);
        if let Some(report) = ours.attempt("merge", merge) {
            ours.has_warnings = !report.warnings.is_empty();
            ours.merged = report.outputs.into_iter().next().map(|o| o.data_path);
        }
        ours.attempt("dump", || {
            let io = Io::new(IoOptions::default())?;
            let options = compactor::dump::DumpOptions::new(0);
            compactor::dump::dump(&io, data, &options, &NoObserver, &mut Vec::new())
        });
        ours.attempt("metadata", || {
            let io = Io::new(IoOptions::default())?;
            let options = compactor::metadata::MetadataOptions::new(0);
            compactor::metadata::read(&io, data, &options)
        });
        let before = ours.refusals.len();
        let verified: Option<VerifyReport> = ours.attempt("verify", || {
            let io = Io::new(IoOptions::default())?;
            compactor::verify::verify(&io, data, &VerifyOptions::default(), &mut NoObserver)
        });
        ours.damage = ours.refusals.split_off(before);
        if let Some(report) = verified {
            ours.has_notes = report.notes > 0;
            let damage = (report.findings.into_iter())
                .filter(|finding| finding.severity == Severity::Damage)
                .map(|finding| Refusal {
                    by: "verify",
                    kind: format!("{} {}", finding.component, finding.structure),
                    text: finding.to_string(),
                });
            ours.damage.extend(damage);
        }
        Ok(ours)
    }

    /// Calls one of our functions; its error is a refusal.
    fn attempt<T>(
        &mut self,
        by: &'static str,
        call: impl FnOnce() -> Result<T, Error>,
    ) -> Option<T> {
        match catch_unwind(AssertUnwindSafe(call)) {
            Ok(Ok(done)) => Some(done),
            Ok(Err(error)) => {
                if [
                    ErrorKind::Corrupt,
                    ErrorKind::Unsupported,
                    ErrorKind::InvalidInput,
                ]
                .contains(&error.kind())
                {
                    let (kind, text) = (kind_of(&error), error.to_string());
                    self.refusals.push(Refusal { by, kind, text });
                } else {
                    self.bugs.push(format!("{by}: {error}"));
                }
                None
            }
            Err(_) => {
                self.bugs.push(format!("{by} panicked"));
                None
            }
        }
    }

    /// Whether nothing is reported about the SSTable.
    pub(super) fn is_silent(&self) -> bool {
        self.refusals.is_empty() && self.damage.is_empty() && !self.has_warnings && !self.has_notes
    }
}

/// Component and structure of a refusal.
fn kind_of(error: &Error) -> String {
    let Some(corruption) = error.corruption() else {
        return format!("? {:?}", error.kind());
    };
    let component = corruption.component.map_or("?", |c| c.file_suffix());
    // A merge's check of components puts the structure first in the text.
    let inner = corruption.expected.split_once(": ").map(|(first, _)| first);
    let structure = match (corruption.structure, inner) {
        ("component", Some(inner)) => inner.to_owned(),
        ("stats", Some(field)) => format!("stats.{field}"),
        (structure, _) => structure.to_owned(),
    };
    format!("{component} {structure}")
}

/// Returns the differences between the rows that Cassandra reads and those of our merge.
pub(super) fn rows_differ(
    cassandra: &mut Cassandra,
    table: &Table,
    data: &Path,
    theirs: &Theirs,
    merged: Option<&Path>,
    place: &Path,
) -> Result<Vec<String>> {
    let found = match merged {
        Some(merged) => cassandra.dump(table, merged)?,
        None => String::new(),
    };
    if found == theirs.rows {
        return Ok(Vec::new());
    }
    // A rewrite drops data that its own row or partition shadows: compare with Cassandra's.
    let _ = fs::remove_dir_all(place);
    let inputs = [data.to_owned()];
    let request = CompactRequest::new(&inputs, place, 0);
    let expected = match cassandra.compact(table, &request) {
        Ok(compacted) => match compacted.outputs.first() {
            Some(output) => cassandra.dump(table, output)?,
            None => String::new(),
        },
        // Without Cassandra's rewrite there is no expected result.
        Err(_) => return Ok(Vec::new()),
    };
    let lines = compare::lines(&expected, &found);
    Ok(lines
        .map(|line| format!("rows: {line}"))
        .into_iter()
        .collect())
}

/// Verdicts that contradict the rule, on an SSTable in which a component was changed.
pub(super) fn contradictions(changed: Component, theirs: &Theirs, ours: &Ours) -> Vec<String> {
    let mut found = ours.bugs.clone();
    if theirs.is_good() {
        for refusal in &ours.refusals {
            if !super::is_stricter_on_purpose(changed, &refusal.kind) {
                let Refusal { by, kind, text } = refusal;
                found.push(format!(
                    "sound to Cassandra; refused by {by} [{kind}]: {text}"
                ));
            }
        }
        for damage in &ours.damage {
            if !super::is_stricter_in_verify(changed, &damage.kind) {
                let Refusal { kind, text, .. } = damage;
                found.push(format!(
                    "sound to Cassandra; damaged according to verify [{kind}]: {text}"
                ));
            }
        }
    }
    if theirs.is_refused() && ours.is_silent() {
        found.push(format!("accepted silently; Cassandra: {}", theirs.why()));
    }
    found
}
