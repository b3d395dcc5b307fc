//! `compactor lab fio`, with and without fio installed.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use compactor_testkit::machine::{has_fio, has_strace};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{assert_ends, printed, text, words};

const EXAMPLE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../compactor-lab/tests/data/outcome.json"
);

fn command(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_compactor"));
    command
        .args(["lab", "fio", "--directory", "."])
        .args(arguments)
        .current_dir(directory);
    command
}

fn left(directory: &Path) -> usize {
    std::fs::read_dir(directory).unwrap().count()
}

#[test]
fn without_fio_the_message_names_the_package() {
    let temp = TempDir::new().unwrap();
    let output = command(temp.path(), &[]).env("PATH", "").output().unwrap();
    assert_ends(&output, 1, "apt-get install fio");
    assert_eq!(left(temp.path()), 0);
}

#[test]
fn invalid_options_are_refused() {
    let temp = TempDir::new().unwrap();
    for (arguments, reason) in [
        ("mix-magic", "there are foreground, mix-buffered"),
        ("--rate 0", "1MiB/s to 1TiB/s"),
        ("--runtime -1", "1 to 86400"),
    ] {
        let output = command(temp.path(), &words(arguments)).output().unwrap();
        assert_ends(&output, 2, reason);
    }
}

const SMALL: &str = "--hot-size 4MiB --rate 4MiB --reads-per-thread 50";

/// The results are printed nevertheless.
#[test]
fn a_directory_that_cannot_be_removed_is_noted() {
    if !has_fio() || !has_strace() {
        return;
    }
    let temp = TempDir::new().unwrap();
    let output = Command::new("strace")
        .args(words("-f --seccomp-bpf -qq -o /dev/null -e trace=unlinkat"))
        .arg("--inject=unlinkat:error=EBUSY")
        .arg(env!("CARGO_BIN_EXE_compactor"))
        .args(words("lab fio foreground --directory . --runtime 1"))
        .args(words(SMALL))
        .current_dir(temp.path())
        .output()
        .unwrap();
    assert!(printed(&output).contains("foreground"));
    let messages = text(&output.stderr);
    assert!(messages.contains("compactor-fio-"), "{messages}");
    assert!(messages.contains("busy"), "{messages}");
}

#[test]
fn profiles_are_compared_with_an_experiment() {
    if !has_fio() {
        return;
    }
    let temp = TempDir::new().unwrap();
    let output = command(
        temp.path(),
        &["foreground", "mix-buffered", "--outcome", EXAMPLE],
    )
    .args(["--json", "fio.json"])
    .args(words(SMALL))
    .args(["--runtime", "1"])
    .output()
    .unwrap();
    let text = printed(&output);
    assert!(
        text.contains("The same with SSTables and with fio"),
        "{text}"
    );
    let json = std::fs::read(temp.path().join("fio.json")).unwrap();
    let json: Value = serde_json::from_slice(&json).unwrap();
    let runs = json["runs"].as_array().unwrap();
    let mix = runs.iter().find(|run| run["profile"] == "mix-buffered");
    assert!(mix.unwrap()["failure"].is_null(), "{json}");
    assert_eq!(left(temp.path()), 1, "only the JSON is left");
}

#[test]
fn a_directory_that_does_not_exist_is_wrong_usage() {
    if !has_fio() {
        return;
    }
    let temp = TempDir::new().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_compactor"))
        .args(["lab", "fio", "--directory", "nowhere"])
        .current_dir(temp.path())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("nowhere: No such file"), "{stderr}");
}

#[test]
fn an_interrupt_leaves_nothing() {
    if !has_fio() {
        return;
    }
    let temp = TempDir::new().unwrap();
    let child = command(temp.path(), &["foreground"])
        .args(words(SMALL))
        .args(["--runtime", "600", "--format", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Once its files exist.
    while left(temp.path()) == 0 {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_secs(1));
    let id = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &id])
            .status()
            .unwrap()
            .success()
    );
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["error"]["kind"], "interrupted", "{json}");
    assert_eq!(left(temp.path()), 0);
}
