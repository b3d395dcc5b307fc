//! Writer of all components of an output.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use compactor_io::{Io, SequentialWriter, WriteMode, WriterOptions};
use compactor_sstable::bloom_filter::BloomFilter;
use compactor_sstable::data::deletion_time::INVALID_DELETION_TIME;
use compactor_sstable::data::layout::Layout;
use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::partitioner::Partitioner;
use compactor_sstable::statistics::{Finish, MetadataCollector, Statistics};
use compactor_sstable::toc::Toc;
use compactor_sstable::{Component, Error as FormatError, Version, digest};

use crate::error::Result;
use crate::input::header_union::layout_of;
use crate::publish::staging::{StagedOutput, Staging, publish_all};
use crate::read::workers::WorkerQueue;
use crate::write::data_output::DataOutput;
use crate::write::file_output::FileOutput;
use crate::write::format_index::FormatIndex;
use crate::write::index_builder::IndexBuilder;
use crate::write::index_output::IndexOutput;
use crate::write::output_blocks::OutputBlocks;
use crate::write::partition_writer::PartitionWriter;
use crate::write::sstable_settings::SstableSettings;

/// Maximum number of buffers of `Data.db`'s writer in flight.
const BUFFERS_IN_FLIGHT: usize = 4;

/// Writer of partitions to files.
pub type FilePartitionWriter = PartitionWriter<FileOutput>;

/// Settings of how an output's files are written.
#[derive(Clone, Debug)]
pub struct WriteSettings {
    /// I/O mode of all components.
    pub mode: WriteMode,
    /// Buffer of `Data.db`'s writer, bytes.
    pub buffer_bytes: usize,
    /// Blocks being compressed or waiting to be written.
    pub blocks: Arc<OutputBlocks>,
    /// Expected length of `Data.db`, for preallocation.
    pub expected_len: Option<u64>,
    /// Queue of the tasks: compression, and writing the index.
    pub queue: WorkerQueue,
    /// Whether blocks that are still queued are not needed.
    pub cancelled: Arc<AtomicBool>,
}

/// Parts of an output under construction.
#[derive(Debug)]
pub struct OutputParts {
    /// `Data.db`.
    pub data: DataOutput,
    /// Index, Bloom filter and cardinality of the keys.
    pub index: IndexOutput,
    /// Statistics, except for the cardinality.
    pub collector: MetadataCollector,
    /// Number of partitions.
    pub partitions: u64,
}

/// An output under construction, in a staging directory.
#[derive(Debug)]
pub struct SstableWriter {
    io: Io,
    staging: Arc<Staging>,
    settings: SstableSettings,
    mode: WriteMode,
    layout: Arc<Layout>,
    partitioner: Partitioner,
}

/// A published output.
#[derive(Debug)]
pub struct WrittenSstable {
    /// Directory, version and id.
    pub descriptor: Descriptor,
    /// Components and their lengths.
    pub components: Vec<(Component, u64)>,
    /// Uncompressed length of `Data.db`.
    pub data_len: u64,
    /// Number of rows, including non-empty static rows.
    pub rows: u64,
    /// Number of partitions.
    pub partitions: u64,
    /// I/O mode actually used.
    pub mode: WriteMode,
    /// Content of `Statistics.db`.
    pub statistics: Statistics,
}

/// A complete output in a staging directory.
#[derive(Debug)]
pub struct StagedSstable {
    staging: Arc<Staging>,
    pub(crate) written: WrittenSstable,
}

impl StagedSstable {
    /// Number of rows, as [`WrittenSstable::rows`].
    pub fn rows(&self) -> u64 {
        self.written.rows
    }

    /// Path of `Data.db` in the staging directory, which also contains the other components.
    pub fn data_path(&self) -> PathBuf {
        self.staging.path(&self.written.descriptor, Component::Data)
    }

    /// The output for [`publish_all`](crate::publish::publish_all), and what was written.
    pub fn into_output(self) -> (StagedOutput, WrittenSstable) {
        let StagedSstable { staging, written } = self;
        let components = written.components.iter().map(|(c, _)| *c).collect();
        ((staging, written.descriptor.clone(), components), written)
    }
}

/// Publishes outputs of one directory together.
///
/// # Errors
/// A failed sync or rename. Nothing of any output stays then.
pub fn publish_together(staged: Vec<StagedSstable>) -> Result<Vec<WrittenSstable>> {
    let outputs = staged.into_iter().map(StagedSstable::into_output);
    let (outputs, written): (Vec<StagedOutput>, _) = outputs.unzip();
    publish_all(&outputs)?;
    Ok(written)
}

impl SstableWriter {
    /// Creates the files in `staging`, for a table with this partitioner. Returns a writer of partitions, and
    /// the writer that completes the SSTable.
    ///
    /// # Errors
    /// Something unsupported, or a failed file operation.
    pub fn create(
        io: &Io,
        staging: impl Into<Arc<Staging>>,
        settings: SstableSettings,
        partitioner: Partitioner,
        write: &WriteSettings,
    ) -> Result<(SstableWriter, FilePartitionWriter)> {
        let (writer, parts) = SstableWriter::begin(io, staging, settings, partitioner, write)?;
        let OutputParts {
            data,
            index,
            collector,
            ..
        } = parts;
        let layout = Arc::clone(&writer.layout);
        let rows = IndexBuilder::of(&writer.settings)?;
        let output = FileOutput { data, index };
        let partitions = PartitionWriter::new(layout, output, collector, rows)?;
        Ok((writer, partitions))
    }

    /// As [`SstableWriter::create`], for partitions that are serialized by other writers.
    pub(crate) fn begin(
        io: &Io,
        staging: impl Into<Arc<Staging>>,
        settings: SstableSettings,
        partitioner: Partitioner,
        write: &WriteSettings,
    ) -> Result<(SstableWriter, OutputParts)> {
        let staging = staging.into();
        let layout = Arc::new(layout_of(&settings.header, settings.descriptor.version)?);
        let filter =
            BloomFilter::for_keys(settings.expected_keys, settings.bloom_filter_fp_chance)?;
        let create = |component, options| -> Result<SequentialWriter> {
            let path = staging.path(&settings.descriptor, component);
            Ok(io.create(&path, write.mode, options)?)
        };
        let data = create(
            Component::Data,
            WriterOptions {
                buffer_bytes: write.buffer_bytes,
                in_flight: BUFFERS_IN_FLIGHT,
                expected_len: write.expected_len,
                ..WriterOptions::default()
            },
        )?;
        let data = DataOutput::new(
            data,
            settings.compression.clone(),
            Arc::clone(&write.blocks),
            write.queue.clone(),
            Arc::clone(&write.cancelled),
        )?;
        let format = settings.descriptor.version.format();
        let index =
            FormatIndex::create(format, settings.min_index_interval, filter, |component| {
                create(component, small_file())
            })?;
        let parts = OutputParts {
            data,
            index: IndexOutput::new(index, write.queue.clone()),
            collector: MetadataCollector::new(settings.collector.clone()),
            partitions: 0,
        };
        let writer = SstableWriter {
            io: io.clone(),
            staging,
            settings,
            mode: write.mode,
            layout,
            partitioner,
        };
        Ok((writer, parts))
    }

    /// Layout of the output.
    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// Writes the remaining components and publishes all, or nothing if there is no partition.
    /// `before_publish` is called with the path of the complete `Data.db` in the staging directory.
    ///
    /// # Errors
    /// A failed write, sync or rename, or the error of `before_publish`. Nothing of the output stays then.
    pub fn finish(
        self,
        partitions: FilePartitionWriter,
        before_publish: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<Option<WrittenSstable>> {
        let Some(staged) = self.stage_partitions(partitions)? else {
            return Ok(None);
        };
        before_publish(&staged.data_path())?;
        Ok(publish_together(vec![staged])?.pop())
    }

    /// As [`SstableWriter::stage`], of what a writer of partitions has written. Nothing is published: see
    /// [`publish_together`].
    ///
    /// # Errors
    /// A failed write or sync. Nothing of the output stays then.
    pub fn stage_partitions(
        self,
        partitions: FilePartitionWriter,
    ) -> Result<Option<StagedSstable>> {
        let count = partitions.partitions();
        let (FileOutput { data, index }, collector) = partitions.finish();
        self.stage(OutputParts {
            data,
            index,
            collector,
            partitions: count,
        })
    }

    /// Writes the remaining components, unless there is no partition: Cassandra refuses an SSTable without chunks.
    /// The output is removed from the staging directory if it is not published.
    ///
    /// # Errors
    /// A failed write or sync. Nothing of the output stays then.
    pub fn stage(self, parts: OutputParts) -> Result<Option<StagedSstable>> {
        let OutputParts {
            data,
            index,
            mut collector,
            partitions,
        } = parts;
        if partitions == 0 {
            return Ok(None);
        }
        let version = self.settings.descriptor.version;
        let (index, cardinality) = index.complete()?;
        collector.set_cardinality(cardinality);
        refuse_later_deletions(version, &collector)?;
        let data_len = data.position();
        let data = data.finish()?;
        let index = index.finish()?;
        let mode = data.file.mode;
        let mut components = vec![(Component::Data, data.file.len)];
        components.extend(&index.files);
        if let Some(filter) = &index.filter {
            let head = filter.head();
            components.push(self.write(Component::Filter, &[&head, filter.bits()])?);
        }
        let mut bytes = Vec::new();
        if let Some(summary) = &index.summary {
            summary.write(&mut bytes);
            components.push(self.write(Component::Summary, &[&bytes])?);
        }
        if let Some(info) = &data.compression_info {
            bytes.clear();
            info.write(&mut bytes, version)?;
            components.push(self.write(Component::CompressionInfo, &[&bytes])?);
        }
        if let Some(crcs) = &data.crc_file {
            bytes.clear();
            crcs.write(&mut bytes);
            components.push(self.write(Component::Crc, &[&bytes])?);
        }
        bytes.clear();
        digest::write(&mut bytes, data.digest);
        components.push(self.write(Component::Digest, &[&bytes])?);
        let statistics = collector.finish(Finish {
            partitioner: self.partitioner,
            bloom_filter_fp_chance: self.settings.bloom_filter_fp_chance,
            compression_ratio: data
                .compression_info
                .as_ref()
                .map(|i| i.compression_ratio()),
            first_key: index.first_key,
            last_key: index.last_key,
            header: self.settings.header.clone(),
        });
        bytes.clear();
        statistics.write(&mut bytes, version)?;
        components.push(self.write(Component::Statistics, &[&bytes])?);
        let listed = components.iter().map(|(c, _)| *c).chain([Component::Toc]);
        bytes.clear();
        Toc::of(listed).write(&mut bytes);
        components.push(self.write(Component::Toc, &[&bytes])?);
        Ok(Some(StagedSstable {
            staging: self.staging,
            written: WrittenSstable {
                descriptor: self.settings.descriptor,
                components,
                data_len,
                rows: statistics.stats.total_rows as u64,
                partitions,
                mode,
                statistics,
            },
        }))
    }

    fn write(&self, component: Component, parts: &[&[u8]]) -> Result<(Component, u64)> {
        let path = self.staging.path(&self.settings.descriptor, component);
        let mut file = self.io.create(&path, self.mode, small_file())?;
        for part in parts {
            file.write_all(part)?;
        }
        Ok((component, file.finish()?.len))
    }
}

/// Before `oa`, local deletion times end in 2038: later ones would be read as another time.
fn refuse_later_deletions(version: Version, collector: &MetadataCollector) -> Result<()> {
    let (latest, greatest) = (
        collector.latest_deletion_time(),
        version.max_deletion_time(),
    );
    if latest <= greatest {
        return Ok(());
    }
    if latest == INVALID_DELETION_TIME {
        let reason = "a local deletion time that is negative or overflowed, which no version stores: verify names its \
                      row, and scrub leaves it out";
        return Err(FormatError::unsupported(reason).into());
    }
    Err(FormatError::unsupported(format!(
        "data that expires or was deleted at {latest} seconds since 1970, in version {version}, which stores \
         times up to {greatest} (January 2038); write oa or pa"
    ))
    .into())
}

fn small_file() -> WriterOptions {
    WriterOptions {
        buffer_bytes: 256 << 10,
        in_flight: 2,
        ..WriterOptions::default()
    }
}
