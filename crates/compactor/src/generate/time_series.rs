//! Shape `timeseries`: partitions of a sensor and a span of time, newest row first, everything with a
//! TTL, part of it expired.

use std::sync::Arc;

use compactor_engine::write::PartitionSink;
use compactor_sstable::data::cell::Liveness;
use compactor_sstable::statistics::EncodingStats;
use compactor_sstable::types::CqlType;

use super::output::{Output, RowBuffer};
use super::random::Random;
use super::table::TableColumns;
use super::values::Values;
use super::{GenerateOptions, is_row_shared};
use crate::Result;

/// Columns, in header order.
const NOTE: u32 = 0;
const READING: u32 = 1;
/// Partitions that the rows of a sensor are divided into by time.
const BUCKETS: u64 = 16;

pub(super) fn columns() -> TableColumns {
    TableColumns {
        partition_key: vec![("sensor", CqlType::Int32), ("bucket", CqlType::Timestamp)],
        clustering: vec![("at", CqlType::Reversed(Arc::new(CqlType::Timestamp)))],
        static_columns: Vec::new(),
        regular_columns: vec![("note", CqlType::Utf8), ("reading", CqlType::Double)],
    }
}

/// Times of rows, milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Timeline {
    /// First moment of the first bucket.
    start_ms: i64,
    bucket_ms: i64,
    /// Between one place and the next; each row number has one place per SSTable.
    step_ms: i64,
}

impl Timeline {
    /// The rows of all buckets take as long as a TTL and end so long ago that the share asked for has
    /// expired. `None` if a bucket does not have as many milliseconds as rows.
    pub(super) fn new(options: &GenerateOptions) -> Option<Timeline> {
        let ttl_ms = i64::from(options.ttl_s) * 1000;
        let bucket_ms = ttl_ms / BUCKETS as i64;
        let places = i64::from(options.rows_per_partition) * i64::from(options.sstables);
        // What is to live does so for a second at least.
        let back_ms = (options.expired * (ttl_ms + 1000) as f64) as i64;
        let end_ms = options.now_s * 1000 + 1000 - back_ms;
        let step_ms = bucket_ms / places;
        (step_ms > 0).then_some(Timeline {
            start_ms: end_ms - ttl_ms,
            bucket_ms,
            step_ms,
        })
    }

    fn bucket_start_ms(&self, number: u64) -> i64 {
        self.start_ms + (number % BUCKETS) as i64 * self.bucket_ms
    }

    pub(super) fn write_key(&self, number: u64, key: &mut Vec<u8>) {
        // Each component of a composite: length, value, and a zero.
        key.extend_from_slice(&4u16.to_be_bytes());
        key.extend_from_slice(&((number / BUCKETS) as i32).to_be_bytes());
        key.push(0);
        key.extend_from_slice(&8u16.to_be_bytes());
        key.extend_from_slice(&self.bucket_start_ms(number).to_be_bytes());
        key.push(0);
    }
}

/// Partitions that sensors of 31 bits make up.
pub(super) const MAX_PARTITIONS: u64 = (i32::MAX as u64) * BUCKETS;

#[derive(Debug)]
pub(super) struct TimeSeries<'o> {
    options: &'o GenerateOptions,
    sstable: u32,
    values: Values,
    pub(super) timeline: Timeline,
    row: RowBuffer,
}

impl TimeSeries<'_> {
    pub(super) fn new(
        options: &GenerateOptions,
        sstable: u32,
        timeline: Timeline,
    ) -> TimeSeries<'_> {
        TimeSeries {
            options,
            sstable,
            values: Values::new(options.compressibility),
            timeline,
            row: RowBuffer::default(),
        }
    }

    pub(super) fn encoding_stats(&self) -> EncodingStats {
        let Liveness {
            timestamp,
            ttl,
            local_expiration_time,
        } = self.liveness(self.timeline.start_ms);
        EncodingStats::new(timestamp, local_expiration_time, ttl)
    }

    pub(super) fn write_partition<O: PartitionSink>(
        &mut self,
        number: u64,
        is_shared: bool,
        key: &[u8],
        out: &mut Output<'_, O>,
    ) -> Result<()> {
        let options = self.options;
        let mut random = Random::of(options.seed, &[u64::from(self.sstable), number]);
        let start_ms = self.timeline.bucket_start_ms(number);
        let mut reading = 15.0 + 10.0 * random.fraction();
        out.start_partition(key);
        for row in (0..options.rows_per_partition).rev() {
            let same_place = is_shared && is_row_shared(options, number, row);
            let place = row * options.sstables + if same_place { 0 } else { self.sstable };
            let at_ms = start_ms + i64::from(place) * self.timeline.step_ms;
            self.row.begin();
            self.row.insert(self.liveness(at_ms));
            // The header of the values: one, present.
            self.row.clustering.push(0);
            self.row.clustering.extend_from_slice(&at_ms.to_be_bytes());
            let len = options.value_len as usize;
            self.values.put_text(&mut random, len, &mut self.row.values);
            self.row.end_cell(NOTE);
            // A random walk, rounded to hundredths.
            reading += random.fraction() - 0.5;
            let rounded = f64::round(reading * 100.0) / 100.0;
            self.row.values.extend_from_slice(&rounded.to_be_bytes());
            self.row.end_cell(READING);
            out.add_row(&self.row)?;
        }
        out.end_partition()
    }

    /// Written when it was measured; a later SSTable's version of a row is a microsecond newer for
    /// each SSTable between them.
    fn liveness(&self, at_ms: i64) -> Liveness {
        let timestamp = at_ms * 1000 + i64::from(self.sstable);
        let ttl_s = self.options.ttl_s;
        let expires_s = at_ms.div_euclid(1000) + i64::from(ttl_s);
        Liveness::new(timestamp, ttl_s as i32, expires_s)
    }
}
