//! Small but complete comparisons of chunk lengths.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use compactor::ErrorKind;
use compactor::generate::Shape;
use compactor_io::probe;
use compactor_lab::arm::Arm;
use compactor_lab::chunk_length::{ChunkLengthOptions, ChunkLengthOutcome, Compressor, compare};
use compactor_lab::options::Data;
use compactor_lab::outcome::End;
use compactor_lab::report::{Report, chunk_length};
use compactor_lab::watcher::{Event, Watcher};
use compactor_sstable::Version;
use compactor_testkit::{Need, skip};

use crate::{ONE_AT_A_TIME, cgroups, directory, is_empty};

fn small(directory: &Path) -> ChunkLengthOptions {
    let mut options = ChunkLengthOptions::quick(directory);
    options.setup.data = Data::Generated {
        shape: Shape::KeyValue,
        version: Version::Oa,
        uncompressed_bytes: Some(8 << 20),
        sstables: 2,
    };
    options.chunk_lengths_bytes = vec![4 << 10, 64 << 10];
    options.compressors = vec![Compressor::Lz4, Compressor::None];
    options.setup.repeats = 1;
    options.setup.warm_ups = 1;
    options.setup.reader_threads = 2;
    options.hot_set_bytes = 1 << 20;
    options.setup.memory_limit_bytes = None;
    options.setup.throughput_bytes_per_s = None;
    options.warm = Duration::from_millis(50);
    options.measure = Duration::from_millis(100);
    if !probe(directory).unwrap().direct.works() {
        options.compaction = Arm::BUFFERED;
    }
    options
}

#[test]
fn a_small_comparison_measures_all_figures() {
    let _alone = ONE_AT_A_TIME.lock();
    let directory = directory();
    let options = small(directory.path());
    let outcome = compare(&options, &AtomicBool::new(false)).unwrap();
    assert!(is_empty(directory.path()) && cgroups().is_empty());
    assert_eq!(outcome.header.end, End::Complete);
    let names: Vec<String> = (outcome.variants.iter())
        .map(|v| v.variant.to_string())
        .collect();
    assert_eq!(names, ["lz4 4 KiB", "lz4 64 KiB", "none"]);
    let [short, long, plain] = &outcome.variants[..] else {
        panic!("{names:?}");
    };
    for variant in &outcome.variants {
        assert_eq!(variant.uncompressed_bytes, short.uncompressed_bytes);
        assert_eq!(
            (variant.rows, variant.partitions),
            (short.rows, short.partitions)
        );
        assert!(variant.hot_bytes > 0 && variant.pressure > 0.0);
    }
    // Sixteen times as many, except for the last chunk of each SSTable.
    assert!(short.chunks > 15 * long.chunks && short.chunks <= 16 * long.chunks);
    assert_eq!(short.chunk_offset_bytes, 8 * short.chunks);
    assert!(short.hot_bytes < long.hot_bytes);
    assert!(short.ratio < 0.8 && plain.ratio == 1.0 && plain.chunks == 0);
    assert_eq!(outcome.runs.len(), 2 * 3);
    let rate = outcome.rate_per_s.unwrap();
    for run in &outcome.runs {
        // On a busy machine readers are late, and a compaction may stall; any other reason for an
        // invalid run is a defect.
        let of_the_machine = ["generator_late", "compaction_idle"];
        let faults = run.attempt.invalid.iter();
        let faults: Vec<_> = faults
            .filter(|reason| !of_the_machine.contains(&reason.kind.as_str()))
            .collect();
        assert!(faults.is_empty(), "{}: {faults:?}", run.variant);
        assert_eq!(run.rows_not_found, 0);
        let compacting = run.compacting.as_ref().unwrap();
        for reads in [&run.alone, compacting] {
            assert_eq!(reads.at_rate.is_none(), run.attempt.warm_up);
            for reading in std::iter::once(&reads.peak).chain(&reads.at_rate) {
                let latency = &reading.latency;
                assert!(latency.operations > 0 && latency.errors == 0, "{latency:?}");
                assert!(latency.p50_ns > 0 && latency.p99_ns <= latency.max_ns);
                assert!(reading.reader_cpu_s >= 0.0);
            }
            // A chunk for each read at least, and of the 64 KiB no less.
            let peak = &reads.peak;
            let decompressed = peak.decompressed_bytes as f64 / peak.completed();
            let least = run.variant.chunk_length_bytes.unwrap_or(4096);
            assert!(decompressed > 0.7 * f64::from(least), "{decompressed}");
        }
        assert_eq!(run.alone.peak.compacted_bytes, 0);
        assert!(
            run.attempt.warm_up || !run.attempt.counts() || compacting.peak.compacted_bytes > 0
        );
        let compaction = run.compaction.as_ref().unwrap();
        assert!(compaction.read_bytes > 0 && compaction.failure.is_none());
        if let Some(at_rate) = &run.alone.at_rate {
            let intended = at_rate.latency.intended_per_s;
            assert!(intended < 3.0 * rate, "{intended} of {rate}");
        }
    }
    let json = serde_json::to_string(&outcome).unwrap();
    let back: ChunkLengthOutcome = serde_json::from_str(&json).unwrap();
    assert_eq!(back.runs.len(), outcome.runs.len());
    let shown = Report::document(&[chunk_length::report("small", &outcome)]).to_text();
    assert!(shown.contains("62,000 / 44,000"), "{shown}");
}

/// The same with BTI SSTables, and without a compaction.
#[test]
fn tries_and_wide_partitions_are_compared_too() {
    let _alone = ONE_AT_A_TIME.lock();
    let directory = directory();
    let mut options = small(directory.path());
    options.setup.data = Data::Generated {
        shape: Shape::Wide,
        version: Version::Da,
        uncompressed_bytes: Some(8 << 20),
        sstables: 2,
    };
    options.compressors = vec![Compressor::Zstd];
    options.compaction = Arm::Idle;
    options.setup.warm_ups = 0;
    options.rate_per_s = Some(100.0);
    let outcome = compare(&options, &AtomicBool::new(false)).unwrap();
    assert_eq!(outcome.runs.len(), 2);
    for run in &outcome.runs {
        assert!(run.compacting.is_none() && run.compaction.is_none());
        assert!(!run.attempt.invalid.iter().any(|i| i.kind == "reads_failed"));
        assert!(run.alone.at_rate.as_ref().unwrap().latency.operations > 0);
    }
}

/// Cancels during the run after `n` runs, and records whether there were files to remove.
struct Stopper {
    after_runs: u32,
    runs: AtomicU32,
    is_cancelled: AtomicBool,
    saw_cgroup: AtomicBool,
}

impl Watcher for Stopper {
    fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Relaxed)
    }

    fn event(&self, event: &Event<'_>) {
        match event {
            Event::RunStarted(_) => {
                if !cgroups().is_empty() {
                    self.saw_cgroup.store(true, Ordering::Relaxed);
                }
                if self.runs.load(Ordering::Relaxed) >= self.after_runs {
                    self.is_cancelled.store(true, Ordering::Relaxed);
                }
            }
            Event::RunEnded(_) => {
                self.runs.fetch_add(1, Ordering::Relaxed);
            }
            _ => {}
        }
    }
}

#[test]
fn a_cancelled_comparison_leaves_nothing_and_returns_its_results() {
    let _alone = ONE_AT_A_TIME.lock();
    for after_runs in [0, 1] {
        let directory = directory();
        let mut options = small(directory.path());
        options.setup.memory_limit_bytes = Some(512 << 20);
        let watcher = Stopper {
            after_runs,
            runs: AtomicU32::new(0),
            is_cancelled: AtomicBool::new(false),
            saw_cgroup: AtomicBool::new(false),
        };
        match compare(&options, &watcher) {
            Ok(outcome) => {
                assert_eq!(
                    (outcome.header.end, outcome.runs.len()),
                    (End::Interrupted, 1)
                );
                assert_eq!(
                    outcome.memory_limit_bytes.is_some(),
                    watcher.saw_cgroup.load(Ordering::Relaxed)
                );
            }
            Err(error) => {
                assert_eq!((error.kind(), after_runs), (ErrorKind::Cancelled, 0));
            }
        }
        assert!(is_empty(directory.path()) && cgroups().is_empty());
    }
}

#[test]
fn an_unsupported_mode_makes_runs_invalid() {
    let _alone = ONE_AT_A_TIME.lock();
    // tmpfs has no direct I/O.
    let Ok(directory) = tempfile::tempdir_in("/dev/shm") else {
        skip(Need::Tmpfs, "no /dev/shm");
        return;
    };
    if probe(directory.path()).unwrap().direct.works() {
        skip(Need::Tmpfs, "direct I/O works in /dev/shm");
        return;
    }
    let mut options = small(directory.path());
    options.compaction = Arm::DIRECT;
    options.compressors = vec![Compressor::Lz4];
    let outcome = compare(&options, &AtomicBool::new(false)).unwrap();
    assert!(is_empty(directory.path()));
    for run in &outcome.runs {
        assert_eq!(
            run.attempt.invalid.last().unwrap().kind,
            "failed",
            "{:?}",
            run.attempt.invalid
        );
        assert!(!run.attempt.counts());
    }
    assert!(!chunk_length::report("", &outcome).is_sound);
}

#[test]
fn invalid_options_are_refused_before_anything_is_created() {
    let directory = directory();
    let refused = |change: &dyn Fn(&mut ChunkLengthOptions)| {
        let mut options = small(directory.path());
        change(&mut options);
        let error = compare(&options, &AtomicBool::new(false)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        assert!(is_empty(directory.path()));
        error.to_string()
    };
    assert!(refused(&|o| o.compressors.clear()).contains("at least one compressor"));
    assert!(refused(&|o| o.chunk_lengths_bytes = vec![5000]).contains("powers of two"));
    assert!(refused(&|o| o.chunk_lengths_bytes = vec![4096; 2]).contains("named twice"));
    assert!(refused(&|o| o.setup.warm_ups = 0).contains("--rate"));
    assert!(refused(&|o| o.rate_per_s = Some(0.0)).contains("above 0"));
    assert!(refused(&|o| o.measure = Duration::ZERO).contains("some time"));
    assert!(refused(&|o| o.setup.memory_limit_bytes = Some(1 << 20)).contains("too little"));
    assert!(
        refused(&|o| {
            o.setup.data = Data::Generated {
                shape: Shape::KeyValue,
                version: Version::Oa,
                uncompressed_bytes: Some(1 << 50),
                sstables: 2,
            };
        })
        .contains("free space")
    );
}
