//! Index.db: the position of each partition.
//!
//! ```text
//! entry := bytes16 key | uvint position | vint32 promotedSize | promoted index
//! ```
//!
//! Entries are in the order of Data.db; positions are those of its uncompressed content.
//!
//! Source: `BigTableWriter.IndexWriter.append`, `RowIndexEntry`.

use crate::byte_sink::ByteSink;
use crate::error::{Error, Result};
use crate::vint;

/// Entry of a partition in Index.db.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexEntry<'a> {
    /// Partition key.
    pub key: &'a [u8],
    /// Position in the uncompressed Data.db.
    pub position: u64,
    /// Serialized promoted index; empty for a partition of fewer than two blocks.
    pub promoted: &'a [u8],
}

impl<'a> IndexEntry<'a> {
    /// Parses the entry at the start of `bytes`; returns it with its length, or `None` if `bytes` ends within
    /// it. `offset` is the offset of `bytes` in the file.
    ///
    /// # Errors
    /// Corruption if the length of the promoted index is negative or exceeds 2 GiB.
    pub fn try_parse(bytes: &'a [u8], offset: u64) -> Result<Option<(IndexEntry<'a>, usize)>> {
        let Some((key_len, rest)) = bytes.split_first_chunk::<2>() else {
            return Ok(None);
        };
        let key_len = usize::from(u16::from_be_bytes(*key_len));
        let Some(key) = rest.get(..key_len) else {
            return Ok(None);
        };
        let mut pos = 2 + key_len;
        let Some(position) = vint::read_unsigned(bytes, &mut pos) else {
            return Ok(None);
        };
        let promoted_at = pos;
        let Some(promoted_len) = vint::read_unsigned(bytes, &mut pos) else {
            return Ok(None);
        };
        if promoted_len > i32::MAX as u64 {
            return Err(Error::corrupt(
                "index.promoted_size",
                offset + promoted_at as u64,
                "a length of 31 bits",
                promoted_len as i64,
            ));
        }
        let end = pos + promoted_len as usize;
        let Some(promoted) = bytes.get(pos..end) else {
            return Ok(None);
        };
        Ok(Some((
            IndexEntry {
                key,
                position,
                promoted,
            },
            end,
        )))
    }
}

/// Reader of the entries in a slice of Index.db that begins with an entry.
#[derive(Clone, Debug)]
pub struct IndexReader<'a> {
    rest: &'a [u8],
    offset: u64,
}

impl<'a> IndexReader<'a> {
    /// Creates a reader of a whole file.
    pub fn new(bytes: &'a [u8]) -> IndexReader<'a> {
        IndexReader::with_base(bytes, 0)
    }

    /// Creates a reader of a part of a file, at offset `base`.
    pub fn with_base(bytes: &'a [u8], base: u64) -> IndexReader<'a> {
        IndexReader {
            rest: bytes,
            offset: base,
        }
    }

    /// Offset of the next entry in the file.
    pub fn offset(&self) -> u64 {
        self.offset
    }
}

impl<'a> Iterator for IndexReader<'a> {
    type Item = Result<IndexEntry<'a>>;

    /// Ends at the end of the slice, or after an error.
    fn next(&mut self) -> Option<Self::Item> {
        let bytes = std::mem::take(&mut self.rest);
        if bytes.is_empty() {
            return None;
        }
        Some(match IndexEntry::try_parse(bytes, self.offset) {
            Ok(Some((entry, len))) => {
                self.rest = &bytes[len..];
                self.offset += len as u64;
                Ok(entry)
            }
            Ok(None) => Err(Error::corrupt(
                "index.entry",
                self.offset,
                "a whole entry",
                format!("{} bytes left", bytes.len()),
            )),
            Err(error) => Err(error),
        })
    }
}

/// Appends an entry. `promoted` is the result of [`super::PromotedIndexBuilder::finish`].
///
/// # Panics
/// If the key is longer than 65,535 bytes: no key read from a file is.
pub fn write_entry(out: &mut Vec<u8>, key: &[u8], position: u64, promoted: &[u8]) {
    out.put_bytes16(key);
    out.put_uvint(position);
    out.put_bytes_v(promoted);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        let mut out = Vec::new();
        write_entry(&mut out, b"a", 0, &[]);
        write_entry(&mut out, b"", 300, &[9; 200]);
        write_entry(&mut out, &[7; 1000], u64::MAX, &[]);
        out
    }

    #[test]
    fn entries_round_trip() {
        let bytes = sample();
        assert_eq!(bytes[..5], [0, 1, b'a', 0, 0]);
        let entries: Vec<_> = IndexReader::new(&bytes).map(Result::unwrap).collect();
        assert_eq!(entries.len(), 3);
        assert_eq!((entries[1].position, entries[1].promoted.len()), (300, 200));
        assert_eq!(entries[2].key, [7; 1000]);
        let mut rest = bytes.as_slice();
        for entry in &entries {
            let (parsed, len) = IndexEntry::try_parse(rest, 0).unwrap().unwrap();
            assert_eq!(parsed, *entry);
            rest = &rest[len..];
        }
        assert!(rest.is_empty());
    }

    #[test]
    fn a_truncated_entry_is_an_error_in_a_file_and_incomplete_in_a_stream() {
        let bytes = sample();
        let ends: Vec<usize> = {
            let mut reader = IndexReader::new(&bytes);
            let mut ends = vec![0];
            while reader.next().is_some() {
                ends.push(reader.offset() as usize);
            }
            ends
        };
        for len in 0..bytes.len() {
            let whole = IndexReader::new(&bytes[..len]).all(|entry| entry.is_ok());
            assert_eq!(whole, ends.contains(&len), "{len}");
            let first = IndexEntry::try_parse(&bytes[..len], 0).unwrap();
            assert_eq!(first.is_some(), len >= ends[1]);
        }
    }

    #[test]
    fn absurd_lengths() {
        let mut bytes = vec![0, 1, b'a', 0];
        bytes.put_uvint(u64::MAX);
        assert!(IndexEntry::try_parse(&bytes, 0).is_err());
        let mut reader = IndexReader::with_base(&bytes, 100);
        let error = reader.next().unwrap().unwrap_err().to_string();
        assert!(error.contains("offset 104"), "{error}");
        assert!(reader.next().is_none());
    }

    proptest::proptest! {
        #[test]
        fn hostile_bytes(bytes in proptest::collection::vec(0u8.., 0..100)) {
            let _ = IndexEntry::try_parse(&bytes, 0);
            IndexReader::new(&bytes).for_each(drop);
        }
    }
}
