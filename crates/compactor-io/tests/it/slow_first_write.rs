//! A backend that delays one write.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use compactor_io::{BackendKind, IoBackend, Operation, Request};

use compactor_testkit::fault_backend::{Fault, FaultBackend};

/// Delays the write of a file's first bytes until `release` is called; other operations are not delayed.
#[derive(Debug)]
pub struct SlowFirstWrite {
    others: FaultBackend,
    held: Mutex<Option<Operation>>,
    submitted: AtomicU64,
}

impl SlowFirstWrite {
    pub fn new() -> SlowFirstWrite {
        SlowFirstWrite {
            others: FaultBackend::new(Box::new(|_, _| Fault::None)),
            held: Mutex::default(),
            submitted: AtomicU64::new(0),
        }
    }

    /// Maximum end offset of the submitted writes.
    pub fn submitted(&self) -> u64 {
        self.submitted.load(Ordering::Relaxed)
    }

    pub fn release(&self) {
        let held = self.held.lock().unwrap().take();
        self.others.submit(held.unwrap());
    }
}

impl IoBackend for SlowFirstWrite {
    fn kind(&self) -> BackendKind {
        BackendKind::Threads
    }

    fn submit(&self, operation: Operation) {
        if let Request::Write {
            start, end, offset, ..
        } = &operation.request
        {
            let end = offset + (end - start) as u64;
            self.submitted.fetch_max(end, Ordering::Relaxed);
            if *offset == 0 {
                *self.held.lock().unwrap() = Some(operation);
                return;
            }
        }
        self.others.submit(operation);
    }
}
