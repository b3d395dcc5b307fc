//! An SSTable of partitions that are not read from other SSTables: generated ones, or rows of a caller.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use compactor_engine::job::Budget;
use compactor_engine::publish::Staging;
use compactor_engine::read::Workers;
use compactor_engine::write::{
    FilePartitionWriter, OutputBlocks, SstableSettings, SstableWriter, WriteSettings,
};
use compactor_io::{Io, WriteMode};
use compactor_sstable::partitioner::Partitioner;

use crate::Result;

/// Where and how such SSTables are written, with Murmur3Partitioner.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartitionOutput<'a> {
    pub(crate) io: &'a Io,
    pub(crate) staging: &'a Arc<Staging>,
    /// Threads that compress, and their number.
    pub(crate) workers: &'a Workers,
    pub(crate) threads: usize,
    pub(crate) write_mode: WriteMode,
}

impl PartitionOutput<'_> {
    /// Creates the files and calls `fill` with the writer of their partitions, in token order. Nothing is
    /// published: what is returned is to be finished or staged.
    ///
    /// # Errors
    /// Those of `fill`, a failed file operation, or settings that are not supported.
    pub(crate) fn write(
        &self,
        settings: SstableSettings,
        fill: impl FnOnce(&mut FilePartitionWriter) -> Result<()>,
    ) -> Result<(SstableWriter, FilePartitionWriter)> {
        let cancelled = Arc::new(AtomicBool::new(false));
        let write = WriteSettings {
            mode: self.write_mode,
            buffer_bytes: 1 << 20,
            blocks: Arc::new(OutputBlocks::new(Budget::most_output_blocks(self.threads))),
            // The compressed length is not known: files grow in steps.
            expected_len: None,
            queue: self.workers.queue(),
            cancelled: Arc::clone(&cancelled),
        };
        let (sstable, mut partitions) = SstableWriter::create(
            self.io,
            Arc::clone(self.staging),
            settings,
            Partitioner::Murmur3,
            &write,
        )?;
        let filled = fill(&mut partitions);
        // Blocks still queued after a failure are not needed.
        cancelled.store(filled.is_err(), Ordering::Relaxed);
        filled?;
        Ok((sstable, partitions))
    }
}
