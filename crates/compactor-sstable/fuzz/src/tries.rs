//! The BTI format: Partitions.db and Rows.db.

use compactor_sstable::bti::partitions::PartitionIndex;
use compactor_sstable::bti::rows::RowIndex;
use compactor_sstable::data::clustering::{Kind, Prefix, ValueSpan};
use compactor_sstable::partitioner::{KeyHash, Partitioner};

use crate::components::clustering_types;
use crate::take;

/// Input: selection of the file, a number, and the file.
///
/// # Panics
/// If there are more entries than the file has bytes, or an entry is not found by the key that leads to it.
pub fn bti(mut data: &[u8]) {
    let Some([file, number]) = take(&mut data) else {
        return;
    };
    if file % 2 == 0 {
        partitions(data, number)
    } else {
        rows(data, number)
    }
}

fn partitions(data: &[u8], number: u8) {
    let Ok(index) = PartitionIndex::parse(data) else {
        return;
    };
    let keys = [
        (0, index.first_key),
        (i64::MAX, index.last_key),
        (i64::MIN, &[][..]),
    ];
    let partitioners = [
        Partitioner::Murmur3,
        Partitioner::Random,
        Partitioner::ByteOrdered,
    ];
    let lookups = keys.map(|(token, key)| {
        partitioners.map(|partitioner| {
            let hash = KeyHash {
                partitioner,
                token,
                h2: number.into(),
                ..KeyHash::default()
            };
            (hash, key, index.candidate(&hash, key))
        })
    });
    let mut entries = index.iter();
    let mut count = 0;
    while let Ok(Some(entry)) = entries.next_entry() {
        for (hash, key, found) in lookups.iter().flatten() {
            let is_here = entries.leads_here(hash, key);
            let expected = found.as_ref().map(|found| *found == Some(entry.position));
            assert_eq!(is_here.ok(), expected.ok());
        }
        count += 1;
        assert!(count <= data.len() && entries.prefix().len() <= data.len());
    }
}

fn rows(data: &[u8], number: u8) {
    // The relevant entry is usually the last one: its position is counted from the end.
    let position = data.len().saturating_sub(usize::from(number)) as u64;
    let Ok(index) = RowIndex::parse(data, position) else {
        return;
    };
    let types = clustering_types(number);
    let spans: &[ValueSpan] = &[];
    for kind in [Kind::Clustering, Kind::InclStartBound, Kind::ExclEndBound] {
        let _ = index.floor(
            &types,
            Prefix {
                kind,
                base: data,
                spans,
            },
        );
    }
    let mut blocks = index.blocks();
    let mut count = 0;
    while let Ok(Some(_)) = blocks.next_block() {
        count += 1;
        assert!(count <= data.len() && blocks.separator().len() <= data.len());
    }
}
