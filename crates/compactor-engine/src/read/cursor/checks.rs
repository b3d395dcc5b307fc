//! Checks of the order and pairing that a merge relies on. Errors name the position.

use std::cmp::Ordering;

use compactor_sstable::Error as FormatError;
use compactor_sstable::data::clustering::Kind;
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::data::unfiltered::MarkerHead;

use super::Cursor;
use crate::error::{Error, Result};
use crate::read::expected_partitions::ExpectedPartitions;
use crate::read::hex::hex;
use crate::read::window::BlockSource;

impl<S: BlockSource> Cursor<S> {
    #[inline]
    pub(super) fn check_order(&self, kind: Kind) -> Result<()> {
        if let (Some(previous), Some(current)) = (
            self.previous.memcomparable_prefix,
            self.memcomparable_prefix,
        ) && previous < current
        {
            return Ok(());
        }
        self.compare_with_previous(kind)
    }

    fn compare_with_previous(&self, kind: Kind) -> Result<()> {
        let Some(previous_kind) = self.previous.kind else {
            return Ok(());
        };
        let previous = self.previous.prefix(previous_kind);
        let Some(current) = self.clustering() else {
            return Ok(());
        };
        match self.layout.clustering.compare(previous, current) {
            Ordering::Less => return Ok(()),
            Ordering::Equal if self.previous.continues_with(kind) => return Ok(()),
            Ordering::Equal | Ordering::Greater => {}
        }
        Err(self.corrupt(
            "unfiltered.clustering",
            "clusterings in ascending order",
            "one that does not sort after the previous one",
        ))
    }

    /// Validates the deletion of a partition against the extremes in `Statistics.db`.
    #[inline]
    pub(super) fn check_partition_deletion(&self, deletion: &DeletionTime) -> Result<()> {
        if deletion.is_live() {
            return Ok(());
        }
        let layout = &self.layout;
        let timestamp = deletion.marked_for_delete_at;
        let delta = timestamp.wrapping_sub(layout.min_timestamp) as u64;
        if !layout.timestamp_deltas.contains(delta) {
            return Err(self.corrupt(
                "partition.deletion",
                "a timestamp between the minimum and the maximum in Statistics.db",
                &timestamp.to_string(),
            ));
        }
        let seconds = deletion.local_deletion_time;
        if !layout.stated.has_deletion_time(seconds) {
            return Err(self.corrupt(
                "partition.deletion",
                "a local deletion time between the minimum and the maximum in Statistics.db",
                &seconds.to_string(),
            ));
        }
        Ok(())
    }

    pub(super) fn check_pairing(&mut self, head: &MarkerHead) -> Result<()> {
        if head.kind.is_close() {
            if self.open.is_live() {
                return Err(self.corrupt(
                    "marker",
                    "a bound that opens, since no range tombstone is open",
                    "one that closes",
                ));
            }
            if self.open != head.close {
                return Err(self.corrupt(
                    "marker.close_deletion",
                    &describe(&self.open),
                    &describe(&head.close),
                ));
            }
        } else if !self.open.is_live() {
            return Err(self.corrupt(
                "marker",
                "a bound that closes the open range tombstone",
                "one that opens",
            ));
        }
        self.open = head.open;
        Ok(())
    }

    pub(super) fn check_end(&self) -> Result<()> {
        // Positions ascend, so the last partition suffices.
        let below = self.range.as_ref().and_then(|range| range.below);
        if below.is_some_and(|below| self.places.partitions() > 0 && self.hash.position() >= below)
        {
            return Err(self.outside_range("before", "after"));
        }
        let Some(expected) = &self.expected else {
            return Ok(());
        };
        let partitions = self.places.partitions();
        if expected.count != partitions {
            return Err(self.corrupt(
                "partitions",
                &format!("{} of them, according to Statistics.db", expected.count),
                &partitions.to_string(),
            ));
        }
        self.check_key("last", |e| e.last_key.as_deref())
    }

    #[inline]
    pub(super) fn check_key(
        &self,
        which: &str,
        key: impl Fn(&ExpectedPartitions) -> Option<&[u8]>,
    ) -> Result<()> {
        match self.expected.as_ref().and_then(key) {
            Some(expected) if expected != self.key => Err(self.corrupt(
                "partition.key",
                &format!("{which} key {}, according to Statistics.db", hex(expected)),
                &hex(&self.key),
            )),
            _ => Ok(()),
        }
    }

    #[cold]
    pub(super) fn corrupt(&self, structure: &'static str, expected: &str, found: &str) -> Error {
        self.locate_error(FormatError::corrupt(structure, 0, expected, found))
    }

    #[cold]
    pub(super) fn outside_range(&self, expected: &str, found: &str) -> Error {
        let token = self.partitioner.token_text(&self.key);
        self.corrupt(
            "partition.key",
            &format!(
                "a partition {expected} the split point between ranges, according to the partition index"
            ),
            &format!("token {token} key {}, {found} it", hex(&self.key)),
        )
    }

    #[cold]
    pub(super) fn out_of_order_partition(&self, key: &[u8]) -> Error {
        let token = |key| self.partitioner.token_text(key);
        self.corrupt(
            "partition.key",
            &format!(
                "a partition after token {} key {}",
                token(&self.key),
                hex(&self.key)
            ),
            &format!("token {} key {}", token(key), hex(key)),
        )
    }
}

fn describe(deletion: &DeletionTime) -> String {
    format!(
        "marked for delete at {}, local deletion time {}",
        deletion.marked_for_delete_at, deletion.local_deletion_time
    )
}
