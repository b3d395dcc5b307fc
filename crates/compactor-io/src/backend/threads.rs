//! Thread pool that calls `preadv2`, `pwritev2` and other calls that may block.
//!
//! It works on every kernel, and is the only backend that can pass `RWF_DONTCACHE`. At most one operation per
//! thread is in flight.

use std::io::{self, IoSlice, IoSliceMut};
use std::thread::{self, JoinHandle};

use crossbeam_channel::{Receiver, Sender, unbounded};
use rustix::io::ReadWriteFlags;

use super::{IoBackend, Operation, Outcome, Request, enter_io_thread, join};
use crate::backend::FileHandle;
use crate::mode::BackendKind;

/// The thread pool.
#[derive(Debug)]
pub(crate) struct ThreadsBackend {
    /// Unbounded, since a completion may submit operations and must never wait. `None` while closing.
    queue: Option<Sender<Operation>>,
    workers: Vec<JoinHandle<()>>,
}

impl ThreadsBackend {
    /// Starts `threads` workers (at least one).
    pub(crate) fn start(threads: usize) -> io::Result<ThreadsBackend> {
        let (queue, operations) = unbounded();
        let mut backend = ThreadsBackend {
            queue: Some(queue),
            workers: Vec::new(),
        };
        for index in 0..threads.max(1) {
            let operations: Receiver<Operation> = operations.clone();
            let worker = thread::Builder::new().name(format!("io-worker-{index}"));
            // On failure `backend` is dropped, which closes its queue and ends the workers started so far.
            backend.workers.push(worker.spawn(move || {
                enter_io_thread();
                for operation in operations {
                    perform(operation);
                }
            })?);
        }
        Ok(backend)
    }
}

impl IoBackend for ThreadsBackend {
    fn submit_awaited(&self, operation: Operation) {
        perform(operation);
    }

    fn kind(&self) -> BackendKind {
        BackendKind::Threads
    }

    fn submit(&self, operation: Operation) {
        if let Some(queue) = &self.queue {
            // Fails only if all workers have ended; then the operation is dropped and its completion reports
            // this.
            drop(queue.send(operation));
        }
    }
}

impl Drop for ThreadsBackend {
    /// Ends the workers after the queued operations.
    fn drop(&mut self) {
        self.queue = None;
        self.workers.drain(..).for_each(join);
    }
}

/// Performs one operation on this thread.
pub(crate) fn perform(operation: Operation) {
    let Operation {
        file,
        request,
        completion,
    } = operation;
    let outcome = match request {
        Request::Read {
            target,
            offset,
            flags,
        } => {
            let (mut buffer, start, end) = target.into_buffer();
            let result = read(&file, &mut buffer[start..end], offset, flags);
            Outcome::new(result, Some(buffer))
        }
        Request::Write {
            source,
            start,
            end,
            offset,
            flags,
        } => {
            let result = write(&file, &source[start..end], offset, flags);
            Outcome::new(result, Some(source))
        }
        Request::SyncData => {
            let result = rustix::fs::fdatasync(&file)
                .map(|()| 0)
                .map_err(io::Error::from);
            Outcome::new(result, None)
        }
        Request::Call(call) => Outcome::new(call(&file).map(|()| 0), None),
        Request::Nothing => Outcome::new(Ok(0), None),
    };
    // The file is dropped first: the completion's owner may expect it to be closed.
    drop(file);
    completion.run(outcome);
}

fn read(
    file: &FileHandle,
    target: &mut [u8],
    offset: u64,
    flags: ReadWriteFlags,
) -> io::Result<usize> {
    // Without flags the older call is used, which older kernels and seccomp profiles support.
    let count = if flags.is_empty() {
        rustix::io::pread(file, target, offset)
    } else {
        rustix::io::preadv2(file, &mut [IoSliceMut::new(target)], offset, flags)
    };
    Ok(count?)
}

fn write(
    file: &FileHandle,
    source: &[u8],
    offset: u64,
    flags: ReadWriteFlags,
) -> io::Result<usize> {
    let count = if flags.is_empty() {
        rustix::io::pwrite(file, source, offset)
    } else {
        rustix::io::pwritev2(file, &[IoSlice::new(source)], offset, flags)
    };
    Ok(count?)
}
