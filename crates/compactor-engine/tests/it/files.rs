//! SSTables on disk, and helpers for directories.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use compactor_engine::input::Scan;
use compactor_engine::job::{MergeJob, MergeOptions, MergeOutcome};
use compactor_engine::publish::{ExistingOutput, OutputClaim, Replaceable, Staging};
use compactor_engine::read::Workers;
use compactor_engine::write::{OutputBlocks, SstableSettings, SstableWriter, WriteSettings};
use compactor_engine::{Error, Result};
use compactor_io::{BackendKind, Io, IoOptions, ReadMode, WriteMode};
use compactor_sstable::big::summary::DEFAULT_MIN_INDEX_INTERVAL;
use compactor_sstable::compression::info::CompressionParams;
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::partitioner::Partitioner;
use compactor_sstable::sstable_id::SstableId;
use compactor_sstable::statistics::CollectorSettings;

use compactor_testkit::model::case::{PurgePlan, Source};
use compactor_testkit::model::choices::Choices;
use compactor_testkit::model::engine::{Settings, Unobserved, merge_into, serialization_header};
use compactor_testkit::model::table::{Header, Partition, Row, Schema, Table};

pub fn io() -> Io {
    Io::new(IoOptions {
        backend: BackendKind::Threads,
        worker_threads: 4,
        ..IoOptions::default()
    })
    .unwrap()
}

/// Writes an SSTable; `None` if the table is empty.
pub fn write_sstable(
    directory: &Path,
    id: u32,
    schema: &Schema,
    source: &Source,
    compression: Option<CompressionParams>,
) -> Option<PathBuf> {
    let header = serialization_header(schema, &source.header);
    let descriptor = Descriptor::new(directory, source.header.version, SstableId::Sequence(id));
    let settings = SstableSettings {
        descriptor: descriptor.clone(),
        header,
        compression,
        bloom_filter_fp_chance: 0.01,
        expected_keys: source.table.len() as u64 + 1,
        min_index_interval: DEFAULT_MIN_INDEX_INTERVAL,
        column_index_size: 300,
        collector: CollectorSettings::default(),
    };
    let workers = Workers::start(1).unwrap();
    let write = WriteSettings {
        mode: WriteMode::Buffered,
        buffer_bytes: 64 << 10,
        blocks: Arc::new(OutputBlocks::new(3)),
        expected_len: None,
        queue: workers.queue(),
        cancelled: Arc::new(AtomicBool::new(false)),
    };
    let (sstable, writer) = SstableWriter::create(
        &io(),
        Staging::create(
            &OutputClaim::take(directory, ExistingOutput::Keep, Replaceable::default()).unwrap(),
        )
        .unwrap(),
        settings,
        Partitioner::Murmur3,
        &write,
    )
    .unwrap();
    let layout = Arc::clone(sstable.layout());
    let settings = Settings {
        output: source.header.clone(),
        now_s: 0,
        gc_before_s: i64::MIN,
        strips_ttl: false,
        output_block_len: 0,
        column_index_size: 0,
    };
    let limits = |key: &[u8]| PurgePlan::Nothing.limit(key);
    let input = [source.input(schema)];
    let (writer, _) = merge_into(&input, &settings, limits, writer, layout).unwrap();
    let written = sstable.finish(writer, |_| Ok(())).unwrap()?;
    Some(written.descriptor.path(compactor_sstable::Component::Data))
}

/// Returns every file below `directory` with its bytes, and every directory with `None`.
pub fn contents(directory: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    let Ok(entries) = fs::read_dir(directory) else {
        return found;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        let name = path.strip_prefix(directory).unwrap().to_owned();
        if path.is_dir() {
            let inner = contents(&path);
            found.extend(
                inner
                    .into_iter()
                    .map(|(below, bytes)| (name.join(below), bytes)),
            );
            found.insert(name, None);
        } else {
            found.insert(name, Some(fs::read(&path).unwrap()));
        }
    }
    found
}

/// Returns `Data.db` of every SSTable in `directory`.
pub fn sstables(directory: &Path) -> Vec<PathBuf> {
    let names = contents(directory).into_keys();
    names
        .filter(|name| name.components().count() == 1)
        .filter(|name| name.to_string_lossy().ends_with("-Data.db"))
        .map(|name| directory.join(name))
        .collect()
}

/// Opens an SSTable and reads it to its end; returns the number of partitions.
pub fn scan(path: &Path) -> Result<u64> {
    let io = io();
    let mut scan = Scan::open(&io, path, ReadMode::Buffered)?;
    let cursor = scan.cursor();
    let mut partitions = 0;
    while cursor.next_partition()? {
        partitions += 1;
        if let Some(row) = cursor.static_row() {
            row.read().map_err(|e| cursor.locate_error(e))?;
        }
        loop {
            cursor.next_unfiltered()?;
            if cursor.clustering().is_none() {
                break;
            }
            if let Some(row) = cursor.row() {
                row.read().map_err(|e| cursor.locate_error(e))?;
            }
        }
    }
    Ok(partitions)
}

/// Merges without an observer.
pub fn merge_files(io: &Io, options: MergeOptions) -> Result<MergeOutcome, Error> {
    MergeJob::open(io.clone(), options)?.run(&mut Unobserved)
}

/// Options of buffered merges that do not depend on the machine.
pub fn options(inputs: &[PathBuf], output: &Path) -> MergeOptions {
    let mut options = MergeOptions::new(inputs.to_vec(), output);
    options.read_mode = ReadMode::Buffered;
    options.write_mode = WriteMode::Buffered;
    options.threads = 2;
    options.memory_bytes = 4 << 20;
    options.now_s = compactor_testkit::model::generate::NOW_S;
    options
}

/// A table `(k int, c int, v blob, PRIMARY KEY (k, c))` with these partitions, each of one row with a value
/// of `value_len` bytes that hardly compresses.
pub fn key_value_source(seed: u64, keys: std::ops::Range<i32>, value_len: usize) -> Source {
    let mut choices = Choices::from_seed(seed);
    let mut table = Table::new();
    for key in keys {
        let mut value = Vec::with_capacity(value_len + 8);
        while value.len() < value_len {
            value.extend_from_slice(&choices.number().to_be_bytes());
        }
        value.truncate(value_len);
        let key = key.to_be_bytes().to_vec();
        table.insert(
            (Partitioner::Murmur3.token(&key), key),
            Partition {
                deletion: DeletionTime::LIVE,
                static_row: Row::empty(),
                unfiltereds: vec![compactor_testkit::model::table::Unfiltered::Row {
                    clustering: vec![Some(vec![0, 0, 0, 1])],
                    row: row_of(seed as i64, value),
                }],
            },
        );
    }
    Source {
        header: Header {
            version: compactor_sstable::Version::Oa,
            min_timestamp: 0,
            min_local_deletion_time: 0,
            min_ttl: 0,
            columns: vec![0],
        },
        table,
        liberties: None,
        block_len: 100_000,
    }
}

fn row_of(timestamp: i64, value: Vec<u8>) -> Row {
    let cell = compactor_testkit::model::table::Cell {
        timestamp,
        local_deletion_time: compactor_sstable::data::deletion_time::NO_DELETION_TIME,
        ttl: 0,
        path: Vec::new(),
        value,
    };
    let data = compactor_testkit::model::table::ColumnData {
        deletion: DeletionTime::LIVE,
        cells: vec![cell],
    };
    Row {
        columns: [(0, data)].into(),
        ..Row::empty()
    }
}

/// Schema of [`key_value_source`].
pub fn key_value_schema() -> Schema {
    use compactor_testkit::model::table::{Base, ClusteringColumn, Column, ColumnType};
    Schema {
        clustering: vec![ClusteringColumn {
            base: Base::Int,
            is_reversed: false,
        }],
        columns: vec![Column {
            name: b"v".to_vec(),
            column_type: ColumnType::Simple(Base::Blob),
            is_static: false,
        }],
    }
}

/// Three overlapping SSTables of that table in `directory`, two compressed and one not.
pub fn key_value_sstables(directory: &Path, partitions: i32, value_len: usize) -> Vec<PathBuf> {
    use compactor_sstable::compression::codec::Codec;
    let schema = key_value_schema();
    let third = partitions / 3;
    let lz4 = || Some(CompressionParams::new(Codec::Lz4, 4096));
    [(1, 0, lz4()), (2, third / 2, None), (3, third, lz4())]
        .into_iter()
        .map(|(id, from, compression)| {
            let source = key_value_source(u64::from(id), from..from + 2 * third, value_len);
            write_sstable(directory, id, &schema, &source, compression).unwrap()
        })
        .collect()
}
