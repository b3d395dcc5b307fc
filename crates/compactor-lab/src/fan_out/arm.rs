//! Strategies that are compared, and what CASSANDRA-7871 published of them.

use compactor::{Error, Result};
use compactor_strategy::CompactionParams;
use compactor_strategy::options::Options;
use compactor_strategy::release::Release;
use serde::{Deserialize, Serialize};
use strum::VariantArray;

use super::options::FanOutOptions;

/// Number of times that the SSTables of [`FanOutArm::M4Large`] are larger: 1024 MB to 160 MB in the issue.
const LARGER: f64 = 6.4;

/// A strategy with its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, VariantArray)]
#[serde(rename_all = "snake_case")]
pub enum FanOutArm {
    /// Leveled compaction with a fan-out of 10, Cassandra's default.
    M10,
    /// With a fan-out of 4.
    M4,
    /// With a fan-out of 4 and SSTables 6.4 times as large.
    M4Large,
    /// Level count compaction, for which the issue asks: of four levels, with sizes that follow the data.
    LevelCount,
}

/// Figures of the issue for 1 MB/s of inserts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Published {
    /// MB written per second.
    pub write_mb_per_s: f64,
    /// Levels, L0 included.
    pub levels: f64,
}

impl FanOutArm {
    /// All, in the order of tables.
    pub const ALL: &[FanOutArm] = FanOutArm::VARIANTS;

    /// Name in tables.
    pub fn name(self, options: &FanOutOptions) -> String {
        let mib = self.sstable_mib(options);
        match self {
            FanOutArm::M10 => format!("m=10, {mib} MiB"),
            FanOutArm::M4 | FanOutArm::M4Large => format!("m=4, {mib} MiB"),
            FanOutArm::LevelCount => "level count".to_owned(),
        }
    }

    /// Size of an SSTable; of level count compaction the smallest.
    pub fn sstable_mib(self, options: &FanOutOptions) -> u32 {
        match self {
            FanOutArm::M4Large => (f64::from(options.sstable_mib) * LARGER).round() as u32,
            _ => options.sstable_mib,
        }
    }

    /// Figures of the issue; it has none of level count compaction.
    pub fn published(self) -> Option<Published> {
        let (write_mb_per_s, levels) = match self {
            FanOutArm::M10 => (32.0, 4.1),
            FanOutArm::M4 => (28.0, 6.1),
            FanOutArm::M4Large => (20.4, 4.8),
            FanOutArm::LevelCount => return None,
        };
        Some(Published {
            write_mb_per_s,
            levels,
        })
    }

    /// The strategy, with the rules of Cassandra 5.0.
    ///
    /// # Errors
    /// Options that Cassandra refuses.
    pub(super) fn strategy(self, options: &FanOutOptions) -> Result<CompactionParams> {
        let mib = self.sstable_mib(options).to_string();
        let (class, named) = match self {
            FanOutArm::M10 => (LEVELED, [("fanout_size", "10"), (SIZE, &mib)]),
            FanOutArm::M4 | FanOutArm::M4Large => (LEVELED, [("fanout_size", "4"), (SIZE, &mib)]),
            FanOutArm::LevelCount => (
                "LevelCountCompactionStrategy",
                [("level_count", "4"), ("min_sstable_size_in_mb", &mib)],
            ),
        };
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let named: Options = named.into_iter().map(owned).collect();
        CompactionParams::from_options(class, &named, Release::V5_0)
            .map_err(|error| Error::invalid(error.to_string()))
    }
}

const LEVELED: &str = "LeveledCompactionStrategy";
const SIZE: &str = "sstable_size_in_mb";
