//! Reading one row as a node does: Bloom filter, partition index, row index, chunks, row.
//!
//! Other work of a node is left out: it has no key cache here (off by default with tries), merges
//! no versions of a row, and makes no result of it. Every SSTable that may have the partition is read.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use compactor::Result;
use compactor_engine::input::InputSstable;
use compactor_io::{Io, IoOptions, ReadMode};
use compactor_sstable::bloom_filter::BloomFilter;
use compactor_sstable::data::clustering::{Kind, Prefix, ValueSpan};
use compactor_sstable::data::layout::Layout;
use compactor_sstable::data::parse::Stop;
use compactor_sstable::data::partition::PartitionHead;
use compactor_sstable::data::unfiltered::{UnfilteredHead, parse_head, parse_static_head};
use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::partitioner::{KeyHash, Partitioner};
use compactor_sstable::types::CqlType;
use compactor_sstable::{Component, Error as FormatError};

use crate::data_file::{DataFile, ReadBuffer};
use crate::lookup::{Found, PartitionLookup};

/// A row that is read repeatedly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HotRow {
    /// Its partition.
    pub(crate) key: Box<[u8]>,
    pub(crate) hash: KeyHash,
    /// Its clustering as a serialized row begins with; `None` for the first row of the partition.
    pub(crate) clustering: Option<Box<[u8]>>,
}

/// An SSTable opened for queries.
#[derive(Debug)]
pub(crate) struct PointReader {
    pub(crate) descriptor: Descriptor,
    partitioner: Partitioner,
    layout: Arc<Layout>,
    types: Vec<CqlType>,
    filter: Option<BloomFilter>,
    pub(crate) lookup: PartitionLookup,
    pub(crate) data: DataFile,
}

/// Buffers of a thread that reads from a [`PointReader`].
#[derive(Debug, Default)]
pub(crate) struct ReadState {
    pub(crate) buffer: ReadBuffer,
    spans: Vec<ValueSpan>,
    row_spans: Vec<ValueSpan>,
}

/// Result of a search for a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowFound {
    /// The filter does not have the key.
    NotInFilter,
    /// The filter may have the key, and the index does not.
    NotInIndex,
    /// The partition is there, without the row.
    NoRow,
    /// It is at `position..end` of the uncompressed `Data.db`, which was read from `from` on.
    Row { from: u64, position: u64, end: u64 },
}

impl PointReader {
    /// Opens the SSTable of a `Data.db`, reading what a node keeps in memory: filter, summary,
    /// `CompressionInfo.db`.
    ///
    /// # Errors
    /// Damage, something unsupported, or a failed read.
    pub(crate) fn open(io: &Io, data_path: &Path) -> Result<PointReader> {
        let sstable = InputSstable::open(io, data_path, ReadMode::Buffered)?;
        let types = sstable.header().clustering_types.iter();
        Ok(PointReader {
            types: types.map(|t| t.cql_type.clone()).collect(),
            partitioner: sstable.partitioner,
            layout: Arc::new(sstable.layout()?),
            filter: filter_of(io, &sstable)?,
            lookup: PartitionLookup::open(&sstable.descriptor, sstable.partitioner)?,
            data: DataFile::open(&sstable)?,
            descriptor: sstable.descriptor.clone(),
        })
    }

    /// Opens those of a table.
    ///
    /// # Errors
    /// As of one.
    pub(crate) fn open_all(data_paths: &[PathBuf]) -> Result<Vec<PointReader>> {
        let io = Io::new(IoOptions::default())?;
        let paths = data_paths.iter();
        paths.map(|path| PointReader::open(&io, path)).collect()
    }

    /// Disables readahead: the device's is sized for sequential reads, that of a
    /// node is low (Cassandra's documentation says 4 KiB for SSDs), and megabytes of neighbours of every
    /// page that was missed would push out what the compaction has left.
    pub(crate) fn expect_random(&self) {
        self.data.expect_random();
        self.lookup.expect_random();
    }

    /// Searches for a row.
    ///
    /// # Errors
    /// Damage, or a failed read.
    pub(crate) fn find(&self, row: &HotRow, state: &mut ReadState) -> Result<RowFound> {
        let filter = self.filter.as_ref();
        if filter.is_some_and(|filter| !filter.may_contain_key(&row.hash)) {
            return Ok(RowFound::NotInFilter);
        }
        let Some(found) = self.lookup.find(&row.key, &row.hash)? else {
            return Ok(RowFound::NotInIndex);
        };
        let ReadState {
            buffer,
            spans,
            row_spans,
        } = state;
        let comparator = &self.layout.clustering;
        let target = match &row.clustering {
            None => None,
            Some(bytes) => {
                parsed(comparator.parse_row(bytes, &mut 0, row_spans))?;
                Some(Prefix {
                    kind: Kind::Clustering,
                    base: bytes,
                    spans: row_spans,
                })
            }
        };
        let lookup = &self.lookup;
        let block = target.map(|row| lookup.block_of(&found, row, &self.types, comparator));
        let block = block.transpose()?.flatten();
        let (at, start) = match block {
            Some(offset) => (found.position + offset, Start::Row),
            None => (found.position, Start::Partition(Some(&row.key))),
        };
        self.read_rows(at, start, target, buffer, spans)
    }

    /// Reads from `position` on for the first row that is the target, or for any without one.
    fn read_rows(
        &self,
        position: u64,
        start: Start<'_>,
        target: Option<Prefix<'_>>,
        buffer: &mut ReadBuffer,
        spans: &mut Vec<ValueSpan>,
    ) -> Result<RowFound> {
        let layout = &self.layout;
        let mut at = 0;
        self.data.read_from(position, buffer, |bytes, remaining| {
            if let (0, Start::Partition(key)) = (at, start) {
                let Some(head) = parsed(PartitionHead::parse(bytes, layout.version))? else {
                    return Ok(None);
                };
                if key.is_some_and(|key| key != head.key(bytes)) {
                    return Ok(Some(RowFound::NotInIndex));
                }
                let mut len = head.len;
                if layout.has_static() {
                    let rest = bytes.get(len..).unwrap_or_default();
                    let left = remaining.saturating_sub(len as u64);
                    let Some(row) = parsed(parse_static_head(rest, layout, left))? else {
                        return Ok(None);
                    };
                    len += row.len;
                }
                at = len;
            }
            loop {
                let rest = bytes.get(at..).unwrap_or_default();
                let left = remaining.saturating_sub(at as u64);
                let Some(head) = parsed(parse_head(rest, layout, left, spans))? else {
                    return Ok(None);
                };
                let row = match head {
                    UnfilteredHead::EndOfPartition => return Ok(Some(RowFound::NoRow)),
                    UnfilteredHead::Marker(marker) => {
                        at += marker.len;
                        continue;
                    }
                    UnfilteredHead::Row(row) => row,
                };
                let here = Prefix {
                    kind: Kind::Clustering,
                    base: rest,
                    spans,
                };
                match target.map(|target| layout.clustering.compare(here, target)) {
                    Some(Ordering::Less) => at += row.len,
                    Some(Ordering::Greater) => return Ok(Some(RowFound::NoRow)),
                    Some(Ordering::Equal) | None => {
                        let start = position + at as u64;
                        return Ok(Some(RowFound::Row {
                            from: position,
                            position: start,
                            end: start + row.len as u64,
                        }));
                    }
                }
            }
        })
    }

    /// A row to be read again: the first of the block that `choose` picks by their number, or of the
    /// partition where it has no blocks. `None` where there is no row.
    ///
    /// # Errors
    /// Damage, or a failed read.
    pub(crate) fn row_of_partition(
        &self,
        found: &Found,
        choose: impl FnOnce(usize) -> usize,
        state: &mut ReadState,
    ) -> Result<Option<HotRow>> {
        let layout = &self.layout;
        let buffer = &mut state.buffer;
        let key: Box<[u8]> = self.data.read_from(found.position, buffer, |bytes, _| {
            let head = parsed(PartitionHead::parse(bytes, layout.version))?;
            Ok(head.map(|head| head.key(bytes).into()))
        })?;
        let mut row = HotRow {
            hash: self.partitioner.hash_key(&key),
            key,
            clustering: None,
        };
        if layout.clustering.is_empty() {
            let (start, spans) = (Start::Partition(None), &mut state.spans);
            let first = self.read_rows(found.position, start, None, buffer, spans)?;
            // A partition may be nothing but a deletion.
            return Ok(matches!(first, RowFound::Row { .. }).then_some(row));
        }
        let blocks = self.lookup.blocks(found, &layout.clustering)?;
        let (start, kind) = match blocks.get(choose(blocks.len().max(1))) {
            Some(offset) => (found.position + offset, Start::Row),
            None => (found.position, Start::Partition(None)),
        };
        let spans = &mut state.spans;
        let first = self.read_rows(start, kind, None, buffer, spans)?;
        let RowFound::Row { position, .. } = first else {
            return Ok(None);
        };
        row.clustering = self.data.read_from(position, buffer, |bytes, remaining| {
            let head = parsed(parse_head(bytes, layout, remaining, spans))?;
            Ok(head.map(|head| match head {
                UnfilteredHead::Row(row) => bytes
                    .get(row.clustering_start..row.clustering_end)
                    .map(Box::from),
                _ => None,
            }))
        })?;
        Ok(row.clustering.is_some().then_some(row))
    }
}

/// The Bloom filter of an SSTable, if it has one.
///
/// # Errors
/// Damage, or a failed read.
pub(crate) fn filter_of(io: &Io, sstable: &InputSstable) -> Result<Option<BloomFilter>> {
    if !sstable.has(Component::Filter) {
        return Ok(None);
    }
    let bytes = sstable.read_component(io, ReadMode::Buffered, Component::Filter)?;
    let path = sstable.descriptor.path(Component::Filter);
    let filter = BloomFilter::parse(&bytes, sstable.descriptor.version);
    Ok(Some(
        filter.map_err(|e| e.with_file(&path, Component::Filter))?,
    ))
}

/// Start of reading.
#[derive(Clone, Copy)]
enum Start<'a> {
    /// At the first byte of a partition, which is to have this key.
    Partition(Option<&'a [u8]>),
    /// At a row or marker.
    Row,
}

/// Result of a parser; `None` if it needs more bytes.
fn parsed<T>(result: Result<T, Stop>) -> Result<Option<T>, FormatError> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(Stop::Incomplete) => Ok(None),
        Err(Stop::Corrupt(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests;
