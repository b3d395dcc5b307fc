//! Sequential scan of one SSTable.

use std::path::Path;
use std::sync::Arc;

use compactor_io::{Io, ReadMode};

use crate::error::Result;
use crate::input::sstable::InputSstable;
use crate::read::cursor::Cursor;
use crate::read::decode::DecodedBlocks;
use crate::read::whole_file::read_ahead;
use crate::read::workers::Workers;

/// An SSTable with a cursor over its data and a thread that decodes ahead.
#[derive(Debug)]
pub struct Scan {
    // Fields are dropped in order: the cursor before the thread that decodes for it.
    cursor: Cursor<DecodedBlocks>,
    sstable: InputSstable,
    _workers: Workers,
}

impl Scan {
    /// Opens the SSTable whose `Data.db` is `path` and starts reading ahead.
    ///
    /// # Errors
    /// Damage or something unsupported in its metadata, or a failed read.
    pub fn open(io: &Io, path: &Path, mode: ReadMode) -> Result<Scan> {
        Scan::start(io, InputSstable::open(io, path, mode)?)
    }

    /// Starts reading an opened SSTable ahead.
    ///
    /// # Errors
    /// A failed open, or the system refuses a thread.
    pub fn start(io: &Io, sstable: InputSstable) -> Result<Scan> {
        let workers = Workers::start(1)?;
        let encoding = Arc::clone(&sstable.encoding);
        let blocks = read_ahead(sstable.open_data(io)?, encoding, &workers);
        let cursor = Cursor::new(
            blocks,
            Arc::new(sstable.layout()?),
            sstable.partitioner,
            sstable.data_path(),
        );
        Ok(Scan {
            cursor,
            sstable,
            _workers: workers,
        })
    }

    /// The cursor: [`Cursor::next_partition`], [`Cursor::static_row`],
    /// [`Cursor::next_unfiltered`].
    pub fn cursor(&mut self) -> &mut Cursor<DecodedBlocks> {
        &mut self.cursor
    }

    /// Metadata of the SSTable.
    pub fn sstable(&self) -> &InputSstable {
        &self.sstable
    }
}
