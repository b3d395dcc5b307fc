//! Checks of a promoted index without the data: its blocks against one another, the partition's header and its
//! length.
//!
//! A merge runs these checks on every promoted index, including those of SSTables whose rows it does not read. Names,
//! deletions and positions between the first and the last block can only be validated against the rows;
//! [`super::promoted`] does that.

use std::cmp::Ordering;

use compactor_sstable::big::PromotedIndex;
use compactor_sstable::byte_reader::ByteReader;
use compactor_sstable::data::clustering::{ClusteringComparator, Kind, Prefix, ValueSpan};
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::data::layout::Layout;
use compactor_sstable::{Component, Error as FormatError, Version};

use super::finding::Findings;
use super::index::Entry;
use super::promoted::Promoted;
use super::short_hex;

/// Checks the promoted indexes of one SSTable.
pub(super) struct BlocksCheck<'a> {
    findings: &'a Findings,
    comparator: &'a ClusteringComparator,
    version: Version,
    has_static: bool,
    spans: Vec<ValueSpan>,
    previous: Name,
    current: Name,
}

/// Clustering of a row or marker.
#[derive(Debug, Default)]
struct Name {
    bytes: Vec<u8>,
    spans: Vec<ValueSpan>,
    kind: Option<Kind>,
}

impl Name {
    /// Copies `bytes`, which were parsed before.
    fn set(&mut self, bytes: &[u8], comparator: &ClusteringComparator) -> Result<(), FormatError> {
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        let mut reader = ByteReader::new(&self.bytes);
        self.kind = Some(comparator.read_prefix(&mut reader, &mut self.spans)?);
        Ok(())
    }

    fn prefix(&self) -> Option<Prefix<'_>> {
        Some(Prefix {
            kind: self.kind?,
            base: &self.bytes,
            spans: &self.spans,
        })
    }

    fn is_close(&self) -> bool {
        self.kind.is_some_and(Kind::is_close)
    }

    fn is_open(&self) -> bool {
        self.kind.is_some_and(Kind::is_open)
    }
}

impl<'a> BlocksCheck<'a> {
    pub(super) fn new(findings: &'a Findings, layout: &'a Layout) -> BlocksCheck<'a> {
        BlocksCheck {
            findings,
            comparator: &layout.clustering,
            version: layout.version,
            has_static: layout.has_static(),
            spans: Vec::new(),
            previous: Name::default(),
            current: Name::default(),
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
            version: self.version,
            comparator: self.comparator,
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
        index.deletion.write(&mut deletion, self.version);
        let least = 2 + of.entry.key.len() as u64 + deletion.len() as u64;
        let (is_right, or_more) = match self.has_static {
            true => (index.header_len > least, ", and a static row"),
            false => (index.header_len == least, ""),
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
        let comparator = self.comparator;
        let mut end = index.header_len;
        let mut open: Option<DeletionTime> = None;
        for number in 0..index.block_count() {
            let block = index.block(number, comparator, &mut self.spans)?;
            if block.offset != end {
                let expected = format!("block {number} at {end}, after the previous block");
                of.wrong("index_info.offset", expected, block.offset);
                return Ok(());
            }
            end = end.saturating_add(block.width);
            self.current.set(block.first, comparator)?;
            if number > 0 && !self.ascends() {
                let expected = format!("block {number} to begin after {}", self.name_before());
                of.wrong("index_info.first_name", expected, short_hex(block.first));
                return Ok(());
            }
            // A marker that closes needs an open deletion before it, one that opens must not have it.
            let is_bound = self.current.is_close() || self.current.is_open();
            if is_bound && self.current.is_close() != open.is_some() {
                let expected = format!("{} in block {number}", closing(open.is_some()));
                of.wrong("index_info.first_name", expected, short_hex(block.first));
                return Ok(());
            }
            std::mem::swap(&mut self.previous, &mut self.current);
            self.current.set(block.last, comparator)?;
            if block.first != block.last && !self.ascends() {
                let expected = format!("block {number} to end after {}", self.name_before());
                of.wrong("index_info.last_name", expected, short_hex(block.last));
                return Ok(());
            }
            open = block.open_marker;
            let is_bound = self.current.is_close() || self.current.is_open();
            let is_last = number + 1 == index.block_count();
            let is_wrong = open.is_some_and(|deletion| deletion.is_live())
                || (is_bound && self.current.is_open() != open.is_some())
                || (is_last && open.is_some());
            if is_wrong {
                let what = match is_last || !self.current.is_open() {
                    true => "none after",
                    false => "one after",
                };
                let expected = format!("{what} block {number}, by its last name");
                of.wrong("index_info.open_marker", expected, format!("{open:?}"));
                return Ok(());
            }
            std::mem::swap(&mut self.previous, &mut self.current);
        }
        // The last block includes the partition's end byte where that closed it.
        if end != partition_len && end.checked_add(1) != Some(partition_len) {
            let expected = format!("blocks up to {partition_len}, the partition's end");
            of.wrong("index_info.width", expected, end);
        }
        Ok(())
    }

    /// Returns true if the current name sorts after the previous one.
    fn ascends(&self) -> bool {
        let (Some(previous), Some(current)) = (self.previous.prefix(), self.current.prefix())
        else {
            return true;
        };
        match self.comparator.compare(previous, current) {
            Ordering::Less => true,
            // Some writers leave a closing and an opening bound where Cassandra writes a boundary.
            Ordering::Equal => {
                let (before, after) = (previous.kind, current.kind);
                !before.is_open() && before.is_close() && after.is_open() && !after.is_close()
            }
            Ordering::Greater => false,
        }
    }

    fn name_before(&self) -> String {
        short_hex(&self.previous.bytes)
    }
}

fn closing(is_open: bool) -> &'static str {
    match is_open {
        true => "a bound that closes what is open",
        false => "a bound that opens, since nothing is open",
    }
}
