//! `compactor merge`: SSTables of one table in, one SSTable out.

mod summary;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;
use compactor::catalog::{self, Catalog};
use compactor::io::{BackendKind, IoOptions, ReadMode, WriteMode, raise_open_files_limit};
use compactor::sstable::Version;
use compactor::sstable::compression::codec::{Codec, DEFAULT_ZSTD_LEVEL};
use compactor::sstable::compression::info::CompressionParams;
use compactor::sstable::schema::CompressionOptions;
use compactor::{Error, InputCheck, MergeRequest, Observer, OutputCompression, Scope};

use crate::flags::{ByteSize, Format, refuse_uring_with_dontcache};
use crate::interrupt;
use crate::numbers::{
    GC_GRACE_SECONDS, MEMORY, READAHEAD, THREADS, moment, moment_or_before_1970, within,
};
use crate::output::print;
use crate::progress::{Progress, ProgressMode};
use crate::verify_step;

/// Cassandra's default, for tables whose schema is not at hand.
const DEFAULT_GC_GRACE_SECONDS: i64 = 864_000;
/// Cassandra's default since 4.0, bytes.
const DEFAULT_CHUNK_LENGTH: u32 = 16 << 10;

/// Merge SSTables of one table into one, as Cassandra's compaction would.
///
/// Inputs are only read. The output appears whole or not at all. Tombstones and expired data past
/// gc_grace_seconds are purged only where that is safe: with --complete, or where --overlapping names
/// what else the table has; otherwise every tombstone is kept.
///
/// A schema.cql beside the inputs, as snapshots have, supplies gc_grace_seconds, compression and the
/// Bloom filter's chance; options go before it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  A snapshot that is the whole table on this node, purging what has passed gc_grace_seconds:
    compactor merge /data/ks/t-1c6a.../snapshots/before --output /scratch/t --complete

  Two SSTables of many; tombstones stay, since others may need them:
    compactor merge nb-7-big-Data.db nb-9-big-Data.db --output /scratch/t

  Written for a Cassandra 4.x node, past the page cache, checked before and after:
    compactor merge snapshot --output out --sstable-version nb --read-io direct \\
        --write-io direct --verify")]
pub struct Args {
    /// A table or snapshot directory, or Data.db files.
    #[arg(required = true, value_name = "TABLE_DIR|SNAPSHOT_DIR|Data.db")]
    inputs: Vec<PathBuf>,

    /// Directory of the output; made if missing. Not one that holds inputs.
    #[arg(long, value_name = "DIR")]
    output: PathBuf,

    /// The inputs are all that the table has on this node, so tombstones may be purged.
    #[arg(long, help_heading = "Purging", conflicts_with = "overlapping")]
    complete: bool,

    /// An SSTable, or a directory of them, that the table has besides the inputs. Repeat it for all
    /// of them: tombstones that may shadow data in these stay.
    #[arg(long, help_heading = "Purging", value_name = "TABLE_DIR|Data.db")]
    overlapping: Vec<PathBuf>,

    /// Seconds that tombstones must live. Default: schema.cql's, otherwise 864000.
    #[arg(long, help_heading = "Purging", value_name = "N",
        conflicts_with_all = ["gc_before", "no_purge"],
        value_parser = within(GC_GRACE_SECONDS), allow_negative_numbers = true)]
    gc_grace_seconds: Option<u32>,

    /// Purge tombstones with a local deletion time before this, in seconds since 1970.
    #[arg(
        long,
        help_heading = "Purging",
        value_name = "EPOCH",
        conflicts_with = "no_purge",
        value_parser = moment_or_before_1970,
        allow_negative_numbers = true
    )]
    gc_before: Option<i64>,

    /// Keep every tombstone.
    #[arg(long, help_heading = "Purging")]
    no_purge: bool,

    /// The moment that expiry is judged at, in seconds since 1970. Default: the clock.
    #[arg(
        long,
        help_heading = "Purging",
        value_name = "EPOCH",
        value_parser = moment,
        allow_negative_numbers = true
    )]
    now: Option<i64>,

    /// Version of the output: nb (Cassandra 4), oa (5), pa (6). Default: the newest of the inputs.
    #[arg(long, help_heading = "Output", value_name = "VERSION")]
    sstable_version: Option<Version>,

    /// Compression of the output. Default: schema.cql's, otherwise the newest input's.
    #[arg(long, help_heading = "Output", value_enum)]
    compression: Option<Compression>,

    /// Level of --compression zstd, -131072 to 22. Default: 3.
    #[arg(
        long,
        help_heading = "Output",
        value_name = "N",
        allow_negative_numbers = true
    )]
    compression_level: Option<i32>,

    /// Uncompressed bytes per chunk, a power of two such as 4KiB.
    #[arg(
        long,
        help_heading = "Output",
        value_name = "SIZE",
        allow_hyphen_values = true
    )]
    chunk_length: Option<ByteSize>,

    /// How inputs are read: auto, direct, buffered, dontneed, dontcache.
    #[arg(
        long,
        help_heading = "Input and output",
        value_name = "MODE",
        default_value = "auto"
    )]
    read_io: ReadMode,

    /// How the output is written: auto, direct, buffered, trickle, dontneed, dontcache.
    #[arg(
        long,
        help_heading = "Input and output",
        value_name = "MODE",
        default_value = "auto"
    )]
    write_io: WriteMode,

    /// What carries reads and writes out: auto, uring, threads.
    #[arg(
        long,
        help_heading = "Input and output",
        value_name = "BACKEND",
        default_value = "auto"
    )]
    backend: BackendKind,

    /// Bytes read ahead per input, 4KiB to 1GiB, as far as --memory allows. Default: 2MiB.
    #[arg(
        long,
        help_heading = "Input and output",
        value_name = "SIZE",
        value_parser = within(READAHEAD),
        allow_hyphen_values = true
    )]
    readahead: Option<ByteSize>,

    /// Threads that decode and compress, 1 to 1024. Default: one per processor.
    #[arg(
        long,
        help_heading = "Input and output",
        value_name = "N",
        value_parser = within(THREADS),
        allow_negative_numbers = true
    )]
    threads: Option<usize>,

    /// Memory for buffers, over all inputs and the output, 1MiB to 1TiB.
    #[arg(
        long,
        help_heading = "Input and output",
        value_name = "SIZE",
        default_value = "64MiB",
        value_parser = within(MEMORY),
        allow_hyphen_values = true
    )]
    memory: ByteSize,

    /// Verify the inputs before, and the output before it is published, as `compactor verify` does:
    /// every byte of every component.
    #[arg(long, help_heading = "Checking")]
    verify: bool,

    /// What of the inputs is checked while they are merged.
    #[arg(long, help_heading = "Checking", value_enum, default_value = "all")]
    input_check: Check,

    /// Open and check the inputs, say what would be done, and write nothing.
    #[arg(long)]
    dry_run: bool,

    /// How progress is shown on stderr.
    #[arg(long, value_enum, default_value = "auto")]
    progress: ProgressMode,

    /// How the summary is printed on stdout.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

/// What of the inputs is checked while they are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Check {
    /// Data, metadata, index, summary, filter and digest.
    All,
    /// Data and metadata, which is what a merge reads.
    Data,
}

/// Compression of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Compression {
    /// LZ4Compressor.
    Lz4,
    /// SnappyCompressor.
    Snappy,
    /// DeflateCompressor.
    Deflate,
    /// ZstdCompressor; see --compression-level.
    Zstd,
    /// NoopCompressor: chunks with checksums, not compressed.
    Noop,
    /// None; a CRC.db is written.
    None,
}

/// Runs the command.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    // Two descriptors per input and some: the usual soft limit of 1024 is soon reached.
    let _ = raise_open_files_limit();
    let interrupted = interrupt::flag().context("install signal handlers")?;
    refuse_uring_with_dontcache(
        args.backend,
        &[
            ("--read-io", args.read_io == ReadMode::DontCache),
            ("--write-io", args.write_io == WriteMode::DontCache),
        ],
    )?;
    let catalog = catalog::find(&args.inputs)?;
    for note in &catalog.notes {
        eprintln!("note: {note}");
    }
    refuse_output_among_inputs(&args.output, &catalog)?;
    let (request, notes) = request(&args, &catalog)?;
    let io = IoOptions {
        backend: args.backend,
        ..IoOptions::default()
    };
    let job = compactor::open_merge(io, request)?;
    if args.dry_run {
        return print(&summary::plan(&job, &notes, args.format)?);
    }
    let mut progress = Progress::new(
        args.progress,
        job.uncompressed_bytes(),
        std::sync::Arc::clone(&interrupted),
    );
    if args.verify {
        // Those that would be dropped unread as well.
        let inputs = job.inputs().iter().chain(job.fully_expired());
        let inputs: Vec<PathBuf> = inputs.map(|i| i.data_path()).collect();
        verify_step::inputs(job.io(), &inputs, args.read_io, &progress)?;
    }
    let io = job.io().clone();
    let mut observer = VerifyingObserver {
        progress: &mut progress,
        verify: args.verify.then_some((io, args.read_io)),
    };
    let check = match args.input_check {
        Check::All => InputCheck::AllComponents,
        Check::Data => InputCheck::DataOnly,
    };
    let result = compactor::run_merge(job, check, &mut observer);
    progress.finish();
    let mut report = result?;
    report.warnings.extend(notes);
    print(&summary::report(&report, args.format)?)
}

/// Progress, and a check of the output before it is published.
struct VerifyingObserver<'a> {
    progress: &'a mut Progress,
    verify: Option<(compactor::io::Io, ReadMode)>,
}

impl Observer for VerifyingObserver<'_> {
    fn is_cancelled(&self) -> bool {
        self.progress.is_cancelled()
    }

    fn progress(&mut self, read_bytes: u64, rows: u64, partitions: u64) {
        self.progress.progress(read_bytes, rows, partitions);
    }

    fn inputs_read(&mut self, inputs: &[compactor::InputRead]) -> compactor::EngineResult<()> {
        self.progress.inputs_read(inputs)
    }

    fn before_publish(&mut self, data_path: &Path) -> compactor::EngineResult<()> {
        match &self.verify {
            None => Ok(()),
            Some((io, mode)) => verify_step::output(io, data_path, *mode),
        }
    }
}

/// Turns options and schema into a request, with what a person should know of the choices.
fn request(args: &Args, catalog: &Catalog) -> anyhow::Result<(MergeRequest, Vec<String>)> {
    let mut notes = Vec::new();
    let mut request = MergeRequest::new(catalog.sstables.clone(), &args.output);
    let table = catalog.schema.as_ref().map(|(_, table)| table);
    request.now_s = args.now.unwrap_or_else(now_s);
    request.scope = scope(args, catalog)?;
    request.gc_before_s = gc_before_s(args, catalog, request.now_s, &mut notes);
    if request.scope == Scope::Unknown && !args.no_purge {
        notes.push(
            "every tombstone was kept, since other SSTables of the table may need them: say \
             --complete if there are none, or name them with --overlapping"
                .to_owned(),
        );
    }
    request.version = args.sstable_version;
    request.compression = compression(args, catalog)?;
    if let Some(options) = table.map(|t| &t.options) {
        request.bloom_filter_fp_chance = options.bloom_filter_fp_chance;
        if let Some(interval) = options.min_index_interval {
            request.min_index_interval = interval.max(1);
        }
    }
    if let Some(table) = table.filter(|t| !t.indexes.is_empty()) {
        notes.push(format!(
            "table {} has {} secondary indexes; Cassandra rebuilds them when it loads the output",
            table.name,
            table.indexes.len()
        ));
    }
    request.read_mode = args.read_io;
    request.write_mode = args.write_io;
    if let Some(threads) = args.threads {
        request.threads = threads;
    }
    request.memory_bytes = usize::try_from(args.memory.0).unwrap_or(usize::MAX);
    request.readahead_bytes = args
        .readahead
        .map(|size| usize::try_from(size.0).unwrap_or(usize::MAX));
    Ok((request, notes))
}

fn now_s() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_secs() as i64)
}

fn scope(args: &Args, catalog: &Catalog) -> anyhow::Result<Scope> {
    if args.complete {
        if let [first, ..] = &catalog.siblings[..] {
            return Err(Error::refused(format!(
                "--complete says that the inputs are all that the table has, but {} and {} more lie \
                 beside them. Name the directory to merge all, or name these with --overlapping",
                first.display(),
                catalog.siblings.len() - 1
            ))
            .into());
        }
        return Ok(Scope::Complete);
    }
    if args.overlapping.is_empty() {
        return Ok(Scope::Unknown);
    }
    let others = catalog::find(&args.overlapping)?.sstables;
    let named = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
    let inputs: Vec<PathBuf> = catalog.sstables.iter().map(named).collect();
    // Naming the table's whole directory is convenient: inputs do not overlap themselves.
    let others: Vec<PathBuf> = others
        .into_iter()
        .filter(|p| !inputs.contains(&named(p)))
        .collect();
    let known: Vec<PathBuf> = others.iter().map(named).collect();
    if let Some(left_out) = catalog.siblings.iter().find(|p| !known.contains(&named(p))) {
        return Err(Error::refused(format!(
            "--overlapping is to name everything that the table has besides the inputs, but {} lies \
             beside them and is not named",
            left_out.display()
        ))
        .into());
    }
    Ok(Scope::Overlapping(others))
}

fn gc_before_s(args: &Args, catalog: &Catalog, now_s: i64, notes: &mut Vec<String>) -> Option<i64> {
    if args.no_purge {
        return None;
    }
    if let Some(gc_before) = args.gc_before {
        return Some(gc_before);
    }
    let from_schema = catalog
        .schema
        .as_ref()
        .and_then(|(_, table)| table.options.gc_grace_seconds);
    let grace = match (args.gc_grace_seconds, from_schema) {
        (Some(seconds), _) | (None, Some(seconds)) => i64::from(seconds),
        (None, None) => {
            if args.complete || !args.overlapping.is_empty() {
                notes.push(format!(
                    "no schema.cql beside the inputs: gc_grace_seconds taken as Cassandra's default \
                     {DEFAULT_GC_GRACE_SECONDS}; --gc-grace-seconds sets another"
                ));
            }
            DEFAULT_GC_GRACE_SECONDS
        }
    };
    Some(now_s - grace)
}

fn compression(args: &Args, catalog: &Catalog) -> anyhow::Result<OutputCompression> {
    let chunk_length = args.chunk_length.map(chunk_length).transpose()?;
    if args.compression_level.is_some() && args.compression != Some(Compression::Zstd) {
        return Err(Error::invalid("--compression-level needs --compression zstd").into());
    }
    let from_schema = catalog.schema.as_ref().and_then(|(path, table)| {
        table
            .options
            .compression
            .as_ref()
            .map(|compression| (path, compression))
    });
    let params = |codec: Codec, schema: Option<&CompressionOptions>| {
        let of_table = schema.and_then(|c| c.chunk_length);
        CompressionParams::new(
            codec,
            chunk_length.or(of_table).unwrap_or(DEFAULT_CHUNK_LENGTH),
        )
    };
    if let Some(choice) = args.compression {
        let Some(codec) = codec(choice, args.compression_level) else {
            if chunk_length.is_some() {
                return Err(Error::invalid("--chunk-length needs a --compression").into());
            }
            return Ok(OutputCompression::None);
        };
        // Levels are checked where all options of compressors are.
        let params = params(codec, from_schema.map(|(_, c)| c));
        params.codec().map_err(Error::from)?;
        return Ok(OutputCompression::Params(params));
    }
    match from_schema {
        Some((_, compression)) if !compression.enabled => match chunk_length {
            None => Ok(OutputCompression::None),
            Some(_) => Err(Error::invalid(
                "the table is not compressed (schema.cql); --chunk-length needs a --compression",
            )
            .into()),
        },
        Some((path, compression)) => {
            let class = compression.class.as_deref().unwrap_or("LZ4Compressor");
            let options: Vec<(String, String)> = compressor_options(compression);
            let codec = Codec::from_name(class, &options).map_err(|e| {
                Error::invalid(format!(
                    "{}: {e}; choose one with --compression, Cassandra reads them all",
                    path.display()
                ))
            })?;
            let mut params = params(codec, Some(compression));
            params.compressor = class.rsplit('.').next().unwrap_or(class).to_owned();
            params.options = options;
            if let Some(ratio) = compression.min_compress_ratio.filter(|r| *r > 0.0) {
                params.max_compressed_len =
                    CompressionParams::max_compressed_len_for_ratio(params.chunk_len, ratio);
            }
            Ok(OutputCompression::Params(params))
        }
        None if chunk_length.is_some() => Ok(OutputCompression::Params(params(Codec::Lz4, None))),
        None => Ok(OutputCompression::AsNewestInput),
    }
}

fn codec(choice: Compression, level: Option<i32>) -> Option<Codec> {
    Some(match choice {
        Compression::Lz4 => Codec::Lz4,
        Compression::Snappy => Codec::Snappy,
        Compression::Deflate => Codec::Deflate,
        Compression::Zstd => Codec::Zstd {
            level: level.unwrap_or(DEFAULT_ZSTD_LEVEL),
        },
        Compression::Noop => Codec::Noop,
        Compression::None => return None,
    })
}

/// The options that are the compressor's own and go into CompressionInfo.db.
fn compressor_options(compression: &CompressionOptions) -> Vec<(String, String)> {
    const OF_THE_TABLE: [&str; 8] = [
        "class",
        "sstable_compression",
        "enabled",
        "chunk_length_in_kb",
        "chunk_length_kb",
        "chunk_length",
        "min_compress_ratio",
        "crc_check_chance",
    ];
    compression
        .all
        .iter()
        .filter(|(key, _)| !OF_THE_TABLE.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// Checks a chunk length as Cassandra does: a power of two.
fn chunk_length(size: ByteSize) -> anyhow::Result<u32> {
    let valid = 1 << 10..=64 << 20;
    match u32::try_from(size.0) {
        Ok(bytes) if bytes.is_power_of_two() && valid.contains(&bytes) => Ok(bytes),
        _ => Err(Error::invalid(format!(
            "--chunk-length {size}: a power of two from 1KiB to 64MiB is needed, such as 16KiB"
        ))
        .into()),
    }
}

/// An output beside its inputs would be loaded together with them.
fn refuse_output_among_inputs(output: &Path, catalog: &Catalog) -> anyhow::Result<()> {
    let Ok(output) = output.canonicalize() else {
        return Ok(());
    };
    for input in catalog.sstables.iter().chain(&catalog.siblings) {
        let Some(directory) = input
            .canonicalize()
            .ok()
            .and_then(|p| p.parent().map(Path::to_owned))
        else {
            continue;
        };
        if directory == output {
            return Err(Error::refused(format!(
                "--output {} is where inputs lie: a node would load both. Choose another directory, \
                 and put the output in the place of the inputs while the node is stopped",
                output.display()
            ))
            .into());
        }
        if table_directory_above(&directory) == Some(output.as_path()) {
            return Err(Error::refused(format!(
                "--output {} is the table's own directory, and the inputs are a snapshot or backup \
                 of it: a node would load the output beside what it was made from. Choose another \
                 directory, and bring the output in with `nodetool import`",
                output.display()
            ))
            .into());
        }
    }
    Ok(())
}

/// `TABLE` of `TABLE/snapshots/NAME` and `TABLE/backups` (`Directories`).
fn table_directory_above(directory: &Path) -> Option<&Path> {
    let parent = directory.parent()?;
    if directory.ends_with("backups") {
        return Some(parent);
    }
    parent
        .ends_with("snapshots")
        .then(|| parent.parent())
        .flatten()
}
