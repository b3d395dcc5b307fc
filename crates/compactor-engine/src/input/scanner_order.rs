//! Order of the inputs' scanners in Cassandra's compaction.
//!
//! The inputs of a compaction are a `HashSet` of readers. Its order is that of the hashes of their
//! descriptors (version, id, keyspace and table, not the directory). Inputs in the same bucket are in
//! insertion order, which depends on the compaction strategy and, after a restart, on the threads that open
//! SSTables: here the older one comes first. Each level above level 0 has a single scanner.
//!
//! Source: 5.0 and 6.0-alpha2, `LifecycleTransaction.originals`, `Descriptor.hashCode`, `Version.hashCode`,
//! `AbstractStrategyHolder.GroupedSSTableContainer`, `LeveledCompactionStrategy.getScanners`. In 4.1 the hash
//! includes the identity of an object, and in 3.11 that and the directory.

use std::path::Path;

use compactor_sstable::descriptor::{Descriptor, TableDirectory};
use compactor_sstable::sstable_id::SstableId;

use crate::input::sstable::InputSstable;

/// Buckets of a `HashSet` created without a capacity.
const MIN_BUCKETS: usize = 16;

/// Returns the numbers of a merge's inputs, grouped by scanner, in the order of the scanners.
///
/// `expired` are inputs of the compaction that are not read. If the table's name is not known, it is taken
/// from the directories.
pub(crate) fn scanner_order(
    inputs: &[InputSstable],
    expired: &[InputSstable],
    table: Option<(&str, &str)>,
) -> Vec<Vec<u32>> {
    let known = table.map(|(keyspace, table)| (keyspace.to_owned(), table.to_owned()));
    let all = inputs.iter().chain(expired);
    let mut came: Vec<(usize, &Descriptor)> = all.map(|i| &i.descriptor).enumerate().collect();
    came.sort_by_key(|(_, descriptor)| (descriptor.id, &descriptor.directory));
    let hashed = came.into_iter().map(|(number, descriptor)| {
        let name = known
            .clone()
            .unwrap_or_else(|| name_of(&descriptor.directory));
        (descriptor_hash(descriptor, &name), number)
    });
    let read = hash_set_order(hashed.collect())
        .into_iter()
        .filter(|(_, number)| *number < inputs.len());
    // Inputs that are read are in a set of their own, which may have fewer buckets.
    let mut read = hash_set_order(read.collect());
    let level = |number: usize| inputs[number].statistics.stats.level;
    read.sort_by_key(|(_, number)| level(*number));
    let mut scanners: Vec<Vec<u32>> = Vec::with_capacity(read.len());
    for (_, number) in read {
        match scanners.last_mut() {
            Some(last) if level(number) > 0 && level(last[0] as usize) == level(number) => {
                last.push(number as u32);
            }
            _ => scanners.push(vec![number as u32]),
        }
    }
    scanners
}

/// Keyspace and table that Cassandra derives from the directory; empty if it is not a table's directory.
fn name_of(directory: &Path) -> (String, String) {
    let absolute = std::path::absolute(directory);
    let parsed = TableDirectory::parse(absolute.as_deref().unwrap_or(directory));
    match parsed {
        None => (String::new(), String::new()),
        Some(parsed) => {
            let table = match parsed.index {
                None => parsed.table,
                Some(index) => format!("{}.{index}", parsed.table),
            };
            (parsed.keyspace, table)
        }
    }
}

/// Sorts entries into the iteration order of a `HashSet` to which they were added one after the other.
fn hash_set_order<T>(mut entries: Vec<(i32, T)>) -> Vec<(i32, T)> {
    let mut buckets = MIN_BUCKETS;
    while entries.len() > buckets / 4 * 3 {
        buckets *= 2;
    }
    entries.sort_by_key(|(hash, _)| {
        let hash = *hash as u32;
        (hash ^ (hash >> 16)) as usize & (buckets - 1)
    });
    entries
}

/// `Descriptor.hashCode`.
fn descriptor_hash(descriptor: &Descriptor, (keyspace, table): &(String, String)) -> i32 {
    let version = hash_of_list([
        hash_of_string(&descriptor.version.to_string()),
        hash_of_string(descriptor.format().name()),
    ]);
    hash_of_list([
        version,
        hash_of_id(descriptor.id),
        hash_of_string(keyspace),
        hash_of_string(table),
    ])
}

/// `SequenceBasedSSTableId.hashCode`, `UUIDBasedSSTableId.hashCode`.
fn hash_of_id(id: SstableId) -> i32 {
    hash_of_list([match id {
        SstableId::Sequence(number) => number as i32,
        SstableId::Uuid { ticks, lsb } => {
            let ticks = ticks ^ (ticks >> 32).wrapping_mul(31);
            ticks.wrapping_add(lsb ^ (lsb >> 32)) as i32
        }
    }])
}

/// `Arrays.hashCode` of elements with these hashes.
fn hash_of_list(hashes: impl IntoIterator<Item = i32>) -> i32 {
    hashes
        .into_iter()
        .fold(1, |all, hash| 31i32.wrapping_mul(all).wrapping_add(hash))
}

/// `String.hashCode`.
fn hash_of_string(text: &str) -> i32 {
    text.encode_utf16().fold(0, |all, unit| {
        31i32.wrapping_mul(all).wrapping_add(i32::from(unit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_of_java() {
        assert_eq!(hash_of_string(""), 0);
        assert_eq!(hash_of_string("big"), 97536);
        assert_eq!(hash_of_list([1, 2]), 994);
        // 31 + the number, as computed by `Objects.hash`.
        assert_eq!(hash_of_id(SstableId::Sequence(7)), 38);
    }

    #[test]
    fn buckets_grow_when_three_quarters_are_used() {
        let order = |hashes: &[i32]| {
            let entries = hashes.iter().map(|hash| (*hash, ())).collect();
            let order = hash_set_order(entries);
            order.into_iter().map(|(hash, ())| hash).collect::<Vec<_>>()
        };
        // 16 and 0 are in the same of sixteen buckets, in insertion order.
        assert_eq!(order(&[16, 3, 0]), [16, 0, 3]);
        let many: Vec<i32> = [16].into_iter().chain(0..12).collect();
        assert_eq!(order(&many).last(), Some(&16));
        // The upper half of the hash is mixed in.
        assert_eq!(order(&[1, 1 << 16 | 2, 0]), [0, 1, 1 << 16 | 2]);
    }
}
