//! Old releases of Cassandra, which write SSTables of versions that newer ones only read.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use compactor_testkit::Need;
use serde_json::json;
use tempfile::TempDir;

use crate::cases::Writer;
use crate::cassandra::{Table, field};
use crate::scenarios::ViewRow;
use crate::server::Server;
use crate::skip;
use crate::toolchain;

/// Releases and the version that each writes, oldest first.
pub const RELEASES: [(&str, &str); 7] = [
    ("3.0.0", "ma"),
    ("3.0.7", "mb"),
    ("3.0.10", "mc"),
    ("3.11.4", "md"),
    ("3.11.19", "me"),
    ("4.0-beta1", "na"),
    ("4.1.10", "nb"),
];

/// Release that is tested by default.
const USUAL: &str = "3.11.19";

/// A running old release. It has no clock to set: deletions and TTLs start now.
#[derive(Debug)]
pub struct OldCassandra {
    server: Server,
    // Dropped last: the server writes into it until it is killed.
    _home: TempDir,
}

/// Releases to test with: those that `COMPACTOR_INTEROP_RELEASES` names, comma separated, or `all`. Otherwise one, if
/// Maven has fetched it or Cassandra is required.
#[must_use]
pub fn selected() -> Vec<(&'static str, &'static str)> {
    let wanted = wanted();
    let is_wanted = |release: &str| match &wanted {
        Some(names) => has(names, release),
        None => release == USUAL,
    };
    RELEASES
        .into_iter()
        .filter(|(release, _)| is_wanted(release))
        .collect()
}

/// Whether `COMPACTOR_INTEROP_RELEASES` names the release.
#[must_use]
pub fn is_named(release: &str) -> bool {
    wanted().is_some_and(|names| has(&names, release))
}

fn has(names: &str, release: &str) -> bool {
    names
        .split(',')
        .any(|name| name == release || name == "all")
}

fn wanted() -> Option<String> {
    std::env::var("COMPACTOR_INTEROP_RELEASES").ok()
}

impl OldCassandra {
    /// Builds the Java side if needed and starts the release; `None` if it is neither available nor required.
    #[track_caller]
    pub fn start(release: &str) -> Result<Option<Self>> {
        let is_required = wanted().is_some() || skip::is_required();
        let toolchain = match toolchain::prepare_old(release, is_required) {
            Ok(toolchain) => toolchain,
            Err(error) if !is_required => {
                let reason = format!("no Cassandra {release}: {error:#}");
                compactor_testkit::skip_part(Need::Cassandra, reason);
                return Ok(None);
            }
            Err(error) => return Err(error).context("cannot build the old release's Java side"),
        };
        let home = tempfile::Builder::new().prefix("interop-old-").tempdir()?;
        let mut jvm = ["-Xmx768m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
            .map(str::to_owned)
            .to_vec();
        jvm.extend(toolchain.agent());
        let mut server = Server::start(
            &toolchain,
            "compactor.interop.old.OldServer",
            home.path(),
            &yaml(home.path()),
            &jvm,
            Duration::from_secs(300),
        )?;
        server.call(json!({"op": "start"}))?;
        Ok(Some(Self {
            server,
            _home: home,
        }))
    }
}

impl Writer for OldCassandra {
    fn execute(&mut self, statements: &[String]) -> Result<()> {
        self.server
            .call(json!({"op": "cql", "statements": statements}))
            .map(drop)
    }

    fn clock(&mut self, _now_s: i64) -> Result<()> {
        Ok(())
    }

    fn view_row(&mut self, _table: &Table, _row: ViewRow) -> Result<()> {
        bail!("rows of views are not written with old releases")
    }

    fn flush(&mut self, table: &Table, directory: &Path, generation: u32) -> Result<PathBuf> {
        let reply = self.server.call(json!({
            "op": "flush", "keyspace": table.keyspace, "table": table.name,
            "out": directory, "generation": generation,
        }))?;
        field(&reply, "data")
    }
}

fn yaml(home: &Path) -> String {
    let home = home.display();
    format!(
        "cluster_name: interop
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
commitlog_sync: periodic
commitlog_sync_period_in_ms: 10000
commitlog_directory: {home}/commitlog
data_file_directories: [{home}/data]
saved_caches_directory: {home}/saved_caches
hints_directory: {home}/hints
endpoint_snitch: SimpleSnitch
listen_address: 127.0.0.1
rpc_address: 127.0.0.1
seed_provider: [{{class_name: org.apache.cassandra.locator.SimpleSeedProvider, parameters: [{{seeds: \"127.0.0.1\"}}]}}]
auto_snapshot: false
memtable_allocation_type: heap_buffers
"
    )
}
