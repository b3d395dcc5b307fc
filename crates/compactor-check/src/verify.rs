//! Verifying an SSTable: every checksum, every byte parsed, and every component against the others.
//!
//! Checks more than `sstableverify -e`: also the promoted index or row trie, the summary, the filter, and the
//! statistics by which Cassandra skips and drops SSTables. Findings are collected; where possible, checking continues
//! after damage. Memory is bounded for files of any size, except for the filter, the summary, the tries of the BTI
//! format and the promoted index of one partition.
//!
//! ```no_run
//! # fn main() -> Result<(), compactor_check::Error> {
//! use compactor_check::verify::{VerifyOptions, verify};
//!
//! let io = compactor_io::Io::new(compactor_io::IoOptions::default())?;
//! let path = "snapshot/nb-1-big-Data.db".as_ref();
//! let report = verify(&io, path, &VerifyOptions::default(), &mut compactor_engine::merge::NoObserver)?;
//! for finding in &report.findings {
//!     println!("{finding}");
//! }
//! assert!(!report.is_damaged());
//! # Ok(())
//! # }
//! ```

mod blocks;
mod bti_index;
pub(crate) mod bti_sidecar_components;
pub(crate) mod chunks;
mod content;
pub mod data_digest;
pub(crate) mod files;
pub(crate) mod finding;
pub(crate) mod index;
pub(crate) mod indexed_partitions;
mod keys;
mod lockstep;
mod partition_scan;
mod promoted;
pub(crate) mod rows;
pub(crate) mod sidecar_components;
mod statistics;
pub(crate) mod statistics_consistency;
mod stream;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use compactor_engine::input::{SharedTries, layout_of};
use compactor_engine::merge::Observer;
use compactor_engine::read::hex;
use compactor_io::{Io, ReadMode};
use compactor_sstable::big::Summary;
use compactor_sstable::compression::chunk::ChunkDecompressor;
use compactor_sstable::compression::info::CompressionInfo;
use compactor_sstable::data::layout::Layout;
use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::partitioner::Partitioner;
use compactor_sstable::statistics::Statistics;
use compactor_sstable::types::CqlType;
use compactor_sstable::{Component, Error as FormatError};
use serde::Serialize;

use crate::cancellation::check_cancelled;
use crate::{Error, Result};
use bti_index::TrieScan;
use chunks::{CheckedData, Form};
use content::ContentCheck;
use files::Files;
pub use finding::{Finding, Severity};
use finding::{Findings, Location};
use index::IndexScan;
use keys::{FilterCheck, SummaryCheck};
use lockstep::Lockstep;
use partition_scan::PartitionScan;
use statistics::StatisticsCheck;

/// Maximum number of bytes of a key or value shown in a finding.
const SHOWN_BYTES: usize = 32;
/// Maximum number of characters of a name or type in messages.
const SHOWN_CHARS: usize = 100;

/// Options of a verification.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct VerifyOptions {
    /// How files are read.
    pub read_mode: ReadMode,
    /// Checks only metadata, digest and chunk checksums, without parsing rows.
    pub quick: bool,
    /// Maximum number of findings listed; further ones are only counted.
    pub max_findings: usize,
}

impl Default for VerifyOptions {
    fn default() -> Self {
        VerifyOptions {
            read_mode: ReadMode::Auto,
            quick: false,
            max_findings: 100,
        }
    }
}

/// Result of a verification: findings, and how much was read.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct VerifyReport {
    /// `Data.db` of the SSTable. In JSON, bytes that are not UTF-8 are replaced.
    #[serde(serialize_with = "crate::sstable_report::lossy")]
    pub data_path: PathBuf,
    /// Version of the SSTable.
    pub version: String,
    /// Whether only metadata, digest and chunk checksums were checked.
    pub quick: bool,
    /// Damage first, then notes, each in the order found.
    pub findings: Vec<Finding>,
    /// Number of damage findings, listed or not.
    pub damages: u64,
    /// Number of notes, listed or not.
    pub notes: u64,
    /// Whether some of the damage makes a merge refuse the SSTable. A damaged filter, summary or the like does not: a
    /// merge writes its own.
    pub stops_merge: bool,
    /// Whether every partition was read from its first to its last byte; never if `quick`.
    pub content_complete: bool,
    /// Partitions read.
    pub partitions: u64,
    /// Partitions listed in the index that were not read because of damage.
    pub partitions_skipped: u64,
    /// Rows read, static rows that are not empty included.
    pub rows: u64,
    /// Range tombstone markers read.
    pub range_tombstone_markers: u64,
    /// Cells read.
    pub cells: u64,
    /// Chunks of `Data.db`, each checked against its checksum where there is one.
    pub chunks: u64,
    /// Damaged chunks.
    pub chunks_damaged: u64,
    /// Total bytes of all components.
    pub bytes: u64,
    /// Uncompressed bytes of `Data.db`.
    pub uncompressed_bytes: u64,
    /// Read mode actually used.
    pub read_mode: String,
    /// Elapsed time, seconds.
    pub elapsed_s: f64,
}

impl VerifyReport {
    /// Returns true if anything is damaged.
    pub fn is_damaged(&self) -> bool {
        self.damages > 0
    }

    /// Number of findings that were counted but not listed.
    pub fn unlisted(&self) -> u64 {
        (self.damages + self.notes).saturating_sub(self.findings.len() as u64)
    }
}

/// Verifies the SSTable whose `Data.db` is `data_path`. Damage is not an error: it is in the report.
///
/// # Errors
/// A path that is not an SSTable's, a valid format that this release does not read, a failed read, or cancellation.
pub fn verify(
    io: &Io,
    data_path: &Path,
    options: &VerifyOptions,
    observer: &mut dyn Observer,
) -> Result<VerifyReport> {
    let started = Instant::now();
    let descriptor = files::readable(data_path, "verifies")?;
    let findings = Findings::new(descriptor.clone(), options.max_findings);
    let mut report = VerifyReport {
        data_path: data_path.to_owned(),
        version: descriptor.version.to_string(),
        quick: options.quick,
        read_mode: options.read_mode.to_string(),
        ..VerifyReport::default()
    };
    let verification = Verification {
        io,
        options,
        descriptor: &descriptor,
        findings: &findings,
    };
    verification.run(&mut report, observer)?;
    report.stops_merge = findings.stop_merge();
    (report.findings, report.damages, report.notes) = findings.finish();
    report.elapsed_s = started.elapsed().as_secs_f64();
    Ok(report)
}

/// One SSTable being verified.
struct Verification<'a> {
    io: &'a Io,
    options: &'a VerifyOptions,
    descriptor: &'a Descriptor,
    findings: &'a Findings,
}

/// `Data.db`, with the facts known before it is read.
struct OpenData<'a> {
    data: CheckedData<'a>,
    /// Whether its content can be parsed.
    is_understood: bool,
    compression_ratio: Option<f64>,
}

impl<'a> Verification<'a> {
    fn run(&self, report: &mut VerifyReport, observer: &mut dyn Observer) -> Result<()> {
        let findings = self.findings;
        let mode = self.options.read_mode;
        let files = Files::new(self.io, mode, self.descriptor, findings)?;
        report.bytes = files.total_len();
        let statistics = files.statistics()?;
        let fp_chance = files::fp_chance(statistics.as_ref());
        files.check_list(fp_chance)?;
        let layout = match &statistics {
            Some(statistics) => self.layout(statistics)?,
            None => None,
        };
        let filter = files.filter(fp_chance)?;
        let summary = files.summary()?;
        let digest = files.digest()?;
        let tries = files.tries(&SharedTries::default())?;
        let types = clustering_types(statistics.as_ref());
        let mut open = self.open_data(&files)?;
        if let Some(open) = &open {
            report.read_mode = open.data.read_mode().to_string();
            report.chunks = open.data.chunk_count();
            report.uncompressed_bytes = open.data.data_len();
        }

        let mut content = None;
        let mut ends = None;
        if !self.options.quick {
            let data_len = open
                .as_ref()
                .filter(|o| o.is_understood)
                .map(|o| o.data.data_len());
            let partitioner = match &statistics {
                Some(statistics) => self.partitioner(statistics)?,
                None => Partitioner::Murmur3,
            };
            let index = match &tries {
                Some(tries) => {
                    let scan = TrieScan::open(findings, tries, &types, data_len);
                    Some(PartitionScan::Bti(scan))
                }
                None => self.open_index(&files, data_len, summary, partitioner)?,
            };
            let filter = filter.map(FilterCheck::new);
            let mut step = Lockstep::new(findings, index, filter);
            match (&mut open, &layout, &statistics) {
                (Some(open), Some(layout), Some(statistics)) if open.is_understood => {
                    let layout = Arc::clone(layout);
                    let check =
                        ContentCheck::new(findings, layout, partitioner, &statistics.header, step);
                    let read;
                    (read, step) = check.run(&mut open.data, observer)?;
                    content = Some(read);
                }
                // The content cannot be read: check the index alone.
                _ => {
                    while step.next_alone()? {
                        check_cancelled(observer)?;
                    }
                }
            }
            let is_complete = content.as_ref().is_some_and(|content| content.is_complete);
            step.check_whole(is_complete, fp_chance);
            if let (Some(index), Some(content)) = (&step.index, &content)
                && is_complete
                && content.partitions > 0
            {
                index.check_ends(&content.first_key, &content.last_key);
            }
            ends = step
                .index
                .as_ref()
                .and_then(PartitionScan::ends)
                .map(|(a, b)| (a.to_vec(), b.to_vec()));
        }
        if let Some(content) = &content {
            report.content_complete = content.is_complete;
            report.partitions = content.partitions;
            report.partitions_skipped = content.partitions_skipped;
            report.rows = content.rows;
            report.range_tombstone_markers = content.markers;
            report.cells = content.cells;
            if content.is_complete && content.partitions > 0 {
                ends = Some((content.first_key.clone(), content.last_key.clone()));
            }
        }
        if let Some(OpenData { data, .. }) = &mut open {
            while data.skip_chunk()? {
                check_cancelled(observer)?;
                observer.progress(data.position(), report.rows, report.partitions);
            }
            report.chunks_damaged = data.damaged_chunks;
            self.digest(data, digest);
        }
        if let Some(statistics) = &statistics {
            let no_clustering = Default::default();
            let check = StatisticsCheck {
                findings,
                version: self.descriptor.version,
                statistics,
                comparator: layout
                    .as_ref()
                    .map_or(&no_clustering, |layout| &layout.clustering),
                compression_ratio: open.as_ref().and_then(|open| open.compression_ratio),
                is_compressed: files.has(Component::CompressionInfo),
            };
            check.alone();
            if let Some((first, last)) = ends {
                check.ends(&first, &last);
            }
            if let Some(content) = content {
                check.content(content);
            }
        }
        Ok(())
    }

    fn open_data(&self, files: &Files<'_>) -> Result<Option<OpenData<'a>>> {
        if !files.has(Component::Data) {
            return Ok(None);
        }
        let path = self.descriptor.path(Component::Data);
        let file = self.io.open(&path, self.options.read_mode)?;
        let len = file.len();
        if len == 0 {
            let place = Location::offset(Component::Data, 0);
            self.findings
                .damage(place, "data", "at least one partition", "an empty file");
        }
        let (form, is_understood, compression_ratio) = if files.has(Component::CompressionInfo) {
            let info = files.compression_info(len)?;
            let ratio = info.as_ref().map(CompressionInfo::compression_ratio);
            let form = self.compressed(info, len);
            let can_decode = matches!(
                &form,
                Form::Compressed {
                    decompressor: Some(_),
                    ..
                }
            );
            (form, can_decode, ratio)
        } else {
            // A CompressionInfo.db that is missing is damage as well.
            let is_plain = len > 0 && !self.findings.is_damaged(Component::CompressionInfo);
            (
                Form::Plain {
                    crc: files.crc_file(len)?,
                    len,
                },
                is_plain,
                None,
            )
        };
        let data = CheckedData::new(self.findings, file, form);
        Ok(Some(OpenData {
            data,
            is_understood,
            compression_ratio,
        }))
    }

    fn open_index(
        &self,
        files: &Files<'_>,
        data_len: Option<u64>,
        summary: Option<Summary>,
        partitioner: Partitioner,
    ) -> Result<Option<PartitionScan<'a>>> {
        if !files.has(Component::Index) {
            return Ok(None);
        }
        let path = self.descriptor.path(Component::Index);
        let file = self.io.open(&path, self.options.read_mode)?;
        let summary = summary.map(SummaryCheck::new);
        let scan = IndexScan::open(self.findings, &file, data_len, partitioner, summary);
        Ok(Some(PartitionScan::Big(scan)))
    }

    fn partitioner(&self, statistics: &Statistics) -> Result<Partitioner> {
        Partitioner::from_class_name(&statistics.validation.partitioner).map_err(
            |error| match error {
                FormatError::Unsupported(u) => unsupported(self.descriptor, u.what),
                other => other.into(),
            },
        )
    }

    fn layout(&self, statistics: &Statistics) -> Result<Option<Arc<Layout>>> {
        self.partitioner(statistics)?;
        match layout_of(&statistics.header, self.descriptor.version) {
            Ok(layout) => Ok(Some(Arc::new(layout))),
            Err(error) => {
                self.findings.parser(Component::Statistics, &error);
                Ok(None)
            }
        }
    }

    /// Storage form of a compressed file; if unknown, plain bytes that are only digested.
    fn compressed(&self, info: Option<CompressionInfo>, len: u64) -> Form {
        let Some(info) = info else {
            return Form::Plain { crc: None, len };
        };
        let decompressor = match ChunkDecompressor::for_file(&info) {
            Ok(decompressor) => Some(decompressor),
            Err(error) => {
                self.findings.parser(Component::CompressionInfo, &error);
                None
            }
        };
        Form::Compressed { info, decompressor }
    }

    fn digest(&self, data: &CheckedData<'_>, stated: Option<u32>) {
        if let (Some(stated), Some(computed)) = (stated, data.digest())
            && stated != computed
        {
            self.findings.damage(
                Location::of(Component::Digest),
                "digest",
                format!("{computed}, the CRC32 of Data.db as it is"),
                stated.to_string(),
            );
        }
    }
}

fn unsupported(descriptor: &Descriptor, what: String) -> Error {
    FormatError::unsupported(what)
        .with_file(&descriptor.path(Component::Data), Component::Data)
        .into()
}

/// Formats the first bytes in hexadecimal, with the total number if there are more.
fn short_hex(bytes: &[u8]) -> String {
    match bytes.get(..SHOWN_BYTES) {
        Some(start) if bytes.len() > SHOWN_BYTES => {
            format!("{}... ({} bytes)", hex(start), bytes.len())
        }
        _ if bytes.is_empty() => "(empty)".to_owned(),
        _ => hex(bytes),
    }
}

/// Formats a type, in a bounded number of characters: a header may have types of megabytes.
fn short_class(cql_type: &CqlType) -> String {
    shortened(cql_type.class_string())
}

/// Cuts a text that may be as long as a component.
fn shortened(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(SHOWN_CHARS) {
        text.truncate(end);
        text.shrink_to_fit();
        text.push('…');
    }
    text
}

/// Returns the types of the clustering columns, empty if unknown.
fn clustering_types(statistics: Option<&Statistics>) -> Vec<CqlType> {
    let types = statistics.map(|s| &s.header.clustering_types[..]);
    let types = types.unwrap_or_default().iter();
    types.map(|t| t.cql_type.clone()).collect()
}
