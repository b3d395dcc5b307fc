//! Options that experiments on tables have in common, and their begin and end.

use std::num::NonZeroU64;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use compactor::Table;
use compactor::generate::Shape;
use compactor_io::{BackendKind, raise_open_files_limit};
use compactor_lab::options::{Data, Distribution, Setup};
use compactor_lab::outcome::End;
use compactor_lab::report::{Document, Report};
use compactor_sstable::Version;
use serde::Serialize;

use super::progress::LabProgress;
use crate::duration::Seconds;
use crate::exit_code::INTERRUPTED;
use crate::flags::{ByteRate, ByteSize};
use crate::interrupt;
use crate::numbers::{MEMORY, OrNone, THREADS, or_none, throughput, within};
use crate::output::{print, say};
use crate::progress::ProgressMode;
use crate::result_file::ResultFile;
use crate::work_directory;

const DATA: RangeInclusive<ByteSize> = ByteSize(1 << 20)..=ByteSize(16 << 40);
/// Sizes of a hot set.
pub const HOT_SET: RangeInclusive<ByteSize> = ByteSize(1 << 20)..=ByteSize(1 << 40);
/// Reads per second.
pub const RATE: RangeInclusive<f64> = 1.0..=10_000_000.0;
const READERS: RangeInclusive<u32> = 1..=1024;
/// Spans of time.
pub const SPAN: RangeInclusive<Seconds> = Seconds(0)..=Seconds(86_400);
const REPEATS: RangeInclusive<u32> = 1..=1000;
const WARM_UPS: RangeInclusive<u32> = 0..=1000;
const EXPONENT: RangeInclusive<f64> = 0.0..=5.0;
const YCSB_EXPONENT: f64 = 0.99;

/// Options of experiments on a table.
#[derive(Debug, clap::Args)]
pub struct Common {
    /// A table to use instead of a generated one: its directory, a snapshot, or Data.db files. It is
    /// only read; its pages are dropped from the page cache.
    #[arg(value_name = "TABLE_DIR|SNAPSHOT_DIR|Data.db")]
    table: Vec<PathBuf>,

    /// Directory for temporary files: outputs and generated data. Default: the current directory, $TMPDIR or
    /// /var/tmp, the first that supports direct I/O.
    #[arg(long, value_name = "DIR")]
    pub directory: Option<PathBuf>,

    /// Number of repeats that count. Default: 5, with --quick 3.
    #[arg(long, value_name = "N", value_parser = within(REPEATS))]
    pub repeat: Option<u32>,

    /// Number of warm-up repeats, which do not count. Default: 1.
    #[arg(long, value_name = "N", value_parser = within(WARM_UPS))]
    pub warm_up: Option<u32>,

    /// Random seed of order, hot rows, arrivals and data. Default: 1.
    #[arg(long, value_name = "N", value_parser = within(0..=u64::MAX))]
    pub seed: Option<u64>,

    /// Threads that read. Default: 32, as Cassandra's concurrent_reads.
    #[arg(long, help_heading = "Foreground load", value_name = "N", value_parser = within(READERS))]
    reader_threads: Option<u32>,

    /// Popularity of hot rows: uniform or zipf. Default: uniform for interference, zipf for chunk-length.
    #[arg(long, help_heading = "Foreground load", value_enum)]
    distribution: Option<DistributionName>,

    /// With zipf: the k-th most popular row is read in proportion to 1/k^N. Default: 0.99.
    #[arg(long, help_heading = "Foreground load", value_name = "N", value_parser = within(EXPONENT))]
    zipf_exponent: Option<f64>,

    /// Memory limit of the cgroup of foreground load and compaction, or `none`. Default: 512MiB.
    #[arg(
        long,
        help_heading = "Memory",
        value_name = "SIZE|none",
        value_parser = or_none(within(MEMORY))
    )]
    memory_limit: Option<OrNone<ByteSize>>,

    /// Limit on the stored bytes of Data.db that are compacted per second, at least 1MiB/s, or `none`.
    /// Default: 64MiB/s, as Cassandra's compaction_throughput.
    #[arg(
        long,
        help_heading = "Compaction",
        value_name = "RATE|none",
        value_parser = or_none(throughput)
    )]
    throughput: Option<OrNone<ByteRate>>,

    /// Threads of the compaction. Default: half of the processors.
    #[arg(long, help_heading = "Compaction", value_name = "N", value_parser = within(THREADS))]
    pub threads: Option<usize>,

    /// Memory for the compaction's buffers.
    #[arg(long, help_heading = "Compaction", value_name = "SIZE", default_value = "64MiB",
        value_parser = within(MEMORY))]
    memory: ByteSize,

    /// I/O backend of the compaction: auto, uring, tokio-uring, threads. Mode dontcache is
    /// always performed by threads.
    #[arg(
        long,
        help_heading = "Compaction",
        value_name = "BACKEND",
        default_value = "auto"
    )]
    pub backend: BackendKind,

    /// Uncompressed bytes of all generated SSTables. Default: 2GiB, or four times the largest hot set.
    #[arg(long, help_heading = "Data", value_name = "SIZE", value_parser = within(DATA), conflicts_with = "table")]
    data_size: Option<ByteSize>,

    /// Number of generated SSTables.
    #[arg(long, help_heading = "Data", value_name = "N", default_value = "2",
        value_parser = within(1..=1000u32), conflicts_with = "table")]
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

    #[command(flatten)]
    pub results: Results,
}

/// Popularity of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum DistributionName {
    /// A few rows get most of the reads.
    Zipf,
    /// All rows equally.
    Uniform,
}

/// Shape of generated data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ShapeName {
    /// One row per partition.
    Kv,
    /// Many rows per partition.
    Wide,
}

impl Common {
    /// Sets the options that experiments have in common.
    ///
    /// # Errors
    /// SSTables that cannot be found, or are of several tables.
    pub fn apply(&self, setup: &mut Setup) -> anyhow::Result<()> {
        if !self.table.is_empty() {
            let table = Table::open_all(&self.table, None)?;
            setup.data = Data::Given(table.sstables().to_vec());
        } else if let Data::Generated {
            shape,
            version,
            uncompressed_bytes,
            sstables,
        } = &mut setup.data
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
        set(&mut setup.repeats, self.repeat);
        set(&mut setup.warm_ups, self.warm_up);
        set(&mut setup.seed, self.seed);
        set(&mut setup.reader_threads, self.reader_threads);
        set(&mut setup.distribution, self.popularity());
        let limit = self.memory_limit.map(|limit| limit.0.map(|size| size.0));
        set(&mut setup.memory_limit_bytes, limit);
        let throughput = self.throughput.map(|limit| limit.0);
        let throughput = throughput.map(|rate| rate.and_then(|rate| NonZeroU64::new(rate.0)));
        set(&mut setup.throughput_bytes_per_s, throughput);
        set(&mut setup.compaction_threads, self.threads);
        setup.compaction_memory_bytes = usize::try_from(self.memory.0).unwrap_or(usize::MAX);
        setup.backend = self.backend;
        setup.command = Some(command());
        Ok(())
    }

    /// Popularity of hot rows, if that is asked for.
    fn popularity(&self) -> Option<Distribution> {
        match (self.distribution, self.zipf_exponent) {
            (None, None) => None,
            (Some(DistributionName::Uniform), _) => Some(Distribution::Uniform),
            (_, exponent) => Some(Distribution::Zipf {
                exponent: exponent.unwrap_or(YCSB_EXPONENT),
            }),
        }
    }
}

/// Prepares for an experiment: signals, the limit of open files, and the directory to work in.
///
/// # Errors
/// If handlers cannot be installed, or there is no such directory.
pub fn begin(directory: Option<&Path>) -> anyhow::Result<(Arc<AtomicBool>, PathBuf)> {
    let interrupted = begin_anywhere()?;
    let place = work_directory::choose(directory)?;
    for note in &place.notes {
        say(format_args!("note: {note}"));
    }
    Ok((interrupted, place.directory))
}

/// Prepares for an experiment that measures no disk: signals, and the limit of open files.
///
/// # Errors
/// If handlers cannot be installed.
pub fn begin_anywhere() -> anyhow::Result<Arc<AtomicBool>> {
    let _ = raise_open_files_limit();
    interrupt::flag_of_long_end().context("install signal handlers")
}

/// Form of a report on stdout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ReportFormat {
    /// Tables for terminals.
    Text,
    /// Tables of GitHub's Markdown.
    Markdown,
    /// Everything that was measured, as JSON.
    Json,
}

impl ReportFormat {
    /// The text of a report; `json` is everything that was measured.
    pub fn text(
        self,
        document: &Document,
        json: impl FnOnce() -> serde_json::Result<String>,
    ) -> serde_json::Result<String> {
        match self {
            ReportFormat::Text => Ok(document.to_text()),
            ReportFormat::Markdown => Ok(document.to_markdown()),
            ReportFormat::Json => json(),
        }
    }
}

/// Where the results of an experiment go.
#[derive(Debug, clap::Args)]
pub struct Results {
    /// Writes everything that was measured to a file, as JSON.
    #[arg(long, help_heading = "Results", value_name = "FILE")]
    json: Option<PathBuf>,

    /// Writes the report with charts to a file, for any browser and for print.
    #[arg(long, help_heading = "Results", value_name = "FILE")]
    html: Option<PathBuf>,

    /// Form of the output on stdout.
    #[arg(long, help_heading = "Results", value_enum, default_value = "text")]
    pub format: ReportFormat,

    /// Form of progress on stderr: `bar` and `auto` are the same as `plain`.
    #[arg(long, help_heading = "Results", value_enum, default_value = "auto")]
    progress: ProgressMode,
}

impl Results {
    /// Runs an experiment, which returns its outcome and report, and shows them. Returns the exit code.
    ///
    /// # Errors
    /// That of the experiment, or a result that cannot be written.
    pub fn of<O: Serialize>(
        &self,
        interrupted: Arc<AtomicBool>,
        experiment: impl FnOnce(&LabProgress) -> anyhow::Result<(O, Report)>,
    ) -> anyhow::Result<ExitCode> {
        // Created before the experiment: a place that cannot be written is known at once.
        let paths = [self.json.as_deref(), self.html.as_deref()];
        let [json_file, html_file] = ResultFile::create_two(paths)?;
        let (outcome, report) = experiment(&LabProgress::new(self.progress, interrupted))?;
        let json = serde_json::to_string(&outcome)?;
        let (end, is_sound) = (report.end, report.is_sound);
        let document = Report::document(&[report]);
        if let Some(file) = json_file {
            file.write("everything that was measured", &json)?;
        }
        if let Some(file) = html_file {
            file.write("report with charts", &document.to_html())?;
        }
        let code = print(&self.format.text(&document, || Ok(json))?)?;
        Ok(match end {
            End::Interrupted => ExitCode::from(INTERRUPTED),
            End::Complete if is_sound => code,
            End::Complete => ExitCode::FAILURE,
        })
    }
}

/// The command line.
pub fn command() -> Vec<String> {
    let words = std::env::args_os();
    words
        .map(|word| word.to_string_lossy().into_owned())
        .collect()
}

/// Sets a value if there is one.
pub fn set<T>(target: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *target = value;
    }
}
