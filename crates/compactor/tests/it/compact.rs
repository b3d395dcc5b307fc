//! Compactions of a table: refusals, shared settings, and what is planned.

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use compactor::compact::{
    CompactRequest, Compacted, CompactedSstable, Compaction, Plan, PlannedCompaction,
};
use compactor::generate::{Amount, GenerateOptions, Shape, generate};
use compactor::table::Release;
use compactor::table::plan::PlannedKind;
use compactor::writer::RowTimes;
use compactor::{
    ErrorKind, InputCheck, MergeRequest, NoObserver, Observer, OutputSplit, RateLimiter, Result,
    Scope, SstableWriter, Value,
};
use compactor_io::{Io, IoOptions};
use compactor_strategy::CompactionParams;
use compactor_strategy::size_tiered::SizeTieredOptions;
use tempfile::TempDir;

fn sstables(temp: &TempDir, count: u32) -> Vec<PathBuf> {
    let mut options = GenerateOptions::new(Shape::KeyValue, temp.path().join("data"));
    options.sstables = count;
    options.amount = Amount::Rows(10);
    let made = generate(IoOptions::default(), options, &mut NoObserver).unwrap();
    made.sstables.into_iter().map(|s| s.data_path).collect()
}

/// Concurrent merges draw from one rate limiter, so that the limit applies to their total.
#[test]
fn concurrent_merges_share_one_rate_limit() {
    let temp = TempDir::new().unwrap();
    let inputs = sstables(&temp, 8);
    let lens = inputs.iter().map(|path| path.metadata().unwrap().len());
    let bytes: u64 = lens.sum();
    let limiter = Arc::new(RateLimiter::new(NonZeroU64::new(1 << 40).unwrap()));
    let mut merges = MergeRequest::new(inputs, temp.path().join("output"));
    merges.rate_limiter = Some(Arc::clone(&limiter));
    let four = [("max_threshold".to_owned(), "4".to_owned())];
    let strategy = SizeTieredOptions::from_options(&four.into_iter().collect()).unwrap();
    let request = CompactRequest {
        merges,
        plan: Plan::Strategy(CompactionParams::size_tiered(strategy)),
        max_compactions: None,
        concurrent: 2,
        check: InputCheck::AllComponents,
        verify_outputs: false,
        recorder: None,
    };
    let io = Io::new(IoOptions::default()).unwrap();
    let compaction = Compaction::open(io, request).unwrap();
    let compacted = compaction.run(&mut NoObserver).unwrap();
    assert!(compacted.error.is_none(), "{:?}", compacted.error);
    assert_eq!(compacted.report.compactions, 2);
    assert_eq!(limiter.taken_bytes(), bytes);
}

/// Cancels after this many merges.
struct CancelsAfter(AtomicUsize);

impl Observer for CancelsAfter {
    fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }

    fn progress(&mut self, _read_bytes: u64, _rows: u64, _partitions: u64) {}

    fn before_publish(&mut self, _data_path: &std::path::Path) -> Result<()> {
        self.0.fetch_sub(1, Ordering::Relaxed);
        Ok(())
    }
}

/// A complete compaction is not reported as interrupted, however late it was cancelled.
#[test]
fn an_interruption_is_reported_only_if_work_remains() {
    for (ended, left, is_interrupted) in [(1, 5, true), (2, 2, false), (3, 2, false)] {
        let temp = TempDir::new().unwrap();
        let inputs = sstables(&temp, 8);
        let merges = MergeRequest::new(inputs, temp.path().join("output"));
        let four = [("max_threshold".to_owned(), "4".to_owned())];
        let strategy = SizeTieredOptions::from_options(&four.into_iter().collect()).unwrap();
        let request = CompactRequest {
            merges,
            plan: Plan::Strategy(CompactionParams::size_tiered(strategy)),
            max_compactions: None,
            concurrent: 1,
            check: InputCheck::AllComponents,
            verify_outputs: false,
            recorder: None,
        };
        let io = Io::new(IoOptions::default()).unwrap();
        let compaction = Compaction::open(io, request).unwrap();
        let mut observer = CancelsAfter(AtomicUsize::new(ended));
        let report = compaction.run(&mut observer).unwrap().report;
        assert_eq!(report.interrupted, is_interrupted, "{ended}");
        assert_eq!(report.sstables_after, left, "{ended}");
    }
}

/// Cancels a compaction that does not end.
struct Deadline(Instant);

impl Deadline {
    fn soon() -> Deadline {
        Deadline(Instant::now() + Duration::from_secs(20))
    }
}

impl Observer for Deadline {
    fn is_cancelled(&self) -> bool {
        self.0 < Instant::now()
    }

    fn progress(&mut self, _read_bytes: u64, _rows: u64, _partitions: u64) {}
}

fn generated(temp: &TempDir, shape: Shape, sstables: u32, rows: u64) -> Vec<PathBuf> {
    let mut options = GenerateOptions::new(shape, temp.path().join("data"));
    options.sstables = sstables;
    options.amount = Amount::Rows(rows);
    let made = generate(IoOptions::default(), options, &mut NoObserver).unwrap();
    made.sstables.into_iter().map(|s| s.data_path).collect()
}

fn compaction(merges: MergeRequest, class: &str, options: &[(&str, &str)]) -> CompactRequest {
    let options = options.iter().map(|(k, v)| (k.to_string(), v.to_string()));
    let params = CompactionParams::from_options(class, &options.collect(), Release::V5_0);
    CompactRequest {
        merges,
        plan: Plan::Strategy(params.unwrap()),
        max_compactions: None,
        concurrent: 1,
        check: InputCheck::AllComponents,
        verify_outputs: false,
        recorder: None,
    }
}

fn run(request: CompactRequest, observer: &mut dyn Observer) -> Compacted {
    let io = Io::new(IoOptions::default()).unwrap();
    let compaction = Compaction::open(io, request).unwrap();
    compaction.run(observer).unwrap()
}

/// Leveled compaction selects suspect SSTables of L1 together with overlapping ones of L0.
#[test]
fn a_damaged_sstable_of_a_level_is_skipped() {
    let temp = TempDir::new().unwrap();
    let l0 = generated(&temp, Shape::KeyValue, 3, 1500);
    let leveled = |inputs: &[PathBuf], output: &str| {
        let merges = MergeRequest::new(inputs.to_vec(), temp.path().join(output));
        let options = [("sstable_size_in_mb", "1")];
        let request = compaction(merges, "LeveledCompactionStrategy", &options);
        run(request, &mut Deadline::soon())
    };
    let in_l1 = leveled(&l0, "levels").report.outputs;
    assert!(in_l1.len() > 1 && in_l1.iter().all(|output| output.level == 1));
    let in_l1 = in_l1.iter().map(|output| output.sstable.data_path.clone());
    let in_l1: Vec<PathBuf> = in_l1.collect();
    let mut data = std::fs::read(&in_l1[0]).unwrap();
    let middle = data.len() / 2;
    data[middle] ^= 1;
    std::fs::write(&in_l1[0], data).unwrap();
    let all = [&l0[..], &in_l1[..]].concat();
    let compacted = leveled(&all, "output");
    let error = compacted.error.expect("it is damaged");
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    let report = compacted.report;
    assert!(!report.interrupted, "{} failures", report.failed.len());
    assert_eq!(report.failed.len(), 1);
    assert_eq!(report.failed[0].inputs, in_l1[..1]);
    assert_eq!(report.untouched, in_l1[..1]);
    assert!(report.compactions > 0);
}

#[test]
fn a_change_of_level_is_executed_as_planned() {
    let temp = TempDir::new().unwrap();
    let l0 = generated(&temp, Shape::KeyValue, 3, 1500);
    let merges = MergeRequest::new(l0, temp.path().join("levels"));
    let options = [("sstable_size_in_mb", "1")];
    let request = compaction(merges, "LeveledCompactionStrategy", &options);
    let outputs = run(request, &mut NoObserver).report.outputs;
    let paths = outputs.into_iter().map(|output| output.sstable.data_path);
    let merges = MergeRequest::new(paths.collect(), temp.path().join("output"));
    let options = [
        ("sstable_size_in_mb", "1"),
        ("fanout_size", "1"),
        ("single_sstable_uplevel", "true"),
    ];
    let mut request = compaction(merges, "LeveledCompactionStrategy", &options);
    request.max_compactions = Some(1);
    let io = Io::new(IoOptions::default()).unwrap();
    let opened = Compaction::open(io, request).unwrap();
    let planned = opened.plan();
    let is_move = |planned: &PlannedCompaction| planned.kind == PlannedKind::LevelOnly;
    assert!(planned.iter().all(is_move), "{planned:?}");
    let report = opened.run(&mut NoObserver).unwrap().report;
    assert!(report.level_changes > 1);
    assert_eq!(planned.len(), report.level_changes);
}

/// The tombstones shadow data of the other SSTable, so the rewrite cannot purge them.
#[test]
fn unpurgeable_tombstones_are_rewritten_once() {
    let temp = TempDir::new().unwrap();
    let inputs = generated(&temp, Shape::Tombstones, 2, 2000);
    let mut merges = MergeRequest::new(inputs, temp.path().join("output"));
    merges.scope = Scope::Complete;
    merges.now_s = 2_000_000_000;
    merges.gc_before_s = Some(1_999_000_000);
    let options = [
        ("tombstone_threshold", "0.01"),
        ("tombstone_compaction_interval", "0"),
        ("unchecked_tombstone_compaction", "true"),
    ];
    let request = compaction(merges, "SizeTieredCompactionStrategy", &options);
    let compacted = run(request, &mut Deadline::soon());
    assert!(compacted.error.is_none(), "{:?}", compacted.error);
    assert!(!compacted.report.interrupted);
    assert_eq!(compacted.report.compactions, 2);
}

/// An input is not an overlapping SSTable of itself, which would keep all of its tombstones.
#[test]
fn a_directory_with_a_trailing_dot_is_the_same() {
    let temp = TempDir::new().unwrap();
    let inputs = generated(&temp, Shape::Tombstones, 4, 2000);
    let purged = |directory: &str| {
        let spelled = |path: &PathBuf| {
            let name = path.file_name().unwrap();
            path.with_file_name(directory).join(name)
        };
        let inputs = inputs.iter().map(spelled).collect();
        let mut merges = MergeRequest::new(inputs, temp.path().join(format!("output{directory}")));
        merges.scope = Scope::Complete;
        merges.now_s = 2_000_000_000;
        merges.gc_before_s = Some(1_999_000_000);
        let request = compaction(merges, "SizeTieredCompactionStrategy", &[]);
        run(request, &mut NoObserver).report.purged
    };
    let plain = purged("");
    assert!(plain > 0);
    assert_eq!(purged("."), plain);
}

#[test]
fn sstables_with_remaining_ttls_are_pending() {
    for (ended, is_interrupted) in [(1, true), (9, false)] {
        let temp = TempDir::new().unwrap();
        let inputs = generated(&temp, Shape::TimeSeries, 5, 10);
        let mut merges = MergeRequest::new(inputs, temp.path().join("output"));
        merges.strip_ttl = true;
        let four = [("max_threshold", "4")];
        let mut request = compaction(merges, "SizeTieredCompactionStrategy", &four);
        request.max_compactions = Some(1);
        let report = run(request, &mut CancelsAfter(AtomicUsize::new(ended))).report;
        assert_eq!(report.interrupted, is_interrupted);
        assert_eq!(report.untouched.len(), usize::from(is_interrupted));
        let is_limited = |warning: &&String| warning.contains("--max-compactions");
        assert_eq!(report.warnings.iter().find(is_limited), None);
    }
}

#[test]
fn the_strategy_decides_where_outputs_are_split() {
    let temp = TempDir::new().unwrap();
    let inputs = sstables(&temp, 2);
    let output = temp.path().join("output");
    let mut merges = MergeRequest::new(inputs, &output);
    merges.split = OutputSplit::MaxBytes(1000);
    let request = CompactRequest {
        merges,
        plan: Plan::Major,
        max_compactions: None,
        concurrent: 1,
        check: InputCheck::AllComponents,
        verify_outputs: false,
        recorder: None,
    };
    let io = Io::new(IoOptions::default()).unwrap();
    let error = Compaction::open(io, request).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    assert!(
        error.to_string().contains("the strategy decides"),
        "{error}"
    );
    assert!(!output.exists());
}

/// Clustering values may compare equal but differ in bytes, so that the order of merging decides which are kept:
/// such merges are not split into ranges, but into shards.
#[test]
fn shards_of_a_table_whose_values_have_several_encodings() {
    let temp = TempDir::new().unwrap();
    let schema = "CREATE TABLE ks.t (k int, c varint, v text, PRIMARY KEY (k, c))";
    let inputs = ["one", "other"].map(|name| {
        let options = SstableWriter::new(schema).unwrap();
        let mut writer = options.open(temp.path().join(name)).unwrap();
        // Fewer partitions than the other, so that it has none in some shards.
        let partitions = if name == "one" { 300 } else { 2 };
        for k in 0..partitions {
            let values = [
                ("k", Value::Int(k)),
                ("c", Value::VarInt(vec![1])),
                ("v", name.into()),
            ];
            writer.add_row(values).unwrap();
        }
        let written = writer.finish().unwrap();
        written.sstables[0].data_path.clone()
    });
    let shards = |threads: usize| {
        let output = temp.path().join(format!("output-{threads}"));
        let mut merges = MergeRequest::new(inputs.to_vec(), &output);
        merges.threads = threads;
        merges.range_bytes = Some(1000);
        let options = [("scaling_parameters", "T2"), ("min_sstable_size", "0B")];
        let compacted = run(
            compaction(merges, "UnifiedCompactionStrategy", &options),
            &mut NoObserver,
        );
        assert!(compacted.error.is_none(), "{:?}", compacted.error);
        let outputs = compacted.report.outputs;
        let read = |output: &CompactedSstable| std::fs::read(&output.sstable.data_path).unwrap();
        outputs.iter().map(read).collect::<Vec<_>>()
    };
    let one = shards(1);
    assert_eq!(one.len(), 4);
    assert!(shards(3) == one);
}

/// One row of keys 0 to 9 each, with times by the key.
fn written(temp: &TempDir, name: &str, bytes: usize, times: impl Fn(i32) -> RowTimes) -> PathBuf {
    let schema =
        "CREATE TABLE ks.t (k int PRIMARY KEY, v blob) WITH compression = {'enabled': 'false'}";
    let options = SstableWriter::new(schema).unwrap();
    let mut writer = options.open(temp.path().join(name)).unwrap();
    for k in 0..10 {
        let values = [("k", Value::Int(k)), ("v", Value::Blob(vec![0; bytes]))];
        writer.add_row_with(values, times(k)).unwrap();
    }
    writer.finish().unwrap().sstables[0].data_path.clone()
}

/// A node looks for expired SSTables periodically, so they are looked for again after the last merge.
#[test]
fn an_expired_sstable_is_dropped_once_the_older_data_is_merged() {
    const LATER: i64 = 500_000_000_000;
    for (class, options) in [
        (
            "TimeWindowCompactionStrategy",
            &[("min_threshold", "2")][..],
        ),
        (
            "UnifiedCompactionStrategy",
            &[
                ("scaling_parameters", "T2"),
                ("flush_size_override", "1MiB"),
            ],
        ),
    ] {
        let temp = TempDir::new().unwrap();
        let expired = RowTimes::at(20).with_ttl(60).written_s(1_000_000_000);
        let expired = written(&temp, "expired", 500_000, |_| expired);
        let older = written(&temp, "older", 10, |k| {
            RowTimes::at(if k > 5 { LATER } else { 10 })
        });
        let newer = written(&temp, "newer", 10, |_| RowTimes::at(LATER));
        // Kept because of the older data of this SSTable, and not retried endlessly.
        let outside = Scope::Overlapping(vec![written(&temp, "outside", 10, |_| RowTimes::at(5))]);
        for (scope, is_dropped) in [(Scope::Complete, true), (outside, false)] {
            let inputs = [&expired, &older, &newer].map(PathBuf::clone).to_vec();
            let output = temp.path().join(format!("output-{is_dropped}"));
            let mut merges = MergeRequest::new(inputs, output);
            merges.scope = scope;
            merges.now_s = 2_000_000_000;
            merges.gc_before_s = Some(1_999_000_000);
            let compacted = run(compaction(merges, class, options), &mut Deadline::soon());
            assert!(compacted.error.is_none(), "{:?}", compacted.error);
            let report = compacted.report;
            assert!(!report.interrupted, "{class}");
            if is_dropped {
                assert_eq!(
                    (report.compactions, report.outputs.len()),
                    (2, 1),
                    "{class}"
                );
            }
        }
    }
}
