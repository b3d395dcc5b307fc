//! `compactor lab chunk-length`: the cost of reads in chunks of each length, with each compressor.

use std::ops::RangeInclusive;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use compactor::Error;
use compactor_io::probe;
use compactor_lab::arm::Arm;
use compactor_lab::chunk_length::{ChunkLengthOptions, Compressor, compare};
use compactor_lab::report;

use super::common::{Common, HOT_SET, RATE, SPAN, begin, set};
use crate::duration::Seconds;
use crate::flags::{ByteSize, refuse_uring_with_dontcache};
use crate::numbers::within;
use crate::output::say;

const CHUNK_LENGTH: RangeInclusive<ByteSize> = ByteSize(1 << 10)..=ByteSize(64 << 20);
const MEASURE: RangeInclusive<Seconds> = Seconds(1)..=Seconds(86_400);

/// Measure the cost of reads in chunks of 4, 16, 64 and 256 KiB, with each compressor.
///
/// The same rows are written once for each chunk length and compressor (a variant), and the same foreground
/// load reads the same hot rows of each as a node does: Bloom filter, summary and index or trie, chunks by
/// buffered pread without advice, CRC, decompression, row. Peak: each thread starts its next read when the
/// last one ends (closed loop), which measures reads per second, and bytes from disk and processor time per
/// read. Then at one rate for all variants, on a Poisson schedule (open loop), with latency measured from the
/// scheduled start: p50, p99 and p99.9. Both alone, and during a compaction of the SSTables that the variants
/// were written from. Each repeat runs all variants in a new random order; before each run the page cache of
/// the variant is dropped. Published figures for 4 KB and 64 KB are compared with those measured.
///
/// If the hot rows exceed the memory limit, as by default, the disk matters; otherwise decompression alone.
/// LZ4, the default, takes some 12 minutes, with --quick under five; each further compressor adds the same.
///
/// All files are in a temporary directory, which is removed at the end, also on Ctrl-C, or by the next run in
/// the same place if this one is killed; the space needed is checked and printed first. The cgroup needs root
/// or a delegated cgroup; without one the experiment runs without a limit and prints a warning.
///
/// Exit codes: 0 done, 1 failed or a variant without a run that counts, 2 wrong usage, 130 interrupted.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  A short run, under five minutes, of generated data:
    compactor lab chunk-length --quick --json chunks.json --html chunks.html

  All compressors, on the disk to measure:
    compactor lab chunk-length --directory /var/lib/cassandra \\
        --compressors lz4,snappy,deflate,zstd,noop,none --json chunks.json

  Your own table, without a compaction:
    compactor lab chunk-length /data/ks/t-1c6a.../snapshots/x --directory /data --compaction idle

  The report of a saved result:
    compactor lab report chunks.json")]
pub struct Args {
    #[command(flatten)]
    pub common: Common,

    /// Three repeats, 1 GiB of data, hot set 256MiB of a limit of 192MiB, compaction at 32MiB/s, 2s for
    /// each measurement; other options override these.
    #[arg(long)]
    quick: bool,

    /// Uncompressed bytes of a chunk, powers of two.
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',', default_value = "4KiB,16KiB,64KiB,256KiB",
        value_parser = within(CHUNK_LENGTH))]
    chunk_lengths: Vec<ByteSize>,

    /// Compressors: lz4, snappy, deflate, zstd, noop (chunks that are not compressed), none (no chunks).
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        default_value = "lz4"
    )]
    compressors: Vec<Compressor>,

    /// Reads per second, of all reader threads together, at which latencies are compared. Default: half of
    /// the slowest variant's peak in the warm-ups.
    #[arg(long, help_heading = "Foreground load", value_name = "N", value_parser = within(RATE))]
    rate: Option<f64>,

    /// Size of the hot set: pages of the source's Data.db that contain the hot rows. Default: 768MiB.
    #[arg(long, help_heading = "Foreground load", value_name = "SIZE", value_parser = within(HOT_SET))]
    hot_set: Option<ByteSize>,

    /// Modes of the compaction during the reads: READ/WRITE as the arms of `compactor lab
    /// interference`, or idle for no compaction. Default: direct/direct, or buffered/buffered where that
    /// does not work.
    #[arg(long, help_heading = "Compaction", value_name = "ARM")]
    compaction: Option<Arm>,

    /// Time of reads before each run that fill the page cache and are not measured, such as 5s. Default: 5s,
    /// with --quick 3s.
    #[arg(long, help_heading = "Time", value_name = "SPAN", value_parser = within(SPAN))]
    warm: Option<Seconds>,

    /// Length of each of the four measurements of a run. Default: 5s, with --quick 2s.
    #[arg(long, help_heading = "Time", value_name = "SPAN", value_parser = within(MEASURE))]
    measure: Option<Seconds>,
}

impl Args {
    fn options(&self, directory: &Path) -> anyhow::Result<ChunkLengthOptions> {
        let mut options = if self.quick {
            ChunkLengthOptions::quick(directory)
        } else {
            ChunkLengthOptions::new(directory)
        };
        let common = &self.common;
        common.apply(&mut options.setup)?;
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

/// Direct I/O where it works, else buffered.
fn default_compaction(directory: &Path) -> Result<Arm, Error> {
    if probe(directory)?.direct.works() {
        return Ok(Arm::DIRECT);
    }
    say(format_args!(
        "note: the compaction uses the page cache, since direct I/O does not work in {}",
        directory.display()
    ));
    Ok(Arm::BUFFERED)
}

/// Runs the command.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let common = &args.common;
    let (interrupted, directory) = begin(common.directory.as_deref())?;
    let options = args.options(&directory)?;
    let is_dontcache = options.compaction.is_dontcache();
    refuse_uring_with_dontcache(options.backend, &[("--compaction", is_dontcache)])?;
    common.results.of(interrupted, |watcher| {
        let outcome = compare(&options, watcher)?;
        let report = report::chunk_length::report("chunk length", &outcome);
        Ok((outcome, report))
    })
}
