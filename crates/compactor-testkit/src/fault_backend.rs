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
    let kind = match &request {
        Request::Read { .. } => Some(OperationKind::Read),
        Request::Write { .. } => Some(OperationKind::Write),
        Request::SyncData => Some(OperationKind::Sync),
        Request::Call(_) => Some(OperationKind::Call),
        Request::Nothing => None,
    };
    let fault = kind.map_or(Fault::None, |kind| {
        script(counter.fetch_add(1, Ordering::Relaxed), kind)
    });
    let ready = match fault {
        Fault::Errno(errno) => Err(io::Error::from_raw_os_error(errno)),
        Fault::None | Fault::Short(_) => Ok(()),
    };
    let (result, buffer) = match request {
        Request::Read { target, offset, .. } => {
            let (mut buffer, start, end) = target.into_buffer();
            let read = ready.and_then(|()| file.file().read_at(&mut buffer[start..end], offset));
            let result = match fault {
                Fault::Short(limit) => read.map(|count| {
                    let kept = count.min(limit);
                    // The bytes beyond are overwritten: callers must not rely on them.
                    buffer[start + kept..end].fill(0xee);
                    kept
                }),
                Fault::None | Fault::Errno(_) => read,
            };
            (result, Some(buffer))
        }
        Request::Write {
            source,
            start,
            end,
            offset,
            ..
        } => {
            // Transferred completely, since direct I/O requires whole blocks; then the rest is overwritten.
            let limit = match fault {
                Fault::Short(limit) => limit,
                Fault::None | Fault::Errno(_) => usize::MAX,
            };
            let written = ready.and_then(|()| file.file().write_at(&source[start..end], offset));
            (written.map(|count| count.min(limit)), Some(source))
        }
        Request::SyncData => {
            let synced = ready.and_then(|()| file.file().sync_data());
            (synced.map(|()| 0), None)
        }
        Request::Call(call) => (ready.and_then(|()| call(&file)).map(|()| 0), None),
        Request::Nothing => (Ok(0), None),
    };
    drop(file);
    completion.run(Outcome { result, buffer });
}
