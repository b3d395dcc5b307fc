//! Parts of an output's index, which do not depend on where in the output their range begins.

use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::partitioner::KeyHash;

/// Part of the index.
#[derive(Clone, Copy, Debug)]
pub enum IndexPart {
    /// Entry of a partition. Its bytes are the promoted index and the key.
    Partition {
        /// Token and hashes of the key.
        hash: KeyHash,
        /// Hash of the key for the cardinality sketch.
        cardinality_hash: u64,
        /// Position relative to the range's first byte.
        position: u64,
        /// Length, bytes.
        len: u64,
        /// Partition deletion.
        deletion: DeletionTime,
        /// Length of its promoted index.
        promoted_len: usize,
        /// Number of blocks of its rows, if they are in a trie.
        blocks: u32,
    },
    /// Block of a partition's rows. Its bytes are the separator.
    Block {
        /// Position in the partition.
        offset: u64,
        /// Deletion that is open at its start.
        open: DeletionTime,
    },
}

impl IndexPart {
    /// Position of the next partition, if this part ends one.
    #[inline]
    pub(crate) fn end(&self) -> Option<u64> {
        match self {
            IndexPart::Partition { position, len, .. } => Some(position + len),
            IndexPart::Block { .. } => None,
        }
    }
}
