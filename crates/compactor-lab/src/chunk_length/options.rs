//! Options of the chunk-length experiment.

use std::ops::Deref;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::variant::{Compressor, Variant};
use crate::arm::Arm;
use crate::options::{Distribution, GIB, MIB, Setup, form, is_rate, refuse_twice};

const KIB: u32 = 1 << 10;

/// Options of a comparison of chunk lengths and compressors, and their record in its outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChunkLengthOptions {
    /// Options in common with other experiments. The rows are written anew once for each variant.
    #[serde(flatten)]
    pub setup: Setup,
    /// Uncompressed bytes of a chunk: powers of two.
    pub chunk_lengths_bytes: Vec<u32>,
    /// Compressors, each of which is combined with each chunk length.
    pub compressors: Vec<Compressor>,
    /// Reads per second at which latencies are compared, over all threads; `None` for half of the most
    /// that the slowest variant reached while warming up.
    pub rate_per_s: Option<f64>,
    /// Bytes of page cache that the hot rows take as the data is stored, before it is written anew.
    pub hot_set_bytes: u64,
    /// Modes of the compaction during the reads; [`Arm::Idle`] for no compaction.
    pub compaction: Arm,
    /// Reads before each run that are not measured: they fill the page cache, which was dropped.
    #[serde(rename = "warm_s", with = "form::seconds")]
    pub warm: Duration,
    /// Length of each measurement; a run has up to four.
    #[serde(rename = "measure_s", with = "form::seconds")]
    pub measure: Duration,
}

impl Deref for ChunkLengthOptions {
    type Target = Setup;

    fn deref(&self) -> &Setup {
        &self.setup
    }
}

impl ChunkLengthOptions {
    /// LZ4 with 4, 16, 64 and 256 KiB, five repeats, 3 GiB, hot rows on 768 MiB, a limit of 512 MiB,
    /// 32 readers, the number of Cassandra's `concurrent_reads`. It takes some 12 minutes.
    pub fn new(directory: impl Into<PathBuf>) -> ChunkLengthOptions {
        ChunkLengthOptions {
            setup: Setup {
                distribution: Distribution::Zipf { exponent: 0.99 },
                ..Setup::new(directory.into())
            },
            chunk_lengths_bytes: vec![4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB],
            compressors: vec![Compressor::Lz4],
            rate_per_s: None,
            hot_set_bytes: 768 * MIB,
            compaction: Arm::DIRECT,
            warm: Duration::from_secs(5),
            measure: Duration::from_secs(5),
        }
    }

    /// The short one, under five minutes: three repeats, 1 GiB, hot rows on 256 MiB of a limit of
    /// 192 MiB, compaction at 32 MiB/s, two seconds for each measurement.
    pub fn quick(directory: impl Into<PathBuf>) -> ChunkLengthOptions {
        let directory = directory.into();
        let full = ChunkLengthOptions::new(directory.clone());
        ChunkLengthOptions {
            setup: Setup {
                distribution: full.distribution,
                ..Setup::quick(directory, GIB, 192 * MIB)
            },
            hot_set_bytes: 256 * MIB,
            warm: Duration::from_secs(3),
            measure: Duration::from_secs(2),
            ..full
        }
    }

    /// Variants in the order in which they were named.
    pub fn variants(&self) -> Vec<Variant> {
        Variant::all(&self.compressors, &self.chunk_lengths_bytes)
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
        refuse_twice(&variants, Variant::to_string)?;
        if self.rate_per_s.is_some_and(|rate| !is_rate(rate)) {
            return refuse("the rate must be above 0".into());
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
        self.setup.check()
    }
}
