//! Options of the chunk-length experiment.

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Duration;

use compactor::generate::Shape;
use compactor::io::BackendKind;
use compactor::sstable::Version;
use serde::{Deserialize, Serialize};

use super::variant::{Compressor, Variant};
use crate::arm::Arm;
use crate::options::{Data, Distribution, form, refuse_expiring_data, refuse_small_limit};

const KIB: u32 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Options of a comparison of chunk lengths and compressors, and their record in its outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChunkLengthOptions {
    /// Directory for everything, on the disk that is of interest.
    pub directory: PathBuf,
    /// The rows. They are written anew once for each variant.
    #[serde(skip)]
    pub data: Data,
    /// Uncompressed bytes of a chunk: powers of two.
    pub chunk_lengths_bytes: Vec<u32>,
    /// Compressors, each of which is combined with each chunk length.
    pub compressors: Vec<Compressor>,
    /// Repeats of each variant that count.
    pub repeats: u32,
    /// Repeats of each variant before them that do not.
    pub warm_ups: u32,
    /// Random seed of order, hot rows, arrivals and data.
    pub seed: u64,
    /// Reads per second at which latencies are compared, over all threads; `None` for half of the most
    /// that the slowest variant reached while warming up.
    pub rate_per_s: Option<f64>,
    /// Threads that read.
    pub reader_threads: u32,
    /// Popularity of hot rows.
    pub distribution: Distribution,
    /// Bytes of page cache that the hot rows take as the data is stored, before it is written anew.
    pub hot_set_bytes: u64,
    /// Memory limit that the foreground load and the compaction share; `None` for none.
    pub memory_limit_bytes: Option<u64>,
    /// Modes of the compaction during the reads; [`Arm::Idle`] for no compaction.
    pub compaction: Arm,
    /// Stored bytes of `Data.db` that the compaction takes per second; `None` for no limit.
    pub throughput_bytes_per_s: Option<NonZeroU64>,
    /// Threads of the compaction that decode and compress.
    pub compaction_threads: usize,
    /// Bytes of the compaction's buffers.
    pub compaction_memory_bytes: usize,
    /// I/O backend of the compaction.
    #[serde(with = "form::text")]
    pub backend: BackendKind,
    /// Reads before each run that are not measured: they fill the page cache, which was dropped.
    #[serde(rename = "warm_s", with = "form::seconds")]
    pub warm: Duration,
    /// Length of each measurement; a run has up to four.
    #[serde(rename = "measure_s", with = "form::seconds")]
    pub measure: Duration,
    /// The command line, for the record.
    pub command: Option<Vec<String>>,
}

impl ChunkLengthOptions {
    /// LZ4 with 4, 16, 64 and 256 KiB, five repeats, 3 GiB, hot rows on 768 MiB, a limit of 512 MiB,
    /// 32 readers, as many as Cassandra's `concurrent_reads`. It takes some 12 minutes.
    pub fn new(directory: impl Into<PathBuf>) -> ChunkLengthOptions {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        ChunkLengthOptions {
            directory: directory.into(),
            data: Data::Generated {
                shape: Shape::KeyValue,
                version: Version::Oa,
                uncompressed_bytes: None,
                sstables: 2,
            },
            chunk_lengths_bytes: vec![4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB],
            compressors: vec![Compressor::Lz4],
            repeats: 5,
            warm_ups: 1,
            seed: 1,
            rate_per_s: None,
            reader_threads: 32,
            distribution: Distribution::Zipf { exponent: 0.99 },
            hot_set_bytes: 768 * MIB,
            memory_limit_bytes: Some(512 * MIB),
            compaction: Arm::DIRECT,
            throughput_bytes_per_s: NonZeroU64::new(64 * MIB),
            // A node does other things besides.
            compaction_threads: processors.div_ceil(2),
            compaction_memory_bytes: 64 << 20,
            backend: BackendKind::Auto,
            warm: Duration::from_secs(5),
            measure: Duration::from_secs(5),
            command: None,
        }
    }

    /// The short one, under five minutes: three repeats, 1 GiB, hot rows on 256 MiB of a limit of
    /// 192 MiB, compaction at 32 MiB/s, two seconds for each measurement.
    pub fn quick(directory: impl Into<PathBuf>) -> ChunkLengthOptions {
        ChunkLengthOptions {
            data: Data::Generated {
                shape: Shape::KeyValue,
                version: Version::Oa,
                uncompressed_bytes: Some(GIB),
                sstables: 2,
            },
            repeats: 3,
            hot_set_bytes: 256 * MIB,
            memory_limit_bytes: Some(192 * MIB),
            throughput_bytes_per_s: NonZeroU64::new(32 * MIB),
            warm: Duration::from_secs(3),
            measure: Duration::from_secs(2),
            ..ChunkLengthOptions::new(directory)
        }
    }

    /// Variants in the order in which they were named.
    pub fn variants(&self) -> Vec<Variant> {
        Variant::all(&self.compressors, &self.chunk_lengths_bytes)
    }

    /// Uncompressed bytes to generate; `None` for a table that was given.
    pub fn generated_bytes(&self) -> Option<u64> {
        self.data.generated_bytes(self.hot_set_bytes)
    }

    /// Checks that the options make sense.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`](compactor::ErrorKind::InvalidInput), with a sentence.
    pub(crate) fn check(&self) -> compactor::Result<()> {
        let refuse = |text: String| Err(compactor::Error::invalid(text));
        let variants = self.variants();
        if variants.is_empty() || self.repeats == 0 || self.hot_set_bytes == 0 {
            return refuse(
                "name at least one compressor, one chunk length, one repeat and some hot rows"
                    .into(),
            );
        }
        let valid = KIB..=64 * KIB * KIB;
        let bad = |len: &&u32| !len.is_power_of_two() || !valid.contains(*len);
        if let Some(len) = self.chunk_lengths_bytes.iter().find(bad) {
            return refuse(format!(
                "a chunk length of {len} bytes: Cassandra takes powers of two, and 1KiB to 64MiB are \
                 possible here, such as 16KiB"
            ));
        }
        let mut sorted = variants;
        sorted.sort_unstable();
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return refuse(format!("{} is named twice; use --repeat", twice[0]));
        }
        let is_rate = |rate: f64| rate > 0.0 && rate.is_finite();
        if self.rate_per_s.is_some_and(|rate| !is_rate(rate)) || self.reader_threads == 0 {
            return refuse("the rate and the number of reader threads must be above 0".into());
        }
        if self.rate_per_s.is_none() && self.warm_ups == 0 {
            return refuse(
                "without a warm-up the rate that all variants can hold is unknown; name one with --rate"
                    .into(),
            );
        }
        if self.measure.is_zero() {
            return refuse("a measurement must take some time".into());
        }
        refuse_small_limit(self.memory_limit_bytes, self.compaction_memory_bytes)?;
        refuse_expiring_data(&self.data)
    }
}
