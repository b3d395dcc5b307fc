//! Requirements of daemons other than Cassandra.

use compactor_testkit::Need;

use super::client;
use crate::{program, toolchain};

/// Reports and returns whether the test cannot run.
///
/// # Panics
/// If daemons are required.
#[must_use]
#[track_caller]
pub fn without_daemons() -> bool {
    let missing = missing();
    if let Some(reason) = &missing {
        compactor_testkit::skip(Need::Daemons, format!("no daemons: {reason}"));
    }
    missing.is_some()
}

/// Reason why no daemon can run on this machine, if any.
#[must_use]
pub fn missing() -> Option<String> {
    if let Some(reason) = toolchain::missing() {
        return Some(reason);
    }
    for name in ["setpriv", "nice"] {
        if let Some(reason) = program::missing(name, "--version") {
            return Some(reason);
        }
    }
    client::driver()
        .err()
        .map(|error| format!("the client cannot be installed: {error:#}"))
}
