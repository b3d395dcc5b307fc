//! The promoted index of one partition against the partition's rows and markers.
//!
//! Where blocks end depends on the writer's `column_index_size`, which no component tells, and a
//! partition may lack a promoted index for the same reason (the cursor compaction of 6.0-alpha2 has
//! a rule of its own). What is there must be right in every field.

use compactor_sstable::big::PromotedIndex;
use compactor_sstable::big::index_info::IndexInfo;
use compactor_sstable::data::clustering::{ClusteringComparator, Kind, ValueSpan};
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::{Component, Version};

use super::finding::{Findings, Place};
use super::index::Entry;
use super::short_hex;

/// Walks the blocks of a promoted index beside the unfiltereds.
pub(super) struct BlockCheck<'a> {
    findings: &'a Findings,
    comparator: &'a ClusteringComparator,
    place: Place,
    index: Option<PromotedIndex<'a>>,
    spans: Vec<ValueSpan>,
    next: usize,
    block: Option<IndexInfo<'a>>,
    last: Vec<u8>,
    open: DeletionTime,
}

impl<'a> BlockCheck<'a> {
    /// Opens the promoted index of a partition whose rows begin at `header_len`.
    pub(super) fn open(
        findings: &'a Findings,
        entry: &'a Entry,
        version: Version,
        comparator: &'a ClusteringComparator,
        header_len: u64,
        deletion: &DeletionTime,
    ) -> BlockCheck<'a> {
        let place = Place::offset(Component::Index, entry.promoted_offset)
            .in_partition(short_hex(&entry.key));
        let mut check = BlockCheck {
            findings,
            comparator,
            place,
            index: None,
            spans: Vec::new(),
            next: 0,
            block: None,
            last: Vec::new(),
            open: DeletionTime::LIVE,
        };
        if entry.promoted.is_empty() {
            return check;
        }
        let index = match PromotedIndex::parse(&entry.promoted, version, entry.promoted_offset) {
            Ok(index) => index,
            Err(error) => {
                findings.parser(Component::Index, &error);
                return check;
            }
        };
        if index.header_len != header_len {
            check.wrong("promoted.header_length", header_len, index.header_len);
        }
        if index.deletion != *deletion {
            check.wrong(
                "promoted.deletion_time",
                format!("that of the partition, {deletion:?}"),
                format!("{:?}", index.deletion),
            );
        }
        check.index = Some(index);
        check
    }

    fn wrong(&self, structure: &str, expected: impl ToString, found: impl ToString) {
        let place = self.place.clone();
        self.findings
            .damage(place, structure, expected.to_string(), found.to_string());
    }

    /// One wrong block makes all later ones look wrong.
    fn give_up(&mut self, structure: &str, expected: impl ToString, found: impl ToString) {
        self.wrong(structure, expected, found);
        self.index = None;
        self.block = None;
    }

    /// A row or marker that occupies `start..end` of the partition; `name` is its serialized
    /// prefix without the kind, `open` the deletion that is open behind it.
    #[inline]
    pub(super) fn unfiltered(
        &mut self,
        start: u64,
        end: u64,
        kind: Kind,
        name: &[u8],
        open: &DeletionTime,
    ) {
        if self.index.is_some() {
            self.in_block(start, end, kind, name, open);
        }
    }

    fn in_block(&mut self, start: u64, end: u64, kind: Kind, name: &[u8], open: &DeletionTime) {
        if self.block.is_none() {
            let Some(index) = &self.index else { return };
            if self.next == index.block_count() {
                let expected = format!("blocks for the rows from {start} of the partition on");
                return self.give_up("promoted.count", expected, format!("{} blocks", self.next));
            }
            let block = match index.block(self.next, self.comparator, &mut self.spans) {
                Ok(block) => block,
                Err(error) => {
                    self.findings.parser(Component::Index, &error);
                    self.index = None;
                    return;
                }
            };
            if block.offset != start {
                let expected = format!("block {} at {start}, where a row begins", self.next);
                return self.give_up("index_info.offset", expected, block.offset);
            }
            self.check_name("index_info.first_name", block.first, kind, name);
            self.block = Some(block);
            self.next += 1;
        }
        self.last.clear();
        self.last.push(kind as u8);
        self.last.extend_from_slice(name);
        self.open = *open;
        if let Some(block) = &self.block {
            let block_end = block.offset.saturating_add(block.width);
            if end == block_end {
                self.close();
            } else if end > block_end {
                let expected = format!(
                    "block {} of {} bytes or more, to the end of a row",
                    self.next - 1,
                    end - block.offset
                );
                let found = block.width;
                self.give_up("index_info.width", expected, found);
            }
        }
    }

    fn check_name(&self, structure: &str, found: &[u8], kind: Kind, name: &[u8]) {
        if found.split_first() != Some((&(kind as u8), name)) {
            let expected = format!("{:02x}{}", kind as u8, short_hex(name));
            self.wrong(
                structure,
                format!("{expected} in block {}", self.next),
                short_hex(found),
            );
        }
    }

    /// The block ends with the last unfiltered.
    fn close(&mut self) {
        let Some(block) = self.block.take() else {
            return;
        };
        if block.last != self.last {
            let expected = format!("{} in block {}", short_hex(&self.last), self.next - 1);
            self.wrong("index_info.last_name", expected, short_hex(block.last));
        }
        let open = (!self.open.is_live()).then_some(self.open);
        if block.open_marker != open {
            let expected = format!("{open:?} behind block {}", self.next - 1);
            self.wrong(
                "index_info.open_marker",
                expected,
                format!("{:?}", block.open_marker),
            );
        }
    }

    /// The partition's end byte is at `end`.
    pub(super) fn finish(mut self, end: u64) {
        if let Some(block) = &self.block {
            // The last block includes the end byte where it was closed by it.
            if block.offset.saturating_add(block.width) != end + 1 {
                let expected = format!("a last block of {} bytes", end + 1 - block.offset);
                let found = block.width;
                return self.give_up("index_info.width", expected, found);
            }
            self.close();
        }
        if let Some(index) = &self.index
            && self.next < index.block_count()
        {
            let found = index.block_count();
            self.wrong(
                "promoted.count",
                format!("{} blocks, all of the rows", self.next),
                found,
            );
        }
    }
}
