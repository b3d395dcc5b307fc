//! One `CassandraDaemon`: starting, requests, stopping, killing.

use std::fs::{self, OpenOptions};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::client::Client;
use super::configuration::{self, Ports};
use super::journal::Journal;
use super::kind::Kind;
use super::nodetool::Nodetool;
use super::process::{Jvm, Killed, give_to_daemon};
use crate::server::last_lines;
use crate::{program, toolchain, usage};

/// Longest time to start: it takes 20 seconds with two free cores, which are seldom free.
const START: Duration = Duration::from_secs(400);
const STOP: Duration = Duration::from_secs(180);

/// A daemon with directories and ports of its own; killed when dropped.
#[derive(Debug)]
pub(crate) struct Node {
    kind: Kind,
    ports: Ports,
    is_alone: bool,
    jvm: Jvm,
    client: Option<Client>,
    nodetool: Option<Nodetool>,
    daemon: Option<Killed>,
    home: PathBuf,
    // Dropped last: the daemon writes into it until it is killed.
    _scratch: TempDir,
}

impl Node {
    /// Fetches the release if need be, and starts a daemon with no data.
    pub(crate) fn start(kind: Kind) -> Result<Self> {
        let ports = Ports::free()?;
        Self::join(kind, ports, ports.storage)
    }

    /// Starts a daemon in the cluster of the one that listens at the storage port `seed`.
    pub(crate) fn join(kind: Kind, ports: Ports, seed: u16) -> Result<Self> {
        let toolchain = toolchain::prepare_daemon(kind.release, kind.logback(), kind.major() < 4)?;
        let scratch = tempfile::Builder::new()
            .prefix("compactor-daemon-")
            .tempdir()?;
        fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755))?;
        let home = scratch.path().join("node");
        fs::create_dir_all(home.join("tmp"))?;
        configuration::write(&home, kind, ports, seed)?;
        give_to_daemon(&home)?;
        let jvm = Jvm::new(toolchain, &home)?;
        let mut node = Self {
            kind,
            ports,
            is_alone: seed == ports.storage,
            jvm,
            client: None,
            nodetool: None,
            daemon: None,
            home,
            _scratch: scratch,
        };
        node.start_again()?;
        Ok(node)
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// The storage port, by which other nodes join.
    pub(crate) fn storage_port(&self) -> u16 {
        self.ports.storage
    }

    /// Starts the stopped daemon.
    pub(crate) fn start_again(&mut self) -> Result<()> {
        ensure!(self.daemon.is_none(), "the daemon runs");
        let jmx = format!("-Dcassandra.jmx.local.port={}", self.ports.jmx);
        // A joining node must know the others' schema before it requests their data.
        let (ring_delay, settle) = if self.is_alone {
            (
                "-Dcassandra.ring_delay_ms=1000",
                "-Dcassandra.skip_wait_for_gossip_to_settle=0",
            )
        } else {
            (
                "-Dcassandra.ring_delay_ms=20000",
                "-Dcassandra.skip_wait_for_gossip_to_settle=-1",
            )
        };
        let flags = [
            "-Xms256M",
            "-Xmx896M",
            "-XX:MaxDirectMemorySize=256M",
            "-XX:ReservedCodeCacheSize=96M",
            "-ea",
            // Writes to a vector index fail if more threads build it than there are processors, plus one.
            "-XX:ActiveProcessorCount=32",
            ring_delay,
            settle,
            "-Djava.security.manager=allow",
            &jmx,
        ];
        let stdout = self.home.join("logs/stdout.log");
        let output = OpenOptions::new().create(true).append(true).open(&stdout)?;
        let class = "org.apache.cassandra.service.CassandraDaemon";
        let child = self
            .jvm
            .command(&flags, "logback.xml", class)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .context("cannot start setpriv, of util-linux")?;
        self.daemon = Some(Killed(child));
        self.wait_until_up().with_context(|| {
            format!(
                "{}\n{}",
                last_lines(&stdout),
                last_lines(&self.home.join(configuration::LOG))
            )
        })?;
        self.client = Some(Client::start(self.ports.native)?);
        Ok(())
    }

    fn wait_until_up(&mut self) -> Result<()> {
        let begin = Instant::now();
        while begin.elapsed() < START {
            let Some(Killed(child)) = &mut self.daemon else {
                bail!("the daemon was not started")
            };
            if let Some(status) = child.try_wait()? {
                bail!("the daemon ended with {status} at its start");
            }
            if TcpStream::connect(("127.0.0.1", self.ports.native)).is_ok() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        bail!("the daemon does not listen after {START:?}")
    }

    /// Starts the stopped daemon without the others of its cluster: as a seed, which need not contact other nodes.
    pub(crate) fn start_alone(&mut self) -> Result<()> {
        self.is_alone = true;
        configuration::write(&self.home, self.kind, self.ports, self.ports.storage)?;
        give_to_daemon(&self.home.join("conf"))?;
        self.start_again()
    }

    /// Stops the daemon as systemd does: with SIGTERM, upon which it drains.
    pub(crate) fn stop(&mut self) -> Result<()> {
        self.client = None;
        self.nodetool = None;
        let Killed(child) = self.daemon.as_mut().context("the daemon is down")?;
        let process = Pid::from_child(child);
        kill_process(process, Signal::TERM)?;
        let begin = Instant::now();
        while begin.elapsed() < STOP {
            if child.try_wait()?.is_some() {
                self.daemon = None;
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        bail!("the daemon does not end after {STOP:?}")
    }

    pub(crate) fn client(&mut self) -> Result<&mut Client> {
        self.client.as_mut().context("the daemon is down")
    }

    /// Runs a command of nodetool that must succeed; returns what it printed.
    pub(crate) fn nodetool(&mut self, arguments: &[&str]) -> Result<String> {
        if self.kind.major() < 4 {
            let port = self.ports.jmx.to_string();
            let arguments = [&["-p", &*port], arguments].concat();
            return self.java("compactor.interop.daemon.NodetoolOnce", &arguments);
        }
        let nodetool = match &mut self.nodetool {
            Some(nodetool) => nodetool,
            none => {
                let class = "org.apache.cassandra.tools.NodetoolLoop";
                let command = self.jvm.command(&["-Xmx96M"], "logback-tools.xml", class);
                let log = self.home.join("logs/nodetool.log");
                none.insert(Nodetool::start(command, self.ports.jmx, &log)?)
            }
        };
        let (code, printed) = nodetool.run(arguments)?;
        ensure!(
            code == 0,
            "nodetool {} ended with {code}:\n{printed}",
            arguments.join(" ")
        );
        Ok(printed)
    }

    /// Runs one of Cassandra's offline tools by its class in `org.apache.cassandra.tools`; it must succeed.
    pub(crate) fn tool(&self, class: &str, arguments: &[&str]) -> Result<String> {
        self.java(&format!("org.apache.cassandra.tools.{class}"), arguments)
    }

    /// Runs a class with the release's jars and the daemon's configuration; it must succeed.
    pub(crate) fn java(&self, class: &str, arguments: &[&str]) -> Result<String> {
        let mut command = self.jvm.command(&["-Xmx256M"], "logback-tools.xml", class);
        program::output(command.args(arguments))
            .with_context(|| format!("{class} {}", arguments.join(" ")))
    }

    /// Loads SSTables into the node with sstableloader, which streams them.
    pub(crate) fn load(&self, directory: &Path) -> Result<()> {
        let [storage, native] =
            [self.ports.storage, self.ports.native].map(|port| port.to_string());
        let directory = directory.display().to_string();
        let arguments = [
            "--no-progress",
            "-d",
            "127.0.0.1",
            "-p",
            &native,
            "-sp",
            &storage,
            &directory,
        ];
        self.tool("BulkLoader", &arguments).map(drop)
    }

    /// Returns the directory that holds the table's SSTables.
    pub(crate) fn table_directory(&self, keyspace: &str, table: &str) -> Result<PathBuf> {
        let keyspace = self.home.join("data").join(keyspace);
        let is_table = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.rsplit_once('-').is_some_and(|(name, _)| name == table)
        };
        let entries = fs::read_dir(&keyspace)
            .with_context(|| format!("cannot list {}", keyspace.display()))?;
        let found = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(is_table);
        // A view that was dropped and created again has two directories.
        let created = found.map(|path| Ok((fs::metadata(&path)?.created()?, path)));
        let created = created.collect::<Result<Vec<_>>>()?;
        let newest = created.into_iter().max().map(|(_, path)| path);
        newest.with_context(|| format!("{} has no directory of {table}", keyspace.display()))
    }

    /// A directory of the daemon's home.
    pub(crate) fn place(&self, name: &str) -> Result<PathBuf> {
        let place = self.home.join(name);
        fs::create_dir_all(&place)?;
        Ok(place)
    }

    /// The daemon's log so far.
    pub(crate) fn journal(&self) -> Result<Journal> {
        Journal::read(&self.home.join(configuration::LOG))
    }

    /// Peak resident memory of the running daemon, in bytes.
    pub(crate) fn peak_memory(&self) -> Result<u64> {
        let Killed(child) = self.daemon.as_ref().context("the daemon is down")?;
        usage::peak_memory(child.id())
    }
}
