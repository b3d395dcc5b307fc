//! Metadata of an SSTable: that of `sstablemetadata`, and sizes on disk and in a node's memory.
//!
//! [`read`] returns an [`SstableMetadata`], which serializes to JSON; [`text`] formats it for a terminal. `Data.db` is
//! not read, so that versions are supported whose data this release does not read.
//!
//! Source: `SSTableMetadataViewer`, `StatsMetadata`, `TableMetrics`.

mod components;
mod header;
mod histogram;
mod key_range;
mod stats;
pub mod text;
mod words;

use std::path::{Path, PathBuf};

use compactor_engine::input::{READABLE, read_small, refuse_link_without_sidecars};
use compactor_io::{Io, ReadMode};
use compactor_sstable::compression::info::CompressionInfo;
use compactor_sstable::descriptor::{Descriptor, TableDirectory};
use compactor_sstable::statistics::Statistics;
use compactor_sstable::{Component, Error as FormatError, Version};
use serde::Serialize;

pub use components::{
    BloomFilterMetadata, ComponentFile, CompressionMetadata, IndexSummaryMetadata,
};
pub use header::{ColumnMetadata, EncodingStatsMetadata, HeaderMetadata, TypeName};
pub use histogram::{Bucket, DropTime, DropTimes, HistogramSummary, Percentiles};
pub use key_range::KeyOfRange;
pub use stats::{
    BoundMetadata, CommitLogInterval, CommitLogPlace, CoveredClusterings, StatsSummary,
};

use crate::{ErrorKind, Result};

/// Options of reading metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataOptions {
    /// Age in seconds from which a tombstone counts as droppable.
    pub gc_grace_s: i64,
    /// Current time, seconds since 1970.
    pub now_s: i64,
    /// How components are read.
    pub read_mode: ReadMode,
}

impl MetadataOptions {
    /// Options at `now_s` with a grace period of 0, the default of `sstablemetadata`.
    pub fn new(now_s: i64) -> MetadataOptions {
        MetadataOptions {
            gc_grace_s: 0,
            now_s,
            read_mode: ReadMode::Auto,
        }
    }
}

/// Metadata of an SSTable.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SstableMetadata {
    /// Directory, version, id and format: the name that all components begin with. In JSON, bytes
    /// that are not UTF-8 are replaced.
    #[serde(serialize_with = "crate::sstable_report::lossy")]
    pub sstable: PathBuf,
    /// Version, such as `oa`.
    pub version: String,
    /// Format: `big` or `bti`.
    pub format: String,
    /// Id: a number, or a UUID in Cassandra's short form.
    pub id: String,
    /// Keyspace, where the directory is named as a table's is.
    pub keyspace: Option<String>,
    /// Table, where the directory is named as a table's is.
    pub table: Option<String>,
    /// Secondary index whose hidden table this belongs to, from the directory's name.
    pub index: Option<String>,
    /// Class name of the partitioner.
    pub partitioner: String,
    /// False positive chance that the Bloom filter was made for.
    pub bloom_filter_fp_chance: f64,
    /// Extremes, histograms and provenance.
    #[serde(flatten)]
    pub stats: StatsSummary,
    /// Key with the smallest token; `None` before `oa` without a `Summary.db`.
    pub first: Option<KeyOfRange>,
    /// Key with the greatest token; `None` before `oa` without a `Summary.db`.
    pub last: Option<KeyOfRange>,
    /// Estimated number of distinct partition keys; `None` where the writer left it out.
    pub estimated_cardinality: Option<i64>,
    /// Types, columns and the base values of deltas in `Data.db`.
    pub header: HeaderMetadata,
    /// Uncompressed bytes of `Data.db`.
    pub uncompressed_bytes: Option<u64>,
    /// How `Data.db` is compressed; `None` if it is not.
    pub compression: Option<CompressionMetadata>,
    /// The Bloom filter; `None` without a `Filter.db`.
    pub bloom_filter: Option<BloomFilterMetadata>,
    /// The sample of `Index.db`; `None` without a `Summary.db`.
    pub index_summary: Option<IndexSummaryMetadata>,
    /// Components, and other files that `TOC.txt` lists, by name.
    pub components: Vec<ComponentFile>,
    /// Bytes of all components.
    pub total_bytes: u64,
    /// Notes on information that is unavailable, with reasons.
    pub notes: Vec<String>,
}

/// Reads the metadata of the SSTable that `path` belongs to. `path` names its `Data.db` or any other component.
///
/// # Errors
/// A name that is not a component's, a failed read, damage in a component that is read.
///
/// Versions that this release does not merge are read as well. A component of one of those that cannot be parsed is
/// [unsupported](crate::ErrorKind::Unsupported), not damaged.
pub fn read(io: &Io, path: &Path, options: &MetadataOptions) -> Result<SstableMetadata> {
    let descriptor = Descriptor::parse(path)
        .map_err(FormatError::from)?
        .descriptor;
    refuse_link_without_sidecars(&descriptor, Component::Statistics)?;
    read_all(io, path, &descriptor, options).map_err(|error| match error.kind() {
        ErrorKind::Corrupt if !READABLE.contains(&descriptor.version) => {
            let version = descriptor.version;
            let what = format!(
                "SSTable version {version}; this release reads {}, and could not make out this file \
                 of {version} ({error})",
                READABLE.map(Version::name).join(", ")
            );
            let file = descriptor.path(Component::Statistics);
            FormatError::unsupported(what)
                .with_file(&file, Component::Statistics)
                .into()
        }
        _ => error,
    })
}

fn read_all(
    io: &Io,
    path: &Path,
    descriptor: &Descriptor,
    options: &MetadataOptions,
) -> Result<SstableMetadata> {
    let components = components::list(io, options.read_mode, descriptor)?;
    let files = Files {
        io,
        mode: options.read_mode,
        descriptor,
        components,
    };
    let statistics = files.statistics()?;
    let key_type = &statistics.header.key_type.cql_type;
    let mut notes = Vec::new();
    let summary = files.summary(&mut notes)?;
    let bytes_of = |component| files.bytes_of(component);
    let compression = files.compression_info(&mut notes)?;
    let (first, last) = key_range::of(&statistics, summary.as_ref());
    let cardinality = statistics.compaction.as_ref().and_then(|compaction| {
        let estimator = compaction.cardinality();
        let noted = estimator.map_err(|e| files.note_damage(e, Component::Statistics, &mut notes));
        Some(noted.ok()?.cardinality())
    });
    let bloom_filter = files.bloom_filter(&mut notes)?;
    let is_compressed = bytes_of(Component::CompressionInfo).is_some();
    let uncompressed_bytes = match &compression {
        Some(info) => Some(info.data_len),
        None if is_compressed => None,
        None => bytes_of(Component::Data),
    };
    let path = path.canonicalize().ok();
    let directory = path.as_deref().and_then(Path::parent);
    let table = directory.and_then(TableDirectory::parse);
    // Without the table's id any two directories may look like those of a keyspace and a table.
    let table = table.filter(|table| table.table_id.is_some());
    Ok(SstableMetadata {
        sstable: descriptor.directory.join(descriptor.base_name()),
        version: descriptor.version.to_string(),
        format: descriptor.format().name().to_owned(),
        id: descriptor.id.to_string(),
        keyspace: table.as_ref().map(|table| table.keyspace.clone()),
        table: table.as_ref().map(|table| table.table.clone()),
        index: table.and_then(|table| table.index),
        partitioner: statistics.validation.partitioner.clone(),
        bloom_filter_fp_chance: statistics.validation.bloom_filter_fp_chance,
        stats: StatsSummary::of(&statistics, options),
        first: first.map(|key| KeyOfRange::of(&key, key_type, &statistics.validation)),
        last: last.map(|key| KeyOfRange::of(&key, key_type, &statistics.validation)),
        estimated_cardinality: cardinality,
        header: HeaderMetadata::of(&statistics.header),
        uncompressed_bytes,
        compression: compression.as_ref().map(CompressionMetadata::of),
        bloom_filter,
        index_summary: summary.as_ref().map(IndexSummaryMetadata::of),
        total_bytes: files.components.iter().map(|file| file.bytes).sum(),
        components: files.components,
        notes,
    })
}

/// Compressed bytes of `Data.db` over uncompressed ones, over all that are compressed, as `nodetool
/// tablestats` shows it for a table; `None` if none is.
///
/// Source: `TableMetrics.computeCompressionRatio`.
pub fn compression_ratio<'a>(
    sstables: impl IntoIterator<Item = &'a SstableMetadata>,
) -> Option<f64> {
    let (mut compressed, mut uncompressed) = (0.0, 0.0);
    for compression in sstables.into_iter().filter_map(|s| s.compression.as_ref()) {
        compressed += compression.compressed_bytes as f64;
        uncompressed += compression.uncompressed_bytes as f64;
    }
    (uncompressed > 0.0).then(|| compressed / uncompressed)
}

/// The components of one SSTable.
struct Files<'a> {
    io: &'a Io,
    mode: ReadMode,
    descriptor: &'a Descriptor,
    components: Vec<ComponentFile>,
}

impl Files<'_> {
    /// Length of a component, if there is one.
    fn bytes_of(&self, component: Component) -> Option<u64> {
        let name = component.file_suffix();
        self.components
            .iter()
            .find(|file| file.name == name)
            .map(|file| file.bytes)
    }

    fn read(&self, component: Component) -> Result<Vec<u8>> {
        read_small(self.io, self.mode, &self.descriptor.path(component))
    }

    /// Adds the path of the file to an error.
    fn at(&self, error: FormatError, component: Component) -> FormatError {
        error.with_file(&self.descriptor.path(component), component)
    }

    /// Notes damage in components that a node rebuilds or does not need.
    fn note_damage(&self, error: FormatError, component: Component, notes: &mut Vec<String>) {
        notes.push(self.at(error, component).to_string());
    }

    fn statistics(&self) -> Result<Statistics> {
        const COMPONENT: Component = Component::Statistics;
        if self.bytes_of(COMPONENT).is_none() {
            let missing =
                FormatError::corrupt("sstable", 0, "a file Statistics.db", "no such file");
            return Err(self.at(missing, COMPONENT).into());
        }
        let parsed = Statistics::parse(&self.read(COMPONENT)?, self.descriptor.version);
        Ok(parsed.map_err(|error| self.at(error, COMPONENT))?)
    }

    /// Chunks of a compressed `Data.db`. If they are unsupported, a note is added.
    fn compression_info(&self, notes: &mut Vec<String>) -> Result<Option<CompressionInfo>> {
        const COMPONENT: Component = Component::CompressionInfo;
        if self.bytes_of(COMPONENT).is_none() {
            return Ok(None);
        }
        let Some(data_len) = self.bytes_of(Component::Data) else {
            notes.push("no Data.db, so that compression cannot be told".to_owned());
            return Ok(None);
        };
        let parsed =
            CompressionInfo::parse(&self.read(COMPONENT)?, self.descriptor.version, data_len);
        match parsed.map_err(|error| self.at(error, COMPONENT)) {
            Ok(info) => Ok(Some(info)),
            Err(FormatError::Corrupt(error)) => Err(FormatError::Corrupt(error).into()),
            Err(unsupported) => {
                notes.push(unsupported.to_string());
                Ok(None)
            }
        }
    }
}
