//! Merge whose result is read row by row instead of written.
//!
//! Uses the same ranges and threads as a merge into outputs. Their bytes are sent over a bounded channel to
//! the consumer, which parses them with a [`Cursor`], in order and with the header that an output would have.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use compactor_sstable::data::layout::Layout;
use compactor_sstable::statistics::SerializationHeader;
use crossbeam_channel::{Receiver, Sender, bounded};

use crate::error::{Error, Result};
use crate::input::header_union::layout_of;
use crate::job::earlier_passes::EarlierPasses;
use crate::job::merge_job::MergeJob;
use crate::job::output_plan::OutputPlan;
use crate::job::pass::{Pass, run_ranges};
use crate::job::range_plan::RangePlan;
use crate::job::range_run::Destination;
use crate::merge::observer::Observer;
use crate::read::cursor::Cursor;
use crate::read::window::{Block, BlockSource, HEADROOM};
use crate::write::sstable_writer::WriteSettings;

/// Maximum number of blocks waiting for the consumer.
const BLOCKS_AHEAD: usize = 2;

/// Cursor over the rows of a merge, in the order of an SSTable.
#[derive(Debug)]
pub struct MergedRows {
    // Fields are dropped in order: without a receiver the threads end, which the handle waits for.
    cursor: Cursor<RowBlocks>,
    header: SerializationHeader,
    _merge: RunningMerge,
}

/// Blocks of a merge in progress.
#[derive(Debug)]
pub struct RowBlocks {
    blocks: Receiver<Result<Vec<u8>>>,
    has_ended: bool,
    spare: Vec<u8>,
}

/// The thread that started a merge; waits for it when dropped.
#[derive(Debug)]
struct RunningMerge {
    cancelled: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl MergeJob {
    /// Starts merging. Output settings are ignored.
    ///
    /// # Errors
    /// More inputs than memory or descriptors allow in one pass, a failed read, or the system refuses a
    /// thread. Damage in the inputs is an error of the cursor.
    pub fn rows(self) -> Result<MergedRows> {
        if self.max_concurrent < self.inputs.len() {
            return Err(Error::InvalidInput(format!(
                "{} SSTables, of which memory and open files allow {} at a time: merge them first, or allow \
                 more",
                self.inputs.len(),
                self.max_concurrent
            )));
        }
        let version = self.settings.descriptor.version;
        let header = self.settings.header.clone();
        let layout = Arc::new(layout_of(&header, version)?);
        let path = PathBuf::from("the merged rows");
        let (sender, receiver) = bounded(BLOCKS_AHEAD);
        let cancelled = Arc::new(AtomicBool::new(false));
        let source = RowBlocks {
            blocks: receiver,
            has_ended: false,
            spare: Vec::new(),
        };
        let cursor = Cursor::new(source, Arc::clone(&layout), self.partitioner, path);
        let is_cancelled = Arc::clone(&cancelled);
        let run = move || {
            let last = sender.clone();
            let ended = self.send_rows(sender, layout, &is_cancelled);
            // An empty block marks the end. Sending fails only if the consumer has been dropped.
            let _ = last.send(ended.map(|()| Vec::new()));
        };
        let started = std::thread::Builder::new()
            .name("merged-rows".to_owned())
            .spawn(run);
        let thread = Some(started.map_err(Error::thread("the merge"))?);
        Ok(MergedRows {
            cursor,
            header,
            _merge: RunningMerge { cancelled, thread },
        })
    }

    fn send_rows(
        self,
        sender: Sender<Result<Vec<u8>>>,
        layout: Arc<Layout>,
        cancelled: &Arc<AtomicBool>,
    ) -> Result<()> {
        if self.inputs.is_empty() {
            // All are fully expired.
            return Ok(());
        }
        let plan = RangePlan::of(&self, OutputPlan::default())?;
        let write = WriteSettings {
            cancelled: Arc::clone(cancelled),
            ..self.output_settings().write
        };
        let pass = Pass {
            earlier: &EarlierPasses::default(),
            is_last: true,
            started: Instant::now(),
        };
        let mut observer = CancelledBy(cancelled);
        let destination = Destination::Rows(sender);
        let merge = self.share(&mut observer, plan, destination, layout, write, &pass)?;
        run_ranges(&merge, &mut observer, |_, _| Ok(()))
    }
}

impl MergedRows {
    /// The cursor: [`Cursor::next_partition`], [`Cursor::static_row`], [`Cursor::next_unfiltered`].
    pub fn cursor(&mut self) -> &mut Cursor<RowBlocks> {
        &mut self.cursor
    }

    /// Columns and types of the rows.
    pub fn header(&self) -> &SerializationHeader {
        &self.header
    }
}

impl BlockSource for RowBlocks {
    fn next_block(&mut self) -> Result<Option<Block>> {
        if self.has_ended {
            return Ok(None);
        }
        let panicked = || Error::internal("the merge ended early");
        let bytes = self.blocks.recv().map_err(|_| panicked())??;
        if bytes.is_empty() {
            self.has_ended = true;
            return Ok(None);
        }
        let mut block = Block {
            bytes: std::mem::take(&mut self.spare),
            headroom: HEADROOM,
        };
        block.clear(HEADROOM);
        block.bytes.extend_from_slice(&bytes);
        Ok(Some(block))
    }

    fn recycle(&mut self, block: Block) {
        self.spare = block.bytes;
    }

    fn total_len(&self) -> u64 {
        // Unknown before the end.
        u64::MAX
    }
}

impl Drop for RunningMerge {
    fn drop(&mut self) {
        self.cancelled.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic is returned as an error of the cursor.
            let _ = thread.join();
        }
    }
}

/// Observer that only passes on cancellation.
struct CancelledBy<'a>(&'a AtomicBool);

impl Observer for CancelledBy<'_> {
    fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn progress(&mut self, _read_bytes: u64, _rows: u64, _partitions: u64) {}
}
