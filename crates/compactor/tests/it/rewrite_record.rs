//! The record of SSTables that were rewritten one by one.

use std::fs;
use std::path::{Path, PathBuf};

use compactor::generate::{Amount, GenerateOptions, Shape, generate};

use compactor::run_record::RunRecord;
use compactor::table::{OutputForm, RewriteOutcome};
use compactor::{NoObserver, Observer, Result, Table};
use compactor_io::IoOptions;
use compactor_sstable::Version;

/// Removes a file of the first output before the last is published.
struct Meddler {
    file: PathBuf,
    published: usize,
}

impl Observer for Meddler {
    fn is_cancelled(&self) -> bool {
        false
    }

    fn progress(&mut self, _read_bytes: u64, _rows: u64, _partitions: u64) {}

    fn before_publish(&mut self, _data_path: &Path) -> Result<()> {
        self.published += 1;
        if self.published == 2 {
            fs::remove_file(&self.file).unwrap();
        }
        Ok(())
    }
}

fn upgrade(directory: &Path, observer: &mut dyn Observer) -> RewriteOutcome {
    let mut options = GenerateOptions::new(Shape::KeyValue, directory.join("made"));
    options.sstables = 2;
    options.amount = Amount::Rows(100);
    let made = generate(IoOptions::default(), options, &mut NoObserver).unwrap();
    let table = Table::open(made.sstables[0].data_path.parent().unwrap()).unwrap();
    let mut form = OutputForm::default();
    form.version = Some(Version::Nb);
    let upgrade = table.upgrade(form).concurrent(1);
    upgrade.into(directory.join("out"), observer).unwrap()
}

#[test]
fn an_output_that_changed_before_the_end_of_the_run_is_not_recorded() {
    let temp = tempfile::tempdir().unwrap();
    let out = temp.path().join("out");
    let outcome = upgrade(temp.path(), &mut NoObserver);
    assert!(outcome.failures.is_empty());
    let record = RunRecord::read(&out).unwrap().unwrap();
    assert_eq!((record.inputs.len(), record.outputs.len()), (2, 2));
    assert_eq!(record.command, "upgrade");

    let temp = tempfile::tempdir().unwrap();
    let out = temp.path().join("out");
    let mut meddler = Meddler {
        file: out.join("nb-1-big-Filter.db"),
        published: 0,
    };
    let outcome = upgrade(temp.path(), &mut meddler);
    assert_eq!(outcome.reports.len(), 2);
    let [failure] = &outcome.failures[..] else {
        panic!("{:?}", outcome.failures);
    };
    let why = failure.error.to_string();
    assert!(why.contains("nb-1-big-Data.db have changed"), "{why}");
    assert_eq!(RunRecord::read(&out).unwrap(), None);
}
