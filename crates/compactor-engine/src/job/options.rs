//! What a merge is asked for.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use compactor_io::{ReadMode, WriteMode};
use compactor_sstable::big::summary::DEFAULT_MIN_INDEX_INTERVAL;
use compactor_sstable::compression::info::CompressionParams;
use compactor_sstable::schema::Table;
use compactor_sstable::sstable_id::SstableId;
use compactor_sstable::{Format, Version};

use crate::job::overlapping::OverlappingSet;
use crate::job::tombstone_option::TombstoneOption;
use crate::publish::output_claim::{ExistingOutput, OutputClaim};
use crate::read::rate_limiter::RateLimiter;

/// What else the table has besides the inputs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Not known: every tombstone is kept.
    #[default]
    Unknown,
    /// Nothing: the inputs are the whole table on this node.
    Complete,
    /// Exactly these, each named by its `Data.db`.
    Overlapping(Vec<PathBuf>),
}

impl Scope {
    /// `Data.db` of the SSTables that are named.
    pub fn named(&self) -> &[PathBuf] {
        match self {
            Scope::Overlapping(paths) => paths,
            Scope::Unknown | Scope::Complete => &[],
        }
    }
}

/// How the output is compressed.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum OutputCompression {
    /// As the newest input is.
    #[default]
    AsNewestInput,
    /// Not at all.
    None,
    /// Like this.
    Params(CompressionParams),
}

/// What to merge and how.
#[derive(Clone, Debug)]
pub struct MergeOptions {
    /// `Data.db` of each input, in any order.
    pub inputs: Vec<PathBuf>,
    /// Where the output goes; made if it does not exist.
    pub output_directory: PathBuf,
    /// What is to become of SSTables that are there already.
    pub existing_output: ExistingOutput,
    /// That directory, claimed by whoever merges into it more than once, or has something else to do before
    /// the first merge. `None`: the merge claims it.
    pub claim: Option<Arc<OutputClaim>>,
    /// What else the table has.
    pub scope: Scope,
    /// Where SSTables of `scope` are opened: to be shared by merges of one table.
    pub overlapping: OverlappingSet,
    /// Time at which TTL expiry is evaluated, seconds since 1970.
    pub now_s: i64,
    /// Deletions with a local deletion time before this many seconds may be purged; `None` keeps all.
    pub gc_before_s: Option<i64>,
    /// Only what is repaired is purged: nothing, unless all inputs are
    /// (`only_purge_repaired_tombstones`).
    pub only_purge_repaired: bool,
    /// What of the inputs is removed since the overlapping SSTables of `scope` shadow it; they are read
    /// beside the merge then.
    pub overlapping_tombstones: TombstoneOption,
    /// The table's schema: inputs must agree with it, the output has its types, and what was dropped
    /// with a column goes. `None` where it is not known.
    pub table: Option<Table>,
    /// Version of the output; `None` for the newest of the inputs, in `format`, and
    /// `nb` if all are older.
    pub version: Option<Version>,
    /// Id of the output; `None` for one behind those of the inputs and of what lies around them and
    /// in the output directory.
    pub id: Option<SstableId>,
    /// Format of the output; `None` for that of `version`, otherwise of the newest input.
    pub format: Option<Format>,
    /// Compression of the output.
    pub compression: OutputCompression,
    /// False positive chance of the output's Bloom filter; `None` for the newest input's.
    pub bloom_filter_fp_chance: Option<f64>,
    /// Every how many keys the summary takes one.
    pub min_index_interval: u32,
    /// Bytes after which a block of the row index ends; `None` for Cassandra's default, 64 KiB in
    /// BIG and 16 KiB in BTI.
    pub column_index_size: Option<u64>,
    /// How inputs are read.
    pub read_mode: ReadMode,
    /// How the output is written.
    pub write_mode: WriteMode,
    /// Threads that merge; the output is the same to the byte for any number of them.
    pub threads: usize,
    /// Bytes for buffers, over all inputs and the output, and for what is known of the inputs.
    pub memory_bytes: usize,
    /// Descriptors that the inputs may take; `None` for what the process may open besides what it has. With
    /// more inputs than these or the memory allow, some are merged first, into SSTables that nobody
    /// sees.
    pub open_files: Option<u64>,
    /// Bytes read ahead per input; `None` for what the memory allows, up to 4 MiB.
    pub readahead_bytes: Option<usize>,
    /// Lets so many stored bytes of `Data.db` through per second, over all inputs and over all merges that
    /// have it; `None` for no limit.
    pub rate_limiter: Option<Arc<RateLimiter>>,
    /// Bytes of `Data.db` on disk after which the next partition begins another output: they are
    /// exceeded by at most one partition and a chunk (`MaxSSTableSizeWriter`). `None` for one output.
    pub max_sstable_size: Option<u64>,
    /// Uncompressed bytes of all inputs in a range, roughly; `None` for what the memory allows.
    pub range_bytes: Option<u64>,
    /// As many outputs, of about as much data each, one behind the other in the ring. Where they end depends
    /// on nothing but the inputs.
    pub outputs: NonZeroUsize,
}

impl MergeOptions {
    /// True if tombstones or expired data may be dropped because of what the caller says that the table
    /// has besides the inputs.
    pub fn may_purge(&self) -> bool {
        self.gc_before_s.is_some() && self.scope != Scope::Unknown
    }

    /// Merges `inputs` into `output_directory` with everything else at its default: nothing purged,
    /// modes chosen by the file system, one thread per processor, 64 MiB of buffers.
    pub fn new(inputs: Vec<PathBuf>, output_directory: impl Into<PathBuf>) -> MergeOptions {
        MergeOptions {
            inputs,
            output_directory: output_directory.into(),
            existing_output: ExistingOutput::Refuse,
            claim: None,
            scope: Scope::Unknown,
            overlapping: OverlappingSet::default(),
            now_s: unix_now().as_secs() as i64,
            gc_before_s: None,
            only_purge_repaired: false,
            overlapping_tombstones: TombstoneOption::None,
            table: None,
            version: None,
            id: None,
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
            max_sstable_size: None,
            range_bytes: None,
            outputs: NonZeroUsize::MIN,
        }
    }
}

fn unix_now() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}
