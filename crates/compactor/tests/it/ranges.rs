//! Merges in ranges of partitions, with every component of the inputs validated: the same files, counts
//! and verdict as of an unsplit merge.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use compactor::generate::{Amount, GenerateOptions, Shape, generate};
use compactor::merge::merge;
use compactor::{Error, ErrorKind, MergeReport, MergeRequest, NoObserver, Scope};
use compactor_io::IoOptions;
use compactor_sstable::Version;
use compactor_testkit::campaign;
use tempfile::TempDir;

const NOW_S: i64 = 1_780_000_000;

fn generated(shape: Shape, version: Version, bytes: u64, directory: &Path) -> Vec<PathBuf> {
    let mut options = GenerateOptions::new(shape, directory);
    options.sstables = 3;
    options.amount = Amount::Bytes(bytes);
    options.overlap = 0.6;
    if shape != Shape::KeyValue {
        options.rows_per_partition = 300;
    }
    if shape == Shape::Wide {
        options.deletions = 0.2;
        options.range_tombstones = 0.2;
    }
    options.now_s = NOW_S;
    options.threads = 2;
    options.version = version;
    let report = generate(IoOptions::default(), options, &mut NoObserver).unwrap();
    report.sstables.into_iter().map(|s| s.data_path).collect()
}

fn request(inputs: &[PathBuf], output: &Path) -> MergeRequest {
    let mut request = MergeRequest::new(inputs.to_vec(), output);
    request.now_s = NOW_S;
    request.scope = Scope::Complete;
    request.gc_before_s = Some(NOW_S - 60);
    request
}

fn in_ranges(mut request: MergeRequest, bytes: u64) -> MergeRequest {
    request.threads = 3;
    request.range_bytes = Some(bytes);
    request
}

type Files = BTreeMap<String, Vec<u8>>;

/// Merges, and returns and removes the files of the output.
fn run(request: MergeRequest) -> Result<(MergeReport, Files), Error> {
    let output = request.output_directory.clone();
    let report = merge(request, &mut NoObserver)?;
    let files = fs::read_dir(&output)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, fs::read(&path).unwrap())
        })
        .collect();
    fs::remove_dir_all(&output).unwrap();
    Ok((report, files))
}

fn counts(report: &MergeReport) -> String {
    format!(
        "{:?}",
        (
            &report.merge_counts,
            report.partitions_read,
            report.partitions_written,
            report.rows_read,
            report.rows_written,
            report.range_tombstone_markers_read,
            report.purged.total,
            report.input_bytes,
            report.input_uncompressed_bytes,
        )
    )
}

/// Every shape and version, into every version.
#[test]
fn merges_in_ranges_write_the_output_of_one_merge() {
    for (shape, version, output) in [
        (Shape::Wide, Version::Pa, Version::Pa),
        (Shape::Wide, Version::Nb, Version::Ea),
        (Shape::Wide, Version::Oa, Version::Da),
        (Shape::TimeSeries, Version::Oa, Version::Nb),
        (Shape::KeyValue, Version::Nb, Version::Oa),
        (Shape::KeyValue, Version::Ea, Version::Da),
        (Shape::TimeSeries, Version::Da, Version::Pa),
        (Shape::Wide, Version::Ea, Version::Ea),
        (Shape::Counters, Version::Nb, Version::Pa),
        (Shape::Collections, Version::Oa, Version::Ea),
    ] {
        let name = format!("{shape:?} {version} to {output}");
        let temp = TempDir::new().unwrap();
        let inputs = generated(shape, version, 700 << 10, &temp.path().join("data"));
        let mut request = request(&inputs, &temp.path().join("output"));
        request.version = Some(output);
        request.threads = 1;
        let (whole, expected) = run(request.clone()).unwrap();
        assert_eq!(whole.ranges, 1, "{name}");
        let (cut, found) = run(in_ranges(request, 150_000)).unwrap();
        assert!(cut.ranges > 3, "{name}: {:?}", cut.warnings);
        assert_eq!(counts(&cut), counts(&whole), "{name}");
        assert_eq!(cut.warnings, whole.warnings, "{name}");
        let names = |files: &Files| files.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&found), names(&expected), "{name}");
        for (component, bytes) in &expected {
            assert!(found[component] == *bytes, "{name}: {component} differs");
        }
    }
}

/// Flipped bits in every component give the verdict of an unsplit merge.
#[test]
fn damage_has_one_verdict() {
    for (shape, version) in [
        (Shape::Wide, Version::Oa),
        (Shape::KeyValue, Version::Nb),
        (Shape::Wide, Version::Da),
    ] {
        let temp = TempDir::new().unwrap();
        let inputs = generated(shape, version, 60 << 10, &temp.path().join("data"));
        let request = request(&inputs, &temp.path().join("output"));
        let (cut, expected) = run(in_ranges(request.clone(), 20_000)).unwrap();
        assert!(cut.ranges > 3, "{}", cut.ranges);
        let mut damaged = 0;
        for component in fs::read_dir(inputs[1].parent().unwrap()).unwrap() {
            let path = component.unwrap().path();
            if !is_of(&path, &inputs[1]) {
                continue;
            }
            let intact = fs::read(&path).unwrap();
            if intact.is_empty() {
                continue;
            }
            for part in (0..12).rev().step_by(campaign::stride()) {
                let at = part * (intact.len() - 1) / 11;
                let mut bytes = intact.clone();
                bytes[at] ^= 1 << (part % 8);
                fs::write(&path, bytes).unwrap();
                let place = format!("{} at {at}", path.display());
                let kind = |result: &Result<(MergeReport, Files), Error>| {
                    result.as_ref().err().map(Error::kind)
                };
                let whole = run(request.clone());
                let ranges = run(in_ranges(request.clone(), 20_000));
                assert_eq!(
                    kind(&ranges),
                    kind(&whole),
                    "{place}: {ranges:?}\n{whole:?}"
                );
                damaged += usize::from(kind(&whole) == Some(ErrorKind::Corrupt));
                if let (Ok((_, ranges)), Ok((_, whole))) = (ranges, whole) {
                    assert!(ranges == whole, "{place}");
                }
            }
            fs::write(&path, &intact).unwrap();
        }
        let least = if campaign::stride() == 1 { 30 } else { 6 };
        assert!(damaged > least, "{damaged}");
        assert!(run(in_ranges(request, 20_000)).unwrap().1 == expected);
    }
}

/// Whether the file is a component of the SSTable with this `Data.db`.
fn is_of(path: &Path, data: &Path) -> bool {
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    let (name, data) = (name(path), name(data));
    name.starts_with(data.trim_end_matches("Data.db"))
}
