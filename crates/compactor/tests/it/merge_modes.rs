//! Merges in every mode of input and output on both backends: identical components, O_DIRECT where it is
//! reported, nothing left in the page cache, and partitions larger than the memory limit.
//!
//! Tests of direct I/O need a file system that supports it: `COMPACTOR_TEST_DIRECT_DIR`, else the target
//! directory. They are skipped if it does not.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use compactor::generate::{Amount, GenerateOptions, Shape, generate};
use compactor::merge::{open_merge, run_merge};
use compactor::verify::{VerifyOptions, verify};
use compactor::{
    Error, InputCheck, MergeReport, MergeRequest, NoObserver, Observer, OutputCompression, Scope,
};
use compactor_io::{BackendKind, Io, IoOptions, ReadMode, WriteMode, drop_clean_pages, residency};
use compactor_sstable::Version;
use compactor_testkit::campaign;
use compactor_testkit::io::{BACKENDS, has_direct_io, io_on, skip_unsupported};
use compactor_testkit::machine::disk_directory;

use crate::support::{Files, files};

const NOW_S: i64 = 1_780_000_000;

fn io_options(backend: BackendKind) -> IoOptions {
    IoOptions {
        backend,
        ..IoOptions::default()
    }
}

/// Backends that work here.
#[track_caller]
fn backends() -> Vec<BackendKind> {
    let mut backends = BACKENDS.to_vec();
    backends.retain(|backend| io_on(*backend).is_some());
    backends
}

/// Generates SSTables of `bytes` each.
fn inputs(directory: &Path, shape: Shape, sstables: u32, bytes: u64) -> Vec<PathBuf> {
    let mut options = GenerateOptions::new(shape, directory);
    options.amount = Amount::Bytes(bytes);
    options.sstables = sstables;
    if shape == Shape::TimeSeries {
        // Enough partitions for both live and expired data.
        options.rows_per_partition = 50;
    }
    options.now_s = NOW_S;
    options.threads = 2;
    let report = generate(IoOptions::default(), options, &mut NoObserver).unwrap();
    report.sstables.into_iter().map(|s| s.data_path).collect()
}

fn request(inputs: &[PathBuf], output: &Path) -> MergeRequest {
    let mut request = MergeRequest::new(inputs.to_vec(), output);
    request.now_s = NOW_S;
    request.gc_before_s = Some(NOW_S - 60);
    request.scope = Scope::Complete;
    request.threads = 2;
    request.memory_bytes = 4 << 20;
    request
}

fn merge(backend: BackendKind, request: MergeRequest) -> Result<MergeReport, Error> {
    let job = open_merge(io_options(backend), request)?;
    run_merge(job, InputCheck::AllComponents, &mut NoObserver)
}

/// Removes the output after comparing it with the first one.
fn compare(output: &Path, first: &mut Option<Files>, what: &str) {
    let found = files(output);
    fs::remove_dir_all(output).unwrap();
    let Some(first) = first else {
        *first = Some(found);
        return;
    };
    let names = |files: &Files| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(first), names(&found), "{what}");
    for (name, bytes) in &found {
        assert!(first[name] == *bytes, "{what}: {name} differs");
    }
}

#[test]
fn modes_and_backends_give_the_same_bytes() {
    let directory = disk_directory();
    let tables = [
        (Shape::Wide, OutputCompression::AsNewestInput),
        (Shape::TimeSeries, OutputCompression::None),
    ];
    for (shape, compression) in campaign::some_of(tables) {
        let paths = inputs(directory.path(), shape, 3, 100 << 10);
        let before: Vec<Files> = paths.iter().map(|p| files(p.parent().unwrap())).collect();
        let output = directory.path().join("output");
        let mut first = None;
        let mut compared = 0;
        for backend in backends() {
            for &read_mode in ReadMode::ALL {
                for &write_mode in WriteMode::ALL {
                    let mut request = request(&paths, &output);
                    (request.read_mode, request.write_mode) = (read_mode, write_mode);
                    request.compression = compression.clone();
                    let what = format!("{backend}, read {read_mode}, write {write_mode}");
                    match merge(backend, request) {
                        Ok(report) => {
                            assert!(!report.outputs.is_empty(), "{what}: nothing was written");
                            compared += 1;
                            compare(&output, &mut first, &what);
                        }
                        Err(error) => {
                            let modes = format!("{read_mode} {write_mode}");
                            if backend != BackendKind::Threads && modes.contains("dontcache") {
                                // Refused everywhere, with advice.
                                let message = error.to_string();
                                assert!(message.contains("RWF_DONTCACHE"), "{what}: {message}");
                                assert!(message.contains("threads"), "{what}: {message}");
                            } else {
                                // Only modes that this kernel or file system may lack.
                                let may_lack =
                                    modes.contains("dontcache") || modes.contains("direct");
                                assert!(may_lack, "{what}: {error}");
                                skip_unsupported(&error.to_string());
                            }
                            assert!(!output.exists(), "{what}");
                        }
                    }
                }
            }
        }
        assert!(compared >= 25, "{compared}");
        let after: Vec<Files> = paths.iter().map(|p| files(p.parent().unwrap())).collect();
        assert!(before == after, "inputs have changed");
    }
}

/// Outputs of every version and shape pass a full verification.
#[test]
fn outputs_are_intact() {
    let directory = disk_directory();
    for (index, shape) in [Shape::KeyValue, Shape::Wide, Shape::TimeSeries]
        .into_iter()
        .enumerate()
    {
        let paths = inputs(directory.path(), shape, 3, 1 << 20);
        for version in [Version::Nb, Version::Oa, Version::Pa] {
            let output = directory.path().join(format!("{index}-{version}"));
            let mut request = request(&paths, &output);
            request.version = Some(version);
            request.column_index_size = Some(4096);
            let report = merge(BackendKind::Auto, request).unwrap();
            let path = report.outputs.into_iter().next().unwrap().data_path;
            let io = Io::new(IoOptions::default()).unwrap();
            let options = VerifyOptions::default();
            let verified = verify(&io, &path, &options, &mut NoObserver).unwrap();
            assert!(!verified.is_damaged(), "{:#?}", verified.findings);
            assert!(verified.content_complete);
            assert_eq!(verified.partitions, report.partitions_written);
            assert_eq!(verified.rows, report.rows_written);
        }
    }
}

/// Records the flags of every descriptor of this process for files below a directory.
struct Descriptors<'a> {
    directory: &'a Path,
    /// File name, and whether it was open with `O_DIRECT`.
    seen: BTreeSet<(String, bool)>,
}

impl Descriptors<'_> {
    fn record(&mut self) {
        for entry in fs::read_dir("/proc/self/fd").unwrap() {
            let entry = entry.unwrap();
            let Ok(target) = fs::read_link(entry.path()) else {
                continue;
            };
            let number = entry.file_name();
            let number = number.to_str().unwrap();
            // The descriptor may have been closed.
            let info = fs::read_to_string(format!("/proc/self/fdinfo/{number}"));
            if let (true, Ok(info)) = (target.starts_with(self.directory), info) {
                let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
                let flags = u32::from_str_radix(flags.unwrap().trim(), 8).unwrap();
                let is_direct = flags & rustix::fs::OFlags::DIRECT.bits() != 0;
                let name = target.file_name().unwrap().to_str().unwrap().to_owned();
                self.seen.insert((name, is_direct));
            }
        }
    }
}

impl Observer for Descriptors<'_> {
    fn is_cancelled(&self) -> bool {
        false
    }

    fn progress(&mut self, _read_bytes: u64, _rows: u64, _partitions: u64) {
        self.record();
    }

    fn before_publish(&mut self, _data_path: &Path) -> Result<(), Error> {
        self.record();
        Ok(())
    }
}

#[test]
fn direct_is_direct() {
    let directory = disk_directory();
    if !has_direct_io(directory.path()) {
        return;
    }
    let directory = directory.path().canonicalize().unwrap();
    let paths = inputs(&directory, Shape::Wide, 2, 2 << 20);
    for backend in backends() {
        for (read_mode, write_mode) in [
            (ReadMode::Direct, WriteMode::Direct),
            (ReadMode::Auto, WriteMode::Auto),
            (ReadMode::Buffered, WriteMode::Direct),
            (ReadMode::Direct, WriteMode::Trickle),
            (ReadMode::DontNeed, WriteMode::DontNeed),
        ] {
            let output = directory.join("output");
            let mut request = request(&paths, &output);
            (request.read_mode, request.write_mode) = (read_mode, write_mode);
            let mut descriptors = Descriptors {
                directory: &directory,
                seen: BTreeSet::new(),
            };
            let job = open_merge(io_options(backend), request).unwrap();
            let report = run_merge(job, InputCheck::AllComponents, &mut descriptors).unwrap();
            let what = format!("{backend}, read {read_mode}, write {write_mode}");
            let written = report.outputs.into_iter().next().unwrap().data_path;
            let reads_direct = matches!(read_mode, ReadMode::Direct | ReadMode::Auto);
            let writes_direct = matches!(write_mode, WriteMode::Direct | WriteMode::Auto);
            for (path, is_direct) in paths
                .iter()
                .map(|path| (path, reads_direct))
                .chain([(&written, writes_direct)])
            {
                let name = path.file_name().unwrap().to_str().unwrap();
                // An input may have the name of an output of an earlier round, but not of this one.
                let found: Vec<bool> = descriptors
                    .seen
                    .iter()
                    .filter(|(seen, _)| seen == name)
                    .map(|(_, is_direct)| *is_direct)
                    .collect();
                assert_eq!(
                    found,
                    [is_direct],
                    "{what}: {name} in {:?}",
                    descriptors.seen
                );
            }
            let claimed = (report.io.read_mode.as_str(), report.io.write_mode.unwrap());
            assert_eq!(claimed.0 == "direct", reads_direct, "{what}: {claimed:?}");
            assert_eq!(claimed.1 == "direct", writes_direct, "{what}: {claimed:?}");
            fs::remove_dir_all(&output).unwrap();
        }
    }
}

/// Pages of every file in the directories of these SSTables, and how many of them are resident.
fn pages(sstables: &[PathBuf]) -> (u64, u64) {
    let directories: BTreeSet<_> = sstables.iter().map(|p| p.parent().unwrap()).collect();
    let (mut total, mut resident) = (0, 0);
    for directory in directories {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "cql") {
                continue;
            }
            let found = residency(&path).unwrap();
            total += found.pages_total;
            resident += found.pages_resident.unwrap();
        }
    }
    (total, resident)
}

#[test]
fn direct_leaves_no_page_behind() {
    let directory = disk_directory();
    if !has_direct_io(directory.path()) {
        return;
    }
    let paths = inputs(directory.path(), Shape::KeyValue, 2, 3 << 20);
    for backend in backends() {
        for (read_mode, write_mode, is_clean) in [
            (ReadMode::Direct, WriteMode::Direct, true),
            (ReadMode::Auto, WriteMode::Auto, true),
            (ReadMode::DontNeed, WriteMode::DontNeed, true),
            // Control: buffered I/O does leave pages.
            (ReadMode::Buffered, WriteMode::Buffered, false),
        ] {
            let input_directory = paths[0].parent().unwrap();
            for entry in fs::read_dir(input_directory).unwrap() {
                drop_clean_pages(&entry.unwrap().path()).unwrap();
            }
            assert_eq!(pages(&paths).1, 0, "pages that cannot be dropped");
            let output = directory.path().join("output");
            let mut request = request(&paths, &output);
            (request.read_mode, request.write_mode) = (read_mode, write_mode);
            let report = merge(backend, request).unwrap();
            let written = [report.outputs[0].data_path.clone()];
            let what = format!("{backend}, read {read_mode}, write {write_mode}");
            let cache = report.page_cache;
            for (sstables, reported, reported_total) in [
                (&paths[..], cache.input_pages_resident, cache.input_pages),
                (
                    &written[..],
                    cache.output_pages_resident,
                    cache.output_pages,
                ),
            ] {
                let (total, resident) = pages(sstables);
                assert!(total > 300 && reported_total > 300, "{what}: {total}");
                assert_eq!(resident == 0, is_clean, "{what}: {resident} of {total}");
                assert_eq!(reported == Some(0), is_clean, "{what}: {cache:?}");
            }
            fs::remove_dir_all(&output).unwrap();
        }
    }
}

/// Environment variable with the directory that the child merges in.
const CHILD: &str = "COMPACTOR_TEST_WIDE_MERGE_IN";

/// Not a test by itself: a merge in a child process whose memory is measured.
#[test]
fn child() {
    let Some(directory) = std::env::var_os(CHILD).map(PathBuf::from) else {
        return;
    };
    let paths: Vec<PathBuf> = fs::read_to_string(directory.join("inputs"))
        .unwrap()
        .lines()
        .map(PathBuf::from)
        .collect();
    let mut request = request(&paths, &directory.join("output"));
    request.memory_bytes = 2 << 20;
    let report = merge(BackendKind::Threads, request).unwrap();
    let size = report.output_uncompressed_bytes;
    assert!(size > 20 << 20, "{size} bytes");
    assert_eq!(report.partitions_written, 1);
    let (peak, buffers) = (report.peak_rss_bytes, report.peak_io_buffer_bytes);
    println!(
        "{} KiB resident, {} KiB of buffers",
        peak >> 10,
        buffers >> 10
    );
    assert!(
        peak < size,
        "{peak} bytes resident for a partition of {size}"
    );
    assert!(buffers < 4 << 20, "{buffers} bytes of buffers");
}

#[test]
fn a_partition_larger_than_the_memory_limit() {
    let directory = disk_directory();
    let mut options = GenerateOptions::new(Shape::Wide, directory.path());
    options.sstables = 2;
    options.rows_per_partition = 100_000;
    options.amount = Amount::Rows(1);
    options.overlap = 1.0;
    options.value_len = 300;
    options.now_s = NOW_S;
    let report = generate(IoOptions::default(), options, &mut NoObserver).unwrap();
    let lines: Vec<String> = report
        .sstables
        .iter()
        .map(|s| s.data_path.display().to_string())
        .collect();
    fs::write(directory.path().join("inputs"), lines.join("\n")).unwrap();
    let status = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "merge_modes::child",
            "--nocapture",
            "--test-threads",
            "1",
        ])
        .env(CHILD, directory.path())
        .stdin(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success(), "see above");
    let output = directory.path().join("output");
    let data = fs::read_dir(&output)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.to_string_lossy().ends_with("-Data.db"))
        .unwrap();
    let io = Io::new(IoOptions::default()).unwrap();
    let verified = verify(&io, &data, &VerifyOptions::default(), &mut NoObserver).unwrap();
    assert!(!verified.is_damaged(), "{:#?}", verified.findings);
    assert_eq!(verified.partitions, 1);
}
