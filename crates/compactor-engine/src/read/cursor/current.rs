//! Accessors of the cursor's current partition and unfiltered.

use compactor_sstable::data::clustering::{Kind, Prefix};
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::data::plain_row::PlainRow;
use compactor_sstable::data::row::RowRef;
use compactor_sstable::data::unfiltered::{MarkerHead, RowHead};
use compactor_sstable::partitioner::{KeyHash, Position};

use super::found_rows::FoundRow;
use super::{Cursor, CursorState};
use crate::read::window::BlockSource;

impl<S: BlockSource> Cursor<S> {
    /// Uncompressed position of the current element.
    #[inline]
    pub fn position(&self) -> u64 {
        self.window.position()
    }

    /// Uncompressed position of the current partition.
    #[inline]
    pub fn partition_position(&self) -> u64 {
        self.partition_position
    }

    /// Key of the current partition.
    #[inline]
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// Token of the current partition.
    #[inline]
    pub fn token(&self) -> i64 {
        self.hash.token
    }

    /// Position of the current partition in ring order.
    #[inline]
    pub fn position_in_ring(&self) -> Position {
        self.hash.position()
    }

    /// All hashes of the current partition's key.
    #[inline]
    pub fn key_hash(&self) -> KeyHash {
        self.hash
    }

    /// Deletion of the current partition.
    #[inline]
    pub fn partition_deletion(&self) -> DeletionTime {
        self.deletion
    }

    /// False after the last partition.
    #[inline]
    pub fn has_partition(&self) -> bool {
        self.has_partition
    }

    /// Whether the current partition has a static row that is not empty.
    #[inline]
    pub fn has_static_content(&self) -> bool {
        self.layout.has_static() && !self.static_is_empty
    }

    /// The static row, until the cursor moves to the first unfiltered.
    pub fn static_row(&self) -> Option<RowRef<'_>> {
        match self.state {
            CursorState::StaticRow(ref head) => Some(RowRef {
                bytes: self.window.bytes(),
                head,
                layout: &self.layout,
            }),
            _ => None,
        }
    }

    /// Whether the current marker is an opening bound that directly follows a closing bound at the same
    /// clustering: Cassandra writes the two as one boundary.
    pub fn is_second_half(&self) -> bool {
        let (Some(previous_kind), Some(current)) = (self.previous.kind, self.clustering()) else {
            return false;
        };
        let previous = self.previous.prefix(previous_kind);
        self.previous.continues_with(current.kind)
            && self.layout.clustering.compare(previous, current).is_eq()
    }

    /// Clustering of the current unfiltered; `None` at the end of the partition.
    #[inline]
    pub fn clustering(&self) -> Option<Prefix<'_>> {
        let (kind, spans) = match &self.state {
            CursorState::Row => {
                let spans = self.found.spans(self.layout.clustering.len());
                (Kind::Clustering, spans)
            }
            CursorState::Marker(head) => (head.kind, &self.spans[..]),
            _ => return None,
        };
        Some(Prefix {
            kind,
            base: self.window.bytes(),
            spans,
        })
    }

    /// Number that sorts as the current clustering does, unless it equals that of another clustering: see
    /// [`ClusteringComparator::memcomparable_prefix`](compactor_sstable::data::clustering::ClusteringComparator::memcomparable_prefix).
    #[inline]
    pub(crate) fn memcomparable_prefix(&self) -> Option<u64> {
        self.memcomparable_prefix
    }

    /// The current row.
    #[inline(always)]
    pub fn row(&self) -> Option<RowRef<'_>> {
        Some(RowRef {
            bytes: self.window.bytes(),
            head: self.row_head()?,
            layout: &self.layout,
        })
    }

    /// Offsets of the parts of the current row.
    #[inline(always)]
    pub(super) fn row_head(&self) -> Option<&RowHead> {
        if self.is_on_row() {
            Some(&self.found.current()?.head)
        } else {
            None
        }
    }

    #[inline(always)]
    pub(super) fn is_on_row(&self) -> bool {
        matches!(self.state, CursorState::Row)
    }

    /// Whether the current unfiltered is a plain row.
    #[inline(always)]
    pub(crate) fn is_on_plain_row(&self) -> bool {
        self.is_on_row() && self.found.current().is_some_and(FoundRow::is_plain)
    }

    /// The current row, if it is plain.
    #[inline(always)]
    pub(crate) fn plain_row(&self) -> Option<PlainRow<'_>> {
        if self.is_on_row() {
            self.found.current()?.plain(self.window.bytes())
        } else {
            None
        }
    }

    /// The current range tombstone marker.
    #[inline]
    pub fn marker(&self) -> Option<MarkerHead> {
        match self.state {
            CursorState::Marker(head) => Some(head),
            _ => None,
        }
    }
}
