//! Tests of `compactor-io` on real files and file systems.
//!
//! Those about direct I/O need a file system that has it. They use `COMPACTOR_TEST_DIRECT_DIR` if it
//! is set, else the target directory, and say SKIPPED where that is of no use: tmpfs proves nothing.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod concurrency;
mod direct;
mod fallback;
mod fault_backend;
mod faults;
mod matrix;
mod no_space;
mod probing;
mod reading;
mod sandbox;
mod slow_first_write;
mod support;
