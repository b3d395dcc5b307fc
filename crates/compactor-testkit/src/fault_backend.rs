//! A scripted I/O backend: short transfers, errors, interruptions.

use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use compactor_io::{BackendKind, IoBackend, Operation, Outcome, Request};

/// Fault of the n-th operation that reads, writes or syncs (counted from 0).
pub type Script = Box<dyn Fn(usize, OperationKind) -> Fault + Send + Sync>;

/// Kind of operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperationKind {
    /// A read.
    Read,
    /// A write.
    Write,
    /// An fdatasync.
    Sync,
    /// Another system call.
    Call,
}

/// Fault of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The operation succeeds.
    None,
    /// At most this number of bytes is transferred.
    Short(usize),
    /// The operation fails with this errno without an effect.
    Errno(i32),
}

/// Performs operations one after another on one thread.
#[derive(Debug)]
pub struct FaultBackend {
    queue: Mutex<Option<Sender<Operation>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl FaultBackend {
    /// Starts the thread.
    pub fn new(script: Script) -> FaultBackend {
        let (queue, operations) = channel::<Operation>();
        let counter = AtomicUsize::new(0);
        let thread = std::thread::spawn(move || {
            for operation in operations {
                perform(operation, &script, &counter);
            }
        });
        FaultBackend {
            queue: Mutex::new(Some(queue)),
            thread: Mutex::new(Some(thread)),
        }
    }
}

impl IoBackend for FaultBackend {
    fn kind(&self) -> BackendKind {
        BackendKind::Threads
    }

    fn submit(&self, operation: Operation) {
        let queue = self.queue.lock().expect("no panic");
        let queue = queue.as_ref().expect("open until it is dropped");
        queue.send(operation).expect("the thread runs");
    }
}

impl Drop for FaultBackend {
    fn drop(&mut self) {
        self.queue.lock().expect("no panic").take();
        if let Some(thread) = self.thread.lock().expect("no panic").take()
            && thread.thread().id() != std::thread::current().id()
        {
            thread.join().expect("no panic");
        }
    }
}

fn perform(operation: Operation, script: &Script, counter: &AtomicUsize) {
    let Operation {
        file,
        request,
        completion,
    } = operation;
    let fault = |kind| script(counter.fetch_add(1, Ordering::Relaxed), kind);
    let outcome = match request {
        Request::Read { target, offset, .. } => {
            let (mut buffer, start, end) = target.into_buffer();
            let result = match fault(OperationKind::Read) {
                Fault::Errno(errno) => Err(io::Error::from_raw_os_error(errno)),
                Fault::Short(limit) => file
                    .file()
                    .read_at(&mut buffer[start..end], offset)
                    // The bytes beyond are overwritten: callers must not rely on them.
                    .inspect(|&count| {
                        let kept = count.min(limit);
                        buffer[start + kept..end].fill(0xee);
                    })
                    .map(|count| count.min(limit)),
                Fault::None => file.file().read_at(&mut buffer[start..end], offset),
            };
            Outcome {
                result,
                buffer: Some(buffer),
            }
        }
        Request::Write {
            source,
            start,
            end,
            offset,
            ..
        } => {
            let result = match fault(OperationKind::Write) {
                Fault::Errno(errno) => Err(io::Error::from_raw_os_error(errno)),
                Fault::Short(limit) => {
                    // Transferred completely, since direct I/O requires whole blocks; then the rest is
                    // overwritten.
                    let len = (end - start).min(limit);
                    file.file()
                        .write_at(&source[start..end], offset)
                        .map(|count| count.min(len))
                }
                Fault::None => file.file().write_at(&source[start..end], offset),
            };
            Outcome {
                result,
                buffer: Some(source),
            }
        }
        Request::SyncData => {
            let result = match fault(OperationKind::Sync) {
                Fault::Errno(errno) => Err(io::Error::from_raw_os_error(errno)),
                _ => file.file().sync_data().map(|()| 0),
            };
            Outcome {
                result,
                buffer: None,
            }
        }
        Request::Call(call) => {
            let result = match fault(OperationKind::Call) {
                Fault::Errno(errno) => Err(io::Error::from_raw_os_error(errno)),
                _ => call(&file).map(|()| 0),
            };
            Outcome {
                result,
                buffer: None,
            }
        }
        Request::Nothing => Outcome {
            result: Ok(0),
            buffer: None,
        },
    };
    drop(file);
    completion.run(outcome);
}
