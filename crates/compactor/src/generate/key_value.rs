//! Shape `kv`: one row per partition, no clustering, one blob.

use compactor_engine::write::PartitionSink;
use compactor_sstable::data::cell::{Liveness, NO_TTL};
use compactor_sstable::data::deletion_time::NO_DELETION_TIME;
use compactor_sstable::statistics::EncodingStats;
use compactor_sstable::types::CqlType;

use super::output::{Output, RowBuffer};
use super::random::Random;
use super::table::TableColumns;
use super::values::Values;
use super::{GenerateOptions, SECOND_US, sstable_timestamp};
use crate::Result;

pub(super) fn columns() -> TableColumns {
    TableColumns {
        partition_key: vec![("id", CqlType::Long)],
        clustering: Vec::new(),
        static_columns: Vec::new(),
        regular_columns: vec![("value", CqlType::Bytes)],
    }
}

#[derive(Debug)]
pub(super) struct KeyValue<'o> {
    options: &'o GenerateOptions,
    values: Values,
    first_timestamp: i64,
    row: RowBuffer,
}

impl KeyValue<'_> {
    pub(super) fn new(options: &GenerateOptions, sstable: u32) -> KeyValue<'_> {
        KeyValue {
            options,
            values: Values::new(options.compressibility),
            first_timestamp: sstable_timestamp(options, sstable),
            row: RowBuffer::default(),
        }
    }

    pub(super) fn encoding_stats(&self) -> EncodingStats {
        EncodingStats::new(self.first_timestamp, NO_DELETION_TIME, NO_TTL)
    }

    pub(super) fn write_key(number: u64, key: &mut Vec<u8>) {
        key.extend_from_slice(&number.to_be_bytes());
    }

    pub(super) fn write_partition<O: PartitionSink>(
        &mut self,
        number: u64,
        key: &[u8],
        out: &mut Output<'_, O>,
    ) -> Result<()> {
        let mut random = Random::of(self.options.seed, &[self.first_timestamp as u64, number]);
        let timestamp = self.first_timestamp + random.below(3600 * SECOND_US as u64) as i64;
        self.row.begin();
        self.row
            .insert(Liveness::new(timestamp, NO_TTL, NO_DELETION_TIME));
        let len = self.options.value_len as usize;
        self.values
            .put_bytes(&mut random, len, &mut self.row.values);
        self.row.end_cell(0);
        out.start_partition(key);
        out.add_row(&self.row)?;
        out.end_partition()
    }
}
