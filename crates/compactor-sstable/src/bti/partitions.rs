//! `Partitions.db`: from a partition key to the partition.
//!
//! ```text
//! file    := trie | bytes16 first key | bytes16 last key
//!          | i64 offset of first key | i64 key count | i64 root
//! payload := [u8 hash, if bits >= 8] | signed position in (bits - 7 or bits) bytes
//! ```
//!
//! Each key is truncated to the shortest prefix that distinguishes it from its neighbours; a byte of its hash
//! makes a false match unlikely. A position of 0 or more is that of the partition's entry in `Rows.db`; a
//! negative one is the complement of a position in `Data.db`.
//!
//! Source: `PartitionIndexBuilder`, `PartitionIndex`.

use crate::bti::byte_comparable::append_key;
use crate::bti::node::Node;
use crate::bti::paged_output::PagedOutput;
use crate::bti::trie_read::{Trie, Walk};
use crate::bti::trie_write::{Payload, TrieWriter};
use crate::byte_reader::ByteReader;
use crate::byte_sink::ByteSink;
use crate::error::{Error, Result};
use crate::partitioner::KeyHash;

/// Length of the footer: three 64-bit numbers.
const FOOTER_LEN: usize = 24;
const FLAG_HAS_HASH_BYTE: u8 = 8;

/// Position of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PartitionPosition {
    /// Position in the uncompressed `Data.db`: the partition has no row index.
    Data(u64),
    /// Position of its entry in `Rows.db`.
    Rows(u64),
}

impl PartitionPosition {
    fn encode(self) -> i64 {
        match self {
            PartitionPosition::Data(position) => !(position as i64),
            PartitionPosition::Rows(position) => position as i64,
        }
    }

    fn decode(raw: i64) -> PartitionPosition {
        match raw {
            0.. => PartitionPosition::Rows(raw as u64),
            _ => PartitionPosition::Data(!raw as u64),
        }
    }
}

/// Number of bytes of a signed number (`SizedInts.nonZeroSize`).
pub(super) fn signed_len(value: i64) -> usize {
    let magnitude = if value < 0 { !value } else { value };
    (64 - magnitude.leading_zeros() as usize + 1).div_ceil(8)
}

/// Appends the low `len` bytes of a number.
pub(super) fn put_signed(out: &mut Vec<u8>, value: i64, len: usize) {
    out.put_slice(&value.to_be_bytes()[8 - len..]);
}

/// Reads a signed number of at most 8 bytes.
pub(super) fn read_signed(bytes: &[u8]) -> i64 {
    let start = match bytes.first() {
        Some(first) if first & 0x80 != 0 => -1i64,
        _ => 0,
    };
    bytes
        .iter()
        .fold(start, |n, byte| (n << 8) | i64::from(*byte))
}

#[derive(Clone, Copy, Debug)]
struct PartitionPayload {
    hash: u8,
    position: i64,
}

impl Payload for PartitionPayload {
    fn encoded_len(&self) -> usize {
        1 + signed_len(self.position)
    }

    fn bits(&self) -> u8 {
        FLAG_HAS_HASH_BYTE + (signed_len(self.position) - 1) as u8
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.put_u8(self.hash);
        put_signed(out, self.position, signed_len(self.position));
    }
}

/// Writer of `Partitions.db`. The bytes are collected in [`PartitionIndexWriter::output`], from which the
/// caller takes them.
#[derive(Debug, Default)]
pub struct PartitionIndexWriter {
    out: PagedOutput,
    trie: TrieWriter<PartitionPayload>,
    first_key: Vec<u8>,
    last_key: Vec<u8>,
    /// The last key in byte-comparable form, to be truncated once its successor is known.
    last: Vec<u8>,
    last_payload: Option<PartitionPayload>,
    last_diff: usize,
    next: Vec<u8>,
    count: u64,
}

impl PartitionIndexWriter {
    /// Creates an empty index.
    pub fn new() -> PartitionIndexWriter {
        PartitionIndexWriter::default()
    }

    /// Number of keys added.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// First and last key added.
    pub fn key_range(&self) -> (&[u8], &[u8]) {
        (&self.first_key, &self.last_key)
    }

    /// Output that has not been taken.
    pub fn output(&mut self) -> &mut PagedOutput {
        &mut self.out
    }

    /// Adds the next partition. The low byte of the second half of the key's Murmur3 hash is stored for every
    /// partitioner (`IFilter.FilterKey.filterHashLowerBits`).
    ///
    /// # Errors
    /// Unsupported if the key does not sort after the previous one.
    pub fn add(&mut self, hash: &KeyHash, key: &[u8], position: PartitionPosition) -> Result<()> {
        self.next.clear();
        append_key(hash, key, &mut self.next);
        if let Some(payload) = self.last_payload {
            let diff = diff_point(&self.last, &self.next);
            let cut = diff.max(self.last_diff).min(self.last.len());
            self.trie.add(&mut self.out, &self.last[..cut], payload)?;
            self.last_diff = diff;
        } else {
            self.first_key.extend_from_slice(key);
        }
        std::mem::swap(&mut self.last, &mut self.next);
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        self.last_payload = Some(PartitionPayload {
            hash: hash.h2 as u8,
            position: position.encode(),
        });
        self.count += 1;
        Ok(())
    }

    /// Writes the rest of the file to [`PartitionIndexWriter::output`].
    ///
    /// # Errors
    /// As [`PartitionIndexWriter::add`].
    pub fn finish(&mut self) -> Result<()> {
        if let Some(payload) = self.last_payload.take() {
            let cut = self.last_diff.min(self.last.len());
            self.trie.add(&mut self.out, &self.last[..cut], payload)?;
        }
        let root = self.trie.complete(&mut self.out);
        let first_key_at = self.out.position();
        let out = self.out.buffer();
        out.put_bytes16(&self.first_key);
        out.put_bytes16(&self.last_key);
        out.put_i64(first_key_at as i64);
        out.put_i64(self.count as i64);
        out.put_i64(root as i64);
        Ok(())
    }
}

/// The byte-comparable form of a key.
fn comparable_key(hash: &KeyHash, key: &[u8]) -> Vec<u8> {
    let mut comparable = Vec::with_capacity(2 * key.len() + 16);
    append_key(hash, key, &mut comparable);
    comparable
}

/// Length of the shortest prefix of one that is not a prefix of the other (`ByteComparable.diffPoint`).
fn diff_point(a: &[u8], b: &[u8]) -> usize {
    1 + a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// A parsed `Partitions.db`.
#[derive(Clone, Copy, Debug)]
pub struct PartitionIndex<'a> {
    /// First partition key.
    pub first_key: &'a [u8],
    /// Last partition key.
    pub last_key: &'a [u8],
    /// Number of partitions according to the footer: Cassandra uses it for estimates, and does not validate
    /// it.
    pub key_count: u64,
    /// Upper bound of the number of entries.
    most_entries: u64,
    trie: Trie<'a>,
    file_len: u64,
}

/// A partition in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionEntry {
    /// Its position.
    pub position: PartitionPosition,
    /// Low byte of its key's hash, if stored.
    pub hash: Option<u8>,
}

impl<'a> PartitionIndex<'a> {
    /// Parses the footer of the whole file.
    ///
    /// # Errors
    /// Corruption if its numbers are inconsistent.
    pub fn parse(bytes: &'a [u8]) -> Result<PartitionIndex<'a>> {
        let Some(footer_at) = bytes.len().checked_sub(FOOTER_LEN) else {
            return Err(Error::corrupt(
                "partition_index.footer",
                0,
                format!("{FOOTER_LEN} bytes or more"),
                format!("{} bytes", bytes.len()),
            ));
        };
        let (body, footer) = bytes.split_at(footer_at);
        let mut reader = ByteReader::with_base(footer, footer_at as u64);
        let mut number = |name, limit: u64| {
            let at = reader.offset();
            let raw = reader.i64(name)?;
            match u64::try_from(raw) {
                Ok(number) if number <= limit => Ok(number),
                _ => Err(Error::corrupt(name, at, format!("0 to {limit}"), raw)),
            }
        };
        let keys_at = number("partition_index.first_key_offset", footer_at as u64)?;
        let key_count = number("partition_index.key_count", i64::MAX as u64)?;
        let root = number("partition_index.root", keys_at.saturating_sub(1))?;
        let (nodes, keys) = body.split_at(keys_at as usize);
        let mut reader = ByteReader::with_base(keys, keys_at);
        let first_key = reader.bytes16("partition_index.first_key")?;
        let last_key = reader.bytes16("partition_index.last_key")?;
        reader.expect_end("partition_index.footer", "the footer after the last key")?;
        Ok(PartitionIndex {
            first_key,
            last_key,
            key_count,
            // Each key has a node of its own, of at least one byte.
            most_entries: keys_at,
            trie: Trie::new(nodes, 0, root),
            file_len: bytes.len() as u64,
        })
    }

    /// Length of the file.
    pub fn file_len(&self) -> u64 {
        self.file_len
    }

    /// Returns the only partition that may have this key. Its entry in `Rows.db` or `Data.db` contains its
    /// key, which decides.
    ///
    /// # Errors
    /// Corruption in the trie.
    pub fn candidate(&self, hash: &KeyHash, key: &[u8]) -> Result<Option<PartitionPosition>> {
        let (node, is_whole_key) = self.trie.follow(&comparable_key(hash, key))?;
        if node.payload_bits() == 0 || (!is_whole_key && node.range() > 0) {
            return Ok(None);
        }
        let entry = self.entry(&node)?;
        if entry.hash.is_some_and(|stored| stored != hash.h2 as u8) {
            return Ok(None);
        }
        Ok(Some(entry.position))
    }

    /// Returns all partitions in order.
    pub fn iter(&self) -> PartitionEntries<'a> {
        PartitionEntries {
            index: *self,
            walk: self.trie.walk(),
            seen: 0,
            current: None,
        }
    }

    /// Returns the first partitions at or after a token of Murmur3Partitioner.
    ///
    /// # Errors
    /// Corruption in the trie.
    pub fn around(&self, token: i64) -> Result<TokenNeighbors> {
        let mut key = Vec::with_capacity(24);
        let hash = KeyHash {
            token,
            ..KeyHash::default()
        };
        append_key(&hash, &[], &mut key);
        // Only the token.
        key.truncate(1 + 8);
        let (may_be_before, mut walk) = self.trie.walk_from(&key)?;
        let next = walk.next_payload()?;
        Ok(TokenNeighbors {
            may_be_before: may_be_before.map(|node| self.entry(&node)).transpose()?,
            next: next.map(|node| self.entry(&node)).transpose()?,
        })
    }

    fn entry(&self, node: &Node<'a>) -> Result<PartitionEntry> {
        let bits = node.payload_bits();
        let (hash_len, len) = match bits.checked_sub(FLAG_HAS_HASH_BYTE) {
            Some(more) => (1, usize::from(more) + 1),
            None => (0, usize::from(bits)),
        };
        let Some(payload) = node.after().get(..hash_len + len) else {
            return Err(Error::corrupt(
                "partition_index.payload",
                node.position(),
                format!("{} bytes after the node", hash_len + len),
                format!("{} bytes left", node.after().len()),
            ));
        };
        self.trie.check_page(node, payload.len())?;
        let (hash, position) = payload.split_at(hash_len);
        let raw = read_signed(position);
        if raw == i64::MIN {
            return Err(Error::corrupt(
                "partition_index.position",
                node.position(),
                "a position",
                "the minimum 64-bit number, which is not a position",
            ));
        }
        Ok(PartitionEntry {
            position: PartitionPosition::decode(raw),
            hash: hash.first().copied(),
        })
    }
}

/// Partitions near a token. Without whole keys they are not always known exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenNeighbors {
    /// Partition that is either the last one before the token or the first one at or after it.
    pub may_be_before: Option<PartitionEntry>,
    /// First partition after `may_be_before` that is not before the token; `None` if there is none.
    pub next: Option<PartitionEntry>,
}

/// Iterator over the partitions of an index.
#[derive(Clone, Debug)]
pub struct PartitionEntries<'a> {
    index: PartitionIndex<'a>,
    walk: Walk<'a>,
    seen: u64,
    /// The partition returned last, and whether its node has no children.
    current: Option<(PartitionEntry, bool)>,
}

impl PartitionEntries<'_> {
    /// Returns the next partition; `None` after the last.
    ///
    /// # Errors
    /// Corruption in the trie, including shared nodes that make more entries than bytes.
    pub fn next_entry(&mut self) -> Result<Option<PartitionEntry>> {
        self.current = None;
        let most = self.index.most_entries;
        let node = self.walk.next_payload()?;
        self.seen += u64::from(node.is_some());
        if self.seen > most {
            return Err(Error::corrupt(
                "partition_index.entries",
                0,
                format!("at most {most}, one for each byte"),
                "more",
            ));
        }
        let entry = node.map(|node| self.index.entry(&node)).transpose()?;
        self.current = entry.zip(node.map(|node| node.range() == 0));
        Ok(entry)
    }

    /// Returns true if a lookup of this key leads to the partition returned last ([`PartitionIndex::candidate`]).
    ///
    /// # Errors
    /// Corruption in the trie.
    pub fn leads_here(&self, hash: &KeyHash, key: &[u8]) -> Result<bool> {
        let Some((entry, is_leaf)) = self.current else {
            return Ok(false);
        };
        // The transitions of a node ascend, so there is one path for a key, and the walk is at its end.
        if is_leaf && comparable_key(hash, key).starts_with(self.walk.key()) {
            return Ok(entry.hash.is_none_or(|found| found == hash.h2 as u8));
        }
        Ok(self.index.candidate(hash, key)? == Some(entry.position))
    }

    /// Prefix of the partition returned last, in byte-comparable form.
    pub fn prefix(&self) -> &[u8] {
        self.walk.key()
    }
}

#[cfg(test)]
mod tests;
