//! `Data.db` of small SSTables in memory, and what a reader must find in them.

use std::path::PathBuf;
use std::sync::Arc;

use compactor_engine::read::{BlockSource, Cursor, MemorySource, RowRef};
use compactor_engine::write::{IndexBuilder, PartitionWriter};
use compactor_sstable::big::index_info::DEFAULT_COLUMN_INDEX_SIZE;
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::data::layout::Layout;
use compactor_sstable::partitioner::{KeyHash, Partitioner};
use compactor_sstable::statistics::{CollectorSettings, MetadataCollector};

use crate::memory::MemoryOutput;
use crate::shape::{Row, Shape};
use compactor_testkit::Random;

/// Block that inputs are decoded by.
const BLOCK_LEN: usize = 256 << 10;
/// When the first input was written, microseconds since 1970.
const FIRST_TIMESTAMP: i64 = 1_749_900_000_000_000;

/// A partition key.
#[derive(Clone, Debug)]
pub struct Key {
    /// A uuid.
    pub bytes: Vec<u8>,
    /// Its token and hashes.
    pub hash: KeyHash,
}

/// `count` keys in the order of their tokens.
pub fn keys(count: usize, seed: u64) -> Vec<Key> {
    let mut random = Random::new(seed);
    let mut keys: Vec<Key> = (0..count.max(1))
        .map(|_| {
            let bytes = random.bytes(16);
            let hash = Partitioner::Murmur3.hash_key(&bytes);
            Key { bytes, hash }
        })
        .collect();
    keys.sort_by(|a, b| (a.hash.token, &a.bytes).cmp(&(b.hash.token, &b.bytes)));
    keys
}

/// Keys for about `bytes` of uncompressed data of `shape`.
pub fn keys_for(shape: Shape, bytes: usize) -> Vec<Key> {
    keys(bytes / shape.partition_bytes(), 0x5eed)
}

/// Summary of a table's content, in which anything lost, added or taken from another version shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Partitions.
    pub partitions: u64,
    /// Rows.
    pub rows: u64,
    /// Cells, deleted ones included.
    pub cells: u64,
    /// Bytes of paths and values.
    pub value_bytes: u64,
    /// Timestamps of cells, livenesses and row deletions, added up and wrapping.
    pub timestamps: u64,
}

impl Totals {
    fn add_row(&mut self, liveness: i64, deletion: i64) {
        self.rows += 1;
        self.timestamps = self
            .timestamps
            .wrapping_add(liveness as u64)
            .wrapping_add(deletion as u64);
    }

    fn add_cell(&mut self, len: usize, timestamp: i64) {
        self.cells += 1;
        self.value_bytes += len as u64;
        self.timestamps = self.timestamps.wrapping_add(timestamp as u64);
    }

    /// Both together.
    pub fn plus(self, other: Totals) -> Totals {
        Totals {
            partitions: self.partitions + other.partitions,
            rows: self.rows + other.rows,
            cells: self.cells + other.cells,
            value_bytes: self.value_bytes + other.value_bytes,
            timestamps: self.timestamps.wrapping_add(other.timestamps),
        }
    }
}

/// The rows of an SSTable before they are written.
#[derive(Debug)]
pub struct Rows {
    /// Layout that they are written in.
    pub layout: Arc<Layout>,
    /// Partitions in order, with their rows in order.
    pub partitions: Vec<(Key, Vec<Row>)>,
    /// Their content.
    pub totals: Totals,
}

impl Rows {
    /// Partitions of `keys` of the rows that `has_row` names, as the `generation`th SSTable has them:
    /// a second newer than the one before.
    pub fn new(shape: Shape, keys: &[Key], generation: u32, has_row: impl Fn(u64) -> bool) -> Rows {
        let timestamp = FIRST_TIMESTAMP + i64::from(generation) * 1_000_000;
        let layout = Arc::new(shape.layout(timestamp));
        let mut random = Random::new(u64::from(generation) + 1);
        let mut totals = Totals::default();
        let mut partitions = Vec::with_capacity(keys.len());
        for key in keys {
            totals.partitions += 1;
            let rows: Vec<Row> = (0..shape.rows_per_partition())
                .filter(|number| has_row(*number))
                .map(|number| shape.row(&layout, number, timestamp + number as i64, &mut random))
                .collect();
            for row in &rows {
                totals.add_row(row.liveness.timestamp, row.deletion.marked_for_delete_at);
                for cell in &row.cells {
                    totals.add_cell(cell.path.len() + cell.value.len(), cell.timestamp);
                }
            }
            partitions.push((key.clone(), rows));
        }
        Rows {
            layout,
            partitions,
            totals,
        }
    }

    /// Writes them.
    pub fn write(&self) -> Table {
        let mut writer = writer(&self.layout, MemoryOutput::keeping());
        for (key, rows) in &self.partitions {
            writer.start_partition(&key.bytes, key.hash, DeletionTime::LIVE);
            for row in rows {
                let (written, bytes) = row.written();
                writer
                    .add_row(
                        false,
                        &row.clustering,
                        &written,
                        |_| &bytes[..],
                        bytes.len(),
                    )
                    .expect("memory");
            }
            writer.end_partition().expect("memory");
        }
        let (output, _) = writer.finish();
        let data = output.kept.unwrap_or_default();
        Table {
            layout: Arc::clone(&self.layout),
            data,
            totals: self.totals,
        }
    }
}

/// A writer of partitions into memory.
pub fn writer(layout: &Arc<Layout>, output: MemoryOutput) -> PartitionWriter<MemoryOutput> {
    let collector = MetadataCollector::new(CollectorSettings::default());
    let index = IndexBuilder::big(layout.version, DEFAULT_COLUMN_INDEX_SIZE);
    PartitionWriter::new(Arc::clone(layout), output, collector, index).expect("memory")
}

/// An SSTable's data in memory.
#[derive(Clone, Debug)]
pub struct Table {
    /// Layout of the data.
    pub layout: Arc<Layout>,
    /// Uncompressed `Data.db`.
    pub data: Vec<u8>,
    /// Its content.
    pub totals: Totals,
}

impl Table {
    /// Whole partitions of `shape` of about `bytes`.
    pub fn of_size(shape: Shape, bytes: usize) -> Table {
        Rows::new(shape, &keys_for(shape, bytes), 0, |_| true).write()
    }

    /// A cursor before its first partition. Copies the data: make it outside of what is timed.
    pub fn cursor(&self) -> Cursor<MemorySource> {
        let source = MemorySource::new(self.data.clone(), BLOCK_LEN);
        let (layout, path) = (Arc::clone(&self.layout), PathBuf::from("memory"));
        Cursor::new(source, layout, Partitioner::Murmur3, path)
    }
}

/// Reads everything there is, cell by cell.
pub fn scan<S: BlockSource>(cursor: &mut Cursor<S>) -> Totals {
    let mut totals = Totals::default();
    while cursor.next_partition().expect("no damage") {
        totals.partitions += 1;
        loop {
            cursor.next_unfiltered().expect("no damage");
            let Some(row) = cursor.row() else { break };
            scan_row(&row, &mut totals);
        }
    }
    totals
}

fn scan_row(row: &RowRef<'_>, totals: &mut Totals) {
    let content = row.read().expect("no damage");
    let start = &content.start;
    totals.add_row(
        start.liveness.timestamp,
        start.deletion.marked_for_delete_at,
    );
    for cell in content.columns().flat_map(|column| column.cells) {
        totals.add_cell(cell.path.len() + cell.value.len(), cell.timestamp);
    }
}
