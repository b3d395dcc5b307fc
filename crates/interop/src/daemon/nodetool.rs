//! nodetool over JMX, in one JVM for all commands: starting a JVM takes longer than most commands.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use anyhow::{Context, Result};

use super::process::Killed;
use crate::server::lines;

/// Longest time of one command.
const TIMEOUT: Duration = Duration::from_secs(400);

#[derive(Debug)]
pub(crate) struct Nodetool {
    _process: Killed,
    requests: ChildStdin,
    replies: Receiver<String>,
    port: u16,
}

impl Nodetool {
    /// Starts the JVM of `command`, which runs `NodetoolLoop`.
    pub(crate) fn start(mut command: Command, port: u16, log: &Path) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(log)?)
            .spawn()
            .context("cannot start setpriv, of util-linux")?;
        let requests = child.stdin.take().context("nodetool has no stdin")?;
        let stdout = child.stdout.take().context("nodetool has no stdout")?;
        let replies = lines(stdout)?;
        Ok(Self {
            _process: Killed(child),
            requests,
            replies,
            port,
        })
    }

    /// Runs a command; returns its exit code and what it printed.
    pub(crate) fn run(&mut self, arguments: &[&str]) -> Result<(i32, String)> {
        let line = format!("-p\t{}\t{}\n", self.port, arguments.join("\t"));
        self.requests.write_all(line.as_bytes())?;
        self.requests.flush()?;
        let reply = self
            .replies
            .recv_timeout(TIMEOUT)
            .with_context(|| format!("nodetool {} does not answer", arguments.join(" ")))?;
        let (code, printed) = reply.split_once(' ').context("an exit code and a text")?;
        Ok((code.parse()?, serde_json::from_str(printed)?))
    }
}
