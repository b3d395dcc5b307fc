//! Cancellation by the observer.

use compactor_engine::merge::Observer;

use crate::Error;

/// Fails once the observer has cancelled the work.
///
/// # Errors
/// Cancellation.
pub(crate) fn check_cancelled(observer: &dyn Observer) -> Result<(), Error> {
    if observer.is_cancelled() {
        Err(Error::Cancelled)
    } else {
        Ok(())
    }
}
