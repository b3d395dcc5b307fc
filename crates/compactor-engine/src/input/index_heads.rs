//! Entries of `Index.db` from an offset on: keys and positions, skipping promoted indexes.

use compactor_io::InputFile;
use compactor_sstable::Component;
use compactor_sstable::Error as FormatError;
use compactor_sstable::vint;

use crate::error::{Error, Result};

/// Length of the field before a key, and maximum length of the fields between a key and a promoted index.
const KEY_LEN_BYTES: usize = 2;
const NUMBERS_LEN: usize = 2 * vint::MAX_LEN;

/// Reader of entry heads.
#[derive(Debug)]
pub(crate) struct IndexHeads<'a> {
    file: &'a InputFile,
    /// Bytes per read.
    step: usize,
    buffer: Vec<u8>,
    taken: usize,
    /// Offset in the file of `buffer[taken]`.
    offset: u64,
}

/// Head of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexHead<'k> {
    pub(crate) key: &'k [u8],
    /// Position of the partition in the uncompressed data.
    pub(crate) position: u64,
    /// Offset of the entry in the file.
    pub(crate) offset: u64,
}

impl<'a> IndexHeads<'a> {
    /// Creates a reader before the entry at `offset`.
    pub(crate) fn at(file: &'a InputFile, offset: u64, step: usize) -> IndexHeads<'a> {
        IndexHeads {
            file,
            step,
            buffer: Vec::new(),
            taken: 0,
            offset,
        }
    }

    /// Provides bytes at the current offset that have already been read.
    #[must_use]
    pub(crate) fn with_bytes(mut self, bytes: Vec<u8>) -> IndexHeads<'a> {
        self.buffer = bytes;
        self
    }

    /// Returns the next entry; `None` at the end of the file.
    pub(crate) fn next_head(&mut self) -> Result<Option<IndexHead<'_>>> {
        let offset = self.offset;
        if !self.fill(KEY_LEN_BYTES)? {
            return if self.rest().is_empty() {
                Ok(None)
            } else {
                Err(self.cut_off(offset))
            };
        }
        let key_len = match self.rest() {
            [high, low, ..] => usize::from(u16::from_be_bytes([*high, *low])),
            _ => 0,
        };
        let key_end = KEY_LEN_BYTES + key_len;
        // Fewer bytes may be left before the end of the file.
        self.fill(key_end + NUMBERS_LEN)?;
        let mut pos = key_end;
        let bytes = self.rest();
        let position = vint::read_unsigned(bytes, &mut pos);
        let promoted_len = vint::read_unsigned(bytes, &mut pos);
        let (Some(position), Some(promoted_len)) = (position, promoted_len) else {
            return Err(self.cut_off(offset));
        };
        let left = self.file.len().saturating_sub(offset + pos as u64);
        if promoted_len > left {
            let found = promoted_len.to_string();
            let expected = format!("at most the {left} bytes that are left");
            return Err(self.corrupt("index.promoted_size", offset, expected, &found));
        }
        let key_at = self.taken + KEY_LEN_BYTES;
        self.skip(pos, promoted_len);
        Ok(Some(IndexHead {
            key: self
                .buffer
                .get(key_at..key_at + key_len)
                .unwrap_or_default(),
            position,
            offset,
        }))
    }

    fn rest(&self) -> &[u8] {
        self.buffer.get(self.taken..).unwrap_or_default()
    }

    /// Reads until `len` bytes are buffered; returns false if the file ends before.
    fn fill(&mut self, len: usize) -> Result<bool> {
        while self.rest().len() < len {
            let have = self.rest().len();
            let at = self.offset + have as u64;
            let left = self.file.len().saturating_sub(at);
            let now = left.min(self.step.max(len - have) as u64) as usize;
            if now == 0 {
                return Ok(false);
            }
            self.buffer.drain(..self.taken.min(self.buffer.len()));
            self.taken = 0;
            let extent = self.file.read_at(at, now)?;
            self.buffer.extend_from_slice(&extent);
        }
        Ok(true)
    }

    /// Skips a head of `len` bytes and its promoted index. The bytes of the head stay valid until the next
    /// read.
    fn skip(&mut self, len: usize, promoted_len: u64) {
        self.offset += len as u64 + promoted_len;
        let promoted_len = usize::try_from(promoted_len).unwrap_or(usize::MAX);
        self.taken = self.taken.saturating_add(len).saturating_add(promoted_len);
    }

    #[cold]
    fn cut_off(&self, offset: u64) -> Error {
        let found = format!("the end of the file at {}", self.file.len());
        self.corrupt("index.entry", offset, "a whole entry".to_owned(), &found)
    }

    #[cold]
    fn corrupt(&self, what: &'static str, at: u64, expected: String, found: &str) -> Error {
        let error = FormatError::corrupt(what, at, expected, found);
        Error::Format(error.with_file(self.file.path(), Component::Index))
    }
}
