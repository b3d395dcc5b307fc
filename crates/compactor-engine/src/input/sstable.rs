//! An SSTable opened for reading: its statistics, the encoding of its data, and its file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use compactor_io::{InputFile, Io, ReadMode};
use compactor_sstable::big::Summary;
use compactor_sstable::compression::info::CompressionInfo;
use compactor_sstable::data::deletion_time::NO_DELETION_TIME;
use compactor_sstable::data::layout::{ColumnLayout, Layout, TimestampDeltas};
use compactor_sstable::data::stated_extremes::StatedExtremes;
use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::partitioner::Partitioner;
use compactor_sstable::statistics::header::HeaderColumn;
use compactor_sstable::statistics::stats::NO_COMPRESSION_RATIO;
use compactor_sstable::statistics::tombstone_histogram::TombstoneHistogram;
use compactor_sstable::statistics::{SerializationHeader, Statistics};
use compactor_sstable::toc::Toc;
use compactor_sstable::{Component, Error as FormatError, Format, Version};

use crate::error::{Error, Result};
use crate::input::component_file::read_small;
use crate::input::component_list::{ComponentList, ListFinding};
use crate::input::header_union::{HeaderSource, layout_of};
use crate::input::stored_form::read_encoding;
use crate::input::trie_files::{SharedTries, TrieFiles};
use crate::input::user_types::freeze_user_types;
use crate::read::encoding::Encoding;
use crate::read::parallel_map::parallel_map;

/// Number of SSTables opened concurrently. Most of the time is spent waiting for five small sequential reads
/// of each. Each takes a descriptor and a few pages meanwhile.
pub(crate) const OPENED_AT_ONCE: usize = 8;

/// Uncompressed bytes for which savings by compression are determined: about as many as are read ahead.
const SAVINGS_WINDOW: usize = 1 << 20;

/// Versions that this program reads: all since Cassandra 3.0.
pub const READABLE: [Version; 11] = Version::ALL;

/// Versions that this program writes.
const WRITABLE: [Version; 5] = [
    Version::Nb,
    Version::Oa,
    Version::Pa,
    Version::Da,
    Version::Ea,
];

/// Refuses a version that this program does not write.
///
/// # Errors
/// That the version is unsupported, with those to choose from.
pub fn check_writable(version: Version) -> Result<()> {
    if WRITABLE.contains(&version) {
        Ok(())
    } else {
        let what = format!("writing SSTable version {version}; choose nb, oa, pa, da or ea");
        Err(FormatError::unsupported(what).into())
    }
}

/// An SSTable opened for reading.
#[derive(Debug)]
pub struct InputSstable {
    /// Directory, version and id.
    pub descriptor: Descriptor,
    /// Content of `Statistics.db`.
    pub statistics: Statistics,
    /// The table's partitioner.
    pub partitioner: Partitioner,
    /// `Data.db`.
    pub data: DataFile,
    /// Encoding of `Data.db`.
    pub encoding: Arc<Encoding>,
    /// Its files.
    pub files: ComponentList,
    /// Components that Cassandra rebuilds or works without, and inconsistencies of `TOC.txt` with the files.
    pub notes: Vec<ListFinding>,
    /// Index files of the BTI format, while in use.
    pub tries: SharedTries,
}

/// A `Data.db` that was examined, and stays closed until it is read: there may be more inputs than
/// descriptors.
#[derive(Clone, Copy, Debug)]
pub struct DataFile {
    len: u64,
    /// Requested and actual mode.
    asked_mode: ReadMode,
    mode: ReadMode,
}

impl DataFile {
    fn look(io: &Io, path: &Path, mode: ReadMode) -> Result<DataFile> {
        Ok(DataFile {
            asked_mode: mode,
            ..DataFile::of(&io.open(path, mode)?)
        })
    }

    /// Describes an open file.
    pub fn of(file: &InputFile) -> DataFile {
        DataFile {
            len: file.len(),
            asked_mode: file.mode(),
            mode: file.mode(),
        }
    }

    /// Stored length, bytes.
    #[expect(clippy::len_without_is_empty, reason = "an empty file is refused")]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// I/O mode.
    pub fn mode(&self) -> ReadMode {
        self.mode
    }
}

/// Refuses a `Data.db` that is a directory or a pipe, before its other components are missed.
fn refuse_other_than_file(path: &Path) -> Result<()> {
    match std::fs::metadata(path) {
        Ok(found) if !found.is_file() => Err(Error::InvalidInput(format!(
            "{}: not a regular file, and so not an SSTable's",
            path.display()
        ))),
        _ => Ok(()),
    }
}

impl InputSstable {
    /// Estimated memory of its metadata, bytes. Parts that may be long are counted.
    pub(crate) fn metadata_bytes(&self) -> usize {
        /// Names, paths and allocator overhead.
        const OTHERS: usize = 2048;
        /// Names of a column, and allocator overhead.
        const NAMES: usize = 64;
        let stats = &self.statistics.stats;
        let of_histograms: usize = [&stats.partition_sizes, &stats.cells_per_partition]
            .iter()
            .map(|histogram| size_of_val(histogram.offsets()) + size_of_val(histogram.counts()))
            .sum();
        let of_keys = self.statistics.compaction.as_ref();
        let of_keys = of_keys.map_or(0, |compaction| compaction.cardinality_bytes.len());
        let bins = stats.tombstone_drop_times.bins();
        let distributions = of_histograms + size_of_val(bins) + of_keys;
        let columns = self.header().static_columns.len() + self.header().regular_columns.len();
        let stored = match &*self.encoding {
            Encoding::Compressed { info, .. } => size_of_val(&info.chunk_offsets[..]),
            Encoding::Plain { crc: Some(crc), .. } => size_of_val(&crc.crcs[..]),
            Encoding::Plain { crc: None, .. } => 0,
        };
        // In the header, in the layout, and in the map to the output's columns.
        let of_columns = columns * (size_of::<HeaderColumn>() + size_of::<ColumnLayout>() + NAMES);
        size_of::<InputSstable>() + of_columns + stored + distributions + OTHERS
    }

    /// Memory for validating its components against its data, bytes: components that are kept in memory, and
    /// a filter that is filled with the keys read.
    pub(crate) fn validation_bytes(&self) -> usize {
        let len = |component| self.component_len(component);
        let filter = len(Component::Filter);
        let tries = len(Component::Partitions) + len(Component::Rows);
        // A summary is read completely before it is parsed.
        let bytes = tries + filter + filter / 8 * 9 + 2 * len(Component::Summary);
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    /// Whether its index files are of the BTI format.
    pub(crate) fn is_bti(&self) -> bool {
        self.descriptor.version.format() == Format::Bti
    }

    /// Whether its `Index.db` may have promoted indexes. Without clustering columns a partition has one row
    /// and no index.
    pub fn may_have_promoted_indexes(&self) -> bool {
        !self.is_bti() && !self.header().clustering_types.is_empty()
    }

    fn component_len(&self, component: Component) -> u64 {
        let mut present = self.files.present.iter();
        let found = present.find(|(c, _)| *c == component);
        found.map_or(0, |(_, len)| *len)
    }

    /// Opens the SSTable whose `Data.db` is `path`. Checks its name, the presence of the components listed in
    /// its TOC, and its metadata.
    pub fn open(io: &Io, path: &Path, mode: ReadMode) -> Result<InputSstable> {
        let descriptor = parse_data_name(path)?;
        if !READABLE.contains(&descriptor.version) {
            return Err(Error::Format(
                FormatError::unsupported(format!(
                    "SSTable version {}; this release reads {}. Rewrite the file with nodetool \
                     upgradesstables or sstableupgrade first",
                    descriptor.version,
                    READABLE.map(Version::name).join(", ")
                ))
                .with_file(path, Component::Data),
            ));
        }
        refuse_other_than_file(path)?;
        let (files, toc) = list_components(io, mode, &descriptor)?;
        let statistics = read_statistics(io, mode, &descriptor)?;
        let fp_chance = statistics.validation.bloom_filter_fp_chance;
        let mut notes = files.check(&descriptor, toc.as_ref(), Some(fp_chance));
        let at_statistics = Error::format(&descriptor, Component::Statistics);
        let partitioner = Partitioner::from_class_name(&statistics.validation.partitioner)
            .map_err(at_statistics)?;
        layout_of(&statistics.header, descriptor.version).map_err(at_statistics)?;
        let data = DataFile::look(io, path, mode)?;
        let encoding = read_encoding(io, mode, &descriptor, &files, data.len(), &mut notes)?;
        Ok(InputSstable {
            descriptor,
            statistics,
            partitioner,
            data,
            encoding: Arc::new(encoding),
            files,
            notes,
            tries: SharedTries::default(),
        })
    }

    /// Opens several SSTables, possibly tens of thousands: a few concurrently. Keeps only the result of `made` for each,
    /// in the order of the paths.
    pub fn open_all<T: Send>(
        io: &Io,
        paths: &[PathBuf],
        mode: ReadMode,
        made: impl Fn(InputSstable) -> T + Sync,
    ) -> Vec<Result<T>> {
        parallel_map(paths, OPENED_AT_ONCE, |path| {
            InputSstable::open(io, path, mode).map(&made)
        })
    }

    /// Drops the histograms and sketches of the statistics, except for the number of partitions: for tens of
    /// thousands of inputs they would take as much memory as a merge has.
    pub fn drop_distributions(&mut self) {
        let stats = &mut self.statistics.stats;
        for histogram in [&mut stats.partition_sizes, &mut stats.cells_per_partition] {
            *histogram = histogram.in_one_bucket();
        }
        stats.tombstone_drop_times = TombstoneHistogram::default();
    }

    /// Path of `Data.db`.
    pub fn data_path(&self) -> PathBuf {
        self.descriptor.path(Component::Data)
    }

    /// Opens `Data.db`.
    ///
    /// # Errors
    /// A failed open, or a changed length.
    pub fn open_data(&self, io: &Io) -> Result<InputFile> {
        let file = io.open(&self.data_path(), self.data.asked_mode)?;
        if file.len() == self.data.len {
            return Ok(file);
        }
        let expected = format!("{} bytes, as when it was first opened", self.data.len);
        let found = format!("{} bytes", file.len());
        let error = FormatError::corrupt("data", 0, expected, found);
        Err(Error::format(&self.descriptor, Component::Data)(error))
    }

    /// Uncompressed length of `Data.db`.
    pub fn data_len(&self) -> u64 {
        self.encoding.data_len()
    }

    /// Minimum uncompressed bytes per decoded block.
    pub(crate) fn block_unit(&self) -> usize {
        self.encoding.unit() as usize
    }

    /// Percentage by which every MiB or so of `Data.db` is shorter than its uncompressed data, at least.
    pub(crate) fn saved_percent(&self) -> usize {
        self.compression_info().map_or(0, saved_percent)
    }

    /// Total length of all components, bytes.
    pub fn disk_len(&self) -> u64 {
        self.files.total_len()
    }

    /// The chunks of a compressed `Data.db`.
    pub fn compression_info(&self) -> Option<&CompressionInfo> {
        match &*self.encoding {
            Encoding::Compressed { info, .. } => Some(info),
            Encoding::Plain { .. } => None,
        }
    }

    /// Decoding layout derived from its header. It is not kept: of ten thousand inputs, most wait to be read.
    ///
    /// # Errors
    /// Corruption if columns are not in header order; unsupported types. [`InputSstable::open`] fails then.
    pub fn layout(&self) -> Result<Layout> {
        let at = Error::format(&self.descriptor, Component::Statistics);
        layout_of(self.header(), self.descriptor.version).map_err(at)
    }

    /// Returns a layout that accepts only times and clusterings within the extremes of the statistics.
    /// Delta-encoded times decode wrongly with the `Statistics.db` of another SSTable, some beyond those
    /// extremes.
    ///
    /// # Errors
    /// As [`InputSstable::layout`].
    pub fn bounded_layout(&self) -> Result<Layout> {
        let stats = &self.statistics.stats;
        let version = self.descriptor.version;
        let layout = self.layout()?;
        let base = layout.min_timestamp;
        let timestamp_deltas =
            TimestampDeltas::between(base, stats.min_timestamp, stats.max_timestamp);
        Ok(Layout {
            timestamp_deltas,
            stated: StatedExtremes::of(stats, version),
            ..layout
        })
    }

    /// Whether the compression ratio in the statistics is that of the chunks. The `Statistics.db` of another
    /// SSTable hardly ever has the same ratio. Before 4.0 there may be none: it does not match then.
    pub fn matches_compression_ratio(&self) -> bool {
        let ratio = self
            .compression_info()
            .map_or(NO_COMPRESSION_RATIO, CompressionInfo::compression_ratio);
        self.statistics.stats.compression_ratio.to_bits() == ratio.to_bits()
    }

    /// Latest local deletion time that it may have, seconds since 1970; that of live data if it may have any.
    pub fn max_local_deletion_time_s(&self) -> i64 {
        if self.descriptor.version.has_live_rows_in_extremes() {
            self.statistics.stats.max_local_deletion_time
        } else {
            NO_DELETION_TIME
        }
    }

    /// Whether it may have cells or rows with a TTL. If the statistics exclude them, reading one is an error.
    pub fn may_have_ttl(&self) -> bool {
        let stats = &self.statistics.stats;
        // The extremes of writers before 4.0 are not validated.
        !self.descriptor.version.has_metadata_checksum() || (stats.min_ttl, stats.max_ttl) != (0, 0)
    }

    /// Its header as stored.
    pub fn header(&self) -> &SerializationHeader {
        &self.statistics.header
    }

    /// The same, for a union of headers.
    pub fn header_source(&self) -> HeaderSource<'_> {
        HeaderSource {
            descriptor: &self.descriptor,
            header: self.header(),
        }
    }

    /// Reads the index files of the BTI format.
    pub fn tries(&self, io: &Io, mode: ReadMode) -> Result<Arc<TrieFiles>> {
        self.tries.read(io, mode, &self.descriptor)
    }

    /// Reads another component into memory.
    pub fn read_component(&self, io: &Io, mode: ReadMode, component: Component) -> Result<Vec<u8>> {
        read_small(io, mode, &self.descriptor.path(component))
    }

    /// Reads `Summary.db`; `None` if it is missing or cannot be parsed: Cassandra rebuilds it then
    /// (`IndexSummaryComponent.loadOrDeleteCorrupted`).
    pub fn summary(&self, io: &Io, mode: ReadMode) -> Result<Option<Summary>> {
        if !self.has(Component::Summary) {
            return Ok(None);
        }
        let bytes = self.read_component(io, mode, Component::Summary)?;
        Ok(Summary::parse(&bytes, self.descriptor.version).ok())
    }

    /// Whether the component exists.
    pub fn has(&self, component: Component) -> bool {
        self.files.has(component)
    }
}

/// Parses the name of a `Data.db`.
///
/// # Errors
/// The name is not that of a `Data.db`.
pub fn parse_data_name(path: &Path) -> Result<Descriptor> {
    let file = Descriptor::parse(path).map_err(|e| Error::Format(e.into()))?;
    if file.component != Some(Component::Data) {
        return Err(Error::InvalidInput(format!(
            "{}: specify an SSTable by its Data.db, not by its {}",
            path.display(),
            file.suffix
        )));
    }
    Ok(file.descriptor)
}

/// Lists the existing components and inconsistencies; an error if a component that Cassandra needs is
/// missing.
fn list_components(
    io: &Io,
    mode: ReadMode,
    descriptor: &Descriptor,
) -> Result<(ComponentList, Option<Toc>)> {
    let mut list = ComponentList::known(descriptor)?;
    let toc = if let Some(len) = list.len_of(Component::Toc) {
        let corrupt = Error::format(descriptor, Component::Toc);
        Toc::check_len(len).map_err(&corrupt)?;
        let parsed = Toc::parse(&read_small(io, mode, &descriptor.path(Component::Toc))?);
        let toc = parsed.map_err(corrupt)?;
        list.foreign = toc.unknown().map(str::to_owned).collect();
        Some(toc)
    } else {
        None
    };
    let findings = list.check(descriptor, toc.as_ref(), None);
    match findings.into_iter().find(|finding| finding.is_damage) {
        None => Ok((list, toc)),
        Some(damage) => {
            refuse_link_without_sidecars(descriptor, damage.component)?;
            let error = FormatError::corrupt(damage.structure, 0, damage.expected, damage.found);
            Err(Error::format(descriptor, damage.component)(error))
        }
    }
}

/// Refuses a `Data.db` that is a symbolic link if a component that is missing next to the link exists next to
/// its target: nothing is damaged then.
///
/// # Errors
/// Invalid input, naming the link's target.
pub fn refuse_link_without_sidecars(descriptor: &Descriptor, component: Component) -> Result<()> {
    let data = descriptor.path(Component::Data);
    let is_link = std::fs::symlink_metadata(&data).is_ok_and(|data| data.is_symlink());
    if !is_link || descriptor.path(component).exists() {
        return Ok(());
    }
    let Ok(target) = data.canonicalize() else {
        return Ok(());
    };
    let there = Descriptor::parse(&target).map(|file| file.descriptor);
    if there.is_ok_and(|there| there.path(component).exists()) {
        Err(Error::InvalidInput(format!(
            "{} is a symbolic link to {}, and the other components of the SSTable are alongside that, not \
             alongside the link: name that file",
            data.display(),
            target.display()
        )))
    } else {
        Ok(())
    }
}

pub(crate) fn read_statistics(
    io: &Io,
    mode: ReadMode,
    descriptor: &Descriptor,
) -> Result<Statistics> {
    let bytes = read_small(io, mode, &descriptor.path(Component::Statistics))?;
    let mut statistics = Statistics::parse(&bytes, descriptor.version)
        .map_err(Error::format(descriptor, Component::Statistics))?;
    freeze_user_types(io, mode, descriptor, &mut statistics)?;
    Ok(statistics)
}

fn saved_percent(info: &CompressionInfo) -> usize {
    let chunk_len = info.params.chunk_len as usize;
    let chunks = (SAVINGS_WINDOW / chunk_len.max(1)).max(1);
    let whole = info.data_len.min((chunks * chunk_len) as u64).max(1);
    let saved = whole.saturating_sub(info.longest_run(chunks));
    (u128::from(saved) * 100 / u128::from(whole)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use compactor_sstable::compression::Codec;
    use compactor_sstable::compression::info::CompressionParams;

    /// Readahead relies on the savings, so the worst part of a file decides.
    #[test]
    fn savings_are_those_of_the_worst_mebibyte() {
        let chunk_len = 16 << 10;
        let saved = |stored_lens: &[u64]| {
            let mut info = CompressionInfo::new(CompressionParams::new(Codec::Lz4, chunk_len));
            info.data_len = stored_lens.len() as u64 * u64::from(chunk_len);
            for len in stored_lens {
                info.chunk_offsets.push(info.file_len);
                info.file_len += len;
            }
            saved_percent(&info)
        };
        let (half, whole, tiny) = ([8 << 10; 64], [17 << 10; 64], [100; 64]);
        assert_eq!(saved(&half), 50);
        assert_eq!(saved(&half[..3]), 50);
        assert_eq!(saved(&[half, tiny, half].concat()), 50);
        assert_eq!(saved(&[tiny, whole, tiny].concat()), 0);
        assert_eq!(saved(&tiny), 99);
    }
}
