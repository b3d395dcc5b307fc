//! Options of `compactor lab interference`, and what they come to.

use std::num::NonZeroU64;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use compactor::catalog;
use compactor::generate::Shape;
use compactor::io::BackendKind;
use compactor::sstable::Version;
use compactor_lab::arm::Arm;
use compactor_lab::options::{Data, InterferenceOptions};
use compactor_lab::outcome::Distribution;

use crate::duration::Seconds;
use crate::flags::{ByteSize, Format};
use crate::numbers::{MEMORY, THREADS, THROUGHPUT, within};
use crate::progress::ProgressMode;

const HOT_SET: RangeInclusive<ByteSize> = ByteSize(1 << 20)..=ByteSize(1 << 40);
const DATA: RangeInclusive<ByteSize> = ByteSize(1 << 20)..=ByteSize(16 << 40);
const RATE: RangeInclusive<f64> = 1.0..=10_000_000.0;
const EXPONENT: RangeInclusive<f64> = 0.0..=5.0;
const READERS: RangeInclusive<u32> = 1..=1024;
const REPEATS: RangeInclusive<u32> = 1..=1000;
const WARM_UPS: RangeInclusive<u32> = 0..=1000;
const SPAN: RangeInclusive<Seconds> = Seconds(0)..=Seconds(86_400);

/// What does compaction do to p99 reads on this disk, in each I/O mode?
///
/// A bystander reads hot rows of a table, as a node does: Bloom filter, summary and index or trie, row
/// index, one chunk by buffered pread, CRC, decompression, row. Its reads start on a Poisson schedule
/// and are timed from when they were to start, so that a stall shows in all of them. Meanwhile the table
/// is compacted, once per arm, in random order, several times over; from its publication on the output
/// is read. Bystander and compaction share a memory cgroup. A run that did not do what its arm says is
/// shown with the reason and not counted.
///
/// All that it makes lies in a temporary directory and is removed at the end, also on Ctrl-C, or by the
/// next run there if this one is killed. So is the cgroup, for which it takes root or a delegated one;
/// without it the experiment runs with a warning and no limit.
///
/// Exit codes: 0 done, 1 failed or an arm without a run that counts, 2 wrong usage, 130 interrupted.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  The short one, under five minutes, with data made by itself:
    compactor lab interference --quick --json outcome.json --html report.html

  All arms, five repeats, on the disk that is of interest:
    compactor lab interference --directory /var/lib/cassandra --json outcome.json

  Where does direct I/O begin to matter?
    compactor lab interference --arms idle,buffered/buffered,direct/direct \\
        --memory-limit 2GiB --sweep hot-set=100MiB,500MiB,1GiB,1500MiB

  A table of one's own, a snapshot for example, as fast as it goes:
    compactor lab interference /data/ks/t-1c6a.../snapshots/x --directory /data --throughput none")]
pub struct Args {
    /// A table to use instead of a generated one: its directory, a snapshot, or Data.db files. It is
    /// only read; its pages are dropped from the page cache.
    #[arg(value_name = "TABLE_DIR|SNAPSHOT_DIR|Data.db")]
    table: Vec<PathBuf>,

    /// Where outputs and generated data are put for the time. Default: the current directory, $TMPDIR or
    /// /var/tmp, whichever is the first to support direct I/O.
    #[arg(long, value_name = "DIR")]
    pub directory: Option<PathBuf>,

    /// Four arms, three repeats, 512 MiB of data, hot set 96MiB of a limit of 256MiB, 2000 reads/s,
    /// compaction at 32MiB/s; each can be changed.
    #[arg(long)]
    quick: bool,

    /// Arms, each `idle` or a read and a write mode: READ/WRITE with READ one of direct, buffered,
    /// dontneed, dontcache, and WRITE of these and trickle. Default: idle, buffered/buffered,
    /// buffered/trickle, dontneed/dontneed, dontcache/dontcache, buffered/direct, direct/buffered,
    /// direct/direct, as far as they work here.
    #[arg(long, value_name = "ARM,...", value_delimiter = ',')]
    arms: Option<Vec<Arm>>,

    /// Repeats that count.
    #[arg(long, value_name = "N", value_parser = within(REPEATS), allow_negative_numbers = true)]
    repeat: Option<u32>,

    /// Repeats before them that do not. Default: 1.
    #[arg(long, value_name = "N", value_parser = within(WARM_UPS), allow_negative_numbers = true)]
    warm_up: Option<u32>,

    /// What order, hot rows, arrivals and data are drawn from. Default: 1.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    seed: Option<u64>,

    /// Reads per second, over all reader threads. Default: 10000.
    #[arg(long, help_heading = "Bystander", value_name = "N", value_parser = within(RATE),
        allow_negative_numbers = true)]
    rate: Option<f64>,

    /// Threads that read. Default: 4.
    #[arg(long, help_heading = "Bystander", value_name = "N", value_parser = within(READERS),
        allow_negative_numbers = true)]
    reader_threads: Option<u32>,

    /// Bytes of page cache that the hot rows take in the inputs' Data.db. Default: 256MiB.
    #[arg(long, help_heading = "Bystander", value_name = "SIZE", value_parser = within(HOT_SET),
        allow_hyphen_values = true, conflicts_with = "sweep")]
    hot_set: Option<ByteSize>,

    /// The whole experiment for each of several sizes: `hot-set=100MiB,1GiB`.
    #[arg(long, help_heading = "Bystander", value_name = "hot-set=SIZE,...")]
    sweep: Option<Sweep>,

    /// How often each hot row is read: zipf or uniform.
    #[arg(long, help_heading = "Bystander", value_enum, default_value = "zipf")]
    distribution: DistributionName,

    /// With zipf: the k-th most popular row is read in proportion to 1/k^N.
    #[arg(long, help_heading = "Bystander", value_name = "N", default_value = "0.99",
        value_parser = within(EXPONENT), allow_negative_numbers = true)]
    zipf_exponent: f64,

    /// Memory of the cgroup that bystander and compaction share, or `none`. Default: 512MiB.
    #[arg(
        long,
        help_heading = "Memory",
        value_name = "SIZE|none",
        allow_hyphen_values = true
    )]
    memory_limit: Option<Limit>,

    /// Stored bytes of Data.db that the compaction takes per second, 1MiB and more, or `none`. Default:
    /// 64MiB, as Cassandra's compaction_throughput.
    #[arg(
        long,
        help_heading = "Compaction",
        value_name = "SIZE|none",
        allow_hyphen_values = true
    )]
    throughput: Option<Limit>,

    /// Threads of the compaction. Default: half of the processors.
    #[arg(long, help_heading = "Compaction", value_name = "N", value_parser = within(THREADS),
        allow_negative_numbers = true)]
    threads: Option<usize>,

    /// Memory for the compaction's buffers.
    #[arg(long, help_heading = "Compaction", value_name = "SIZE", default_value = "64MiB",
        value_parser = within(MEMORY), allow_hyphen_values = true)]
    memory: ByteSize,

    /// What carries the compaction's reads and writes out: auto, uring, threads. Mode dontcache is
    /// always carried by threads.
    #[arg(
        long,
        help_heading = "Compaction",
        value_name = "BACKEND",
        default_value = "auto"
    )]
    backend: BackendKind,

    /// Uncompressed bytes of all generated SSTables. Default: 2GiB, or four times the largest hot set.
    #[arg(long, help_heading = "Data", value_name = "SIZE", value_parser = within(DATA),
        allow_hyphen_values = true, conflicts_with = "table")]
    data_size: Option<ByteSize>,

    /// Number of generated SSTables.
    #[arg(long, help_heading = "Data", value_name = "N", default_value = "2",
        value_parser = within(1..=1000u32), allow_negative_numbers = true, conflicts_with = "table")]
    sstables: u32,

    /// Generated rows: kv, one small partition each, or wide, 4000 to a partition, found through its
    /// row index.
    #[arg(
        long,
        help_heading = "Data",
        value_enum,
        default_value = "kv",
        conflicts_with = "table"
    )]
    shape: ShapeName,

    /// Version of the generated SSTables: nb, oa, pa, or da, ea with tries.
    #[arg(
        long,
        help_heading = "Data",
        value_name = "VERSION",
        default_value = "oa",
        conflicts_with = "table"
    )]
    sstable_version: Version,

    /// Reads before each compaction, such as 5s. Default: 5s, with --quick 2s.
    #[arg(long, help_heading = "Time", value_name = "SPAN", value_parser = within(SPAN))]
    before: Option<Seconds>,

    /// Reads after it. Default: 5s, with --quick 2s.
    #[arg(long, help_heading = "Time", value_name = "SPAN", value_parser = within(SPAN))]
    after: Option<Seconds>,

    /// A compaction that is shorter does not count. Default: 10s, with --quick 4s.
    #[arg(long, help_heading = "Time", value_name = "SPAN", value_parser = within(SPAN))]
    least_compaction: Option<Seconds>,

    /// Writes everything that was measured to a file, as JSON.
    #[arg(long, help_heading = "Results", value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Writes the report with pictures to a file, for any browser and for print.
    #[arg(long, help_heading = "Results", value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// What is printed on stdout: a table, or the JSON.
    #[arg(long, help_heading = "Results", value_enum, default_value = "text")]
    pub format: Format,

    /// How progress is shown on stderr: `bar` and `auto` are the same as `plain`.
    #[arg(long, help_heading = "Results", value_enum, default_value = "auto")]
    pub progress: ProgressMode,
}

/// Sizes of the hot set.
#[derive(Clone, Debug)]
struct Sweep(Vec<u64>);

impl FromStr for Sweep {
    type Err = String;

    fn from_str(text: &str) -> Result<Sweep, String> {
        let Some(sizes) = text.strip_prefix("hot-set=") else {
            return Err("only the hot set is swept: hot-set=100MiB,1GiB".to_owned());
        };
        let parse = within(HOT_SET);
        let sizes: Result<Vec<u64>, String> =
            sizes.split(',').map(|size| Ok(parse(size)?.0)).collect();
        Ok(Sweep(sizes?))
    }
}

/// A size, or none.
#[derive(Clone, Copy, Debug)]
struct Limit(Option<NonZeroU64>);

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Limit, String> {
        if text == "none" {
            return Ok(Limit(None));
        }
        let size = within(THROUGHPUT)(text).map_err(|reason| format!("{reason}, or none"))?;
        Ok(Limit(NonZeroU64::new(size.0)))
    }
}

/// How often each row is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum DistributionName {
    /// A few rows take most of the reads.
    Zipf,
    /// All rows alike.
    Uniform,
}

/// What generated data looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ShapeName {
    /// One row per partition.
    Kv,
    /// Many rows per partition.
    Wide,
}

impl Args {
    /// What is to be measured in `directory`.
    ///
    /// # Errors
    /// SSTables that cannot be found, or are of several tables.
    pub fn options(&self, directory: &Path) -> anyhow::Result<InterferenceOptions> {
        let mut options = match self.quick {
            true => InterferenceOptions::quick(directory),
            false => InterferenceOptions::new(directory),
        };
        if let Data::Generated {
            shape,
            version,
            uncompressed_bytes,
            sstables,
        } = &mut options.data
        {
            *shape = match self.shape {
                ShapeName::Kv => Shape::KeyValue,
                ShapeName::Wide => Shape::Wide,
            };
            *version = self.sstable_version;
            *sstables = self.sstables;
            if let Some(size) = self.data_size {
                *uncompressed_bytes = Some(size.0);
            }
        }
        if !self.table.is_empty() {
            let catalog = catalog::find(&self.table)?;
            catalog::refuse_two_tables(&catalog.sstables)?;
            options.data = Data::Given(catalog.sstables);
        }
        fn set<T>(target: &mut T, value: Option<T>) {
            if let Some(value) = value {
                *target = value;
            }
        }
        let seconds = |span: Option<Seconds>| span.map(|span| Duration::from_secs(span.0));
        set(&mut options.reader_threads, self.reader_threads);
        set(&mut options.arms, self.arms.clone());
        set(&mut options.repeats, self.repeat);
        set(&mut options.warm_ups, self.warm_up);
        set(&mut options.seed, self.seed);
        set(&mut options.rate_per_s, self.rate);
        let sizes = self.hot_set.map(|size| vec![size.0]);
        set(&mut options.hot_sets_bytes, sizes);
        let sizes = self.sweep.as_ref().map(|sweep| sweep.0.clone());
        set(&mut options.hot_sets_bytes, sizes);
        let limit = self.memory_limit.map(|limit| limit.0.map(NonZeroU64::get));
        set(&mut options.memory_limit_bytes, limit);
        let throughput = self.throughput.map(|limit| limit.0);
        set(&mut options.throughput_bytes_per_s, throughput);
        set(&mut options.compaction_threads, self.threads);
        set(&mut options.before, seconds(self.before));
        set(&mut options.after, seconds(self.after));
        set(
            &mut options.least_compaction,
            seconds(self.least_compaction),
        );
        options.distribution = match self.distribution {
            DistributionName::Uniform => Distribution::Uniform,
            DistributionName::Zipf => Distribution::Zipf {
                exponent: self.zipf_exponent,
            },
        };
        options.compaction_memory_bytes = usize::try_from(self.memory.0).unwrap_or(usize::MAX);
        options.backend = self.backend;
        options.command = Some(
            std::env::args_os()
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
        );
        Ok(options)
    }

    /// Whether somebody chose the arms.
    pub fn names_arms(&self) -> bool {
        self.arms.is_some()
    }
}
