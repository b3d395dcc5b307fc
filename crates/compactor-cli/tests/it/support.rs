//! Directories and output for the tests of the command.

pub mod node;

use std::path::Path;
use std::process::Output;

use tempfile::TempDir;

/// A directory on a disk, which /tmp need not be.
pub fn disk_directory() -> TempDir {
    TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

pub fn is_empty(directory: &Path) -> bool {
    std::fs::read_dir(directory).unwrap().next().is_none()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
