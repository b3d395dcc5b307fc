//! Typed requests to a [`Server`].

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::findings::Finding;
use crate::scenarios::ViewRow;
use crate::scratch::scratch;
use crate::server::Server;
use crate::toolchain::{self, Toolchain};

/// A release of the judging server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    /// Cassandra 5, which alone writes `da`.
    Five,
    /// Cassandra 6.
    Six,
}

impl Release {
    /// Version that Maven resolves.
    #[must_use]
    pub fn version(self) -> String {
        match self {
            Self::Five => "5.0.5".to_owned(),
            Self::Six => std::env::var("COMPACTOR_CASSANDRA_VERSION")
                .unwrap_or_else(|_| "6.0-alpha2".to_owned()),
        }
    }

    /// Fetches and builds everything that a server of the release needs.
    ///
    /// # Errors
    /// Output of Maven or javac.
    pub fn prepare(self) -> Result<()> {
        toolchain::prepare(&self.version(), self.sources()).map(drop)
    }

    /// Directory of Java sources that the other release does not compile.
    fn sources(self) -> &'static str {
        match self {
            Self::Five => "release-5",
            Self::Six => "release-6",
        }
    }
}

/// Storage compatibility mode and format of a server, which decide the SSTable version it writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mode {
    /// `CASSANDRA_4`: writes `nb`, reads `ma` to `nb`.
    Nb,
    /// `CASSANDRA_5`: writes `oa`, reads `ma` to `oa`.
    Oa,
    /// `NONE`: writes `pa`, reads everything.
    Pa,
    /// `NONE` with the BTI format: writes `ea`, reads everything.
    Ea,
    /// Cassandra 5 in mode `NONE` with the BTI format: writes `da`, reads `ma` to `oa` and `da`.
    Da,
}

impl Mode {
    /// All modes of Cassandra 6, oldest version first, BIG before BTI. A server in the last one reads every version.
    pub const ALL: [Self; 4] = [Self::Nb, Self::Oa, Self::Pa, Self::Ea];

    /// The SSTable version written in this mode.
    #[must_use]
    pub fn version(self) -> &'static str {
        match self {
            Self::Nb => "nb",
            Self::Oa => "oa",
            Self::Pa => "pa",
            Self::Ea => "ea",
            Self::Da => "da",
        }
    }

    /// Default release of the mode.
    #[must_use]
    pub fn release(self) -> Release {
        match self {
            Self::Da => Release::Five,
            _ => Release::Six,
        }
    }

    /// The mode that writes the given SSTable version.
    #[must_use]
    pub fn of_version(version: &str) -> Option<Self> {
        Self::of_both_releases().find(|mode| mode.version() == version)
    }

    fn of_both_releases() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().chain([Self::Da])
    }

    fn compatibility(self, release: Release) -> &'static str {
        match (self, release) {
            (Self::Nb, _) => "CASSANDRA_4",
            (Self::Oa, Release::Six) => "CASSANDRA_5",
            _ => "NONE",
        }
    }

    fn format(self) -> &'static str {
        match self {
            Self::Nb | Self::Oa | Self::Pa => "big",
            Self::Ea | Self::Da => "bti",
        }
    }
}

impl FromStr for Mode {
    type Err = anyhow::Error;

    /// The mode that writes this SSTable version.
    fn from_str(version: &str) -> Result<Self> {
        Mode::of_version(version).with_context(|| {
            let versions: Vec<_> = Mode::of_both_releases().map(Mode::version).collect();
            format!("no server writes {version}, but {}", versions.join(", "))
        })
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.version())
    }
}

/// Maximum number of tables of random plans in one server. Cassandra 5.0 does not release all memory of a dropped table:
/// its heap of 1 GiB is full after about 900.
const MOST_OFFLINE_TABLES: u64 = 500;

/// Options for starting a server.
#[derive(Debug, Clone)]
pub struct Options {
    /// `column_index_size` in KiB; Cassandra's own default (64 for BIG, 16 for BTI) when absent.
    pub column_index_kib: Option<u32>,
    /// Release, if not that of the mode.
    pub release: Option<Release>,
    /// Heap, collector and the like.
    pub jvm: Vec<String>,
    /// A request that takes longer fails and kills the server.
    pub timeout: Duration,
    /// Parent of the server's own directories.
    pub home_parent: PathBuf,
    /// Partitioner, by the name of its class in `org.apache.cassandra.dht`.
    pub partitioner: String,
    /// Further lines of `cassandra.yaml`.
    pub yaml: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            column_index_kib: None,
            release: None,
            // Short runs: assertions on, and no time spent on optimising what runs a few times.
            jvm: [
                "-Xmx1g",
                "-ea",
                "-XX:+UseSerialGC",
                "-XX:TieredStopAtLevel=1",
            ]
            .map(str::to_owned)
            .to_vec(),
            timeout: Duration::from_secs(300),
            home_parent: scratch(),
            partitioner: "Murmur3Partitioner".to_owned(),
            yaml: String::new(),
        }
    }
}

/// A table by name.
#[derive(Debug, Clone)]
pub struct Table {
    /// Keyspace.
    pub keyspace: String,
    /// Table.
    pub name: String,
}

impl Table {
    /// A table by these names.
    #[must_use]
    pub fn new(keyspace: &str, name: &str) -> Self {
        Self {
            keyspace: keyspace.to_owned(),
            name: name.to_owned(),
        }
    }
}

/// Repair state.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Repair {
    /// Milliseconds; 0 for never.
    pub repaired_at: i64,
    /// Session, a time UUID.
    pub pending: Option<String>,
    /// Held by a transient replica.
    pub transient: bool,
}

/// Which of Cassandra's two compaction implementations runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Pipeline {
    /// The classic one, whose result is the specification.
    Iterator,
    /// The fast one of 6.0, wrong on ties in alpha2.
    Cursor,
}

/// Options of a compaction.
#[derive(Debug, Clone, Serialize)]
pub struct CompactRequest<'a> {
    /// Data.db files of the SSTables to merge.
    pub inputs: &'a [PathBuf],
    /// SSTables of the table that are not merged and prevent purging.
    pub others: &'a [PathBuf],
    /// Directory of outputs, which are numbered from 1; `None` discards them.
    #[serde(rename = "out")]
    pub output: Option<&'a Path>,
    /// The clock.
    pub now_s: i64,
    /// Tombstones older than this are purged; `None` purges nothing.
    pub gc_before_s: Option<i64>,
    /// Implementation.
    pub pipeline: Pipeline,
    /// Access to files; Cassandra's default when absent.
    pub access: Option<Access>,
    /// Maximum size of outputs: as in the splitter, the next one begins after this number of bytes on disk.
    pub max_sstable_size: Option<u64>,
}

impl<'a> CompactRequest<'a> {
    /// A compaction of these alone by the iterator pipeline, which purges nothing.
    #[must_use]
    pub fn new(inputs: &'a [PathBuf], output: &'a Path, now_s: i64) -> Self {
        Self {
            inputs,
            others: &[],
            output: Some(output),
            now_s,
            gc_before_s: None,
            pipeline: Pipeline::Iterator,
            access: None,
            max_sstable_size: None,
        }
    }
}

/// Access of a compaction to files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Through the page cache.
    Buffered,
    /// O_DIRECT, reads and writes.
    Direct,
}

/// Result of a compaction.
#[derive(Debug, Clone)]
pub struct Compacted {
    /// Data.db of each output; none when everything was purged.
    pub outputs: Vec<PathBuf>,
    /// Time of the task alone.
    pub elapsed: Duration,
    /// Prefixes of the file names that Cassandra gave the inputs, without the last `-`. They contain the ids, which
    /// decide the order in which it visited them.
    pub staged: Vec<String>,
}

/// A running Cassandra.
#[derive(Debug)]
pub struct Cassandra {
    server: Server,
    mode: Mode,
    release: String,
    /// Keyspaces of scenarios, and how often each scenario was prepared.
    keyspaces: HashMap<String, u32>,
    /// Number of tables of random plans that were created in it, dropped ones included.
    pub(crate) offline_tables: u64,
    // Dropped last: the server writes into it until it is killed.
    _home: TempDir,
}

impl Cassandra {
    /// Builds the Java side if needed and starts a server.
    pub fn start(mode: Mode, options: &Options) -> Result<Self> {
        let release = options.release.unwrap_or(mode.release());
        let toolchain = toolchain::prepare(&release.version(), release.sources())
            .context("cannot build the Java side of interop")?;
        toolchain.archive_classes(|flag| {
            let mut options = options.clone();
            options.jvm.push(flag);
            Self::start_with(&toolchain, mode, &options)?.server.end()
        })?;
        Self::start_with(&toolchain, mode, options)
    }

    fn start_with(toolchain: &Toolchain, mode: Mode, options: &Options) -> Result<Self> {
        let release = options.release.unwrap_or(mode.release());
        let mut builder = tempfile::Builder::new();
        builder.prefix("interop-");
        let home = builder.tempdir_in(&options.home_parent)?;
        let yaml = yaml(home.path(), mode, release, options);
        let mut jvm = options.jvm.clone();
        jvm.push("-Dcassandra.clock=compactor.interop.PinnedClock".to_owned());
        let mut server = Server::start(
            toolchain,
            "compactor.interop.Server",
            home.path(),
            &yaml,
            &jvm,
            options.timeout,
        )?;
        let started = server.call(json!({"op": "start"}))?;
        let version = started["version"].as_str().unwrap_or_default();
        anyhow::ensure!(
            version == mode.version(),
            "the server writes {version}, expected {mode}"
        );
        let release = started["release"].as_str().unwrap_or_default().to_owned();
        Ok(Self {
            server,
            mode,
            release,
            keyspaces: HashMap::new(),
            offline_tables: 0,
            _home: home,
        })
    }

    /// Whether the maximum number of tables of random plans was created in the server.
    pub(crate) fn is_worn(&self) -> bool {
        self.offline_tables >= MOST_OFFLINE_TABLES
    }

    /// A keyspace of this name, or with a number after it if the server has one already.
    pub(crate) fn unused_keyspace(&mut self, name: &str) -> String {
        let uses = self.keyspaces.entry(name.to_owned()).or_default();
        *uses += 1;
        match *uses {
            1 => name.to_owned(),
            uses => format!("{name}_{uses}"),
        }
    }

    /// The mode it was started in.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Cassandra's release, such as `6.0-alpha2`.
    #[must_use]
    pub fn release(&self) -> &str {
        &self.release
    }

    /// The JVM's process id.
    #[must_use]
    pub fn process_id(&self) -> u32 {
        self.server.process_id()
    }

    /// Sets the server's clock.
    pub fn set_now(&mut self, now_s: i64) -> Result<()> {
        self.server
            .call(json!({"op": "now", "now_s": now_s}))
            .map(drop)
    }

    /// Executes statements, schema changes as well as data, in order.
    pub fn cql<S: AsRef<str>>(&mut self, statements: &[S]) -> Result<()> {
        let statements: Vec<&str> = statements.iter().map(AsRef::as_ref).collect();
        self.server
            .call(json!({"op": "cql", "statements": statements}))
            .map(drop)
    }

    /// Creates a table for SSTables that came without a schema, with the columns and types in their headers.
    pub fn adopt(&mut self, table: &Table, data: &[PathBuf]) -> Result<()> {
        self.ask("adopt", table, json!({"data": data})).map(drop)
    }

    /// Writes a row as only materialized views do.
    pub fn view_row(&mut self, table: &Table, row: ViewRow) -> Result<()> {
        self.ask("raw", table, serde_json::to_value(row)?).map(drop)
    }

    /// Flushes the table into one SSTable in `directory` with the given generation, and empties the table.
    pub fn flush(&mut self, table: &Table, directory: &Path, generation: u32) -> Result<PathBuf> {
        let fields = json!({"out": directory, "generation": generation});
        field(&self.ask("flush", table, fields)?, "data")
    }

    /// Gives an SSTable another repair state, in place.
    pub fn set_repair(&mut self, table: &Table, data: &Path, repair: &Repair) -> Result<()> {
        let mut fields = serde_json::to_value(repair)?;
        fields["data"] = json!(data);
        self.ask("repair", table, fields).map(drop)
    }

    /// Writes the table's `schema.cql` as a snapshot has it.
    pub fn schema(&mut self, table: &Table, path: &Path) -> Result<()> {
        let text: String = field(&self.ask("schema", table, json!({}))?, "cql")?;
        Ok(std::fs::write(path, text)?)
    }

    /// Runs one compaction and empties the table.
    pub fn compact(&mut self, table: &Table, request: &CompactRequest<'_>) -> Result<Compacted> {
        let fields = serde_json::to_value(request)?;
        let reply = self.ask("compact", table, fields)?;
        Ok(Compacted {
            outputs: field(&reply, "outputs")?,
            elapsed: Duration::from_nanos(field(&reply, "nanos")?),
            staged: field(&reply, "staged")?,
        })
    }

    /// Writes everything that a scan of the SSTable returns as canonical JSON lines, and returns the text.
    pub fn dump(&mut self, table: &Table, data: &Path) -> Result<String> {
        self.text("dump", table, data)
    }

    /// Output of `sstabledump -l`.
    pub fn sstabledump(&mut self, table: &Table, data: &Path) -> Result<String> {
        self.text("sstabledump", table, data)
    }

    /// Output of `sstablemetadata`.
    pub fn sstablemetadata(&mut self, table: &Table, data: &Path) -> Result<String> {
        self.text("sstablemetadata", table, data)
    }

    /// Runs Cassandra's own scrub on the SSTable: `Data.db` files in `output`.
    pub fn scrub(&mut self, table: &Table, data: &Path, output: &Path) -> Result<Vec<PathBuf>> {
        let fields = json!({"data": data, "out": output});
        field(&self.ask("scrub", table, fields)?, "outputs")
    }

    /// The table's directory, and the SSTables in it that a node would open: those that no transaction log marks for
    /// deletion.
    pub fn live(&mut self, table: &Table) -> Result<(PathBuf, Vec<PathBuf>)> {
        let reply = self.ask("live", table, json!({}))?;
        Ok((field(&reply, "directory")?, field(&reply, "live")?))
    }

    /// Deletes files that unfinished transactions have left in the table's directory, as a node does when it starts.
    pub fn remove_leftovers(&mut self, table: &Table) -> Result<()> {
        self.ask("remove_leftovers", table, json!({})).map(drop)
    }

    /// Runs the extended verifier and the checks of our own; without findings the SSTable is sound.
    pub fn verify(&mut self, table: &Table, data: &Path) -> Result<Vec<Finding>> {
        let reply = self.ask("verify", table, json!({"data": data}))?;
        field(&reply, "findings")
    }

    /// Every field of Statistics.db, and the header of CompressionInfo.db.
    pub fn metadata(&mut self, table: &Table, data: &Path) -> Result<Value> {
        self.ask("metadata", table, json!({"data": data}))
    }

    /// Lets a node read an SSTable, damaged or not; returns the errors by the step that found them (`open`, `read`,
    /// `verify`), and the rows in the form of [`Cassandra::dump`].
    pub(crate) fn judge(&mut self, table: &Table, data: &Path) -> Result<(Value, Vec<u8>)> {
        self.written("judge", table, data)
    }

    /// The uncompressed content of Data.db.
    pub fn content(&mut self, table: &Table, data: &Path) -> Result<Vec<u8>> {
        Ok(self.written("content", table, data)?.1)
    }

    /// Sends any request.
    pub(crate) fn request(&mut self, request: Value) -> Result<Value> {
        self.server.call(request)
    }

    /// Sends a request about a table, with these fields in addition.
    pub(crate) fn ask(&mut self, operation: &str, table: &Table, fields: Value) -> Result<Value> {
        let mut request = fields;
        request["op"] = json!(operation);
        request["keyspace"] = json!(table.keyspace);
        request["table"] = json!(table.name);
        self.server.call(request)
    }

    fn text(&mut self, operation: &str, table: &Table, data: &Path) -> Result<String> {
        Ok(String::from_utf8(self.written(operation, table, data)?.1)?)
    }

    /// Returns the reply to a request about one SSTable, and the content of the file that was written for it.
    fn written(&mut self, operation: &str, table: &Table, data: &Path) -> Result<(Value, Vec<u8>)> {
        let out = tempfile::NamedTempFile::new()?;
        let fields = json!({"data": data, "out": out.path()});
        let reply = self.ask(operation, table, fields)?;
        Ok((reply, std::fs::read(out.path())?))
    }
}

/// A field of a reply.
pub(crate) fn field<T: DeserializeOwned>(reply: &Value, name: &str) -> Result<T> {
    T::deserialize(&reply[name]).with_context(|| format!("{name} in the reply"))
}

fn yaml(home: &Path, mode: Mode, release: Release, options: &Options) -> String {
    let home = home.display();
    let index = options.column_index_kib.map_or(String::new(), |kib| {
        format!("column_index_size: {kib}KiB\n")
    });
    let pipeline = match release {
        Release::Five => "",
        Release::Six => "cursor_compaction_enabled: false\n",
    };
    format!(
        "cluster_name: interop
partitioner: org.apache.cassandra.dht.{partitioner}
commitlog_sync: periodic
commitlog_sync_period: 10s
commitlog_directory: {home}/commitlog
data_file_directories: [{home}/data]
saved_caches_directory: {home}/saved_caches
materialized_views_enabled: true
drop_compact_storage_enabled: true
hints_directory: {home}/hints
cdc_raw_directory: {home}/cdc_raw
endpoint_snitch: SimpleSnitch
listen_address: 127.0.0.1
rpc_address: 127.0.0.1
seed_provider: [{{class_name: org.apache.cassandra.locator.SimpleSeedProvider, parameters: [{{seeds: \"127.0.0.1\"}}]}}]
storage_compatibility_mode: {compatibility}
sstable: {{selected_format: {format}}}
# Without this, a flush may use another compressor than the table's.
flush_compression: table
compaction_throughput: 0MiB/s
auto_snapshot: false
key_cache_size: 0MiB
# Promoted indexes are then read from the file through their offsets, never from the heap.
column_index_cache_size: 0KiB
corrupted_tombstone_strategy: exception
{pipeline}{index}{more}
",
        compatibility = mode.compatibility(release),
        format = mode.format(),
        partitioner = options.partitioner,
        more = options.yaml,
    )
}
