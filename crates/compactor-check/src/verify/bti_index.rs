//! Checks of `Partitions.db` and `Rows.db`, partition by partition, in lockstep with `Data.db`.
//!
//! The tries do not hold complete keys: an entry is matched to a key by looking the key up, as Cassandra does. Block
//! boundaries depend on the writer's `column_index_size`, which no component records, and a partition may have no row
//! index for the same reason; blocks that exist must be correct in every field.
//!
//! Both files are held in memory: about ten bytes per partition, and twenty per block of rows.

use compactor_engine::input::TrieFiles;
use compactor_sstable::Component;
use compactor_sstable::bti::byte_comparable::append_prefix;
use compactor_sstable::bti::partitions::{PartitionEntries, PartitionIndex, PartitionPosition};
use compactor_sstable::bti::rows::{Block, Blocks, RowIndex, nudge, separator_beyond};
use compactor_sstable::data::clustering::{ClusteringComparator, Kind, ValueSpan};
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::partitioner::KeyHash;
use compactor_sstable::types::CqlType;

use super::finding::{Findings, Location};
use super::index::State;
use super::short_hex;

/// Target of an entry of the partition trie.
#[derive(Clone, Debug)]
pub(super) struct TrieEntry<'a> {
    /// Start of the partition in the uncompressed data.
    pub(super) position: u64,
    /// Offset of the row index entry in `Rows.db`, and the row index, if there is one.
    rows: Option<(u64, RowIndex<'a>)>,
    /// Prefix that represents the key in the trie.
    prefix: Vec<u8>,
}

impl TrieEntry<'_> {
    /// Returns its location, for messages.
    pub(super) fn place(&self) -> Location {
        let place = match &self.rows {
            Some((offset, _)) => Location::offset(Component::Rows, *offset),
            None => Location::of(Component::Partitions),
        };
        place.in_partition(self.describe())
    }

    /// Describes the key, or the prefix stored in the trie.
    pub(super) fn describe(&self) -> String {
        match &self.rows {
            Some((_, rows)) => short_hex(rows.key),
            None => format!("with prefix {}", short_hex(&self.prefix)),
        }
    }

    /// Returns the key, if `Rows.db` has it.
    pub(super) fn key(&self) -> Option<&[u8]> {
        self.rows.as_ref().map(|(_, rows)| rows.key)
    }
}

/// Walks the partition trie and checks its entries against one another.
#[derive(Debug)]
pub(super) struct TrieScan<'a> {
    findings: &'a Findings,
    files: &'a TrieFiles,
    index: Option<PartitionIndex<'a>>,
    entries: Option<PartitionEntries<'a>>,
    types: &'a [CqlType],
    data_len: Option<u64>,
    state: State,
    entry: Option<TrieEntry<'a>>,
    count: u64,
    /// Position of the previous entry.
    previous: Option<u64>,
    /// End of the previous row index in `Rows.db`.
    rows_end: u64,
}

impl<'a> TrieScan<'a> {
    /// Opens a scan positioned before the first partition. `data_len` is the length of the uncompressed data, if
    /// known; `types` are those of the clustering columns.
    pub(super) fn open(
        findings: &'a Findings,
        files: &'a TrieFiles,
        types: &'a [CqlType],
        data_len: Option<u64>,
    ) -> TrieScan<'a> {
        let index = PartitionIndex::parse(&files.partitions)
            .inspect_err(|error| findings.parser(Component::Partitions, error))
            .ok();
        TrieScan {
            findings,
            files,
            entries: index.as_ref().map(PartitionIndex::iter),
            state: match index {
                Some(_) => State::Reading,
                None => State::Broken,
            },
            index,
            types,
            data_len,
            entry: None,
            count: 0,
            previous: None,
            rows_end: 0,
        }
    }

    /// Returns the current entry.
    pub(super) fn entry(&self) -> Option<&TrieEntry<'a>> {
        self.entry.as_ref()
    }

    /// Returns true if every entry was read.
    pub(super) fn is_complete(&self) -> bool {
        self.state == State::Ended
    }

    /// Returns the number of entries read.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Returns the first and last partition keys from the footer, once all entries have been read.
    pub(super) fn ends(&self) -> Option<(&[u8], &[u8])> {
        let index = self.index.as_ref().filter(|_| self.is_complete())?;
        (self.count > 0).then_some((index.first_key, index.last_key))
    }

    /// Advances to the next entry; false at the end, or where the files become unreadable.
    pub(super) fn advance(&mut self) -> bool {
        let mut prefix = self
            .entry
            .take()
            .map_or_else(Vec::new, |entry| entry.prefix);
        if self.state != State::Reading {
            return false;
        }
        let Some(entries) = &mut self.entries else {
            return false;
        };
        let found = match entries.next_entry() {
            Ok(Some(found)) => found,
            Ok(None) => {
                self.state = State::Ended;
                self.check_key_count();
                self.check_end_of_rows();
                return false;
            }
            Err(error) => {
                self.findings.parser(Component::Partitions, &error);
                self.state = State::Broken;
                return false;
            }
        };
        prefix.clear();
        prefix.extend_from_slice(entries.prefix());
        let rows = match found.position {
            PartitionPosition::Data(_) => None,
            PartitionPosition::Rows(at) => match self.row_index(at) {
                Some(rows) => Some((at, rows)),
                None => {
                    self.state = State::Broken;
                    return false;
                }
            },
        };
        let position = match (found.position, &rows) {
            (PartitionPosition::Data(position), _) => position,
            (_, Some((_, rows))) => rows.data_position,
            (PartitionPosition::Rows(_), None) => return false,
        };
        let entry = TrieEntry {
            position,
            rows,
            prefix,
        };
        self.check_entry(&entry);
        self.previous = Some(position);
        self.count += 1;
        self.entry = Some(entry);
        true
    }

    fn check_key_count(&self) {
        if let Some(index) = self.index.filter(|index| index.key_count != self.count) {
            self.findings.damage(
                Location::offset(Component::Partitions, index.file_len().saturating_sub(16)),
                "partition_index.key_count",
                format!("{}, the number of entries", self.count),
                index.key_count.to_string(),
            );
        }
    }

    /// Checks that nothing follows the last row index. No reader would read such bytes.
    fn check_end_of_rows(&self) {
        let surplus = (self.files.rows.len() as u64).saturating_sub(self.rows_end);
        if surplus > 0 {
            self.findings.note(
                Location::offset(Component::Rows, self.rows_end),
                "row_index.end",
                "the end of the file after the last row index",
                format!("{surplus} bytes more"),
            );
        }
    }

    fn row_index(&mut self, at: u64) -> Option<RowIndex<'a>> {
        let rows = RowIndex::parse_after(&self.files.rows, at, self.rows_end)
            .inspect_err(|error| self.findings.parser(Component::Rows, error))
            .ok()?;
        self.rows_end = rows.end;
        Some(rows)
    }

    fn check_entry(&mut self, entry: &TrieEntry<'_>) {
        let expected = match self.previous {
            None if entry.position != 0 => Some("0 for the first partition".to_owned()),
            Some(previous) if entry.position <= previous => Some(format!(
                "a position after that of the previous partition, {previous}"
            )),
            _ => match self.data_len {
                Some(data_len) if entry.position >= data_len => {
                    // Later entries can only be further beyond the end.
                    self.data_len = None;
                    Some(format!(
                        "a position below {data_len}, the length of the uncompressed data"
                    ))
                }
                _ => None,
            },
        };
        if let Some(expected) = expected {
            self.findings.damage(
                entry.place(),
                "partition_index.position",
                expected,
                entry.position.to_string(),
            );
        }
    }

    /// Returns true if a lookup of this key leads to the current entry.
    pub(super) fn leads_here(&self, key: &[u8], hash: &KeyHash) -> bool {
        let (Some(entries), Some(entry)) = (&self.entries, &self.entry) else {
            return false;
        };
        // A row index of another key ends the read (`BtiTableReader.getExactPosition`).
        if entry.key().is_some_and(|found| found != key) {
            return false;
        }
        entries
            .leads_here(hash, key)
            .inspect_err(|error| self.findings.parser(Component::Partitions, error))
            .unwrap_or(false)
    }

    /// Locates and describes the mismatch of the current entry with this key: a row index of another key, or a trie
    /// that does not lead to the entry.
    pub(super) fn other_key(&self, key: &[u8]) -> (Location, String) {
        match &self.entry {
            Some(entry) if entry.key().is_some_and(|found| found != key) => {
                (entry.place(), entry.describe())
            }
            entry => {
                let prefix = entry.as_ref().map(|entry| short_hex(&entry.prefix));
                let found = format!(
                    "a trie that does not lead to it, with prefix {}",
                    prefix.unwrap_or_default()
                );
                (
                    Location::of(Component::Partitions).in_partition(short_hex(key)),
                    found,
                )
            }
        }
    }

    /// Checks the keys in the footer, once all partitions were read.
    pub(super) fn check_ends(&self, first: &[u8], last: &[u8]) {
        let Some((found_first, found_last)) = self.ends() else {
            return;
        };
        for (structure, expected, found) in [
            ("partition_index.first_key", first, found_first),
            ("partition_index.last_key", last, found_last),
        ] {
            if expected != found {
                self.findings.damage(
                    Location::of(Component::Partitions),
                    structure,
                    format!("{}, the key in Data.db", short_hex(expected)),
                    short_hex(found),
                );
            }
        }
    }

    /// Walks the blocks of the current partition's row index, without its rows. Returns the offset of the partition's
    /// end byte from its start; `None` if there is no row index or it is damaged.
    pub(super) fn walk_blocks(&self) -> Option<u64> {
        let (_, rows) = self.entry.as_ref()?.rows?;
        let mut blocks = rows.blocks();
        let mut end = None;
        loop {
            match blocks.next_block() {
                Ok(Some(block)) => end = Some(block.offset),
                Ok(None) => return end,
                Err(error) => {
                    self.findings.parser(Component::Rows, &error);
                    return None;
                }
            }
        }
    }

    /// Starts the check of the current partition's row index, whose rows begin at `header_len`.
    pub(super) fn row_blocks(
        &self,
        comparator: &'a ClusteringComparator,
        header_len: u64,
        deletion: &DeletionTime,
    ) -> Option<TrieBlockCheck<'a>> {
        let (offset, rows) = self.entry.as_ref()?.rows?;
        let mut check = TrieBlockCheck {
            findings: self.findings,
            comparator,
            types: self.types,
            place: Location::offset(Component::Rows, offset).in_partition(short_hex(rows.key)),
            blocks: Some(rows.blocks()),
            next: None,
            number: 0,
            last: Vec::new(),
            open: DeletionTime::LIVE,
            separator: Vec::new(),
            spans: Vec::new(),
        };
        if rows.deletion != *deletion {
            check.wrong(
                "row_index.deletion_time",
                format!("that of the partition, {deletion:?}"),
                format!("{:?}", rows.deletion),
            );
        }
        check.step();
        if let Some(first) = check.next
            && first.offset != header_len
        {
            let expected = format!("{header_len}, where the rows begin");
            check.give_up("row_index.block.offset", expected, first.offset);
        }
        Some(check)
    }
}

/// Walks the blocks of a row index alongside the unfiltereds.
#[derive(Debug)]
pub(super) struct TrieBlockCheck<'a> {
    findings: &'a Findings,
    comparator: &'a ClusteringComparator,
    types: &'a [CqlType],
    place: Location,
    /// `None` once it is unreadable.
    blocks: Option<Blocks<'a>>,
    /// Block that begins at or after the next unfiltered.
    next: Option<Block>,
    /// Number of blocks before it.
    number: u64,
    /// Kind and serialized prefix of the previous unfiltered.
    last: Vec<u8>,
    /// Deletion open after it.
    open: DeletionTime,
    /// Separator of the previous block.
    separator: Vec<u8>,
    spans: Vec<ValueSpan>,
}

impl TrieBlockCheck<'_> {
    fn wrong(&self, structure: &str, expected: impl ToString, found: impl ToString) {
        let place = self.place.clone();
        self.findings
            .damage(place, structure, expected.to_string(), found.to_string());
    }

    /// Reports damage and stops, since one wrong block makes all later ones look wrong.
    fn give_up(&mut self, structure: &str, expected: impl ToString, found: impl ToString) {
        self.wrong(structure, expected, found);
        self.blocks = None;
        self.next = None;
    }

    fn step(&mut self) {
        let Some(blocks) = &mut self.blocks else {
            return;
        };
        match blocks.next_block() {
            Ok(next) => self.next = next,
            Err(error) => {
                self.findings.parser(Component::Rows, &error);
                self.blocks = None;
                self.next = None;
            }
        }
    }

    /// Checks a row or marker that begins at offset `start` of the partition; `name` is its serialized prefix without
    /// the kind, `open` the deletion that is open after it.
    #[inline]
    pub(super) fn unfiltered(&mut self, start: u64, kind: Kind, name: &[u8], open: &DeletionTime) {
        if self.blocks.is_none() {
            return;
        }
        match self.next {
            Some(block) if start == block.offset => self.begin_block(block, kind, name),
            Some(block) if start < block.offset => {}
            _ => {
                let found = self
                    .next
                    .map_or("no more".to_owned(), |b| b.offset.to_string());
                let expected = format!(
                    "block {} to begin at or after the row at {start}",
                    self.number
                );
                return self.give_up("row_index.block.offset", expected, found);
            }
        }
        self.last.clear();
        self.last.push(kind as u8);
        self.last.extend_from_slice(name);
        self.open = *open;
    }

    fn begin_block(&mut self, block: Block, kind: Kind, name: &[u8]) {
        self.check_open(block);
        if self.number > 0 {
            let mut first = vec![kind as u8];
            first.extend_from_slice(name);
            if let (Some(max), Some(min)) = (self.encode_last(), self.encode(&first)) {
                let mut expected = Vec::new();
                let result = separator_beyond(&max, &min, &mut expected);
                self.check_separator(result.is_ok().then_some(expected));
            }
        } else {
            self.check_separator(Some(Vec::new()));
        }
        self.number += 1;
        self.step();
    }

    fn check_open(&self, block: Block) {
        let open = (!self.open.is_live()).then_some(self.open);
        if block.open_deletion != open {
            self.wrong(
                "row_index.block.open_deletion",
                format!("{open:?} at the start of block {}", self.number),
                format!("{:?}", block.open_deletion),
            );
        }
    }

    /// Checks that the separator sorts after the last row before it and not after the first row of its block.
    /// Cassandra writes the shortest such separator; if none can be computed, no writer would have written one.
    fn check_separator(&mut self, expected: Option<Vec<u8>>) {
        let found = self.blocks.as_ref().map(Blocks::separator);
        let found = found.unwrap_or_default().to_vec();
        if expected.as_ref() != Some(&found) {
            let expected = match expected {
                Some(bytes) => short_hex(&bytes),
                None => "rows whose byte-comparable forms ascend".to_owned(),
            };
            self.wrong(
                "row_index.separator",
                format!("{expected} for block {}", self.number),
                short_hex(&found),
            );
        }
        self.separator = found;
    }

    fn encode_last(&mut self) -> Option<Vec<u8>> {
        let last = std::mem::take(&mut self.last);
        let encoded = self.encode(&last);
        self.last = last;
        encoded
    }

    /// Returns the byte-comparable form of a name, if it has one.
    fn encode(&mut self, name: &[u8]) -> Option<Vec<u8>> {
        // The cursor has parsed it already.
        let prefix = self.comparator.parse_name(name, &mut self.spans).ok()?;
        let mut comparable = Vec::new();
        append_prefix(self.types, prefix, &mut comparable).ok()?;
        Some(comparable)
    }

    /// Ends the check of a partition whose end byte is at `end`.
    pub(super) fn finish(mut self, end: u64) {
        if self.blocks.is_none() {
            return;
        }
        match self.next {
            Some(block) if block.offset == end => {
                self.open = DeletionTime::LIVE;
                self.check_open(block);
                if let Some(max) = self.encode_last() {
                    let mut expected = Vec::new();
                    let result = nudge(&max, &self.separator, &mut expected);
                    self.check_separator(result.is_ok().then_some(expected));
                }
                // No block begins after the end of the partition.
                self.step();
                if let Some(block) = self.next {
                    self.wrong(
                        "row_index.block_count",
                        "no block after the rows",
                        block.offset,
                    );
                }
            }
            found => {
                let found = found.map_or("none".to_owned(), |b| b.offset.to_string());
                self.wrong(
                    "row_index.block.offset",
                    format!(
                        "{end}, the end of the partition, after {} blocks",
                        self.number
                    ),
                    found,
                );
            }
        }
    }
}
