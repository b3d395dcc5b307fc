//! `io_uring`: one thread with one ring.
//!
//! - Only the ring's own thread submits to it and takes its completions: the kernel cancels the operations of a
//!   thread when it ends.
//! - With nothing in flight the thread sleeps on a condition variable. Otherwise it sleeps in
//!   `io_uring_enter`, from which a read of an eventfd in the same ring wakes it for new operations. If the
//!   write to the eventfd fails, they start when the next operation completes.
//! - If `io_uring_enter` fails temporarily (`EAGAIN`, `EBUSY`, `ENOMEM`, `EINTR`), it is called again after a
//!   pause: entries that it did not take are still in the queue. Any other failure, and one that persists,
//!   ends all operations with that error, and every later one as well.
//! - A buffer stays in its slot until the kernel has completed the operation. Buffers of operations without a
//!   completion are never freed, as the kernel may still write to them.
#![expect(unsafe_code, reason = "submitting to a raw ring")]

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use io_uring::{IoUring, opcode, types};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

use super::{
    Completion, IoBackend, Operation, Outcome, QUEUE_DEPTH_MAX, Request, enter_io_thread, join,
};
use crate::backend::FileHandle;
use crate::buffer::AlignedBuffer;
use crate::lock;
use crate::mode::BackendKind;
use crate::sys::uring_trial::{named, try_ring};

/// Maximum number of consecutive calls of `io_uring_enter` without any completion, with a pause of [`PAUSE`]
/// each: ten seconds or more.
const FUTILE_ENTERS_MAX: u32 = 1000;
const PAUSE: Duration = Duration::from_millis(10);
/// Maximum number of operations that are started between two calls of `io_uring_enter`: allocating their buffers takes
/// longer than a call, and the first operation need not wait for the buffers of all.
const STARTS_PER_ENTER: usize = 4;
/// User data of the read that wakes the thread.
const WAKE: u64 = u64::MAX;

/// The backend.
#[derive(Debug)]
pub(crate) struct UringBackend {
    shared: Arc<RingShared>,
    thread: Option<JoinHandle<()>>,
    /// Performs calls that block.
    blocking: Arc<dyn IoBackend>,
}

#[derive(Debug)]
struct RingShared {
    queue: Mutex<Queue>,
    /// Notified when an operation is queued while the thread sleeps on it.
    arrived: Condvar,
    wake: OwnedFd,
}

#[derive(Debug, Default)]
struct Queue {
    operations: VecDeque<Operation>,
    /// Whether the thread sleeps in the ring, or will before it checks this again, and has room for more
    /// operations.
    is_in_ring: bool,
    is_closing: bool,
}

impl RingShared {
    /// Waits until an operation is queued.
    fn wait<'a>(&self, queue: MutexGuard<'a, Queue>) -> MutexGuard<'a, Queue> {
        self.arrived
            .wait(queue)
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl UringBackend {
    /// Starts a ring with at most `queue_depth` operations in flight.
    ///
    /// # Errors
    ///
    /// A failed system call if `io_uring` is missing or forbidden; no thread is left running then.
    pub(crate) fn start(
        queue_depth: usize,
        blocking: Arc<dyn IoBackend>,
    ) -> io::Result<UringBackend> {
        try_ring()?;
        let depth = queue_depth.clamp(1, QUEUE_DEPTH_MAX);
        // One more entry, for the read that wakes the thread. The completion queue has twice as many.
        let entries = u32::try_from((depth + 1).next_power_of_two()).unwrap_or(2);
        let ring = IoUring::new(entries).map_err(|error| named("io_uring_setup", &error))?;
        let wake =
            eventfd(0, EventfdFlags::CLOEXEC).map_err(|errno| named("eventfd", &errno.into()))?;
        let shared = Arc::new(RingShared {
            queue: Mutex::default(),
            arrived: Condvar::new(),
            wake,
        });
        let mut driver = Driver {
            shared: Arc::clone(&shared),
            ring,
            slots: (0..depth).map(|_| None).collect(),
            free: (0..depth).rev().collect(),
            wake_count: Box::new(0),
            is_wake_armed: false,
        };
        let thread = thread::Builder::new()
            .name("io-uring-0".to_owned())
            .spawn(move || {
                enter_io_thread();
                driver.serve();
            })
            .map_err(|error| named("start a thread", &error))?;
        Ok(UringBackend {
            shared,
            thread: Some(thread),
            blocking,
        })
    }

    /// Changes the queue and makes sure that the thread sees the change.
    fn update_queue(&self, change: impl FnOnce(&mut Queue)) {
        let is_in_ring = {
            let mut queue = lock(&self.shared.queue);
            change(&mut queue);
            std::mem::take(&mut queue.is_in_ring)
        };
        if is_in_ring {
            // The module documentation describes what happens if this fails.
            let _ = rustix::io::write(&self.shared.wake, &1u64.to_ne_bytes());
        } else {
            self.shared.arrived.notify_one();
        }
    }
}

impl IoBackend for UringBackend {
    fn kind(&self) -> BackendKind {
        BackendKind::Uring
    }

    fn submit(&self, operation: Operation) {
        match &operation.request {
            Request::Call(_) => self.blocking.submit(operation),
            _ => self.update_queue(|queue| queue.operations.push_back(operation)),
        }
    }

    fn submit_awaited(&self, operation: Operation) {
        super::threads::perform(operation);
    }
}

impl Drop for UringBackend {
    /// Ends the thread after the queued operations.
    fn drop(&mut self) {
        self.update_queue(|queue| queue.is_closing = true);
        if let Some(thread) = self.thread.take() {
            join(thread);
        }
    }
}

/// An operation that has been submitted to the kernel, or will be with the next `io_uring_enter`.
struct InFlight {
    file: Arc<FileHandle>,
    buffer: Option<AlignedBuffer>,
    completion: Completion,
}

/// State of the ring's thread.
struct Driver {
    shared: Arc<RingShared>,
    ring: IoUring,
    /// Operations by the number that the kernel returns with a completion.
    slots: Vec<Option<InFlight>>,
    free: Vec<usize>,
    /// Destination of the read of the eventfd.
    wake_count: Box<u64>,
    is_wake_armed: bool,
}

impl Driver {
    /// Serves until the backend is closed and no operation is left.
    fn serve(&mut self) {
        let mut futile_enters = 0;
        while let Some((operations, are_more)) = self.next_operations() {
            for operation in operations {
                self.start(operation);
            }
            if are_more {
                // If it fails, the entries stay in the queue: the call after the last operation submits them, or
                // reports the error.
                let _ = self.ring.submit();
                if self.complete() > 0 {
                    futile_enters = 0;
                }
                continue;
            }
            if self.in_flight() == 0 {
                continue;
            }
            self.arm_wake();
            let entered = self.ring.submit_and_wait(1);
            if self.complete() > 0 {
                futile_enters = 0;
                continue;
            }
            futile_enters += 1;
            let is_lasting = futile_enters >= FUTILE_ENTERS_MAX;
            match entered {
                Ok(_) if is_lasting => {
                    let message = "io_uring_enter repeatedly returns without a completion";
                    return self.fail(&io::Error::other(message));
                }
                Err(error) if is_lasting || !is_temporary(&error) => {
                    return self.fail(&named("io_uring_enter", &error));
                }
                _ => thread::sleep(PAUSE),
            }
        }
    }

    fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Waits for operations, unless some are in flight, and takes a few, for which there is room. Also returns whether
    /// there is room for more that are queued. `None` if the backend has been closed.
    fn next_operations(&mut self) -> Option<(Vec<Operation>, bool)> {
        let mut queue = lock(&self.shared.queue);
        queue.is_in_ring = false;
        loop {
            let startable = queue.operations.len().min(self.free.len());
            if startable > 0 || self.in_flight() > 0 {
                let count = startable.min(STARTS_PER_ENTER);
                let are_more = count < startable;
                queue.is_in_ring = !are_more && count < self.free.len();
                return Some((queue.operations.drain(..count).collect(), are_more));
            }
            if queue.is_closing {
                return None;
            }
            queue = self.shared.wait(queue);
        }
    }

    /// Adds an operation to the submission queue.
    fn start(&mut self, operation: Operation) {
        let Operation {
            file,
            request,
            completion,
        } = operation;
        let fd = types::Fd(file.file().as_raw_fd());
        let (entry, buffer) = match request {
            Request::Read {
                target,
                offset,
                flags,
            } => {
                let (mut buffer, start, end) = target.into_buffer();
                let part = &mut buffer[start..end];
                // At most OPERATION_BYTES_MAX.
                let read = opcode::Read::new(fd, part.as_mut_ptr(), part.len() as u32);
                // The kernel's flags, in a type of the same width.
                let read = read.offset(offset).rw_flags(flags.bits() as i32);
                (read.build(), Some(buffer))
            }
            Request::Write {
                source,
                start,
                end,
                offset,
                flags,
            } => {
                let part = &source[start..end];
                let write = opcode::Write::new(fd, part.as_ptr(), part.len() as u32);
                let write = write.offset(offset).rw_flags(flags.bits() as i32);
                (write.build(), Some(source))
            }
            Request::SyncData => {
                let sync = opcode::Fsync::new(fd).flags(types::FsyncFlags::DATASYNC);
                (sync.build(), None)
            }
            // `submit` sends calls to the blocking backend.
            Request::Nothing | Request::Call(_) => (opcode::Nop::new().build(), None),
        };
        let in_flight = InFlight {
            file,
            buffer,
            completion,
        };
        // There is room: at most as many operations are taken as slots are free, and the ring has more
        // entries than there are slots.
        let Some(slot) = self.free.pop() else {
            return finish(in_flight, Err(Errno::AGAIN.into()));
        };
        // SAFETY: the buffer is part of a heap allocation that does not move with its owner. It stays in
        // the slot until its completion has been taken, or is never freed. The file is open as long.
        let pushed = unsafe { self.ring.submission().push(&entry.user_data(slot as u64)) };
        match pushed {
            Ok(()) => self.slots[slot] = Some(in_flight),
            Err(_) => {
                self.free.push(slot);
                finish(in_flight, Err(Errno::AGAIN.into()));
            }
        }
    }

    /// Makes sure that a write to the eventfd ends `io_uring_enter`.
    fn arm_wake(&mut self) {
        if self.is_wake_armed {
            return;
        }
        let target = std::ptr::from_mut(&mut *self.wake_count).cast();
        let read = opcode::Read::new(types::Fd(self.shared.wake.as_raw_fd()), target, 8);
        // SAFETY: the eight bytes are on the heap and are freed only while no read is armed; the
        // eventfd is open as long as the driver has its share of it.
        let pushed = unsafe { self.ring.submission().push(&read.build().user_data(WAKE)) };
        self.is_wake_armed = pushed.is_ok();
    }

    /// Takes all completions, and returns their number.
    fn complete(&mut self) -> usize {
        let mut count = 0;
        // One by one, since a completion's callback may take long.
        while let Some(entry) = self.ring.completion().next() {
            count += 1;
            if entry.user_data() == WAKE {
                // A read that failed would fail again immediately: it is then treated as if it were armed.
                self.is_wake_armed = entry.result() < 0;
                continue;
            }
            let slot = usize::try_from(entry.user_data()).unwrap_or(usize::MAX);
            let Some(in_flight) = self.slots.get_mut(slot).and_then(Option::take) else {
                continue;
            };
            self.free.push(slot);
            let failed = |_| io::Error::from_raw_os_error(entry.result().saturating_neg());
            let result = usize::try_from(entry.result()).map_err(failed);
            finish(in_flight, result);
        }
        count
    }

    /// Ends the operations in flight, and all later ones, with an error.
    fn fail(&mut self, error: &io::Error) {
        let error = io::Error::new(
            error.kind(),
            format!("{error}; the backend `threads` does not need io_uring"),
        );
        self.abandon(&error);
        loop {
            let operation = {
                let mut queue = lock(&self.shared.queue);
                queue.is_in_ring = false;
                while queue.operations.is_empty() && !queue.is_closing {
                    queue = self.shared.wait(queue);
                }
                queue.operations.pop_front()
            };
            let Some(operation) = operation else { return };
            drop(operation.file);
            let outcome = Outcome::new(Err(copy_of(&error)), None);
            operation.completion.run(outcome);
        }
    }

    /// Ends the operations in flight with an error. Their buffers are never freed.
    fn abandon(&mut self, error: &io::Error) {
        for in_flight in self.slots.iter_mut().filter_map(Option::take) {
            std::mem::forget(in_flight.buffer);
            drop(in_flight.file);
            let outcome = Outcome::new(Err(copy_of(error)), None);
            in_flight.completion.run(outcome);
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.abandon(&io::Error::other(
            "the I/O thread ended before the operation did",
        ));
        if self.is_wake_armed {
            std::mem::forget(std::mem::take(&mut self.wake_count));
        }
    }
}

fn finish(in_flight: InFlight, result: io::Result<usize>) {
    // The file is dropped first: the completion's owner may expect it to be closed.
    drop(in_flight.file);
    let outcome = Outcome::new(result, in_flight.buffer);
    in_flight.completion.run(outcome);
}

/// Whether `io_uring_enter` may succeed when it is called again.
fn is_temporary(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(
        errno,
        Some(Errno::AGAIN | Errno::BUSY | Errno::NOMEM | Errno::INTR)
    )
}

fn copy_of(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), error.to_string())
}
