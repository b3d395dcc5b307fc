//! Partition index of either format, in lockstep with `Data.db`.

use std::ops::Range;

use compactor_io::IoError;
use compactor_sstable::data::clustering::{ClusteringComparator, Kind};
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::partitioner::{KeyHash, Partitioner};
use compactor_sstable::{Component, Version};

use super::bti_index::{TrieBlockCheck, TrieScan};
use super::finding::{Findings, Location};
use super::index::IndexScan;
use super::promoted::{BlockCheck, Promoted};
use super::short_hex;

/// Reads the entries of a partition index and checks them against one another.
#[derive(Debug)]
pub(super) enum PartitionScan<'a> {
    /// `Index.db`.
    Big(IndexScan<'a>),
    /// `Partitions.db` and `Rows.db`.
    Bti(TrieScan<'a>),
}

impl<'a> PartitionScan<'a> {
    /// Returns the component that lists the partitions.
    pub(super) fn component(&self) -> Component {
        match self {
            PartitionScan::Big(_) => Component::Index,
            PartitionScan::Bti(_) => Component::Partitions,
        }
    }

    /// Advances to the next entry; false at the end, or where the index becomes unreadable.
    pub(super) fn advance(&mut self) -> Result<bool, IoError> {
        match self {
            PartitionScan::Big(scan) => scan.advance(),
            PartitionScan::Bti(scan) => Ok(scan.advance()),
        }
    }

    /// Returns the start of the current entry's partition; `None` if there is no entry.
    pub(super) fn position(&self) -> Option<u64> {
        match self {
            PartitionScan::Big(scan) => scan.entry().map(|entry| entry.position),
            PartitionScan::Bti(scan) => scan.entry().map(|entry| entry.position),
        }
    }

    /// Returns the location of the current entry, for messages.
    pub(super) fn place(&self) -> Location {
        match self {
            PartitionScan::Big(scan) => match scan.entry() {
                Some(entry) => Location::offset(Component::Index, entry.offset),
                None => Location::of(Component::Index),
            },
            PartitionScan::Bti(scan) => match scan.entry() {
                Some(entry) => entry.place(),
                None => Location::of(Component::Partitions),
            },
        }
    }

    /// Describes the key of the current entry, or its prefix in the index.
    pub(super) fn describe(&self) -> String {
        match self {
            PartitionScan::Big(scan) => scan.entry().map(|entry| short_hex(&entry.key)),
            PartitionScan::Bti(scan) => scan.entry().map(|entry| entry.describe()),
        }
        .unwrap_or_default()
    }

    /// Returns true if the current entry is the one of this key.
    pub(super) fn is_of(&self, key: &[u8], hash: &KeyHash) -> bool {
        match self {
            PartitionScan::Big(scan) => scan.entry().is_some_and(|entry| entry.key == key),
            PartitionScan::Bti(scan) => scan.leads_here(key, hash),
        }
    }

    /// Locates and describes the mismatch of the current entry with this key.
    pub(super) fn other_key(&self, key: &[u8]) -> (Location, String) {
        match self {
            PartitionScan::Big(_) => (self.place(), self.describe()),
            PartitionScan::Bti(scan) => scan.other_key(key),
        }
    }

    /// Hash of the current entry's key, where the index has whole keys.
    pub(super) fn key_hash(&self) -> Option<KeyHash> {
        match self {
            PartitionScan::Big(scan) => scan.entry().map(|entry| entry.hash),
            PartitionScan::Bti(scan) => {
                let key = scan.entry()?.key()?;
                Some(Partitioner::Murmur3.hash_key(key))
            }
        }
    }

    /// Returns true if the index has whole keys.
    pub(super) fn has_keys(&self) -> bool {
        matches!(self, PartitionScan::Big(_))
    }

    /// Returns true if every entry was read.
    pub(super) fn is_complete(&self) -> bool {
        match self {
            PartitionScan::Big(scan) => scan.is_complete(),
            PartitionScan::Bti(scan) => scan.is_complete(),
        }
    }

    /// Number of entries read.
    pub(super) fn count(&self) -> u64 {
        match self {
            PartitionScan::Big(scan) => scan.count(),
            PartitionScan::Bti(scan) => scan.count(),
        }
    }

    /// Key of the first and of the last partition, once all entries have been read.
    pub(super) fn ends(&self) -> Option<(&[u8], &[u8])> {
        match self {
            PartitionScan::Big(scan) => scan.ends(),
            PartitionScan::Bti(scan) => scan.ends(),
        }
    }

    /// Checks the components derived from the entries, once all were read.
    pub(super) fn finish(&self) {
        if let PartitionScan::Big(scan) = self {
            scan.finish();
        }
    }

    /// Checks the first and last key, once all of the data was read.
    pub(super) fn check_ends(&self, first: &[u8], last: &[u8]) {
        if let PartitionScan::Bti(scan) = self {
            scan.check_ends(first, last);
        }
    }

    /// Starts the check of the current partition's row index, whose rows begin at `header_len`.
    pub(super) fn row_blocks<'b>(
        &'b self,
        findings: &'b Findings,
        version: Version,
        comparator: &'b ClusteringComparator,
        header_len: u64,
        deletion: &DeletionTime,
    ) -> Option<RowBlocks<'b>>
    where
        'a: 'b,
    {
        match self {
            PartitionScan::Big(scan) => scan.entry().map(|entry| {
                let promoted = Promoted {
                    findings,
                    entry,
                    version,
                    comparator,
                };
                RowBlocks::Big(promoted, BlockCheck::open(promoted, header_len, deletion))
            }),
            PartitionScan::Bti(scan) => scan
                .row_blocks(comparator, header_len, deletion)
                .map(|check| RowBlocks::Bti(Box::new(check))),
        }
    }
}

/// Walks the blocks of a partition's row index alongside its rows and markers.
pub(super) enum RowBlocks<'a> {
    /// A promoted index.
    Big(Promoted<'a>, BlockCheck),
    /// A row trie.
    Bti(Box<TrieBlockCheck<'a>>),
}

impl RowBlocks<'_> {
    /// Checks a row or marker at the byte range `at` of the partition; `name` is its serialized prefix without the
    /// kind, `open` the deletion that is open after it.
    #[inline]
    pub(super) fn unfiltered(
        &mut self,
        at: Range<u64>,
        kind: Kind,
        name: &[u8],
        open: &DeletionTime,
    ) {
        match self {
            RowBlocks::Big(of, check) => {
                check.unfiltered(*of, at, kind, name, open);
            }
            RowBlocks::Bti(check) => check.unfiltered(at.start, kind, name, open),
        }
    }

    /// The partition's end byte is at `end`.
    pub(super) fn finish(self, end: u64) {
        match self {
            RowBlocks::Big(of, check) => check.finish(of, end),
            RowBlocks::Bti(check) => check.finish(end),
        }
    }
}
