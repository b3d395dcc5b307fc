//! Check of a partition's promoted index against its rows and markers.
//!
//! Block boundaries depend on the writer's `column_index_size`, which no component records, and a partition may lack
//! a promoted index for the same reason (the cursor compaction of 6.0-alpha2 has a different rule). Blocks that exist
//! must be correct in every field.

use std::ops::Range;

use compactor_sstable::big::PromotedIndex;
use compactor_sstable::big::index_info::IndexInfo;
use compactor_sstable::data::clustering::{ClusteringComparator, Kind, ValueSpan};
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::{Component, Error as FormatError, Version};

use super::finding::{Findings, Location};
use super::index::Entry;
use super::short_hex;

/// An entry that has a promoted index.
#[derive(Clone, Copy, Debug)]
pub(super) struct Promoted<'a> {
    /// Collects the damage found.
    pub(super) findings: &'a Findings,
    pub(super) entry: &'a Entry,
    pub(super) version: Version,
    pub(super) comparator: &'a ClusteringComparator,
}

impl<'a> Promoted<'a> {
    pub(super) fn parse(&self) -> Result<PromotedIndex<'a>, FormatError> {
        let entry = self.entry;
        PromotedIndex::parse(&entry.promoted, self.version, entry.promoted_offset)
    }

    pub(super) fn wrong(&self, structure: &str, expected: impl ToString, found: impl ToString) {
        let place = Location::offset(Component::Index, self.entry.promoted_offset)
            .in_partition(short_hex(&self.entry.key));
        self.findings
            .damage(place, structure, expected.to_string(), found.to_string());
    }
}

/// Walks the blocks of a promoted index alongside the unfiltereds. Each call takes the [`Promoted`] that it was
/// opened with, so that it can be stored without borrowing.
#[derive(Debug)]
pub(super) struct BlockCheck {
    /// False if there is no promoted index, or it became unreadable.
    is_followed: bool,
    /// Number of the next block, and the position of the current one.
    next: usize,
    block: Option<Range<u64>>,
    /// Name of an unfiltered that the current block may end with, and the deletion open after it.
    last: Vec<u8>,
    open: DeletionTime,
    spans: Vec<ValueSpan>,
}

impl BlockCheck {
    /// Opens the promoted index of a partition whose rows begin at `header_len`.
    pub(super) fn open(of: Promoted<'_>, header_len: u64, deletion: &DeletionTime) -> BlockCheck {
        let mut check = BlockCheck {
            is_followed: false,
            next: 0,
            block: None,
            last: Vec::new(),
            open: DeletionTime::LIVE,
            spans: Vec::new(),
        };
        if of.entry.promoted.is_empty() {
            return check;
        }
        match of.parse() {
            Ok(index) => {
                if index.header_len != header_len {
                    of.wrong("promoted.header_length", header_len, index.header_len);
                }
                if index.deletion != *deletion {
                    of.wrong(
                        "promoted.deletion_time",
                        format!("that of the partition, {deletion:?}"),
                        format!("{:?}", index.deletion),
                    );
                }
                check.is_followed = true;
            }
            Err(error) => of.findings.parser(Component::Index, &error),
        }
        check
    }

    /// Stops the check, since one wrong block makes all later ones look wrong.
    fn give_up(&mut self) {
        self.is_followed = false;
        self.block = None;
    }

    fn block<'a>(&mut self, of: Promoted<'a>, number: usize) -> Option<IndexInfo<'a>> {
        let index = of.parse();
        let block = index.and_then(|index| index.block(number, of.comparator, &mut self.spans));
        match block {
            Ok(block) => Some(block),
            Err(error) => {
                of.findings.parser(Component::Index, &error);
                self.give_up();
                None
            }
        }
    }

    /// Checks a row or marker at the byte range `at` of the partition; `name` is its serialized prefix without the
    /// kind, `open` the deletion that is open after it. Returns a position: unfiltereds that end before it need not
    /// be passed.
    pub(super) fn unfiltered(
        &mut self,
        of: Promoted<'_>,
        at: Range<u64>,
        kind: Kind,
        name: &[u8],
        open: &DeletionTime,
    ) -> u64 {
        let end = at.end;
        if self.is_followed && end >= self.next_edge() {
            self.at_edge(of, at, kind, name, open);
        }
        self.next_edge()
    }

    /// Returns the end of the interior of the current block: unfiltereds that end before it cannot be checked.
    fn next_edge(&self) -> u64 {
        match &self.block {
            _ if !self.is_followed => u64::MAX,
            // The end byte may belong to the block.
            Some(block) => block.end.saturating_sub(1),
            None => 0,
        }
    }

    fn at_edge(
        &mut self,
        of: Promoted<'_>,
        at: Range<u64>,
        kind: Kind,
        name: &[u8],
        open: &DeletionTime,
    ) {
        if self.block.is_none() && !self.begin(of, at.start, kind, name) {
            return;
        }
        self.last.clear();
        self.last.push(kind as u8);
        self.last.extend_from_slice(name);
        self.open = *open;
        if let Some(block) = &self.block {
            if at.end == block.end {
                self.close(of);
            } else if at.end > block.end {
                let expected = format!(
                    "block {} of {} bytes or more, to the end of a row",
                    self.next - 1,
                    at.end - block.start
                );
                of.wrong("index_info.width", expected, block.end - block.start);
                self.give_up();
            }
        }
    }

    /// Checks that the next block begins at `start` with this name; false if it does not.
    fn begin(&mut self, of: Promoted<'_>, start: u64, kind: Kind, name: &[u8]) -> bool {
        let count = of.parse().map_or(0, |index| index.block_count());
        if self.next == count {
            let expected = format!("blocks for the rows from {start} of the partition on");
            of.wrong("promoted.count", expected, format!("{count} blocks"));
            self.give_up();
            return false;
        }
        let Some(block) = self.block(of, self.next) else {
            return false;
        };
        if block.offset != start {
            let expected = format!("block {} at {start}, where a row begins", self.next);
            of.wrong("index_info.offset", expected, block.offset);
            self.give_up();
            return false;
        }
        if block.first.split_first() != Some((&(kind as u8), name)) {
            let expected = format!("{:02x}{}", kind as u8, short_hex(name));
            of.wrong(
                "index_info.first_name",
                format!("{expected} in block {}", self.next),
                short_hex(block.first),
            );
        }
        self.block = Some(start..start.saturating_add(block.width));
        self.next += 1;
        true
    }

    /// Checks the current block, which ends with the last unfiltered.
    fn close(&mut self, of: Promoted<'_>) {
        self.block = None;
        let number = self.next - 1;
        let Some(block) = self.block(of, number) else {
            return;
        };
        if block.last != self.last {
            let expected = format!("{} in block {number}", short_hex(&self.last));
            of.wrong("index_info.last_name", expected, short_hex(block.last));
        }
        let open = (!self.open.is_live()).then_some(self.open);
        if block.open_marker != open {
            let expected = format!("{open:?} after block {number}");
            of.wrong(
                "index_info.open_marker",
                expected,
                format!("{:?}", block.open_marker),
            );
        }
    }

    /// The partition's end byte is at `end`.
    pub(super) fn finish(mut self, of: Promoted<'_>, end: u64) {
        if let Some(block) = &self.block {
            // The last block includes the end byte if the end of the partition closed it.
            if block.end != end + 1 {
                let expected = format!("a last block of {} bytes", end + 1 - block.start);
                of.wrong("index_info.width", expected, block.end - block.start);
                return;
            }
            self.close(of);
        }
        if self.is_followed
            && let Ok(index) = of.parse()
            && self.next < index.block_count()
        {
            let expected = format!("{} blocks, all of the rows", self.next);
            of.wrong("promoted.count", expected, index.block_count());
        }
    }
}
