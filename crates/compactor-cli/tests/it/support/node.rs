//! Stand-in for a running node: a process that has a file open.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Holds a file open as its standard input, until it is dropped.
pub struct Node(Child);

impl Node {
    pub fn with(path: &Path) -> Node {
        let stdin = Stdio::from(File::open(path).unwrap());
        let mut command = Command::new("sleep");
        Node(command.arg("600").stdin(stdin).spawn().unwrap())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
