//! `io_uring` through `tokio-uring`: one I/O thread with a current-thread runtime.
//!
//! - Requests are sent over a tokio channel, whose waker unparks the runtime from any thread; nothing on the
//!   runtime's thread ever blocks in a receive.
//! - The number of tasks that receive from the channel is the queue depth. A task performs one operation at a
//!   time, so the number of tasks limits the operations in flight, and an operation allocates no task of its
//!   own. The limit is below the completion queue's size: a burst beyond it has hung tokio-uring.
//! - A file has a duplicate descriptor in the I/O thread from its first operation until it is forgotten:
//!   tokio-uring owns and closes the descriptors it is given, and its files cannot leave their thread.
//! - A runtime that is not woken parks forever after an `io_uring_enter` that failed, so it is woken
//!   periodically. Other failures in it are detected by the watchdog of all backends.
//! - tokio-uring keeps a buffer in flight alive until its completion, even if the task that waits for it is
//!   dropped.
#![expect(
    unsafe_code,
    reason = "tokio-uring's buffer traits are unsafe to implement"
)]

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc as ready;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::io::Errno;
use tokio::sync::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_uring::buf::{BoundedBuf, IoBuf, IoBufMut};

use super::{IoBackend, Operation, Outcome, QUEUE_DEPTH_MAX, Request, enter_io_thread, join};
use crate::backend::FileHandle;
use crate::buffer::AlignedBuffer;
use crate::mode::BackendKind;
use crate::sys::uring_trial::try_ring;

/// Maximum sleep of a runtime.
const TICK: Duration = Duration::from_millis(20);

/// The backend.
#[derive(Debug)]
pub(crate) struct TokioUringBackend {
    /// The I/O thread and the sender of its messages. `None` while closing.
    thread: Option<(UnboundedSender<Message>, JoinHandle<()>)>,
    /// Performs calls that block, which tokio-uring cannot.
    blocking: Arc<dyn IoBackend>,
}

#[derive(Debug)]
enum Message {
    Run(Operation),
    Forget(u64),
}

impl TokioUringBackend {
    /// Starts a ring with at most `queue_depth` operations in flight.
    ///
    /// # Errors
    ///
    /// A failed system call if `io_uring` is missing or forbidden; no thread is left running then.
    pub(crate) fn start(
        queue_depth: usize,
        blocking: Arc<dyn IoBackend>,
    ) -> io::Result<TokioUringBackend> {
        // A runtime whose ring does not work would wait forever.
        try_ring()?;
        let (sender, receiver) = unbounded_channel();
        let (report, started) = ready::sync_channel(1);
        let thread = thread::Builder::new()
            .name("io-uring-0".to_owned())
            .spawn(move || run_thread(receiver, queue_depth, &report))?;
        let backend = TokioUringBackend {
            thread: Some((sender, thread)),
            blocking,
        };
        match started.recv() {
            Ok(result) => result.map(|()| backend),
            Err(_) => Err(io::Error::other("the I/O thread panicked while starting")),
        }
    }

    /// Sends a message to the I/O thread. If the runtime cannot be woken (its eventfd cannot be written), tokio
    /// panics after the message has been queued; it is received after the next [`TICK`].
    fn send(&self, message: Message) {
        if let Some((sender, _)) = &self.thread {
            let send = std::panic::AssertUnwindSafe(|| drop(sender.send(message)));
            drop(std::panic::catch_unwind(send));
        }
    }
}

impl IoBackend for TokioUringBackend {
    fn submit_awaited(&self, operation: Operation) {
        super::threads::perform(operation);
    }

    fn kind(&self) -> BackendKind {
        BackendKind::TokioUring
    }

    fn submit(&self, operation: Operation) {
        match &operation.request {
            Request::Call(_) => self.blocking.submit(operation),
            // On a failed send (the thread has ended) the operation is dropped with the message, and its
            // completion reports this.
            _ => {
                operation.file.set_queued();
                self.send(Message::Run(operation));
            }
        }
    }

    fn forget(&self, file_id: u64) {
        self.send(Message::Forget(file_id));
    }
}

impl Drop for TokioUringBackend {
    /// Ends the I/O thread after the queued operations.
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.thread.take() {
            drop(sender);
            join(thread);
        }
    }
}

/// Main function of the I/O thread: creates the ring, reports whether that succeeded, and serves until the
/// channel is closed.
fn run_thread(
    receiver: UnboundedReceiver<Message>,
    queue_depth: usize,
    report: &ready::SyncSender<io::Result<()>>,
) {
    enter_io_thread();
    let depth = queue_depth.clamp(1, QUEUE_DEPTH_MAX);
    let mut builder = tokio_uring::builder();
    builder.entries(u32::try_from(depth.next_power_of_two()).unwrap_or(1));
    let runtime = match tokio_uring::Runtime::new(&builder) {
        Ok(runtime) => runtime,
        Err(error) => {
            drop(report.send(Err(error)));
            return;
        }
    };
    drop(report.send(Ok(())));
    runtime.block_on(serve(receiver, depth));
}

type Files = RefCell<HashMap<u64, Rc<tokio_uring::fs::File>>>;

async fn serve(receiver: UnboundedReceiver<Message>, depth: usize) {
    let receiver = Rc::new(Mutex::new(receiver));
    let files = Rc::new(Files::default());
    let tasks: Vec<_> = (0..depth)
        .map(|_| {
            let (receiver, files) = (Rc::clone(&receiver), Rc::clone(&files));
            tokio_uring::spawn(async move {
                loop {
                    // The guard is dropped at the end of this statement, before the operation starts.
                    let message = receiver.lock().await.recv().await;
                    match message {
                        Some(Message::Run(operation)) => perform(operation, &files).await,
                        Some(Message::Forget(id)) => drop(files.borrow_mut().remove(&id)),
                        None => break,
                    }
                }
            })
        })
        .collect();
    // When the runtime parks it submits the queue, and ignores the error if that fails: without this task it
    // would then park forever.
    tokio_uring::spawn(async {
        loop {
            tokio::time::sleep(TICK).await;
        }
    });
    for task in tasks {
        // A task that panicked lost its operation, whose completion has reported this.
        drop(task.await);
    }
}

async fn perform(operation: Operation, files: &Files) {
    let Operation {
        file,
        request,
        completion,
    } = operation;
    let outcome = match ring_file(&file, files) {
        Ok(ring_file) => perform_on(&ring_file, request).await,
        Err(error) => Outcome::new(Err(error), None),
    };
    drop(file);
    completion.run(outcome);
}

async fn perform_on(file: &tokio_uring::fs::File, request: Request) -> Outcome {
    match request {
        Request::Read { flags, .. } | Request::Write { flags, .. } if !flags.is_empty() => {
            // Files whose mode requires flags are assigned the other backend when they are opened.
            Outcome::new(Err(Errno::OPNOTSUPP.into()), None)
        }
        Request::Read { target, offset, .. } => {
            let (buffer, start, end) = target.into_buffer();
            if start >= end {
                return Outcome::new(Ok(0), Some(buffer));
            }
            let (result, slice) = file
                .read_at(RingBuffer(buffer).slice(start..end), offset)
                .await;
            Outcome::new(result, Some(slice.into_inner().0))
        }
        Request::Write {
            source,
            start,
            end,
            offset,
            ..
        } => {
            if start >= end {
                return Outcome::new(Ok(0), Some(source));
            }
            let write = file.write_at(RingBuffer(source).slice(start..end), offset);
            let (result, slice) = write.submit().await;
            Outcome::new(result, Some(slice.into_inner().0))
        }
        Request::SyncData => Outcome::new(file.sync_data().await.map(|()| 0), None),
        Request::Nothing => Outcome::new(Ok(0), None),
        // `submit` sends these to the blocking backend.
        Request::Call(_) => Outcome::new(Err(Errno::OPNOTSUPP.into()), None),
    }
}

/// This thread's own descriptor of a file.
fn ring_file(file: &FileHandle, files: &Files) -> io::Result<Rc<tokio_uring::fs::File>> {
    if let Some(known) = files.borrow().get(&file.id()) {
        return Ok(Rc::clone(known));
    }
    let duplicate = Rc::new(tokio_uring::fs::File::from_std(file.file().try_clone()?));
    files.borrow_mut().insert(file.id(), Rc::clone(&duplicate));
    Ok(duplicate)
}

/// An aligned buffer as tokio-uring wants it: all of it is initialised, always.
struct RingBuffer(AlignedBuffer);

// SAFETY: `stable_ptr` is the address of a heap allocation that the buffer owns and never moves
// or replaces while it lives, and that stays the same when the `RingBuffer` value moves. All
// `capacity` bytes are initialised from allocation on, so `bytes_init` is the whole capacity.
unsafe impl IoBuf for RingBuffer {
    fn stable_ptr(&self) -> *const u8 {
        self.0.as_ptr()
    }

    fn bytes_init(&self) -> usize {
        self.0.capacity()
    }

    fn bytes_total(&self) -> usize {
        self.0.capacity()
    }
}

// SAFETY: `stable_mut_ptr` is the same stable address as `stable_ptr`, obtained through exclusive
// access, and valid for writes of `capacity` bytes.
unsafe impl IoBufMut for RingBuffer {
    fn stable_mut_ptr(&mut self) -> *mut u8 {
        self.0.as_mut_ptr()
    }

    unsafe fn set_init(&mut self, _pos: usize) {
        // Every byte is initialised already.
    }
}
