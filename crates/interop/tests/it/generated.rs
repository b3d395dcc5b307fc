//! Tables of `compactor generate`: Cassandra's verifier accepts them, and its compaction of them equals our merge byte
//! for byte. Unlike scenarios, these tables have many adjacent rows.

use std::path::PathBuf;

use anyhow::Result;
use compactor::generate::{Amount, GenerateOptions, Shape, generate};
use compactor_io::IoOptions;
use compactor_sstable::Version;
use compactor_testkit::campaign;
use interop::cases::Case;
use interop::parity::Exception;
use interop::{Cassandra, Mode, Table};

use crate::support::{self, Expected, Output, five, has_five, server};

/// Some rows of `timeseries` have expired.
const NOW_S: i64 = 1_780_000_000;

#[test]
fn generated_tables_are_valid_and_merge_as_in_cassandra_6() {
    if let Some(mut cassandra) = server(Mode::Pa) {
        all(&mut cassandra, Version::Pa);
    }
}

#[test]
fn generated_tables_are_valid_and_merge_as_in_cassandra_5() {
    if !campaign::is_full() {
        return;
    }
    if !has_five() {
        return;
    }
    for (mode, version) in [(Mode::Oa, Version::Oa), (Mode::Da, Version::Da)] {
        let mut cassandra = five(mode);
        all(&mut cassandra, version);
    }
}

fn all(cassandra: &mut Cassandra, version: Version) {
    for shape in campaign::some_of(Shape::ALL) {
        let name = format!("{} {version}", shape.name());
        support::check(name, run(cassandra, version, shape));
    }
}

fn run(cassandra: &mut Cassandra, version: Version, shape: Shape) -> Result<Vec<String>> {
    let place = tempfile::tempdir()?;
    let mut options = GenerateOptions::new(shape, place.path().join("inputs"));
    options.amount = Amount::Rows(1500);
    options.version = version;
    options.now_s = NOW_S;
    if shape != Shape::KeyValue {
        options.rows_per_partition = 300;
    }
    let report = generate(IoOptions::default(), options, &mut compactor::NoObserver)?;
    let inputs: Vec<PathBuf> = report
        .sstables
        .iter()
        .map(|s| s.data_path.clone())
        .collect();
    let table = Table::new("generated", shape.name());
    cassandra.adopt(&table, &inputs)?;
    cassandra.set_now(NOW_S)?;
    let mut failures = Vec::new();
    for input in &inputs {
        let findings = cassandra.verify(&table, input)?;
        failures.extend(findings.iter().map(|finding| format!("input: {finding}")));
    }
    // Without purging, and with everything purged that can be.
    for gc_before_s in [None, Some(NOW_S)] {
        let case = Case {
            table: table.clone(),
            inputs: inputs.clone(),
            others: Vec::new(),
            now_s: NOW_S,
            gc_before_s,
            schema: None,
        };
        let place = place.path().join(format!("{gc_before_s:?}"));
        let compacted = case.compact(cassandra, &place.join("theirs"))?;
        // No node wrote the inputs.
        let granted = &[Exception::ForeignInputs, Exception::OwnCompression];
        let expected = Expected::of(cassandra, &table, &compacted, granted)?;
        let output = Output::of(cassandra.mode());
        let directory = place.join("ours");
        let found = support::ours(cassandra, &case, output, &directory, expected.as_ref())?;
        failures.extend(
            found
                .into_iter()
                .map(|text| format!("gc_before {gc_before_s:?}: {text}")),
        );
    }
    Ok(failures)
}
