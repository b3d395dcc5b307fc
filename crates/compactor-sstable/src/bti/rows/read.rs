//! Reading `Rows.db`.

use crate::bti::byte_comparable::append_prefix;
use crate::bti::node::Node;
use crate::bti::partitions::read_signed;
use crate::bti::trie_read::{Trie, Walk};
use crate::byte_reader::ByteReader;
use crate::data::clustering::Prefix;
use crate::data::deletion_time::DeletionTime;
use crate::error::{Error, Result};
use crate::types::CqlType;

use super::{DELETION_TIME_LEN, DELETION_TIME_VERSION, FLAG_OPEN_MARKER};

/// Entry of a partition.
#[derive(Clone, Copy, Debug)]
pub struct RowIndex<'a> {
    /// Partition key.
    pub key: &'a [u8],
    /// Position of the partition in the uncompressed `Data.db`.
    pub data_position: u64,
    /// Number of blocks: Cassandra writes two or more.
    pub block_count: u64,
    /// Partition deletion.
    pub deletion: DeletionTime,
    /// End position of the entry.
    pub end: u64,
    position: u64,
    trie: Trie<'a>,
}

/// A block of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Offset from the partition's first byte. After the last block: that of the partition's end byte.
    pub offset: u64,
    /// Deletion of the range tombstone that is open at its start.
    pub open_deletion: Option<DeletionTime>,
}

impl<'a> RowIndex<'a> {
    /// Parses the entry at `position` of the whole file, as given in `Partitions.db`.
    ///
    /// # Errors
    /// Corruption if bytes are missing or inconsistent.
    pub fn parse(bytes: &'a [u8], position: u64) -> Result<RowIndex<'a>> {
        RowIndex::parse_after(bytes, position, 0)
    }

    /// As [`RowIndex::parse`], where the previous entry ends at `start`: no node precedes it, so that even
    /// for hostile bytes a walk over all entries is not longer than the file.
    ///
    /// # Errors
    /// Corruption if bytes are missing or inconsistent.
    pub fn parse_after(bytes: &'a [u8], position: u64, start: u64) -> Result<RowIndex<'a>> {
        let rest = usize::try_from(position)
            .ok()
            .and_then(|at| bytes.get(at..));
        let Some(rest) = rest.filter(|rest| !rest.is_empty()) else {
            return Err(Error::corrupt(
                "row_index.entry",
                position,
                format!("a position below {}", bytes.len()),
                position,
            ));
        };
        let mut reader = ByteReader::with_base(rest, position);
        let key = reader.bytes16("row_index.key")?;
        let base = reader.offset();
        let data_position = reader.uvint("row_index.data_position")?;
        if data_position > i64::MAX as u64 {
            return Err(Error::corrupt(
                "row_index.data_position",
                base,
                "a position of 63 bits",
                data_position,
            ));
        }
        let root_at = reader.offset();
        let delta = reader.svint("row_index.root")?;
        let root = base
            .checked_add_signed(delta)
            .filter(|root| (start..position).contains(root));
        let Some(root) = root else {
            return Err(Error::corrupt(
                "row_index.root",
                root_at,
                format!("a root from {start} on, before the entry at {position}"),
                format!("{delta} from {base}"),
            ));
        };
        let count_at = reader.offset();
        let raw_count = reader.vint32("row_index.block_count")?;
        // Each block has a node of its own before the entry.
        let block_count = u64::try_from(raw_count)
            .ok()
            .filter(|count| (1..position).contains(count));
        let Some(block_count) = block_count else {
            return Err(Error::corrupt(
                "row_index.block_count",
                count_at,
                "one block or more, each with a node before the entry",
                raw_count,
            ));
        };
        let deletion = DeletionTime::read(&mut reader, DELETION_TIME_VERSION)?;
        let nodes = bytes.get(..position as usize).unwrap_or_default();
        Ok(RowIndex {
            key,
            data_position,
            block_count,
            deletion,
            end: reader.offset(),
            position,
            trie: Trie::new(nodes, start, root),
        })
    }

    /// Returns the block that contains `prefix` or its insertion point, or the end of the partition if it is
    /// after all blocks. The result may be the preceding block, but never a following one.
    ///
    /// # Errors
    /// Corruption in the trie, or a prefix without byte-comparable form.
    pub fn floor(&self, types: &[CqlType], prefix: Prefix<'_>) -> Result<Block> {
        let mut comparable = Vec::new();
        append_prefix(types, prefix, &mut comparable)?;
        match self.trie.floor(&comparable)? {
            Some(node) if node.payload_bits() != 0 => self.block(&node),
            // The first separator is empty, so there is always one that is not greater.
            _ => Err(Error::corrupt(
                "row_index",
                self.position,
                "a first block that begins with nothing",
                "no block before a clustering",
            )),
        }
    }

    /// Returns all blocks in order, followed by the end of the partition.
    pub fn blocks(&self) -> Blocks<'a> {
        Blocks {
            index: *self,
            walk: self.trie.walk(),
            seen: 0,
            offset: None,
        }
    }

    fn block(&self, node: &Node<'a>) -> Result<Block> {
        let bits = node.payload_bits();
        let has_open = bits & FLAG_OPEN_MARKER != 0;
        let len = usize::from(bits & !FLAG_OPEN_MARKER);
        let mut reader = ByteReader::with_base(node.after(), node.position());
        let offset = read_signed(reader.bytes(len, "row_index.block.offset")?);
        let Ok(offset) = u64::try_from(offset) else {
            return Err(Error::corrupt(
                "row_index.block.offset",
                node.position(),
                "an offset of 0 or more",
                offset,
            ));
        };
        let open_deletion = has_open
            .then(|| DeletionTime::read(&mut reader, DELETION_TIME_VERSION))
            .transpose()?;
        let payload_len = len + if has_open { DELETION_TIME_LEN } else { 0 };
        self.trie.check_page(node, payload_len)?;
        Ok(Block {
            offset,
            open_deletion,
        })
    }
}

/// Iterator over the blocks of a partition.
#[derive(Clone, Debug)]
pub struct Blocks<'a> {
    index: RowIndex<'a>,
    walk: Walk<'a>,
    seen: u64,
    offset: Option<u64>,
}

impl Blocks<'_> {
    /// Returns the next block, and at last the end of the partition; then `None`.
    ///
    /// # Errors
    /// Corruption in the trie: offsets that do not ascend, or a number of blocks other than that of the
    /// entry.
    pub fn next_block(&mut self) -> Result<Option<Block>> {
        let wanted = self.index.block_count + 1;
        let node = self.walk.next_payload()?;
        self.seen += u64::from(node.is_some());
        if self.seen > wanted || (node.is_none() && self.seen != wanted) {
            return Err(Error::corrupt(
                "row_index.block_count",
                self.index.position,
                format!("{wanted} separators, the end included"),
                self.seen,
            ));
        }
        let Some(node) = node else { return Ok(None) };
        let block = self.index.block(&node)?;
        if self.seen == 1 && !self.walk.key().is_empty() {
            return Err(Error::corrupt(
                "row_index",
                node.position(),
                "a first block that begins with nothing",
                "a separator that is not empty",
            ));
        }
        if self.offset.is_some_and(|before| before >= block.offset) {
            return Err(Error::corrupt(
                "row_index.block.offset",
                node.position(),
                format!("more than {}", self.offset.unwrap_or_default()),
                block.offset,
            ));
        }
        self.offset = Some(block.offset);
        Ok(Some(block))
    }

    /// Separator of the block returned last, in byte-comparable form.
    pub fn separator(&self) -> &[u8] {
        self.walk.key()
    }
}
