//! `compactor lab chunk-length`: the cost of reads in chunks of each length, with each compressor.

use std::ops::RangeInclusive;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use compactor::Error;
use compactor_io::probe;
use compactor_lab::arm::Arm;
use compactor_lab::chunk_length::{ChunkLengthOptions, Compressor, compare};
use compactor_lab::report::chunk_length::ChunkLengthReport;

use super::common::{Common, HOT_SET, RATE, READERS, Results, SPAN, begin, set};
use super::interference::is_dontcache;
use super::progress::LabProgress;
use crate::duration::Seconds;
use crate::flags::{ByteSize, Format, refuse_uring_with_dontcache};
use crate::numbers::within;
use crate::output::say;

const CHUNK_LENGTH: RangeInclusive<ByteSize> = ByteSize(1 << 10)..=ByteSize(64 << 20);
const MEASURE: RangeInclusive<Seconds> = Seconds(1)..=Seconds(86_400);

/// Measure the cost of reads in chunks of 4, 16, 64 and 256 KiB, with each compressor.
///
/// The same rows are written once for each chunk length and compressor, and the same foreground load reads
/// the same hot rows of each, as a node does: Bloom filter, summary and index or trie, chunks by buffered
/// pread without advice, CRC, decompression, row. First as fast as its threads can, which measures the
/// most reads per second, bytes from disk and processor time of each; then at a rate that all variants have
/// in common, on a Poisson schedule and timed from when each read was to start, which measures p50, p99 and
/// p99.9. Both alone, and during a compaction, which is the same for all variants: of the SSTables that these
/// were written from. Variants run in random order, several times over; before
/// each run its page cache is dropped. Published figures for 4 KB against 64 KB are
/// compared with those measured.
///
/// With more hot rows than memory the disk matters, as in the defaults; with less, decompression alone.
/// The default, LZ4, takes some 12 minutes, with --quick under five; each further compressor takes as
/// long again.
///
/// Everything that it makes is in a temporary directory and removed at the end, also on Ctrl-C, or by the
/// next run there if this one is killed; the space that it needs is printed, and checked, before. So is the
/// cgroup, for which it takes root or a delegated one; without it the experiment runs with a warning
/// and no limit.
///
/// Exit codes: 0 done, 1 failed or a variant without a run that counts, 2 wrong usage, 130 interrupted.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  The short one, under five minutes, with data made by itself:
    compactor lab chunk-length --quick --json chunks.json --html chunks.html

  All compressors, on the disk that is of interest:
    compactor lab chunk-length --directory /var/lib/cassandra \\
        --compressors lz4,snappy,deflate,zstd,noop,none --json chunks.json

  A table of one's own, whose rows compress as they do, without a compaction:
    compactor lab chunk-length /data/ks/t-1c6a.../snapshots/x --directory /data --compaction idle

  A saved one again:
    compactor lab report chunks.json")]
pub struct Args {
    #[command(flatten)]
    pub common: Common,

    /// Three repeats, 1 GiB of data, hot set 256MiB of a limit of 192MiB, compaction at 32MiB/s, 2s for
    /// each measurement; each can be changed.
    #[arg(long)]
    quick: bool,

    /// Uncompressed bytes of a chunk, powers of two.
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',', default_value = "4KiB,16KiB,64KiB,256KiB",
        value_parser = within(CHUNK_LENGTH), allow_hyphen_values = true)]
    chunk_lengths: Vec<ByteSize>,

    /// Compressors: lz4, snappy, deflate, zstd, noop (chunks that are not compressed), none (no chunks).
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        default_value = "lz4"
    )]
    compressors: Vec<Compressor>,

    /// Reads per second at which latencies are compared, over all reader threads. Default: half of the
    /// most that the slowest variant reached while warming up.
    #[arg(long, help_heading = "Foreground load", value_name = "N", value_parser = within(RATE),
        allow_negative_numbers = true)]
    rate: Option<f64>,

    /// Threads that read. Default: 32, as Cassandra's concurrent_reads.
    #[arg(long, help_heading = "Foreground load", value_name = "N", value_parser = within(READERS),
        allow_negative_numbers = true)]
    reader_threads: Option<u32>,

    /// Bytes of page cache that the hot rows take in Data.db before it is written anew. Default: 768MiB.
    #[arg(long, help_heading = "Foreground load", value_name = "SIZE", value_parser = within(HOT_SET),
        allow_hyphen_values = true)]
    hot_set: Option<ByteSize>,

    /// Modes of the compaction during the reads: READ/WRITE as the arms of `compactor lab
    /// interference`, or idle for no compaction. Default: direct/direct, or buffered/buffered where that
    /// does not work.
    #[arg(long, help_heading = "Compaction", value_name = "ARM")]
    compaction: Option<Arm>,

    /// Reads before each run that are not measured, such as 5s: they fill the page cache. Default: 5s,
    /// with --quick 3s.
    #[arg(long, help_heading = "Time", value_name = "SPAN", value_parser = within(SPAN))]
    warm: Option<Seconds>,

    /// Length of each of the four measurements of a run. Default: 5s, with --quick 2s.
    #[arg(long, help_heading = "Time", value_name = "SPAN", value_parser = within(MEASURE))]
    measure: Option<Seconds>,
}

impl Args {
    fn options(&self, directory: &Path) -> anyhow::Result<ChunkLengthOptions> {
        let mut options = match self.quick {
            true => ChunkLengthOptions::quick(directory),
            false => ChunkLengthOptions::new(directory),
        };
        let common = &self.common;
        common.apply(&mut options.setup, self.reader_threads)?;
        let lengths = self.chunk_lengths.iter();
        options.chunk_lengths_bytes = lengths
            .map(|len| u32::try_from(len.0).unwrap_or(u32::MAX))
            .collect();
        options.compressors.clone_from(&self.compressors);
        set(&mut options.rate_per_s, self.rate.map(Some));
        set(&mut options.hot_set_bytes, self.hot_set.map(|size| size.0));
        options.compaction = match self.compaction {
            Some(arm) => arm,
            None => default_compaction(directory)?,
        };
        let seconds = |span: Option<Seconds>| span.map(|span| Duration::from_secs(span.0));
        set(&mut options.warm, seconds(self.warm));
        set(&mut options.measure, seconds(self.measure));
        Ok(options)
    }
}

/// Past the page cache, where that works.
fn default_compaction(directory: &Path) -> Result<Arm, Error> {
    if probe(directory)?.direct.works() {
        return Ok(Arm::DIRECT);
    }
    say(format_args!(
        "note: the compaction goes through the page cache, since direct I/O does not work in {}",
        directory.display()
    ));
    Ok(Arm::BUFFERED)
}

/// Runs the command.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let common = &args.common;
    let (interrupted, directory) = begin(common.directory.as_deref())?;
    let options = args.options(&directory)?;
    let is_dontcache = is_dontcache(&options.compaction);
    refuse_uring_with_dontcache(options.backend, &[("--compaction", is_dontcache)])?;
    let results = Results::create(common.json.as_deref(), common.html.as_deref())?;
    let watcher = LabProgress::new(common.progress, interrupted);
    let outcome = compare(&options, &watcher)?;
    let json = serde_json::to_string(&outcome)?;
    let report = ChunkLengthReport::new("chunk length", &outcome);
    let is_sound = report.is_complete();
    let document = ChunkLengthReport::document(&[report]);
    let text = match common.format {
        Format::Json => json.clone(),
        Format::Text => document.to_text(),
    };
    results.write(&json, &document, &text, (&outcome.end, is_sound))
}
