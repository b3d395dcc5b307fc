//! Checks of `Index.db`, entry by entry, in lockstep with `Data.db`.

use compactor_io::{InputFile, IoError};
use compactor_sstable::partitioner::{KeyHash, Partitioner};
use compactor_sstable::{Component, vint};

use super::finding::{Findings, Location};
use super::keys::SummaryCheck;
use super::short_hex;
use super::stream::ByteStream;

/// Index entry with owned bytes.
#[derive(Debug, Default)]
pub(crate) struct Entry {
    /// Partition key.
    pub(crate) key: Vec<u8>,
    /// Start of the partition in the uncompressed data.
    pub(crate) position: u64,
    /// Serialized promoted index; empty if there is none.
    pub(crate) promoted: Vec<u8>,
    /// Offset of the entry in `Index.db`.
    pub(crate) offset: u64,
    /// Offset of its promoted index in `Index.db`.
    pub(crate) promoted_offset: u64,
    pub(crate) hash: KeyHash,
}

impl Entry {
    /// Returns the approximate memory use, bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        self.promoted.len() + self.key.len()
    }
}

/// State of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Reading,
    /// Read to its end.
    Ended,
    /// Unreadable beyond some position.
    Broken,
}

/// Reads entries and checks them against one another.
#[derive(Debug)]
pub(crate) struct IndexScan<'a> {
    findings: &'a Findings,
    stream: ByteStream,
    file_len: u64,
    data_len: Option<u64>,
    partitioner: Partitioner,
    state: State,
    /// Bytes read and not yet parsed.
    buffer: Vec<u8>,
    taken: usize,
    /// Offset in the file of `buffer[taken]`.
    offset: u64,
    entry: Entry,
    previous: Entry,
    has_entry: bool,
    count: u64,
    first_key: Vec<u8>,
    summary: Option<Box<SummaryCheck>>,
}

impl<'a> IndexScan<'a> {
    /// Opens a scan positioned before the first entry; entries ascend by the tokens of `partitioner`. `data_len` is
    /// the length of the uncompressed data, if known.
    pub(crate) fn open(
        findings: &'a Findings,
        file: &InputFile,
        data_len: Option<u64>,
        partitioner: Partitioner,
        summary: Option<SummaryCheck>,
    ) -> IndexScan<'a> {
        let stream = ByteStream::open(file, 0);
        IndexScan::over(findings, file, stream, data_len, partitioner, summary)
    }

    /// As [`IndexScan::open`], over a given stream positioned at the start of the file.
    pub(super) fn over(
        findings: &'a Findings,
        file: &InputFile,
        stream: ByteStream,
        data_len: Option<u64>,
        partitioner: Partitioner,
        summary: Option<SummaryCheck>,
    ) -> IndexScan<'a> {
        IndexScan {
            findings,
            stream,
            file_len: file.len(),
            data_len,
            partitioner,
            state: State::Reading,
            buffer: Vec::new(),
            taken: 0,
            offset: 0,
            entry: Entry::default(),
            previous: Entry::default(),
            has_entry: false,
            count: 0,
            first_key: Vec::new(),
            summary: summary.map(Box::new),
        }
    }

    /// Returns the current entry.
    pub(crate) fn entry(&self) -> Option<&Entry> {
        self.has_entry.then_some(&self.entry)
    }

    /// Takes the current entry with its promoted index.
    pub(crate) fn take_entry(&mut self) -> Entry {
        Entry {
            key: self.entry.key.clone(),
            promoted: std::mem::take(&mut self.entry.promoted),
            ..self.entry
        }
    }

    /// Returns the entry before the current one.
    pub(super) fn previous(&self) -> Option<&Entry> {
        (self.count > u64::from(self.has_entry)).then_some(&self.previous)
    }

    /// Returns true if every entry was read.
    pub(crate) fn is_complete(&self) -> bool {
        self.state == State::Ended
    }

    /// Returns the keys of the first and last entry, once all have been read.
    pub(crate) fn ends(&self) -> Option<(&[u8], &[u8])> {
        (self.is_complete() && self.count > 0).then_some((&self.first_key, &self.previous.key))
    }

    /// Advances to the next entry; false at the end, or where the file becomes unreadable.
    pub(crate) fn advance(&mut self) -> Result<bool, IoError> {
        if self.has_entry {
            std::mem::swap(&mut self.entry, &mut self.previous);
            self.has_entry = false;
        }
        if self.state != State::Reading || !self.read_entry()? {
            return Ok(false);
        }
        self.entry.hash = self.partitioner.hash_key(&self.entry.key);
        self.check_entry();
        if self.count == 0 {
            self.first_key.clone_from(&self.entry.key);
        }
        if let Some(summary) = &mut self.summary {
            summary.entry(
                self.findings,
                self.count,
                &self.entry.key,
                self.entry.offset,
            );
        }
        self.count += 1;
        self.has_entry = true;
        Ok(true)
    }

    fn check_entry(&mut self) {
        let (entry, previous) = (&self.entry, &self.previous);
        let place =
            || Location::offset(Component::Index, entry.offset).in_partition(short_hex(&entry.key));
        if self.count == 0 {
            if entry.position != 0 {
                self.findings.damage(
                    place(),
                    "index.position",
                    "0 for the first partition",
                    entry.position.to_string(),
                );
            }
        } else {
            if (entry.hash.position(), &entry.key) <= (previous.hash.position(), &previous.key) {
                let what = |e: &Entry| {
                    let token = self.partitioner.token_text(&e.key);
                    format!("token {token} key {}", short_hex(&e.key))
                };
                self.findings.damage(
                    place(),
                    "index.key",
                    format!("a key after {}", what(previous)),
                    what(entry),
                );
            }
            if entry.position <= previous.position {
                self.findings.damage(
                    place(),
                    "index.position",
                    format!(
                        "a position after that of the previous entry, {}",
                        previous.position
                    ),
                    entry.position.to_string(),
                );
            }
        }
        if let Some(data_len) = self.data_len
            && entry.position >= data_len
        {
            self.findings.damage(
                place(),
                "index.position",
                format!("a position below {data_len}, the length of the uncompressed data"),
                entry.position.to_string(),
            );
            // Later entries can only be further beyond the end.
            self.data_len = None;
        }
    }

    /// Parses the next entry; false at the end of the file and where it is damaged.
    fn read_entry(&mut self) -> Result<bool, IoError> {
        let head = loop {
            if let Some(head) = self.head() {
                break head;
            }
            self.make_room();
            if self.stream.append_some(&mut self.buffer)? {
                continue;
            }
            let left = self.buffer.len() - self.taken;
            if self.file_len == 0 {
                self.broken(0, "index.entry", "at least one entry", "an empty file");
            } else if left == 0 {
                self.state = State::Ended;
            } else {
                let found = format!("the end of the file after {left} bytes");
                self.broken(self.offset, "index.entry", "a whole entry", &found);
            }
            return Ok(false);
        };
        let left = self.file_len - self.offset;
        let len = head.promoted_start as u64 + head.promoted_len;
        if len > left {
            let at = self.offset + head.key_end as u64;
            let room = left - head.promoted_start as u64;
            self.broken(
                at,
                "index.promoted_size",
                &format!("at most {room} bytes, what the file holds"),
                &(head.promoted_len as i64).to_string(),
            );
            return Ok(false);
        }
        let len = len as usize;
        if self.buffer.len() - self.taken < len {
            let missing = len - (self.buffer.len() - self.taken);
            self.make_room();
            self.stream.append(&mut self.buffer, missing)?;
        }
        if self.buffer.len() < self.taken + len {
            self.broken(self.offset, "index.entry", "a whole entry", "less");
            return Ok(false);
        }
        let bytes = &self.buffer[self.taken..self.taken + len];
        let entry = &mut self.entry;
        entry.key.clear();
        entry.key.extend_from_slice(&bytes[2..head.key_end]);
        entry.promoted.clear();
        entry
            .promoted
            .extend_from_slice(&bytes[head.promoted_start..]);
        entry.position = head.position;
        entry.offset = self.offset;
        entry.promoted_offset = self.offset + head.promoted_start as u64;
        self.taken += len;
        self.offset += len as u64;
        Ok(true)
    }

    /// Parses the fixed part of the entry at the start of the buffer; `None` if it is incomplete. Numbers can be read
    /// only if the key before them is complete.
    fn head(&self) -> Option<Head> {
        let bytes = &self.buffer[self.taken..];
        let key_end = 2 + usize::from(u16::from_be_bytes(*bytes.first_chunk::<2>()?));
        let mut pos = key_end;
        let position = vint::read_unsigned(bytes, &mut pos)?;
        let promoted_len = vint::read_unsigned(bytes, &mut pos)?.min(i64::MAX as u64);
        Some(Head {
            key_end,
            position,
            promoted_start: pos,
            promoted_len,
        })
    }

    fn broken(&mut self, offset: u64, structure: &str, expected: &str, found: &str) {
        self.findings.damage(
            Location::offset(Component::Index, offset),
            structure,
            expected,
            found,
        );
        self.state = State::Broken;
    }

    /// Discards parsed bytes, so that the buffer stays as small as its longest entry.
    fn make_room(&mut self) {
        self.buffer.drain(..self.taken);
        self.taken = 0;
    }

    /// Checks the summary, if the whole index was read.
    pub(crate) fn finish(&self) {
        if let (Some(summary), Some((first, last))) = (&self.summary, self.ends()) {
            summary.finish(self.findings, self.count, first, last);
        }
    }

    /// Returns the number of entries read.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }
}

/// Part of an entry before its promoted index.
struct Head {
    key_end: usize,
    position: u64,
    promoted_start: usize,
    promoted_len: u64,
}
