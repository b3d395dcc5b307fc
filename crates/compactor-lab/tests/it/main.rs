//! Small but complete experiments.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod chunk_length;
mod fan_out;

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use compactor::generate::{Amount, GenerateOptions, Shape, generate};
use compactor::{ErrorKind, NoObserver};
use compactor_io::{IoOptions, probe};
use compactor_lab::arm::Arm;
use compactor_lab::interference;
use compactor_lab::options::{Data, InterferenceOptions};
use compactor_lab::outcome::{End, Outcome, Phase};
use compactor_lab::priority::Priority;
use compactor_lab::report;
use compactor_lab::watcher::{Event, Watcher};
use compactor_sstable::Version;
use compactor_testkit::{Need, skip, skip_part};

/// Serializes experiments: they measure, and they move the process between cgroups.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A directory on the disk of the sources; /tmp may be a tmpfs.
fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn small(directory: &Path, arms: &[&str]) -> InterferenceOptions {
    let mut options = InterferenceOptions::quick(directory);
    options.setup.data = Data::Generated {
        shape: Shape::KeyValue,
        version: Version::Oa,
        uncompressed_bytes: Some(8 << 20),
        sstables: 2,
    };
    options.arms = arms.iter().map(|arm| arm.parse().unwrap()).collect();
    options.setup.repeats = 1;
    options.setup.warm_ups = 1;
    options.rate_per_s = 200.0;
    options.setup.reader_threads = 2;
    options.hot_sets_bytes = vec![1 << 20];
    options.setup.memory_limit_bytes = None;
    options.setup.throughput_bytes_per_s = NonZeroU64::new(8 << 20);
    options.before = Duration::from_millis(200);
    options.after = Duration::from_millis(200);
    options.least_compaction = Duration::from_millis(300);
    options.report_interval = Duration::from_millis(100);
    // At idle priority it might get no CPU time while other tests run.
    options.compaction_priority = Priority::Normal;
    options
}

fn is_empty(directory: &Path) -> bool {
    std::fs::read_dir(directory).unwrap().next().is_none()
}

/// Cgroups that runs create below or next to that of this process.
fn cgroups() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut directories = vec![PathBuf::from("/sys/fs/cgroup")];
    let name = format!("compactor-lab-{}", std::process::id());
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if entry.file_name() == name.as_str() {
                    found.push(entry.path());
                }
                directories.push(entry.path());
            }
        }
    }
    found
}

#[test]
fn a_small_experiment_measures_all_figures() {
    let _alone = ONE_AT_A_TIME.lock();
    let directory = directory();
    let direct = probe(directory.path()).unwrap().direct.works();
    let mut arms = vec!["idle", "buffered/buffered"];
    if direct {
        arms.push("direct/direct");
    }
    let options = small(directory.path(), &arms);
    let outcome = interference(&options, &AtomicBool::new(false)).unwrap();
    assert!(is_empty(directory.path()) && cgroups().is_empty());
    assert_eq!(outcome.header.end, End::Complete);
    let point = &outcome.points[0];
    assert_eq!(point.runs.len(), 2 * arms.len());
    assert!(point.runs.iter().filter(|run| run.attempt.warm_up).count() == arms.len());
    assert_eq!(point.data.sstables, 2);
    assert!(point.data.partitions > 5000);
    // The JSON is read back unchanged, except for the last digits of fractions.
    let text = serde_json::to_string(&outcome).unwrap();
    let back: Outcome = serde_json::from_str(&text).unwrap();
    assert_eq!(back.points[0].runs.len(), point.runs.len());
    assert_eq!(
        back.points[0].runs[0].during.p99_ns,
        point.runs[0].during.p99_ns
    );
    for run in &point.runs {
        // Readers are late on a busy machine; any other reason for an invalid run is a defect.
        let faults: Vec<_> = run
            .attempt
            .invalid
            .iter()
            .filter(|i| i.kind != "generator_late")
            .collect();
        assert!(faults.is_empty(), "{}: {faults:?}", run.arm);
        assert_eq!(run.generator.rows_not_found, 0);
        for latency in [&run.before, &run.during, &run.after] {
            assert!(
                latency.operations > 10 && latency.errors == 0,
                "{latency:?}"
            );
            assert!(latency.p50_ns > 0 && latency.p50_ns <= latency.p99_ns);
            assert!(latency.p99_ns <= latency.max_ns);
        }
        // Approximately 200 per second.
        let rate = run.during.intended_per_s;
        assert!((120.0..300.0).contains(&rate), "{rate}");
        // All pages, except for a few that the kernel reclaims.
        let resident = run.hot_set.resident_before.unwrap();
        assert!(20 * resident >= 19 * run.hot_set.pages, "{:?}", run.hot_set);
        for phase in [Phase::Before, Phase::During, Phase::After] {
            assert!(run.samples.iter().any(|sample| sample.phase == phase));
        }
        let at: Vec<f64> = run.samples.iter().map(|sample| sample.at_s).collect();
        assert!(at[0] < 0.0 && at.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(run.samples.iter().any(|sample| sample.hot.is_some()));
        assert!(
            run.intervals.len() > 3 && run.cpu.foreground_s > 0.0,
            "{} intervals, {:?}",
            run.intervals.len(),
            run.cpu
        );
        match (run.arm, &run.compaction) {
            (Arm::Idle, None) => assert!(run.cpu.compaction_s == 0.0),
            (Arm::Compaction { .. }, Some(compaction)) => {
                assert!(run.cpu.compaction_s > 0.0);
                // The limit is respected, except for readahead at the start.
                assert!(compaction.stored_bytes_per_s < 16e6, "{compaction:?}");
                assert_eq!(compaction.rounds, 1);
                assert!((run.during.duration_s - compaction.elapsed_s).abs() < 0.2);
                let last = run.samples.last().unwrap();
                assert_eq!(
                    last.compaction_read_bytes,
                    compaction.input_uncompressed_bytes
                );
                if run.arm.to_string() == "direct/direct" {
                    assert_eq!(compaction.output_pages_after, Some(0));
                } else {
                    assert_eq!(compaction.output_pages_after, Some(compaction.output_pages));
                    let peak = run
                        .samples
                        .iter()
                        .filter_map(|s| s.outputs)
                        .map(|o| o.resident);
                    assert!(peak.max() > Some(0));
                }
            }
            (arm, _) => panic!("{arm} has a compaction, or none"),
        }
    }
}

/// The same with BTI SSTables, and with rows found by a row index.
#[test]
fn tries_and_wide_partitions_are_read_too() {
    let _alone = ONE_AT_A_TIME.lock();
    for (shape, version) in [(Shape::KeyValue, Version::Da), (Shape::Wide, Version::Oa)] {
        let directory = directory();
        let mut options = small(directory.path(), &["buffered/buffered"]);
        options.setup.warm_ups = 0;
        options.setup.throughput_bytes_per_s = None;
        options.setup.data = Data::Generated {
            shape,
            version,
            uncompressed_bytes: Some(8 << 20),
            sstables: 2,
        };
        let outcome = interference(&options, &AtomicBool::new(false)).unwrap();
        let run = &outcome.points[0].runs[0];
        assert!(run.before.operations > 0 && run.after.operations > 0);
        assert!(
            run.before.errors + run.during.errors + run.after.errors == 0,
            "{run:?}"
        );
        assert!(
            !run.attempt
                .invalid
                .iter()
                .any(|reason| reason.kind == "reads_failed")
        );
    }
}

#[test]
fn an_unsupported_arm_is_invalid_and_the_others_continue() {
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
    let mut options = small(directory.path(), &["direct/direct", "buffered/buffered"]);
    options.setup.warm_ups = 0;
    let outcome = interference(&options, &AtomicBool::new(false)).unwrap();
    assert!(is_empty(directory.path()));
    let point = &outcome.points[0];
    let run_of = |name: &str| {
        let mut runs = point.runs.iter();
        runs.find(|run| run.arm.to_string() == name).unwrap()
    };
    let direct = run_of("direct/direct");
    assert_eq!(
        direct.attempt.invalid[0].kind, "failed",
        "{:?}",
        direct.attempt.invalid
    );
    assert!(direct.compaction.is_none() && !direct.attempt.counts());
    assert!(run_of("buffered/buffered").compaction.is_some());
}

/// If direct I/O is refused, the I/O layer falls back to another mode and reports it. Such a run is labelled
/// direct, and must not count in any figure. On a disk the same run is valid.
#[test]
fn a_run_that_fell_back_is_in_no_figure() {
    let _alone = ONE_AT_A_TIME.lock();
    let memory = tempfile::tempdir_in("/dev/shm");
    let memory = memory.ok().filter(|directory| {
        let found = probe(directory.path()).unwrap();
        !found.direct.works()
    });
    let disk = directory();
    let direct_works = probe(disk.path()).unwrap().direct.works();
    let places = [
        memory.as_ref().map(|directory| (directory.path(), false)),
        direct_works.then_some((disk.path(), true)),
    ];
    if places[0].is_none() {
        skip_part(Need::Tmpfs, "no /dev/shm without direct I/O");
    }
    if places[1].is_none() {
        skip_part(Need::DirectIo, "no direct I/O in the directory for tests");
    }
    for (directory, counts) in places.into_iter().flatten() {
        let mut options = small(directory, &["idle", "direct/direct"]);
        options.setup.warm_ups = 0;
        options.rate_per_s = 100.0;
        options.may_fall_back = true;
        let mut outcome = interference(&options, &AtomicBool::new(false)).unwrap();
        assert!(is_empty(directory));
        // Readers are late on a busy machine, which does not matter here.
        for run in &mut outcome.points[0].runs {
            run.attempt
                .invalid
                .retain(|reason| reason.kind != "generator_late");
        }
        let direct: Arm = "direct/direct".parse().unwrap();
        let mut runs = outcome.points[0].runs.iter();
        let run = runs.find(|run| run.arm == direct).unwrap();
        let compaction = run.compaction.as_ref().unwrap();
        // The run was measured and has a compaction, so it has figures that could be counted.
        assert!(run.during.operations > 0 && compaction.output_bytes > 0);
        let fallbacks = run.attempt.invalid.iter().filter(|r| r.kind == "fallback");
        let reasons: Vec<&str> = fallbacks.map(|reason| reason.text.as_str()).collect();
        let report = report::interference::report("", &outcome, None);
        let comparison = &report.points[0].comparison;
        let mut arms = comparison.arms.iter();
        let arm = arms.find(|found| found.arm == direct.to_string()).unwrap();
        if counts {
            assert!(run.attempt.invalid.is_empty(), "{:?}", run.attempt.invalid);
            assert_eq!((arm.counted, arm.figures.is_empty()), (1, false));
            continue;
        }
        assert_eq!(compaction.read_mode, "dontneed");
        let [read, wrote] = reasons[..] else {
            panic!("{:?}", run.attempt.invalid);
        };
        assert!(read.contains("read in mode dontneed, not direct"), "{read}");
        assert!(
            wrote.contains("wrote in mode dontneed, not direct"),
            "{wrote}"
        );
        // The reason names the file system.
        assert!(read.contains("statx"), "{read}");
        assert_eq!((arm.counted, arm.runs), (0, 1));
        assert!(arm.figures.is_empty() && arm.ratios.values().all(Vec::is_empty));
        let mut left_out = comparison.left_out.iter();
        assert!(left_out.any(|left| left.arm == direct.to_string()));
    }
}

/// Cancels an experiment during a compaction, after a number of runs.
struct Stopper {
    after_runs: u32,
    runs: AtomicU32,
    is_cancelled: AtomicBool,
    saw_cgroup: AtomicBool,
}

impl Stopper {
    fn after(after_runs: u32) -> Stopper {
        Stopper {
            after_runs,
            runs: AtomicU32::new(0),
            is_cancelled: AtomicBool::new(false),
            saw_cgroup: AtomicBool::new(false),
        }
    }
}

impl Watcher for Stopper {
    fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Relaxed)
    }

    fn event(&self, event: &Event<'_>) {
        match event {
            Event::RunEnded(_) => {
                self.runs.fetch_add(1, Ordering::Relaxed);
            }
            Event::Interval { interval, .. } => {
                if !cgroups().is_empty() {
                    self.saw_cgroup.store(true, Ordering::Relaxed);
                }
                let is_enough = self.runs.load(Ordering::Relaxed) >= self.after_runs;
                if interval.phase == Phase::During && is_enough {
                    self.is_cancelled.store(true, Ordering::Relaxed);
                }
            }
            _ => {}
        }
    }
}

#[test]
fn an_experiment_cancelled_in_its_first_run_leaves_nothing() {
    let _alone = ONE_AT_A_TIME.lock();
    let directory = directory();
    let mut options = small(directory.path(), &["buffered/buffered"]);
    options.setup.memory_limit_bytes = Some(512 << 20);
    let error = interference(&options, &Stopper::after(0)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert!(is_empty(directory.path()) && cgroups().is_empty());
}

#[test]
fn an_experiment_cancelled_later_returns_its_results() {
    let _alone = ONE_AT_A_TIME.lock();
    let directory = directory();
    let mut options = small(directory.path(), &["buffered/buffered"]);
    options.setup.warm_ups = 0;
    options.setup.repeats = 50;
    let outcome = interference(&options, &Stopper::after(2)).unwrap();
    assert_eq!(outcome.header.end, End::Interrupted);
    assert_eq!(outcome.points[0].runs.len(), 2);
    assert!(is_empty(directory.path()) && cgroups().is_empty());
}

#[test]
fn with_permission_the_process_is_in_a_cgroup_during_the_experiment() {
    let _alone = ONE_AT_A_TIME.lock();
    let directory = directory();
    let mut options = small(directory.path(), &["buffered/buffered"]);
    options.setup.memory_limit_bytes = Some(512 << 20);
    options.setup.warm_ups = 0;
    let before = std::fs::read_to_string("/proc/self/cgroup").unwrap();
    let watcher = Stopper::after(u32::MAX);
    let outcome = interference(&options, &watcher).unwrap();
    assert_eq!(
        std::fs::read_to_string("/proc/self/cgroup").unwrap(),
        before
    );
    assert!(is_empty(directory.path()) && cgroups().is_empty());
    let point = &outcome.points[0];
    if !outcome.environment.memory_cgroup.starts_with('v') {
        // A fallback, which is reported.
        let told = outcome.warnings.iter().any(|w| w.kind == "no_memory_limit");
        assert!(told && point.memory_limit_bytes.is_none());
        skip(Need::Cgroup, &outcome.environment.memory_cgroup);
        return;
    }
    assert!(watcher.saw_cgroup.load(Ordering::Relaxed));
    assert_eq!(point.memory_limit_bytes, Some(512 << 20));
    let room = point.cache_room_bytes.unwrap();
    assert!((200 << 20..512 << 20).contains(&room), "{room}");
    let run = &point.runs[0];
    assert!(run.samples.iter().all(|sample| sample.cgroup.is_some()));
    assert!(run.memory.cgroup_refaults.is_some());
    let charged = run.samples.last().unwrap().cgroup.unwrap();
    // At least the hot set is charged to it.
    assert!(charged.file_bytes.unwrap() >= 1 << 20, "{charged:?}");
}

#[test]
fn invalid_options_are_refused_before_anything_is_created() {
    let directory = directory();
    let refused = |change: &dyn Fn(&mut InterferenceOptions)| {
        let mut options = small(directory.path(), &["idle"]);
        change(&mut options);
        let error = interference(&options, &AtomicBool::new(false)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        assert!(is_empty(directory.path()));
        error.to_string()
    };
    assert!(refused(&|o| o.arms.clear()).contains("at least one arm"));
    assert!(refused(&|o| o.arms = vec![Arm::Idle; 2]).contains("named twice"));
    let twice = refused(&|o| o.hot_sets_bytes = vec![3 << 20, 1 << 20, 3 << 20]);
    assert!(
        twice.contains("a hot set of 3 MiB is named twice"),
        "{twice}"
    );
    assert!(refused(&|o| o.rate_per_s = 0.0).contains("rate"));
    assert!(refused(&|o| o.setup.memory_limit_bytes = Some(1 << 20)).contains("too little"));
    assert!(
        refused(&|o| {
            o.setup.data = Data::Generated {
                shape: Shape::KeyValue,
                version: Version::Oa,
                uncompressed_bytes: Some(1 << 60),
                sstables: 2,
            };
        })
        .contains("free space")
    );
}

/// If a compaction ends before the minimum time of a run, the table is compacted again.
#[test]
fn a_short_compaction_is_repeated() {
    let _alone = ONE_AT_A_TIME.lock();
    let directory = directory();
    let mut options = small(directory.path(), &["buffered/buffered"]);
    options.setup.warm_ups = 0;
    options.setup.throughput_bytes_per_s = None;
    let rounds_of = |outcome: &Outcome| {
        let compaction = outcome.points[0].runs[0].compaction.as_ref();
        compaction.unwrap().rounds
    };
    // On a busy machine one compaction may take as long as several elsewhere.
    let mut least_s = 1;
    let outcome = loop {
        options.least_compaction = Duration::from_secs(least_s);
        let outcome = interference(&options, &AtomicBool::new(false)).unwrap();
        assert!(is_empty(directory.path()));
        if rounds_of(&outcome) > 1 || least_s > 30 {
            break outcome;
        }
        least_s *= 4;
    };
    let run = &outcome.points[0].runs[0];
    let compaction = run.compaction.as_ref().unwrap();
    assert!(compaction.rounds > 1, "{compaction:?}");
    // Unless the table is so small that the limit of 100 rounds is reached.
    assert!(compaction.elapsed_s >= least_s as f64 || compaction.rounds == 100);
    let rounds = u64::from(compaction.rounds);
    let table = &outcome.points[0].data;
    assert_eq!(
        compaction.input_uncompressed_bytes,
        rounds * table.uncompressed_bytes
    );
    assert_eq!(compaction.input_bytes, rounds * table.bytes);
    assert_eq!(compaction.output_bytes % rounds, 0);
    let last = run.samples.last().unwrap();
    assert_eq!(
        last.compaction_read_bytes,
        compaction.input_uncompressed_bytes
    );
    // Later reads used the last output, which is complete.
    assert!(run.after.operations > 0 && run.after.errors == 0);
    assert_eq!(run.generator.rows_not_found, 0);
}

/// The input is damaged outside of the hot rows, or in a hot row; in the latter case nothing can be measured.
#[test]
fn a_failure_leaves_nothing_either() {
    let _alone = ONE_AT_A_TIME.lock();
    let (tables, directory) = (directory(), directory());
    let mut made = GenerateOptions::new(Shape::KeyValue, tables.path());
    made.sstables = 2;
    made.amount = Amount::Bytes(4 << 20);
    let report = generate(IoOptions::default(), made, &mut NoObserver).unwrap();
    let paths: Vec<PathBuf> = report.sstables.into_iter().map(|s| s.data_path).collect();
    let mut bytes = std::fs::read(&paths[0]).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&paths[0], &bytes).unwrap();

    let mut options = small(directory.path(), &["idle", "buffered/buffered"]);
    options.setup.data = Data::Given(paths.clone());
    options.setup.warm_ups = 0;
    options.setup.memory_limit_bytes = Some(512 << 20);
    options.hot_sets_bytes = vec![64 << 10];
    match interference(&options, &AtomicBool::new(false)) {
        Ok(outcome) => {
            let runs = &outcome.points[0].runs;
            let of = |arm: &str| runs.iter().find(|run| run.arm.to_string() == arm).unwrap();
            assert_eq!(of("buffered/buffered").attempt.invalid[0].kind, "failed");
            assert!(
                of("idle")
                    .attempt
                    .invalid
                    .iter()
                    .all(|i| i.kind != "failed")
            );
        }
        Err(error) => assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}"),
    }
    assert!(is_empty(directory.path()) && cgroups().is_empty());
    assert!(paths.iter().all(|path| path.exists()));
}
