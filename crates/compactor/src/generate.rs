//! SSTables from seeded synthetic data, for demonstrations, benches and tests.
//!
//! ```no_run
//! use compactor::generate::{Amount, GenerateOptions, Shape, generate};
//! use compactor_io::IoOptions;
//!
//! # fn main() -> Result<(), compactor::Error> {
//! let mut options = GenerateOptions::new(Shape::Wide, "data");
//! options.amount = Amount::Bytes(64 << 20);
//! options.sstables = 2;
//! let report = generate(IoOptions::default(), options, &mut compactor::NoObserver)?;
//! println!("{}", report.table_directory.display());
//! # Ok(())
//! # }
//! ```
//!
//! The same options give the same bytes, on every machine and with any number of threads. Memory does
//! not grow with the amount of data: rows are written as they are made, and at most 2 Mi keys of 16
//! bytes are held to be sorted by token; beyond that all keys are hashed again for every further
//! 2 Mi of them, which costs some nanoseconds per key and round.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use compactor_engine::merge::Observer;
use compactor_engine::publish::{Staging, publish_all};
use compactor_engine::read::Workers;
use compactor_engine::write::{PartitionSink, SstableSettings, default_column_index_size};
use compactor_io::{Io, IoOptions, WriteMode};
use compactor_sstable::Version;
use compactor_sstable::big::summary::DEFAULT_MIN_INDEX_INTERVAL;
use compactor_sstable::compression::codec::Codec;
use compactor_sstable::compression::info::CompressionParams;
use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::sstable_id::SstableId;
use compactor_sstable::statistics::{CollectorSettings, EncodingStats};

use crate::partition_output::PartitionOutput;
use crate::process::Usage;
use crate::table::{MAX_THREADS, refuse_file};
use crate::{Error, Result};

mod check;
mod collections;
mod counters;
mod created;
mod key_value;
mod measure;
mod output;
mod random;
mod report;
mod sequence;
mod table;
mod tags;
mod time_series;
mod token_order;
mod values;
mod wide;

pub use report::{GenerateReport, GeneratedSstable};

use collections::Collections;
use counters::Counters;
use created::Schema;
use key_value::KeyValue;
use output::Output;
use random::Random;
use sequence::Sequence;
use table::TableColumns;
use time_series::{TimeSeries, Timeline};
use token_order::TokenOrder;
use wide::Wide;

/// Microseconds of a second.
const SECOND_US: i64 = 1_000_000;
/// Default first timestamp of `kv` and `wide`: 2025-01-01T00:00:00Z.
pub const DEFAULT_FIRST_TIMESTAMP_US: i64 = 1_735_689_600 * SECOND_US;
/// Interval between the first timestamps of consecutive SSTables: a later SSTable is always newer.
const SSTABLE_INTERVAL_US: i64 = 2 * 3600 * SECOND_US;
/// False positive chance of the Bloom filters: Cassandra's default.
const BLOOM_FILTER_FP_CHANCE: f64 = 0.01;

/// Shape of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// `(id bigint PRIMARY KEY, value blob)`: one row per partition.
    KeyValue,
    /// Many rows per partition: `PRIMARY KEY (id, seq)` with a static and three regular columns, row
    /// deletions and range tombstones.
    Wide,
    /// The table of [`Shape::Wide`] with small rows, most of them updated or deleted: cells with timestamps
    /// of their own, tombstones of cells, rows and ranges.
    Tombstones,
    /// The table of [`Shape::Wide`] with an additional `map<text, text>`: maps that are inserted
    /// whole, and elements that are set and removed.
    Maps,
    /// `PRIMARY KEY (id, seq)` with a text and a set that are static, an int, a list and a set: collections that
    /// are inserted whole, and elements that are added, set and removed.
    Collections,
    /// `PRIMARY KEY (id, seq)` with three counters, whose contexts have one to three global shards.
    Counters,
    /// `PRIMARY KEY ((sensor, bucket), at)`, newest first, everything with a TTL, part of it expired.
    TimeSeries,
}

impl Shape {
    /// All shapes.
    pub const ALL: [Shape; 7] = [
        Shape::KeyValue,
        Shape::Wide,
        Shape::Tombstones,
        Shape::Maps,
        Shape::Collections,
        Shape::Counters,
        Shape::TimeSeries,
    ];

    /// Its name, and that of its table unless another is given.
    pub fn name(self) -> &'static str {
        match self {
            Shape::KeyValue => "kv",
            Shape::Wide => "wide",
            Shape::Tombstones => "tombstones",
            Shape::Maps => "maps",
            Shape::Collections => "collections",
            Shape::Counters => "counters",
            Shape::TimeSeries => "timeseries",
        }
    }

    /// Whether its primary key is `(id, seq)`: many rows per partition, some of which are deleted.
    pub fn has_sequence(self) -> bool {
        !matches!(self, Shape::KeyValue | Shape::TimeSeries)
    }
}

/// Amount of data per SSTable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// About this many bytes of uncompressed `Data.db`, in whole partitions.
    Bytes(u64),
    /// At least this many rows, in whole partitions; deleted ones count.
    Rows(u64),
}

/// Options of a generation.
#[derive(Clone, Debug)]
pub struct GenerateOptions {
    /// Shape of the data.
    pub shape: Shape,
    /// `<keyspace>/<table>-<id>` is made in it.
    pub output_directory: PathBuf,
    /// Keyspace: a lower-case CQL name.
    pub keyspace: String,
    /// Table: a lower-case CQL name.
    pub table: String,
    /// Number of SSTables.
    pub sstables: u32,
    /// Amount of data per SSTable.
    pub amount: Amount,
    /// Share of an SSTable's partitions that all the others have as well; with several rows per
    /// partition also the share of the rows of such a partition that all others have. The last
    /// SSTable's version is the newest.
    pub overlap: f64,
    /// Length of the blob or text of each row, or of its texts. [`Shape::Counters`] has none.
    pub value_len: u32,
    /// Rows per partition; 1 for [`Shape::KeyValue`].
    pub rows_per_partition: u32,
    /// Fraction by which LZ4 shrinks these values, roughly: 0 for random bytes.
    pub compressibility: f64,
    /// Shapes that [have a sequence](Shape::has_sequence): share of the rows that are row deletions.
    pub deletions: f64,
    /// The same: share of the rows at which a range tombstone of up to 20 rows starts.
    pub range_tombstones: f64,
    /// The same: share of the other rows that are as UPDATE leaves them, without liveness, with some of
    /// the columns. Of [`Shape::Counters`] all are.
    pub updates: f64,
    /// The same: share of the cells that are tombstones.
    pub cell_tombstones: f64,
    /// [`Shape::TimeSeries`]: TTL of all rows, seconds.
    pub ttl_s: u32,
    /// [`Shape::TimeSeries`]: share of the rows that have expired at `now_s`.
    pub expired: f64,
    /// [`Shape::TimeSeries`]: time at which TTL expiry is evaluated, seconds since 1970.
    pub now_s: i64,
    /// The others: first timestamp of the first SSTable, microseconds since 1970. Each SSTable
    /// begins two hours after the one before it.
    pub first_timestamp_us: i64,
    /// Random seed.
    pub seed: u64,
    /// Version of the SSTables: `nb`, `oa` or `pa`.
    pub version: Version,
    /// Compression; `None` for none.
    pub compression: Option<CompressionParams>,
    /// The table's `gc_grace_seconds`, for `schema.cql`.
    pub gc_grace_seconds: u32,
    /// How files are written.
    pub write_mode: WriteMode,
    /// Threads that compress, at most [`MAX_THREADS`].
    pub threads: usize,
}

impl GenerateOptions {
    /// Three SSTables of 64 MiB, half of each also in the others, half compressible, of version `oa`
    /// with LZ4 in chunks of 16 KiB.
    pub fn new(shape: Shape, output_directory: impl Into<PathBuf>) -> GenerateOptions {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let (value_len, rows_per_partition) = match shape {
            Shape::KeyValue => (1000, 1),
            Shape::Wide => (64, 1000),
            Shape::Tombstones => (8, 1000),
            Shape::Maps | Shape::Collections => (16, 1000),
            Shape::Counters => (1, 1000),
            Shape::TimeSeries => (16, 1000),
        };
        let has_many = shape == Shape::Tombstones;
        let is_updated = has_many || matches!(shape, Shape::Maps | Shape::Collections);
        GenerateOptions {
            shape,
            output_directory: output_directory.into(),
            keyspace: "generated".to_owned(),
            table: shape.name().to_owned(),
            sstables: 3,
            amount: Amount::Bytes(64 << 20),
            overlap: 0.5,
            value_len,
            rows_per_partition,
            compressibility: 0.5,
            deletions: if has_many { 0.2 } else { 0.02 },
            range_tombstones: if has_many { 0.02 } else { 0.005 },
            updates: if is_updated { 0.5 } else { 0.0 },
            cell_tombstones: match shape {
                Shape::Counters => 0.02,
                _ if is_updated => 0.2,
                _ => 0.0,
            },
            ttl_s: 7 * 86_400,
            expired: 0.3,
            now_s: now.as_secs() as i64,
            first_timestamp_us: DEFAULT_FIRST_TIMESTAMP_US,
            seed: 1,
            version: Version::Oa,
            compression: Some(CompressionParams::new(Codec::Lz4, 16 << 10)),
            gc_grace_seconds: 864_000,
            write_mode: WriteMode::Auto,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }

    fn columns(&self) -> TableColumns {
        match self.shape {
            Shape::KeyValue => key_value::columns(),
            Shape::Wide | Shape::Tombstones | Shape::Maps => wide::columns(self.shape),
            Shape::Collections => collections::columns(),
            Shape::Counters => counters::columns(),
            Shape::TimeSeries => time_series::columns(),
        }
    }

    /// A version-1 UUID in form, as old releases want table ids to be.
    fn table_id(&self) -> u128 {
        let names = format!("{}.{}", self.keyspace, self.table);
        let letters: Vec<u64> = names.bytes().map(u64::from).collect();
        let mut random = Random::of(self.seed, &letters);
        let (high, low) = (random.next(), random.next());
        let high = (high & !0xf000) | 0x1000;
        let low = (low >> 2) | (1 << 63);
        (u128::from(high) << 64) | u128::from(low)
    }
}

/// Writes the SSTables and their `schema.cql`. The observer is notified of the uncompressed bytes, rows and
/// partitions written. All SSTables appear or none, also if this is killed: the next run removes what is left.
///
/// # Errors
/// Invalid options, a table that exists already, a failed write, or cancellation. Files that were written are
/// removed then.
pub fn generate(
    io: IoOptions,
    options: GenerateOptions,
    observer: &mut dyn Observer,
) -> Result<GenerateReport> {
    let timeline = check::check(&options)?;
    let usage = Usage::now();
    let started = Instant::now();
    let io = Io::new(io)?;
    let threads = options.threads.min(MAX_THREADS);
    let workers = Workers::start(threads)?;
    let partitions = partition_count(&options, timeline)?;
    let columns = options.columns();
    let cql = columns.to_cql(&options);
    let name = format!("{}-{:032x}", options.table, options.table_id());
    let directory = options.output_directory.join(&options.keyspace).join(name);
    refuse_file(&directory)?;
    let claim = created::claim(&directory, &cql)?;
    let mut report = GenerateReport::new(&options, &directory);
    let staging = Arc::new(Staging::create(&claim)?);
    let mut all = Vec::new();
    let output = PartitionOutput {
        io: &io,
        staging: &staging,
        workers: &workers,
        threads,
        write_mode: options.write_mode,
    };
    let shared = shared_partitions(partitions, &options);
    for sstable in 0..options.sstables {
        let mut content = Content::new(&options, sstable, timeline);
        let settings = SstableSettings {
            descriptor: Descriptor::new(
                &directory,
                options.version,
                SstableId::Sequence(sstable + 1),
            ),
            header: columns.header(content.encoding_stats()),
            compression: options.compression.clone(),
            bloom_filter_fp_chance: BLOOM_FILTER_FP_CHANCE,
            expected_keys: partitions,
            min_index_interval: DEFAULT_MIN_INDEX_INTERVAL,
            column_index_size: default_column_index_size(options.version.format()),
            collector: CollectorSettings::default(),
        };
        let before = [report.uncompressed_bytes, report.rows, report.partitions];
        let numbers = partition_numbers(sstable, partitions, shared);
        let write_key = content.key_writer();
        let mut key = Vec::new();
        let (writer, written) = output.write(settings, |partitions| {
            let mut out = Output::new(partitions, observer, before);
            TokenOrder::new(numbers, &write_key).try_for_each(|number| {
                key.clear();
                write_key(number, &mut key);
                content.write_partition(number, number < shared, &key, &mut out)
            })
        })?;
        let staged = writer
            .stage_partitions(written)?
            .ok_or_else(|| Error::Internal("generated an empty SSTable".to_owned()))?;
        observer.before_publish(&staged.data_path())?;
        let (staged, written) = staged.into_output();
        all.push(staged);
        report.add(written);
    }
    let schema = Schema::write(&directory, &cql)?;
    publish_all(&all)?;
    schema.keep();
    drop((all, staging, claim));
    report.complete(&io, Usage::now().since(&usage), started.elapsed());
    Ok(report)
}

/// Appends the key of the partition of a number.
type KeyWriter = Box<dyn Fn(u64, &mut Vec<u8>)>;

/// Rows of one SSTable.
#[derive(Debug)]
enum Content<'o> {
    KeyValue(KeyValue<'o>),
    Sequence(Sequence<'o>),
    TimeSeries(TimeSeries<'o>),
}

impl<'o> Content<'o> {
    fn new(options: &'o GenerateOptions, sstable: u32, timeline: Option<Timeline>) -> Content<'o> {
        Content::Sequence(match (options.shape, timeline) {
            (Shape::TimeSeries, Some(timeline)) => {
                return Content::TimeSeries(TimeSeries::new(options, sstable, timeline));
            }
            (Shape::Wide | Shape::Tombstones | Shape::Maps, _) => {
                Sequence::new(options, sstable, Wide::new(options))
            }
            (Shape::Collections, _) => {
                Sequence::new(options, sstable, Collections::new(options, sstable))
            }
            (Shape::Counters, _) => {
                Sequence::new(options, sstable, Counters::new(options, sstable))
            }
            _ => return Content::KeyValue(KeyValue::new(options, sstable)),
        })
    }

    fn encoding_stats(&self) -> EncodingStats {
        match self {
            Content::KeyValue(rows) => rows.encoding_stats(),
            Content::Sequence(rows) => rows.encoding_stats(),
            Content::TimeSeries(rows) => rows.encoding_stats(),
        }
    }

    /// Writes the keys of the partitions.
    fn key_writer(&self) -> KeyWriter {
        match self {
            Content::KeyValue(_) => Box::new(KeyValue::write_key),
            Content::Sequence(_) => Box::new(sequence::write_key),
            Content::TimeSeries(rows) => {
                let timeline = rows.timeline;
                Box::new(move |number, key| timeline.write_key(number, key))
            }
        }
    }

    fn write_partition<O: PartitionSink>(
        &mut self,
        number: u64,
        is_shared: bool,
        key: &[u8],
        out: &mut Output<'_, O>,
    ) -> Result<()> {
        match self {
            Content::KeyValue(rows) => rows.write_partition(number, key, out),
            Content::Sequence(rows) => rows.write_partition(number, is_shared, key, out),
            Content::TimeSeries(rows) => rows.write_partition(number, is_shared, key, out),
        }
    }
}

/// Partitions of each SSTable.
fn partition_count(options: &GenerateOptions, timeline: Option<Timeline>) -> Result<u64> {
    let count = match options.amount {
        Amount::Rows(rows) => rows.div_ceil(u64::from(options.rows_per_partition)),
        Amount::Bytes(bytes) => {
            let content = Content::new(options, 0, timeline);
            let mean = measure::mean_partition_len(options, content)?;
            (bytes as f64 / mean).round() as u64
        }
    };
    check::check_partition_count(options, count.max(1))
}

/// Partitions that all SSTables have: those of the lowest numbers.
fn shared_partitions(partitions: u64, options: &GenerateOptions) -> u64 {
    (partitions as f64 * options.overlap).round() as u64
}

/// The shared partitions, and then those of this SSTable alone.
fn partition_numbers(sstable: u32, partitions: u64, shared: u64) -> [Range<u64>; 2] {
    let own = partitions - shared;
    let first = shared + u64::from(sstable) * own;
    [0..shared, first..first + own]
}

/// Whether all SSTables have a row of this number at the same place.
fn is_row_shared(options: &GenerateOptions, number: u64, row: u32) -> bool {
    let (seed, overlap) = (options.seed, options.overlap);
    overlap >= 1.0 || Random::of(seed, &[number, u64::from(row), 7]).happens(overlap)
}

fn sstable_timestamp(options: &GenerateOptions, sstable: u32) -> i64 {
    options.first_timestamp_us + i64::from(sstable) * SSTABLE_INTERVAL_US
}
