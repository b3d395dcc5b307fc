//! `compactor bench`: a merge against a plain copy, the codec alone, and Cassandra.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use compactor::generate::{Amount, GenerateOptions};
use compactor::table::DEFAULT_CHUNK_LENGTH;
use compactor::{Error, Table};
use compactor_io::{ReadMode, WriteMode};
use compactor_lab::bench::{self, BenchOptions, IoPair, Work};
use compactor_lab::report;
use compactor_sstable::Version;
use compactor_sstable::compression::info::CompressionParams;

use super::generate::ShapeName;
use super::lab::common::{Results, begin, command};
use crate::flags::ByteSize;
use crate::numbers::{DEFAULT_MEMORY, MEMORY, THREADS, besides_program, within};
use crate::output::say_notes;
use crate::output_form::{CHUNK_LENGTH, Compression, chunk_length, codec};

/// Uncompressed bytes of generated inputs.
const SIZE: RangeInclusive<ByteSize> = ByteSize(1 << 20)..=ByteSize(1 << 44);
/// Uncompressed bytes of the sample for the codec, which needs twice the memory.
const SAMPLE: RangeInclusive<ByteSize> = ByteSize(1 << 20)..=ByteSize(4 << 30);

/// Benchmark a merge against a plain copy, the codec alone, and Cassandra.
///
/// Arms: `merge`, which validates every component; `copy`, which reads and writes all Data.db in the same
/// modes; `codec`, which decompresses the chunks of the inputs and compresses those of the output, in memory
/// on all threads: no merge can be faster. Each run is a process of its own; each repeat runs all arms in a new
/// random order; inputs are dropped from the page cache before each run. Every merge has to write the same
/// bytes. Deletions and expired data older than ten days are purged, as if the inputs were the whole table.
/// With `--arms compact` many SSTables are compacted as `compactor compact` does it, with several numbers of
/// concurrent compactions, whose outputs have to be the same.
///
/// All files are in a temporary directory, which is removed at the end, also on Ctrl-C. An arm that failed,
/// used another I/O mode or wrote another output is marked, and the exit code is 1.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  Direct and buffered I/O, on the disk to measure:
    compactor bench --directory /var/lib/cassandra --read-io direct,buffered \\
        --write-io direct,buffered

  A snapshot, with the result as Markdown:
    compactor bench snapshot --directory /scratch --format markdown --json bench.json

  Ten thousand SSTables, compacted with 1, 4 and 16 compactors:
    compactor bench --sstables 10000 --memory 256MiB --arms compact \\
        --concurrent-compactors 1,4,16

  In comparison with Cassandra, from the sources of compactor, with Java and Maven:
    compactor bench --directory /scratch --size 2GiB \\
        --cassandra 'cargo run --release -p interop --bin interop-bench -- --access direct'")]
pub struct Args {
    /// A table or snapshot directory, or Data.db files. Default: generated ones.
    #[arg(value_name = "TABLE_DIR|SNAPSHOT_DIR|Data.db")]
    inputs: Vec<PathBuf>,

    /// Directory for temporary files. Default: the current directory, $TMPDIR or /var/tmp, the first that
    /// supports direct I/O.
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,

    /// Shape of generated inputs; see `compactor generate --help`.
    #[arg(
        long,
        help_heading = "Generated inputs",
        value_enum,
        default_value = "kv",
        conflicts_with = "inputs"
    )]
    shape: ShapeName,

    /// Uncompressed bytes of all generated inputs together.
    #[arg(long, help_heading = "Generated inputs", value_name = "SIZE", default_value = "1GiB",
        value_parser = within(SIZE), conflicts_with = "inputs")]
    size: ByteSize,

    /// Number of generated inputs; all have half of their partitions in common.
    #[arg(long, help_heading = "Generated inputs", value_name = "N", default_value = "2",
        value_parser = within(1..=20_000u32),
        conflicts_with = "inputs")]
    sstables: u32,

    /// Version of generated inputs: nb, oa, pa, da, ea.
    #[arg(
        long,
        help_heading = "Generated inputs",
        value_name = "VERSION",
        default_value = "pa",
        conflicts_with = "inputs"
    )]
    sstable_version: Version,

    /// Compression of generated inputs.
    #[arg(
        long,
        help_heading = "Generated inputs",
        value_enum,
        default_value = "lz4",
        conflicts_with = "inputs"
    )]
    compression: Compression,

    /// Uncompressed bytes per chunk, a power of two. Default: 16KiB.
    #[arg(
        long,
        help_heading = "Generated inputs",
        value_name = "SIZE",
        value_parser = within(CHUNK_LENGTH),
        conflicts_with = "inputs"
    )]
    chunk_length: Option<ByteSize>,

    /// Arms to run.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "ARM,...",
        default_values = ["merge", "copy", "codec"])]
    arms: Vec<ArmName>,

    /// Compactions at a time of the arm `compact`, each an arm of its own, 1 to 256. Each takes 8MiB of
    /// --memory beyond 16MiB, and a thread.
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "1",
        value_parser = within(1..=256usize))]
    concurrent_compactors: Vec<usize>,

    /// Another arm: a command that merges on request, such as interop-bench with Cassandra; may be given
    /// several times. Requests and replies are lines of JSON; its first line, the introduction, must come
    /// within 10 minutes.
    #[arg(long, value_name = "COMMAND")]
    cassandra: Vec<String>,

    /// Read modes: auto, direct, buffered, dontneed, dontcache; each is a merge and a copy.
    #[arg(
        long,
        help_heading = "Input and output",
        value_name = "MODE,...",
        value_delimiter = ',',
        default_value = "auto"
    )]
    read_io: Vec<ReadMode>,

    /// Write modes: auto, direct, buffered, trickle, dontneed, dontcache; one for each of --read-io, or one
    /// for all.
    #[arg(
        long,
        help_heading = "Input and output",
        value_name = "MODE,...",
        value_delimiter = ',',
        default_value = "auto"
    )]
    write_io: Vec<WriteMode>,

    /// Threads that decode and compress, 1 to 1024. Default: one per processor.
    #[arg(long, help_heading = "Input and output", value_name = "N",
        value_parser = within(THREADS))]
    threads: Option<usize>,

    /// Memory of a merge, 1MiB to 1TiB, as of `compactor merge`.
    #[arg(long, help_heading = "Input and output", value_name = "SIZE", default_value = DEFAULT_MEMORY,
        value_parser = within(MEMORY))]
    memory: ByteSize,

    /// Reads the inputs into the page cache before each run instead of dropping them.
    #[arg(long, help_heading = "Input and output")]
    warm: bool,

    /// Number of repeats that count.
    #[arg(long, value_name = "N", default_value = "5", value_parser = within(1..=1000u32))]
    repeat: u32,

    /// Number of warm-up repeats, which do not count.
    #[arg(long, value_name = "N", default_value = "1", value_parser = within(0..=100u32))]
    warm_up: u32,

    /// Random seed of data and order.
    #[arg(long, value_name = "N", default_value = "1", value_parser = within(0..=u64::MAX))]
    seed: u64,

    /// Uncompressed bytes of the sample for the codec, taken from all over the inputs; it needs twice the
    /// memory. Its time is scaled to the whole inputs.
    #[arg(long, value_name = "SIZE", default_value = "128MiB", value_parser = within(SAMPLE))]
    codec_sample: ByteSize,

    #[command(flatten)]
    pub results: Results,
}

/// Our arms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ArmName {
    /// The merge.
    Merge,
    /// Compaction by the table's strategy (size-tiered if no schema names another) until nothing is left to do.
    Compact,
    /// A plain copy of all Data.db.
    Copy,
    /// Decompression and compression alone, in memory.
    Codec,
}

impl ArmName {
    fn work(self) -> Work {
        match self {
            ArmName::Merge => Work::Merge,
            ArmName::Compact => Work::Compact,
            ArmName::Copy => Work::Copy,
            ArmName::Codec => Work::Codec,
        }
    }
}

/// Runs the command.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let (interrupted, directory) = begin(args.directory.as_deref())?;
    let options = options(&args, directory)?;
    let program = std::env::current_exe().context("find the program itself")?;
    args.results.of(interrupted, |watcher| {
        let outcome = bench::run(&options, &program, watcher)?;
        let report = report::bench::report(&outcome);
        Ok((report::bench::with_figures(&outcome, &report)?, report))
    })
}

fn options(args: &Args, directory: PathBuf) -> anyhow::Result<BenchOptions> {
    if args.concurrent_compactors != [1] && !args.arms.contains(&ArmName::Compact) {
        return Err(Error::invalid(
            "--concurrent-compactors is for the arm compact only: add compact to --arms",
        )
        .into());
    }
    let given = if args.inputs.is_empty() {
        Vec::new()
    } else {
        let table = Table::open_all(&args.inputs, None)?;
        say_notes(table.notes());
        table.sstables().to_vec()
    };
    let words = command().into_iter().skip(1);
    let mut generated = GenerateOptions::new(args.shape.shape(), PathBuf::new());
    generated.amount = Amount::Bytes(args.size.0 / u64::from(args.sstables));
    generated.sstables = args.sstables;
    generated.version = args.sstable_version;
    generated.compression = compression(args)?;
    Ok(BenchOptions {
        // As another user would type it.
        command: Some(["compactor".to_owned()].into_iter().chain(words).collect()),
        directory,
        given,
        generated,
        works: args.arms.iter().map(|arm| arm.work()).collect(),
        pairs: pairs(&args.read_io, &args.write_io)?,
        compactors: args.concurrent_compactors.clone(),
        external: args.cassandra.clone(),
        repeats: args.repeat,
        warm_ups: args.warm_up,
        warm: args.warm,
        threads: args
            .threads
            .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)),
        memory_bytes: besides_program(args.memory),
        seed: args.seed,
        sample_bytes: args.codec_sample.0,
    })
}

fn compression(args: &Args) -> anyhow::Result<Option<CompressionParams>> {
    let length = args.chunk_length.map(chunk_length);
    match (codec(args.compression, None), length) {
        (None, Some(_)) => {
            Err(Error::invalid("--chunk-length does not apply to --compression none").into())
        }
        (codec, length) => Ok(codec
            .map(|codec| CompressionParams::new(codec, length.unwrap_or(DEFAULT_CHUNK_LENGTH)))),
    }
}

/// Pairs of read and write modes by position; one of either is combined with all of the other.
fn pairs(read: &[ReadMode], write: &[WriteMode]) -> Result<Vec<IoPair>, Error> {
    let count = read.len().max(write.len());
    let fits = |len: usize| len == count || len == 1;
    if !fits(read.len()) || !fits(write.len()) {
        return Err(Error::invalid(format!(
            "--read-io names {} modes and --write-io {}: name the same number of each, or one for all",
            read.len(),
            write.len()
        )));
    }
    let reads = read.iter().cycle().take(count);
    let writes = write.iter().cycle().take(count);
    let mut pairs = Vec::new();
    for (&read, &write) in reads.zip(writes) {
        let pair = IoPair { read, write };
        if pairs.contains(&pair) {
            return Err(Error::invalid(format!("the modes {pair} are named twice")));
        }
        pairs.push(pair);
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_and_write_modes_are_paired_by_position() {
        use {ReadMode as R, WriteMode as W};
        let names = |read: &[R], write: &[W]| -> Result<Vec<String>, String> {
            let pairs = pairs(read, write).map_err(|e| e.to_string())?;
            Ok(pairs.iter().map(ToString::to_string).collect())
        };
        let two = names(&[R::Direct, R::Buffered], &[W::Direct, W::Trickle]);
        assert_eq!(two.unwrap(), ["direct/direct", "buffered/trickle"]);
        let one = names(&[R::Direct], &[W::Direct, W::Buffered]);
        assert_eq!(one.unwrap(), ["direct/direct", "direct/buffered"]);
        let three = [R::Direct, R::Buffered, R::DontNeed];
        let error = names(&three, &[W::Direct, W::Buffered]).unwrap_err();
        assert!(error.contains("3 modes and --write-io 2"), "{error}");
        let error = names(&[R::Direct, R::Direct], &[W::Direct]).unwrap_err();
        assert!(error.contains("twice"), "{error}");
    }
}
