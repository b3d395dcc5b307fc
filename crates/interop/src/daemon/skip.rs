//! What to do where the rig cannot run: as for the rest of the crate, loudly, and never in CI.

use std::process::{Command, Stdio};

use super::client;
use crate::skip::required;
use crate::toolchain;

/// True where no daemon can be run; the reason has been printed.
///
/// # Panics
/// Where the environment requires Cassandra.
#[must_use]
pub fn without_daemons() -> bool {
    let Some(reason) = missing() else {
        return false;
    };
    assert!(!required(), "daemons are required here, but {reason}");
    println!("SKIPPED daemons: {reason}");
    eprintln!("SKIPPED daemons: {reason}");
    true
}

fn missing() -> Option<String> {
    if let Some(reason) = toolchain::missing() {
        return Some(reason);
    }
    for name in ["setpriv", "nice"] {
        let ran = Command::new(name)
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if !ran.is_ok_and(|status| status.success()) {
            return Some(format!("{name} does not run"));
        }
    }
    client::driver()
        .err()
        .map(|error| format!("the client cannot be installed: {error:#}"))
}
