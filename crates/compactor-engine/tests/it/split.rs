//! Merges into several outputs of a maximum size.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use compactor_engine::input::{InputSstable, Scan};
use compactor_engine::job::{MergeJob, MergeOptions, OutputCompression, OutputSplit};
use compactor_engine::merge::Observer;
use compactor_io::ReadMode;
use compactor_sstable::Component;
use compactor_sstable::compression::codec::Codec;
use compactor_sstable::compression::info::CompressionParams;
use compactor_testkit::campaign;
use compactor_testkit::machine::disk_directory;

use crate::files::{
    contents, io, key_value_schema, key_value_source, key_value_sstables, merge_files, options,
    write_sstable,
};
use compactor_testkit::model::decode::decode;
use compactor_testkit::model::table::Table;

const LIMIT: u64 = 100_000;

fn lz4() -> OutputCompression {
    OutputCompression::Params(CompressionParams::new(Codec::Lz4, 4096))
}

/// Merges into `output`; returns the `Data.db` of each output, in the order of the outcome.
fn outputs(options: MergeOptions) -> Vec<PathBuf> {
    let outcome = merge_files(&io(), options).unwrap();
    let outputs = outcome.outputs.iter();
    outputs
        .map(|o| o.descriptor.path(Component::Data))
        .collect()
}

fn table(data: &Path) -> Table {
    let mut scan = Scan::open(&io(), data, ReadMode::Buffered).unwrap();
    decode(&key_value_schema(), scan.cursor()).unwrap()
}

/// Positions of the partitions in the uncompressed `Data.db`, and its end.
fn boundaries(data: &Path) -> Vec<u64> {
    let mut scan = Scan::open(&io(), data, ReadMode::Buffered).unwrap();
    let cursor = scan.cursor();
    let mut boundaries = Vec::new();
    while cursor.next_partition().unwrap() {
        boundaries.push(cursor.partition_position());
        loop {
            cursor.next_unfiltered().unwrap();
            if cursor.clustering().is_none() {
                break;
            }
        }
    }
    boundaries.push(cursor.position());
    boundaries
}

/// Stored length of the chunks before an uncompressed position that are followed by other bytes.
fn stored_before(data: &Path, position: u64) -> u64 {
    let info = data
        .to_str()
        .unwrap()
        .replace("Data.db", "CompressionInfo.db");
    let Ok(bytes) = std::fs::read(info) else {
        return position;
    };
    let file = compactor_sstable::descriptor::Descriptor::parse(data).unwrap();
    let version = file.descriptor.version;
    let len = std::fs::metadata(data).unwrap().len();
    let info =
        compactor_sstable::compression::info::CompressionInfo::parse(&bytes, version, len).unwrap();
    let whole = (position.saturating_sub(1) / u64::from(info.params.chunk_len)) as usize;
    info.chunk_offsets.get(whole).copied().unwrap_or(len)
}

#[test]
fn the_next_output_begins_at_the_first_partition_beyond_the_size() {
    let directory = disk_directory();
    let inputs = key_value_sstables(&directory.path().join("inputs"), 900, 700);
    let noop = || OutputCompression::Params(CompressionParams::new(Codec::Noop, 16_384));
    for (name, compression) in [
        ("none", OutputCompression::None),
        ("noop", noop()),
        ("lz4", lz4()),
    ] {
        let mut options = options(&inputs, &directory.path().join(name));
        options.compression = compression.clone();
        let whole = table(
            &outputs(MergeOptions {
                output_directory: directory.path().join(format!("{name}-whole")),
                ..options.clone()
            })[0],
        );
        options.split = OutputSplit::MaxBytes(LIMIT);
        let parts = outputs(options);
        assert!(parts.len() > 4, "{name}: {parts:?}");
        let mut together = Table::new();
        for (number, part) in parts.iter().enumerate() {
            let part_table = table(part);
            if let (Some((before, _)), Some((first, _))) =
                (together.last_key_value(), part_table.first_key_value())
            {
                assert!(before < first, "{name}: {} is out of order", part.display());
            }
            together.extend(part_table);
            let boundaries = boundaries(part);
            let [.., last, end] = boundaries[..] else {
                panic!("{name}: {} is empty", part.display())
            };
            let (before, stored) = (stored_before(part, last), stored_before(part, end));
            assert!(before <= LIMIT, "{name}: {before} and one more partition");
            if number + 1 < parts.len() {
                assert!(stored > LIMIT, "{name}: {stored} bytes and not the last");
            }
        }
        assert!(together == whole, "{name}: rows differ");
    }
}

/// Length of each partition of a table whose partitions have equal lengths.
fn partition_len(data: &Path) -> u64 {
    let boundaries = boundaries(data);
    let len = boundaries[1];
    let alike = (0..).step_by(len as usize);
    assert!(boundaries.iter().copied().eq(alike.take(boundaries.len())));
    len
}

/// Whether or not the chunk also ends a block.
#[test]
fn a_full_chunk_counts_once_bytes_follow_it() {
    const CHUNK_LEN: u64 = 4096;
    const STORED_LEN: u64 = CHUNK_LEN + 4;
    let directory = disk_directory();
    let noop = CompressionParams::new(Codec::Noop, CHUNK_LEN as u32);
    let mut ids = 1..;
    let mut input_of = |partitions: i32, len: u64| {
        let mut write = |value_len: u64| {
            let source = key_value_source(1, 0..partitions, value_len as usize);
            let (id, schema) = (ids.next().unwrap(), key_value_schema());
            write_sstable(directory.path(), id, &schema, &source, None).unwrap()
        };
        let overhead = partition_len(&write(len - 50)) - (len - 50);
        let input = write(len - overhead);
        assert_eq!(partition_len(&input), len);
        input
    };
    // 64 chunks are a block.
    let short = [CHUNK_LEN, CHUNK_LEN - 1, CHUNK_LEN + 1].into_iter();
    let cases = short.map(|len| (200, len, vec![1, 2, 63, 64, 65, 128]));
    let long = (3, 192 * CHUNK_LEN, vec![191, 192, 193]);
    for (partitions, len, limits) in campaign::some_of(cases.chain([long])) {
        let input = input_of(partitions, len);
        for chunks in limits {
            let output = directory.path().join(format!("{len}-{chunks}"));
            let mut options = options(std::slice::from_ref(&input), &output);
            options.compression = OutputCompression::Params(noop.clone());
            options.split = OutputSplit::MaxBytes(chunks * STORED_LEN - 1);
            let first = &outputs(options)[0];
            let counted = |partitions: u64| (partitions * len - 1) / CHUNK_LEN;
            let expected = (1..).find(|n| counted(*n) >= chunks).unwrap();
            let found = boundaries(first).len() as u64 - 1;
            assert_eq!(
                found, expected,
                "{chunks} chunks, partitions of {len} bytes"
            );
        }
    }
}

/// The boundaries of outputs depend only on the data.
#[test]
fn output_boundaries_do_not_depend_on_threads_or_memory() {
    let directory = disk_directory();
    let mut inputs = key_value_sstables(&directory.path().join("inputs"), 3000, 300);
    let mut first: Option<BTreeMap<PathBuf, Option<Vec<u8>>>> = None;
    for (threads, memory_bytes) in [
        (1, 64 << 20),
        (4, 8 << 20),
        (2, 256 << 10),
        (8, 64 << 20),
        (3, 0),
    ] {
        inputs.rotate_left(1);
        let output = directory.path().join("output");
        let mut options = options(&inputs, &output);
        options.threads = threads;
        options.memory_bytes = memory_bytes;
        options.compression = lz4();
        options.split = OutputSplit::MaxBytes(LIMIT);
        assert!(outputs(options).len() > 4);
        let files = contents(&output);
        std::fs::remove_dir_all(&output).unwrap();
        match &first {
            None => first = Some(files),
            Some(first) => {
                for (name, bytes) in first {
                    assert!(files.get(name) == Some(bytes), "{} differs", name.display());
                }
                assert_eq!(first.len(), files.len());
            }
        }
    }
}

/// As `ShardedCompactionWriter`: a token that ends an output is in it, and an output without partitions is omitted.
#[test]
fn outputs_end_at_tokens() {
    let directory = disk_directory();
    let inputs = key_value_sstables(&directory.path().join("inputs"), 300, 50);
    let mut options = options(&inputs, &directory.path().join("output"));
    let whole = options.clone();
    let whole = MergeOptions {
        output_directory: directory.path().join("whole"),
        ..whole
    };
    let all: Vec<i64> = tokens(&outputs(whole)[0]);
    let ends = vec![i64::MIN, all[10], all[10] + 1, all[200], i64::MAX];
    options.split = OutputSplit::Tokens(ends);
    options.level = Some(3);
    let parts = outputs(options.clone());
    let found: Vec<Vec<i64>> = parts.iter().map(|part| tokens(part)).collect();
    assert_eq!(found, [&all[..=10], &all[11..=200], &all[201..]]);
    for part in &parts {
        let input = InputSstable::open(&io(), part, ReadMode::Buffered).unwrap();
        assert_eq!(input.statistics.stats.level, 3);
    }
    options.split = OutputSplit::Tokens(vec![5, 5]);
    let refused = MergeJob::open(io(), options).unwrap_err().to_string();
    assert!(refused.contains("must ascend"), "{refused}");
}

/// Tokens of the partitions, in ring order.
fn tokens(data: &Path) -> Vec<i64> {
    table(data).into_keys().map(|(token, _)| token).collect()
}

/// A partition larger than the maximum size is an output of its own.
#[test]
fn a_partition_is_never_divided() {
    let directory = disk_directory();
    let inputs = key_value_sstables(&directory.path().join("inputs"), 30, 5000);
    let mut options = options(&inputs, &directory.path().join("output"));
    options.compression = OutputCompression::None;
    options.split = OutputSplit::MaxBytes(1);
    let parts = outputs(options.clone());
    assert_eq!(parts.len(), 30);
    assert!(parts.iter().all(|part| table(part).len() == 1));
    options.split = OutputSplit::MaxBytes(0);
    let refused = MergeJob::open(io(), options).unwrap_err().to_string();
    assert!(refused.contains("0 bytes"), "{refused}");
}

/// Refuses the output with this number.
struct Refuse(usize);

impl Observer for Refuse {
    fn is_cancelled(&self) -> bool {
        false
    }

    fn progress(&mut self, _read_bytes: u64, _rows: u64, _partitions: u64) {}

    fn before_publish(&mut self, data_path: &Path) -> compactor_engine::Result<()> {
        assert!(data_path.exists(), "{}", data_path.display());
        match self.0.checked_sub(1) {
            Some(left) => self.0 = left,
            None => {
                let refused = "changed my mind".to_owned();
                return Err(compactor_engine::Error::Refused(refused));
            }
        }
        Ok(())
    }
}

#[test]
fn all_outputs_appear_or_none() {
    let directory = disk_directory();
    let inputs = key_value_sstables(&directory.path().join("inputs"), 900, 700);
    let output = directory.path().join("output");
    let mut options = options(&inputs, &output);
    options.compression = OutputCompression::None;
    options.split = OutputSplit::MaxBytes(LIMIT);
    for number in [0, 3] {
        let job = MergeJob::open(io(), options.clone()).unwrap();
        job.run(&mut Refuse(number)).unwrap_err();
        assert!(!output.exists(), "{:?}", contents(&output).keys());
    }
    // A file that is not an SSTable has the id of the third output.
    std::fs::create_dir(&output).unwrap();
    let job = MergeJob::open(io(), options).unwrap();
    let mut third = job.settings().descriptor.clone();
    for _ in 0..2 {
        third.id = compactor_sstable::sstable_id::SstableId::next_sequence([third.id]).unwrap();
    }
    let taken = third.path(Component::Data);
    std::fs::write(&taken, b"mine").unwrap();
    job.run(&mut Refuse(usize::MAX)).unwrap_err();
    let name = PathBuf::from(taken.file_name().unwrap());
    assert_eq!(contents(&output), [(name, Some(b"mine".to_vec()))].into());
}
