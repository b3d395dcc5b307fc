//! Our other commands on a plan's files: `verify` finds nothing in what Cassandra wrote, `dump` prints what
//! `sstabledump -l` does, `metadata` what `sstablemetadata` does, `scrub` loses nothing, and a merge in passes writes
//! what one in a single pass does.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use compactor::NoObserver;
use compactor::metadata::MetadataOptions;
use compactor::scrub::{ScrubOptions, scrub};
use compactor_io::{Io, IoOptions};

use super::metadata_text;
use super::plan::Plan;
use crate::cassandra::{Cassandra, CompactRequest, Table};
use crate::compare;
use crate::ours::{self, MergeRequest};
use crate::passes::{self, Compared};

/// Returns what is wrong with our verification, dump, metadata or scrub of an SSTable that Cassandra wrote.
pub(super) fn of_sstable(
    cassandra: &mut Cassandra,
    table: &Table,
    data: &Path,
    now_s: i64,
    scrubbed: &Path,
) -> Result<Vec<String>> {
    let mut differences = match ours::damage(data) {
        Ok(found) => found,
        Err(error) => vec![format!("{error:#}")],
    };
    for difference in &mut differences {
        *difference = format!("our verify of {}: {difference}", data.display());
    }
    match ours::dump(data, now_s) {
        // The `sstabledump` of 5.0 fails on values that have no JSON form.
        Ok(found) if !cassandra.release().starts_with("5.") => {
            cassandra.set_now(now_s)?;
            let expected = cassandra.sstabledump(table, data)?;
            let found = compare::json_lines(&expected, &found)?.into_iter().take(3);
            let labelled = |difference| format!("our dump of {}: {difference}", data.display());
            differences.extend(found.map(labelled));
        }
        Ok(_) => {}
        Err(error) => differences.push(format!("our dump of {}: {error:#}", data.display())),
    }
    match ours::metadata(data, now_s) {
        Ok(found) => {
            cassandra.set_now(now_s)?;
            let expected = cassandra.sstablemetadata(table, data)?;
            let found = metadata_text::difference(&expected, &found);
            let labelled = |difference| format!("our metadata of {}: {difference}", data.display());
            differences.extend(found.map(labelled));
        }
        Err(error) => differences.push(format!("our metadata of {}: {error:#}", data.display())),
    }
    if differences.is_empty() {
        let found = of_scrub(cassandra, table, data, scrubbed)?.into_iter();
        let labelled = |difference| format!("our scrub of {}: {difference}", data.display());
        differences.extend(found.map(labelled));
    }
    Ok(differences)
}

fn of_scrub(
    cassandra: &mut Cassandra,
    table: &Table,
    data: &Path,
    directory: &Path,
) -> Result<Vec<String>> {
    let io = Io::new(IoOptions::default())?;
    let options = ScrubOptions::new(directory);
    let report = match scrub(&io, data, &options, &mut NoObserver) {
        Ok(report) => report,
        Err(error) => return Ok(vec![format!("{error}")]),
    };
    let Some(output) = &report.output else {
        return Ok(vec!["nothing is left".to_owned()]);
    };
    let mut differences = Vec::new();
    if report.is_lossy() || !report.findings.is_empty() {
        differences.push(format!("{:?}, {:?}", report.losses, report.findings));
    }
    let found = cassandra.dump(table, &output.data_path)?;
    if is_unreadable(data)? {
        return Ok(differences);
    }
    if cassandra.dump(table, data)? != found {
        // A rewrite drops data that a deletion of its own partition shadows.
        let expected = rewritten(cassandra, table, data, &directory.join("rewritten"))?;
        differences.extend(compare::lines(&expected, &found));
    }
    Ok(differences)
}

/// Whether Cassandra cannot read this SSTable, which it wrote: everything is deleted or expires after 2038, and the
/// read of the least deletion time overflows.
pub(super) fn is_unreadable(data: &Path) -> Result<bool> {
    let io = Io::new(IoOptions::default())?;
    let metadata = compactor::metadata::read(&io, data, &MetadataOptions::new(0))?;
    let base = metadata.header.encoding_stats.min_local_deletion_time;
    Ok(base > i64::from(i32::MAX))
}

/// Cassandra's compaction of a single SSTable, with nothing purged.
fn rewritten(
    cassandra: &mut Cassandra,
    table: &Table,
    data: &Path,
    directory: &Path,
) -> Result<String> {
    let inputs = [data.to_owned()];
    // At time 0 nothing has expired yet.
    let request = CompactRequest::new(&inputs, directory, 0);
    let compacted = cassandra.compact(table, &request)?;
    let output = compacted.outputs.first().context("no output")?;
    cassandra.dump(table, output)
}

/// Returns the differences between a merge in passes of two inputs at a time and one in a single pass.
pub(super) fn of_passes(
    plan: &Plan,
    inputs: &[PathBuf],
    request: &MergeRequest,
    directory: &Path,
) -> Result<Vec<String>> {
    let Compared {
        failures: mut lines,
        differences,
        warnings,
    } = passes::compare(inputs, request, directory)?;
    if plan.depends_on_order() {
        let is_warned = |text: &String| text.starts_with("counters are merged in passes");
        let needs_warning = plan.has_counters() && !differences.is_empty();
        if needs_warning && !warnings.iter().any(is_warned) {
            lines.push("in passes: differs without a warning".to_owned());
        }
    } else {
        lines.extend(differences);
    }
    Ok(lines
        .into_iter()
        .map(|line| format!("merge {line}"))
        .collect())
}
