//! SSTables that limit purging, ordered for the lookup of a partition.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::sync::Arc;

use compactor_sstable::partitioner::KeyHash;

use crate::job::overlapping_sstable::OverlappingSstable;

/// SSTables that are not merged, in chains of ascending key ranges that do not overlap. A partition is looked up in each
/// chain instead of in each SSTable: the thousands of a level are one chain. Where all overlap, few chains are searched:
/// those with the least timestamps come first, and of a thousand Bloom filters some match by chance.
#[derive(Debug)]
pub struct DisjointChains {
    all: Vec<Arc<OverlappingSstable>>,
    chains: Vec<Chain>,
}

#[derive(Debug)]
struct Chain {
    /// Its SSTables among all.
    sstables: Range<usize>,
    /// Minimum timestamp of all its SSTables.
    min_timestamp: i64,
}

impl DisjointChains {
    pub(crate) fn new(mut sstables: Vec<Arc<OverlappingSstable>>) -> DisjointChains {
        sstables.sort_by(|a, b| a.keys.first().cmp(&b.keys.first()));
        let mut chains: Vec<Vec<Arc<OverlappingSstable>>> = Vec::new();
        // Last key and number of each chain, that with the least key at the top.
        let mut ends = BinaryHeap::new();
        for sstable in &sstables {
            let least = ends.peek();
            let before = least.filter(|Reverse((last, _))| *last < sstable.keys.first());
            let number = match before.map(|Reverse((_, number))| *number) {
                Some(number) => {
                    ends.pop();
                    number
                }
                None => {
                    chains.push(Vec::new());
                    chains.len() - 1
                }
            };
            ends.push(Reverse((sstable.keys.last(), number)));
            chains[number].push(Arc::clone(sstable));
        }
        let min_timestamp = |chain: &Vec<Arc<OverlappingSstable>>| {
            let timestamps = chain.iter().map(|sstable| sstable.min_timestamp);
            timestamps.min().unwrap_or(i64::MAX)
        };
        chains.sort_by_key(min_timestamp);
        let mut end = 0;
        let placed = chains.iter().map(|chain| {
            let start = end;
            end += chain.len();
            Chain {
                sstables: start..end,
                min_timestamp: min_timestamp(chain),
            }
        });
        DisjointChains {
            chains: placed.collect(),
            all: chains.into_iter().flatten().collect(),
        }
    }

    pub(crate) fn as_slice(&self) -> &[Arc<OverlappingSstable>] {
        &self.all
    }

    /// Least of the minimum timestamps of those that may have the partition.
    pub(crate) fn min_timestamp_of(&self, key: &[u8], hash: KeyHash) -> Option<i64> {
        let place = (hash.position(), key);
        let mut least: Option<i64> = None;
        for chain in &self.chains {
            if least.is_some_and(|least| least <= chain.min_timestamp) {
                break;
            }
            let sstables = &self.all[chain.sstables.clone()];
            let begun = sstables.partition_point(|sstable| sstable.keys.first() <= place);
            let near = sstables[..begun].last().filter(|s| s.may_hold(key, hash));
            let timestamps = least.into_iter().chain(near.map(|s| s.min_timestamp));
            least = timestamps.min();
        }
        least
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, OnceLock};

    use compactor_sstable::Version;
    use compactor_sstable::descriptor::Descriptor;
    use compactor_sstable::partitioner::Partitioner;
    use compactor_sstable::sstable_id::SstableId;
    use compactor_sstable::statistics::{EncodingStats, HeaderType, SerializationHeader};
    use compactor_sstable::types::CqlType;

    use super::*;
    use crate::input::key_range::KeyRange;

    const PARTITIONER: Partitioner = Partitioner::ByteOrdered;

    /// An SSTable with the keys `first..=last`, and this minimum timestamp.
    fn sstable(first: u16, last: u16, min_timestamp: i64) -> Arc<OverlappingSstable> {
        let key = |number: u16| number.to_be_bytes().to_vec();
        Arc::new(OverlappingSstable {
            descriptor: Descriptor::new("table", Version::Oa, SstableId::Sequence(1)),
            data_len: 0,
            partitioner: PARTITIONER,
            keys: KeyRange::new(PARTITIONER, key(first), key(last)),
            min_timestamp,
            max_local_deletion_time_s: i64::MAX,
            may_have_ttl: false,
            filter: None,
            header: Arc::new(SerializationHeader {
                encoding_stats: EncodingStats::default(),
                key_type: HeaderType::new(CqlType::Bytes),
                clustering_types: Vec::new(),
                static_columns: Vec::new(),
                regular_columns: Vec::new(),
            }),
            checked: OnceLock::new(),
            checking: Mutex::new(()),
        })
    }

    #[test]
    fn a_level_is_searched_and_not_scanned() {
        let level = (0..1000).map(|i| sstable(4 * i + 1, 4 * i + 3, 600 + i64::from(i)));
        let level: Vec<_> = level.rev().collect();
        // The first chain by keys has the second timestamps, and the last the least.
        let (wide, narrow) = (sstable(0, 3000, 500), sstable(1998, 2001, 2));
        let touching = sstable(3000, 3990, 601);
        let all = level.iter().chain([&wide, &narrow, &touching]).cloned();
        let all: Vec<_> = all.collect();
        assert_eq!(DisjointChains::new(level).chains.len(), 1);
        let sstables = DisjointChains::new(all.clone());
        assert_eq!(
            (sstables.chains.len(), sstables.as_slice().len()),
            (3, 1003)
        );
        for key in (0..4010u16).map(u16::to_be_bytes) {
            let hash = PARTITIONER.hash_key(&key);
            let holding = all.iter().filter(|s| s.may_hold(&key, hash));
            let expected = holding.map(|s| s.min_timestamp).min();
            assert_eq!(sstables.min_timestamp_of(&key, hash), expected, "{key:?}");
        }
        let none = DisjointChains::new(Vec::new());
        assert_eq!(
            none.min_timestamp_of(b"k", PARTITIONER.hash_key(b"k")),
            None
        );
    }
}
