//! Buffers of an output's blocks.

use std::sync::Mutex;

use compactor_io::lock;

use crate::read::workers::WorkerQueue;
use crate::write::pending::Pending;

/// Counts the blocks being compressed or waiting to be written, and recycles their buffers.
#[derive(Debug)]
pub struct OutputBlocks {
    /// Number of pending blocks below which another may be filled.
    most: usize,
    pending: Pending,
    pub(super) spare: Mutex<Vec<Vec<u8>>>,
}

impl OutputBlocks {
    /// Allows a block to be filled while fewer than `most` are pending. Blocks that were filled earlier, by
    /// ranges that wait for their turn, may exceed that number.
    pub fn new(most: usize) -> OutputBlocks {
        OutputBlocks {
            most: most.max(1),
            pending: Pending::default(),
            spare: Mutex::default(),
        }
    }

    /// Processes the queue until another block may be filled.
    pub(crate) fn wait(&self, queue: &WorkerQueue) {
        self.pending.wait_for_less(self.most, queue);
    }

    pub(crate) fn begin(&self) {
        self.pending.begin();
    }

    pub(crate) fn end(&self) {
        self.pending.end();
    }

    /// Returns a buffer for a block of this length, with some room for the row that exceeds it.
    pub(crate) fn take(&self, len: usize) -> Vec<u8> {
        let mut block = lock(&self.spare).pop().unwrap_or_default();
        // A row longer than a block made it grow: that memory is freed.
        block.shrink_to(len + len / 4);
        block.reserve(len + len / 8);
        block
    }

    /// Recycles a buffer.
    pub(crate) fn put(&self, mut block: Vec<u8>) {
        block.clear();
        if block.capacity() > 0 {
            // Each was taken here: no more are kept than were in use at a time.
            lock(&self.spare).push(block);
        }
    }
}
