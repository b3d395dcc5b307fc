//! Comparison of merges in passes of two inputs at a time with merges of the same inputs in one pass: every byte is
//! equal.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Result;
use compactor::{MergeReport, NoObserver, TombstoneOption};

use crate::ours::{self, MergeRequest};

/// Comparison of the two merges.
#[derive(Debug, Default)]
pub struct Compared {
    /// Failures, a line each: a merge failed, or was not done in the intended number of passes.
    pub failures: Vec<String>,
    /// Differences, a line each.
    pub differences: Vec<String>,
    /// Warnings of the merge in passes.
    pub warnings: Vec<String>,
}

/// Merges three inputs or more both ways, into directories in `directory`. Fewer need no passes.
///
/// # Errors
/// Files that cannot be read, and a request that is not valid.
pub fn compare(inputs: &[PathBuf], request: &MergeRequest, directory: &Path) -> Result<Compared> {
    let mut compared = Compared::default();
    if inputs.len() < 3 {
        return Ok(compared);
    }
    let one_place = directory.join("one-pass");
    let one = ours::options(inputs, &one_place, request)?;
    let several_place = directory.join("passes");
    let several = ours::in_passes(ours::options(inputs, &several_place, request)?);
    let is_shadowed = several.overlapping_tombstones != TombstoneOption::None;
    let [one, several] = [("in one pass", one), ("in passes", several)].map(|(how, options)| {
        let merged = compactor::merge::merge(options, &mut NoObserver);
        merged.map_err(|error| compared.failures.push(format!("{how}: {error}")))
    });
    let (Ok(one), Ok(several)) = (one, several) else {
        return Ok(compared);
    };
    // The report has only inputs that have not fully expired: no others are merged. If none of the SSTables that may
    // shadow them is read in the end, more inputs fit into a pass.
    if !is_shadowed && (several.passes > 1) != (several.inputs.len() > 2) {
        let (count, passes) = (several.inputs.len(), several.passes);
        let line = format!("{count} inputs were merged in {passes} passes");
        compared.failures.push(line);
    }
    if one.passes != 1 {
        let line = format!("expected one pass, found {}", one.passes);
        compared.failures.push(line);
    }
    if counts(&one) != counts(&several) {
        let line = format!(
            "in passes: counts {}, not {}",
            counts(&several),
            counts(&one)
        );
        compared.differences.push(line);
    }
    let (one, in_passes) = (files(&one_place)?, files(&several_place)?);
    let mut names: Vec<&String> = one.keys().chain(in_passes.keys()).collect();
    names.sort();
    names.dedup();
    names.retain(|name| one.get(*name) != in_passes.get(*name));
    let lines = names
        .into_iter()
        .map(|name| format!("in passes: {name} differs"));
    compared.differences.extend(lines);
    compared.warnings = several.warnings;
    Ok(compared)
}

/// The files of a directory by name; none where everything was purged, and there is no directory.
fn files(directory: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten() {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        files.insert(name.into_owned(), std::fs::read(&path)?);
    }
    Ok(files)
}

fn counts(report: &MergeReport) -> String {
    format!(
        "{:?}",
        (
            report.rows_read,
            report.rows_written,
            report.range_tombstone_markers_read,
            &report.purged,
        )
    )
}
