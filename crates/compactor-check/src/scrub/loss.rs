//! Losses of a scrub, by position.

use std::fmt;
use std::ops::Range;

use compactor_engine::read::hex;
use compactor_sstable::compression::info::CompressionInfo;
use compactor_sstable::types::CqlType;
use serde::Serialize;

use crate::dump::key_argument;

/// Kind of a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LossKind {
    /// Bytes of unknown content: partitions, or the rest of one.
    Bytes,
    /// A whole partition, with the key that the index has for it.
    Partition,
    /// Some rows and range tombstones of a partition.
    Rows,
    /// One row.
    Row,
    /// The static row of a partition.
    StaticRow,
    /// A bound of a range tombstone: the deletion reaches less far than it did.
    RangeTombstone,
    /// The deletion of a partition: rows that it deleted may come back.
    PartitionDeletion,
}

impl LossKind {
    /// Its name in JSON, with spaces.
    pub fn name(self) -> &'static str {
        match self {
            LossKind::Bytes => "bytes",
            LossKind::Partition => "partition",
            LossKind::Rows => "rows",
            LossKind::Row => "row",
            LossKind::StaticRow => "static row",
            LossKind::RangeTombstone => "range tombstone",
            LossKind::PartitionDeletion => "partition deletion",
        }
    }
}

/// Data that could not be salvaged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Loss {
    /// Kind.
    pub kind: LossKind,
    /// Start in the uncompressed content of `Data.db`.
    pub position: u64,
    /// Uncompressed bytes; 0 where nothing but the effect of a deletion is lost, and for partitions
    /// after the end of a truncated file.
    pub bytes: u64,
    /// Offset in `Data.db` of the chunk that contains its start.
    pub file_offset: Option<u64>,
    /// Key of the partition in hexadecimal digits, where it is known.
    pub partition_key: Option<String>,
    /// The same as `dump -k` takes it: the text of its type, or `0x` and hexadecimal digits where that
    /// cannot be printed.
    pub key: Option<String>,
    /// Token of the partition, where its key is known.
    pub token: Option<i64>,
    /// Reason.
    pub reason: String,
}

/// Key and token of a partition.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owner<'a> {
    pub(super) key: &'a [u8],
    pub(super) token: i64,
}

/// Lists the first losses and counts all.
#[derive(Debug)]
pub(super) struct Losses {
    limit: usize,
    /// Offsets of the chunks; in a file without chunks offsets are equal to positions.
    chunks: Option<CompressionInfo>,
    key_type: CqlType,
    pub(super) listed: Vec<Loss>,
    pub(super) count: u64,
    pub(super) bytes: u64,
    pub(super) partitions: u64,
}

impl Losses {
    pub(super) fn new(limit: usize, chunks: Option<CompressionInfo>, key_type: CqlType) -> Losses {
        Losses {
            limit,
            chunks,
            key_type,
            listed: Vec::new(),
            count: 0,
            bytes: 0,
            partitions: 0,
        }
    }

    /// Records the loss of `range`.
    pub(super) fn add(
        &mut self,
        kind: LossKind,
        range: Range<u64>,
        owner: Option<Owner<'_>>,
        reason: &str,
    ) {
        self.count += 1;
        let bytes = range.end.saturating_sub(range.start);
        self.bytes += bytes;
        self.partitions += u64::from(kind == LossKind::Partition);
        if self.listed.len() < self.limit {
            self.listed.push(Loss {
                kind,
                position: range.start,
                bytes,
                file_offset: self.file_offset(range.start),
                partition_key: owner.map(|o| hex(o.key)),
                key: owner.map(|o| key_argument(&self.key_type, o.key)),
                token: owner.map(|o| o.token),
                reason: reason.to_owned(),
            });
        }
    }

    /// Counts lost partitions that are not listed.
    pub(super) fn count_partitions(&mut self, partitions: u64) {
        self.count += partitions;
        self.partitions += partitions;
    }

    /// Offset in the file of the byte at `position`, or of the chunk that contains it.
    pub(super) fn file_offset(&self, position: u64) -> Option<u64> {
        match &self.chunks {
            None => Some(position),
            Some(info) => {
                let index = usize::try_from(info.chunk_index_of(position)).ok()?;
                info.chunk(index).map(|chunk| chunk.offset)
            }
        }
    }
}

/// Quotes a shell word if needed.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.:+/@,".contains(c);
    if word.chars().all(is_plain) && !word.starts_with('-') {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at position {}", self.kind.name(), self.position)?;
        if let Some(offset) = self.file_offset.filter(|offset| *offset != self.position) {
            write!(f, " (chunk at offset {offset})")?;
        }
        write!(f, ", {} bytes", self.bytes)?;
        if let Some(key) = &self.key {
            write!(f, ", partition {}", quoted(key))?;
        }
        if let Some(token) = self.token {
            write!(f, " token {token}")?;
        }
        write!(f, ": {}", self.reason)
    }
}
