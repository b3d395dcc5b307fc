//! Promoted indexes are read ahead of the merge that compares them with the rows, by a bounded number of
//! bytes: whichever side stops first, the other does too.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::damage::Copy;
use compactor::generate::{Amount, GenerateOptions, Shape, generate};
use compactor::merge::{open_merge, run_merge};
use compactor::{Error, ErrorKind, InputCheck, MergeReport, MergeRequest, NoObserver, Observer};
use compactor_io::IoOptions;
use compactor_sstable::{Component, Version};

const NOW_S: i64 = 1_780_000_000;
/// Maximum number of bytes that wait for the merge, as in `verify::indexed_partitions`.
const WAITING_BYTES: usize = 256 << 10;

fn request(inputs: &[PathBuf], output: &Path) -> MergeRequest {
    let mut request = MergeRequest::new(inputs.to_vec(), output);
    request.now_s = NOW_S;
    request
}

fn run(request: MergeRequest, observer: &mut dyn Observer) -> Result<MergeReport, Error> {
    let job = open_merge(IoOptions::default(), request)?;
    run_merge(job, InputCheck::AllComponents, observer)
}

/// SSTables with a block for each row or two, whose indexes exceed the bytes that may be read ahead.
fn inputs(directory: &Path) -> Vec<Copy> {
    let mut options = GenerateOptions::new(Shape::Wide, directory.join("generated"));
    options.sstables = 2;
    options.amount = Amount::Bytes(2 << 20);
    options.rows_per_partition = 500;
    options.value_len = 20;
    options.version = Version::Nb;
    options.now_s = NOW_S;
    let generated = generate(IoOptions::default(), options, &mut NoObserver).unwrap();
    let made = generated.sstables.iter().map(|sstable| {
        let output = directory.join("made");
        let mut request = request(std::slice::from_ref(&sstable.data_path), &output);
        request.column_index_size = Some(16);
        let report = run(request, &mut NoObserver).unwrap();
        let copy = Copy::of(&report.outputs[0].data_path);
        assert!(copy.read(Component::Index).len() > 3 * WAITING_BYTES);
        fs::remove_dir_all(output).unwrap();
        copy
    });
    made.collect()
}

/// Stops a merge once it has read this many bytes.
struct StopAt(u64, Cell<bool>);

impl Observer for StopAt {
    fn is_cancelled(&self) -> bool {
        self.1.get()
    }

    fn progress(&mut self, read_bytes: u64, _rows: u64, _partitions: u64) {
        self.1.set(read_bytes >= self.0);
    }
}

#[test]
fn either_side_may_stop_first() {
    let directory = tempfile::tempdir().unwrap();
    let copies = inputs(directory.path());
    let paths: Vec<PathBuf> = copies.iter().map(Copy::data).collect();
    let output = directory.path().join("output");
    let merge = |observer: &mut dyn Observer| run(request(&paths, &output), observer);

    let report = merge(&mut NoObserver).unwrap();
    assert_eq!(report.outputs.len(), 1);
    fs::remove_dir_all(&output).unwrap();

    for read_bytes in [1, 1 << 20, 3 << 20] {
        let error = merge(&mut StopAt(read_bytes, Cell::new(false))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
    }

    // Near the start, in the middle and near the end of either input.
    for copy in &copies {
        let intact = copy.read(Component::Index);
        for part in [1, 8, 15] {
            let damage_at = intact.len() / 16 * part;
            copy.edit(Component::Index, |bytes| bytes[damage_at] ^= 1);
            // A merge continues without the promoted index of a partition, but not without partition positions.
            let message = match merge(&mut NoObserver) {
                Ok(report) => {
                    fs::remove_dir_all(&output).unwrap();
                    report.warnings.join("\n")
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Corrupt, "{damage_at}: {error}");
                    error.to_string()
                }
            };
            assert!(message.contains("Index.db"), "{damage_at}: {message}");
            copy.write(Component::Index, &intact);
        }
        // An index that ends early.
        copy.write(Component::Index, &intact[..intact.len() / 2]);
        let error = merge(&mut NoObserver).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        copy.write(Component::Index, &intact);
        // Rows that end early.
        let data = copy.read(Component::Data);
        copy.edit(Component::Data, |bytes| bytes[data.len() / 2] ^= 1);
        let error = merge(&mut NoObserver).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        copy.write(Component::Data, &data);
    }
    assert!(!output.exists() || fs::read_dir(&output).unwrap().next().is_none());
}
