//! Options of a merge.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use compactor_io::{ReadMode, WriteMode};
use compactor_sstable::big::summary::DEFAULT_MIN_INDEX_INTERVAL;
use compactor_sstable::compression::info::CompressionParams;
use compactor_sstable::schema::Table;
use compactor_sstable::{Format, Version};

use crate::job::output_split::OutputSplit;
use crate::job::overlapping::OverlappingSet;
use crate::job::tombstone_option::TombstoneOption;
use crate::publish::inputs_at_open::InputsAtOpen;
use crate::publish::output_claim::{ExistingOutput, OutputClaim};
use crate::publish::output_id::OutputIds;
use crate::publish::quiet_directories::QuietDirectories;
use crate::read::rate_limiter::RateLimiter;

/// SSTables that the table has besides the inputs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Unknown: every tombstone is kept.
    #[default]
    Unknown,
    /// None: the inputs are the whole table on this node.
    Complete,
    /// Exactly these, each given by its `Data.db`.
    Overlapping(Vec<PathBuf>),
    /// SSTables of [`MergeOptions::overlapping`] that are not inputs.
    RestOfSet,
}

impl Scope {
    /// `Data.db` of the overlapping SSTables, if it names them.
    pub fn named(&self) -> &[PathBuf] {
        match self {
            Scope::Overlapping(paths) => paths,
            Scope::Unknown | Scope::Complete | Scope::RestOfSet => &[],
        }
    }
}

/// Compression of the output.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum OutputCompression {
    /// Compression of the newest input.
    #[default]
    AsNewestInput,
    /// Compressor and options of the newest input, with chunks of this many uncompressed bytes, a power of two.
    AsNewestInputInChunks(u32),
    /// No compression.
    None,
    /// These parameters.
    Params(CompressionParams),
}

/// Options of a merge.
#[derive(Clone, Debug)]
pub struct MergeOptions {
    /// `Data.db` of each input, in any order.
    pub inputs: Vec<PathBuf>,
    /// Output directory, created if it does not exist.
    pub output_directory: PathBuf,
    /// Treatment of SSTables that it already contains.
    pub existing_output: ExistingOutput,
    /// Claim on that directory, if the caller merges into it more than once or writes to it before the first
    /// merge. `None`: the merge claims it.
    pub claim: Option<Arc<OutputClaim>>,
    /// State of the inputs before the run, if the caller recorded it: it then compares them with it before anything is
    /// published. `None`: the merge does both.
    pub inputs_at_open: Option<Arc<InputsAtOpen>>,
    /// Directories of inputs that have not changed, to be shared by many merges in one directory.
    pub quiet_directories: QuietDirectories,
    /// SSTables that the table has besides the inputs.
    pub scope: Scope,
    /// Opened SSTables of `scope`, to be shared by the merges of one table.
    pub overlapping: OverlappingSet,
    /// Time at which TTL expiry is evaluated, seconds since 1970.
    pub now_s: i64,
    /// Deletions with a local deletion time before this, seconds since 1970, may be purged; `None` keeps all.
    pub gc_before_s: Option<i64>,
    /// Purge only if all inputs are repaired (`only_purge_repaired_tombstones`).
    pub only_purge_repaired: bool,
    /// Rows exist only as long as their own liveness: what remains of a row is dropped with it. For views whose key has
    /// a column from outside the base table's key ([`Table::strict_liveness`]).
    pub strict_liveness: bool,
    /// Expired cells and rows are written as they were read: not as tombstones, and not purged.
    pub keeps_expired: bool,
    /// Cells and rows lose their TTL before anything is reconciled or judged expired. Tombstones stay.
    pub strip_ttl: bool,
    /// Data of the inputs that is removed because the overlapping SSTables of `scope` shadow it; they are
    /// read along with the merge then.
    pub overlapping_tombstones: TombstoneOption,
    /// The table's schema: inputs must agree with it, the output has its types, and data of dropped columns
    /// is removed. `None` if unknown.
    pub table: Option<Table>,
    /// Version of the output; `None` for the newest version of the inputs, in `format`, and `nb` if all are
    /// older.
    pub version: Option<Version>,
    /// Ids of the outputs, which merges into one directory share; `None` for those after the ids of the inputs and of
    /// the SSTables in their directories and in the output directory.
    pub ids: Option<OutputIds>,
    /// Format of the output; `None` for that of `version`, or else of the newest input.
    pub format: Option<Format>,
    /// Compression of the output.
    pub compression: OutputCompression,
    /// False positive chance of the output's Bloom filter; `None` for that of the newest input.
    pub bloom_filter_fp_chance: Option<f64>,
    /// Number of keys per entry of the summary.
    pub min_index_interval: u32,
    /// Bytes after which a block of the row index ends; `None` for Cassandra's default, 64 KiB in
    /// BIG and 16 KiB in BTI.
    pub column_index_size: Option<u64>,
    /// I/O mode of the inputs.
    pub read_mode: ReadMode,
    /// I/O mode of the output.
    pub write_mode: WriteMode,
    /// Number of threads. The output is the same to the byte for any number.
    pub threads: usize,
    /// Memory for the metadata of the inputs and for buffers of all inputs and the output, bytes.
    pub memory_bytes: usize,
    /// Maximum descriptors for inputs; `None` for the number that the process may still open. If there are
    /// more inputs than these or the memory allow, some are merged into intermediate SSTables first.
    pub open_files: Option<u64>,
    /// Readahead per input, bytes; `None` for as much as the memory allows, up to 4 MiB.
    pub readahead_bytes: Option<usize>,
    /// Limit on the stored bytes of `Data.db` read per second, over all inputs and all merges that share it;
    /// `None` for no limit.
    pub rate_limiter: Option<Arc<RateLimiter>>,
    /// Where one output ends and the next begins.
    pub split: OutputSplit,
    /// Level in the statistics of the outputs; `None` for that of a single input that is not split, otherwise 0.
    pub level: Option<i32>,
    /// Approximate uncompressed bytes of all inputs per range; `None` for as many as the memory allows.
    pub range_bytes: Option<u64>,
}

impl MergeOptions {
    /// Whether tombstones or expired data may be dropped: `gc_before_s` is set and the scope is known.
    pub fn may_purge(&self) -> bool {
        self.gc_before_s.is_some() && self.scope != Scope::Unknown
    }

    /// `Data.db` of the overlapping SSTables. `inputs` are those of the merge.
    pub(crate) fn overlapping_paths(&self, inputs: impl Iterator<Item = PathBuf>) -> Vec<PathBuf> {
        match &self.scope {
            Scope::RestOfSet => {
                let others = self.overlapping.without(inputs);
                others.into_iter().map(|(path, _)| path).collect()
            }
            scope => scope.named().to_vec(),
        }
    }

    /// Returns options for merging `inputs` into `output_directory` with defaults for everything else:
    /// nothing is purged, modes are chosen by the file system, one thread per processor, 64 MiB of memory.
    pub fn new(inputs: Vec<PathBuf>, output_directory: impl Into<PathBuf>) -> MergeOptions {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        MergeOptions {
            inputs,
            output_directory: output_directory.into(),
            existing_output: ExistingOutput::Refuse,
            claim: None,
            inputs_at_open: None,
            quiet_directories: QuietDirectories::default(),
            scope: Scope::Unknown,
            overlapping: OverlappingSet::default(),
            now_s: now.unwrap_or_default().as_secs() as i64,
            gc_before_s: None,
            only_purge_repaired: false,
            strict_liveness: false,
            keeps_expired: false,
            strip_ttl: false,
            overlapping_tombstones: TombstoneOption::None,
            table: None,
            version: None,
            ids: None,
            format: None,
            compression: OutputCompression::AsNewestInput,
            bloom_filter_fp_chance: None,
            min_index_interval: DEFAULT_MIN_INDEX_INTERVAL,
            column_index_size: None,
            read_mode: ReadMode::Auto,
            write_mode: WriteMode::Auto,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: 64 << 20,
            open_files: None,
            readahead_bytes: None,
            rate_limiter: None,
            split: OutputSplit::None,
            level: None,
            range_bytes: None,
        }
    }
}
