//! Inputs that Cassandra wrote, merged in passes of two at a time: every byte is that of one pass, which is held against
//! Cassandra's own compaction elsewhere.

use std::collections::BTreeMap;

use anyhow::Result;
use compactor::{MergeReport, NoObserver};
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
            options = ours::in_passes(options);
        }
        let report = compactor::merge(options, &mut NoObserver)?;
        Ok((counts(&report), report.passes, ours::files(&output)?))
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
