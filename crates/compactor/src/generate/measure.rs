//! Average length of a partition, measured by writing some and discarding them.

use std::sync::Arc;

use compactor_engine::input::layout_of;
use compactor_engine::write::{DiscardOutput, IndexBuilder, PartitionWriter};
use compactor_sstable::statistics::{CollectorSettings, MetadataCollector};

use super::output::Output;
use super::{Content, GenerateOptions};
use crate::Result;
use compactor_engine::merge::NoObserver;

/// Partitions and bytes that are enough to know.
const MAX_PARTITIONS: u64 = 512;
const MAX_BYTES: u64 = 4 << 20;

/// Mean uncompressed length of the partitions, bytes.
pub(super) fn mean_partition_len(
    options: &GenerateOptions,
    mut content: Content<'_>,
) -> Result<f64> {
    let header = options.columns().header(content.encoding_stats());
    let mut writer = PartitionWriter::new(
        Arc::new(layout_of(&header, options.version)?),
        DiscardOutput::new(64 << 10),
        MetadataCollector::new(CollectorSettings::default()),
        IndexBuilder::none(),
    )?;
    let mut observer = NoObserver;
    let mut out = Output::new(&mut writer, &mut observer, [0; 3]);
    let write_key = content.key_writer();
    let mut key = Vec::new();
    let mut partitions = 0;
    while partitions < MAX_PARTITIONS && out.position() < MAX_BYTES {
        key.clear();
        write_key(partitions, &mut key);
        content.write_partition(partitions, false, &key, &mut out)?;
        partitions += 1;
    }
    Ok((out.position() as f64 / partitions as f64).max(1.0))
}
