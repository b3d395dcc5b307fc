//! A write from its submission to its end: continued while short.

use std::io;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::process::Resource;

use crate::align::round_down;
use crate::backend::{Outcome, Request};
use crate::buffer::AlignedBuffer;
use crate::error::{IoError, IoOperation, is_transient};
use crate::limits::ATTEMPTS_MAX;
use crate::mode::Mode;
use crate::open_output::OpenOutput;
use crate::sys::limit::limit_of;

/// A write in flight. It is moved from completion to completion in their closures.
pub(crate) struct WriteTransfer {
    writer: Arc<OpenOutput>,
    /// Length of the data: `buffer[..len]` is written at `offset` of the file.
    len: usize,
    offset: u64,
    /// Number of bytes known to be written.
    written: usize,
    /// Number of consecutive operations without progress.
    attempts: u32,
}

impl WriteTransfer {
    /// Submits the write of `buffer[..len]` at `offset`, aligned as required by the file's mode.
    pub(crate) fn submit(writer: Arc<OpenOutput>, buffer: AlignedBuffer, len: usize, offset: u64) {
        WriteTransfer {
            writer,
            len,
            offset,
            written: 0,
            attempts: 0,
        }
        .submit_rest(buffer);
    }

    fn submit_rest(self, buffer: AlignedBuffer) {
        let file = Arc::clone(&self.writer.handle);
        // A direct write that ended within a block is repeated from the block's start.
        let step = self.writer.alignment.unwrap_or(1);
        let position = round_down(self.written as u64, step) as usize;
        let request = Request::Write {
            source: buffer,
            start: position,
            end: self.len,
            offset: self.offset + position as u64,
            flags: self.writer.flags,
        };
        file.submit(request, move |outcome| self.complete(outcome, position));
    }

    fn complete(mut self, outcome: Outcome, position: usize) {
        let error = match (outcome.result, outcome.buffer) {
            (Ok(count), buffer) if position + count >= self.len => {
                drop(buffer);
                self.finish(Ok(()));
                return;
            }
            (Ok(count), Some(buffer)) => {
                let progress = position + count > self.written;
                if progress {
                    self.written = position + count;
                    self.attempts = 0;
                }
                if progress || self.may_try_again() {
                    self.submit_rest(buffer);
                    return;
                }
                let message = "the file accepts no more bytes and reports no error";
                self.error(
                    io::Error::new(io::ErrorKind::WriteZero, message),
                    position,
                    &buffer,
                )
            }
            (Err(error), Some(buffer)) if is_transient(&error) && self.may_try_again() => {
                self.submit_rest(buffer);
                return;
            }
            (Err(error), Some(buffer)) => self.error(error, position, &buffer),
            (Err(error), None) => self.error(error, position, &[]),
            (Ok(_), None) => self.error(
                io::Error::other("the backend lost the buffer"),
                position,
                &[],
            ),
        };
        self.finish(Err(error));
    }

    fn may_try_again(&mut self) -> bool {
        self.attempts += 1;
        self.attempts <= ATTEMPTS_MAX
    }

    fn error(&self, error: io::Error, position: usize, buffer: &[u8]) -> IoError {
        let offset = self.offset + position as u64;
        let len = (self.len - position) as u64;
        // The kernel shortens a write to the limit of file sizes, and then refuses a length that is not aligned, or
        // writes nothing.
        let is_cut =
            error.raw_os_error() == Some(libc::EINVAL) || error.kind() == io::ErrorKind::WriteZero;
        let limit = limit_of(Resource::Fsize).soft;
        let error = if is_cut && limit.is_some_and(|limit| offset + len > limit) {
            Errno::FBIG.into()
        } else {
            error
        };
        let mut error = IoError::system(IoOperation::Write, self.writer.path(), error)
            .at(offset, len)
            .in_mode(Mode::Write(self.writer.mode));
        if let (Some(alignment), false) = (self.writer.alignment, buffer.is_empty()) {
            error = error.with_alignment(alignment, buffer.as_ptr().addr() + position);
        }
        error
    }

    fn finish(self, result: Result<(), IoError>) {
        let end = self.offset + self.len as u64;
        self.writer.end_write(self.offset, end, result);
    }
}
