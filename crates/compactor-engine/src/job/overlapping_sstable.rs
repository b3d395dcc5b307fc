//! An SSTable that limits purging but is not merged.

use std::sync::{Arc, Mutex, OnceLock};

use compactor_io::{Io, ReadMode, lock};
use compactor_sstable::bloom_filter::BloomFilter;
use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::partitioner::{KeyHash, Partitioner};
use compactor_sstable::statistics::SerializationHeader;
use compactor_sstable::{Component, Error as FormatError};

use crate::error::{Error, Result};
use crate::input::key_range::KeyRange;
use crate::input::sidecar_facts::SidecarFacts;
use crate::input::sstable::InputSstable;

/// An SSTable that limits purging but is not merged.
#[derive(Debug)]
pub struct OverlappingSstable {
    /// Directory, version and id.
    pub descriptor: Descriptor,
    /// Uncompressed length of its `Data.db`.
    pub data_len: u64,
    /// The table's partitioner.
    pub partitioner: Partitioner,
    /// First and last partition.
    pub keys: KeyRange,
    /// Minimum timestamp, microseconds since 1970.
    pub min_timestamp: i64,
    /// Maximum local deletion time, seconds since 1970; the largest possible value if there is live data.
    pub max_local_deletion_time_s: i64,
    /// Whether it may have cells or rows with a TTL.
    pub may_have_ttl: bool,
    pub(crate) filter: Option<BloomFilter>,
    /// Only its columns are used. SSTables of a set that have the same ones share it.
    pub(crate) header: Arc<SerializationHeader>,
    pub(crate) checked: OnceLock<SidecarFacts>,
    pub(crate) checking: Mutex<()>,
}

impl OverlappingSstable {
    pub(crate) fn of(
        io: &Io,
        input: &InputSstable,
        keys: KeyRange,
        mode: ReadMode,
    ) -> Result<OverlappingSstable> {
        let descriptor = &input.descriptor;
        let stats = &input.statistics.stats;
        if stats.has_compression_ratio(descriptor.version) && !input.matches_compression_ratio() {
            // Its times determine what may be purged, and nothing else here would distinguish them from those
            // of another SSTable.
            let found = input.statistics.stats.compression_ratio.to_string();
            let expected = "the ratio computed from CompressionInfo.db";
            let error = FormatError::corrupt("stats.compression_ratio", 0, expected, found);
            return Err(Error::format(descriptor, Component::Statistics)(error));
        }
        let filter = if input.has(Component::Filter) {
            let bytes = input.read_component(io, mode, Component::Filter)?;
            let filter = BloomFilter::parse(&bytes, descriptor.version);
            Some(filter.map_err(Error::format(descriptor, Component::Filter))?)
        } else {
            None
        };
        Ok(OverlappingSstable {
            descriptor: descriptor.clone(),
            data_len: input.data_len(),
            partitioner: input.partitioner,
            keys,
            min_timestamp: input.statistics.stats.min_timestamp,
            max_local_deletion_time_s: input.max_local_deletion_time_s(),
            may_have_ttl: input.may_have_ttl(),
            filter,
            header: Arc::new(input.statistics.header.clone()),
            checked: OnceLock::new(),
            checking: Mutex::new(()),
        })
    }

    /// Runs `check` on its components unless that has been done; waits for another merge that is running it.
    ///
    /// # Errors
    /// Those of `check`, which the next call repeats.
    pub fn check_once<E>(&self, check: impl FnOnce() -> Result<SidecarFacts, E>) -> Result<(), E> {
        let _checking = lock(&self.checking);
        if self.checked().is_none() {
            self.set_checked(check()?);
        }
        Ok(())
    }

    /// Notes that its components have been validated, and what they state about its data.
    pub fn set_checked(&self, facts: SidecarFacts) {
        // Every check of the same files finds the same.
        let _ = self.checked.set(facts);
    }

    /// Facts that its components state about its data, if they have been validated. Does not wait for a merge that is doing
    /// so.
    pub fn checked(&self) -> Option<SidecarFacts> {
        self.checked.get().copied()
    }

    pub(crate) fn may_hold(&self, key: &[u8], hash: KeyHash) -> bool {
        self.keys.contains((hash.position(), key))
            && self
                .filter
                .as_ref()
                .is_none_or(|f| f.may_contain(hash.h1, hash.h2))
    }
}
