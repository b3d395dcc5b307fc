//! SSTables compacted in the order of their flushes, at times of a virtual clock.

use std::path::{Path, PathBuf};

use compactor::compact::replay::Replay;
use compactor::compact::{CompactRequest, Plan};
use compactor::writer::RowTimes;
use compactor::{
    ErrorKind, ExistingOutput, InputCheck, MergeRequest, NoObserver, Scope, SstableWriter, Value,
};
use compactor_io::{Io, IoOptions};
use compactor_strategy::CompactionParams;
use compactor_strategy::options::Options;
use compactor_strategy::release::Release;
use tempfile::TempDir;

const ROWS: i64 = 100;
const TTL_S: u32 = 150;
const GC_GRACE_S: i64 = 10;

/// Writes an SSTable of rows with this write time.
fn flush(directory: &Path, at_s: i64) -> PathBuf {
    let schema = "CREATE TABLE ks.t (k bigint PRIMARY KEY, v bigint)";
    let options = SstableWriter::new(schema).unwrap().flat(true);
    let mut writer = options
        .existing_output(ExistingOutput::Keep)
        .open(directory)
        .unwrap();
    for row in 0..ROWS {
        let values = [("k", Value::BigInt(at_s * ROWS + row)), ("v", row.into())];
        let times = RowTimes::at(at_s * 1_000_000)
            .with_ttl(TTL_S)
            .written_s(at_s);
        writer.add_row_with(values, times).unwrap();
    }
    writer.finish().unwrap().sstables.remove(0).data_path
}

/// A strategy that merges any two SSTables.
fn request(output: &Path) -> CompactRequest {
    let mut merges = MergeRequest::new(Vec::new(), output);
    merges.scope = Scope::Complete;
    merges.now_s = 0;
    merges.gc_before_s = Some(-GC_GRACE_S);
    let options = Options::from([("min_threshold".to_owned(), "2".to_owned())]);
    let strategy = "SizeTieredCompactionStrategy";
    let params = CompactionParams::from_options(strategy, &options, Release::V5_0).unwrap();
    CompactRequest {
        merges,
        plan: Plan::Strategy(params),
        max_compactions: None,
        concurrent: 4,
        check: InputCheck::AllComponents,
        verify_outputs: true,
        recorder: None,
    }
}

#[test]
fn rows_expire_by_the_time_of_each_compaction() {
    let temp = TempDir::new().unwrap();
    let (flushed, output) = (temp.path().join("flushed"), temp.path().join("output"));
    let io = Io::new(IoOptions::default()).unwrap();
    let mut replay = Replay::open(io, request(&output)).unwrap();
    let mut written = 0;
    let mut inputs = Vec::new();
    // Rows of 1000 s expire at 1150 s: not when the first two SSTables are merged, but when the next is added.
    for (at_s, rows_purged) in [(1000, 0), (1100, 0), (1200, ROWS), (1270, 2 * ROWS)] {
        let data_path = flush(&flushed, at_s);
        replay.add(&data_path, at_s).unwrap();
        inputs.push(data_path);
        replay.compact(at_s, &mut NoObserver).unwrap();
        let present = replay.sstables();
        assert_eq!(present.len(), 1);
        let bytes = present[0].data_path.metadata().unwrap().len();
        assert_eq!(present[0].data_bytes, bytes);
        written += if at_s > 1000 { bytes } else { 0 };
        assert_eq!(replay.report().data_bytes_written, written);
        // A row has a liveness and a cell.
        assert_eq!(replay.report().purged, 2 * rows_purged as u64, "{at_s}");
    }
    assert_eq!(replay.written_by_level()[&0], written);
    let report = replay.finish().unwrap();
    assert_eq!((report.compactions, report.outputs.len()), (3, 1));
    assert!(report.outputs[0].sstable.data_path.starts_with(&output));
    assert!(report.outputs[0].sstable.data_path.exists());
    assert!(inputs.iter().all(|path| path.exists()));
}

#[test]
fn a_time_of_writing_that_cannot_be_stored_is_refused() {
    let temp = TempDir::new().unwrap();
    let schema = "CREATE TABLE ks.t (k bigint PRIMARY KEY)";
    let mut writer = SstableWriter::new(schema)
        .unwrap()
        .open(temp.path())
        .unwrap();
    for written_s in [-1, i64::MAX] {
        let times = RowTimes::at(1).with_ttl(1).written_s(written_s);
        let error = writer.add_row_with([("k", 1i64)].map(|(n, v)| (n, v.into())), times);
        assert_eq!(error.unwrap_err().kind(), ErrorKind::InvalidInput);
    }
}

/// Consuming one of two entries would remove the other from the SSTables that limit purging.
#[test]
fn an_sstable_is_added_once() {
    let temp = TempDir::new().unwrap();
    let (flushed, output) = (temp.path().join("flushed"), temp.path().join("output"));
    let io = Io::new(IoOptions::default()).unwrap();
    let mut replay = Replay::open(io.clone(), request(&output)).unwrap();
    let data_path = flush(&flushed, 1000);
    replay.add(&data_path, 1000).unwrap();
    let spelled = flushed.join(".").join(data_path.file_name().unwrap());
    for again in [&data_path, &spelled] {
        let error = replay.add(again, 1001).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains("added twice"), "{error}");
    }
    assert_eq!(replay.sstables().len(), 1);
    let mut limited = request(&temp.path().join("limited"));
    limited.max_compactions = Some(1);
    let error = Replay::open(io, limited).unwrap_err();
    assert!(
        error.to_string().contains("limit of compactions"),
        "{error}"
    );
}
