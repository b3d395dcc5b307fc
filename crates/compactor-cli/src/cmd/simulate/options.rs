//! Options of the table, its writes and its node.

use std::ops::RangeInclusive;

use compactor::Error;
use compactor_lab::report::document::Facts;
use compactor_simulate::{Distribution, Setup, Workload};
use compactor_strategy::CompactionParams;

use crate::duration::Seconds;
use crate::flags::{ByteRate, ByteSize};
use crate::numbers::{GC_GRACE_SECONDS, OrNone, or_none, within};

const SIZE: RangeInclusive<ByteSize> = ByteSize(1)..=ByteSize(1 << 50);
const RATE: RangeInclusive<ByteRate> = ByteRate(1)..=ByteRate(1 << 40);
const FLUSH: RangeInclusive<ByteSize> = ByteSize(1 << 20)..=ByteSize(1 << 40);
const PART: RangeInclusive<f64> = 0.0..=1.0;
const RATIO: RangeInclusive<f64> = 0.001..=100.0;
const EXPONENT: RangeInclusive<f64> = 0.0..=5.0;
/// Twenty years, as `default_time_to_live` at most.
const TTL: RangeInclusive<Seconds> = Seconds(1)..=Seconds(630_720_000);
const DURATION: RangeInclusive<Seconds> = Seconds(1)..=Seconds(100 * 366 * 86_400);
const COMPACTORS: RangeInclusive<usize> = 1..=256;
const ROWS: RangeInclusive<u64> = 1..=1_000_000_000_000_000;

/// Which rows are updated, deleted and read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum DistributionName {
    /// All rows equally.
    Uniform,
    /// A few rows get most of the updates and reads.
    Zipf,
    /// Every row is written once, and those of a partition at about the same time.
    TimeOrdered,
}

/// The table, its writes, and the node.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct TableFlags {
    /// Bytes that are written per second, uncompressed.
    #[arg(long, help_heading = "Writes", value_name = "RATE", default_value = "1MiB/s",
        value_parser = within(RATE))]
    ingest: ByteRate,

    /// Bytes of a row.
    #[arg(long, help_heading = "Writes", value_name = "SIZE", default_value = "1KiB",
        value_parser = within(SIZE))]
    row_size: ByteSize,

    /// Bytes of all rows of a partition. Default: that of a row.
    #[arg(long, help_heading = "Writes", value_name = "SIZE", value_parser = within(SIZE))]
    partition_size: Option<ByteSize>,

    /// Which rows are updated, deleted and read.
    #[arg(long, help_heading = "Writes", value_enum, default_value = "uniform")]
    distribution: DistributionName,

    /// With zipf: the k-th most popular row is drawn in proportion to 1/k^N. Default: 0.99.
    #[arg(long, help_heading = "Writes", value_name = "N", value_parser = within(EXPONENT))]
    zipf_exponent: Option<f64>,

    /// Part of the writes that overwrite an existing row, 0 to 1. Others insert rows.
    #[arg(long, help_heading = "Writes", value_name = "PART", default_value = "0",
        value_parser = within(PART))]
    updates: f64,

    /// Part of the writes that delete an existing row, 0 to 1.
    #[arg(long, help_heading = "Writes", value_name = "PART", default_value = "0",
        value_parser = within(PART))]
    deletes: f64,

    /// Number of rows that updates and deletes may find from the start, although none is stored yet.
    #[arg(long, help_heading = "Writes", value_name = "N", value_parser = within(ROWS))]
    rows: Option<u64>,

    /// Time to live of all rows. Default: none.
    #[arg(long, help_heading = "Table", value_name = "SPAN", value_parser = within(TTL))]
    ttl: Option<Seconds>,

    /// gc_grace_seconds of the table.
    #[arg(long, help_heading = "Table", value_name = "N", default_value = "864000",
        value_parser = within(GC_GRACE_SECONDS))]
    gc_grace_seconds: u32,

    /// Stored bytes of a flushed SSTable.
    #[arg(long, help_heading = "Table", value_name = "SIZE", default_value = "128MiB",
        value_parser = within(FLUSH))]
    flush_size: ByteSize,

    /// Stored bytes per byte of --ingest: below 1 by compression, above by what the format adds to small cells.
    #[arg(long, help_heading = "Table", value_name = "RATIO", default_value = "1",
        value_parser = within(RATIO))]
    compression_ratio: f64,

    /// bloom_filter_fp_chance of the table. Default: 0.1 for leveled and level-count, otherwise 0.01.
    #[arg(long, help_heading = "Table", value_name = "PART", value_parser = within(PART))]
    bloom_filter_fp_chance: Option<f64>,

    /// Stored bytes that all compactions together read per second, or none for no limit.
    #[arg(long, help_heading = "Node", value_name = "RATE|none", default_value = "64MiB/s",
        value_parser = throughput)]
    compaction_throughput: OrNone<ByteRate>,

    /// Compactions that run at once.
    #[arg(long, help_heading = "Node", value_name = "N", default_value = "2",
        value_parser = within(COMPACTORS))]
    concurrent_compactors: usize,

    /// Time to simulate.
    #[arg(long, value_name = "SPAN", default_value = "30d", value_parser = within(DURATION))]
    duration: Seconds,

    /// Random seed.
    #[arg(long, value_name = "N", default_value = "1",
        value_parser = within(0..=u64::MAX))]
    seed: u64,
}

fn throughput(text: &str) -> Result<OrNone<ByteRate>, String> {
    match text {
        // 0 is no limit in cassandra.yaml.
        "0" => Ok(OrNone(None)),
        _ => or_none(within(RATE))(text),
    }
}

impl TableFlags {
    /// Input of a simulation with a strategy.
    ///
    /// # Errors
    /// Options that contradict each other.
    pub(super) fn setup(&self, strategy: CompactionParams) -> Result<Setup, Error> {
        let row_bytes = self.row_size.0 as f64;
        let mut setup = Setup::new(strategy);
        setup.workload = Workload {
            ingest_bytes_per_s: self.ingest.0 as f64,
            row_bytes,
            partition_bytes: self.partition_size.map_or(row_bytes, |size| size.0 as f64),
            compression_ratio: self.compression_ratio,
            distribution: self.distribution()?,
            updates: self.updates,
            deletes: self.deletes,
            rows: self.rows.map_or(0.0, |rows| rows as f64),
            ttl_s: self.ttl.map(|ttl| ttl.0),
            gc_grace_s: self.gc_grace_seconds.into(),
            flush_bytes: self.flush_size.0 as f64,
            ..setup.workload
        };
        setup.throughput_bytes_per_s = self.compaction_throughput.0.map(|rate| rate.0 as f64);
        setup.concurrent_compactors = self.concurrent_compactors;
        setup.bloom_filter_fp_chance = self.bloom_filter_fp_chance;
        setup.duration_s = self.duration.0;
        setup.seed = self.seed;
        Ok(setup)
    }

    fn distribution(&self) -> Result<Distribution, Error> {
        match (self.distribution, self.zipf_exponent) {
            (DistributionName::Zipf, exponent) => Ok(Distribution::Zipf {
                exponent: exponent.unwrap_or(0.99),
            }),
            (_, Some(_)) => Err(Error::invalid("--zipf-exponent needs --distribution zipf")),
            (DistributionName::Uniform, None) => Ok(Distribution::Uniform),
            (DistributionName::TimeOrdered, None) => Ok(Distribution::TimeOrdered),
        }
    }

    /// The workload without the option that is varied, for a report.
    pub(super) fn facts(&self, varied: Option<&str>) -> Facts {
        let throughput = self.compaction_throughput.0;
        let throughput = throughput.map_or("without limit".to_owned(), |rate| format!("of {rate}"));
        let ttl = self.ttl.map(|ttl| format!("time to live {ttl}"));
        let compactors = self.concurrent_compactors;
        let writes = [
            ("ingest", self.ingest.to_string()),
            ("row-size", format!("rows of {}", self.row_size)),
            ("updates", format!("{} of updates", percent(self.updates))),
            ("deletes", format!("{} of deletes", percent(self.deletes))),
            ("ttl", ttl.unwrap_or_default()),
        ];
        let node = [
            ("flush-size", format!("flushes of {}", self.flush_size)),
            ("compaction-throughput", format!("compaction {throughput}")),
            (
                "concurrent-compactors",
                format!("{compactors} compactions at once"),
            ),
        ];
        let joined = |facts: &[(&str, String)]| {
            let set = facts.iter().filter(|(name, _)| varied != Some(name));
            let texts = set.map(|(_, text)| text.as_str());
            let texts: Vec<&str> = texts.filter(|text| !text.is_empty()).collect();
            texts.join(", ")
        };
        let time = [("duration", self.duration.to_string())];
        let facts = [
            ("writes", joined(&writes)),
            ("node", joined(&node)),
            ("time", joined(&time)),
        ];
        let set = facts.into_iter().filter(|(_, text)| !text.is_empty());
        set.map(|(name, text)| (name.to_owned(), text)).collect()
    }
}

fn percent(part: f64) -> String {
    format!("{:.0}%", 100.0 * part)
}
