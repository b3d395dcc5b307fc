//! Closed formula of the writes that leveled compaction causes.
//!
//! Source: CASSANDRA-7871.

/// Sizes from which the formula computes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LeveledModel {
    /// Size of all data, bytes.
    pub data_bytes: f64,
    /// Size of an SSTable, bytes.
    pub sstable_bytes: f64,
    /// Number of times that a level is larger than the one below.
    pub fanout: f64,
    /// Size of a flushed SSTable, bytes.
    pub flush_bytes: f64,
}

impl LeveledModel {
    /// Number of levels above L0.
    pub fn levels(&self) -> f64 {
        (self.data_bytes / self.sstable_bytes).ln() / self.fanout.ln()
    }

    /// Number of times that flushed data is compacted by size, four SSTables at once, before it is as large
    /// as an SSTable of L1.
    pub fn size_tiers_of_l0(&self) -> f64 {
        (self.sstable_bytes / self.flush_bytes)
            .log(4.0)
            .floor()
            .max(0.0)
    }

    /// Bytes written per byte of inserts: once by the flush, and in each level once with the SSTables that
    /// it overlaps in the next one.
    pub fn writes_per_byte(&self) -> f64 {
        1.0 + (1.0 + self.fanout) * self.levels() + self.size_tiers_of_l0()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: f64 = (1u64 << 20) as f64;

    /// 1 MiB/s for two days.
    fn predicted(fanout: f64, sstable_mib: f64) -> (String, String) {
        let model = LeveledModel {
            data_bytes: 172_800.0 * MIB,
            sstable_bytes: sstable_mib * MIB,
            fanout,
            flush_bytes: 128.0 * MIB,
        };
        (
            format!("{:.1}", model.writes_per_byte()),
            format!("{:.1}", model.levels()),
        )
    }

    /// The table of the issue: MB/s written for 1 MB/s of inserts, and levels for 169 GB.
    #[test]
    fn predicts_the_table_of_the_issue() {
        let expected = |writes: &str, levels: &str| (writes.to_owned(), levels.to_owned());
        assert_eq!(predicted(10.0, 160.0), expected("34.4", "3.0"));
        assert_eq!(predicted(4.0, 160.0), expected("26.2", "5.0"));
        assert_eq!(predicted(4.0, 1024.0), expected("20.5", "3.7"));
    }
}
