//! Queue of work for any thread: blocks to be compressed and written, and blocks to be decoded ahead.
//!
//! A thread that waits for something runs queued work meanwhile ([`WorkerQueue::wait_for`]) and sleeps only
//! if there is none. A task never waits for another, so any number of threads makes progress.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;

use compactor_io::lock;

use crate::error::{Error, Result};

/// Maximum sleep before a waiting thread checks its condition again: cancellation wakes no thread.
const MAX_SLEEP: Duration = Duration::from_millis(100);

/// A unit of work, usually on one block. It waits for nothing but buffers of a file's writer.
pub type Task = Box<dyn FnOnce() + Send>;

/// Queue of tasks, and of blocks to decode ahead. Threads process it while they wait for
/// something else; [`Workers`] are threads that do nothing else.
#[derive(Clone, Default)]
pub struct WorkerQueue {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    tasks: VecDeque<Task>,
    /// Tasks that decode ahead, in the order of their tickets.
    ahead: BTreeMap<u64, Task>,
    next_ticket: u64,
    sleeping: Vec<Thread>,
    /// Number of threads in excess of the processors. That many are left asleep.
    surplus: usize,
    is_over: bool,
}

impl std::fmt::Debug for WorkerQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkerQueue").finish_non_exhaustive()
    }
}

impl WorkerQueue {
    /// Sets the number of threads that take work from the queue. Until then any sleeping thread is woken.
    pub fn set_thread_count(&self, threads: usize) {
        let processors = std::thread::available_parallelism().map_or(threads, usize::from);
        lock(&self.state).surplus = threads.saturating_sub(processors);
    }

    /// Queues a task. The number of tasks is bounded by the buffers of the submitter, or by the bytes it lets wait.
    pub fn submit(&self, task: Task) {
        let mut state = lock(&self.state);
        state.tasks.push_back(task);
        self.wake_one(state);
    }

    /// Queues a task that decodes a block ahead, for threads with nothing else to do. Returns a ticket to
    /// [withdraw](Self::withdraw) it.
    pub(crate) fn offer(&self, task: Task) -> u64 {
        let mut state = lock(&self.state);
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        state.ahead.insert(ticket, task);
        self.wake_one(state);
        ticket
    }

    /// Removes such a task, unless it has begun.
    pub(crate) fn withdraw(&self, ticket: u64) {
        let task = lock(&self.state).ahead.remove(&ticket);
        // Dropped outside the lock.
        drop(task);
    }

    /// Whether a task is queued.
    pub(crate) fn has_tasks(&self) -> bool {
        !lock(&self.state).tasks.is_empty()
    }

    /// Runs one unit of work, if there is any; tasks before decoding ahead.
    fn run_one(&self) -> bool {
        let mut state = lock(&self.state);
        let task = match state.tasks.pop_front() {
            Some(task) => task,
            None => match state.ahead.pop_first() {
                Some((_, task)) => task,
                None => return false,
            },
        };
        drop(state);
        // The panic hook has reported a panic; dropping the task has notified its owner.
        let _ = catch_unwind(AssertUnwindSafe(task));
        true
    }

    /// Processes the queue until `ready` returns a value, and sleeps while the queue is empty. `ready` must
    /// register the current thread to be unparked once the value is available.
    pub fn wait_for<T>(&self, mut ready: impl FnMut() -> Option<T>) -> T {
        let mut has_slept = false;
        loop {
            if let Some(found) = ready() {
                if has_slept {
                    // The thread may have been woken for a task that it did not take.
                    self.wake_for_more();
                }
                return found;
            }
            if self.run_one() {
                continue;
            }
            let me = std::thread::current();
            {
                let mut state = lock(&self.state);
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
            lock(&self.state)
                .sleeping
                .retain(|other| other.id() != me.id());
            if let Some(found) = found {
                self.wake_for_more();
                return found;
            }
        }
    }

    fn wake_for_more(&self) {
        let state = lock(&self.state);
        if !state.tasks.is_empty() || !state.ahead.is_empty() {
            self.wake_one(state);
        }
    }

    /// Wakes the thread that went to sleep last, whose data is most likely in the CPU caches. If as many
    /// threads as processors are awake, none is woken: one of those takes the work next.
    fn wake_one(&self, mut state: MutexGuard<'_, State>) {
        let sleeper = if state.sleeping.len() > state.surplus {
            state.sleeping.pop()
        } else {
            None
        };
        drop(state);
        if let Some(thread) = sleeper {
            thread.unpark();
        }
    }

    /// Wakes all sleeping threads, which check their conditions again.
    pub(crate) fn wake_all(&self) {
        let sleeping = std::mem::take(&mut lock(&self.state).sleeping);
        for thread in sleeping {
            thread.unpark();
        }
    }
}

/// Threads that process the queue, for a single thread that reads or writes.
#[derive(Debug)]
pub struct Workers {
    queue: WorkerQueue,
    threads: Vec<JoinHandle<()>>,
}

impl Workers {
    /// Starts `count` threads (at least one).
    ///
    /// # Errors
    /// The system refuses a thread.
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

    /// Returns a handle to the queue.
    pub fn queue(&self) -> WorkerQueue {
        self.queue.clone()
    }
}

impl WorkerQueue {
    /// Whether the queue is closed and empty.
    fn is_over(&self) -> bool {
        let state = lock(&self.state);
        state.is_over && state.tasks.is_empty()
    }
}

impl Drop for Workers {
    /// Finishes the queued work, then stops the threads.
    fn drop(&mut self) {
        lock(&self.queue.state).is_over = true;
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
    fn waiting_threads_run_queued_tasks() {
        let queue = WorkerQueue::default();
        let done = Arc::new(AtomicUsize::new(0));
        for number in 0..100 {
            let done = Arc::clone(&done);
            queue.submit(Box::new(move || {
                assert!(number != 50, "panics are reported to the owner");
                done.fetch_add(1, Ordering::Relaxed);
            }));
        }
        queue.wait_for(|| (done.load(Ordering::Relaxed) == 99).then_some(()));
        assert!(!queue.run_one());
    }

    #[test]
    fn no_thread_sleeps_while_work_is_queued() {
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
