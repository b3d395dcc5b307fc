//! Choice of the position at which reading continues after damage.
//!
//! 1. At the next block of the partition in its promoted index, with the range tombstone that is open there
//!    according to the index.
//! 2. At the next partition that the index names, or at a block of a partition whose head is lost:
//!    key and deletion are in the index too.
//! 3. Without a usable `Index.db`, at the next partition of the tries, or the next position that looks like a partition:
//!    see [`super::search`].

use std::ops::Range;

use compactor_engine::merge::Observer;
use compactor_sstable::data::deletion_time::DeletionTime;

use super::current::Current;
use super::index_walk::{BlockStart, IndexWalk, block_in};
use super::loss::{LossKind, Owner};
use super::scan::{Scan, Start, Stop};
use super::{PARTITIONER, synthesis};
use crate::Result;
use crate::cancellation::check_cancelled;
use crate::verify::chunks::CheckedData;
use crate::verify::index::Entry;

impl<'a> Scan<'a> {
    /// Records the loss, and returns the start of the next stretch; `None` if there is none.
    pub(super) fn resume(
        &mut self,
        data: &mut CheckedData<'a>,
        stop: &Stop,
        observer: &mut dyn Observer,
    ) -> Result<Option<Start>> {
        let (open, lost_from) = self.close(stop.position);
        if !open.is_live() {
            self.lose_range_tombstone(lost_from, &open, "damage hides its end");
        }
        let mut index = self.index.take();
        let next = self.next_start(data, index.as_mut(), stop, lost_from, observer);
        self.index = index;
        next
    }

    fn next_start(
        &mut self,
        data: &mut CheckedData<'a>,
        mut index: Option<&mut IndexWalk<'a>>,
        stop: &Stop,
        mut lost_from: u64,
        observer: &mut dyn Observer,
    ) -> Result<Option<Start>> {
        let data_len = data.data_len();
        if let Some(index) = &mut index {
            index.seek(stop.position)?;
            if let Some(start) = index.here().and_then(|here| self.with_key_of(here, stop)) {
                return Ok(Some(start));
            }
        }
        while let Some(index) = &mut index {
            check_cancelled(observer)?;
            let end = index.next().map_or(data_len, |entry| entry.position);
            if let Some(here) = index.here()
                && let Some(block) = self.block(here, lost_from, stop.from..end)
            {
                return Ok(Some(self.go_on_inside(here, &block, lost_from, stop)));
            }
            let Some(entry) = index.next() else { break };
            // An entry that points backwards is damaged.
            if entry.position > lost_from {
                let (position, key) = (entry.position, entry.key.clone());
                self.lose_up_to(lost_from..position, index.here(), stop);
                self.break_off();
                lost_from = position;
                if position >= stop.from {
                    return Ok(Some(Start::at(position, Some(key))));
                }
            }
            index.advance()?;
        }
        let from = stop.from.max(lost_from + 1).min(data_len);
        let check = || check_cancelled(observer);
        let found = self
            .search
            .next(data, from..data_len, self.runs.last(), check)?;
        let here = index.and_then(|index| index.here());
        self.lose_up_to(lost_from..found.unwrap_or(data_len), here, stop);
        self.break_off();
        Ok(found.map(|position| Start::at(position, None)))
    }

    /// Records the loss as part of the current partition, of the one that the index has there, or of an unknown one.
    fn lose_up_to(&mut self, range: Range<u64>, here: Option<&Entry>, stop: &Stop) {
        // The data may end within a partition without a byte that is unreadable.
        if range.is_empty() && self.current.is_none() {
            return;
        }
        if self.current.is_some() {
            return self.lose(LossKind::Rows, range, &stop.reason);
        }
        match here.filter(|here| here.position == range.start) {
            Some(here) => {
                let owner = Some(owner(here));
                self.losses
                    .add(LossKind::Partition, range, owner, &stop.reason);
            }
            None => self.losses.add(LossKind::Bytes, range, None, &stop.reason),
        }
    }

    /// A block at which the damaged partition continues.
    fn block(&self, here: &Entry, lost_from: u64, range: Range<u64>) -> Option<BlockStart> {
        let is_same = match &self.current {
            Some(current) => current.key == here.key,
            None => here.position == lost_from && self.is_valid(&here.key),
        };
        if !is_same {
            return None;
        }
        let last = self.current.as_ref().and_then(Current::last);
        let block = block_in(here, range, self.layout, last)?;
        let open = block.open.as_ref().map(|(deletion, _)| *deletion);
        let deletions = [Some(block.partition_deletion), open];
        deletions
            .into_iter()
            .flatten()
            .all(|deletion| self.is_in_range(&deletion))
            .then_some(block)
    }

    fn go_on_inside(
        &mut self,
        here: &Entry,
        block: &BlockStart,
        lost_from: u64,
        stop: &Stop,
    ) -> Start {
        let lost = lost_from..block.position;
        if self.current.is_none() {
            let owner = Some(owner(here));
            self.losses.add(LossKind::Rows, lost, owner, &stop.reason);
            self.begin_partition(&here.key, here.hash, true);
            let head = synthesis::head(self.layout, &here.key, &block.partition_deletion);
            self.insert(head);
        } else {
            self.lose(LossKind::Rows, lost, &stop.reason);
        }
        let marker = block.marker(self.layout);
        let mut prefix = synthesis::head(self.layout, &here.key, &DeletionTime::LIVE);
        prefix.extend_from_slice(&marker);
        if let Some((deletion, name)) = &block.open {
            self.reopen(name, *deletion, marker);
        }
        Start {
            prefix,
            position: block.position,
            continues: true,
            key: None,
        }
    }

    /// Starts at a partition whose key is unreadable and has no checksum: the key is taken from the index.
    fn with_key_of(&mut self, here: &Entry, stop: &Stop) -> Option<Start> {
        let position = stop.position + 2 + here.key.len() as u64;
        let hash = here.hash;
        let is_behind = self
            .runs
            .last()
            .is_none_or(|last| last < (hash.token, &here.key[..]));
        if !stop.is_key_unreadable
            || here.position != stop.position
            || !is_behind
            || !self.is_valid(&here.key)
        {
            return None;
        }
        let reason = format!("{}; the key is taken from Index.db", stop.reason);
        let range = stop.position..position;
        self.losses
            .add(LossKind::Bytes, range, Some(owner(here)), &reason);
        let mut prefix = (here.key.len() as u16).to_be_bytes().to_vec();
        prefix.extend_from_slice(&here.key);
        Some(Start {
            prefix,
            position,
            continues: false,
            key: None,
        })
    }

    /// True if a key of the index may be one of this SSTable: the index has no checksum, and rows must not be
    /// salvaged under a key that was never written.
    fn is_valid(&self, key: &[u8]) -> bool {
        let hash = PARTITIONER.hash_key(key);
        !key.is_empty()
            && self.header.key_type.cql_type.validate(key).is_ok()
            && self
                .stored
                .filter
                .as_ref()
                .is_none_or(|f| f.may_contain_key(&hash))
    }

    /// True if Statistics.db, which has checksums, allows for this deletion of the index: a wrong one
    /// would delete intact data.
    fn is_in_range(&self, deletion: &DeletionTime) -> bool {
        let stats = &self.stored.input.statistics.stats;
        let timestamps = stats.min_timestamp..=stats.max_timestamp;
        let times = stats.min_local_deletion_time..=stats.max_local_deletion_time;
        deletion.is_live()
            || (timestamps.contains(&deletion.marked_for_delete_at)
                && times.contains(&deletion.local_deletion_time))
    }
}

fn owner(here: &Entry) -> Owner<'_> {
    Owner {
        key: &here.key,
        token: here.hash.token,
    }
}
