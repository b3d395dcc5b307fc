//! A table's columns, from which both the serialization header and the CQL follow.

use std::fmt::Write;
use std::sync::Arc;

use compactor_sstable::statistics::EncodingStats;
use compactor_sstable::statistics::HeaderType;
use compactor_sstable::statistics::header::{HeaderColumn, SerializationHeader};
use compactor_sstable::types::CqlType;
use compactor_sstable::types::identifier::maybe_quote;

use super::{BLOOM_FILTER_FP_CHANCE, GenerateOptions, Shape};

/// Name and type of a column.
pub(super) type Column = (&'static str, CqlType);

/// A table. Columns of one kind ascend by name, as in headers.
#[derive(Clone, Debug)]
pub(super) struct TableColumns {
    pub(super) partition_key: Vec<Column>,
    /// `ReversedType` for descending ones.
    pub(super) clustering: Vec<Column>,
    pub(super) static_columns: Vec<Column>,
    pub(super) regular_columns: Vec<Column>,
}

impl TableColumns {
    pub(super) fn header(&self, encoding_stats: EncodingStats) -> SerializationHeader {
        let key_types: Arc<[CqlType]> = self.partition_key.iter().map(|(_, t)| t.clone()).collect();
        let key_type = match &*key_types {
            [only] => only.clone(),
            _ => CqlType::Composite(key_types),
        };
        let columns = |columns: &[Column]| {
            columns
                .iter()
                .map(|(name, cql_type)| HeaderColumn {
                    name: name.as_bytes().to_vec(),
                    column_type: HeaderType::new(cql_type.clone()),
                })
                .collect()
        };
        SerializationHeader {
            encoding_stats,
            key_type: HeaderType::new(key_type),
            clustering_types: self
                .clustering
                .iter()
                .map(|(_, t)| HeaderType::new(t.clone()))
                .collect(),
            static_columns: columns(&self.static_columns),
            regular_columns: columns(&self.regular_columns),
        }
    }

    /// `schema.cql` as a snapshot has it, with options that every release since 4.0 knows.
    pub(super) fn to_cql(&self, options: &GenerateOptions) -> String {
        let mut cql = format!(
            "CREATE TABLE IF NOT EXISTS {}.{} (\n",
            maybe_quote(&options.keyspace),
            maybe_quote(&options.table)
        );
        let kinds = [
            (&self.partition_key, ""),
            (&self.clustering, ""),
            (&self.static_columns, " static"),
            (&self.regular_columns, ""),
        ];
        for (columns, suffix) in kinds {
            for (name, cql_type) in columns {
                let cql_type = match cql_type {
                    CqlType::Reversed(inner) => inner.cql_name(),
                    other => other.cql_name(),
                };
                cql.push_str(&format!("    {name} {cql_type}{suffix},\n"));
            }
        }
        let names = |columns: &[Column]| -> String {
            columns
                .iter()
                .map(|(name, _)| *name)
                .collect::<Vec<_>>()
                .join(", ")
        };
        let mut key = match self.partition_key.len() {
            1 => names(&self.partition_key),
            _ => format!("({})", names(&self.partition_key)),
        };
        if !self.clustering.is_empty() {
            key = format!("{key}, {}", names(&self.clustering));
        }
        let id = format!("{:032x}", options.table_id());
        let id = [&id[..8], &id[8..12], &id[12..16], &id[16..20], &id[20..]].join("-");
        let _ = write!(cql, "    PRIMARY KEY ({key})\n) WITH ID = {id}\n");
        if !self.clustering.is_empty() {
            let order: Vec<String> = self
                .clustering
                .iter()
                .map(|(name, cql_type)| match cql_type {
                    CqlType::Reversed(_) => format!("{name} DESC"),
                    _ => format!("{name} ASC"),
                })
                .collect();
            let _ = writeln!(cql, "    AND CLUSTERING ORDER BY ({})", order.join(", "));
        }
        let compression = match &options.compression {
            None => "{'enabled': 'false'}".to_owned(),
            Some(params) => format!(
                "{{'chunk_length_in_kb': '{}', 'class': \
                 'org.apache.cassandra.io.compress.{}'}}",
                params.chunk_len >> 10,
                params.compressor
            ),
        };
        let default_time_to_live = match options.shape {
            Shape::TimeSeries => options.ttl_s,
            _ => 0,
        };
        let _ = write!(
            cql,
            "    AND bloom_filter_fp_chance = {BLOOM_FILTER_FP_CHANCE:?}
    AND caching = {{'keys': 'ALL', 'rows_per_partition': 'NONE'}}
    AND comment = ''
    AND compaction = {{'class': 'org.apache.cassandra.db.compaction.SizeTieredCompactionStrategy', \
             'max_threshold': '32', 'min_threshold': '4'}}
    AND compression = {compression}
    AND crc_check_chance = 1.0
    AND default_time_to_live = {default_time_to_live}
    AND gc_grace_seconds = {}
    AND max_index_interval = 2048
    AND memtable_flush_period_in_ms = 0
    AND min_index_interval = 128
    AND speculative_retry = '99p';
",
            options.gc_grace_seconds,
        );
        cql
    }
}
