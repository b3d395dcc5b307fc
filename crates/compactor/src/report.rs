//! Measured results of a merge.

use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::path::PathBuf;
use std::time::Duration;

pub use compactor_check::sstable_report::{SstableReport, lossy};
use compactor_engine::input::InputSstable;
use compactor_engine::job::{MergeJob, MergeOutcome};
use compactor_io::{Io, IoErrorKind, residency};
use compactor_sstable::Component;
use compactor_sstable::compression::info::CompressionParams;
use compactor_sstable::data::deletion_time::NO_DELETION_TIME;
use compactor_sstable::descriptor::Descriptor;
use serde::{Serialize, Serializer};

use crate::process::Usage;

/// Whether a report has the number of the files' pages in the page cache. Counting opens each of them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageCache {
    Counted,
    NotCounted,
}

/// Report of a merge.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct MergeReport {
    /// SSTables that were merged, newest first.
    pub inputs: Vec<SstableReport>,
    /// SSTables that were dropped unread, because everything in them is older than `gc_grace_seconds`.
    pub fully_expired: Vec<SstableReport>,
    /// Repair state of the inputs, and so of the output.
    pub repair: RepairReport,
    /// The outputs in the order of their partitions: none if nothing was left to write, and one unless the
    /// output is split ([`OutputSplit`](crate::OutputSplit)).
    pub outputs: Vec<SstableReport>,
    /// Version of the outputs.
    pub output_version: String,
    /// Compression of the outputs; `None` for none.
    pub output_compression: Option<CompressionReport>,
    /// Bytes of all components of the inputs.
    pub input_bytes: u64,
    /// Uncompressed bytes of the inputs' `Data.db`.
    pub input_uncompressed_bytes: u64,
    /// Bytes of all components of the outputs.
    pub output_bytes: u64,
    /// Uncompressed bytes of the outputs' `Data.db`.
    pub output_uncompressed_bytes: u64,
    /// Partitions of all inputs.
    pub partitions_read: u64,
    /// Partitions of the outputs.
    pub partitions_written: u64,
    /// Rows of all inputs, static rows that are not empty included.
    pub rows_read: u64,
    /// Rows of the outputs, counted in the same way.
    pub rows_written: u64,
    /// Range tombstone markers of all inputs.
    pub range_tombstone_markers_read: u64,
    /// Number of partitions merged from 1, 2, 3, ... inputs; absent if there are several passes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merge_counts: Option<Vec<u64>>,
    /// Data purged after its grace period.
    pub purged: PurgedReport,
    /// Cells and rows that lost their TTL; absent unless TTLs were to be removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_removed: Option<TtlRemovedReport>,
    /// Passes that the inputs went through: one, unless there were more than memory or descriptors
    /// allow.
    pub passes: usize,
    /// Number of ranges of partitions that the merge was split into; one if it was not split.
    pub ranges: usize,
    /// Time spent in serial phases.
    pub serial: SerialReport,
    /// Seconds from the first read to the last sync.
    pub elapsed_s: f64,
    /// Uncompressed input bytes per second of elapsed time.
    pub input_uncompressed_bytes_per_s: f64,
    /// Processor seconds of the whole process meanwhile, over all threads.
    pub cpu_s: f64,
    /// Largest resident set of the process up to now, bytes.
    pub peak_rss_bytes: u64,
    /// Peak bytes of I/O buffers, in use and pooled.
    pub peak_io_buffer_bytes: u64,
    /// I/O modes actually used.
    pub io: IoReport,
    /// Pages of inputs and output left in the page cache.
    pub page_cache: PageCacheReport,
    /// Warnings for the operator.
    pub warnings: Vec<String>,
}

/// Repair state. Data of different states is never mixed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RepairReport {
    /// `unrepaired`, `repaired`, or `in pending repair` and the session; `transient, ` before it where
    /// a transient replica holds the data.
    pub state: String,
    /// When it was repaired, milliseconds since 1970; the earliest of the inputs.
    pub repaired_at_ms: Option<i64>,
}

/// Compression of an SSTable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CompressionReport {
    /// Class name without its package, such as `LZ4Compressor`.
    pub compressor: String,
    /// Uncompressed bytes per chunk.
    pub chunk_length_bytes: u32,
}

impl From<&CompressionParams> for CompressionReport {
    fn from(params: &CompressionParams) -> CompressionReport {
        CompressionReport {
            compressor: params.compressor.clone(),
            chunk_length_bytes: params.chunk_len,
        }
    }
}

/// Counts of purged data.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct PurgedReport {
    /// Partition deletions.
    pub partition_deletions: u64,
    /// Row deletions.
    pub row_deletions: u64,
    /// Bounds of range tombstones; a boundary counts as two.
    pub range_tombstone_bounds: u64,
    /// Deletions of collections and non-frozen user types.
    pub complex_deletions: u64,
    /// Cell tombstones.
    pub cell_tombstones: u64,
    /// Cells and row livenesses that had expired.
    pub expired: u64,
    /// All of them.
    pub total: u64,
    /// Cells and deletions of collections that were removed with their dropped column; not in `total`.
    pub of_dropped_columns: u64,
    /// Cells, row livenesses and deletions that overlapping SSTables shadow; not in `total`.
    pub shadowed: u64,
    /// Rows of a view dropped because they had no liveness left; not in `total`.
    pub without_liveness: u64,
}

/// Numbers of cells and rows that lost their TTL, in the inputs: copies of a cell in several of them count separately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TtlRemovedReport {
    /// Cells.
    pub cells: u64,
    /// Rows, by their own liveness (`INSERT ... USING TTL`).
    pub rows: u64,
}

impl AddAssign for TtlRemovedReport {
    fn add_assign(&mut self, other: TtlRemovedReport) {
        self.cells += other.cells;
        self.rows += other.rows;
    }
}

/// I/O modes.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct IoReport {
    /// Mode that inputs were read in.
    pub read_mode: String,
    /// Mode that the output was written in; `None` without one.
    pub write_mode: Option<String>,
    /// Backend.
    pub backend: String,
    /// Requested modes or backends that were replaced by others, with the reasons.
    pub fallbacks: Vec<String>,
}

/// Pages of files.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct PageCacheReport {
    /// Length of a page in bytes.
    pub page_bytes: u64,
    /// Pages of the inputs, all components.
    pub input_pages: u64,
    /// Pages of the inputs resident before the merge; `None` if the kernel does not report it: only the file's
    /// owner and users with write access may query it.
    pub input_pages_resident_before: Option<u64>,
    /// Pages of the inputs resident after the merge; `None` as above.
    pub input_pages_resident: Option<u64>,
    /// Pages of the outputs, all components.
    pub output_pages: u64,
    /// Pages of the outputs resident after the merge; `None` as above.
    pub output_pages_resident: Option<u64>,
}

impl PageCacheReport {
    /// Pages of inputs and outputs that are resident after the merge; `None` if the kernel does not report
    /// them.
    pub fn pages_resident(&self) -> Option<u64> {
        Some(self.input_pages_resident? + self.output_pages_resident?)
    }
}

/// Components of these inputs that Cassandra would rebuild or do without: a line for each kind.
fn component_notes<'a>(inputs: impl Iterator<Item = &'a InputSstable>) -> Vec<String> {
    let mut kinds: BTreeMap<_, (String, usize)> = BTreeMap::new();
    for input in inputs {
        for note in &input.notes {
            let kind = (note.component, &note.expected, &note.found);
            let first = || (input.data_path().display().to_string(), 0);
            kinds.entry(kind).or_insert_with(first).1 += 1;
        }
    }
    let line = |((_, expected, found), (path, count)): ((_, &String, &String), (String, usize))| {
        let inputs = first_and_others(path, count);
        format!("{inputs}: expected {expected}, found {found}")
    };
    kinds.into_iter().map(line).collect()
}

/// The first of `count` inputs, and the number of the others.
fn first_and_others(first: String, count: usize) -> String {
    match count {
        1 => first,
        _ => format!("{first} and {} more inputs", count - 1),
    }
}

/// The note that the output has no components of indexes, if inputs have any.
fn index_note(inputs: &[InputSstable]) -> Option<String> {
    let is_of_index = |name: &&String| name.starts_with("SAI") || name.starts_with("SI_");
    let mut found = inputs
        .iter()
        .filter_map(|input| Some((input, input.files.foreign.iter().find(is_of_index)?)));
    let (first, component) = found.next()?;
    let inputs = first_and_others(first.data_path().display().to_string(), 1 + found.count());
    Some(format!(
        "{inputs}: the output has no components of secondary indexes, such as {component}: Cassandra rebuilds them when \
         it loads it"
    ))
}

impl MergeReport {
    /// Creates a report of the facts known before the merge.
    pub(crate) fn before(job: &MergeJob, page_cache: PageCache) -> MergeReport {
        let settings = job.settings();
        let (input_pages, input_pages_resident_before) = pages(
            page_cache,
            job.inputs().iter().map(|input| &input.descriptor),
        );
        let mut warnings = component_notes(job.inputs().iter().chain(job.fully_expired()));
        warnings.extend(index_note(job.inputs()));
        let has_tombstones = |input: &InputSstable| {
            input.statistics.stats.min_local_deletion_time != NO_DELETION_TIME
        };
        if job.is_in_passes()
            && job.inputs().iter().any(|i| i.header().has_counters())
            && job.inputs().iter().any(has_tombstones)
        {
            warnings.push(
                "counters are merged in passes: if a counter was incremented after it was deleted, \
                 increments from before the deletion may survive, as when Cassandra compacts in several \
                 steps; with more --memory and a higher `ulimit -n` one pass is enough"
                    .to_owned(),
            );
        }
        MergeReport {
            inputs: job.inputs().iter().map(SstableReport::of_input).collect(),
            fully_expired: job
                .fully_expired()
                .iter()
                .map(SstableReport::of_input)
                .collect(),
            repair: RepairReport {
                state: job.repair_group().to_string(),
                repaired_at_ms: match settings.collector.repaired_at {
                    0 => None,
                    repaired_at => Some(repaired_at),
                },
            },
            output_version: settings.descriptor.version.to_string(),
            output_compression: settings.compression.as_ref().map(CompressionReport::from),
            input_bytes: job.inputs().iter().map(InputSstable::disk_len).sum(),
            input_uncompressed_bytes: job.uncompressed_bytes(),
            ttl_removed: job.options().strip_ttl.then(TtlRemovedReport::default),
            io: IoReport {
                read_mode: job
                    .inputs()
                    .first()
                    .map_or_else(String::new, |i| i.data.mode().to_string()),
                ..IoReport::default()
            },
            page_cache: PageCacheReport {
                page_bytes: rustix::param::page_size() as u64,
                input_pages,
                input_pages_resident_before,
                ..PageCacheReport::default()
            },
            warnings,
            ..MergeReport::default()
        }
    }

    /// Adds the results of the merge.
    pub(crate) fn complete(
        &mut self,
        io: &Io,
        outcome: MergeOutcome,
        usage: Usage,
        elapsed: Duration,
        page_cache: PageCache,
    ) {
        let counts = &outcome.counts;
        self.partitions_read = counts.partitions_read;
        self.rows_read = counts.rows_read;
        self.range_tombstone_markers_read = counts.markers_read;
        self.merge_counts = (outcome.passes == 1).then(|| counts.partitions_by_inputs.clone());
        let purged = counts.purged;
        self.purged = PurgedReport {
            partition_deletions: purged.partition_deletions,
            row_deletions: purged.row_deletions,
            range_tombstone_bounds: purged.range_bounds,
            complex_deletions: purged.complex_deletions,
            cell_tombstones: purged.cell_tombstones,
            expired: purged.expired,
            total: purged.total(),
            of_dropped_columns: purged.of_dropped_columns,
            shadowed: purged.shadowed,
            without_liveness: purged.without_liveness,
        };
        if let Some(removed) = &mut self.ttl_removed {
            removed.cells = purged.stripped_cells;
            removed.rows = purged.stripped_rows;
        }
        self.passes = outcome.passes;
        self.ranges = outcome.ranges;
        self.serial = SerialReport {
            planning_s: outcome.serial.planning.as_secs_f64(),
            order_s: outcome.serial.order.as_secs_f64(),
            publication_s: outcome.serial.publication.as_secs_f64(),
        };
        let uncut = outcome
            .unsplit_reason
            .map(|why| format!("the merge cannot be split: {why}"));
        let (asked, written) = (outcome.outputs_asked, outcome.outputs.len());
        if (1..asked).contains(&written) {
            let why = uncut.unwrap_or_else(|| "there is too little data for more".to_owned());
            let note = format!("{asked} outputs were requested, {written} written: {why}");
            self.warnings.push(note);
        }
        self.elapsed_s = elapsed.as_secs_f64();
        self.input_uncompressed_bytes_per_s =
            self.input_uncompressed_bytes as f64 / self.elapsed_s.max(1e-9);
        self.cpu_s = usage.cpu.as_secs_f64();
        self.peak_rss_bytes = usage.peak_rss_bytes;
        self.peak_io_buffer_bytes = io.pool().peak_bytes();
        self.io.backend = io.backend_used().kind.to_string();
        self.io.fallbacks = io.notes();
        let inputs: Vec<Descriptor> = (self.inputs.iter())
            .filter_map(|input| Some(Descriptor::parse(&input.data_path).ok()?.descriptor))
            .collect();
        self.page_cache.input_pages_resident = pages(page_cache, &inputs).1;
        let outputs = &outcome.outputs;
        self.rows_written = outputs.iter().map(|output| output.rows).sum();
        self.partitions_written = outputs.iter().map(|output| output.partitions).sum();
        self.io.write_mode = outputs.first().map(|output| output.mode.to_string());
        let descriptors = outputs.iter().map(|output| &output.descriptor);
        let (total, resident) = pages(page_cache, descriptors);
        self.page_cache.output_pages = total;
        self.page_cache.output_pages_resident = resident;
        self.outputs = outputs.iter().map(SstableReport::of_output).collect();
        self.output_bytes = self.outputs.iter().map(|o| o.bytes).sum();
        self.output_uncompressed_bytes = self.outputs.iter().map(|o| o.uncompressed_bytes).sum();
    }
}

/// Seconds spent in phases that cannot be parallelized.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SerialReport {
    /// Choosing split points, and opening inputs and outputs.
    pub planning_s: f64,
    /// Appending the results of ranges to the outputs, in order.
    pub order_s: f64,
    /// Completing, syncing and publishing the outputs.
    pub publication_s: f64,
}

/// Pages of all components, and how many of them are resident, if they are counted and the kernel reports it.
fn pages<'a>(
    page_cache: PageCache,
    sstables: impl IntoIterator<Item = &'a Descriptor>,
) -> (u64, Option<u64>) {
    if page_cache == PageCache::NotCounted {
        return (0, None);
    }
    let mut total = 0;
    let mut resident = Some(0);
    for descriptor in sstables {
        for component in Component::ALL {
            match residency(&descriptor.path(component)) {
                Ok(found) => {
                    total += found.pages_total;
                    resident = resident.zip(found.pages_resident).map(|(a, b)| a + b);
                }
                // A file that is not there has no pages.
                Err(error) if error.kind() == IoErrorKind::NotFound => {}
                Err(_) => resident = None,
            }
        }
    }
    (total, resident)
}

/// A path with bytes that are not UTF-8 replaced, if there is one.
pub(crate) fn lossy_or_none<S: Serializer>(
    path: &Option<PathBuf>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let text = path.as_ref().map(|path| path.display().to_string());
    text.serialize(serializer)
}
