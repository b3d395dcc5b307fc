//! Actions at the exit of the process.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, Once, PoisonError};

type Action = Box<dyn FnOnce() + Send>;

static ACTIONS: Mutex<Vec<Action>> = Mutex::new(Vec::new());

/// Runs `action` when the process exits, the last one first; not if it is killed. libtest has no hook for the end of all
/// tests, and statics are never dropped.
///
/// # Panics
/// If the C library has no space for another exit handler.
pub fn at_exit(action: impl FnOnce() + Send + 'static) {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        // SAFETY: `run` is a function of this program, takes no arguments, and does not unwind.
        let result = unsafe { libc::atexit(run) };
        assert_eq!(result, 0, "atexit");
    });
    let mut actions = ACTIONS.lock().unwrap_or_else(PoisonError::into_inner);
    actions.push(Box::new(action));
}

extern "C" fn run() {
    loop {
        // Not locked while it runs: it may add another.
        let action = ACTIONS.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let Some(action) = action else { return };
        // A panic must not leave a function that C calls; its message has been printed.
        let _ = catch_unwind(AssertUnwindSafe(action));
    }
}
