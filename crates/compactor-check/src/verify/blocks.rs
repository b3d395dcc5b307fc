//! Checks of a promoted index without the data: its blocks against one another, the partition's header and its
//! length.
//!
//! A merge runs these checks on every promoted index, including those of SSTables whose rows it does not read. Names,
//! deletions and positions between the first and the last block can only be validated against the rows;
//! [`super::promoted`] does that.

use std::cmp::Ordering;

use compactor_sstable::big::PromotedIndex;
use compactor_sstable::data::clustering::{Kind, ValueSpan};
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::data::layout::Layout;
use compactor_sstable::{Component, Error as FormatError};

use super::finding::Findings;
use super::index::Entry;
use super::promoted::Promoted;
use super::short_hex;

/// Checks the promoted indexes of one SSTable.
pub(super) struct BlocksCheck<'a> {
    findings: &'a Findings,
    layout: &'a Layout,
    /// Values of the two names that are being compared.
    spans: [Vec<ValueSpan>; 2],
}

impl<'a> BlocksCheck<'a> {
    pub(super) fn new(findings: &'a Findings, layout: &'a Layout) -> BlocksCheck<'a> {
        BlocksCheck {
            findings,
            layout,
            spans: Default::default(),
        }
    }

    /// Checks the promoted index, if any, of a partition of `partition_len` bytes.
    pub(super) fn entry(&mut self, entry: &Entry, partition_len: u64) {
        if entry.promoted.is_empty() {
            return;
        }
        let of = Promoted {
            findings: self.findings,
            entry,
            version: self.layout.version,
            comparator: &self.layout.clustering,
        };
        let checked = of.parse().and_then(|index| {
            self.head(of, &index);
            self.chain(of, &index, partition_len)
        });
        if let Err(error) = checked {
            self.findings.parser(Component::Index, &error);
        }
    }

    /// Checks the key, the deletion, and the static row where there may be one.
    fn head(&self, of: Promoted<'_>, index: &PromotedIndex<'_>) {
        let mut deletion = Vec::new();
        index.deletion.write(&mut deletion, self.layout.version);
        let least = 2 + of.entry.key.len() as u64 + deletion.len() as u64;
        let (is_right, or_more) = if self.layout.has_static() {
            (index.header_len > least, ", and a static row")
        } else {
            (index.header_len == least, "")
        };
        if !is_right {
            let expected = format!("{least}, key and deletion{or_more}");
            of.wrong("promoted.header_length", expected, index.header_len);
        }
    }

    /// Checks that each block begins where the previous one ends, and that names ascend. Stops at the first
    /// contradiction, since it makes all later blocks look wrong.
    fn chain(
        &mut self,
        of: Promoted<'_>,
        index: &PromotedIndex<'_>,
        partition_len: u64,
    ) -> Result<(), FormatError> {
        let mut end = index.header_len;
        let mut last: &[u8] = &[];
        let mut open: Option<DeletionTime> = None;
        for number in 0..index.block_count() {
            let block = index.block(number, &self.layout.clustering, &mut self.spans[0])?;
            if block.offset != end {
                let expected = format!("block {number} at {end}, after the previous block");
                of.wrong("index_info.offset", expected, block.offset);
                return Ok(());
            }
            end = end.saturating_add(block.width);
            if number > 0 && !self.ascend(last, block.first)? {
                let expected = format!("block {number} to begin after {}", short_hex(last));
                of.wrong("index_info.first_name", expected, short_hex(block.first));
                return Ok(());
            }
            // A marker that closes needs an open deletion before it, one that opens must not have it.
            let (opens, closes) = sides(block.first);
            if (opens || closes) && closes != open.is_some() {
                let expected = format!("{} in block {number}", closing(open.is_some()));
                of.wrong("index_info.first_name", expected, short_hex(block.first));
                return Ok(());
            }
            last = block.last;
            if block.first != last && !self.ascend(block.first, last)? {
                let expected = format!("block {number} to end after {}", short_hex(block.first));
                of.wrong("index_info.last_name", expected, short_hex(last));
                return Ok(());
            }
            open = block.open_marker;
            let (opens, closes) = sides(last);
            let is_last = number + 1 == index.block_count();
            let is_wrong = open.is_some_and(|deletion| deletion.is_live())
                || ((opens || closes) && opens != open.is_some())
                || (is_last && open.is_some());
            if is_wrong {
                let what = if is_last || !opens {
                    "none after"
                } else {
                    "one after"
                };
                let expected = format!("{what} block {number}, by its last name");
                of.wrong("index_info.open_marker", expected, format!("{open:?}"));
                return Ok(());
            }
        }
        // The last block includes the partition's end byte where that closed it.
        if end != partition_len && end.checked_add(1) != Some(partition_len) {
            let expected = format!("blocks up to {partition_len}, the partition's end");
            of.wrong("index_info.width", expected, end);
        }
        Ok(())
    }

    /// Returns true if `after` sorts after `before`.
    fn ascend(&mut self, before: &[u8], after: &[u8]) -> Result<bool, FormatError> {
        let comparator = &self.layout.clustering;
        let [spans, more_spans] = &mut self.spans;
        let before = comparator.parse_name(before, spans)?;
        let after = comparator.parse_name(after, more_spans)?;
        Ok(match comparator.compare(before, after) {
            Ordering::Less => true,
            // Some writers leave a closing and an opening bound where Cassandra writes a boundary.
            Ordering::Equal => {
                let (before, after) = (before.kind, after.kind);
                !before.is_open() && before.is_close() && after.is_open() && !after.is_close()
            }
            Ordering::Greater => false,
        })
    }
}

/// Whether a name is that of a marker that opens, and of one that closes.
fn sides(name: &[u8]) -> (bool, bool) {
    let kind = name.first().copied().and_then(Kind::from_ordinal);
    let is = |side: fn(Kind) -> bool| kind.is_some_and(side);
    (is(Kind::is_open), is(Kind::is_close))
}

fn closing(is_open: bool) -> &'static str {
    if is_open {
        "a bound that closes what is open"
    } else {
        "a bound that opens, since nothing is open"
    }
}
