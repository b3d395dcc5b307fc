//! Kinds of tables, few and named after the workload that each stands for.

use std::sync::Arc;

use compactor_engine::row::MergedRow;
use compactor_sstable::Version;
use compactor_sstable::data::cell::{self, Liveness, Span};
use compactor_sstable::data::clustering::ClusteringComparator;
use compactor_sstable::data::deletion_time::{DeletionTime, NO_DELETION_TIME};
use compactor_sstable::data::layout::{ColumnLayout, Layout, TimestampDeltas};
use compactor_sstable::data::stated_extremes::StatedExtremes;
use compactor_sstable::types::CqlType;

use compactor_testkit::Random;

/// The moment that merges are made for, seconds since 1970. Nothing has expired by then.
pub const NOW_S: i64 = 1_750_000_000;

const TTL_S: i32 = 7 * 86_400;
/// Where deltas of local deletion times start.
const MIN_DELETION_TIME_S: i64 = NOW_S - 86_400;

/// Rows of a table, and how many of them a partition has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One row of one value of about 150 bytes per partition: sessions, caches, documents.
    KeyValue,
    /// 500 rows of three columns per partition: events of a user, messages of a channel.
    WideRows,
    /// 300 rows of one double with a TTL per partition: metrics.
    TimeSeriesTtl,
    /// One row of a hundred ints per partition: feature stores, wide entities.
    HundredCells,
    /// One row with a `map<text, text>` of ten entries per partition: profiles, tags.
    MapOfTen,
    /// 100 rows per partition, each deleted or with a deleted cell: queues.
    Deletions,
}

impl Shape {
    /// All of them.
    pub const ALL: [Shape; 6] = [
        Shape::KeyValue,
        Shape::WideRows,
        Shape::TimeSeriesTtl,
        Shape::HundredCells,
        Shape::MapOfTen,
        Shape::Deletions,
    ];

    /// Its name in names of benches.
    pub fn name(self) -> &'static str {
        match self {
            Shape::KeyValue => "key_value",
            Shape::WideRows => "wide_rows",
            Shape::TimeSeriesTtl => "time_series_ttl",
            Shape::HundredCells => "hundred_cells",
            Shape::MapOfTen => "map_of_ten",
            Shape::Deletions => "deletions",
        }
    }

    /// Rows of a partition.
    pub fn rows_per_partition(self) -> u64 {
        match self {
            Shape::KeyValue | Shape::HundredCells | Shape::MapOfTen => 1,
            Shape::WideRows => 500,
            Shape::TimeSeriesTtl => 300,
            Shape::Deletions => 100,
        }
    }

    /// Bytes of a partition, roughly: how many of them fill a size.
    pub fn partition_bytes(self) -> usize {
        match self {
            Shape::KeyValue => 190,
            Shape::WideRows => 36_000,
            Shape::TimeSeriesTtl => 8_000,
            Shape::HundredCells => 560,
            Shape::MapOfTen => 320,
            Shape::Deletions => 3_000,
        }
    }

    /// Layout of an SSTable whose oldest timestamp is `min_timestamp`.
    pub fn layout(self, min_timestamp: i64) -> Layout {
        let text = || Arc::new(CqlType::Utf8);
        let (clustering, columns): (&[CqlType], Vec<(String, CqlType)>) = match self {
            Shape::KeyValue => (&[], vec![("value".to_owned(), CqlType::Bytes)]),
            Shape::WideRows => (
                &[CqlType::Long],
                vec![
                    ("kind".to_owned(), CqlType::Utf8),
                    ("payload".to_owned(), CqlType::Utf8),
                    ("score".to_owned(), CqlType::Double),
                ],
            ),
            Shape::TimeSeriesTtl => (
                &[CqlType::Timestamp],
                vec![("value".to_owned(), CqlType::Double)],
            ),
            Shape::HundredCells => (
                &[],
                (0..100)
                    .map(|i| (format!("c{i:02}"), CqlType::Int32))
                    .collect(),
            ),
            Shape::MapOfTen => {
                let map = CqlType::Map {
                    key: text(),
                    value: text(),
                    multi_cell: true,
                };
                (&[], vec![("tags".to_owned(), map)])
            }
            Shape::Deletions => (
                &[CqlType::Long],
                vec![
                    ("done".to_owned(), CqlType::Boolean),
                    ("job".to_owned(), CqlType::Utf8),
                ],
            ),
        };
        Layout {
            version: Version::Oa,
            min_timestamp,
            timestamp_deltas: TimestampDeltas::ANY,
            min_local_deletion_time: MIN_DELETION_TIME_S,
            min_ttl: if self == Shape::TimeSeriesTtl {
                TTL_S
            } else {
                0
            },
            stated: StatedExtremes::ANY,
            clustering: ClusteringComparator::new(clustering).expect("types that have an order"),
            static_columns: Vec::new(),
            regular_columns: columns
                .into_iter()
                .map(|(name, cql_type)| ColumnLayout::new(name.into_bytes(), cql_type))
                .collect::<Result<_, _>>()
                .expect("types of ordinary length"),
        }
    }

    /// Row `number` of a partition, with values from `random`, written at `timestamp`.
    pub fn row(self, layout: &Layout, number: u64, timestamp: i64, random: &mut Random) -> Row {
        let mut row = Row {
            clustering: Vec::new(),
            liveness: Liveness::new(timestamp, 0, NO_DELETION_TIME),
            deletion: DeletionTime::LIVE,
            cells: Vec::new(),
        };
        if !layout.clustering.is_empty() {
            let value = ((number * 60_000) as i64).to_be_bytes();
            layout
                .clustering
                .write_values(&mut row.clustering, [Some(&value[..])].into_iter());
        }
        let mut add = |column: u32, path: Vec<u8>, value: Vec<u8>| {
            row.cells.push(Cell {
                column,
                timestamp,
                local_deletion_time: NO_DELETION_TIME,
                ttl: 0,
                path,
                value,
            });
        };
        match self {
            Shape::KeyValue => add(0, Vec::new(), random.text(150)),
            Shape::WideRows => {
                add(0, Vec::new(), random.text(8));
                add(1, Vec::new(), random.text(40));
                add(2, Vec::new(), random.bytes(8));
            }
            Shape::TimeSeriesTtl => {
                let expires_s = NOW_S + 1 + number as i64;
                row.liveness = Liveness::new(timestamp, TTL_S, expires_s);
                add(0, Vec::new(), random.bytes(8));
                row.cells[0].ttl = TTL_S;
                row.cells[0].local_deletion_time = expires_s;
            }
            Shape::HundredCells => {
                for column in 0..100 {
                    add(column, Vec::new(), random.bytes(4));
                }
            }
            Shape::MapOfTen => {
                for entry in 0..10 {
                    add(0, format!("tag-{entry}").into_bytes(), random.text(16));
                }
            }
            Shape::Deletions if number.is_multiple_of(2) => {
                row.liveness = Liveness::EMPTY;
                row.deletion = DeletionTime::build(timestamp, MIN_DELETION_TIME_S + number as i64);
            }
            Shape::Deletions => {
                add(0, Vec::new(), Vec::new());
                add(1, Vec::new(), random.text(40));
                row.cells[0].local_deletion_time = MIN_DELETION_TIME_S + number as i64;
            }
        }
        row
    }
}

/// A row that owns its bytes.
#[derive(Clone, Debug)]
pub struct Row {
    /// Serialized clustering.
    pub clustering: Vec<u8>,
    /// Primary-key liveness.
    pub liveness: Liveness,
    /// Row deletion.
    pub deletion: DeletionTime,
    /// Cells by column and path.
    pub cells: Vec<Cell>,
}

/// A cell that owns its bytes.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Index of its column.
    pub column: u32,
    /// Microseconds.
    pub timestamp: i64,
    /// Seconds.
    pub local_deletion_time: i64,
    /// Seconds.
    pub ttl: i32,
    /// Path in a complex column.
    pub path: Vec<u8>,
    /// Value.
    pub value: Vec<u8>,
}

impl Row {
    /// The row as the writer takes it, and the bytes that its cells are in.
    pub fn written(&self) -> (MergedRow, Vec<u8>) {
        let (mut row, mut bytes) = (MergedRow::default(), Vec::new());
        row.reset(
            self.cells
                .iter()
                .map(|c| c.column as usize + 1)
                .max()
                .unwrap_or(0),
        );
        row.liveness = self.liveness;
        row.deletion = self.deletion;
        let mut put = |value: &[u8]| {
            let start = bytes.len() as u32;
            bytes.extend_from_slice(value);
            Span::new(start, value.len() as u32)
        };
        let mut complex = None;
        for cell in &self.cells {
            let written = cell::Cell {
                timestamp: cell.timestamp,
                local_deletion_time: cell.local_deletion_time,
                ttl: cell.ttl,
                path: put(&cell.path),
                value: put(&cell.value),
                version: 0,
            };
            if cell.path.is_empty() {
                row.put_cell(cell.column, written);
                continue;
            }
            if complex != Some(cell.column) {
                row.begin_complex(cell.column, DeletionTime::LIVE);
                complex = Some(cell.column);
            }
            row.push_element(written);
        }
        (row, bytes)
    }
}
