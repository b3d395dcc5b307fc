//! SSTable size and fan-out that put all data into a number of levels.

use super::sizes::LevelSizes;

/// Growth or shrinkage of the data up to which sizes are kept: within it, they change at most once.
const RESIZE_RATIO: f64 = 2.0;

/// Smallest fan-out. With less, a level would hardly be larger than the one below.
const MIN_FANOUT: f64 = 2.0;

/// Number of levels, and bounds of the SSTable size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sizing {
    /// Number of levels above L0.
    pub levels: usize,
    /// Fan-out that the SSTable size aims at.
    pub fanout: f64,
    /// Smallest SSTable, MiB.
    pub min_mib: u32,
    /// Largest SSTable, MiB.
    pub max_mib: u32,
}

impl Default for Sizing {
    /// Four levels with the fan-out that causes the fewest writes among whole numbers.
    fn default() -> Sizing {
        Sizing {
            levels: 4,
            fanout: 4.0,
            min_mib: 16,
            max_mib: 2048,
        }
    }
}

impl Sizing {
    /// Sizes for this number of bytes: an SSTable is a power of two of MiB within the bounds, as close as
    /// possible to what the fan-out asks for. The fan-out follows from it, so that the highest level holds all
    /// data.
    pub fn sizes(&self, data_bytes: u64) -> LevelSizes {
        let data_mib = data_bytes as f64 / (1u64 << 20) as f64;
        let ideal_mib = data_mib / self.fanout.powi(self.levels as i32);
        let power = ideal_mib.max(1.0).log2().round() as u32;
        let mib = 1u64 << power.min(31);
        let mib = mib.clamp(
            u64::from(self.min_mib),
            u64::from(self.max_mib.max(self.min_mib)),
        );
        let fanout = (data_mib / mib as f64).powf(1.0 / self.levels as f64);
        LevelSizes::new(mib << 20, fanout.max(MIN_FANOUT)).up_to(self.levels)
    }

    /// Whether sizes for `sized_for` bytes no longer suit `data_bytes`.
    pub(super) fn is_outgrown(sized_for: u64, data_bytes: u64) -> bool {
        let (old, new) = (sized_for.max(1) as f64, data_bytes.max(1) as f64);
        new > old * RESIZE_RATIO || new * RESIZE_RATIO < old
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn the_highest_level_holds_all_data() {
        for data_gib in [10, 169, 1024, 5000] {
            for levels in 1..=7 {
                let sizing = Sizing {
                    levels,
                    ..Sizing::default()
                };
                let sizes = sizing.sizes(data_gib * GIB);
                let top = sizes.max_bytes(levels);
                assert!(top + 2 >= data_gib * GIB, "{data_gib}, {levels}: {sizes:?}");
                assert_eq!(sizes.top(), levels);
            }
        }
    }

    #[test]
    fn sizes_are_near_the_fanout_within_bounds() {
        // 1 TiB / 4^4 = 4 GiB, more than the maximum: the fan-out is larger.
        let sizes = Sizing::default().sizes(1024 * GIB);
        assert_eq!(sizes.sstable_bytes(), 2 * GIB);
        assert!((sizes.fanout() - 512f64.powf(0.25)).abs() < 1e-9);
        // 100 GiB / 4^4 = 400 MiB.
        let sizes = Sizing::default().sizes(100 * GIB);
        assert_eq!(sizes.sstable_bytes(), 512 << 20);
        assert!((sizes.fanout() - 200f64.powf(0.25)).abs() < 1e-9);
        // Little data is in SSTables of the minimum, and few levels are used.
        let sizes = Sizing::default().sizes(100 << 20);
        assert_eq!((sizes.sstable_bytes(), sizes.fanout()), (16 << 20, 2.0));
    }

    #[test]
    fn twice_as_much_is_still_suited() {
        assert!(!Sizing::is_outgrown(GIB, 2 * GIB) && Sizing::is_outgrown(GIB, 2 * GIB + 1));
        assert!(!Sizing::is_outgrown(GIB, GIB / 2) && Sizing::is_outgrown(GIB, GIB / 2 - 1));
    }
}
