//! Sampled partitions of an input with their positions.

use compactor_sstable::partitioner::Position;

/// A sampled entry of a partition index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    /// Ring position.
    pub(crate) at: Position,
    /// Approximate number of uncompressed bytes before it.
    pub(crate) data_before: u64,
    /// Offset of its entry in `Index.db`; 0 in a trie.
    pub(crate) index_offset: u64,
}
