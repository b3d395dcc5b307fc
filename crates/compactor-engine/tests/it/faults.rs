//! Failing and short operations, one after the other, during a merge; cancellation; full disks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use compactor_engine::job::{MergeJob, MergeOptions, OutputCompression, OutputSplit};
use compactor_engine::merge::Observer;
use compactor_engine::{Error, Result};
use compactor_io::{Io, IoOptions, ReadMode, WriteMode};
use compactor_sstable::compression::codec::Codec;
use compactor_sstable::compression::info::CompressionParams;
use compactor_testkit::fault_backend::{Fault, FaultBackend, OperationKind};
use compactor_testkit::machine::{Mount, disk_directory};

use crate::files::{contents, io, key_value_sstables, merge_files, options, sstables};
use compactor_testkit::campaign;
use compactor_testkit::model::choices::Choices;
use compactor_testkit::model::engine::Unobserved;

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

type Files = BTreeMap<PathBuf, Option<Vec<u8>>>;

/// Merges while the n-th operation fails. Returns the result, the number of operations, and the kind of the
/// n-th.
fn merge_with_fault(
    options: &MergeOptions,
    number: usize,
    fault: Fault,
) -> (Result<()>, usize, Option<OperationKind>) {
    let count = Arc::new(AtomicUsize::new(0));
    let kind = Arc::new(AtomicUsize::new(usize::MAX));
    let (counted, noted) = (Arc::clone(&count), Arc::clone(&kind));
    let script = move |index: usize, operation: OperationKind| {
        counted.fetch_max(index + 1, Ordering::Relaxed);
        if index != number {
            return Fault::None;
        }
        noted.store(operation as usize, Ordering::Relaxed);
        fault
    };
    let backend = Arc::new(FaultBackend::new(Box::new(script)));
    let io = Io::with_backend(IoOptions::default(), backend);
    let result = MergeJob::open(io, options.clone()).and_then(|job| job.run(&mut Unobserved));
    use OperationKind::{Call, Read, Sync, Write};
    let kind = [Read, Write, Sync, Call]
        .into_iter()
        .find(|k| *k as usize == kind.load(Ordering::Relaxed));
    (result.map(|_| ()), count.load(Ordering::Relaxed), kind)
}

/// Asserts that nothing is left of a failed merge, and that its inputs are unchanged.
fn assert_unchanged(directory: &Path, inputs: &Files, what: &str) {
    let left = contents(&directory.join("output"));
    assert!(left.is_empty(), "{what} leaves {:?}", left.keys());
    assert!(
        !directory.join("output").exists(),
        "{what} leaves its directory"
    );
    assert!(
        contents(&directory.join("inputs")) == *inputs,
        "{what} changes inputs"
    );
}

/// Memory for readahead of two inputs concurrently.
const IN_ONE_PASS: usize = 4 << 20;
/// Less memory than two inputs need.
const IN_PASSES: usize = 128 << 10;

#[test]
fn any_operation_may_fail() {
    for (mode, compression, max_sstable_size, memory_bytes) in [
        (
            (ReadMode::Buffered, WriteMode::Buffered),
            None,
            None,
            IN_ONE_PASS,
        ),
        (
            (ReadMode::Buffered, WriteMode::Buffered),
            Some(CompressionParams::new(Codec::Lz4, 4096)),
            Some(150_000),
            IN_PASSES,
        ),
        (
            (ReadMode::DontNeed, WriteMode::Trickle),
            Some(CompressionParams::new(Codec::Lz4, 16_384)),
            None,
            IN_ONE_PASS,
        ),
        (
            (ReadMode::Auto, WriteMode::Auto),
            Some(CompressionParams::new(Codec::Lz4, 4096)),
            None,
            IN_PASSES,
        ),
    ] {
        let directory = disk_directory();
        let inputs = directory.path().join("inputs");
        let paths = key_value_sstables(&inputs, 600, 900);
        let before = contents(&inputs);
        let output = directory.path().join("output");
        let mut options = options(&paths, &output);
        (options.read_mode, options.write_mode) = mode;
        options.memory_bytes = memory_bytes;
        options.split = max_sstable_size.map_or(OutputSplit::None, OutputSplit::MaxBytes);
        options.compression = match compression {
            Some(params) => OutputCompression::Params(params),
            None => OutputCompression::None,
        };
        let (result, total, _) = merge_with_fault(&options, usize::MAX, Fault::None);
        result.unwrap();
        let expected = contents(&output);
        std::fs::remove_dir_all(&output).unwrap();
        assert!(total > 40, "{total} operations");
        // Write-back takes a varying number of steps.
        let operations = total + 3;
        let step = (operations / campaign::cases(operations)).max(1);
        let faults = [
            Fault::Errno(EIO),
            Fault::Errno(ENOSPC),
            Fault::Short(100),
            Fault::Short(0),
        ];
        for (first, fault) in faults.into_iter().enumerate() {
            // In a short campaign each operation has one of the faults, in a full one all of them.
            for number in (first % step..operations).step_by(step) {
                let (result, _, kind) = merge_with_fault(&options, number, fault);
                let what = format!("{mode:?}: {fault:?} at {number} of {total}, a {kind:?}");
                match (&result, fault, kind) {
                    (Ok(()), Fault::Short(_), _) => {}
                    // Preallocation, advice and forced write-back are optional.
                    (Ok(()), _, None | Some(OperationKind::Call)) => {}
                    (Ok(()), ..) => panic!("{what} is not noticed"),
                    (Err(error), ..) => {
                        let message = error.to_string();
                        let root = directory.path().to_str().unwrap();
                        assert!(message.contains(root), "{what}: {message}");
                        let names = message.contains("-big-");
                        assert!(names, "{what}: {message}");
                        assert_unchanged(directory.path(), &before, &what);
                        // A file that ends early is an error; a short transfer is not.
                        assert!(fault != Fault::Short(100), "{what}: {message}");
                    }
                }
                if result.is_ok() {
                    assert!(contents(&output) == expected, "{what} changes the output");
                    std::fs::remove_dir_all(&output).unwrap();
                }
            }
        }
    }
}

/// Observer that cancels a merge after a number of calls.
struct StopAfter {
    questions: AtomicUsize,
    stop_at: usize,
    fail_before_publishing: bool,
}

impl Observer for StopAfter {
    fn is_cancelled(&self) -> bool {
        self.questions.fetch_add(1, Ordering::Relaxed) >= self.stop_at
    }

    fn progress(&mut self, _read_bytes: u64, _rows: u64, _partitions: u64) {}

    fn before_publish(&mut self, data_path: &Path) -> Result<()> {
        assert!(data_path.exists(), "{}", data_path.display());
        if self.fail_before_publishing {
            return Err(Error::Refused("changed my mind".to_owned()));
        }
        Ok(())
    }
}

#[test]
fn cancellation_leaves_nothing() {
    let directory = disk_directory();
    let inputs = directory.path().join("inputs");
    let paths = key_value_sstables(&inputs, 9000, 50);
    let before = contents(&inputs);
    let output = directory.path().join("output");
    let options = options(&paths, &output);
    let run = |stop_at, fail_before_publishing| {
        let mut observer = StopAfter {
            questions: AtomicUsize::new(0),
            stop_at,
            fail_before_publishing,
        };
        let result = MergeJob::open(io(), options.clone())
            .unwrap()
            .run(&mut observer);
        (result.map(|_| ()), observer.questions.into_inner())
    };
    let (result, questions) = run(usize::MAX, false);
    result.unwrap();
    std::fs::remove_dir_all(&output).unwrap();
    // The number of calls depends on timing, except at the start and before an output is completed.
    assert!(questions > 1, "{questions}");
    for stop_at in [0, 1, 0, 1] {
        let (result, _) = run(stop_at, false);
        assert!(
            matches!(result, Err(Error::Cancelled)),
            "{stop_at}: {result:?}"
        );
        assert_unchanged(directory.path(), &before, "cancellation");
    }
    let (result, _) = run(usize::MAX, true);
    assert!(matches!(result, Err(Error::Refused(_))), "{result:?}");
    assert_unchanged(directory.path(), &before, "a change of mind");
}

/// A backend that does not reorder but fails at random, with several blocks in flight.
#[test]
fn failures_at_random_with_many_threads() {
    let directory = disk_directory();
    let inputs = directory.path().join("inputs");
    let paths = key_value_sstables(&inputs, 900, 1000);
    let before = contents(&inputs);
    let mut choices = Choices::from_seed(campaign::first_seed());
    let mut options = options(&paths, &directory.path().join("output"));
    options.threads = 4;
    options.memory_bytes = 8 << 20;
    let (result, total, _) = merge_with_fault(&options, usize::MAX, Fault::None);
    result.unwrap();
    std::fs::remove_dir_all(directory.path().join("output")).unwrap();
    for case in 0..campaign::cases(30) {
        // Every other case is merged in ranges, which read more.
        if case % 2 == 1 {
            options.range_bytes = Some(60_000);
        } else {
            options.range_bytes = None;
        }
        let number = choices.below(total);
        let (result, _, kind) = merge_with_fault(&options, number, Fault::Errno(EIO));
        if kind.is_some_and(|kind| kind != OperationKind::Call) {
            assert!(result.is_err(), "{number}, {kind:?}");
        }
        match result {
            Err(_) => assert_unchanged(directory.path(), &before, &format!("{number}")),
            Ok(()) => std::fs::remove_dir_all(directory.path().join("output")).unwrap(),
        }
    }
}

#[test]
fn a_full_disk_leaves_nothing() {
    let directory = disk_directory();
    let inputs = directory.path().join("inputs");
    let paths = key_value_sstables(&inputs, 900, 1000);
    let before = contents(&inputs);
    for bytes in [8 << 10, 64 << 10, 500 << 10, 900 << 10, 3 << 20] {
        let Some(mount) = Mount::tmpfs(bytes) else {
            return;
        };
        let output = mount.path().join("output");
        for mode in [WriteMode::Buffered, WriteMode::Trickle, WriteMode::Auto] {
            let mut options = options(&paths, &output);
            options.write_mode = mode;
            match merge_files(&io(), options) {
                Ok(_) => {
                    assert_eq!(bytes, 3 << 20, "{mode}");
                    assert_eq!(sstables(&output).len(), 1);
                    std::fs::remove_dir_all(&output).unwrap();
                }
                Err(error) => {
                    assert!(bytes < 3 << 20, "{mode}: {error}");
                    let message = error.to_string();
                    assert!(message.contains(output.to_str().unwrap()), "{message}");
                    let is_no_space = match &error {
                        Error::Io(error) => error.is_no_space(),
                        Error::File { cause, .. } => cause.raw_os_error() == Some(ENOSPC),
                        _ => false,
                    };
                    assert!(is_no_space, "{mode}: {message}");
                    assert!(!output.exists(), "{mode}: {:?}", contents(&output).keys());
                }
            }
        }
    }
    assert!(contents(&inputs) == before, "inputs have changed");
}
