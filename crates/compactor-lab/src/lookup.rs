//! Positions of partitions and of rows in them, by summary and index, or by tries.
//!
//! Source: `BigTableReader.getRowIndexEntry`, `BtiTableReader.getExactPosition`.

use compactor::Result;
use compactor_io::MappedFile;
use compactor_sstable::big::index::{IndexEntry, IndexReader};
use compactor_sstable::big::index_info::PromotedIndex;
use compactor_sstable::big::summary::Summary;
use compactor_sstable::bti::partitions::{PartitionIndex, PartitionPosition};
use compactor_sstable::bti::rows::RowIndex;
use compactor_sstable::data::clustering::{ClusteringComparator, Prefix};
use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::partitioner::{KeyHash, Partitioner, Position};
use compactor_sstable::types::CqlType;
use compactor_sstable::{Component, Error as FormatError, Format, Version};

use crate::index_map::{expect_random, map};

/// The partition index of an SSTable.
#[derive(Debug)]
pub(crate) enum PartitionLookup {
    /// `Summary.db` in memory, `Index.db` mapped.
    Big {
        /// The sample.
        summary: Summary,
        /// Position of each of its entries in the ring.
        positions: Vec<Position>,
        index: MappedFile,
        version: Version,
    },
    /// `Partitions.db` and `Rows.db` mapped.
    Bti {
        partitions: MappedFile,
        /// `None` where no partition has a row index.
        rows: Option<MappedFile>,
    },
}

/// Position of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// Offset in the uncompressed `Data.db`.
    pub(crate) position: u64,
    pub(crate) blocks: BlockIndex,
}

/// Index of the rows of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockIndex {
    /// Nothing: it is short.
    None,
    /// A promoted index at `start..end` of `Index.db`.
    Promoted { start: usize, end: usize },
    /// An entry at this position of `Rows.db`.
    Rows(u64),
}

impl PartitionLookup {
    /// Opens the index of an SSTable.
    ///
    /// # Errors
    /// Damage, or a failed read.
    pub(crate) fn open(descriptor: &Descriptor, partitioner: Partitioner) -> Result<Self> {
        let path = |component| descriptor.path(component);
        if descriptor.version.format() == Format::Bti {
            let rows = path(Component::Rows);
            let is_empty = std::fs::metadata(&rows).map_or(true, |found| found.len() == 0);
            let partitions = map(&path(Component::Partitions))?;
            return Ok(PartitionLookup::Bti {
                partitions,
                rows: (!is_empty).then(|| map(&rows)).transpose()?,
            });
        }
        let summary_path = path(Component::Summary);
        let bytes = std::fs::read(&summary_path);
        let bytes = bytes.map_err(compactor::Error::file("read", &summary_path))?;
        let summary = Summary::parse(&bytes, descriptor.version)
            .map_err(|e| e.with_file(&summary_path, Component::Summary))?;
        let keys = summary.entries().map(|(key, _)| partitioner.position(key));
        Ok(PartitionLookup::Big {
            positions: keys.collect(),
            summary,
            index: map(&path(Component::Index))?,
            version: descriptor.version,
        })
    }

    /// See [`PointReader::expect_random`](crate::point_read::PointReader::expect_random).
    pub(crate) fn expect_random(&self) {
        match self {
            PartitionLookup::Big { index, .. } => expect_random(index),
            PartitionLookup::Bti { partitions, rows } => {
                expect_random(partitions);
                rows.iter().for_each(expect_random);
            }
        }
    }

    /// Position of the partition with this key, if there is one. With tries, whose keys are cut short, it may
    /// be that of another partition.
    ///
    /// # Errors
    /// Damage on the way.
    pub(crate) fn find(&self, key: &[u8], hash: &KeyHash) -> Result<Option<Found>> {
        match self {
            PartitionLookup::Big {
                summary,
                positions,
                index,
                ..
            } => find_in_index(summary, positions, index, key, hash),
            PartitionLookup::Bti { partitions, rows } => {
                let damaged = in_file(partitions, Component::Partitions);
                let tries = PartitionIndex::parse(partitions).map_err(&damaged)?;
                let found = tries.candidate(hash, key).map_err(damaged)?;
                found
                    .map(|position| place_of(position, rows.as_ref()))
                    .transpose()
            }
        }
    }

    /// Begin of the block that has a row, or would have it, from the partition's first byte. `None` to
    /// read from the partition's first row on.
    ///
    /// # Errors
    /// Damage on the way.
    pub(crate) fn block_of(
        &self,
        found: &Found,
        row: Prefix<'_>,
        types: &[CqlType],
        comparator: &ClusteringComparator,
    ) -> Result<Option<u64>> {
        if let Some((index, rows)) = self.row_index(found)? {
            let block = index.floor(types, row);
            return Ok(Some(block.map_err(in_file(rows, Component::Rows))?.offset));
        }
        let Some(promoted) = self.promoted(found)? else {
            return Ok(None);
        };
        let mut spans = Vec::new();
        let (mut low, mut high) = (0, promoted.block_count());
        let mut offset = None;
        // The last block that does not begin after the row.
        while low < high {
            let middle = low + (high - low) / 2;
            let block = promoted.block(middle, comparator, &mut spans)?;
            let first = comparator.parse_name(block.first, &mut spans)?;
            if comparator.compare(first, row).is_le() {
                offset = Some(block.offset);
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(offset)
    }

    /// Begin of each block of a partition, from its first byte; empty for a short one.
    ///
    /// # Errors
    /// Damage on the way.
    pub(crate) fn blocks(
        &self,
        found: &Found,
        comparator: &ClusteringComparator,
    ) -> Result<Vec<u64>> {
        if let Some((index, rows)) = self.row_index(found)? {
            let damaged = in_file(rows, Component::Rows);
            let mut blocks = index.blocks();
            let mut offsets = Vec::new();
            while let Some(block) = blocks.next_block().map_err(&damaged)? {
                offsets.push(block.offset);
            }
            // The last is the partition's end.
            offsets.pop();
            return Ok(offsets);
        }
        let Some(promoted) = self.promoted(found)? else {
            return Ok(Vec::new());
        };
        let mut spans = Vec::new();
        (0..promoted.block_count())
            .map(|i| Ok(promoted.block(i, comparator, &mut spans)?.offset))
            .collect()
    }

    /// The row index of a partition, and its file; `None` if it has none.
    fn row_index(&self, found: &Found) -> Result<Option<(RowIndex<'_>, &MappedFile)>> {
        match (self, found.blocks) {
            (
                PartitionLookup::Bti {
                    rows: Some(rows), ..
                },
                BlockIndex::Rows(at),
            ) => Ok(Some((rows_at(rows, at)?, rows))),
            _ => Ok(None),
        }
    }

    fn promoted(&self, found: &Found) -> Result<Option<PromotedIndex<'_>>> {
        match (self, found.blocks) {
            (PartitionLookup::Big { index, version, .. }, BlockIndex::Promoted { start, end }) => {
                let bytes = index.get(start..end).unwrap_or_default();
                let parsed = PromotedIndex::parse(bytes, *version, start as u64);
                Ok(Some(parsed.map_err(in_file(index, Component::Index))?))
            }
            _ => Ok(None),
        }
    }

    /// Calls `each` with the position of every partition, in order, until it fails.
    ///
    /// # Errors
    /// Damage on the way, or that of `each`.
    pub(crate) fn for_each(&self, mut each: impl FnMut(Found) -> Result<()>) -> Result<()> {
        match self {
            PartitionLookup::Big { index, .. } => {
                let mut reader = IndexReader::new(index);
                while let Some(entry) = reader.next() {
                    let entry = entry.map_err(in_file(index, Component::Index))?;
                    each(found_of(&entry, reader.offset()))?;
                }
            }
            PartitionLookup::Bti { partitions, rows } => {
                let damaged = in_file(partitions, Component::Partitions);
                let mut entries = PartitionIndex::parse(partitions).map_err(&damaged)?.iter();
                while let Some(entry) = entries.next_entry().map_err(&damaged)? {
                    each(place_of(entry.position, rows.as_ref())?)?;
                }
            }
        }
        Ok(())
    }
}

/// Summary, then the part of the index between two of its entries.
fn find_in_index(
    summary: &Summary,
    positions: &[Position],
    index: &MappedFile,
    key: &[u8],
    hash: &KeyHash,
) -> Result<Option<Found>> {
    let position = hash.position();
    let mut next = positions.partition_point(|entry| *entry < position);
    // Keys of one position are in their own order.
    while positions.get(next) == Some(&position)
        && summary.entry(next).is_some_and(|entry| entry.0 <= key)
    {
        next += 1;
    }
    let Some((_, start)) = next.checked_sub(1).and_then(|i| summary.entry(i)) else {
        return Ok(None);
    };
    let end = summary.entry(next).map(|(_, position)| position as usize);
    let end = end.unwrap_or(index.len());
    let bytes = index.get(start as usize..end).unwrap_or_default();
    let mut reader = IndexReader::with_base(bytes, start);
    while let Some(entry) = reader.next() {
        let entry = entry.map_err(in_file(index, Component::Index))?;
        if entry.key == key {
            return Ok(Some(found_of(&entry, reader.offset())));
        }
    }
    Ok(None)
}

/// The entry ends at `end` of `Index.db`.
fn found_of(entry: &IndexEntry<'_>, end: u64) -> Found {
    let end = end as usize;
    Found {
        position: entry.position,
        blocks: match entry.promoted.len() {
            0 => BlockIndex::None,
            len => BlockIndex::Promoted {
                start: end - len,
                end,
            },
        },
    }
}

fn place_of(position: PartitionPosition, rows: Option<&MappedFile>) -> Result<Found> {
    match (position, rows) {
        (PartitionPosition::Data(position), _) => Ok(Found {
            position,
            blocks: BlockIndex::None,
        }),
        (PartitionPosition::Rows(at), Some(rows)) => Ok(Found {
            position: rows_at(rows, at)?.data_position,
            blocks: BlockIndex::Rows(at),
        }),
        (PartitionPosition::Rows(at), None) => Err(FormatError::corrupt(
            "partition_index.position",
            0,
            "a position in Data.db, as Rows.db is empty",
            format!("{at} in Rows.db"),
        )
        .into()),
    }
}

/// An entry of `Rows.db`.
fn rows_at(rows: &MappedFile, at: u64) -> Result<RowIndex<'_>> {
    Ok(RowIndex::parse(rows, at).map_err(in_file(rows, Component::Rows))?)
}

/// Adds its file to an error.
fn in_file(file: &MappedFile, component: Component) -> impl Fn(FormatError) -> FormatError {
    move |error| error.with_file(file.path(), component)
}
