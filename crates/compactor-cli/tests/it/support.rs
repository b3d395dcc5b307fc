//! Nodes, directories and output for the tests of the command.

pub mod at_work;
pub mod nobody;
pub mod node;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// Runs the command in a directory.
pub fn compactor(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_compactor"))
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap()
}

/// Words of a command line, none of which has a space in it.
pub fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// Words of a command line, followed by others.
pub fn words_and<'a>(line: &'a str, others: &[&'a str]) -> Vec<&'a str> {
    [&words(line), others].concat()
}

/// Generates a table in `data` below a directory; returns the table's directory.
pub fn generated(directory: &Path, options: &[&str]) -> PathBuf {
    let generate = words_and("generate --output data --format json", options);
    let report = json(&compactor(directory, &generate));
    directory.join(report["table_directory"].as_str().unwrap())
}

/// Every `Data.db` of a directory.
pub fn data_files(directory: &Path) -> Vec<PathBuf> {
    let mut files = paths_in(directory);
    files.retain(|path| path.to_str().unwrap().ends_with("-Data.db"));
    files
}

/// Paths of all entries of a directory, ascending.
pub fn paths_in(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// Names of all entries of a directory, ascending.
pub fn names_in(directory: &Path) -> Vec<String> {
    let names = paths_in(directory).into_iter();
    names
        .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
        .collect()
}

/// Copies the files of a directory without subdirectories into a new directory.
pub fn copy_files(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for path in paths_in(from) {
        fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}

/// Changes a bit of a file.
pub fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 1;
    fs::write(path, bytes).unwrap();
}

/// Changes a bit in the middle of a file.
pub fn flip_middle(path: &Path) {
    flip(path, fs::metadata(path).unwrap().len() as usize / 2);
}

/// Rows of an SSTable as `dump` prints them, without their positions, which differ between files with equal rows.
pub fn rows(data: &Path) -> String {
    let out = compactor(data.parent().unwrap(), &["dump", data.to_str().unwrap()]);
    assert_done(&out);
    stdout(&out)
        .split("\"position\":")
        .map(|part| part.trim_start_matches(|c: char| c.is_ascii_digit()))
        .collect()
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub fn is_empty(directory: &Path) -> bool {
    fs::read_dir(directory).unwrap().next().is_none()
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub fn stderr(output: &Output) -> String {
    text(&output.stderr)
}

/// Standard output of a command that must have succeeded.
pub fn printed(output: &Output) -> String {
    assert_done(output);
    stdout(output)
}

/// JSON document on the standard output of a command that must have succeeded.
pub fn json(output: &Output) -> Value {
    assert_done(output);
    serde_json::from_slice(&output.stdout).unwrap()
}

pub fn assert_done(output: &Output) {
    assert!(output.status.success(), "{}", stderr(output));
}

/// Asserts the exit code, and that stderr contains `words`.
pub fn assert_ends(output: &Output, code: i32, words: &str) {
    let stderr = stderr(output);
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    assert!(stderr.contains(words), "{stderr}");
}

/// Asserts that stdout contains `words`.
pub fn assert_prints(output: &Output, words: &str) {
    let stdout = stdout(output);
    assert!(stdout.contains(words), "{stdout}");
}
