//! Commands that are interrupted in the middle of their work.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

use super::is_empty;

/// A command that is at work, and its messages.
pub struct AtWork {
    pub child: Child,
    pub messages: BufReader<ChildStderr>,
    /// Its messages up to the line that was waited for.
    pub said: String,
}

impl AtWork {
    /// Starts a command, and waits for a line on stderr that begins with `beginning`.
    pub fn since(command: &mut Command, beginning: &str) -> AtWork {
        let command = command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut messages = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        let mut line = String::new();
        while !line.starts_with(beginning) {
            line.clear();
            assert!(messages.read_line(&mut line).unwrap() > 0, "it ended");
            said.push_str(&line);
        }
        AtWork {
            child,
            messages,
            said,
        }
    }

    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args(["-s", name, &self.child.id().to_string()])
            .status();
        assert!(sent.unwrap().success());
    }

    /// Waits for the end, expects this exit code, and returns the rest of stderr.
    pub fn ends_with(&mut self, code: i32) -> String {
        let mut rest = String::new();
        self.messages.read_to_string(&mut rest).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(code), "{rest}");
        rest
    }

    /// Interrupts it: it has something in a directory, and leaves nothing there.
    pub fn leaves_nothing(mut self, signal: &str, directory: &Path) {
        assert!(!is_empty(directory));
        self.signal(signal);
        let rest = self.ends_with(130);
        assert!(is_empty(directory), "{rest}");
    }
}
