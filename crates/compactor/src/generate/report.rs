//! Report of generated data.

use std::path::{Path, PathBuf};
use std::time::Duration;

use compactor_engine::write::WrittenSstable;
use compactor_io::Io;
use compactor_sstable::Component;
use serde::Serialize;

use super::GenerateOptions;
use crate::process::Usage;
use crate::report::CompressionReport;

/// Report of generated data.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct GenerateReport {
    /// Name of the shape.
    pub shape: String,
    /// Keyspace.
    pub keyspace: String,
    /// Table.
    pub table: String,
    /// Directory of the SSTables and their `schema.cql`. In JSON, bytes that are not UTF-8 are replaced.
    #[serde(serialize_with = "crate::report::lossy")]
    pub table_directory: PathBuf,
    /// Version.
    pub version: String,
    /// Compression; `None` for none.
    pub compression: Option<CompressionReport>,
    /// The SSTables, oldest first.
    pub sstables: Vec<GeneratedSstable>,
    /// Partitions of all of them.
    pub partitions: u64,
    /// Rows, static and deleted ones included.
    pub rows: u64,
    /// Uncompressed bytes of all `Data.db`.
    pub uncompressed_bytes: u64,
    /// Bytes of all `Data.db` as stored.
    pub data_bytes: u64,
    /// Bytes of all components.
    pub bytes: u64,
    /// Stored over uncompressed bytes of `Data.db`, as `nodetool tablestats` has it.
    pub compression_ratio: f64,
    /// Mode that files were written in.
    pub write_mode: String,
    /// Requested modes that were replaced by others, with the reasons.
    pub fallbacks: Vec<String>,
    /// Seconds from start to the last sync.
    pub elapsed_s: f64,
    /// Uncompressed bytes per second of elapsed time.
    pub uncompressed_bytes_per_s: f64,
    /// Processor seconds of the whole process meanwhile, over all threads.
    pub cpu_s: f64,
    /// Largest resident set of the process up to now, bytes.
    pub peak_rss_bytes: u64,
}

/// One generated SSTable.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct GeneratedSstable {
    /// Its `Data.db`.
    #[serde(serialize_with = "crate::report::lossy")]
    pub data_path: PathBuf,
    /// Partitions.
    pub partitions: u64,
    /// Rows, static and deleted ones included.
    pub rows: u64,
    /// Uncompressed bytes of `Data.db`.
    pub uncompressed_bytes: u64,
    /// Bytes of `Data.db` as stored.
    pub data_bytes: u64,
    /// Bytes of all components.
    pub bytes: u64,
}

impl GenerateReport {
    pub(super) fn new(options: &GenerateOptions, directory: &Path) -> GenerateReport {
        GenerateReport {
            shape: options.shape.name().to_owned(),
            keyspace: options.keyspace.clone(),
            table: options.table.clone(),
            table_directory: directory.to_owned(),
            version: options.version.to_string(),
            compression: options.compression.as_ref().map(CompressionReport::from),
            ..GenerateReport::default()
        }
    }

    pub(super) fn add(&mut self, written: WrittenSstable) {
        let of = |wanted| {
            let lengths = written.components.iter().filter(|(c, _)| wanted == *c);
            lengths.map(|(_, len)| len).sum::<u64>()
        };
        let sstable = GeneratedSstable {
            data_path: written.descriptor.path(Component::Data),
            partitions: written.partitions,
            rows: written.rows,
            uncompressed_bytes: written.data_len,
            data_bytes: of(Component::Data),
            bytes: written.components.iter().map(|(_, len)| len).sum(),
        };
        self.partitions += sstable.partitions;
        self.rows += sstable.rows;
        self.uncompressed_bytes += sstable.uncompressed_bytes;
        self.data_bytes += sstable.data_bytes;
        self.bytes += sstable.bytes;
        self.write_mode = written.mode.to_string();
        self.sstables.push(sstable);
    }

    pub(super) fn complete(&mut self, io: &Io, usage: Usage, elapsed: Duration) {
        self.compression_ratio = self.data_bytes as f64 / (self.uncompressed_bytes.max(1)) as f64;
        self.fallbacks = io.notes();
        self.elapsed_s = elapsed.as_secs_f64();
        self.uncompressed_bytes_per_s = self.uncompressed_bytes as f64 / self.elapsed_s.max(1e-9);
        self.cpu_s = usage.cpu.as_secs_f64();
        self.peak_rss_bytes = usage.peak_rss_bytes;
    }
}
