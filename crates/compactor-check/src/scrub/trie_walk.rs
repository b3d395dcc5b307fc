//! Positions of partitions according to the tries of the BTI format.
//!
//! They do not hold whole keys: a position is used only if a lookup of the key there leads back to it.

use compactor_engine::input::TrieFiles;
use compactor_sstable::bti::partitions::{PartitionEntries, PartitionIndex, PartitionPosition};
use compactor_sstable::bti::rows::RowIndex;
use compactor_sstable::partitioner::KeyHash;

/// Positions, in the order of the data.
#[derive(Debug)]
pub(super) struct TrieWalk<'a> {
    index: PartitionIndex<'a>,
    entries: PartitionEntries<'a>,
    rows: &'a [u8],
    /// Position returned last.
    here: Option<u64>,
}

impl<'a> TrieWalk<'a> {
    /// Starts before the first partition; `None` if the index is unreadable.
    pub(super) fn start(files: &'a TrieFiles) -> Option<TrieWalk<'a>> {
        let index = PartitionIndex::parse(&files.partitions).ok()?;
        Some(TrieWalk {
            entries: index.iter(),
            index,
            rows: &files.rows,
            here: None,
        })
    }

    /// Returns the next position that is not before `from`; `None` if there is none or the index is damaged there.
    pub(super) fn next_from(&mut self, from: u64) -> Option<u64> {
        while self.here.is_none_or(|here| here < from) {
            let entry = self.entries.next_entry().ok()??;
            // Positions of unreadable entries are unknown.
            self.here = self.resolve(entry.position).or(self.here);
        }
        self.here
    }

    /// Returns true if a lookup of this key leads to `position`.
    pub(super) fn leads_to(&self, key: &[u8], hash: &KeyHash, position: u64) -> bool {
        let found = self.index.candidate(hash, key).ok().flatten();
        found.and_then(|found| self.resolve(found)) == Some(position)
    }

    fn resolve(&self, position: PartitionPosition) -> Option<u64> {
        match position {
            PartitionPosition::Data(position) => Some(position),
            PartitionPosition::Rows(at) => {
                let rows = RowIndex::parse(self.rows, at).ok()?;
                Some(rows.data_position)
            }
        }
    }
}
