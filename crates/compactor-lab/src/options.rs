//! Options of the interference experiment.

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Duration;

use compactor::generate::Shape;
use compactor::io::BackendKind;
use compactor::sstable::Version;
use serde::{Deserialize, Serialize};

use crate::arm::Arm;
use crate::priority::Priority;
use crate::report::units::bytes;

pub(crate) mod form;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

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
    /// Uncompressed bytes to generate; `None` for a table that was given.
    pub(crate) fn generated_bytes(&self, largest_hot_set: u64) -> Option<u64> {
        match self {
            Data::Given(_) => None,
            Data::Generated {
                uncompressed_bytes, ..
            } => {
                let enough = (4 * largest_hot_set).max(2 * GIB);
                Some(uncompressed_bytes.unwrap_or(enough))
            }
        }
    }
}

/// Popularity of hot rows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// All alike.
    Uniform,
    /// The k-th most popular in proportion to `k.powf(-exponent)`; which is which is random.
    Zipf {
        /// 0 is uniform; YCSB's is 0.99.
        exponent: f64,
    },
}

/// Options of an interference experiment, and their record in its outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InterferenceOptions {
    /// Directory for outputs and generated data, on the disk that is of interest.
    pub directory: PathBuf,
    /// The table.
    #[serde(skip)]
    pub data: Data,
    /// Arms to compare.
    pub arms: Vec<Arm>,
    /// Repeats of each arm that count.
    pub repeats: u32,
    /// Repeats of each arm before them that do not.
    pub warm_ups: u32,
    /// Random seed of order, hot rows, arrivals and data.
    pub seed: u64,
    /// Reads per second, over all threads.
    pub rate_per_s: f64,
    /// Threads that read.
    pub reader_threads: u32,
    /// Popularity of hot rows.
    pub distribution: Distribution,
    /// Sizes of the hot set in bytes of page cache; each is an experiment of its own on the same table.
    pub hot_sets_bytes: Vec<u64>,
    /// Memory limit that the foreground load and the compaction share; `None` for none.
    pub memory_limit_bytes: Option<u64>,
    /// Stored bytes of `Data.db` that the compaction takes per second; `None` for no limit.
    pub throughput_bytes_per_s: Option<NonZeroU64>,
    /// Threads of the compaction that decode and compress.
    pub compaction_threads: usize,
    /// Bytes of the compaction's buffers.
    pub compaction_memory_bytes: usize,
    /// Priority of the compaction relative to the foreground load, in all arms alike.
    #[serde(default)]
    pub compaction_priority: Priority,
    /// I/O backend of the compaction. Mode `dontcache` is always carried by
    /// threads.
    #[serde(with = "form::text")]
    pub backend: BackendKind,
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
    #[serde(rename = "sample_ms", with = "form::milliseconds")]
    pub sample_interval: Duration,
    /// Time between lines of progress.
    #[serde(skip)]
    pub report_interval: Duration,
    /// Whether mode `direct` falls back as `auto` would, where direct I/O does not work, instead of being
    /// refused: only to show that a run which falls back does not count.
    #[doc(hidden)]
    #[serde(skip)]
    pub may_fall_back: bool,
    /// The command line, for the record.
    pub command: Option<Vec<String>>,
}

impl InterferenceOptions {
    /// The full experiment: all arms, five repeats, 2 GiB, hot set 256 MiB of a limit of 512 MiB, 10,000
    /// reads/s, compaction at Cassandra's default of 64 MiB/s. It takes some 25 minutes.
    pub fn new(directory: impl Into<PathBuf>) -> InterferenceOptions {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        InterferenceOptions {
            directory: directory.into(),
            data: Data::Generated {
                shape: Shape::KeyValue,
                version: Version::Oa,
                uncompressed_bytes: None,
                sstables: 2,
            },
            arms: Arm::DEFAULT.to_vec(),
            repeats: 5,
            warm_ups: 1,
            seed: 1,
            rate_per_s: 10_000.0,
            // Cassandra's `concurrent_reads`: with fewer, some slow reads would hold up all others.
            reader_threads: 32,
            distribution: Distribution::Uniform,
            hot_sets_bytes: vec![256 * MIB],
            memory_limit_bytes: Some(512 * MIB),
            throughput_bytes_per_s: NonZeroU64::new(64 * MIB),
            // A node does other things besides.
            compaction_threads: processors.div_ceil(2),
            compaction_memory_bytes: 64 << 20,
            compaction_priority: Priority::Idle,
            backend: BackendKind::Auto,
            before: Duration::from_secs(5),
            after: Duration::from_secs(5),
            least_compaction: Duration::from_secs(10),
            sample_interval: Duration::from_millis(100),
            report_interval: Duration::from_secs(1),
            may_fall_back: false,
            command: None,
        }
    }

    /// The short experiment, under five minutes: four arms, three repeats, 512 MiB, hot set 96 MiB of a
    /// limit of 256 MiB, 5,000 reads/s, compaction at 32 MiB/s.
    pub fn quick(directory: impl Into<PathBuf>) -> InterferenceOptions {
        let full = InterferenceOptions::new(directory);
        let arms = [
            "idle",
            "buffered/buffered",
            "buffered/direct",
            "direct/direct",
        ];
        InterferenceOptions {
            data: Data::Generated {
                shape: Shape::KeyValue,
                version: Version::Oa,
                uncompressed_bytes: Some(512 * MIB),
                sstables: 2,
            },
            arms: arms.iter().filter_map(|arm| arm.parse().ok()).collect(),
            repeats: 3,
            rate_per_s: 5000.0,
            hot_sets_bytes: vec![96 * MIB],
            memory_limit_bytes: Some(256 * MIB),
            throughput_bytes_per_s: NonZeroU64::new(32 * MIB),
            before: Duration::from_secs(2),
            after: Duration::from_secs(2),
            least_compaction: Duration::from_secs(4),
            ..full
        }
    }

    /// Uncompressed bytes to generate; `None` for a table that was given.
    pub fn generated_bytes(&self) -> Option<u64> {
        let largest = self.hot_sets_bytes.iter().copied().max();
        self.data.generated_bytes(largest.unwrap_or(0))
    }

    /// Checks that the options make sense.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`](compactor::ErrorKind::InvalidInput), with a sentence.
    pub(crate) fn check(&self) -> compactor::Result<()> {
        let refuse = |text: String| Err(compactor::Error::invalid(text));
        if self.arms.is_empty() || self.repeats == 0 || self.hot_sets_bytes.is_empty() {
            return refuse("name at least one arm, one repeat and one size of the hot set".into());
        }
        let mut arms = self.arms.clone();
        arms.sort_unstable();
        if let Some(twice) = arms.windows(2).find(|pair| pair[0] == pair[1]) {
            return refuse(format!("arm {} is named twice; use --repeat", twice[0]));
        }
        let mut sizes = self.hot_sets_bytes.clone();
        sizes.sort_unstable();
        if let Some(twice) = sizes.windows(2).find(|pair| pair[0] == pair[1]) {
            return refuse(format!(
                "a hot set of {} is named twice; use --repeat",
                bytes(twice[0] as f64)
            ));
        }
        if !(self.rate_per_s > 0.0 && self.rate_per_s.is_finite()) || self.reader_threads == 0 {
            return refuse("the rate and the number of reader threads must be above 0".into());
        }
        refuse_small_limit(self.memory_limit_bytes, self.compaction_memory_bytes)?;
        refuse_expiring_data(&self.data)
    }
}

/// Refuses a limit that the process itself exceeds: what it needs is charged as well, beyond the
/// compaction's buffers the windows, the hot keys and the filters.
///
/// # Errors
/// If it is too little.
pub(crate) fn refuse_small_limit(
    limit_bytes: Option<u64>,
    compaction_memory_bytes: usize,
) -> compactor::Result<()> {
    let least = compaction_memory_bytes as u64 + 64 * MIB;
    match limit_bytes {
        Some(limit) if limit < least => Err(compactor::Error::invalid(format!(
            "a memory limit of {} MiB is too little for the compaction's own {} MiB of buffers; at \
             least {} MiB are needed",
            limit / MIB,
            compaction_memory_bytes as u64 / MIB,
            least.div_ceil(MIB)
        ))),
        _ => Ok(()),
    }
}

/// Refuses data that changes with time.
///
/// # Errors
/// For a time series.
pub(crate) fn refuse_expiring_data(data: &Data) -> compactor::Result<()> {
    match data {
        Data::Generated {
            shape: Shape::TimeSeries,
            ..
        } => Err(compactor::Error::invalid(
            "a time series expires while it is measured; choose shape kv or wide",
        )),
        _ => Ok(()),
    }
}
