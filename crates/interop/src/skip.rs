//! Tests and programs without Cassandra.

use anyhow::{Result, bail};
use compactor_testkit::Need;

use crate::toolchain;

/// Whether the environment requires Cassandra.
pub(crate) fn is_required() -> bool {
    Need::Cassandra.is_required()
}

/// Reports and returns whether the test cannot run.
///
/// # Panics
/// If Cassandra is required.
#[track_caller]
pub fn without_cassandra() -> bool {
    let missing = toolchain::missing();
    if let Some(reason) = &missing {
        compactor_testkit::skip(Need::Cassandra, format!("no Cassandra: {reason}"));
    }
    missing.is_some()
}

/// Fails a program without Java or Maven.
///
/// # Errors
/// With the reason.
pub fn need_cassandra() -> Result<()> {
    match toolchain::missing() {
        Some(reason) => bail!("no Cassandra: {reason}"),
        None => Ok(()),
    }
}
