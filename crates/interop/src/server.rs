//! One JVM that runs `compactor.interop.Server`: requests and replies as JSON lines, with a deadline for each.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use anyhow::{Context, Error, Result, anyhow, bail, ensure};
use serde_json::{Value, json};

use crate::toolchain::Toolchain;

/// Packages that Cassandra, its tools or the agents of either reach into.
const PACKAGES: [&str; 29] = [
    "java.base/java.io",
    "java.base/java.lang",
    "java.base/java.lang.module",
    "java.base/java.lang.ref",
    "java.base/java.lang.reflect",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/java.util.concurrent.locks",
    "java.base/java.util.jar",
    "java.base/jdk.internal.loader",
    "java.base/jdk.internal.math",
    "java.base/jdk.internal.misc",
    "java.base/jdk.internal.module",
    "java.base/jdk.internal.ref",
    "java.base/jdk.internal.reflect",
    "java.base/jdk.internal.util.jar",
    "java.base/sun.nio.ch",
    "java.management.rmi/com.sun.jmx.remote.internal.rmi",
    "java.rmi/sun.rmi.registry",
    "java.rmi/sun.rmi.server",
    "java.sql/java.sql",
    "jdk.attach/sun.tools.attach",
    "jdk.compiler/com.sun.tools.javac",
    "jdk.compiler/com.sun.tools.javac.file",
    "jdk.management/com.sun.management.internal",
    "jdk.unsupported/sun.misc",
];

/// Number of rows with which Cassandra estimates the heap overhead of a row in a memtable, each time it starts
/// (`SkipListMemtable.estimateRowOverhead`): the default of 100,000 takes seconds. Only the time at which a full memtable
/// is flushed depends on the estimate.
const MEASURED_ROWS: &str = "-Dcassandra.memtable_row_overhead_computation_step=1000";

/// Flags of a server besides [`jvm_flags`].
const SERVER_FLAGS: [&str; 4] = [
    // Stdout is for replies.
    "-Xlog:disable",
    "-Xlog:all=warning:stderr",
    // A thread of each JVM reads the clock at this interval; nothing here needs the default of 2 ms.
    "-Dcassandra.approximate_time_precision_ms=50",
    // Otherwise each table that is created flushes the tables of the schema.
    "-Dcassandra.test.flush_local_schema_changes=false",
];

/// A running server. Dropping it kills the JVM.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    /// `None` only while it ends.
    requests: Option<ChildStdin>,
    replies: Receiver<String>,
    next_id: u64,
    log: PathBuf,
    timeout: Duration,
    dead: bool,
}

impl Server {
    /// Starts the JVM with this class in `home`, which holds everything that Cassandra writes.
    pub(crate) fn start(
        toolchain: &Toolchain,
        class: &str,
        home: &Path,
        yaml: &str,
        jvm: &[String],
        timeout: Duration,
    ) -> Result<Self> {
        let config = home.join("cassandra.yaml");
        fs::write(&config, yaml)?;
        let log = home.join("server.log");
        let archive = toolchain.archive();
        let shared = archive
            .exists()
            .then(|| format!("-XX:SharedArchiveFile={}", archive.display()));
        let mut child = Command::new(&toolchain.java)
            .args(jvm_flags(toolchain.feature_release))
            .args(SERVER_FLAGS)
            .args(shared)
            .args(jvm)
            .arg(format!("-Dcassandra.config=file://{}", config.display()))
            .arg(format!("-Dcassandra.storagedir={}", home.display()))
            .arg(format!("-Djava.io.tmpdir={}", home.display()))
            .args(["-cp", &toolchain.class_path, class])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(&log)?)
            .spawn()
            .with_context(|| format!("cannot start {}", toolchain.java.display()))?;
        let requests = child.stdin.take();
        let stdout = child.stdout.take().context("the server has no stdout")?;
        Ok(Self {
            child,
            requests,
            replies: lines(stdout)?,
            next_id: 1,
            log,
            timeout,
            dead: false,
        })
    }

    /// Sends one request and waits for its answer.
    pub(crate) fn call(&mut self, mut request: Value) -> Result<Value> {
        ensure!(
            !self.dead,
            "the Cassandra server has already failed; see the first error"
        );
        let id = self.next_id;
        self.next_id += 1;
        let operation = request["op"].as_str().unwrap_or("?").to_owned();
        request["id"] = json!(id);
        let mut line = serde_json::to_string(&request)?;
        line.push('\n');
        let requests = self.requests.as_mut().context("the server has no stdin")?;
        let sent = requests.write_all(line.as_bytes());
        if let Err(error) = sent.and_then(|()| requests.flush()) {
            return Err(self.failed(format!("does not take {operation}: {error}")));
        }
        let reply = match self.replies.recv_timeout(self.timeout) {
            Ok(reply) => reply,
            Err(RecvTimeoutError::Timeout) => {
                let _ = self.child.kill();
                let timeout = self.timeout;
                return Err(self.failed(format!(
                    "was killed: {operation} took longer than {timeout:?}"
                )));
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(self.failed(format!("ended during {operation}")));
            }
        };
        let reply: Value = serde_json::from_str(&reply)
            .with_context(|| format!("the reply to {operation} is not JSON: {reply}"))?;
        ensure!(
            reply["id"] == json!(id),
            "the reply to {operation} has id {}, expected {id}",
            reply["id"]
        );
        if let Some(error) = reply.get("error") {
            bail!(
                "{operation}: {}\n{}",
                error.as_str().unwrap_or_default(),
                shorten(reply["trace"].as_str().unwrap_or_default())
            );
        }
        Ok(reply["ok"].clone())
    }

    /// Ends the JVM in an orderly way; to drop it is faster.
    pub(crate) fn end(mut self) -> Result<()> {
        self.requests = None;
        // Stdout is closed when the JVM has ended.
        let is_ended = matches!(
            self.replies.recv_timeout(self.timeout),
            Err(RecvTimeoutError::Disconnected)
        );
        if !is_ended {
            let timeout = self.timeout;
            return Err(self.failed(format!("did not end within {timeout:?}")));
        }
        let status = self.child.wait()?;
        if !status.success() {
            return Err(self.failed(format!("ended with {status}")));
        }
        Ok(())
    }

    /// Error of a server that takes no more requests, with the end of its log.
    fn failed(&mut self, how: String) -> Error {
        self.dead = true;
        anyhow!("the Cassandra server {how}\n{}", last_lines(&self.log))
    }

    /// Process id of the JVM, for its resource usage.
    pub(crate) fn process_id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Lines of a stream, read by a thread of their own so that waiting for one can end.
pub(crate) fn lines(stream: impl Read + Send + 'static) -> Result<Receiver<String>> {
    let (sender, lines) = mpsc::channel();
    std::thread::Builder::new()
        .name("interop-lines".to_owned())
        .spawn(move || {
            for line in BufReader::new(stream).lines() {
                let Ok(line) = line else { return };
                if sender.send(line).is_err() {
                    return;
                }
            }
        })?;
    Ok(lines)
}

/// The last lines of a log, none if there is no such file.
pub(crate) fn last_lines(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(40)..].join("\n")
}

fn shorten(trace: &str) -> String {
    trace.lines().take(25).collect::<Vec<_>>().join("\n")
}

/// Flags of every JVM with Cassandra in it.
pub(crate) fn jvm_flags(feature_release: u32) -> Vec<String> {
    let mut flags = vec![
        "-Dio.netty.tryReflectionSetAccessible=true".to_owned(),
        "-Djdk.attach.allowAttachSelf=true".to_owned(),
        MEASURED_ROWS.to_owned(),
    ];
    for package in PACKAGES {
        for option in ["--add-opens", "--add-exports"] {
            flags.push(format!("{option}={package}=ALL-UNNAMED"));
        }
    }
    if feature_release >= 23 {
        flags.push("--sun-misc-unsafe-memory-access=allow".to_owned());
        flags.push("--enable-native-access=ALL-UNNAMED".to_owned());
    }
    flags
}
