//! Files to files: what `compactor merge` does, small. Reads, decodes, merges, encodes, syncs and
//! publishes all components.
//!
//! On the file system of `TMPDIR`, else of `/var/tmp`. Buffered merges find their inputs in the page
//! cache from the second round on, and auto merges, direct where that is possible, never do: these
//! figures are for comparing a build with the one before it, not one mode with the other.

use std::path::{Path, PathBuf};

use compactor::generate::{Amount, GenerateOptions, GenerateReport, Shape, generate};
use compactor::{MergeReport, MergeRequest, NoObserver};
use compactor_io::{IoOptions, ReadMode, WriteMode};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use tempfile::TempDir;

/// Uncompressed bytes of all inputs together, roughly.
const LEN: u64 = 32 << 20;

/// Throughput: uncompressed bytes of `Data.db` of all inputs.
fn end_to_end(c: &mut Criterion) {
    let mut group = c.benchmark_group("end_to_end");
    // Each takes long enough to tell builds apart from few of them.
    group.sample_size(10);
    for inputs in [2, 16] {
        let scratch = directory();
        let input = make_inputs(scratch.path(), inputs);
        group.throughput(Throughput::Bytes(input.uncompressed_bytes));
        for (case, read, write) in [
            ("auto", ReadMode::Auto, WriteMode::Auto),
            ("buffered", ReadMode::Buffered, WriteMode::Buffered),
        ] {
            check(
                &input,
                &merge(&input, &scratch.path().join(case), read, write),
            );
            group.bench_function(format!("{case}/{inputs}_inputs"), |b| {
                b.iter_batched(
                    || tempfile::tempdir_in(scratch.path()).expect("a directory"),
                    |output| (merge(&input, output.path(), read, write), output),
                    BatchSize::PerIteration,
                );
            });
        }
    }
    group.finish();
}

fn directory() -> TempDir {
    let parent = std::env::var_os("TMPDIR").map_or_else(|| "/var/tmp".into(), PathBuf::from);
    tempfile::tempdir_in(parent).expect("a directory")
}

/// Key-value data, half of whose partitions are in every input.
fn make_inputs(directory: &Path, inputs: u32) -> GenerateReport {
    let mut options = GenerateOptions::new(Shape::KeyValue, directory);
    options.sstables = inputs;
    options.amount = Amount::Bytes(LEN / u64::from(inputs));
    options.value_len = 300;
    generate(IoOptions::default(), options, &mut NoObserver).expect("inputs")
}

fn merge(input: &GenerateReport, output: &Path, read: ReadMode, write: WriteMode) -> MergeReport {
    let inputs = input.sstables.iter().map(|s| s.data_path.clone()).collect();
    let mut request = MergeRequest::new(inputs, output);
    request.read_mode = read;
    request.write_mode = write;
    compactor::merge::merge(request, &mut NoObserver).expect("a merge")
}

/// Every partition was read, and those of one key became one.
fn check(input: &GenerateReport, report: &MergeReport) {
    let counts = report.merge_counts.as_deref().unwrap_or_default();
    let (alone, common) = (counts[0], counts[input.sstables.len() - 1]);
    assert_eq!(report.partitions_read, input.partitions);
    assert_eq!(report.partitions_written, alone + common);
    assert_eq!(report.rows_written, report.partitions_written);
    let share = common as f64 * input.sstables.len() as f64 / input.partitions as f64;
    assert!(
        (0.45..0.55).contains(&share),
        "{share} of the partitions are in all inputs"
    );
}

criterion_group!(name = benches; config = compactor_benches::criterion(); targets = end_to_end);
criterion_main!(benches);
