//! Histogram of local deletion times, from which the number of droppable tombstones is estimated.
//!
//! ```text
//! i32 maxBins | i32 n | n * (f64 point, i64 count)     versions before unsigned deletion times
//! i32 maxBins | i32 n | n * (i64 point, i32 count)     later ones
//! ```
//!
//! Source: `TombstoneHistogram`, `StreamingTombstoneHistogramBuilder`.

use crate::byte_reader::ByteReader;
use crate::byte_sink::ByteSink;
use crate::data::deletion_time::MAX_DELETION_TIME;
use crate::error::Result;
use crate::version::Version;

mod builder;

pub use builder::{TimeRun, TombstoneHistogramBuilder};

/// Bytes per bin with which Cassandra computes the length of the component, in every version.
pub(super) const COUNTED_BIN_LEN: usize = 16;
/// Actual bytes per bin in versions with unsigned deletion times.
pub(super) const UNSIGNED_BIN_LEN: usize = 12;

/// Numbers of tombstones by local deletion time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TombstoneHistogram {
    /// Seconds since 1970, ascending and unique, with the number of tombstones.
    bins: Vec<(i64, i32)>,
}

impl TombstoneHistogram {
    /// Points and counts, ascending.
    pub fn bins(&self) -> &[(i64, i32)] {
        &self.bins
    }

    /// Estimated number of tombstones whose local deletion time is at most `time`, in seconds
    /// (`DataHolder.sum`).
    pub fn sum(&self, time: i64) -> f64 {
        let mut sum = 0.0;
        let mut previous: Option<(i64, i32)> = None;
        for &(point, count) in &self.bins {
            if point > time {
                let Some((previous_point, previous_count)) = previous else {
                    return 0.0;
                };
                let weight = (time - previous_point) as f64 / (point - previous_point) as f64;
                let previous_count = f64::from(previous_count);
                let at_time = previous_count + (f64::from(count) - previous_count) * weight;
                sum -= previous_count;
                sum += (previous_count + at_time) * weight / 2.0;
                sum += previous_count / 2.0;
                return sum;
            }
            sum += f64::from(count);
            previous = Some((point, count));
        }
        sum
    }

    pub(super) fn parse(
        reader: &mut ByteReader<'_>,
        version: Version,
    ) -> Result<TombstoneHistogram> {
        const NAME: &str = "stats.tombstone_histogram";
        let unsigned = version.has_uint_deletion_time();
        reader.i32(NAME)?;
        let count = reader.i32_count(
            if unsigned {
                UNSIGNED_BIN_LEN
            } else {
                COUNTED_BIN_LEN
            },
            NAME,
        )?;
        let max = version.max_deletion_time();
        let mut bins = Vec::with_capacity(count);
        for _ in 0..count {
            // Values out of range saturate: older releases wrote such points (CASSANDRA-14092).
            let (point, count) = if unsigned {
                (reader.i64(NAME)?, reader.i32(NAME)?)
            } else {
                let point = reader.f64(NAME)? as i64;
                (point, reader.i64(NAME)?.min(i64::from(i32::MAX)) as i32)
            };
            bins.push((
                if (0..=max).contains(&point) {
                    point
                } else {
                    max
                },
                count,
            ));
        }
        bins.sort_by_key(|bin| bin.0);
        bins.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 = kept.1.saturating_add(next.1);
            }
            same
        });
        Ok(TombstoneHistogram { bins })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>, version: Version) {
        out.put_i32(self.bins.len() as i32);
        out.put_i32(self.bins.len() as i32);
        for &(point, count) in &self.bins {
            if version.has_uint_deletion_time() {
                out.put_i64(point);
                out.put_i32(count);
            } else {
                out.put_f64(point as f64);
                out.put_i64(i64::from(count));
            }
        }
    }
}

/// A point out of the range of local deletion times becomes the maximum.
fn saturate(point: i64) -> i64 {
    if (0..=MAX_DELETION_TIME).contains(&point) {
        point
    } else {
        MAX_DELETION_TIME
    }
}

#[cfg(test)]
mod tests;
