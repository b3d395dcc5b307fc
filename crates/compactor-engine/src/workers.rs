//! The threads that decode and compress.
//!
//! Tasks never wait for other tasks, so any number of workers makes progress. The queue itself is
//! unbounded; whoever submits bounds what is under way by the buffers it owns.

use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, unbounded};

use crate::error::{Error, Result};

/// A unit of work on one block.
pub type Task = Box<dyn FnOnce() + Send>;

/// A fixed set of threads with one queue.
#[derive(Debug)]
pub struct Workers {
    queue: Sender<Message>,
    threads: Vec<JoinHandle<()>>,
}

enum Message {
    Run(Task),
    Stop,
}

/// A handle to submit tasks with.
#[derive(Clone, Debug)]
pub struct WorkerQueue {
    queue: Sender<Message>,
    threads: usize,
}

impl Workers {
    /// Starts `count` threads (at least one).
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub fn start(count: usize) -> Result<Workers> {
        let (sender, receiver) = unbounded();
        let mut threads = Vec::new();
        for index in 0..count.max(1) {
            let receiver: Receiver<Message> = receiver.clone();
            let thread = std::thread::Builder::new()
                .name(format!("codec-{index}"))
                .spawn(move || {
                    while let Ok(Message::Run(task)) = receiver.recv() {
                        task();
                    }
                })
                .map_err(Error::thread("compression"))?;
            threads.push(thread);
        }
        Ok(Workers {
            queue: sender,
            threads,
        })
    }

    /// A handle to submit tasks with.
    pub fn queue(&self) -> WorkerQueue {
        WorkerQueue {
            queue: self.queue.clone(),
            threads: self.threads.len(),
        }
    }
}

impl WorkerQueue {
    /// Threads that work it off.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Queues a task.
    pub fn submit(&self, task: Task) {
        // The receivers live as long as `Workers`; a task sent after that is dropped with whatever
        // it holds, which tells its owner that it was not done.
        let _ = self.queue.send(Message::Run(task));
    }
}

impl Drop for Workers {
    /// Finishes what was queued before, then stops.
    fn drop(&mut self) {
        for _ in &self.threads {
            let _ = self.queue.send(Message::Stop);
        }
        for thread in self.threads.drain(..) {
            // A panic in a task has been reported by the panic hook; what the task held told its owner.
            let _ = thread.join();
        }
    }
}
