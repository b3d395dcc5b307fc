//! Files that a daemon reads at its start: cassandra.yaml and the configuration of its log.

use std::fs;
use std::net::TcpListener;
use std::path::Path;

use anyhow::Result;

use super::kind::Kind;

/// Ports of one daemon on 127.0.0.1.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ports {
    pub(crate) storage: u16,
    pub(crate) native: u16,
    pub(crate) jmx: u16,
}

impl Ports {
    /// Finds ports on which nothing listens now.
    pub(crate) fn free() -> Result<Self> {
        let listeners = [0; 3].map(|_| TcpListener::bind("127.0.0.1:0"));
        let [storage, native, jmx] = listeners.map(|bound| bound?.local_addr());
        Ok(Self {
            storage: storage?.port(),
            native: native?.port(),
            jmx: jmx?.port(),
        })
    }
}

/// Path of the log in the daemon's home.
pub(crate) const LOG: &str = "logs/system.log";

const LOGBACK: &str = r#"<configuration>
  <appender name="file" class="ch.qos.logback.core.FileAppender">
    <file>${cassandra.logdir}/system.log</file>
    <encoder><pattern>%-5level [%thread] %date{ISO8601} %F:%L - %msg%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="file"/></root>
</configuration>
"#;

const LOGBACK_TOOLS: &str = r#"<configuration>
  <appender name="stderr" class="ch.qos.logback.core.ConsoleAppender">
    <target>System.err</target>
    <encoder><pattern>%-5level %date{ISO8601} %F:%L - %msg%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="stderr"/></root>
</configuration>
"#;

/// Writes `conf` into the home.
pub(crate) fn write(home: &Path, kind: Kind, ports: Ports, seed: u16) -> Result<()> {
    let conf = home.join("conf");
    fs::create_dir_all(&conf)?;
    fs::create_dir_all(home.join("logs"))?;
    fs::write(conf.join("logback.xml"), LOGBACK)?;
    fs::write(conf.join("logback-tools.xml"), LOGBACK_TOOLS)?;
    fs::write(conf.join("cassandra.yaml"), yaml(home, kind, ports, seed))?;
    Ok(())
}

const SIZES: &str = "commitlog_sync_period: 10s
commitlog_segment_size: 8MiB
commitlog_total_space: 128MiB
compaction_throughput: 0MiB/s
memtable_heap_space: 96MiB
memtable_offheap_space: 96MiB
file_cache_size: 32MiB
key_cache_size: 8MiB
counter_cache_size: 8MiB
materialized_views_enabled: true
sasi_indexes_enabled: true
# The node compacts only on request.
autocompaction_on_startup_enabled: false
read_request_timeout: 120s
range_request_timeout: 120s
write_request_timeout: 120s
counter_write_request_timeout: 120s
truncate_request_timeout: 120s
request_timeout: 120s
";

/// The same for releases before 4.0, where units are part of the names.
const SIZES_3: &str = "commitlog_sync_period_in_ms: 10000
commitlog_segment_size_in_mb: 8
commitlog_total_space_in_mb: 128
compaction_throughput_mb_per_sec: 0
memtable_heap_space_in_mb: 96
memtable_offheap_space_in_mb: 96
file_cache_size_in_mb: 32
key_cache_size_in_mb: 8
counter_cache_size_in_mb: 8
start_rpc: false
read_request_timeout_in_ms: 120000
range_request_timeout_in_ms: 120000
write_request_timeout_in_ms: 120000
counter_write_request_timeout_in_ms: 120000
truncate_request_timeout_in_ms: 120000
request_timeout_in_ms: 120000
";

fn yaml(home: &Path, kind: Kind, ports: Ports, seed: u16) -> String {
    let home = home.display();
    let more = kind.settings().join("\n");
    let (sizes, seed) = if kind.major() < 4 {
        // All nodes of such a cluster have the same storage port.
        (SIZES_3, "127.0.0.1".to_owned())
    } else {
        (SIZES, format!("127.0.0.1:{seed}"))
    };
    let Ports {
        storage, native, ..
    } = ports;
    format!(
        "cluster_name: interop
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
endpoint_snitch: SimpleSnitch
seed_provider: [{{class_name: org.apache.cassandra.locator.SimpleSeedProvider, parameters: [{{seeds: \"{seed}\"}}]}}]
listen_address: 127.0.0.1
rpc_address: 127.0.0.1
storage_port: {storage}
native_transport_port: {native}
start_native_transport: true
num_tokens: 4
data_file_directories: [{home}/data]
commitlog_directory: {home}/commitlog
saved_caches_directory: {home}/saved_caches
hints_directory: {home}/hints
cdc_raw_directory: {home}/cdc_raw
commitlog_sync: periodic
concurrent_compactors: 1
native_transport_max_threads: 8
concurrent_reads: 8
concurrent_writes: 8
concurrent_counter_writes: 8
auto_snapshot: false
{sizes}{more}
"
    )
}
