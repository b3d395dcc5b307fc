//! A read from its submission to its extent: widened to aligned bounds, continued while short.

use std::sync::Arc;

use crate::align::{round_down, round_up};
use crate::backend::{Outcome, ReadTarget, Request};
use crate::error::{IoError, IoErrorKind, IoOperation, is_transient};
use crate::extent::Extent;
use crate::limits::{ATTEMPTS_MAX, OPERATION_BYTES_MAX};
use crate::mode::Mode;
use crate::open_input::OpenInput;

/// Callback of a read, called once with the bytes or an error, on an I/O thread.
pub type ReadDone = Box<dyn FnOnce(Result<Extent, IoError>) + Send>;

/// A read in flight. It is moved from completion to completion in their closures.
pub(crate) struct ReadTransfer {
    input: Arc<OpenInput>,
    /// Requested range.
    offset: u64,
    len: usize,
    /// Aligned range that is read: offset and length are multiples of the alignment.
    start: u64,
    span: usize,
    /// Number of bytes from `start` that have been read.
    filled: usize,
    /// Number of consecutive operations without progress.
    attempts: u32,
    /// Whether the caller waits for it.
    is_awaited: bool,
    done: ReadDone,
}

impl ReadTransfer {
    /// Submits a read with arbitrary offset and length. `is_awaited` if the caller will wait for the bytes.
    pub(crate) fn submit(
        input: Arc<OpenInput>,
        offset: u64,
        len: usize,
        is_awaited: bool,
        done: ReadDone,
    ) {
        let end = offset.checked_add(len as u64);
        let beyond = end.is_none_or(|end| end > input.len);
        if len == 0 || beyond {
            // Answered without reading (and without allocating an unchecked length), but on an I/O thread
            // like every result.
            let answer = if beyond {
                Err(
                    IoError::unexpected_eof(input.path(), offset, len as u64, input.len)
                        .in_mode(Mode::Read(input.mode)),
                )
            } else {
                Ok(Extent::new(input.pool.take(0), 0, 0, offset))
            };
            input.handle.submit(Request::Nothing, move |_| done(answer));
            return;
        }
        let step = input.step();
        let start = round_down(offset, step);
        // Within the length of the file, rounded up: it does not overflow and fits a usize.
        let span = (round_up(offset + len as u64, step) - start) as usize;
        let target = if span <= OPERATION_BYTES_MAX {
            ReadTarget::Fresh {
                pool: input.pool.clone(),
                len: span,
            }
        } else {
            ReadTarget::Rest {
                buffer: input.pool.take(span),
                start: 0,
                end: OPERATION_BYTES_MAX,
            }
        };
        let transfer = ReadTransfer {
            input,
            offset,
            len,
            start,
            span,
            filled: 0,
            attempts: 0,
            is_awaited,
            done,
        };
        transfer.submit_into(target, 0);
    }

    /// Submits one operation that reads from `position` (relative to `start`) on.
    fn submit_into(self, target: ReadTarget, position: usize) {
        let file = Arc::clone(&self.input.handle);
        let is_awaited = self.is_awaited;
        let request = Request::Read {
            target,
            offset: self.start + position as u64,
            flags: self.input.flags,
        };
        let operation = file.operation(request, move |outcome| self.complete(outcome, position));
        if is_awaited {
            file.backend().submit_awaited(operation)
        } else {
            file.backend().submit(operation)
        }
    }

    /// Continues after one operation that began at `position`.
    fn complete(mut self, outcome: Outcome, position: usize) {
        let (count, buffer) = match (outcome.result, outcome.buffer) {
            (Ok(count), Some(buffer)) => (count, buffer),
            (Err(error), Some(buffer)) if is_transient(&error) && self.may_try_again() => {
                self.continue_into(buffer, position);
                return;
            }
            (Err(error), buffer) => {
                let mut error = IoError::system(IoOperation::Read, self.input.path(), error)
                    .at(self.start + position as u64, (self.span - position) as u64)
                    .in_mode(Mode::Read(self.input.mode));
                if let (Some(alignment), Some(buffer)) = (self.input.alignment, &buffer) {
                    error = error.with_alignment(alignment, buffer.as_ptr().addr());
                }
                drop(buffer);
                self.finish(Err(error));
                return;
            }
            (Ok(_), None) => {
                let reason = "the backend lost the buffer".to_owned();
                let path = self.input.path();
                let error = IoError::found(IoOperation::Read, IoErrorKind::Failed, path, reason);
                self.finish(Err(error));
                return;
            }
        };
        let reached = position + count;
        let skipped = (self.offset - self.start) as usize;
        if reached >= skipped + self.len {
            let extent = Extent::new(buffer, skipped, self.len, self.offset);
            self.filled = reached;
            self.finish(Ok(extent));
            return;
        }
        // A direct read continues at an aligned offset, so it repeats the following bytes: no progress means
        // that the file ends there.
        if count == 0 || reached <= self.filled {
            let file_len = self.start + self.filled.max(reached) as u64;
            drop(buffer);
            let error =
                IoError::unexpected_eof(self.input.path(), self.offset, self.len as u64, file_len)
                    .in_mode(Mode::Read(self.input.mode));
            self.finish(Err(error));
            return;
        }
        self.filled = reached;
        self.attempts = 0;
        let position = round_down(reached as u64, self.input.step()) as usize;
        self.continue_into(buffer, position);
    }

    fn may_try_again(&mut self) -> bool {
        self.attempts += 1;
        self.attempts <= ATTEMPTS_MAX
    }

    fn continue_into(self, buffer: crate::AlignedBuffer, position: usize) {
        let end = self.span.min(position + OPERATION_BYTES_MAX);
        self.submit_into(
            ReadTarget::Rest {
                buffer,
                start: position,
                end,
            },
            position,
        );
    }

    fn finish(self, result: Result<Extent, IoError>) {
        if let Some(evictor) = &self.input.evictor {
            let end = self.start + self.filled as u64;
            evictor.record_read(&self.input.handle, self.start, end);
        }
        // Dropped first, so that a caller whose reads have all completed holds the last share.
        drop(self.input);
        (self.done)(result);
    }
}
