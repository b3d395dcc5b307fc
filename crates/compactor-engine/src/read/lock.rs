//! Locks whose holders may panic.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex whose data is always consistent. A panic of another holder is ignored here: its own thread reports
/// it, and stops the merge.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
