//! Inputs that Cassandra wrote, merged in passes of two at a time: every byte is that of one pass, which is held against
//! Cassandra's own compaction elsewhere.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use compactor::{MergeReport, NoObserver, TombstoneOption};
use interop::cases::Case;
use interop::ours::{self, MergeRequest};
use interop::scenarios::Scenario;
use interop::{Cassandra, Mode};

use crate::support::each;

#[test]
fn nb() {
    each(Mode::Nb, run);
}

#[test]
fn pa() {
    each(Mode::Pa, run);
}

fn run(cassandra: &mut Cassandra, scenario: &Scenario) -> Result<Vec<String>> {
    if scenario.inputs.len() - scenario.others < 3 {
        return Ok(Vec::new());
    }
    let place = tempfile::tempdir()?;
    let case = Case::prepare(cassandra, scenario, &place.path().join("inputs"))?;
    let request = MergeRequest {
        version: cassandra.mode().version().to_owned(),
        now_s: case.now_s,
        gc_before_s: case.gc_before_s,
        complete: case.others.is_empty(),
        others: case.others.clone(),
        provided: None,
        schema: case.schema.clone(),
        compression: None,
    };
    let merge = |name: &str, in_passes: bool| -> Result<_> {
        let output = place.path().join(name);
        let mut options = ours::options(&case.inputs, &output, &request)?;
        if in_passes {
            // What shadows the inputs is read beside two of them, all at a time; four descriptors each.
            options.open_files = Some(match options.overlapping_tombstones {
                TombstoneOption::None => 0,
                TombstoneOption::Row | TombstoneOption::Cell => 4 * (2 + case.others.len() as u64),
            });
        }
        let report = compactor::merge(options, &mut NoObserver)?;
        Ok((counts(&report), report.passes, files(&output)?))
    };
    let one = merge("one", false)?;
    let several = merge("several", true)?;
    let mut failures = Vec::new();
    // Where all but two are fully expired, nothing is to be merged beforehand.
    println!("{}: {} passes", scenario.name, several.1);
    if one.0 != several.0 {
        failures.push(format!("counts differ: {} and {}", one.0, several.0));
    }
    let names = |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    if names(&one.2) != names(&several.2) {
        failures.push(format!(
            "components: {:?}, {:?}",
            names(&one.2),
            names(&several.2)
        ));
    }
    for (name, bytes) in &one.2 {
        if several.2.get(name) != Some(bytes) {
            failures.push(format!("{name} differs"));
        }
    }
    Ok(failures)
}

fn counts(report: &MergeReport) -> String {
    format!(
        "{:?}",
        (
            &report.merge_counts,
            report.rows_read,
            report.rows_written,
            report.range_tombstone_markers_read,
            &report.purged,
        )
    )
}

fn files(directory: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut files = BTreeMap::new();
    // Where everything was purged there is no directory.
    for entry in std::fs::read_dir(directory).into_iter().flatten() {
        let path = entry?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        files.insert(name, std::fs::read(&path)?);
    }
    Ok(files)
}
