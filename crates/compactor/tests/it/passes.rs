//! More inputs than descriptors or memory allow are merged in passes, with identical output.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use compactor::generate::{Amount, GenerateOptions, Shape, generate};
use compactor::merge::merge;
use compactor::{ErrorKind, MergeReport, MergeRequest, NoObserver, Scope};
use compactor_io::IoOptions;
use compactor_sstable::Version;
use compactor_testkit::campaign;
use tempfile::TempDir;

use crate::support::files;

const NOW_S: i64 = 1_780_000_000;

fn generated(shape: Shape, version: Version, directory: &Path) -> Vec<PathBuf> {
    generated_of(9, shape, version, directory)
}

fn generated_of(sstables: u32, shape: Shape, version: Version, directory: &Path) -> Vec<PathBuf> {
    let mut options = GenerateOptions::new(shape, directory);
    options.sstables = sstables;
    options.amount = Amount::Bytes(40 << 10);
    options.overlap = 0.6;
    if shape != Shape::KeyValue {
        options.rows_per_partition = 40;
    }
    if shape == Shape::Wide {
        options.deletions = 0.2;
        options.range_tombstones = 0.2;
    }
    if shape == Shape::Counters {
        // A deletion between two versions that an earlier pass has summed cannot remove the older one.
        options.deletions = 0.0;
        options.range_tombstones = 0.0;
    }
    options.now_s = NOW_S;
    options.threads = 2;
    options.version = version;
    let report = generate(IoOptions::default(), options, &mut NoObserver).unwrap();
    report.sstables.into_iter().map(|s| s.data_path).collect()
}

fn request(inputs: &[PathBuf], output: &Path, open_files: Option<u64>) -> MergeRequest {
    let mut request = MergeRequest::new(inputs.to_vec(), output);
    request.now_s = NOW_S;
    request.scope = Scope::Complete;
    request.open_files = open_files;
    request
}

/// Counts of a report, which must not depend on the passes.
fn counts(report: &MergeReport) -> String {
    format!(
        "{:?}",
        (
            report.partitions_read,
            report.partitions_written,
            report.rows_read,
            report.rows_written,
            report.range_tombstone_markers_read,
            report.purged.total,
            report.input_bytes,
            report.input_uncompressed_bytes,
            report.inputs.len(),
        )
    )
}

#[test]
fn several_passes_write_the_output_of_one_pass() {
    let tables = [
        (Shape::Wide, Version::Pa),
        (Shape::Wide, Version::Nb),
        (Shape::Wide, Version::Ea),
        (Shape::TimeSeries, Version::Oa),
        (Shape::KeyValue, Version::Nb),
        (Shape::Counters, Version::Oa),
        (Shape::Collections, Version::Pa),
    ];
    for (shape, version) in campaign::some_of(tables) {
        let temp = TempDir::new().unwrap();
        let inputs = generated(shape, version, &temp.path().join("data"));
        for gc_before_s in [None, Some(NOW_S - 60)] {
            let run = |name: &str, open_files| {
                let output = temp.path().join(format!("{name}-{gc_before_s:?}"));
                let mut request = request(&inputs, &output, open_files);
                request.gc_before_s = gc_before_s;
                let report = merge(request, &mut NoObserver).unwrap();
                (report, files(&output))
            };
            let (one, expected) = run("one", None);
            assert_eq!(one.passes, 1);
            // Two, three and seven inputs at a time.
            for (open_files, passes) in [(0, 4..10), (12, 2..4), (28, 2..3)] {
                let name = format!("{shape:?} {version} {open_files} {gc_before_s:?}");
                let (many, found) = run(&open_files.to_string(), Some(open_files));
                assert!(passes.contains(&many.passes), "{name}: {}", many.passes);
                assert_eq!(counts(&many), counts(&one), "{name}");
                let names =
                    |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
                assert_eq!(names(&found), names(&expected), "{name}");
                for (component, bytes) in &expected {
                    assert!(found[component] == *bytes, "{name}: {component} differs");
                }
            }
        }
    }
}

/// The index files and the filter of an input are in memory only during its pass.
#[test]
fn components_of_bti_inputs_are_validated_in_every_pass() {
    let temp = TempDir::new().unwrap();
    let inputs = generated_of(6, Shape::KeyValue, Version::Ea, &temp.path().join("data"));
    let run = |name: &str| {
        merge(
            request(&inputs, &temp.path().join(name), Some(0)),
            &mut NoObserver,
        )
    };
    assert!(run("sound").unwrap().passes > 2);
    for data in &inputs {
        for component in ["Partitions", "Filter", "Digest"] {
            let extension = if component == "Digest" { "crc32" } else { "db" };
            let path = data
                .to_str()
                .unwrap()
                .replace("Data.db", &format!("{component}.{extension}"));
            let sound = fs::read(&path).unwrap();
            let mut damaged = sound.clone();
            // In the bits of the filter, after its two 4-byte numbers.
            let at = damaged.len() / 2;
            damaged[at..at + 2].fill(b'0');
            assert!(sound != damaged, "{path}");
            fs::write(&path, &damaged).unwrap();
            let found = match run("damaged") {
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
                    error.to_string()
                }
                Ok(report) => {
                    assert_eq!(component, "Filter", "{path}");
                    fs::remove_dir_all(temp.path().join("damaged")).unwrap();
                    report.warnings.join("\n")
                }
            };
            // A position in `Partitions.db` leads to `Rows.db`, too.
            let stem = data.to_str().unwrap().trim_end_matches("Data.db");
            let is_named = found.contains(stem) || found.contains(component);
            assert!(is_named, "{path}: {found}");
            fs::write(&path, &sound).unwrap();
        }
    }
}

#[test]
fn little_memory_makes_passes() {
    let temp = TempDir::new().unwrap();
    let inputs = generated_of(24, Shape::Wide, Version::Pa, &temp.path().join("data"));
    let run = |name: &str, memory_bytes| {
        let output = temp.path().join(name);
        let mut request = request(&inputs, &output, None);
        request.memory_bytes = memory_bytes;
        let report = merge(request, &mut NoObserver).unwrap();
        (report.passes, files(&output))
    };
    let (one, expected) = run("one", 64 << 20);
    let (several, found) = run("several", 768 << 10);
    let (with_none, found_with_none) = run("none", 0);
    assert!(one == 1 && several > 1, "{one} {several}");
    // Memory below 1 MiB does not increase the number of passes.
    assert_eq!(several, with_none);
    assert!(found == expected && found_with_none == expected);
}

#[test]
fn damage_in_an_early_pass_leaves_nothing() {
    let temp = TempDir::new().unwrap();
    let inputs = generated(Shape::Wide, Version::Pa, &temp.path().join("data"));
    for damaged in &inputs {
        let intact = fs::read(damaged).unwrap();
        let mut bytes = intact.clone();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(damaged, bytes).unwrap();
        let output = temp.path().join("output");
        let error = merge(request(&inputs, &output, Some(0)), &mut NoObserver).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert_eq!(error.path(), Some(damaged.as_path()), "{error}");
        assert!(!output.exists());
        fs::write(damaged, intact).unwrap();
    }
}
