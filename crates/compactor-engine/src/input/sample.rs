//! Partitions of an input whose place in its data is known.

use compactor_sstable::partitioner::Position;

/// A partition that an index was asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    /// Where it stands in the ring.
    pub(crate) at: Position,
    /// Uncompressed bytes before it, roughly.
    pub(crate) data_before: u64,
    /// Its entry in `Index.db`.
    pub(crate) index_offset: u64,
}

impl Sample {
    /// A sample of a trie, which is known where it is in the data.
    pub(crate) fn of_trie(at: Position, data_before: u64) -> Sample {
        Sample {
            at,
            data_before,
            index_offset: 0,
        }
    }
}
