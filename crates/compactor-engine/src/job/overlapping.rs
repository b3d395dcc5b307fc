//! SSTables of the table that are not inputs, and the limits that they impose on purging.
//!
//! A tombstone may still shadow data in an SSTable that is not merged. For each partition, the SSTables that
//! may have it, by key range and Bloom filter, limit purging to deletions older than all their data.
//!
//! Source: `CompactionController.getPurgeEvaluator`.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use compactor_io::{Io, ReadMode, lock};
use compactor_sstable::Component;
use compactor_sstable::bloom_filter::BloomFilter;
use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::partitioner::KeyHash;
use compactor_sstable::statistics::{EncodingStats, SerializationHeader};

use crate::error::Result;
use crate::input::header_union::{HeaderSource, union};
use crate::input::key_range::KeyRange;
use crate::input::sstable::{InputSstable, OPENED_AT_ONCE};
use crate::job::disjoint_chains::DisjointChains;
use crate::job::overlapping_sstable::OverlappingSstable;
use crate::read::parallel_map::parallel_map;
use crate::row::purge::{PurgeLimit, PurgeLimits};

/// SSTables that the table has besides the inputs.
#[derive(Debug)]
pub enum OutsideSstables {
    /// Unknown: other SSTables may exist, so no tombstone is purged.
    Unknown,
    /// Exactly these: none if the inputs are all SSTables of the table.
    Overlapping(DisjointChains),
}

/// SSTables of a table, shared by its merges: for each merge, those of others are the overlapping ones
/// ([`Scope::RestOfSet`](crate::job::Scope::RestOfSet)). Each SSTable is opened and validated once.
#[derive(Clone, Debug, Default)]
pub struct OverlappingSet {
    sstables: Arc<Mutex<Sstables>>,
}

#[derive(Debug, Default)]
struct Sstables {
    /// SSTables by the path of `Data.db`; `None` if not opened yet. The key is not a `PathBuf`, whose comparison
    /// by components is slower.
    by_path: BTreeMap<OsString, Option<Arc<OverlappingSstable>>>,
    /// Headers with different columns: a few, of tens of thousands of SSTables.
    headers: Vec<Arc<SerializationHeader>>,
}

impl OverlappingSet {
    /// Adds an SSTable without opening it.
    pub fn name(&self, path: &Path) {
        self.lock().by_path.entry(key(path)).or_default();
    }

    /// Returns all SSTables but these by the path of `Data.db`; `None` if not opened yet.
    pub(crate) fn without(
        &self,
        inputs: impl Iterator<Item = PathBuf>,
    ) -> Vec<(PathBuf, Option<Arc<OverlappingSstable>>)> {
        let inputs: BTreeSet<OsString> = inputs.map(OsString::from).collect();
        let sstables = self.lock();
        let others = (sstables.by_path.iter()).filter(|(path, _)| !inputs.contains(*path));
        let others = others.map(|(path, sstable)| (PathBuf::from(path), sstable.clone()));
        others.collect()
    }

    /// Returns all SSTables but these; opens those that have not been.
    ///
    /// # Errors
    /// As [`OverlappingSet::open`].
    pub(crate) fn open_without(
        &self,
        inputs: impl Iterator<Item = PathBuf>,
        io: &Io,
        mode: ReadMode,
    ) -> Result<Vec<Arc<OverlappingSstable>>> {
        let others = self.without(inputs).into_iter();
        let (known, named): (Vec<_>, Vec<_>) = others.partition(|(_, sstable)| sstable.is_some());
        let opened = parallel_map(&named, OPENED_AT_ONCE, |(path, _)| {
            self.open(io, path, mode)
        });
        let known = known.into_iter().filter_map(|(_, sstable)| sstable);
        known.map(Ok).chain(opened).collect()
    }

    /// Reads key range, Bloom filter and minimum timestamp of the SSTable whose `Data.db` is `path`, unless it has been
    /// opened.
    ///
    /// # Errors
    /// Damage, something unsupported, or a failed read.
    pub fn open(&self, io: &Io, path: &Path, mode: ReadMode) -> Result<Arc<OverlappingSstable>> {
        if let Some(known) = self.get(path) {
            return Ok(known);
        }
        // Two threads that open the same SSTable concurrently both do so; only one result is kept.
        let input = InputSstable::open(io, path, mode)?;
        let keys = KeyRange::of(io, &input, mode)?;
        let opened = OverlappingSstable::of(io, &input, keys, mode)?;
        Ok(self.insert(path, opened))
    }

    /// Adds an SSTable that has been opened for something else, so that it is not opened again. A damaged one is not
    /// added: opening it reports the damage.
    pub fn add(&self, io: &Io, input: &InputSstable, keys: &KeyRange, mode: ReadMode) {
        if let Ok(sstable) = OverlappingSstable::of(io, input, keys.clone(), mode) {
            self.insert(&input.data_path(), sstable);
        }
    }

    /// Returns an SSTable of the set.
    pub fn get(&self, path: &Path) -> Option<Arc<OverlappingSstable>> {
        self.lock().by_path.get(&key(path)).cloned().flatten()
    }

    fn insert(&self, path: &Path, mut sstable: OverlappingSstable) -> Arc<OverlappingSstable> {
        let mut sstables = self.lock();
        let Sstables { by_path, headers } = &mut *sstables;
        let known = headers
            .iter()
            .find(|known| has_columns_of(known, &sstable.header));
        match known {
            Some(known) => sstable.header = Arc::clone(known),
            None => headers.push(Arc::clone(&sstable.header)),
        }
        let entry = by_path.entry(key(path)).or_default();
        Arc::clone(entry.get_or_insert_with(|| Arc::new(sstable)))
    }

    fn lock(&self) -> MutexGuard<'_, Sstables> {
        lock(&self.sstables)
    }

    /// Removes an SSTable that the table no longer has.
    pub fn remove(&self, path: &Path) {
        self.lock().by_path.remove(&key(path));
    }
}

/// The path that [`InputSstable::data_path`] returns for an SSTable that was opened by this one: without `/./` before
/// the name.
fn key(path: &Path) -> OsString {
    match Descriptor::parse(path) {
        Ok(file) => file.descriptor.path(Component::Data).into_os_string(),
        Err(_) => path.as_os_str().to_owned(),
    }
}

/// Whether both are of the same columns, including those of the keys.
fn has_columns_of(a: &SerializationHeader, b: &SerializationHeader) -> bool {
    a.regular_columns == b.regular_columns
        && a.static_columns == b.static_columns
        && a.clustering_types == b.clustering_types
        && a.key_type == b.key_type
}

impl OutsideSstables {
    /// Exactly these.
    pub(crate) fn of(sstables: Vec<Arc<OverlappingSstable>>) -> OutsideSstables {
        OutsideSstables::Overlapping(DisjointChains::new(sstables))
    }

    /// The overlapping SSTables, if they are known.
    pub fn sstables(&self) -> &[Arc<OverlappingSstable>] {
        match self {
            OutsideSstables::Unknown => &[],
            OutsideSstables::Overlapping(sstables) => sstables.as_slice(),
        }
    }

    /// Memory of their Bloom filters, bytes.
    pub(crate) fn filter_bytes(&self) -> usize {
        let filters = self
            .sstables()
            .iter()
            .filter_map(|sstable| sstable.filter.as_ref());
        filters.map(BloomFilter::memory_bytes).sum()
    }

    /// Refuses SSTables that cannot be of the inputs' table: the absence of a partition in them implies nothing
    /// about what may be purged.
    ///
    /// # Errors
    /// Those of [`union`].
    pub fn refuse_other_table(&self, inputs: &[InputSstable]) -> Result<()> {
        let sstables = self.sstables();
        if sstables.is_empty() {
            return Ok(());
        }
        let mut before: Option<&Arc<SerializationHeader>> = None;
        let others = sstables.iter().filter(|sstable| {
            let before = before.replace(&sstable.header);
            !before.is_some_and(|before| Arc::ptr_eq(before, &sstable.header))
        });
        let others = others.map(|sstable| HeaderSource {
            descriptor: &sstable.descriptor,
            header: &sstable.header,
        });
        let inputs = inputs.iter().map(InputSstable::header_source);
        let all: Vec<HeaderSource<'_>> = inputs.chain(others).collect();
        union(&all, EncodingStats::default()).map(drop)
    }
}

impl PurgeLimits for OutsideSstables {
    fn limit(&self, key: &[u8], hash: KeyHash) -> PurgeLimit {
        match self {
            OutsideSstables::Unknown => PurgeLimit::KeepAll,
            OutsideSstables::Overlapping(sstables) => sstables
                .min_timestamp_of(key, hash)
                .map_or(PurgeLimit::Unlimited, PurgeLimit::Before),
        }
    }
}
