//! `compactor generate`: SSTables from seeded synthetic data.

mod summary;

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use compactor::Error;
use compactor::generate::{Amount, GenerateOptions, Shape, generate};
use compactor_io::{BackendKind, IoOptions, WriteMode};
use compactor_sstable::Version;
use compactor_sstable::compression::codec::Codec;
use compactor_sstable::compression::info::CompressionParams;

use crate::duration::Seconds;
use crate::flags::{ByteSize, Format, refuse_uring_with_dontcache};
use crate::interrupt;
use crate::numbers::{GC_GRACE_SECONDS, THREADS, moment, within};
use crate::output::print_of;
use crate::output_form::{CHUNK_LENGTH, chunk_length};
use crate::progress::{Progress, ProgressMode};

/// Uncompressed bytes of an SSTable that may be asked for.
const SIZE: RangeInclusive<ByteSize> = ByteSize(1)..=ByteSize(16 << 40);
const SHARE: RangeInclusive<f64> = 0.0..=1.0;
/// Cassandra's limit of TTLs is 20 years (`Attributes.MAX_TTL`).
const TTL: RangeInclusive<Seconds> = Seconds(1)..=Seconds(20 * 365 * 86_400);

/// Write SSTables of synthetic data, for trying things out and for measuring.
///
/// The files are real: Cassandra loads them, every component is there, and schema.cql is written alongside. The same
/// options give the same bytes every time; for shape timeseries, whose rows expire relative to the clock, set --now
/// as well. Memory use does not grow with the amount.
#[derive(Debug, clap::Args)]
#[command(after_help = "Shapes:
  kv           (id bigint PRIMARY KEY, value blob): one row per partition
  wide         PRIMARY KEY (id, seq) with a static and three regular columns of
               text, int and bigint, some absent; row and range tombstones
  tombstones   the same table with small rows, most of them updated or deleted:
               cells with timestamps of their own, tombstones of cells, rows
               and ranges
  maps         the same table and a map<text, text>: maps that are inserted
               whole, elements that are set and removed
  collections  PRIMARY KEY (id, seq) with a static text and set<text>, and an
               int, a list<text> and a set<text>: collections that are inserted
               whole, elements that are added, set and removed
  counters     PRIMARY KEY (id, seq) with three counters that one to three
               replicas have counted, and tombstones of some
  timeseries   PRIMARY KEY ((sensor, bucket), at), newest first, text and
               double, everything with a TTL, part of it expired

Examples:
  Three SSTables that share half of their partitions, and their merge:
    compactor generate --output data --size 100MiB
    compactor merge data/generated/kv-* --output merged --complete

  Wide partitions of 100,000 rows in SSTables for Cassandra 4:
    compactor generate --shape wide --rows-per-partition 100000 --sstable-version nb --output data

  Rows of which nine of ten are updates, and a third of their cells tombstones:
    compactor generate --shape tombstones --updates 0.9 --cell-tombstones 0.33 --output data

  A day of measurements, half of them expired:
    compactor generate --shape timeseries --ttl 1d --expired 0.5 --output data")]
pub struct Args {
    /// Directory in which KEYSPACE/TABLE-ID/ is made.
    #[arg(long, value_name = "DIR")]
    output: PathBuf,

    /// Shape of the data.
    #[arg(long, value_enum, default_value = "kv")]
    shape: ShapeName,

    /// Number of SSTables.
    #[arg(
        long,
        value_name = "N",
        default_value = "3",
        value_parser = within(1..=10_000u32)
    )]
    sstables: u32,

    /// Uncompressed bytes of each SSTable's Data.db, roughly, in whole partitions.
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "64MiB",
        conflicts_with = "rows",
        value_parser = within(SIZE)
    )]
    size: ByteSize,

    /// Rows of each SSTable instead of --size, rounded up to whole partitions.
    #[arg(
        long,
        value_name = "N",
        value_parser = within(1..=1_000_000_000_000u64)
    )]
    rows: Option<u64>,

    /// Share of an SSTable's partitions, and of the rows in them, that every other has too.
    #[arg(
        long,
        value_name = "0..1",
        default_value = "0.5",
        value_parser = within(SHARE)
    )]
    overlap: f64,

    /// Random seed.
    #[arg(
        long,
        value_name = "N",
        default_value = "1",
        value_parser = within(0..=u64::MAX)
    )]
    seed: u64,

    /// Bytes of the blob or text of each row; all shapes but counters. Default: 1000 for kv, 64 for wide,
    /// 8 for tombstones, 16 for maps, collections and timeseries.
    #[arg(
        long,
        help_heading = "Rows",
        value_name = "BYTES",
        value_parser = within(1..=16u32 << 20)
    )]
    value_length: Option<u32>,

    /// Rows per partition. Default: 1 for kv, otherwise 1000.
    #[arg(
        long,
        help_heading = "Rows",
        value_name = "N",
        value_parser = within(1..=i32::MAX as u32)
    )]
    rows_per_partition: Option<u32>,

    /// Fraction by which LZ4 shrinks these values, roughly: 0 for random bytes.
    #[arg(
        long,
        help_heading = "Rows",
        value_name = "0..1",
        default_value = "0.5",
        value_parser = within(SHARE)
    )]
    compressibility: f64,

    /// All shapes but kv and timeseries: share of the rows that are deletions of a row. Default: 0.2 for
    /// tombstones, otherwise 0.02.
    #[arg(
        long,
        help_heading = "Rows",
        value_name = "0..1",
        value_parser = within(SHARE)
    )]
    deletions: Option<f64>,

    /// All shapes but kv and timeseries: share of the rows where a range tombstone of up to 20 rows begins.
    /// Default: 0.02 for tombstones, otherwise 0.005.
    #[arg(
        long,
        help_heading = "Rows",
        value_name = "0..1",
        value_parser = within(SHARE)
    )]
    range_tombstones: Option<f64>,

    /// Shapes wide, tombstones, maps and collections: share of the other rows that are updates of some
    /// columns, without an INSERT. Default: 0 for wide, otherwise 0.5.
    #[arg(
        long,
        help_heading = "Rows",
        value_name = "0..1",
        value_parser = within(SHARE)
    )]
    updates: Option<f64>,

    /// All shapes but kv and timeseries: share of the cells that are tombstones. Default: 0 for wide, 0.02
    /// for counters, otherwise 0.2.
    #[arg(
        long,
        help_heading = "Rows",
        value_name = "0..1",
        value_parser = within(SHARE)
    )]
    cell_tombstones: Option<f64>,

    /// Shape timeseries: TTL of every row, such as 12h or 7d. Default: 7d.
    #[arg(
        long,
        help_heading = "Rows",
        value_name = "TIME",
        value_parser = within(TTL)
    )]
    ttl: Option<Seconds>,

    /// Shape timeseries: share of the rows that have expired. Default: 0.3.
    #[arg(
        long,
        help_heading = "Rows",
        value_name = "0..1",
        value_parser = within(SHARE)
    )]
    expired: Option<f64>,

    /// Shape timeseries: time at which --expired is evaluated, in seconds since 1970. Default: the clock.
    #[arg(
        long,
        help_heading = "Rows",
        value_name = "EPOCH",
        value_parser = moment
    )]
    now: Option<i64>,

    /// All shapes but timeseries: timestamp of the first SSTable, in microseconds since 1970; each SSTable
    /// is two hours newer than the one before. Default: 2025-01-01.
    #[arg(long, help_heading = "Rows", value_name = "MICROSECONDS",
        value_parser = within(0..=i64::MAX))]
    first_timestamp: Option<i64>,

    /// Keyspace, for the directory and schema.cql.
    #[arg(
        long,
        help_heading = "Files",
        value_name = "NAME",
        default_value = "generated"
    )]
    keyspace: String,

    /// Table, likewise. Default: the shape's name.
    #[arg(long, help_heading = "Files", value_name = "NAME")]
    table: Option<String>,

    /// gc_grace_seconds that is written to schema.cql, where `merge` reads it.
    #[arg(
        long,
        help_heading = "Files",
        value_name = "N",
        default_value = "864000",
        value_parser = within(GC_GRACE_SECONDS)
    )]
    gc_grace_seconds: u32,

    /// Version of the SSTables: nb (Cassandra 4), oa (5), pa (6); in BTI format da (5), ea (6).
    #[arg(
        long,
        help_heading = "Files",
        value_name = "VERSION",
        default_value = "oa"
    )]
    sstable_version: Version,

    /// Compression.
    #[arg(long, help_heading = "Files", value_enum, default_value = "lz4")]
    compression: Compression,

    /// Uncompressed bytes per chunk, a power of two. Default: 16KiB.
    #[arg(
        long,
        help_heading = "Files",
        value_name = "SIZE",
        value_parser = within(CHUNK_LENGTH)
    )]
    chunk_length: Option<ByteSize>,

    /// How files are written: auto, direct, buffered, trickle, dontneed, dontcache.
    #[arg(
        long,
        help_heading = "Input and output",
        value_name = "MODE",
        default_value = "auto"
    )]
    write_io: WriteMode,

    /// I/O backend: auto, uring, tokio-uring, threads.
    #[arg(
        long,
        help_heading = "Input and output",
        value_name = "BACKEND",
        default_value = "auto"
    )]
    backend: BackendKind,

    /// Threads that compress, 1 to 1024. Default: one per processor.
    #[arg(
        long,
        help_heading = "Input and output",
        value_name = "N",
        value_parser = within(THREADS)
    )]
    threads: Option<usize>,

    /// How the summary is printed on stdout.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// Shape of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ShapeName {
    /// One row per partition.
    Kv,
    /// Many rows per partition, with deletions.
    Wide,
    /// The same with small rows, most of them updated or deleted.
    Tombstones,
    /// The same with a map.
    Maps,
    /// Sets and lists, also static ones.
    Collections,
    /// Counters of several replicas.
    Counters,
    /// Newest first, with a TTL.
    Timeseries,
}

impl ShapeName {
    /// The library's name of it.
    pub fn shape(self) -> Shape {
        match self {
            ShapeName::Kv => Shape::KeyValue,
            ShapeName::Wide => Shape::Wide,
            ShapeName::Tombstones => Shape::Tombstones,
            ShapeName::Maps => Shape::Maps,
            ShapeName::Collections => Shape::Collections,
            ShapeName::Counters => Shape::Counters,
            ShapeName::Timeseries => Shape::TimeSeries,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Compression {
    /// LZ4 chunks.
    Lz4,
    /// None; a CRC.db is written.
    None,
}

/// Runs the command.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let interrupted = interrupt::flag().context("install signal handlers")?;
    refuse_uring_with_dontcache(
        args.backend,
        &[("--write-io", args.write_io == WriteMode::DontCache)],
    )?;
    let options = options(&args)?;
    // Of rows the length is not known beforehand.
    let (mode, total_bytes) = match options.amount {
        Amount::Bytes(bytes) if std::io::IsTerminal::is_terminal(&std::io::stderr()) => (
            ProgressMode::Bar,
            bytes.saturating_mul(u64::from(options.sstables)),
        ),
        _ => (ProgressMode::None, 0),
    };
    let mut progress = Progress::new(mode, total_bytes, Arc::clone(&interrupted));
    let io = IoOptions {
        backend: args.backend,
        ..IoOptions::default()
    };
    let result = generate(io, options, &mut progress);
    drop(progress);
    let report = result?;
    let outputs: Vec<&Path> = report
        .sstables
        .iter()
        .map(|s| s.data_path.as_path())
        .collect();
    print_of(&summary::report(&report, args.format)?, &outputs)
}

fn options(args: &Args) -> anyhow::Result<GenerateOptions> {
    let shape = args.shape.shape();
    refuse_options_of_other_shapes(args, shape)?;
    let mut options = GenerateOptions::new(shape, &args.output);
    options.keyspace.clone_from(&args.keyspace);
    options.sstables = args.sstables;
    options.amount = args.rows.map_or(Amount::Bytes(args.size.0), Amount::Rows);
    options.overlap = args.overlap;
    options.compressibility = args.compressibility;
    options.seed = args.seed;
    options.gc_grace_seconds = args.gc_grace_seconds;
    options.version = args.sstable_version;
    options.compression = compression(args)?;
    options.write_mode = args.write_io;
    set(&mut options.table, args.table.clone());
    set(&mut options.value_len, args.value_length);
    set(&mut options.rows_per_partition, args.rows_per_partition);
    set(&mut options.deletions, args.deletions);
    set(&mut options.range_tombstones, args.range_tombstones);
    set(&mut options.updates, args.updates);
    set(&mut options.cell_tombstones, args.cell_tombstones);
    set(
        &mut options.ttl_s,
        args.ttl.map(|ttl| u32::try_from(ttl.0).unwrap_or(u32::MAX)),
    );
    set(&mut options.expired, args.expired);
    set(&mut options.now_s, args.now);
    set(&mut options.first_timestamp_us, args.first_timestamp);
    set(&mut options.threads, args.threads);
    Ok(options)
}

fn set<T>(target: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *target = value;
    }
}

/// An option without effect is a misunderstanding.
fn refuse_options_of_other_shapes(args: &Args, shape: Shape) -> anyhow::Result<()> {
    let is_series = shape == Shape::TimeSeries;
    let is_wide = shape.has_sequence();
    let of_wide = "wide, tombstones, maps, collections or counters";
    let given = [
        (
            "--value-length",
            args.value_length.is_some(),
            shape != Shape::Counters,
            "kv, wide, tombstones, maps, collections or timeseries",
        ),
        ("--deletions", args.deletions.is_some(), is_wide, of_wide),
        (
            "--range-tombstones",
            args.range_tombstones.is_some(),
            is_wide,
            of_wide,
        ),
        (
            "--updates",
            args.updates.is_some(),
            is_wide && shape != Shape::Counters,
            "wide, tombstones, maps or collections",
        ),
        (
            "--cell-tombstones",
            args.cell_tombstones.is_some(),
            is_wide,
            of_wide,
        ),
        ("--ttl", args.ttl.is_some(), is_series, "timeseries"),
        ("--expired", args.expired.is_some(), is_series, "timeseries"),
        ("--now", args.now.is_some(), is_series, "timeseries"),
        (
            "--first-timestamp",
            args.first_timestamp.is_some(),
            !is_series,
            "kv, wide, tombstones, maps, collections or counters",
        ),
    ];
    match given
        .iter()
        .find(|(_, is_given, fits, _)| *is_given && !fits)
    {
        None => Ok(()),
        Some((option, _, _, shapes)) => Err(Error::invalid(format!(
            "{option} is for --shape {shapes}, not for {}",
            shape.name()
        ))
        .into()),
    }
}

fn compression(args: &Args) -> anyhow::Result<Option<CompressionParams>> {
    let length = args.chunk_length.map(chunk_length);
    match (args.compression, length) {
        (Compression::None, Some(_)) => {
            Err(Error::invalid("--chunk-length does not apply to --compression none").into())
        }
        (Compression::None, None) => Ok(None),
        (Compression::Lz4, length) => Ok(Some(CompressionParams::new(
            Codec::Lz4,
            length.unwrap_or(16 << 10),
        ))),
    }
}
