//! Python's cassandra-driver, driven by a script with JSON lines.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::{Value, json};

use super::process::Killed;
use crate::server::lines;
use crate::{program, toolchain};

const SCRIPT: &str = include_str!("client/client.py");
const REQUIREMENTS: &str = include_str!("client/requirements.txt");
const TIMEOUT: Duration = Duration::from_secs(600);

/// A connection to one node.
#[derive(Debug)]
pub(crate) struct Client {
    _process: Killed,
    requests: ChildStdin,
    replies: Receiver<String>,
}

/// Rows of a query.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Rows {
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<Value>>,
}

impl Client {
    /// Installs the driver if need be, and connects.
    pub(crate) fn start(port: u16) -> Result<Self> {
        let driver = driver()?;
        let mut child = Command::new("python3")
            .args(["-I", "-c"])
            .arg(format!(
                "import sys; sys.path.insert(0, {:?})\n{SCRIPT}",
                driver.display().to_string()
            ))
            .args(["127.0.0.1", &port.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .context("cannot start python3")?;
        let requests = child.stdin.take().context("the client has no stdin")?;
        let stdout = child.stdout.take().context("the client has no stdout")?;
        let mut client = Self {
            _process: Killed(child),
            requests,
            replies: lines(stdout)?,
        };
        client.reply("connecting")?;
        Ok(client)
    }

    /// Executes statements one after the other.
    pub(crate) fn run(&mut self, statements: &[String]) -> Result<()> {
        self.call(&json!({"op": "run", "statements": statements, "concurrent": false}))
            .map(drop)
    }

    /// Executes statements in any order.
    pub(crate) fn run_concurrently(&mut self, statements: &[String]) -> Result<()> {
        self.call(&json!({"op": "run", "statements": statements, "concurrent": true}))
            .map(drop)
    }

    /// Returns all rows of a query.
    pub(crate) fn rows(&mut self, cql: &str) -> Result<Rows> {
        let found = self.call(&json!({"op": "rows", "cql": cql}))?;
        Ok(serde_json::from_value(found)?)
    }

    /// Returns all columns of all rows of a table, with the times of writing and expiration.
    pub(crate) fn view(
        &mut self,
        keyspace: &str,
        table: &str,
        times_of_collections: bool,
    ) -> Result<Rows> {
        let found = self.call(&json!({
            "op": "view", "keyspace": keyspace, "table": table, "times_of_collections": times_of_collections,
        }))?;
        Ok(serde_json::from_value(found)?)
    }

    fn call(&mut self, request: &Value) -> Result<Value> {
        writeln!(self.requests, "{request}").context("the client has ended")?;
        self.requests.flush()?;
        let what = request["cql"].as_str().or(request["table"].as_str());
        self.reply(what.unwrap_or("statements"))
    }

    fn reply(&mut self, what: &str) -> Result<Value> {
        let reply = self
            .replies
            .recv_timeout(TIMEOUT)
            .with_context(|| format!("{what}: the client does not answer"))?;
        let mut reply: Value = serde_json::from_str(&reply)?;
        if let Some(error) = reply["error"].as_str() {
            bail!("{what}: {error}");
        }
        Ok(reply["ok"].take())
    }
}

/// Returns the directory in which the driver is installed, once, under a lock.
pub(crate) fn driver() -> Result<PathBuf> {
    let place = toolchain::target_directory().join("interop-client");
    fs::create_dir_all(&place)?;
    let lock = fs::File::create(place.join("lock"))?;
    lock.lock()?;
    let stamp = place.join("requirements.txt");
    let target = place.join("packages");
    if !fs::read_to_string(&stamp).is_ok_and(|text| text == REQUIREMENTS) {
        install(&place.join("wanted.txt"), &target)?;
        fs::write(&stamp, REQUIREMENTS)?;
    }
    Ok(target)
}

fn install(requirements: &Path, target: &Path) -> Result<()> {
    fs::write(requirements, REQUIREMENTS)?;
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet"])
        .args(["--disable-pip-version-check", "--root-user-action=ignore"])
        .args(["--no-deps", "--require-hashes", "--upgrade"])
        .arg("--target")
        .arg(target)
        .arg("-r")
        .arg(requirements);
    program::output(&mut pip)?;
    Ok(())
}
