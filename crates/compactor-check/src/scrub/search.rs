//! Search for the next partition without an index.
//!
//! Each position is tried. A partition starts there if its key is valid for the key's type and sorts after the last
//! partition's, it has no deletion or one of a plausible time, and its static row and [`ENOUGH`] rows or markers (or
//! all, if there are fewer) are valid and in order.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use compactor_engine::read::{BlockSource, Cursor, MemorySource};
use compactor_sstable::Error as FormatError;
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::data::partition::PartitionHead;

use super::PARTITIONER;
use super::splice::{Piece, Spliced};
use super::stored::Stored;
use crate::verify::chunks::CheckedData;
use crate::{Error, Result};

/// Number of valid rows or markers after which a position is accepted as a partition's start.
const ENOUGH: usize = 8;
/// Bytes that a try looks at.
const TRY_LEN: usize = 64 << 10;
/// Bytes that are searched together.
const WINDOW_LEN: u64 = 1 << 20;
/// Maximum tries per SSTable: hostile bytes may look like many partitions.
const MAX_TRIES: u32 = 100_000;
/// Plausible times of a partition's deletion, seconds since 1970: 2005 to 2100.
const SENSIBLE_SECONDS: Range<i64> = 1_104_537_600..4_102_444_800;

/// Searches for partitions.
#[derive(Debug)]
pub(super) struct Search<'h> {
    stored: &'h Stored,
    tries: u32,
}

impl<'h> Search<'h> {
    pub(super) fn new(stored: &'h Stored) -> Search<'h> {
        Search { stored, tries: 0 }
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
        while at < range.end {
            check()?;
            window.clear();
            let damaged = read(data, at..range.end, &mut window)?;
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
                if self.is_partition(&window[start..end], is_last && end == window.len(), last) {
                    return Ok(Some(at + start as u64));
                }
            }
            at = match damaged {
                Some(end) => end.max(at + 1),
                None => at + tried as u64,
            };
        }
        Ok(None)
    }

    fn is_partition(&mut self, bytes: &[u8], is_end: bool, last: Option<(i64, &[u8])>) -> bool {
        if !self.is_head(bytes, last) {
            return false;
        }
        self.tries += 1;
        let source = MemorySource::new(bytes.to_vec(), TRY_LEN);
        let (layout, path) = (Arc::clone(&self.stored.layout), Path::new("").to_owned());
        let mut cursor = Cursor::new(source, layout, PARTITIONER, path);
        if !matches!(cursor.next_partition(), Ok(true)) {
            return false;
        }
        if let Some(row) = cursor.static_row()
            && row.read().is_err()
        {
            return false;
        }
        for _ in 0..ENOUGH {
            if cursor.next_unfiltered().is_err() {
                return false;
            }
            match (cursor.row(), cursor.marker()) {
                (Some(row), _) if row.read().is_err() => return false,
                (Some(_), _) | (None, Some(_)) => {}
                (None, None) => {
                    let rest = &bytes[(cursor.position() + 1) as usize..];
                    let before = Some((cursor.token(), cursor.key()));
                    return (rest.is_empty() && is_end) || self.is_head(rest, before);
                }
            }
        }
        true
    }

    /// A head that a partition could have.
    fn is_head(&self, bytes: &[u8], last: Option<(i64, &[u8])>) -> bool {
        let Ok(head) = PartitionHead::parse(bytes, self.stored.layout.version) else {
            return false;
        };
        let key = head.key(bytes);
        let deletion = head.deletion;
        if key.is_empty()
            || !(deletion == DeletionTime::LIVE
                || SENSIBLE_SECONDS.contains(&deletion.local_deletion_time))
            || self
                .stored
                .input
                .header()
                .key_type
                .cql_type
                .validate(key)
                .is_err()
        {
            return false;
        }
        let token = PARTITIONER.token(key);
        last.is_none_or(|(last_token, last)| (last_token, last) < (token, key))
    }
}

/// Appends the content of `range` up to the length of a window or to damage. Returns the end of the damage.
fn read<'a>(
    data: &mut CheckedData<'a>,
    range: Range<u64>,
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
        if window.len() as u64 >= WINDOW_LEN {
            return Ok(None);
        }
    }
    drop(source);
    Ok(data.take_damaged().map(|range| range.end))
}
