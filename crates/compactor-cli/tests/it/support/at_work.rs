//! Commands that are interrupted while they run.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

use super::is_empty;

/// A running command, and its messages.
pub struct AtWork {
    pub child: Child,
    pub messages: BufReader<ChildStderr>,
    /// Its messages up to the awaited line.
    pub printed: String,
}

impl AtWork {
    /// Starts a command, and waits for a line on stderr that begins with `beginning`.
    pub fn since(command: &mut Command, beginning: &str) -> AtWork {
        let command = command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut messages = BufReader::new(child.stderr.take().unwrap());
        let mut printed = String::new();
        let mut line = String::new();
        while !line.starts_with(beginning) {
            line.clear();
            assert!(messages.read_line(&mut line).unwrap() > 0, "it ended");
            printed.push_str(&line);
        }
        AtWork {
            child,
            messages,
            printed,
        }
    }

    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args(["-s", name, &self.child.id().to_string()])
            .status();
        assert!(sent.unwrap().success());
    }

    /// Waits for the command to end, asserts its exit code, and returns the rest of stderr.
    pub fn ends_with(&mut self, code: i32) -> String {
        let mut rest = String::new();
        self.messages.read_to_string(&mut rest).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(code), "{rest}");
        rest
    }

    /// Asserts that the command has files in a directory, interrupts it, and asserts that it leaves none.
    pub fn leaves_nothing(mut self, signal: &str, directory: &Path) {
        assert!(!is_empty(directory));
        self.signal(signal);
        let rest = self.ends_with(130);
        assert!(is_empty(directory), "{rest}");
    }
}
