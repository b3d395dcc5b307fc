//! Sequential writing of a new file, asynchronously to the caller.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};

use rustix::io::ReadWriteFlags;

use crate::align::{DEFAULT_ALIGNMENT_U64, round_up};
use crate::backend::FileHandle;
use crate::backend::{Request, assert_may_block};
use crate::buffer::AlignedBuffer;
use crate::error::{IoError, IoErrorKind, IoOperation};
use crate::lock;
use crate::mode::{BackendKind, Mode, WriteMode};
use crate::open_output::OpenOutput;
use crate::pool::BufferPool;
use crate::preallocate::{Preallocation, trim};
use crate::write_transfer::WriteTransfer;
use crate::writeback::{Step, Writeback, drop_all_pages};

/// Buffering options of a [`SequentialWriter`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriterOptions {
    /// Length of a write, bytes; rounded up to the file's alignment.
    pub buffer_bytes: usize,
    /// Maximum number of writes in flight before the caller waits; at least 2. The writer holds one more
    /// buffer.
    pub in_flight: usize,
    /// Approximate final length of the file, bytes, for which blocks are reserved. Without it they are
    /// reserved in growing steps. It need not be accurate.
    pub expected_len: Option<u64>,
    /// Modes `trickle` and `dontneed`: number of bytes between forced write-backs.
    pub trickle_bytes: u64,
}

impl Default for WriterOptions {
    /// Four writes of 1 MiB in flight; write-back every 10 MiB, as Cassandra's `trickle_fsync_interval`.
    fn default() -> Self {
        WriterOptions {
            buffer_bytes: 1 << 20,
            in_flight: 4,
            expected_len: None,
            trickle_bytes: 10 << 20,
        }
    }
}

/// A complete file, of its final length, and durable (`fdatasync`). Its directory entry is not: see
/// [`sync_directory`](crate::sync_directory).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WrittenFile {
    /// Path with which it was created.
    pub path: PathBuf,
    /// Length, bytes.
    pub len: u64,
    /// Actual mode, never [`WriteMode::Auto`].
    pub mode: WriteMode,
    /// Backend used, never [`BackendKind::Auto`].
    pub backend: BackendKind,
}

/// Sequential writer of a new file, with several buffers in flight.
///
/// - Every write but the last starts at a multiple of the buffer length and is one buffer long. In direct
///   mode the last is padded with zeroes to the alignment, and [`finish`](Self::finish) truncates the file to
///   its actual length.
/// - The first failure is permanent: every later call returns it again, and nothing more is written. The file
///   is then useless, and must be deleted by its creator.
/// - A failed sync is never repeated, since the kernel may have dropped the pages that it could not write.
/// - Dropping the writer without [`finish`](Self::finish) waits for the writes in flight and leaves the file,
///   incomplete and possibly longer than the data written, to be deleted by the caller.
#[derive(Debug)]
pub struct SequentialWriter {
    shared: Arc<OpenOutput>,
    pool: BufferPool,
    buffer: Option<AlignedBuffer>,
    filled: usize,
    /// Offset of `buffer` in the file: a multiple of the buffer length.
    buffer_offset: u64,
    buffer_bytes: usize,
    in_flight_max: usize,
    preallocation: Preallocation,
    writeback: Option<Writeback>,
}

impl SequentialWriter {
    pub(crate) fn new(
        handle: Arc<FileHandle>,
        pool: BufferPool,
        mode: WriteMode,
        alignment: Option<u64>,
        flags: ReadWriteFlags,
        options: WriterOptions,
    ) -> SequentialWriter {
        let step = alignment.unwrap_or(DEFAULT_ALIGNMENT_U64);
        let buffer_bytes = round_up((options.buffer_bytes as u64).max(1), step)
            .min(round_up(crate::limits::OPERATION_BYTES_MAX as u64, step));
        // None in direct mode: with a sync every 64 MiB, alongside the work, publication took 0.08 s instead of 0.05 to
        // 1.3, and the work longer by as much, since the device flushes its cache at the expense of reads.
        let writeback = match mode {
            WriteMode::Trickle => Some(Writeback::new(options.trickle_bytes, false)),
            WriteMode::DontNeed => Some(Writeback::new(options.trickle_bytes, true)),
            _ => None,
        };
        SequentialWriter {
            shared: Arc::new(OpenOutput {
                handle,
                mode,
                alignment,
                flags,
                state: Mutex::default(),
                changed: Condvar::new(),
            }),
            pool,
            buffer: None,
            filled: 0,
            buffer_offset: 0,
            // At most the maximum length of an operation, which is a usize.
            buffer_bytes: buffer_bytes as usize,
            in_flight_max: options.in_flight.max(2),
            preallocation: Preallocation::new(options.expected_len, mode != WriteMode::Direct),
            writeback,
        }
    }

    /// Number of bytes passed to the writer.
    pub fn position(&self) -> u64 {
        self.buffer_offset + self.filled as u64
    }

    /// Path with which the file was created.
    pub fn path(&self) -> &Path {
        self.shared.path()
    }

    /// Actual mode, never [`WriteMode::Auto`].
    pub fn mode(&self) -> WriteMode {
        self.shared.mode
    }

    /// Backend of its writes, never [`BackendKind::Auto`].
    pub fn backend(&self) -> BackendKind {
        self.shared.handle.backend().kind()
    }

    /// Appends bytes. Copies them and returns, unless all buffers are in flight: then it waits for one of
    /// them.
    ///
    /// # Errors
    ///
    /// The first failure of any write so far, with its offset.
    ///
    /// # Panics
    ///
    /// If it would have to wait but was called from a completion, on an I/O thread.
    pub fn write_all(&mut self, mut bytes: &[u8]) -> Result<(), IoError> {
        while !bytes.is_empty() {
            let buffer = match &mut self.buffer {
                Some(buffer) => buffer,
                None => self.buffer.insert(self.pool.take(self.buffer_bytes)),
            };
            let count = bytes.len().min(self.buffer_bytes - self.filled);
            let (now, later) = bytes.split_at(count);
            buffer[self.filled..self.filled + count].copy_from_slice(now);
            self.filled += count;
            bytes = later;
            if self.filled == self.buffer_bytes {
                self.submit_buffer(true)?;
            }
        }
        Ok(())
    }

    /// Submits the content of the buffer, padded if necessary, once another write may be in flight.
    fn submit_buffer(&mut self, more_to_come: bool) -> Result<(), IoError> {
        let Some(mut buffer) = self.buffer.take() else {
            return Ok(());
        };
        let logical = self.filled;
        let len = match self.shared.alignment {
            Some(alignment) => round_up(logical as u64, alignment) as usize,
            None => logical,
        };
        // Recycled memory contains old bytes, which must not be written to the file.
        buffer[logical..len].fill(0);
        let offset = self.buffer_offset;
        self.buffer_offset += logical as u64;
        self.filled = 0;
        self.wait_for_room()?;
        // A file of a single buffer needs no reservation.
        if more_to_come || self.preallocation.may_have_reserved() {
            self.preallocation
                .reserve(&self.shared.handle, offset + len as u64);
        }
        lock(&self.shared.state).writes_in_flight += 1;
        WriteTransfer::submit(Arc::clone(&self.shared), buffer, len, offset);
        self.force_writeback()
    }

    fn wait_for_room(&self) -> Result<(), IoError> {
        let mut state = lock(&self.shared.state);
        while state.error.is_none() && state.writes_in_flight >= self.in_flight_max {
            assert_may_block("SequentialWriter");
            state = self.shared.wait(state);
        }
        state.check()
    }

    /// Starts the next step of forced write-back, if there is one and none is in progress. Waits while
    /// write-back lags: for the step in progress, or for the writes, since one slow write delays the steps
    /// while later ones continue.
    fn force_writeback(&mut self) -> Result<(), IoError> {
        let Some(writeback) = &mut self.writeback else {
            return Ok(());
        };
        let in_flight_bytes = (self.buffer_bytes as u64).saturating_mul(self.in_flight_max as u64);
        let submitted = self.buffer_offset.saturating_sub(in_flight_bytes);
        let mut state = lock(&self.shared.state);
        loop {
            state.check()?;
            if !state.writeback_in_flight
                && let Some(step) = writeback.next_step(state.written.contiguous_from_zero())
            {
                state.writeback_in_flight = true;
                drop(state);
                submit_step(&self.shared, step);
                state = lock(&self.shared.state);
            }
            let idle = state.writes_in_flight == 0 && !state.writeback_in_flight;
            if idle || !writeback.is_behind(submitted) {
                return Ok(());
            }
            assert_may_block("SequentialWriter");
            state = self.shared.wait(state);
        }
    }

    /// Waits until nothing is in flight.
    fn wait_until_idle(&self) -> Result<(), IoError> {
        let mut state = lock(&self.shared.state);
        while state.writes_in_flight > 0 || state.writeback_in_flight {
            assert_may_block("SequentialWriter");
            state = self.shared.wait(state);
        }
        state.check()
    }

    /// Completes the file and waits until it is durable:
    ///
    /// 1. the rest of the buffer is written (in direct mode padded to the alignment);
    /// 2. all writes are awaited;
    /// 3. the file is truncated to its logical length, which also frees unused reserved blocks;
    /// 4. `fdatasync`;
    /// 5. in the modes that leave nothing in the page cache, the remaining pages are dropped. In direct mode
    ///    that is the last page, which the file system zeroes through the cache in step 3.
    ///
    /// # Errors
    ///
    /// The first failure of any write or step. The file is then useless.
    ///
    /// # Panics
    ///
    /// If called from a completion, on an I/O thread.
    pub fn finish(mut self) -> Result<WrittenFile, IoError> {
        assert_may_block("SequentialWriter::finish");
        let len = self.position();
        let padded = self.shared.alignment.is_some();
        self.submit_buffer(false)?;
        self.wait_until_idle()?;
        let file = &self.shared.handle;
        if padded || self.preallocation.may_have_reserved() {
            trim(file, len).map_err(|error| self.error(IoOperation::Truncate, error))?;
        }
        self.sync_data()?;
        if matches!(self.shared.mode, WriteMode::Direct | WriteMode::DontNeed) {
            drop_all_pages(file);
        }
        Ok(WrittenFile {
            path: self.path().to_owned(),
            len,
            mode: self.mode(),
            backend: self.backend(),
        })
    }

    /// Syncs through the backend. A failed sync is not repeated.
    fn sync_data(&self) -> Result<(), IoError> {
        let (sender, receiver) = crossbeam_channel::bounded(1);
        let handle = &self.shared.handle;
        handle.submit(Request::SyncData, move |outcome| {
            // Fails only if the receiver has been dropped, but it is awaited below.
            drop(sender.send(outcome.result));
        });
        match receiver.recv() {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(self.error(IoOperation::SyncData, error)),
            Err(_) => {
                let reason = "the sync ended without a result".to_owned();
                let kind = IoErrorKind::Failed;
                Err(IoError::found(
                    IoOperation::SyncData,
                    kind,
                    self.path(),
                    reason,
                ))
            }
        }
    }

    fn error(&self, operation: IoOperation, error: io::Error) -> IoError {
        IoError::system(operation, self.path(), error).in_mode(Mode::Write(self.mode()))
    }

    /// The file, to set attributes on it.
    pub fn file(&self) -> &File {
        self.shared.handle.file()
    }
}

/// Submits a step of forced write-back, which blocks, to the backend, and notifies the writer at its end.
fn submit_step(shared: &Arc<OpenOutput>, step: Step) {
    let told = Arc::clone(shared);
    let call = Request::Call(Box::new(move |file| step.run(file)));
    shared.handle.submit(call, move |outcome| {
        let mut state = lock(&told.state);
        state.writeback_in_flight = false;
        if let Err(error) = outcome.result {
            state.keep_error(
                IoError::system(IoOperation::SyncRange, told.path(), error)
                    .at(step.offset(), step.len())
                    .in_mode(Mode::Write(told.mode)),
            );
        }
        drop(state);
        told.changed.notify_all();
    });
}

impl Drop for SequentialWriter {
    fn drop(&mut self) {
        // After `finish` nothing is in flight, and this returns immediately.
        let mut state = lock(&self.shared.state);
        while (state.writes_in_flight > 0 || state.writeback_in_flight)
            && !crate::backend::on_io_thread()
        {
            state = self.shared.wait(state);
        }
    }
}
