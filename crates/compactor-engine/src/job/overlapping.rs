//! SSTables of the table that are not inputs, and the limits that they impose on purging.
//!
//! A tombstone may still shadow data in an SSTable that is not merged. For each partition, the SSTables that
//! may have it, by key range and Bloom filter, limit purging to deletions older than all their data.
//!
//! Source: `CompactionController.getPurgeEvaluator`.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use compactor_io::{Io, ReadMode};
use compactor_sstable::bloom_filter::BloomFilter;
use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::partitioner::{KeyHash, Partitioner};
use compactor_sstable::statistics::{EncodingStats, SerializationHeader};
use compactor_sstable::{Component, Error as FormatError};

use crate::error::{Error, Result};
use crate::input::component_file::read_small;
use crate::input::component_list::ForeignNames;
use crate::input::header_union::{HeaderSource, union};
use crate::input::key_range::KeyRange;
use crate::input::sstable::InputSstable;
use crate::row::purge::{PurgeLimit, PurgeLimits};

/// SSTables that the table has besides the inputs.
#[derive(Debug)]
pub enum OutsideSstables {
    /// Unknown: other SSTables may exist, so no tombstone is purged.
    Unknown,
    /// None: the inputs are all SSTables of the table.
    None,
    /// Exactly these.
    Overlapping(Vec<Arc<OverlappingSstable>>),
}

/// An SSTable that limits purging but is not merged.
#[derive(Debug)]
pub struct OverlappingSstable {
    partitioner: Partitioner,
    keys: KeyRange,
    filter: Option<BloomFilter>,
    min_timestamp: i64,
    max_local_deletion_time_s: i64,
    may_have_ttl: bool,
    header: SerializationHeader,
    descriptor: Descriptor,
    statistics_path: PathBuf,
    data_len: u64,
    is_checked: AtomicBool,
    checking: Mutex<()>,
}

/// An SSTable that may be read for the tombstones it contains.
#[derive(Debug)]
pub(crate) struct TombstoneSource {
    pub(crate) keys: KeyRange,
    pub(crate) sstable: InputSstable,
}

/// Cache of opened overlapping SSTables and of directory listings, shared by the merges of one table: each SSTable is
/// opened and validated once, and each directory listed once.
#[derive(Clone, Debug, Default)]
pub struct OverlappingSet {
    opened: Arc<Opened>,
}

#[derive(Debug, Default)]
struct Opened {
    names: ForeignNames,
    /// By the path of `Data.db`. Not as a `PathBuf`, whose hash takes its components apart: every merge looks up
    /// all SSTables of the table.
    sstables: Mutex<HashMap<OsString, Arc<OverlappingSstable>>>,
}

impl OverlappingSet {
    /// Opens an SSTable as [`OverlappingSstable::open`], unless it has been opened.
    ///
    /// # Errors
    /// As [`OverlappingSstable::open`].
    pub fn open(&self, io: &Io, path: &Path, mode: ReadMode) -> Result<Arc<OverlappingSstable>> {
        let lock = || {
            self.opened
                .sstables
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        if let Some(known) = lock().get(path.as_os_str()) {
            return Ok(Arc::clone(known));
        }
        // Two threads that open the same SSTable concurrently both do so; only one result is kept.
        let opened = OverlappingSstable::open_listed(io, path, mode, &self.opened.names)?;
        Ok(Arc::clone(
            lock()
                .entry(path.as_os_str().to_owned())
                .or_insert_with(|| Arc::new(opened)),
        ))
    }

    /// Listings of directories.
    pub(crate) fn names(&self) -> &ForeignNames {
        &self.opened.names
    }

    /// Removes an SSTable that no longer exists.
    pub fn forget(&self, path: &Path) {
        let mut sstables = self
            .opened
            .sstables
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        sstables.remove(path.as_os_str());
    }
}

impl OverlappingSstable {
    /// Reads key range, Bloom filter and minimum timestamp of the SSTable whose `Data.db` is `path`.
    ///
    /// # Errors
    /// Damage, something unsupported, or a failed read.
    pub fn open(io: &Io, path: &Path, mode: ReadMode) -> Result<OverlappingSstable> {
        OverlappingSstable::open_listed(io, path, mode, &ForeignNames::default())
    }

    fn open_listed(
        io: &Io,
        path: &Path,
        mode: ReadMode,
        names: &ForeignNames,
    ) -> Result<OverlappingSstable> {
        let input = InputSstable::open_listed(io, path, mode, names)?;
        let descriptor = &input.descriptor;
        let read = |component| read_small(io, mode, &descriptor.path(component));
        let at = |component: Component| {
            let path = descriptor.path(component);
            move |e: FormatError| Error::Format(e.with_file(&path, component))
        };
        if descriptor.version.has_metadata_checksum() && !input.matches_compression_ratio() {
            // Its times determine what may be purged, and nothing else here would distinguish them from those
            // of another SSTable.
            let found = input.statistics.stats.compression_ratio.to_string();
            let expected = "the ratio computed from CompressionInfo.db";
            let error = FormatError::corrupt("stats.compression_ratio", 0, expected, found);
            return Err(at(Component::Statistics)(error));
        }
        let keys = KeyRange::of(io, &input, mode)?;
        let filter = if input
            .components
            .iter()
            .any(|(c, _)| *c == Component::Filter)
        {
            let bytes = read(Component::Filter)?;
            Some(BloomFilter::parse(&bytes, descriptor.version).map_err(at(Component::Filter))?)
        } else {
            None
        };
        let data_len = input.data_len();
        Ok(OverlappingSstable {
            partitioner: input.partitioner,
            keys,
            filter,
            min_timestamp: input.statistics.stats.min_timestamp,
            max_local_deletion_time_s: input.statistics.stats.max_local_deletion_time,
            may_have_ttl: input.may_have_ttl(),
            header: input.statistics.header,
            statistics_path: descriptor.path(Component::Statistics),
            descriptor: input.descriptor,
            data_len,
            is_checked: AtomicBool::new(false),
            checking: Mutex::new(()),
        })
    }

    /// Runs `check` on its components unless that has been done; waits for another merge that is running it.
    ///
    /// # Errors
    /// Those of `check`, which the next call repeats.
    pub fn check_once<E>(&self, check: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        let _checking = self.checking.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_checked() {
            check()?;
            self.is_checked.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// Whether its components have been validated. Does not wait for a merge that is doing so.
    pub fn is_checked(&self) -> bool {
        self.is_checked.load(Ordering::Acquire)
    }

    /// Directory, version and id.
    pub fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    /// Uncompressed length of its `Data.db`.
    pub fn data_len(&self) -> u64 {
        self.data_len
    }

    /// The table's partitioner.
    pub fn partitioner(&self) -> Partitioner {
        self.partitioner
    }

    /// Minimum timestamp, microseconds since 1970.
    pub fn min_timestamp(&self) -> i64 {
        self.min_timestamp
    }

    /// Maximum local deletion time, seconds since 1970; the largest possible value if there is live data.
    pub fn max_local_deletion_time_s(&self) -> i64 {
        self.max_local_deletion_time_s
    }

    /// Whether it may have cells or rows with a TTL.
    pub fn may_have_ttl(&self) -> bool {
        self.may_have_ttl
    }

    /// First and last partition.
    pub fn keys(&self) -> &KeyRange {
        &self.keys
    }

    fn may_hold(&self, key: &[u8], hash: KeyHash) -> bool {
        self.keys.contains((hash.position(), key))
            && self
                .filter
                .as_ref()
                .is_none_or(|f| f.may_contain(hash.h1, hash.h2))
    }

    /// Opens it to be read for its tombstones.
    ///
    /// # Errors
    /// Those of [`InputSstable::open`].
    pub(crate) fn tombstone_source(&self, io: &Io, mode: ReadMode) -> Result<TombstoneSource> {
        Ok(TombstoneSource {
            keys: self.keys.clone(),
            sstable: InputSstable::open(io, &self.descriptor.path(Component::Data), mode)?,
        })
    }
}

impl OutsideSstables {
    /// Refuses SSTables that cannot be of the inputs' table: the partitions that they do not have say nothing
    /// about what may be purged.
    ///
    /// # Errors
    /// Those of [`union`].
    pub fn refuse_other_table(&self, inputs: &[HeaderSource<'_>]) -> Result<()> {
        let OutsideSstables::Overlapping(sstables) = self else {
            return Ok(());
        };
        let others = sstables.iter().map(|sstable| HeaderSource {
            path: &sstable.statistics_path,
            header: &sstable.header,
        });
        let all: Vec<HeaderSource<'_>> = inputs.iter().copied().chain(others).collect();
        union(&all, EncodingStats::default()).map(drop)
    }
}

impl PurgeLimits for OutsideSstables {
    fn limit(&self, key: &[u8], hash: KeyHash) -> PurgeLimit {
        match self {
            OutsideSstables::Unknown => PurgeLimit::KeepAll,
            OutsideSstables::None => PurgeLimit::Unlimited,
            OutsideSstables::Overlapping(sstables) => sstables
                .iter()
                .filter(|s| s.may_hold(key, hash))
                .map(|s| s.min_timestamp)
                .min()
                .map_or(PurgeLimit::Unlimited, PurgeLimit::Before),
        }
    }
}
