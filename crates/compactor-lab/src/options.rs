//! Options of the interference experiment.

use std::num::NonZeroU64;
use std::ops::Deref;
use std::path::PathBuf;
use std::time::Duration;

use compactor::Error;
use compactor::generate::Shape;
use compactor_io::{BackendKind, ReadMode, WriteMode};
use compactor_sstable::Version;
use serde::{Deserialize, Serialize};

use crate::arm::Arm;
use crate::priority::Priority;
use crate::report::units::bytes;

pub(crate) mod form;

pub(crate) const MIB: u64 = 1 << 20;
pub(crate) const GIB: u64 = 1 << 30;

/// Source of the table.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// It is generated in the experiment's own directory and removed with it.
    Generated {
        /// Shape of its rows: [`Shape::KeyValue`] or [`Shape::Wide`].
        shape: Shape,
        /// Version of the SSTables.
        version: Version,
        /// Uncompressed bytes of all SSTables; `None` for 2 GiB, or four times the largest hot set if
        /// that is more.
        uncompressed_bytes: Option<u64>,
        /// Number of SSTables.
        sstables: u32,
    },
    /// SSTables of one table, by their `Data.db`. They are only read; their pages are dropped from the
    /// page cache, as those of generated ones are.
    Given(Vec<PathBuf>),
}

/// A record of options does not have it.
impl Default for Data {
    fn default() -> Data {
        Data::Given(Vec::new())
    }
}

impl Data {
    /// Two SSTables of small partitions.
    fn generated(uncompressed_bytes: Option<u64>) -> Data {
        Data::Generated {
            shape: Shape::KeyValue,
            version: Version::Oa,
            uncompressed_bytes,
            sstables: 2,
        }
    }

    /// Uncompressed bytes to generate: none for a table that was given.
    pub(crate) fn generated_bytes(&self, largest_hot_set: u64) -> u64 {
        match self {
            Data::Given(_) => 0,
            Data::Generated {
                uncompressed_bytes, ..
            } => uncompressed_bytes.unwrap_or((4 * largest_hot_set).max(2 * GIB)),
        }
    }
}

/// Popularity of hot rows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// All equally.
    Uniform,
    /// The k-th most popular in proportion to `k.powf(-exponent)`; which is which is random.
    Zipf {
        /// 0 is uniform; YCSB's is 0.99.
        exponent: f64,
    },
}

/// Options that all experiments on reads have in common.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    /// Directory for outputs and generated data, on the disk that is of interest.
    pub directory: PathBuf,
    /// The table.
    #[serde(skip)]
    pub data: Data,
    /// Repeats that count.
    pub repeats: u32,
    /// Repeats before them that do not.
    pub warm_ups: u32,
    /// Random seed of order, hot rows, arrivals and data.
    pub seed: u64,
    /// Threads that read.
    pub reader_threads: u32,
    /// Popularity of hot rows.
    pub distribution: Distribution,
    /// Memory limit that the foreground load and the compaction share; `None` for none.
    pub memory_limit_bytes: Option<u64>,
    /// Stored bytes of `Data.db` that the compaction takes per second; `None` for no limit.
    pub throughput_bytes_per_s: Option<NonZeroU64>,
    /// Threads of the compaction that decode and compress.
    pub compaction_threads: usize,
    /// Bytes of the compaction's buffers.
    pub compaction_memory_bytes: usize,
    /// I/O backend of the compaction. Mode `dontcache` is always carried by
    /// threads.
    #[serde(with = "form::text")]
    pub backend: BackendKind,
    /// The command line, for the record.
    pub command: Option<Vec<String>>,
}

/// Options of an interference experiment, and their record in its outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InterferenceOptions {
    /// Options in common with other experiments.
    #[serde(flatten)]
    pub setup: Setup,
    /// Arms to compare.
    pub arms: Vec<Arm>,
    /// Reads per second, over all threads.
    pub rate_per_s: f64,
    /// Sizes of the hot set in bytes of page cache; each is an experiment of its own on the same table.
    pub hot_sets_bytes: Vec<u64>,
    /// Priority of the compaction relative to the foreground load, the same in all arms.
    #[serde(default)]
    pub compaction_priority: Priority,
    /// Reads before the compaction.
    #[serde(rename = "before_s", with = "form::seconds")]
    pub before: Duration,
    /// Reads after it.
    #[serde(rename = "after_s", with = "form::seconds")]
    pub after: Duration,
    /// Minimum time to keep compacting in each run.
    #[serde(rename = "least_compaction_s", with = "form::seconds")]
    pub least_compaction: Duration,
    /// Time between samples.
    pub sample_ms: u64,
    /// Time between lines of progress.
    #[serde(skip)]
    pub report_interval: Duration,
    /// Whether mode `direct` falls back as `auto` would, where direct I/O does not work, instead of being
    /// refused: only to show that a run which falls back does not count.
    #[doc(hidden)]
    #[serde(skip)]
    pub may_fall_back: bool,
}

impl Deref for InterferenceOptions {
    type Target = Setup;

    fn deref(&self) -> &Setup {
        &self.setup
    }
}

impl Setup {
    /// Five repeats of a generated table, 32 readers, a limit of 512 MiB, and a compaction at Cassandra's
    /// default of 64 MiB/s on half of the processors.
    pub(crate) fn new(directory: PathBuf) -> Setup {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Setup {
            directory,
            data: Data::generated(None),
            repeats: 5,
            warm_ups: 1,
            seed: 1,
            // Cassandra's `concurrent_reads`: with fewer, some slow reads would hold up all others.
            reader_threads: 32,
            distribution: Distribution::Uniform,
            memory_limit_bytes: Some(512 * MIB),
            throughput_bytes_per_s: NonZeroU64::new(64 * MIB),
            // A node also does other work.
            compaction_threads: processors.div_ceil(2),
            compaction_memory_bytes: 64 << 20,
            backend: BackendKind::Auto,
            command: None,
        }
    }

    /// Three repeats of a small table, a compaction at 32 MiB/s.
    pub(crate) fn quick(directory: PathBuf, data_bytes: u64, limit_bytes: u64) -> Setup {
        Setup {
            data: Data::generated(Some(data_bytes)),
            repeats: 3,
            memory_limit_bytes: Some(limit_bytes),
            throughput_bytes_per_s: NonZeroU64::new(32 * MIB),
            ..Setup::new(directory)
        }
    }

    /// Checks that the options make sense.
    ///
    /// # Errors
    /// No reader, a memory limit that the process itself exceeds, since the windows, the hot keys and the
    /// filters are charged as well, or data that changes with time.
    pub(crate) fn check(&self) -> compactor::Result<()> {
        if self.reader_threads == 0 {
            return Err(Error::invalid(
                "the number of reader threads must be above 0",
            ));
        }
        let least = self.compaction_memory_bytes as u64 + 64 * MIB;
        if let Some(limit) = self.memory_limit_bytes.filter(|limit| *limit < least) {
            return Err(Error::invalid(format!(
                "a memory limit of {} MiB is too little for the compaction's own {} MiB of buffers; at \
                 least {} MiB are needed",
                limit / MIB,
                self.compaction_memory_bytes as u64 / MIB,
                least.div_ceil(MIB)
            )));
        }
        match self.data {
            Data::Generated {
                shape: Shape::TimeSeries,
                ..
            } => Err(Error::invalid(
                "a time series expires while it is measured; choose shape kv or wide",
            )),
            _ => Ok(()),
        }
    }
}

/// Refuses an item that is named twice.
///
/// # Errors
/// If there is one.
pub(crate) fn refuse_twice<T: PartialEq>(
    items: &[T],
    name: impl Fn(&T) -> String,
) -> compactor::Result<()> {
    let mut others = items.iter().enumerate();
    match others.find(|(at, item)| items[..*at].contains(item)) {
        Some((_, twice)) => {
            let text = format!("{} is named twice; use --repeat", name(twice));
            Err(Error::invalid(text))
        }
        None => Ok(()),
    }
}

/// Whether a rate is a positive number.
pub(crate) fn is_rate(rate: f64) -> bool {
    rate > 0.0 && rate.is_finite()
}

impl InterferenceOptions {
    /// The full experiment: all arms, five repeats, 2 GiB, hot set 256 MiB of a limit of 512 MiB, 10,000
    /// reads/s, compaction at Cassandra's default of 64 MiB/s. It takes some 25 minutes.
    pub fn new(directory: impl Into<PathBuf>) -> InterferenceOptions {
        InterferenceOptions {
            setup: Setup::new(directory.into()),
            arms: Arm::DEFAULT.to_vec(),
            rate_per_s: 10_000.0,
            hot_sets_bytes: vec![256 * MIB],
            compaction_priority: Priority::Idle,
            before: Duration::from_secs(5),
            after: Duration::from_secs(5),
            least_compaction: Duration::from_secs(10),
            sample_ms: 100,
            report_interval: Duration::from_secs(1),
            may_fall_back: false,
        }
    }

    /// The short experiment, under five minutes: four arms, three repeats, 512 MiB, hot set 96 MiB of a
    /// limit of 256 MiB, 5,000 reads/s, compaction at 32 MiB/s.
    pub fn quick(directory: impl Into<PathBuf>) -> InterferenceOptions {
        let directory = directory.into();
        InterferenceOptions {
            setup: Setup::quick(directory.clone(), 512 * MIB, 256 * MIB),
            arms: vec![
                Arm::Idle,
                Arm::BUFFERED,
                Arm::of(ReadMode::Buffered, WriteMode::Direct),
                Arm::DIRECT,
            ],
            rate_per_s: 5000.0,
            hot_sets_bytes: vec![96 * MIB],
            before: Duration::from_secs(2),
            after: Duration::from_secs(2),
            least_compaction: Duration::from_secs(4),
            ..InterferenceOptions::new(directory)
        }
    }

    /// Checks that the options make sense.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`](compactor::ErrorKind::InvalidInput), with a sentence.
    pub(crate) fn check(&self) -> compactor::Result<()> {
        if self.arms.is_empty() || self.repeats == 0 || self.hot_sets_bytes.is_empty() {
            let text = "name at least one arm, one repeat and one size of the hot set";
            return Err(Error::invalid(text));
        }
        refuse_twice(&self.arms, |arm| format!("arm {arm}"))?;
        let size = |size: &u64| format!("a hot set of {}", bytes(*size as f64));
        refuse_twice(&self.hot_sets_bytes, size)?;
        if !is_rate(self.rate_per_s) {
            return Err(Error::invalid("the rate must be above 0"));
        }
        self.setup.check()
    }
}
