//! The report of skipped tests, as a user sees it: this program runs itself.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::process::{Command, Output};

use compactor_testkit::{Need, campaign, skip, skip_part};

/// Variable that makes the tests of [`skipped`] skip; otherwise they pass.
const CHILD: &str = "COMPACTOR_TEST_SKIPS";

mod skipped {
    use super::*;

    fn is_child() -> bool {
        std::env::var_os(CHILD).is_some()
    }

    #[test]
    fn one() {
        if is_child() {
            skip(Need::Strace, "strace is missing");
        }
    }

    #[test]
    fn another() {
        if is_child() {
            // Twice, but a test is counted once.
            skip(Need::Strace, "strace is missing");
            skip(Need::Strace, "strace is missing");
        }
    }

    #[test]
    fn in_part() {
        if is_child() {
            skip_part(Need::Fio, "fio is missing");
        }
    }

    #[test]
    fn by_choice() {
        if is_child() {
            assert!(!campaign::is_full());
        }
    }
}

fn run(required: &str) -> Output {
    Command::new(std::env::current_exe().unwrap())
        .args(["skipped::", "--test-threads=2"])
        .env(CHILD, "1")
        .env("COMPACTOR_REQUIRE", required)
        .env("COMPACTOR_CAMPAIGN", "short")
        .output()
        .unwrap()
}

fn skipped_lines(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stderr);
    let lines = text.lines().filter(|line| line.starts_with("SKIPPED"));
    lines.map(str::to_owned).collect()
}

const BY_CHOICE: &str = "SKIPPED 1 test: not in a short COMPACTOR_CAMPAIGN";
const STRACE: &str = "SKIPPED 2 tests: strace is missing";
const FIO: &str = "SKIPPED 1 test in part: fio is missing";

#[test]
fn a_line_per_reason_although_tests_pass() {
    let output = run("cassandra");
    assert!(output.status.success());
    assert_eq!(skipped_lines(&output), [BY_CHOICE, STRACE, FIO]);
}

#[test]
fn a_skipped_requirement_fails() {
    let output = run("fio,strace");
    assert_eq!(output.status.code(), Some(101));
    assert_eq!(skipped_lines(&output), [BY_CHOICE]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("3 failed"), "{text}");
    let message = "COMPACTOR_REQUIRE names strace, but strace is missing";
    assert!(text.contains(message), "{text}");
    let output = run("all");
    assert_eq!(skipped_lines(&output), [BY_CHOICE]);
}

#[test]
fn an_unknown_name_fails_and_lists_the_names() {
    let output = run("jvm");
    assert_eq!(output.status.code(), Some(101));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("\"jvm\"") && text.contains("io_uring"),
        "{text}"
    );
}
