use super::*;
use crate::types::CqlType;

fn comparator() -> ClusteringComparator {
    ClusteringComparator::new(&[CqlType::Int32]).unwrap()
}

fn name(value: i32) -> Vec<u8> {
    let mut body = vec![0];
    body.extend_from_slice(&value.to_be_bytes());
    body
}

/// Rows of `len` bytes after a header of 7.
fn index_of_rows(builder: &mut PromotedIndexBuilder, rows: i32, len: u64) -> Vec<u8> {
    for row in 0..rows {
        let start = 7 + row as u64 * len;
        let body = name(row);
        builder.add_unfiltered(
            start,
            start + len,
            Kind::Clustering,
            &body,
            &DeletionTime::LIVE,
        );
    }
    builder.finish(7, &DeletionTime::LIVE).unwrap().to_vec()
}

#[test]
fn layout_that_cassandra_wrote() {
    // Rows of 1034 bytes: 64 of them make a block of 66176 bytes.
    let mut builder = PromotedIndexBuilder::new(Version::Oa, DEFAULT_COLUMN_INDEX_SIZE);
    let promoted = index_of_rows(&mut builder, 200, 1034);
    assert_eq!(promoted[..3], [0x07, 0x80, 0x04]);
    assert_eq!(promoted[3..15], [4, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0x3f]);
    // Offset 7, width 66176 - 65536 = 640, zig-zag 1280, no open marker.
    assert_eq!(promoted[15..19], [0x07, 0x85, 0x00, 0x00]);
    let index = PromotedIndex::parse(&promoted, Version::Oa, 0).unwrap();
    assert_eq!((index.block_count(), index.header_len), (4, 7));
    let (comparator, mut spans) = (comparator(), Vec::new());
    let mut next = 7;
    for block in 0..4 {
        let info = index.block(block, &comparator, &mut spans).unwrap();
        assert_eq!(info.offset, next);
        next += info.width;
        assert_eq!(info.open_marker, None);
    }
    // The last block, which is not full, includes the end byte.
    assert_eq!(next, 7 + 200 * 1034 + 1);
    assert!(index.block(4, &comparator, &mut spans).is_err());
}

#[test]
fn one_block_is_no_index() {
    let mut builder = PromotedIndexBuilder::new(Version::Oa, 1000);
    assert!(index_of_rows(&mut builder, 0, 10).is_empty());
    assert!(index_of_rows(&mut builder, 100, 10).is_empty());
    assert!(index_of_rows(&mut builder, 1, 100_000).is_empty());
    // A full block and a remainder make two.
    let index = index_of_rows(&mut builder, 101, 10);
    assert_eq!(
        PromotedIndex::parse(&index, Version::Oa, 0)
            .unwrap()
            .block_count(),
        2
    );
    // The builder starts afresh for each partition.
    assert_eq!(index_of_rows(&mut builder, 101, 10), index);
}

#[test]
fn markers_name_blocks_and_stay_open_after_them() {
    let deletion = DeletionTime {
        marked_for_delete_at: 5,
        local_deletion_time: 6,
    };
    for version in [Version::Nb, Version::Oa] {
        let mut builder = PromotedIndexBuilder::new(version, 10);
        let mut bound = vec![0, 1];
        bound.extend(name(3));
        builder.add_unfiltered(7, 20, Kind::ExclStartBound, &bound, &deletion);
        builder.add_unfiltered(20, 22, Kind::Clustering, &name(4), &deletion);
        builder.add_unfiltered(22, 25, Kind::InclEndBound, &[0, 0], &DeletionTime::LIVE);
        let promoted = builder.finish(7, &deletion).unwrap();
        let index = PromotedIndex::parse(promoted, version, 0).unwrap();
        assert_eq!(index.deletion, deletion);
        let (comparator, mut spans) = (comparator(), Vec::new());
        let info = index.block(0, &comparator, &mut spans).unwrap();
        assert_eq!((info.first, info.open_marker), (info.last, Some(deletion)));
        assert_eq!(info.first[..3], [7, 0, 1]);
        let info = index.block(1, &comparator, &mut spans).unwrap();
        assert_eq!((info.first[0], info.last), (4, [6, 0, 0].as_slice()));
        assert_eq!((info.offset, info.width, info.open_marker), (20, 6, None));
    }
}

fn parse_all(promoted: &[u8], version: Version) -> Result<()> {
    let index = PromotedIndex::parse(promoted, version, 0)?;
    let mut spans = Vec::new();
    for block in 0..index.block_count() {
        index.block(block, &comparator(), &mut spans)?;
    }
    Ok(())
}

#[test]
fn truncations() {
    for version in [Version::Me, Version::Oa] {
        let mut builder = PromotedIndexBuilder::new(version, 50);
        let promoted = index_of_rows(&mut builder, 30, 10);
        parse_all(&promoted, version).unwrap();
        for len in 0..promoted.len() {
            assert!(parse_all(&promoted[..len], version).is_err(), "{len}");
        }
    }
}

proptest::proptest! {
    #[test]
    fn damage_never_panics(at in 0usize..200, byte: u8) {
        let mut builder = PromotedIndexBuilder::new(Version::Oa, 50);
        let mut promoted = index_of_rows(&mut builder, 30, 10);
        let at = at % promoted.len();
        promoted[at] = byte;
        let _ = parse_all(&promoted, Version::Oa);
    }

    #[test]
    fn hostile_bytes(bytes in proptest::collection::vec(0u8.., 0..100)) {
        for version in [Version::Nb, Version::Oa] {
            let _ = parse_all(&bytes, version);
        }
    }
}

/// The promoted index of a partition of 577 KB, as Cassandra wrote it.
const REAL: &str = "\
    07800901000004000000002b07889c0100000000000000076553f10004000000002c040000000057c1045588\
    700100000000000000076553f10004000000005804000000008cc2088d88ac0100000000000000076553f100\
    04000000008d0400000000b8c30ce388700100000000000000076553f1000400000000b90400000000e4c411\
    1b888e0100000000000000066553f1090400000000e5040000000110c5156288700100000000000000066553\
    f10904000000011104000000013cc6199a88700100000000000000066553f10904000000013d040000000168\
    c71dd288700100000000000000066553f109040000000169060000c8220ab29f000000000000000019000000\
    37000000550000007300000091000000af000000cd000000eb";

#[test]
fn bytes_that_cassandra_wrote() {
    let bytes: Vec<u8> = REAL
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect();
    let index = PromotedIndex::parse(&bytes, Version::Oa, 0).unwrap();
    let mut builder = PromotedIndexBuilder::new(Version::Oa, DEFAULT_COLUMN_INDEX_SIZE);
    let mut spans = Vec::new();
    for block in 0..index.block_count() {
        let info = index.block(block, &comparator(), &mut spans).unwrap();
        let is_last = block + 1 == index.block_count();
        let open = info.open_marker.unwrap_or(DeletionTime::LIVE);
        let kind = |name: &[u8]| Kind::from_ordinal(name[0]).unwrap();
        let middle = info.offset + 1;
        // The builder adds the end byte to a last block that is not full.
        let end = info.offset + info.width - u64::from(is_last);
        builder.add_unfiltered(
            info.offset,
            middle,
            kind(info.first),
            &info.first[1..],
            &open,
        );
        builder.add_unfiltered(middle, end, kind(info.last), &info.last[1..], &open);
    }
    assert_eq!(
        builder.finish(index.header_len, &index.deletion).unwrap(),
        bytes
    );
    parse_all(&bytes, Version::Oa).unwrap();
    for len in 0..bytes.len() {
        assert!(parse_all(&bytes[..len], Version::Oa).is_err(), "{len}");
    }
}

proptest::proptest! {
    /// Omitting the unfiltereds that the builder does not need changes nothing.
    #[test]
    fn unfiltereds_that_need_not_be_added(
        partitions in proptest::collection::vec(
            proptest::collection::vec((1..50u64, proptest::prelude::any::<bool>()), 0..40), 1..4),
        size in proptest::sample::select(vec![1, 60, 200, DEFAULT_COLUMN_INDEX_SIZE, u64::MAX]),
    ) {
        let mut of_all = PromotedIndexBuilder::new(Version::Oa, size);
        let mut of_few = PromotedIndexBuilder::new(Version::Oa, size);
        for partition in partitions {
            let (mut start, mut wanted_from, mut pending) = (7, 0, None);
            for (number, (len, is_open)) in (0..).zip(partition) {
                let open = if is_open { DELETION } else { DeletionTime::LIVE };
                let (end, name) = (start + len, name(number));
                of_all.add_unfiltered(start, end, Kind::Clustering, &name, &open);
                pending = if end >= wanted_from {
                        let add = PromotedIndexBuilder::add_unfiltered;
                        wanted_from = add(&mut of_few, start, end, Kind::Clustering, &name, &open);
                        None
                } else {
                    Some((start, end, name, open))
                };
                start = end;
            }
            if let Some((start, end, name, open)) = pending {
                of_few.add_unfiltered(start, end, Kind::Clustering, &name, &open);
            }
            let all = of_all.finish(7, &DeletionTime::LIVE).unwrap();
            proptest::prop_assert_eq!(of_few.finish(7, &DeletionTime::LIVE).unwrap(), all);
        }
    }
}

const DELETION: DeletionTime = DeletionTime {
    marked_for_delete_at: 7,
    local_deletion_time: 1_700_000_000,
};
