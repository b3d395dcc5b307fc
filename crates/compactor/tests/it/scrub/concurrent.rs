//! Several SSTables scrubbed at once: the same reports and outputs as one after the other.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use compactor::generate::{Amount, GenerateOptions, Shape, generate};
use compactor::scrub::ScrubReport;
use compactor::table::{Resources, RewriteOutcome};
use compactor::{NoObserver, Table, run_record};
use compactor_io::IoOptions;

/// Changes a byte of a file.
fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 1;
    fs::write(path, bytes).unwrap();
}

fn scrubbed(table: &Path, out: &Path, concurrent: usize) -> RewriteOutcome<ScrubReport> {
    let table = Table::open(table).unwrap();
    let mut resources = Resources::default();
    resources.threads = 4;
    let scrub = table.scrub().resources(resources).concurrent(concurrent);
    scrub.into(out, &mut NoObserver).unwrap()
}

/// Names and contents of all files but the record of the run, which has times.
fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = fs::read_dir(directory).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let paths = paths.filter(|path| !path.ends_with(run_record::FILE_NAME));
    let of = |path: PathBuf| {
        let bytes = fs::read(&path).unwrap();
        (path.file_name().unwrap().into(), bytes)
    };
    paths.map(of).collect()
}

#[test]
fn the_results_are_those_of_one_scrub_after_the_other() {
    let temp = tempfile::tempdir().unwrap();
    let mut options = GenerateOptions::new(Shape::KeyValue, temp.path().join("made"));
    options.sstables = 6;
    options.amount = Amount::Rows(1000);
    let made = generate(IoOptions::default(), options, &mut NoObserver).unwrap();
    let data = |number: usize| &made.sstables[number].data_path;
    flip(data(1), 3000);
    let statistics = data(3)
        .to_str()
        .unwrap()
        .replace("Data.db", "Statistics.db");
    flip(Path::new(&statistics), 3);
    let table = data(0).parent().unwrap();
    let outs = ["one", "several"].map(|name| temp.path().join(name));
    let outcomes =
        [(&outs[0], 1), (&outs[1], 4)].map(|(out, concurrent)| scrubbed(table, out, concurrent));
    let results = outcomes.each_ref().map(|outcome| {
        let reports = outcome.reports.iter().map(|report| {
            let output = report.output.as_ref().unwrap().data_path.file_name();
            let output = output.unwrap().to_owned();
            (report.data_path.clone(), output, report.loss_count)
        });
        let failures = outcome.failures.iter();
        let failures =
            failures.map(|failure| (failure.data_path.clone(), failure.error.to_string()));
        (reports.collect::<Vec<_>>(), failures.collect::<Vec<_>>())
    });
    let (reports, failures) = &results[0];
    assert_eq!((reports.len(), failures.len()), (5, 1));
    assert!(reports[1].2 > 0, "{reports:?}");
    assert_eq!(results[0], results[1]);
    assert!(files(&outs[0]) == files(&outs[1]));
}
