//! Scrub: copies the readable partitions and rows of a damaged SSTable into a new one, and lists the losses.
//!
//! It reads the data twice. The first pass determines what is readable, the second writes it with the merge's
//! writer, from a source that leaves the damage out (`splice`). So nothing is written before the losses are
//! known, and the output is staged and published like that of a merge.
//!
//! Unlike Cassandra's scrub, this keeps the rows of a partition before damage, the rows after it from the next block
//! of the partition's index on, and the partitions after damage even where `Index.db` is missing or damaged. Of the
//! tries of the BTI format only the positions of partitions are used, since they do not contain whole keys: after
//! damage, reading continues at the next partition.
//!
//! ```no_run
//! # fn main() -> Result<(), compactor_check::Error> {
//! use compactor_check::scrub::{ScrubOptions, scrub};
//!
//! let io = compactor_io::Io::new(compactor_io::IoOptions::default())?;
//! let path = "snapshot/nb-1-big-Data.db".as_ref();
//! let report = scrub(&io, path, &ScrubOptions::new("scrubbed"), &mut compactor_engine::merge::NoObserver)?;
//! for loss in &report.losses {
//!     println!("{loss}");
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Source: `SortedTableScrubber`, `BigTableScrubber`.

mod contradicted_statistics;
mod current;
mod index_walk;
mod keep;
mod loss;
mod resume;
mod runs;
mod scan;
mod search;
mod splice;
mod stored;
mod synthesis;
mod trie_walk;
mod write;

use std::path::{Path, PathBuf};
use std::time::Instant;

use compactor_engine::merge::Observer;
use compactor_io::Io;
use compactor_sstable::Component;
use compactor_sstable::partitioner::Partitioner;
use compactor_sstable::statistics::StatsMetadata;
use serde::Serialize;

use crate::cancellation::check_cancelled;
use crate::sstable_report::SstableReport;
use crate::verify::Finding;
use crate::verify::chunks::CheckedData;
use crate::verify::files::readable;
use crate::verify::finding::Findings;
use crate::verify::index::IndexScan;
use crate::{Error, Result};
use compactor_engine::input::{RepairGroup, check_schema};
use compactor_engine::job::MergeOptions;
use contradicted_statistics::contradicts_statistics;
use index_walk::{Beyond, IndexWalk};
pub use loss::{Loss, LossKind};
use loss::{Losses, Owner};
use scan::Scan;
use stored::Stored;

/// Partitioner of all SSTables that are scrubbed: others are refused when they are opened.
const PARTITIONER: Partitioner = Partitioner::Murmur3;

/// Scrub options.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ScrubOptions {
    /// Directory, version and compression of the output, schema of the table, and I/O modes. Other options of a merge have
    /// no effect: nothing is purged.
    pub output: MergeOptions,
    /// Continue if counter data is lost, although the counters then have lower values.
    pub skip_corrupted: bool,
    /// Validate every value against its type, and leave out rows with an invalid one.
    pub validate: bool,
    /// Only determine the losses, without writing.
    pub dry_run: bool,
    /// Maximum number of losses that are listed; more are only counted.
    pub max_losses: usize,
}

impl ScrubOptions {
    /// Scrubs into `output_directory` with everything else at its default.
    pub fn new(output_directory: impl Into<PathBuf>) -> ScrubOptions {
        ScrubOptions {
            output: MergeOptions::new(Vec::new(), output_directory),
            skip_corrupted: false,
            validate: true,
            dry_run: false,
            max_losses: 1000,
        }
    }
}

/// Report of the rows salvaged and lost from one SSTable.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ScrubReport {
    /// `Data.db` of the SSTable.
    #[serde(serialize_with = "crate::sstable_report::lossy")]
    pub data_path: PathBuf,
    /// Version of the SSTable.
    pub version: String,
    /// Uncompressed bytes of its `Data.db`.
    pub uncompressed_bytes: u64,
    /// The new SSTable; none if nothing was salvaged, or if nothing was to be written.
    pub output: Option<SstableReport>,
    /// Partitions without a loss.
    pub partitions_good: u64,
    /// Partitions that were partly lost.
    pub partitions_cut: u64,
    /// Lost partitions that the index lists.
    pub partitions_lost: u64,
    /// Number of partitions that were out of order and have been reordered.
    pub partitions_out_of_order: u64,
    /// Number of partitions with out-of-order rows that have been reordered.
    pub partitions_with_rows_out_of_order: u64,
    /// Rows kept, static rows that are not empty included.
    pub rows_good: u64,
    /// Uncompressed bytes that were not carried over.
    pub bytes_lost: u64,
    /// Number of losses, listed or not.
    pub loss_count: u64,
    /// The first of them, in the order of the data.
    pub losses: Vec<Loss>,
    /// `Data.db` does not match its digest, and no checksum of a chunk locates the damage: rows that look
    /// valid may be wrong.
    pub is_doubtful: bool,
    /// The data contradicts `Statistics.db`, as a finding says, which has the base of all times: if it belongs to another
    /// SSTable, all of them are wrong.
    pub contradicts_statistics: bool,
    /// The SSTable was repaired, or in a repair that has not ended, and the new one is unrepaired, since something
    /// was lost.
    pub is_repair_state_reset: bool,
    /// Findings on the files.
    pub findings: Vec<Finding>,
    /// Seconds.
    pub elapsed_s: f64,
}

impl ScrubReport {
    /// True if data was lost, or may differ from what was written.
    pub fn is_lossy(&self) -> bool {
        self.loss_count > 0 || self.is_doubtful || self.contradicts_statistics
    }
}

/// Salvages the SSTable whose `Data.db` is `data_path`. Damage that can be worked around is not an
/// error: it is in the report.
///
/// Both passes count in the progress: bytes read reach twice the length of the data, unless nothing is to be written. Rows
/// and partitions are those that the first pass keeps.
///
/// # Errors
/// `Statistics.db` or `CompressionInfo.db` is damaged, or there is no `Data.db`: nothing can be read then. Refused
/// if counters would be lost and the options do not permit it. Invalid input if its columns are not those of the schema in
/// the options. A failed read or write, cancellation. Nothing is written in these cases.
pub fn scrub(
    io: &Io,
    data_path: &Path,
    options: &ScrubOptions,
    observer: &mut dyn Observer,
) -> Result<ScrubReport> {
    let started = Instant::now();
    let descriptor = readable(data_path, "scrubs")?;
    let findings = Findings::new(descriptor.clone(), options.max_losses);
    let stored = Stored::open(io, options.output.read_mode, &descriptor, &findings)?;
    if let Some(table) = &options.output.table {
        check_schema(table, &stored.input.header_source())?;
    }
    let mut data = CheckedData::new(&findings, stored.file.clone(), stored.form());
    let data_len = data.data_len();
    let index = if stored.has_index {
        let path = descriptor.path(Component::Index);
        let file = io.open(&path, options.output.read_mode)?;
        let scan = IndexScan::open(&findings, &file, Some(data_len), PARTITIONER, None);
        Some(IndexWalk::start(scan, data_len)?)
    } else {
        None
    };
    let key_type = stored.input.header().key_type.cql_type.clone();
    let losses = Losses::new(options.max_losses, stored.chunks().cloned(), key_type);
    let mut scan = Scan::new(&stored, index, losses, options.validate);
    scan.run(&mut data, observer)?;
    let mut second_pass = SecondPass {
        inner: observer,
        data_len,
        rows: scan.counts.rows,
        partitions: scan.counts.whole,
    };
    second_pass.progress(0, 0, 0);
    let observer = &mut second_pass;
    // The bytes after the last readable ones, for the digest.
    while data.skip_chunk()? {
        check_cancelled(observer)?;
    }
    let is_doubtful = !stored.is_checksummed()
        && matches!((stored.digest, data.digest()), (Some(a), Some(b)) if a != b);
    let Scan {
        runs,
        mut losses,
        counts,
        index,
        collector,
        ..
    } = scan;
    let beyond = index.map(|index| index.beyond).unwrap_or_default();
    enter_missing(beyond, counts.whole + counts.cut, &stored, &mut losses);
    drop(data);
    let seen = (losses.count == 0).then_some((counts.rows, &collector));
    let contradicts_statistics = contradicts_statistics(&stored, seen, &findings);

    let is_unrepaired = RepairGroup::of(&stored.input.statistics.stats) == RepairGroup::default();
    let mut report = ScrubReport {
        data_path: data_path.to_owned(),
        version: descriptor.version.to_string(),
        uncompressed_bytes: data_len,
        output: None,
        partitions_good: counts.whole,
        partitions_cut: counts.cut,
        partitions_lost: losses.partitions,
        partitions_out_of_order: counts.out_of_order,
        partitions_with_rows_out_of_order: counts.with_rows_out_of_order,
        rows_good: counts.rows,
        bytes_lost: losses.bytes,
        loss_count: losses.count,
        losses: losses.listed,
        is_doubtful,
        contradicts_statistics,
        is_repair_state_reset: false,
        findings: Vec::new(),
        elapsed_s: 0.0,
    };
    if !options.dry_run {
        if stored.input.header().has_counters() && report.is_lossy() && !options.skip_corrupted {
            return Err(counters_refused(&report));
        }
        let pieces = runs.into_pieces();
        let output = write::write(io, &stored, pieces, &report, options, observer)?;
        report.is_repair_state_reset = output.is_some() && report.is_lossy() && !is_unrepaired;
        report.output = output;
        observer.progress(data_len, 0, 0);
    }
    (report.findings, _, _) = findings.finish();
    report.elapsed_s = started.elapsed().as_secs_f64();
    Ok(report)
}

/// Observer of the second pass: its progress continues that of the first.
struct SecondPass<'a> {
    inner: &'a mut dyn Observer,
    /// Bytes that the first pass has read, and rows and partitions that it has kept.
    data_len: u64,
    rows: u64,
    partitions: u64,
}

impl Observer for SecondPass<'_> {
    fn is_cancelled(&self) -> bool {
        self.inner.is_cancelled()
    }

    fn progress(&mut self, read_bytes: u64, _rows: u64, _partitions: u64) {
        // With the bytes that are put in place of damage, more may be read than there is.
        let read_bytes = self.data_len + read_bytes.min(self.data_len);
        self.inner.progress(read_bytes, self.rows, self.partitions);
    }

    fn message(&mut self, text: &str) {
        self.inner.message(text);
    }

    fn before_publish(&mut self, data_path: &Path) -> Result<()> {
        self.inner.before_publish(data_path)
    }
}

/// Partitions of the index that are entirely missing from the data: those `beyond` its end, and an unknown rest.
/// `kept` is the number of partitions that are there, cut or not.
fn enter_missing(beyond: Beyond, kept: u64, stored: &Stored, losses: &mut Losses) {
    let expected = partition_count(&stored.input.statistics.stats);
    for (key, token, position) in beyond.listed {
        // If the file is complete, the index is wrong and nothing is lost.
        if kept + losses.partitions >= expected {
            return;
        }
        let owner = Some(Owner { key: &key, token });
        let range = position..position;
        losses.add(LossKind::Partition, range, owner, "Data.db ends before");
    }
    let missing = expected.saturating_sub(kept + losses.partitions);
    losses.count_partitions(beyond.unlisted.min(missing));
    let found = kept + losses.partitions;
    if found < expected && losses.count == 0 {
        let end = stored.input.data_len();
        let reason = format!("Statistics.db counts {expected} partitions, {found} are there");
        losses.add(LossKind::Bytes, end..end, None, &reason);
    }
}

/// Each partition has one entry in the histogram of sizes.
fn partition_count(stats: &StatsMetadata) -> u64 {
    stats.partition_sizes.count().max(0).unsigned_abs()
}

fn counters_refused(report: &ScrubReport) -> Error {
    let first = report
        .losses
        .first()
        .map_or_else(String::new, |loss| format!("; the first: {loss}"));
    Error::refused(format!(
        "{}: counter table, and {}{first}. Counters would be lower than they were. Pass --skip-corrupted to continue \
         anyway; --dry-run lists all losses",
        report.data_path.display(),
        match report.loss_count {
            0 => "what looks right may be wrong".to_owned(),
            1 => "1 place cannot be salvaged".to_owned(),
            places => format!("{places} places cannot be salvaged"),
        }
    ))
}
