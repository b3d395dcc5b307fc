//! What a compaction of a table refuses, and what its merges share.

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use compactor::compact::{CompactRequest, Compaction, Plan};
use compactor::generate::{Amount, GenerateOptions, Shape, generate};
use compactor::{
    ErrorKind, InputCheck, MergeRequest, NoObserver, Observer, OutputSplit, RateLimiter, Result,
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

/// All that merges at a time read is on one bill, so that a rate is that of all together.
#[test]
fn merges_at_a_time_share_one_rate() {
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

/// Cancels when so many merges have ended.
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

/// What is complete is not called interrupted, however late somebody asked to stop.
#[test]
fn an_interruption_is_one_where_something_is_left_to_do() {
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
