//! Interface between the writer of partitions and what receives them: uncompressed blocks and parts of the index.
//!
//! Blocks go to a file, to the range of a merge, or nowhere.

use compactor_sstable::statistics::MetadataCollector;

use crate::error::Result;
use crate::read::batch::Batch;
use crate::write::index_part::IndexPart;

/// Receiver of partitions: uncompressed blocks in file order, and their index.
pub trait PartitionSink {
    /// Length of every block but the last: a multiple of the chunk length.
    fn block_len(&self) -> usize;

    /// Returns an empty buffer for the next block; waits while too many blocks are pending.
    ///
    /// # Errors
    /// A failure of an earlier block, a failed write to the index, or cancellation.
    fn take_buffer(&mut self) -> Result<Vec<u8>>;

    /// Takes ownership of a filled block, and of the parts of the index that were built since the previous one:
    /// entries of the partitions that end in it, each after the blocks of its partition's rows. `collector` has the
    /// statistics of its content and all before it.
    fn put_block(
        &mut self,
        block: Vec<u8>,
        index: Batch<IndexPart>,
        collector: &mut MetadataCollector,
    );
}
