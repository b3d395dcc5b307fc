//! Damaged index files: an error or a result, but never a panic or an endless loop.

use compactor_sstable::bti::partitions::{PartitionIndex, PartitionPosition};
use compactor_sstable::bti::rows::RowIndex;
use compactor_sstable::data::clustering::{Kind, Prefix};
use compactor_sstable::partitioner::KeyHash;
use compactor_sstable::types::CqlType;
use proptest::prelude::*;

use super::cassandra::{names, read};

/// Runs all lookups in `Partitions.db`.
fn look_up_partitions(bytes: &[u8]) -> Vec<u64> {
    let mut rows = Vec::new();
    let Ok(index) = PartitionIndex::parse(bytes) else {
        return rows;
    };
    for key in [index.first_key, index.last_key, b"", b"\xff\xff"] {
        for token in [0, i64::MIN, i64::MAX, -4_069_959_284_402_364_209] {
            let hash = KeyHash {
                token,
                ..KeyHash::default()
            };
            let _ = index.candidate(&hash, key);
        }
    }
    let mut entries = index.iter();
    while let Ok(Some(entry)) = entries.next_entry() {
        if let PartitionPosition::Rows(position) = entry.position {
            rows.push(position);
        }
    }
    rows
}

/// Runs all lookups in an entry of `Rows.db`.
fn look_up_rows(bytes: &[u8], position: u64) {
    let Ok(index) = RowIndex::parse(bytes, position) else {
        return;
    };
    let empty = Prefix {
        kind: Kind::InclStartBound,
        base: &[],
        spans: &[],
    };
    let _ = index.floor(&[CqlType::Utf8], empty);
    let _ = index.floor(
        &[CqlType::Utf8],
        Prefix {
            kind: Kind::InclEndBound,
            ..empty
        },
    );
    let mut blocks = index.blocks();
    while let Ok(Some(_)) = blocks.next_block() {}
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes(mut bytes in proptest::collection::vec(any::<u8>(), 0..300), footer in any::<[u8; 3]>()) {
        for position in 0..bytes.len() as u64 {
            look_up_rows(&bytes, position);
        }
        look_up_partitions(&bytes);
        // With a footer that points into the file.
        let keys_at = bytes.len() as u64;
        bytes.extend([0, 0, 0, 0]);
        bytes.extend(keys_at.to_be_bytes());
        bytes.extend(u64::from(footer[0]).to_be_bytes());
        bytes.extend((u64::from(footer[1]) % keys_at.max(1)).to_be_bytes());
        look_up_partitions(&bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn damaged_files(at in any::<[u32; 3]>(), flip in 1..=255u8, keep in any::<u32>(), cut in any::<bool>()) {
        for name in names() {
            let mut partitions = read(name, "Partitions.db");
            let mut rows = read(name, "Rows.db");
            let entries = look_up_partitions(&partitions);
            let damage = |bytes: &mut Vec<u8>| {
                if bytes.is_empty() {
                    return;
                }
                for at in at {
                    let at = at as usize % bytes.len();
                    bytes[at] ^= flip;
                }
                if cut {
                    bytes.truncate(keep as usize % bytes.len());
                }
            };
            damage(&mut rows);
            for position in entries.iter().take(5) {
                look_up_rows(&rows, *position);
            }
            damage(&mut partitions);
            for position in look_up_partitions(&partitions).iter().take(5) {
                look_up_rows(&rows, *position);
            }
        }
    }
}
