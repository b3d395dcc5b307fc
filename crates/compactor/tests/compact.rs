//! What a compaction of a table refuses.

use compactor::compact::{CompactRequest, Compaction, Plan};
use compactor::generate::{Amount, GenerateOptions, Shape, generate};
use compactor::io::{Io, IoOptions};
use compactor::{ErrorKind, InputCheck, MergeRequest, NoObserver};
use tempfile::TempDir;

/// All outputs of a merge but the first would be lost, while their inputs count as replaced.
#[test]
fn several_outputs_of_a_merge_are_refused() {
    let temp = TempDir::new().unwrap();
    let mut options = GenerateOptions::new(Shape::KeyValue, temp.path().join("data"));
    options.sstables = 2;
    options.amount = Amount::Rows(10);
    let made = generate(IoOptions::default(), options, &mut NoObserver).unwrap();
    let inputs = made.sstables.into_iter().map(|s| s.data_path).collect();
    let output = temp.path().join("output");
    let mut merges = MergeRequest::new(inputs, &output);
    merges.max_sstable_size = Some(1000);
    let request = CompactRequest {
        merges,
        plan: Plan::Major,
        concurrent: 1,
        check: InputCheck::AllComponents,
    };
    let io = Io::new(IoOptions::default()).unwrap();
    let error = Compaction::open(io, request).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    assert!(error.to_string().contains("greatest size"), "{error}");
    assert!(!output.exists());
}
