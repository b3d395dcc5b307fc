//! Tests of `compactor-io` on real files and file systems. The comment of a test describes the defect that it
//! guards against.
//!
//! Tests of direct I/O need a file system that supports it. They use `COMPACTOR_TEST_DIRECT_DIR` if it is
//! set, otherwise the target directory, and are skipped if it does not support direct I/O, as tmpfs does
//! not.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod concurrency;
mod direct;
mod fallback;
mod faults;
mod matrix;
mod no_space;
mod overlay;
mod probing;
mod reading;
mod sandbox;
mod slow_first_write;
mod support;
