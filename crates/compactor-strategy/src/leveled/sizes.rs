//! Size of SSTables and limits of levels.
//!
//! Source: `LeveledManifest.maxBytesForLevel`, `LeveledGenerations.MAX_LEVEL_COUNT`.

/// The highest level.
pub const TOP_LEVEL: usize = 8;
/// Number of levels, L0 included.
pub(super) const LEVELS: usize = TOP_LEVEL + 1;

/// Excess of a level over its limit up to which it is left alone.
const TOLERANCE: f64 = 1.001;

/// SSTable size and fan-out, from which the limits of levels follow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LevelSizes {
    sstable_bytes: u64,
    fanout: f64,
    top: usize,
}

impl LevelSizes {
    /// Levels up to L8, each larger than the one below by the factor `fanout`.
    pub fn new(sstable_bytes: u64, fanout: f64) -> LevelSizes {
        LevelSizes {
            sstable_bytes: sstable_bytes.max(1),
            fanout,
            top: TOP_LEVEL,
        }
    }

    /// Limits the number of levels; the last has no size limit.
    pub(crate) fn up_to(self, top: usize) -> LevelSizes {
        LevelSizes {
            top: top.clamp(1, TOP_LEVEL),
            ..self
        }
    }

    /// Stored bytes after which an output ends.
    pub fn sstable_bytes(&self) -> u64 {
        self.sstable_bytes
    }

    /// Number of times that a level is larger than the one below.
    pub fn fanout(&self) -> f64 {
        self.fanout
    }

    /// Highest level, whose SSTables do not move up.
    pub fn top(&self) -> usize {
        self.top
    }

    /// Limit of a level, bytes; the greatest `long` if it is larger.
    pub fn max_bytes(&self, level: usize) -> u64 {
        if level == 0 {
            return 4 * self.sstable_bytes;
        }
        let bytes = self.fanout.powi(level as i32) * self.sstable_bytes as f64;
        (bytes as i64).unsigned_abs()
    }

    /// Whether a level with this number of bytes is to be compacted.
    pub(super) fn is_over(&self, level: usize, bytes: u64) -> bool {
        bytes as f64 / self.max_bytes(level) as f64 > TOLERANCE
    }

    /// Estimated number of compactions of a level with this number of bytes.
    pub(super) fn estimated_tasks(&self, level: usize, bytes: u64) -> usize {
        let tolerated = (self.max_bytes(level) as f64 * TOLERANCE) as u64;
        let excess = bytes.saturating_sub(tolerated);
        (excess as f64 / self.sstable_bytes as f64).ceil() as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_grow_by_the_fanout() {
        let sizes = LevelSizes::new(160 << 20, 10.0);
        assert_eq!(sizes.max_bytes(0), 640 << 20);
        assert_eq!(sizes.max_bytes(1), 1600 << 20);
        assert_eq!(sizes.max_bytes(8), 16_777_216_000_000_000);
        assert_eq!(LevelSizes::new(1 << 62, 10.0).max_bytes(8), i64::MAX as u64);
    }

    #[test]
    fn a_thousandth_is_tolerated() {
        let sizes = LevelSizes::new(1000, 10.0);
        assert!(!sizes.is_over(1, 10_010) && sizes.is_over(1, 10_011));
        // As a double the product is a little less than 10,010.
        assert_eq!(sizes.estimated_tasks(1, 10_009), 0);
        assert_eq!(sizes.estimated_tasks(1, 10_010), 1);
        assert_eq!(sizes.estimated_tasks(1, 11_010), 2);
    }
}
