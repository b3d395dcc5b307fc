//! SSTables of a read, by the ranges and Bloom filters of the files.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use compactor::Result;
use compactor::compact::replay::ReplayedSstable;
use compactor_engine::input::{InputSstable, KeyRange};
use compactor_io::{Io, ReadMode};
use compactor_sstable::bloom_filter::BloomFilter;
use compactor_sstable::partitioner::Partitioner;

use super::flushes::key;
use crate::point_read::filter_of;

/// The parts of an SSTable that a node keeps in memory.
#[derive(Debug)]
struct Known {
    range: KeyRange,
    filter: Option<BloomFilter>,
}

/// Sums over the rows that were looked up.
#[derive(Debug, Default)]
pub(super) struct Reads {
    rows: u64,
    point: u64,
    range: u64,
    known: HashMap<PathBuf, Known>,
}

impl Reads {
    /// Looks up rows in the SSTables of the table at present.
    ///
    /// # Errors
    /// An SSTable that cannot be read.
    pub(super) fn look_up(
        &mut self,
        io: &Io,
        sstables: &[ReplayedSstable],
        rows: impl Iterator<Item = u64>,
    ) -> Result<()> {
        let mut present = HashMap::with_capacity(sstables.len());
        for sstable in sstables {
            let known = match self.known.remove(&sstable.data_path) {
                Some(known) => known,
                None => Known::open(io, &sstable.data_path)?,
            };
            present.insert(sstable.data_path.clone(), known);
        }
        self.known = present;
        for row in rows {
            let key = key(row).to_be_bytes();
            let hash = Partitioner::Murmur3.hash_key(&key);
            self.rows += 1;
            for known in self.known.values() {
                if !known.range.contains((hash.position(), &key)) {
                    continue;
                }
                self.range += 1;
                let filter = known.filter.as_ref();
                self.point += u64::from(filter.is_none_or(|f| f.may_contain_key(&hash)));
            }
        }
        Ok(())
    }

    /// SSTables whose range and filter have the partition of a row, and those that cover its token, on average.
    pub(super) fn per_row(&self) -> [f64; 2] {
        [self.point, self.range].map(|sum| sum as f64 / self.rows.max(1) as f64)
    }
}

impl Known {
    fn open(io: &Io, data_path: &Path) -> Result<Known> {
        let input = InputSstable::open(io, data_path, ReadMode::Buffered)?;
        Ok(Known {
            range: KeyRange::of(io, &input, ReadMode::Buffered)?,
            filter: filter_of(io, &input)?,
        })
    }
}
