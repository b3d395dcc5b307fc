//! Work that any thread may do: blocks to be compressed and written, and blocks to be decoded ahead.
//!
//! Nobody only waits: who needs something that is not there yet does what is queued meanwhile
//! ([`WorkerQueue::wait_for`]), and sleeps only if nothing is. A task never waits for another, so any
//! number of threads makes progress.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;

use crate::error::{Error, Result};

/// How long a thread sleeps at most before it looks again: whoever cancels tells nobody.
const MAX_SLEEP: Duration = Duration::from_millis(100);

/// A unit of work, usually on one block. It waits for nothing but the buffers of a file's writer.
pub type Task = Box<dyn FnOnce() + Send>;

/// A reader of which blocks can be decoded ahead of whoever needs them.
pub(crate) trait DecodeAhead: Send + Sync {
    /// Decodes the first block that was read and nobody decodes yet, and queues itself again where there
    /// are more.
    fn decode_next(self: Arc<Self>, queue: &WorkerQueue);
}

/// Queue of tasks and of blocks that can be decoded ahead. Threads work on it while they wait for something else;
/// [`Workers`] are threads that do nothing else.
#[derive(Clone, Default)]
pub struct WorkerQueue {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    tasks: VecDeque<Task>,
    /// Readers in the order in which they came, each at most once.
    ahead: BTreeMap<u64, Arc<dyn DecodeAhead>>,
    next_ticket: u64,
    sleeping: Vec<Thread>,
    /// Number of threads in excess of the processors, which are left asleep.
    surplus: usize,
    is_over: bool,
}

impl std::fmt::Debug for WorkerQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkerQueue").finish_non_exhaustive()
    }
}

enum Work {
    Task(Task),
    Ahead(Arc<dyn DecodeAhead>),
}

impl WorkerQueue {
    /// Sets the number of threads that take work from the queue. Until then any sleeping thread is woken.
    pub fn set_thread_count(&self, threads: usize) {
        let processors = std::thread::available_parallelism().map_or(threads, usize::from);
        self.lock().surplus = threads.saturating_sub(processors);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a task. Whoever submits bounds what is under way by the buffers that it owns.
    pub fn submit(&self, task: Task) {
        let mut state = self.lock();
        state.tasks.push_back(task);
        self.wake_one(state);
    }

    /// Queues a reader. Returns its place, by which it can be [withdrawn](Self::withdraw).
    pub(crate) fn offer(&self, reader: Arc<dyn DecodeAhead>) -> u64 {
        let mut state = self.lock();
        let place = state.next_ticket;
        state.next_ticket += 1;
        state.ahead.insert(place, reader);
        self.wake_one(state);
        place
    }

    /// A reader has nothing to decode any more.
    pub(crate) fn withdraw(&self, place: u64) {
        let reader = self.lock().ahead.remove(&place);
        // Outside the lock.
        drop(reader);
    }

    /// Whether a task is queued.
    pub(crate) fn has_tasks(&self) -> bool {
        !self.lock().tasks.is_empty()
    }

    /// Does one thing, if there is any: compresses rather than decodes ahead.
    fn run_one(&self) -> bool {
        let mut state = self.lock();
        let work = match state.tasks.pop_front() {
            Some(task) => Work::Task(task),
            None => match state.ahead.pop_first() {
                Some((_, reader)) => Work::Ahead(reader),
                None => return false,
            },
        };
        drop(state);
        // A panic has been reported by the panic hook; what the task held told its owner.
        let _ = catch_unwind(AssertUnwindSafe(|| match work {
            Work::Task(task) => task(),
            Work::Ahead(reader) => reader.decode_next(self),
        }));
        true
    }

    /// Does what is queued until `ready` gives something, and sleeps while there is nothing. Whoever makes
    /// it ready unparks this thread, whose handle `ready` leaves with it.
    pub fn wait_for<T>(&self, mut ready: impl FnMut() -> Option<T>) -> T {
        let mut has_slept = false;
        loop {
            if let Some(found) = ready() {
                if has_slept {
                    // It may have been woken for a task.
                    self.wake_for_more();
                }
                return found;
            }
            if self.run_one() {
                continue;
            }
            let me = std::thread::current();
            {
                let mut state = self.lock();
                if !state.tasks.is_empty() || !state.ahead.is_empty() {
                    continue;
                }
                state.sleeping.push(me.clone());
            }
            has_slept = true;
            let found = ready();
            if found.is_none() {
                std::thread::park_timeout(MAX_SLEEP);
            }
            self.lock().sleeping.retain(|other| other.id() != me.id());
            if let Some(found) = found {
                self.wake_for_more();
                return found;
            }
        }
    }

    fn wake_for_more(&self) {
        let state = self.lock();
        if !state.tasks.is_empty() || !state.ahead.is_empty() {
            self.wake_one(state);
        }
    }

    /// Wakes the thread that went to sleep last, whose data is most likely in the CPU caches. If as many threads as
    /// processors are awake none is woken: one of those takes the work next.
    fn wake_one(&self, mut state: MutexGuard<'_, State>) {
        let sleeper = match state.sleeping.len() > state.surplus {
            true => state.sleeping.pop(),
            false => None,
        };
        drop(state);
        if let Some(thread) = sleeper {
            thread.unpark();
        }
    }

    /// Lets all who sleep look again.
    pub(crate) fn wake_all(&self) {
        let sleeping = std::mem::take(&mut self.lock().sleeping);
        for thread in sleeping {
            thread.unpark();
        }
    }
}

/// Threads that do what is queued, for a single thread that reads or writes.
#[derive(Debug)]
pub struct Workers {
    queue: WorkerQueue,
    threads: Vec<JoinHandle<()>>,
}

impl Workers {
    /// Starts `count` threads (at least one).
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub fn start(count: usize) -> Result<Workers> {
        let mut workers = Workers {
            queue: WorkerQueue::default(),
            threads: Vec::new(),
        };
        for index in 0..count.max(1) {
            let queue = workers.queue();
            let thread = std::thread::Builder::new()
                .name(format!("worker-{index}"))
                .spawn(move || queue.wait_for(|| queue.is_over().then_some(())))
                .map_err(Error::thread("compression"))?;
            workers.threads.push(thread);
        }
        workers.queue.set_thread_count(workers.threads.len());
        Ok(workers)
    }

    /// A handle to the queue.
    pub fn queue(&self) -> WorkerQueue {
        self.queue.clone()
    }
}

impl WorkerQueue {
    /// Nobody submits any more, and everything has been done.
    fn is_over(&self) -> bool {
        let state = self.lock();
        state.is_over && state.tasks.is_empty()
    }
}

impl Drop for Workers {
    /// Finishes what was queued before, then stops.
    fn drop(&mut self) {
        self.queue.lock().is_over = true;
        self.queue.wake_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn who_waits_does_what_is_queued() {
        let queue = WorkerQueue::default();
        let done = Arc::new(AtomicUsize::new(0));
        for number in 0..100 {
            let done = Arc::clone(&done);
            queue.submit(Box::new(move || {
                assert!(number != 50, "a panic is its owner's");
                done.fetch_add(1, Ordering::Relaxed);
            }));
        }
        queue.wait_for(|| (done.load(Ordering::Relaxed) == 99).then_some(()));
        assert!(!queue.run_one());
    }

    #[test]
    fn nobody_sleeps_beside_work() {
        let workers = Workers::start(4).unwrap();
        let done = Arc::new(AtomicUsize::new(0));
        for round in 1..=2000 {
            for _ in 0..3 {
                let done = Arc::clone(&done);
                let count = move || {
                    done.fetch_add(1, Ordering::Relaxed);
                };
                workers.queue().submit(Box::new(count));
            }
            let started = std::time::Instant::now();
            while done.load(Ordering::Relaxed) < 3 * round {
                assert!(started.elapsed() < Duration::from_secs(60));
                std::thread::yield_now();
            }
        }
        drop(workers);
        assert_eq!(done.load(Ordering::Relaxed), 6000);
    }
}
