//! Search for the next partition without `Index.db`.
//!
//! In the BTI format the partition index has positions. One is taken if the key there leads to it.
//!
//! Otherwise each position is tried. A partition starts there if its key is valid for the key's type and sorts after
//! the last partition's, it has no deletion or one of a plausible time, and its static row and [`ENOUGH`] rows or
//! markers (or all, if there are fewer; or fewer, if they have [`TRY_LEN`] bytes) are valid and in order.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use compactor_engine::read::{Block, BlockSource, Cursor, HEADROOM};
use compactor_sstable::Error as FormatError;
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::data::partition::PartitionHead;

use super::PARTITIONER;
use super::splice::{Piece, Spliced};
use super::stored::Stored;
use super::trie_walk::TrieWalk;
use crate::verify::chunks::CheckedData;
use crate::{Error, Result};

/// Number of valid rows or markers after which a position is accepted as a partition's start.
const ENOUGH: usize = 8;
/// Bytes that a try looks at, unless rows reach beyond them.
const TRY_LEN: usize = 64 << 10;
/// Bytes that a try of large rows looks at: larger ones are not found.
const LONG_TRY_LEN: u64 = 16 << 20;
/// Bytes that are searched together.
const WINDOW_LEN: u64 = 1 << 20;
/// Maximum tries per SSTable: hostile bytes may look like many partitions.
const MAX_TRIES: u32 = 100_000;
/// Maximum tries of large rows per SSTable.
const MAX_LONG_TRIES: u32 = 1000;
/// Positions of the partition index at which there is another partition, or none, after which it is not used any more.
const MAX_WRONG: u32 = 100;
/// Plausible times of a partition's deletion, seconds since 1970: 2005 to 2100.
const SENSIBLE_SECONDS: Range<i64> = 1_104_537_600..4_102_444_800;

/// Searches for partitions.
#[derive(Debug)]
pub(super) struct Search<'h> {
    stored: &'h Stored,
    trie: Option<TrieWalk<'h>>,
    tries: u32,
    long_tries: u32,
    /// Positions of the partition index that were wrong.
    wrong: u32,
}

/// Result of a try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tried {
    Partition,
    Other,
    /// The bytes that were looked at are not enough.
    Longer,
}

impl<'h> Search<'h> {
    pub(super) fn new(stored: &'h Stored) -> Search<'h> {
        Search {
            stored,
            trie: stored.tries.as_deref().and_then(TrieWalk::start),
            tries: 0,
            long_tries: 0,
            wrong: 0,
        }
    }

    /// Returns the first position in `range` at which a partition after `last` appears to begin.
    pub(super) fn next<'a>(
        &mut self,
        data: &mut CheckedData<'a>,
        range: Range<u64>,
        last: Option<(i64, &[u8])>,
        check: impl Fn() -> std::result::Result<(), Error>,
    ) -> Result<Option<u64>> {
        let mut at = range.start;
        let mut window = Vec::new();
        while let Some(trie) = &mut self.trie {
            check()?;
            let Some(position) = trie.next_from(at).filter(|&found| found < range.end) else {
                break;
            };
            // The digest includes chunks that are skipped.
            while data.is_before(position) && data.skip_chunk()? {
                check()?;
            }
            window.clear();
            let damaged = read(data, position..range.end, 1, &mut window)?;
            if let Ok(head) = PartitionHead::parse(&window, self.stored.layout.version)
                && let key = head.key(&window)
                && trie.leads_to(key, &PARTITIONER.hash_key(key), position)
            {
                return Ok(Some(position));
            }
            self.wrong += u32::from(damaged.is_none());
            if self.wrong > MAX_WRONG {
                self.trie = None;
            }
            at = position + 1;
        }
        at = range.start;
        while at < range.end {
            check()?;
            window.clear();
            let damaged = read(data, at..range.end, WINDOW_LEN, &mut window)?;
            let is_last = at + window.len() as u64 == range.end;
            // Heads near the end of the window are tried with what follows.
            let tried = match (is_last, damaged) {
                (false, None) => window.len().saturating_sub(TRY_LEN).max(1),
                _ => window.len(),
            };
            for start in 0..tried {
                if self.tries >= MAX_TRIES {
                    return Ok(None);
                }
                let end = window.len().min(start + TRY_LEN);
                let position = at + start as u64;
                if !self.is_head(&window[start..end], last) {
                    continue;
                }
                self.tries += 1;
                let peek = Peek {
                    bytes: &window[start..end],
                    is_taken: false,
                    total_len: range.end - position,
                };
                let mut found = self.try_at(peek)?;
                if found == Tried::Longer && self.long_tries < MAX_LONG_TRIES {
                    check()?;
                    self.long_tries += 1;
                    let longest = range.end.min(position.saturating_add(LONG_TRY_LEN));
                    found =
                        self.try_at(Spliced::new(&mut *data, [Piece::Old(position..longest)]))?;
                }
                if found == Tried::Partition {
                    return Ok(Some(position));
                }
            }
            at = match damaged {
                Some(end) => end.max(at + 1),
                None => at + tried as u64,
            };
        }
        Ok(None)
    }

    /// Tries a partition at the start of `source`.
    fn try_at(&self, source: impl BlockSource) -> Result<Tried> {
        let (layout, path) = (Arc::clone(&self.stored.layout), Path::new("").to_owned());
        let mut cursor = Cursor::new(source, layout, PARTITIONER, path);
        match self.read_start(&mut cursor) {
            Ok(true) => Ok(Tried::Partition),
            Ok(false) => Ok(Tried::Other),
            Err(Error::Format(FormatError::Corrupt(c))) => Ok(match c.structure {
                PEEK => Tried::Longer,
                _ => Tried::Other,
            }),
            Err(error) => Err(error),
        }
    }

    /// Returns true if a partition begins at the start of the cursor.
    fn read_start<S: BlockSource>(&self, cursor: &mut Cursor<S>) -> Result<bool> {
        if !cursor.next_partition()? {
            return Ok(false);
        }
        if let Some(row) = cursor.static_row()
            && row.read().is_err()
        {
            return Ok(false);
        }
        for count in 0..ENOUGH {
            if count > 0 && cursor.position() >= TRY_LEN as u64 {
                return Ok(true);
            }
            cursor.next_unfiltered()?;
            match (cursor.row(), cursor.marker()) {
                (Some(row), _) if row.read().is_err() => return Ok(false),
                (Some(_), _) | (None, Some(_)) => {}
                (None, None) => {
                    let is_last = !cursor.next_partition()?;
                    return Ok(is_last || self.may_be(cursor.key(), &cursor.partition_deletion()));
                }
            }
        }
        Ok(true)
    }

    /// A head that a partition could have.
    fn is_head(&self, bytes: &[u8], last: Option<(i64, &[u8])>) -> bool {
        let Ok(head) = PartitionHead::parse(bytes, self.stored.layout.version) else {
            return false;
        };
        let key = head.key(bytes);
        if !self.may_be(key, &head.deletion) {
            return false;
        }
        let token = PARTITIONER.token(key);
        last.is_none_or(|(last_token, last)| (last_token, last) < (token, key))
    }

    /// A key and a deletion that a partition could have.
    fn may_be(&self, key: &[u8], deletion: &DeletionTime) -> bool {
        let is_plausible = *deletion == DeletionTime::LIVE
            || SENSIBLE_SECONDS.contains(&deletion.local_deletion_time);
        let key_type = &self.stored.input.header().key_type.cql_type;
        is_plausible && !key.is_empty() && key_type.validate(key).is_ok()
    }
}

/// The structure in the error of a [`Peek`].
const PEEK: &str = "search.peek";

/// Source of the bytes at a position, which fails where they end, unless the data ends there.
#[derive(Debug)]
struct Peek<'w> {
    bytes: &'w [u8],
    is_taken: bool,
    total_len: u64,
}

impl BlockSource for Peek<'_> {
    fn next_block(&mut self) -> Result<Option<Block>> {
        if std::mem::replace(&mut self.is_taken, true) {
            if self.bytes.len() as u64 == self.total_len {
                return Ok(None);
            }
            return Err(FormatError::corrupt(PEEK, 0, "more bytes", "the end").into());
        }
        let mut block = Block::default();
        block.clear(HEADROOM);
        block.bytes.extend_from_slice(self.bytes);
        Ok(Some(block))
    }

    fn recycle(&mut self, _: Block) {}

    fn total_len(&self) -> u64 {
        self.total_len
    }
}

/// Appends the content of `range` up to `len` bytes or more, or to damage. Returns the end of the damage.
fn read<'a>(
    data: &mut CheckedData<'a>,
    range: Range<u64>,
    len: u64,
    window: &mut Vec<u8>,
) -> Result<Option<u64>> {
    let mut source = Spliced::new(&mut *data, [Piece::Old(range)]);
    loop {
        match source.next_block() {
            Ok(Some(block)) => window.extend_from_slice(block.data()),
            Ok(None) => return Ok(None),
            Err(Error::Format(FormatError::Corrupt(_))) => break,
            Err(error) => return Err(error),
        }
        if window.len() as u64 >= len {
            return Ok(None);
        }
    }
    drop(source);
    Ok(data.take_damaged().map(|range| range.end))
}
