//! Estimate of the tombstones that a compaction could drop.
//!
//! Source: `StatsMetadata.getEstimatedDroppableTombstoneRatio`, `StreamingTombstoneHistogramBuilder.DataHolder`.

use std::sync::Arc;

/// Histogram of local deletion times of an SSTable's tombstones and expiring cells, and its number of cells.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DroppableTombstones {
    /// Local deletion times, ascending, with the number of tombstones at each.
    points: Arc<[(i64, u32)]>,
    cells: i64,
    total: u64,
}

impl DroppableTombstones {
    /// From the points of the histogram, ascending, and the estimated number of cells of the SSTable.
    pub fn new(points: &[(i64, u32)], cells: i64) -> DroppableTombstones {
        DroppableTombstones {
            points: points.into(),
            cells,
            total: points.iter().map(|(_, count)| u64::from(*count)).sum(),
        }
    }

    /// Points of the histogram, ascending.
    pub fn points(&self) -> &[(i64, u32)] {
        &self.points
    }

    /// Estimated number of cells of the SSTable.
    pub fn cells(&self) -> i64 {
        self.cells
    }

    /// Upper bound of the ratio at any time.
    pub(crate) fn greatest_ratio(&self) -> f64 {
        match self.cells {
            ..=0 => 0.0,
            // Between two points the sum exceeds the exact one by at most half of the larger count.
            cells => 1.5 * self.total as f64 / cells as f64,
        }
    }

    /// Time up to which the ratio is at most `threshold`; `None` if it always is.
    pub(crate) fn exceeds_after_s(&self, threshold: f64) -> Option<i64> {
        if self.cells <= 0 {
            return None;
        }
        let mut sum = 0.0;
        let mut before_s = i64::MIN;
        for &(point, count) in self.points.iter() {
            sum += f64::from(count);
            // Up to the point before, at most the tombstones of this one are added to those before it.
            if sum / self.cells as f64 > threshold {
                return Some(before_s);
            }
            before_s = point;
        }
        None
    }

    /// Estimated ratio of tombstones with a deletion time up to `gc_before_s` to cells.
    pub fn ratio(&self, gc_before_s: i64) -> f64 {
        match self.cells {
            ..=0 => 0.0,
            cells => self.sum(gc_before_s) / cells as f64,
        }
    }

    /// Number of tombstones up to a time, interpolated between points.
    fn sum(&self, time_s: i64) -> f64 {
        // Cassandra narrows the time to an int on the way.
        let time_s = i64::from(saturated(time_s));
        let mut sum = 0.0;
        let mut before: Option<(i64, f64)> = None;
        for &(point, count) in self.points.iter() {
            let count = f64::from(count);
            if point > time_s {
                let Some((before_point, before_count)) = before else {
                    return 0.0;
                };
                let weight = (time_s - before_point) as f64 / (point - before_point) as f64;
                let here = before_count + (count - before_count) * weight;
                return sum - before_count
                    + (before_count + here) * weight / 2.0
                    + before_count / 2.0;
            }
            sum += count;
            before = Some((point, count));
        }
        sum
    }
}

/// Java's conversion of a `double` to an `int`.
fn saturated(value: i64) -> i32 {
    i32::try_from(value).unwrap_or(if value < 0 { i32::MIN } else { i32::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_as_a_trapezoid_between_points() {
        let tombstones = DroppableTombstones::new(&[(10, 4), (20, 8)], 24);
        assert_eq!(tombstones.ratio(9), 0.0);
        // At a point half of its tombstones are before it: 4 - 4 + 0 + 2.
        assert_eq!(tombstones.ratio(10), 2.0 / 24.0);
        // Halfway: (4 + 6) × 0.5 / 2 + 2.
        assert_eq!(tombstones.ratio(15), 4.5 / 24.0);
        assert_eq!(tombstones.ratio(20), 12.0 / 24.0);
        assert!(tombstones.ratio(19) < tombstones.greatest_ratio());
        let after = |threshold| tombstones.exceeds_after_s(threshold);
        assert_eq!([0.1, 0.2, 0.6].map(after), [Some(i64::MIN), Some(10), None]);
        assert_eq!(DroppableTombstones::default().ratio(100), 0.0);
    }
}
