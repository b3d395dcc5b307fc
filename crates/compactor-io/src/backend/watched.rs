//! Watchdog of the backends: operations that never complete are abandoned with an error.
//!
//! A slow disk is not an error. After [`STALL_S`] seconds without any completion the stall hook is called;
//! after [`GIVE_UP_S`] all operations fail, and so does every later one. Their buffers are kept, with the
//! backend, until the process ends: the kernel may still use them.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::{Completion, IoBackend, Operation, Outcome, enter_io_thread, join};
use crate::backend::FileHandle;
use crate::lock;
use crate::mode::BackendKind;

/// Seconds without a completion after which the stall hook is called, repeatedly.
const STALL_S: u64 = 60;
/// Seconds without a completion after which the operations are abandoned. Servers of network file systems and
/// disk controllers may take minutes to recover.
const GIVE_UP_S: u64 = 600;
/// Seconds are counted in ticks: a process that was stopped for an hour has not waited.
const TICK: Duration = Duration::from_secs(1);

static STALL_HOOK: OnceLock<fn(&Stall)> = OnceLock::new();

/// Report of operations that do not complete.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stall {
    /// Seconds since the last completion.
    pub seconds: u64,
    /// Seconds after which the operations are abandoned.
    pub gives_up_after_seconds: u64,
    /// Number of waiting operations.
    pub operations: usize,
    /// File of one of them.
    pub path: PathBuf,
}

/// Sets a hook that is called, on a separate thread, once a minute while no operation of an [`Io`](crate::Io)
/// completes. Only the first hook of a process is used.
pub fn set_stall_hook(hook: fn(&Stall)) {
    let _ = STALL_HOOK.set(hook);
}

/// The watchdog of one [`Io`](crate::Io).
#[derive(Debug)]
pub(crate) struct Watchdog {
    watch: Arc<Watch>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Watch {
    state: Mutex<State>,
    closing: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: HashMap<u64, Waiting>,
    next_id: u64,
    /// Ticks since the last completion, or since the first waiting operation was submitted.
    ticks: u64,
    has_given_up: bool,
    is_closing: bool,
}

#[derive(Debug)]
struct Waiting {
    file: Arc<FileHandle>,
    completion: Completion,
}

impl Watchdog {
    /// Starts its thread.
    ///
    /// # Errors
    ///
    /// The system refuses the thread.
    pub(crate) fn start() -> io::Result<Arc<Watchdog>> {
        let watch = Arc::new(Watch::default());
        let watched = Arc::clone(&watch);
        let thread = thread::Builder::new()
            .name("io-watchdog".to_owned())
            .spawn(move || watched.run(TICK))?;
        Ok(Arc::new(Watchdog {
            watch,
            thread: Some(thread),
        }))
    }

    /// Wraps a backend whose operations are to be watched.
    pub(crate) fn watch(self: &Arc<Watchdog>, backend: Arc<dyn IoBackend>) -> Arc<dyn IoBackend> {
        Arc::new(WatchedBackend {
            inner: backend,
            watchdog: Arc::clone(self),
        })
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        lock(&self.watch.state).is_closing = true;
        self.watch.closing.notify_all();
        if let Some(thread) = self.thread.take() {
            join(thread);
        }
    }
}

impl Watch {
    /// Registers an operation. Returns its completion if operations have been abandoned.
    fn enter(&self, file: &Arc<FileHandle>, completion: Completion) -> Result<u64, Completion> {
        let mut state = lock(&self.state);
        if state.has_given_up {
            return Err(completion);
        }
        if state.waiting.is_empty() {
            state.ticks = 0;
        }
        let id = state.next_id;
        state.next_id += 1;
        let file = Arc::clone(file);
        state.waiting.insert(id, Waiting { file, completion });
        Ok(id)
    }

    /// Ends an operation, unless it has been abandoned: then its late result is not used.
    fn end(&self, id: u64, outcome: Outcome) {
        let waiting = {
            let mut state = lock(&self.state);
            state.ticks = 0;
            state.waiting.remove(&id)
        };
        if let Some(Waiting { file, completion }) = waiting {
            // The file is dropped first: the completion's owner may expect it to be closed.
            drop(file);
            completion.run(outcome);
        }
    }

    fn run(&self, tick: Duration) {
        enter_io_thread();
        let mut state = lock(&self.state);
        while !state.is_closing {
            let woken = self.closing.wait_timeout(state, tick);
            let (guard, waited) = woken.unwrap_or_else(PoisonError::into_inner);
            state = guard;
            if !waited.timed_out() || state.waiting.is_empty() {
                continue;
            }
            state.ticks += 1;
            if state.ticks >= GIVE_UP_S {
                state.has_given_up = true;
                let given_up = std::mem::take(&mut state.waiting);
                drop(state);
                for (_, Waiting { file, completion }) in given_up {
                    drop(file);
                    completion.run(given_up_outcome());
                }
                state = lock(&self.state);
            } else if state.ticks.is_multiple_of(STALL_S)
                && let Some(hook) = STALL_HOOK.get()
                && let Some(one) = state.waiting.values().next()
            {
                let stall = Stall {
                    seconds: state.ticks,
                    gives_up_after_seconds: GIVE_UP_S,
                    operations: state.waiting.len(),
                    path: one.file.path().to_owned(),
                };
                drop(state);
                hook(&stall);
                state = lock(&self.state);
            }
        }
    }
}

fn given_up_outcome() -> Outcome {
    let message = format!(
        "no operation has completed for {GIVE_UP_S} seconds; the device or its driver does \
         not respond (see `dmesg`)"
    );
    Outcome::new(Err(io::Error::new(io::ErrorKind::TimedOut, message)), None)
}

/// A backend whose operations are registered with a [`Watchdog`].
struct WatchedBackend {
    inner: Arc<dyn IoBackend>,
    watchdog: Arc<Watchdog>,
}

impl fmt::Debug for WatchedBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.inner, f)
    }
}

impl IoBackend for WatchedBackend {
    fn kind(&self) -> BackendKind {
        self.inner.kind()
    }

    fn submit(&self, mut operation: Operation) {
        let watch = Arc::clone(&self.watchdog.watch);
        match watch.enter(&operation.file, operation.completion) {
            Ok(id) => {
                operation.completion = Completion::new(move |outcome| watch.end(id, outcome));
                self.inner.submit(operation);
            }
            Err(completion) => completion.run(given_up_outcome()),
        }
    }

    /// Not watched: it is performed by the caller's own thread.
    fn submit_awaited(&self, operation: Operation) {
        self.inner.submit_awaited(operation);
    }

    fn forget(&self, file_id: u64) {
        self.inner.forget(file_id);
    }
}

impl Drop for WatchedBackend {
    fn drop(&mut self) {
        if lock(&self.watchdog.watch.state).has_given_up {
            // Its threads may never end, and its buffers must not be freed.
            std::mem::forget(Arc::clone(&self.inner));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{ReadTarget, Request};
    use crate::pool::BufferPool;
    use rustix::io::ReadWriteFlags;
    use std::sync::mpsc::{Sender, channel};

    /// Accepts operations and completes them only on request.
    #[derive(Debug, Default)]
    struct Stuck(Mutex<Vec<Operation>>);

    impl IoBackend for Stuck {
        fn kind(&self) -> BackendKind {
            BackendKind::Threads
        }

        fn submit(&self, operation: Operation) {
            lock(&self.0).push(operation);
        }
    }

    fn read(backend: &Arc<dyn IoBackend>, results: &Sender<io::Result<usize>>) -> Operation {
        let file = std::fs::File::open("/proc/self/exe").unwrap();
        let results = results.clone();
        Operation {
            file: FileHandle::new(file, "file".as_ref(), Arc::clone(backend)),
            request: Request::Read {
                target: ReadTarget::Fresh {
                    pool: BufferPool::new(0),
                    len: 1,
                },
                offset: 0,
                flags: ReadWriteFlags::empty(),
            },
            completion: Completion::new(move |outcome| results.send(outcome.result).unwrap()),
        }
    }

    /// Guards against waiting forever for an operation that never completes, and against using its late result.
    #[test]
    fn operations_that_never_complete_are_abandoned() {
        let stuck = Arc::new(Stuck::default());
        let watch = Arc::new(Watch::default());
        let watched = Arc::clone(&watch);
        let thread = thread::spawn(move || watched.run(Duration::from_millis(1)));
        let watchdog = Arc::new(Watchdog {
            watch,
            thread: Some(thread),
        });
        let backend = watchdog.watch(Arc::clone(&stuck) as _);
        let (sender, results) = channel();
        for _ in 0..2 {
            backend.submit(read(&backend, &sender));
        }
        for _ in 0..2 {
            let error = results.recv().unwrap().unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        }
        // Later ones fail immediately, and are not started.
        backend.submit(read(&backend, &sender));
        assert!(results.recv().unwrap().is_err());
        let late = std::mem::take(&mut *lock(&stuck.0));
        assert_eq!(late.len(), 2);
        for operation in late {
            super::super::threads::perform(operation);
        }
        drop(sender);
        assert!(results.recv().is_err(), "a late result");
    }

    #[test]
    fn operations_that_complete_are_as_before() {
        let inner = crate::backend::threads::ThreadsBackend::start(2).unwrap();
        let backend = Watchdog::start().unwrap().watch(Arc::new(inner));
        let (sender, results) = channel();
        for _ in 0..100 {
            backend.submit(read(&backend, &sender));
        }
        for _ in 0..100 {
            assert_eq!(results.recv().unwrap().unwrap(), 1);
        }
    }
}
