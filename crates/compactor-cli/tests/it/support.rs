//! Nodes, directories and output for the tests of the command.

pub mod node;

use std::path::Path;
use std::process::{Command, Output};

/// Runs the command in a directory.
pub fn compactor(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_compactor"))
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap()
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub fn is_empty(directory: &Path) -> bool {
    std::fs::read_dir(directory).unwrap().next().is_none()
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub fn stderr(output: &Output) -> String {
    text(&output.stderr)
}
