//! Sorted rows as an SSTable.

use compactor_engine::input::check_writable;
use compactor_engine::job::OutputCompression;
use compactor_engine::publish::next_id;
use compactor_engine::write::{SstableSettings, StagedSstable, default_column_index_size};
use compactor_io::WriteMode;
use compactor_sstable::compression::codec::Codec;
use compactor_sstable::compression::info::CompressionParams;
use compactor_sstable::data::deletion_time::{DeletionTime, MAX_DELETION_TIME};
use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::schema::Table as TableSchema;
use compactor_sstable::sstable_id::SstableId;
use compactor_sstable::statistics::CollectorSettings;
use compactor_sstable::{Format, Version};

use super::buffer::RowBuffer;
use super::columns::Columns;
use crate::MergeRequest;
use crate::partition_output::PartitionOutput;
use crate::table::{DEFAULT_CHUNK_LENGTH, OutputForm, OutputLayout, Resources, Table};
use crate::{Error, Result};

/// Cassandra's default, and that of tables with the leveled strategy.
const BLOOM_FILTER_FP_CHANCE: f64 = 0.01;
const BLOOM_FILTER_FP_CHANCE_LEVELED: f64 = 0.1;

/// Settings that all outputs have in common.
#[derive(Debug)]
pub(super) struct OutputSettings {
    descriptor: Descriptor,
    compression: Option<CompressionParams>,
    bloom_filter_fp_chance: f64,
    min_index_interval: u32,
    pub(super) write_mode: WriteMode,
    pub(super) threads: usize,
    is_first: bool,
}

impl OutputSettings {
    /// # Errors
    /// Settings that contradict one another, a version that is not written, or a directory that cannot be listed.
    pub(super) fn new(
        schema: &TableSchema,
        form: &OutputForm,
        resources: &Resources,
        layout: &OutputLayout,
    ) -> Result<OutputSettings> {
        let table = Table::of_schema(schema.clone());
        let mut request = MergeRequest::new(Vec::new(), layout.directory());
        form.apply(&table, &mut request)?;
        let version = match (form.version, form.format) {
            (Some(version), _) => version,
            (None, Some(Format::Bti)) => Version::Da,
            // Every node imports it since 4.0, 5.0 with its default compatibility mode no other.
            (None, _) => Version::Nb,
        };
        check_writable(version)?;
        let is_leveled = schema
            .compaction_option("class")
            .is_some_and(|class| class.ends_with("LeveledCompactionStrategy"));
        let default_fp_chance = if is_leveled {
            BLOOM_FILTER_FP_CHANCE_LEVELED
        } else {
            BLOOM_FILTER_FP_CHANCE
        };
        Ok(OutputSettings {
            descriptor: Descriptor::new(
                layout.directory(),
                version,
                next_id(layout.directory(), &[], &[])?,
            ),
            compression: match request.compression {
                OutputCompression::Params(params) => Some(params.for_version(version)),
                OutputCompression::None => None,
                OutputCompression::AsNewestInput => {
                    Some(CompressionParams::new(Codec::Lz4, DEFAULT_CHUNK_LENGTH))
                }
                OutputCompression::AsNewestInputInChunks(chunk_len) => {
                    Some(CompressionParams::new(Codec::Lz4, chunk_len))
                }
            },
            bloom_filter_fp_chance: request.bloom_filter_fp_chance.unwrap_or(default_fp_chance),
            min_index_interval: request.min_index_interval,
            write_mode: resources.write_mode,
            threads: resources.threads(),
            is_first: true,
        })
    }

    pub(super) fn version(&self) -> Version {
        self.descriptor.version
    }

    /// Greatest local deletion or expiration time that the version stores, seconds since 1970
    /// (`Cell.getVersionedMaxDeletiontionTime`).
    pub(super) fn max_local_time_s(&self) -> i64 {
        if self.descriptor.version.has_uint_deletion_time() {
            MAX_DELETION_TIME
        } else {
            i64::from(i32::MAX) - 1
        }
    }

    /// Returns the settings of the next output, for the buffered rows.
    ///
    /// # Errors
    /// No id is left.
    pub(super) fn next(
        &mut self,
        columns: &Columns,
        buffer: &RowBuffer,
    ) -> Result<SstableSettings> {
        if !std::mem::take(&mut self.is_first) {
            let next = SstableId::next_sequence([self.descriptor.id]);
            self.descriptor.id = next.ok_or_else(|| Error::invalid("no SSTable id is left"))?;
        }
        Ok(SstableSettings {
            descriptor: self.descriptor.clone(),
            header: columns.header(buffer.encoding_stats()),
            compression: self.compression.clone(),
            bloom_filter_fp_chance: self.bloom_filter_fp_chance,
            expected_keys: buffer.partitions(),
            min_index_interval: self.min_index_interval,
            column_index_size: default_column_index_size(self.descriptor.version.format()),
            collector: CollectorSettings::default(),
        })
    }
}

/// Writes the buffered rows as one SSTable. Nothing is published yet.
///
/// # Errors
/// A failed write.
pub(super) fn write(
    new: PartitionOutput<'_>,
    settings: SstableSettings,
    columns: &Columns,
    buffer: &mut RowBuffer,
) -> Result<Option<StagedSstable>> {
    let (sstable, partitions) = new.write(settings, |partitions| {
        let mut key: Option<Vec<u8>> = None;
        buffer.drain(columns, |row| {
            if key.as_deref() != Some(row.key) {
                if key.is_some() {
                    partitions.end_partition()?;
                }
                partitions.start_partition(row.key, row.hash(), DeletionTime::LIVE);
                if columns.layout.has_static() && !row.is_static {
                    partitions.add_empty_static_row();
                }
                let key = key.get_or_insert_default();
                key.clear();
                key.extend_from_slice(row.key);
            }
            partitions.add_row(row.is_static, row.clustering, row.row, |_| row.bytes, 64)?;
            Ok(())
        })?;
        if key.is_some() {
            partitions.end_partition()?;
        }
        Ok(())
    })?;
    sstable.stage_partitions(partitions)
}
