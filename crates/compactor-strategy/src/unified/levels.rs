//! Levels of density.
//!
//! Source: `UnifiedCompactionStrategy.formLevels`, `unified.Controller.getBaseSstableSize`,
//! `getMaxLevelDensity`.

use super::scaling::Scaling;

/// Smallest size of a flushed SSTable, bytes.
const MIN_FLUSH_BYTES: u64 = 1 << 20;

/// Upper bounds of levels, computed when needed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct LevelBounds {
    max: Vec<f64>,
}

impl LevelBounds {
    /// Bounds for a size of flushed SSTables.
    pub(super) fn new(scaling: &Scaling, flush_bytes: u64) -> LevelBounds {
        let fanout = scaling.fanout(0) as f64;
        // A flush that is a little smaller than usual is not to be compacted once more.
        let base = flush_bytes.max(MIN_FLUSH_BYTES) as f64 * (1.0 - 0.9 / fanout);
        LevelBounds {
            max: vec![(base * fanout).floor()],
        }
    }

    /// Level of a density.
    pub(super) fn level_of(&mut self, density: f64, scaling: &Scaling) -> usize {
        let mut level = self.max.partition_point(|max| *max <= density);
        while level == self.max.len() {
            let last = self.max.last().copied().unwrap_or(1.0);
            let max = (last * scaling.fanout(level) as f64).floor();
            self.max.push(max);
            level += usize::from(max <= density);
        }
        level
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: f64 = (1u64 << 20) as f64;

    #[test]
    fn bounds_of_the_default() {
        let scaling = Scaling::default();
        let mut bounds = LevelBounds::new(&scaling, 0);
        let mut level = |mib: f64| bounds.level_of(mib * MIB, &scaling);
        assert_eq!(
            [0.1, 3.09, 3.1, 12.39, 12.4, 49.6, 198.4].map(&mut level),
            [0, 0, 1, 1, 2, 3, 4]
        );
        assert_eq!(level(0.0), 0);
    }

    /// `UnifiedCompactionStrategyTest.testGetBuckets…`, with a base of 2 MiB as the tests have it.
    #[test]
    fn bounds_follow_scaling_parameters() {
        let scaling = Scaling::parse("5, 4, 2, N").expect("parameters");
        let mut bounds = LevelBounds::new(&scaling, 200 << 20);
        // 200 × (1 - 0.9 / 7) × 7 MiB.
        assert_eq!(bounds.level_of(1219.0 * MIB, &scaling), 0);
        assert_eq!(bounds.level_of(1221.0 * MIB, &scaling), 1);
        assert_eq!(bounds.level_of(1221.0 * 6.0 * MIB, &scaling), 2);
        assert_eq!(bounds.level_of(1221.0 * 24.0 * MIB, &scaling), 3);
        assert_eq!(bounds.level_of(1221.0 * 48.0 * MIB, &scaling), 4);
    }
}
