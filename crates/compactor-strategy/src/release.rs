//! Releases of Cassandra whose strategies differ.

/// A release of Cassandra.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Release {
    /// 5.0.
    V5_0,
    /// 6.0.
    #[default]
    V6_0,
}

impl Release {
    /// Default of `single_sstable_uplevel` (`LeveledCompactionStrategy`).
    pub(crate) fn single_sstable_uplevel(self) -> bool {
        self >= Release::V6_0
    }

    /// Whether the limits of levels are validated with the options (`LeveledCompactionStrategy.validateOptions`).
    pub(crate) fn validates_level_bytes(self) -> bool {
        self >= Release::V6_0
    }

    /// Whether `parallelize_output_shards` exists (`unified.Controller`).
    pub(crate) fn has_parallel_shards(self) -> bool {
        self >= Release::V6_0
    }
}
