use super::*;

const INT: [CqlType; 1] = [CqlType::Int32];

fn row(value: i32) -> Vec<u8> {
    let mut out = Vec::new();
    let comparator = ClusteringComparator::new(&INT).unwrap();
    comparator.write_values(&mut out, [Some(&value.to_be_bytes()[..])].into_iter());
    out
}

fn floor(index: &RowIndex<'_>, value: i32) -> u64 {
    let name = [vec![4], row(value)].concat();
    let mut spans = Vec::new();
    let comparator = ClusteringComparator::new(&INT).unwrap();
    let prefix = comparator.parse_name(&name, &mut spans).unwrap();
    index.floor(&INT, prefix).unwrap().offset
}

/// Splitter of rows with the tries of its blocks.
struct Writer {
    blocks: RowBlocks,
    tries: RowTries,
}

impl Writer {
    fn new(types: &[CqlType], column_index_size: u64) -> Result<Writer> {
        Ok(Writer {
            blocks: RowBlocks::new(types, column_index_size)?,
            tries: RowTries::default(),
        })
    }

    fn add_unfiltered(
        &mut self,
        start: u64,
        end: u64,
        kind: Kind,
        body: &[u8],
        open: &DeletionTime,
    ) -> Result<u64> {
        let emit = |block: SeparatedBlock<'_>| self.tries.add(block);
        self.blocks
            .add_unfiltered(start, end, kind, body, open, emit)
    }

    fn finish(&mut self, key: &[u8], at: u64, deletion: &DeletionTime) -> Result<Option<u64>> {
        let blocks = self.blocks.finish(|block| self.tries.add(block))?;
        Ok(self.tries.finish(key, at, deletion, blocks))
    }
}

const DELETION: DeletionTime = DeletionTime {
    marked_for_delete_at: 7,
    local_deletion_time: 1_700_000_000,
};

#[test]
fn partitions_of_less_than_two_blocks_leave_nothing() {
    let mut writer = Writer::new(&INT, 100).unwrap();
    let live = DeletionTime::LIVE;
    // No row; one; a full block with nothing after it.
    assert_eq!(writer.finish(b"k", 0, &live).unwrap(), None);
    writer
        .add_unfiltered(10, 20, Kind::Clustering, &row(1), &live)
        .unwrap();
    assert_eq!(writer.finish(b"k", 0, &live).unwrap(), None);
    writer
        .add_unfiltered(10, 110, Kind::Clustering, &row(1), &live)
        .unwrap();
    assert_eq!(writer.finish(b"k", 0, &live).unwrap(), None);
    assert!(writer.tries.output().bytes().is_empty());
    // Nothing of them is left for the next partition.
    writer
        .add_unfiltered(10, 110, Kind::Clustering, &row(1), &live)
        .unwrap();
    writer
        .add_unfiltered(110, 120, Kind::Clustering, &row(2), &live)
        .unwrap();
    assert!(writer.finish(b"k", 0, &live).unwrap().is_some());
}

#[test]
fn two_blocks_by_hand() {
    let mut writer = Writer::new(&INT, 100).unwrap();
    let live = DeletionTime::LIVE;
    writer
        .add_unfiltered(10, 60, Kind::Clustering, &row(1), &live)
        .unwrap();
    writer
        .add_unfiltered(60, 110, Kind::InclStartBound, &[0, 0], &DELETION)
        .unwrap();
    writer
        .add_unfiltered(110, 150, Kind::Clustering, &row(0x0101_0101), &DELETION)
        .unwrap();
    writer
        .add_unfiltered(150, 160, Kind::InclEndBound, &[0, 0], &live)
        .unwrap();
    // The bound at the end of block 1 has no values: it sorts before all rows.
    let error = writer.finish(b"k", 0, &live);
    assert!(error.is_ok(), "{error:?}");
    let bytes = writer.tries.output().bytes().to_vec();
    let index = RowIndex::parse(&bytes, error.unwrap().unwrap()).unwrap();
    let mut blocks = index.blocks();
    let first = blocks.next_block().unwrap().unwrap();
    assert_eq!(
        first,
        Block {
            offset: 10,
            open_deletion: None
        }
    );
    let second = blocks.next_block().unwrap().unwrap();
    assert_eq!(
        second,
        Block {
            offset: 110,
            open_deletion: Some(DELETION)
        }
    );
    // After 20, the bound that block 1 ends with.
    assert_eq!(blocks.separator(), [0x21]);
    let end = blocks.next_block().unwrap().unwrap();
    assert_eq!(
        end,
        Block {
            offset: 160,
            open_deletion: None
        }
    );
    assert_eq!(blocks.separator(), [0x61]);
    assert_eq!(blocks.next_block().unwrap(), None);
}

#[test]
fn many_partitions_of_many_blocks() {
    let mut writer = Writer::new(&INT, 100).unwrap();
    let live = DeletionTime::LIVE;
    let mut entries = Vec::new();
    for partition in 0..30i32 {
        let rows = partition * partition * 4;
        for n in 0..rows {
            let start = 20 + 40 * n as u64;
            writer
                .add_unfiltered(start, start + 40, Kind::Clustering, &row(5 * n), &live)
                .unwrap();
        }
        let key = partition.to_be_bytes();
        let place = writer
            .finish(&key, partition as u64 * 1_000_000, &DELETION)
            .unwrap();
        assert_eq!(place.is_some(), rows > 3, "{rows}");
        entries.extend(place.map(|place| (place, partition, rows)));
    }
    let bytes = writer.tries.output().bytes().to_vec();
    for (place, partition, rows) in entries {
        let index = RowIndex::parse(&bytes, place).unwrap();
        assert_eq!(index.key, partition.to_be_bytes());
        assert_eq!(index.data_position, partition as u64 * 1_000_000);
        assert_eq!(index.deletion, DELETION);
        assert_eq!(index.block_count, (rows as u64).div_ceil(3));
        let mut blocks = index.blocks();
        for n in 0..index.block_count {
            assert_eq!(blocks.next_block().unwrap().unwrap().offset, 20 + 120 * n);
        }
        let end = blocks.next_block().unwrap().unwrap().offset;
        assert_eq!(
            (end, blocks.next_block().unwrap()),
            (20 + 40 * rows as u64, None)
        );
        assert_eq!(floor(&index, i32::MIN), 20);
        assert_eq!(floor(&index, i32::MAX), end);
        for n in 0..rows {
            assert_eq!(floor(&index, 5 * n), 20 + 120 * (n as u64 / 3), "{n}");
        }
    }
}

#[test]
fn separators() {
    let mut out = vec![1, 2, 3];
    separator_beyond(b"abc8", b"abf8", &mut out).unwrap();
    assert_eq!(out, b"abd");
    separator_beyond(b"abc\xfe", b"abc\xff", &mut out).unwrap();
    assert_eq!(out, b"abc\xff");
    for (max, min) in [
        (&b"b"[..], &b"a"[..]),
        (b"a", b"a"),
        (b"a", b"ab"),
        (b"ab", b"a"),
    ] {
        assert!(
            separator_beyond(max, min, &mut out).is_err(),
            "{max:?} {min:?}"
        );
    }
    nudge(b"abcd8", b"abc", &mut out).unwrap();
    assert_eq!(out, b"abce");
    nudge(b"ab\xff\xffd8", b"ab\xfe", &mut out).unwrap();
    assert_eq!(out, b"ab\xff\xffe");
    assert!(nudge(b"ab\xff", b"ab", &mut out).is_err());
}

/// NaN with the sign bit is the greatest of all floats, but its encoding is the least.
#[test]
fn unordered_values_are_refused() {
    let types = [CqlType::Float];
    let mut writer = Writer::new(&types, 10).unwrap();
    let name = |value: f32| {
        let mut out = Vec::new();
        let comparator = ClusteringComparator::new(&types).unwrap();
        comparator.write_values(&mut out, [Some(&value.to_be_bytes()[..])].into_iter());
        out
    };
    let nan = f32::from_bits(f32::NAN.to_bits() | 1 << 31);
    let live = DeletionTime::LIVE;
    writer
        .add_unfiltered(0, 20, Kind::Clustering, &name(1.0), &live)
        .unwrap();
    let error = writer
        .add_unfiltered(20, 40, Kind::Clustering, &name(nan), &live)
        .unwrap_err();
    assert!(matches!(error, Error::Unsupported(_)), "{error}");
}

#[test]
fn entries_that_cannot_be() {
    let mut writer = Writer::new(&INT, 10).unwrap();
    for n in 0..4 {
        let start = 10 * n as u64;
        let live = DeletionTime::LIVE;
        writer
            .add_unfiltered(start, start + 10, Kind::Clustering, &row(n), &live)
            .unwrap();
    }
    let place = writer
        .finish(b"k", 0, &DeletionTime::LIVE)
        .unwrap()
        .unwrap();
    let bytes = writer.tries.output().bytes().to_vec();
    let entry = place as usize;
    assert_eq!(bytes[entry..], [0, 1, b'k', 0, bytes[entry + 4], 4, 0x80]);
    assert!(RowIndex::parse(&bytes, bytes.len() as u64).is_err());
    assert!(RowIndex::parse(&bytes, u64::MAX).is_err());
    for (at, value) in [
        (entry, 9),
        (entry + 4, 0x02),
        (entry + 4, 0x7f),
        (entry + 5, 0),
    ] {
        let mut damaged = bytes.clone();
        damaged[at] = value;
        assert!(RowIndex::parse(&damaged, place).is_err(), "{at} {value}");
    }
    for count in [3, 5] {
        let mut damaged = bytes.clone();
        damaged[entry + 5] = count;
        let mut blocks = RowIndex::parse(&damaged, place).unwrap().blocks();
        let error = loop {
            match blocks.next_block() {
                Ok(block) => assert!(block.is_some()),
                Err(error) => break error,
            }
        };
        assert!(error.to_string().contains("block_count"), "{error}");
    }
}

proptest::proptest! {
    /// Omitting the unfiltereds that the writer does not need changes nothing.
    #[test]
    fn unfiltereds_that_need_not_be_added(
        partitions in proptest::collection::vec(
            proptest::collection::vec((1..50u64, proptest::prelude::any::<bool>()), 0..40), 1..4),
        size in proptest::sample::select(vec![1, 60, 200, DEFAULT_COLUMN_INDEX_SIZE, u64::MAX]),
    ) {
        let mut of_all = Writer::new(&INT, size).unwrap();
        let mut of_few = Writer::new(&INT, size).unwrap();
        let live = DeletionTime::LIVE;
        for partition in partitions {
            let (mut start, mut wanted_from, mut pending) = (7, 0, None);
            for (number, (len, is_open)) in (0..).zip(partition) {
                let open = if is_open { DELETION } else { live };
                let (end, name) = (start + len, row(number));
                of_all.add_unfiltered(start, end, Kind::Clustering, &name, &open).unwrap();
                pending = if end >= wanted_from {
                        let add = Writer::add_unfiltered;
                        let next = add(&mut of_few, start, end, Kind::Clustering, &name, &open);
                        wanted_from = next.unwrap();
                        None
                } else {
                    Some((start, end, name, open))
                };
                start = end;
            }
            if let Some((start, end, name, open)) = pending {
                of_few.add_unfiltered(start, end, Kind::Clustering, &name, &open).unwrap();
            }
            let all = of_all.finish(b"k", 0, &live).unwrap();
            proptest::prop_assert_eq!(of_few.finish(b"k", 0, &live).unwrap(), all);
        }
        proptest::prop_assert_eq!(of_few.tries.output().bytes(), of_all.tries.output().bytes());
    }
}
