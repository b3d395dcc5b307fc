//! Bytes that Cassandra wrote, and bytes that must be refused.

use crate::data::cell::Liveness;
use crate::data::clustering::{ClusteringComparator, Kind, Prefix};
use crate::data::deletion_time::{DeletionTime, NO_DELETION_TIME};
use crate::data::encode::{RowFrame, RowShape};
use crate::data::layout::{ColumnLayout, Layout, TimestampDeltas};
use crate::data::parse::Stop;
use crate::data::partition::PartitionHead;
use crate::data::plain_row::PlainRow;
use crate::data::row_samples::{SampleCell, SampleRow};
use crate::data::stated_extremes::StatedExtremes;
use crate::data::unfiltered::{UnfilteredHead, parse_head, parse_static_head, whole_row};
use crate::types::CqlType;
use crate::version::Version;
use proptest::prelude::*;
use std::cmp::Ordering;
use std::sync::Arc;

const EPOCH_US: i64 = 1_442_880_000_000_000;
const EPOCH_S: i64 = 1_442_880_000;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

fn map_of_int() -> CqlType {
    let int = Arc::new(CqlType::Int32);
    CqlType::Map {
        key: int.clone(),
        value: int,
        multi_cell: true,
    }
}

fn layout(statics: Vec<ColumnLayout>, regulars: Vec<ColumnLayout>) -> Layout {
    Layout {
        version: Version::Oa,
        min_timestamp: EPOCH_US,
        timestamp_deltas: TimestampDeltas::ANY,
        stated: StatedExtremes::ANY,
        min_local_deletion_time: EPOCH_S,
        min_ttl: 0,
        clustering: ClusteringComparator::new(&[CqlType::Int32]).unwrap(),
        static_columns: statics,
        regular_columns: regulars,
    }
}

fn column(name: &str, cql_type: CqlType) -> ColumnLayout {
    ColumnLayout::new(name.as_bytes().to_vec(), cql_type).unwrap()
}

#[test]
fn partition_heads() {
    for (version, bytes) in [
        (Version::Oa, "0004 00000001 80"),
        (Version::Nb, "0004 00000001 7FFFFFFF 8000000000000000"),
    ] {
        let bytes = hex(bytes);
        let head = PartitionHead::parse(&bytes, version).unwrap();
        assert_eq!(head.key(&bytes), [0, 0, 0, 1]);
        assert!(head.deletion.is_live());
        assert_eq!(head.len, bytes.len());
        for cut in 0..bytes.len() {
            assert!(matches!(
                PartitionHead::parse(&bytes[..cut], version),
                Err(Stop::Incomplete)
            ));
        }
    }
}

#[test]
fn static_row_of_cassandra() {
    let bytes = hex("A0 01 0C 00 00 FCE9D96A43C000 02 7374");
    let layout = layout(vec![column("s", CqlType::Utf8)], vec![]);
    let head = parse_static_head(&bytes, &layout, bytes.len() as u64).unwrap();
    assert_eq!(head.len, bytes.len());
    let row = SampleRow::read(&bytes, &head, &layout).unwrap();
    assert!(row.liveness.is_empty());
    let [column] = &row.columns[..] else {
        panic!("{row:?}")
    };
    let cell = SampleCell::live(1_700_000_000_000_000, &[], b"st");
    assert_eq!((column.index, &column.cells[..]), (0, &[cell][..]));
}

#[test]
fn update_of_map_and_tinyint_of_cassandra() {
    // Columns in header order: z (simple) before m (complex).
    let bytes = hex("20 00 00000000 12 07 01 01 05 FF 00 01 00 01 04 00000007 04 00000009 01");
    let layout = layout(
        vec![],
        vec![column("z", CqlType::Byte), column("m", map_of_int())],
    );
    // The row of the fact sheet has no clustering value; here one is added, so sizes are taken from a
    // re-encoding instead of the quoted bytes.
    let cell_z = SampleCell::live(EPOCH_US + 1, &[], &[5]);
    let cell_m = SampleCell::live(EPOCH_US + 1, &[0, 0, 0, 7], &[0, 0, 0, 9]);
    let shape = RowShape {
        is_static: false,
        liveness: Liveness::EMPTY,
        deletion: DeletionTime::LIVE,
        is_shadowable: false,
        has_complex_deletion: false,
        has_all_columns: true,
    };
    let mut out = Vec::new();
    let frame = RowFrame::begin(&mut out, &shape, &hex("00 00000000"), 7, 300);
    layout.put_body_start(&mut out, &shape);
    let column = &layout.regular_columns[0];
    cell_z.put(&mut out, &layout, column, &shape.liveness, [0, 0]);
    layout.put_complex_header(&mut out, false, &DeletionTime::LIVE, 1);
    let column = &layout.regular_columns[1];
    cell_m.put(&mut out, &layout, column, &shape.liveness, [0, 0]);
    frame.end(&mut out);
    let quoted_body = hex("12 07 00 01 01 05 01 00 01 04 00000007 04 00000009");
    assert_eq!(out[..6], bytes[..6]);
    assert_eq!(out[6..], quoted_body);

    let mut spans = Vec::new();
    let UnfilteredHead::Row(head) = parse_head(&out, &layout, 100, &mut spans).unwrap() else {
        panic!("not a row")
    };
    let row = SampleRow::read(&out, &head, &layout).unwrap();
    let columns: Vec<_> = row
        .columns
        .iter()
        .map(|c| (c.index, c.deletion, &c.cells[..]))
        .collect();
    let live = DeletionTime::LIVE;
    assert_eq!(columns, [(0, live, &[cell_z][..]), (1, live, &[cell_m])]);
    for cut in 0..out.len() {
        assert!(matches!(
            parse_head(&out[..cut], &layout, 100, &mut spans),
            Err(Stop::Incomplete)
        ));
        // In a file that ends within the row, its size is corrupt.
        let in_short_file = parse_head(&out[..cut], &layout, cut as u64, &mut spans);
        assert!(in_short_file.is_err());
    }
}

#[test]
fn live_complex_deletion_as_cassandra_writes_it() {
    let mut layout = layout(vec![], vec![]);
    let mut out = Vec::new();
    layout.put_deletion_time(&mut out, &DeletionTime::LIVE);
    assert_eq!(out, hex("FF7FFADFB552258000 FFFFFFFFFFA9FF65FF"));
    layout.min_timestamp = 1_699_999_999_999_999;
    layout.min_local_deletion_time = 1_795_245_215;
    out.clear();
    layout.put_deletion_time(&mut out, &DeletionTime::LIVE);
    assert_eq!(out, hex("FF7FF9F5DBE7E1C001 FFFFFFFFFF94FEBB60"));
}

#[test]
fn size_guesses_do_not_matter() {
    let layout = layout(vec![], vec![column("v", CqlType::Bytes)]);
    let shape = RowShape {
        is_static: false,
        liveness: Liveness::new(EPOCH_US, 0, 0),
        deletion: DeletionTime::LIVE,
        is_shadowable: false,
        has_complex_deletion: false,
        has_all_columns: true,
    };
    for len in [0usize, 1, 100, 127, 128, 16_000, 17_000, 3_000_000] {
        let value = vec![0x5a; len];
        let cell = SampleCell::live(EPOCH_US, &[], &value);
        let written: Vec<Vec<u8>> = [0, 100, 20_000, 1 << 30]
            .map(|guess| {
                let mut out = vec![9];
                let frame = RowFrame::begin(&mut out, &shape, &[0, 0, 0, 0, 1], 200, guess);
                layout.put_body_start(&mut out, &shape);
                let column = &layout.regular_columns[0];
                cell.put(&mut out, &layout, column, &shape.liveness, [0, 0]);
                frame.end(&mut out);
                out
            })
            .to_vec();
        assert!(written.iter().all(|w| *w == written[0]), "{len}");
        let mut spans = Vec::new();
        let bytes = &written[0][1..];
        let head = parse_head(bytes, &layout, bytes.len() as u64, &mut spans).unwrap();
        let UnfilteredHead::Row(head) = head else {
            panic!("not a row")
        };
        assert_eq!(head.len, bytes.len());
    }
}

#[test]
fn marker_round_trip() {
    let layout = layout(vec![], vec![]);
    let close = DeletionTime {
        marked_for_delete_at: EPOCH_US + 5,
        local_deletion_time: EPOCH_S,
    };
    let open = DeletionTime {
        marked_for_delete_at: -7,
        local_deletion_time: EPOCH_S + 300,
    };
    for (kind, close, open) in [
        (Kind::ExclEndInclStartBoundary, close, open),
        (Kind::InclStartBound, DeletionTime::LIVE, open),
        (Kind::InclEndBound, close, DeletionTime::LIVE),
    ] {
        let mut bound = Vec::new();
        layout
            .clustering
            .write_prefix(&mut bound, kind, [Some(&[0u8, 0, 0, 9][..])].into_iter());
        let mut out = Vec::new();
        layout.put_marker(&mut out, kind, &bound, &close, &open, 77);
        let mut spans = Vec::new();
        let UnfilteredHead::Marker(head) = parse_head(&out, &layout, 1000, &mut spans).unwrap()
        else {
            panic!("not a marker")
        };
        assert_eq!(
            (head.kind, head.close, head.open, head.len),
            (kind, close, open, out.len())
        );
        assert_eq!(spans[0].of(&out), Some(&[0u8, 0, 0, 9][..]));
        assert_eq!(out[head.bound_start - 1..head.bound_end], bound);
        for cut in 0..out.len() {
            let result = parse_head(&out[..cut], &layout, 1000, &mut spans);
            assert!(matches!(result, Err(Stop::Incomplete)), "{cut}: {result:?}");
        }
    }
}

#[test]
fn clustering_headers_of_34_columns() {
    let comparator = ClusteringComparator::new(&vec![CqlType::Utf8; 34]).unwrap();
    let values: Vec<Option<&[u8]>> = (0..34)
        .map(|i| Some(if i % 5 == 0 { &b""[..] } else { &b"x"[..] }))
        .collect();
    let mut out = Vec::new();
    comparator.write_values(&mut out, values.iter().copied());
    assert_eq!(out[..9], hex("FF 1004010040100401")[..9]);
    let mut spans = Vec::new();
    let mut pos = 0;
    comparator.parse_row(&out, &mut pos, &mut spans).unwrap();
    assert_eq!(pos, out.len());
    let parsed: Vec<_> = spans.iter().map(|s| s.of(&out)).collect();
    assert_eq!(parsed, values);
}

#[test]
fn bounds_around_rows() {
    let comparator = ClusteringComparator::new(&[CqlType::Int32, CqlType::Int32]).unwrap();
    let one: &[u8] = &[0, 0, 0, 1];
    let two: &[u8] = &[0, 0, 0, 2];
    let place = |kind: Kind, values: &[Option<&[u8]>]| {
        let mut bytes = Vec::new();
        comparator.write_values(&mut bytes, values.iter().copied());
        let mut spans = Vec::new();
        comparator
            .parse_values(&bytes, &mut 0, values.len(), &mut spans)
            .unwrap();
        (kind, bytes, spans)
    };
    let ascending = [
        place(Kind::InclStartBound, &[]),
        place(Kind::Clustering, &[None, Some(two)]),
        place(Kind::Clustering, &[Some(&[]), Some(two)]),
        place(Kind::ExclEndBound, &[Some(one)]),
        place(Kind::InclStartBound, &[Some(one), Some(one)]),
        place(Kind::Clustering, &[Some(one), Some(one)]),
        place(Kind::ExclStartBound, &[Some(one), Some(one)]),
        place(Kind::Clustering, &[Some(one), Some(two)]),
        place(Kind::InclEndBound, &[Some(one)]),
        place(Kind::ExclEndInclStartBoundary, &[Some(two)]),
        place(Kind::Clustering, &[Some(two), Some(one)]),
        place(Kind::InclEndBound, &[]),
    ];
    for (i, a) in ascending.iter().enumerate() {
        for (j, b) in ascending.iter().enumerate() {
            let left = Prefix {
                kind: a.0,
                base: &a.1,
                spans: &a.2,
            };
            let right = Prefix {
                kind: b.0,
                base: &b.1,
                spans: &b.2,
            };
            assert_eq!(comparator.compare(left, right), i.cmp(&j), "{i} {j}");
            let prefixes = (
                comparator.memcomparable_prefix(left),
                comparator.memcomparable_prefix(right),
            );
            if let (Some(of_left), Some(of_right)) = prefixes
                && of_left != of_right
            {
                assert_eq!(of_left.cmp(&of_right), i.cmp(&j), "{i} {j}");
            }
        }
    }
    assert_eq!(comparator.compare_value(0, None, Some(&[])), Ordering::Less);
}

#[test]
fn absurd_lengths_fail_immediately() {
    let layout = layout(vec![], vec![column("v", CqlType::Bytes)]);
    let mut spans = Vec::new();
    // A body of 2^40 bytes in a file of 1000.
    let mut bytes = hex("24 00 00000001");
    crate::vint::write_unsigned(&mut bytes, 1 << 40);
    let result = parse_head(&bytes, &layout, 1000, &mut spans);
    assert!(matches!(result, Err(Stop::Corrupt(_))), "{result:?}");
    // A clustering value beyond max_value_size, in a file that could hold it.
    let text = Layout {
        clustering: ClusteringComparator::new(&[CqlType::Utf8]).unwrap(),
        ..layout.clone()
    };
    let mut bytes = vec![0x24, 0];
    crate::vint::write_unsigned(&mut bytes, 1 << 40);
    let result = parse_head(&bytes, &text, u64::MAX, &mut spans);
    assert!(matches!(result, Err(Stop::Corrupt(_))), "{result:?}");
}

/// Types and values of no clustering column, of an int and a text, and of enough for two headers; any value
/// may be empty or null.
fn clusterings() -> impl Strategy<Value = Vec<(CqlType, Option<Vec<u8>>)>> {
    let int = prop_oneof![
        8 => any::<[u8; 4]>().prop_map(|v| Some(v.to_vec())),
        1 => Just(Some(Vec::new())),
        1 => Just(None),
    ];
    let text = prop::option::weighted(0.9, prop::collection::vec(any::<u8>(), 0..140));
    let texts = prop_oneof![1 => Just(0..0), 6 => Just(1..2), 1 => Just(33..34)].prop_flat_map(
        move |count| {
            if count.is_empty() {
                Just(Vec::new()).boxed()
            } else {
                prop::collection::vec(text.clone(), count).boxed()
            }
        },
    );
    (int, texts).prop_map(|(int, texts)| {
        let first = (!texts.is_empty()).then_some((CqlType::Int32, int));
        let others = texts.into_iter().map(|text| (CqlType::Utf8, text));
        first.into_iter().chain(others).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    /// The two ways to write a row produce the same bytes; the two ways to locate it agree, also if it is
    /// truncated or damaged.
    #[test]
    fn plain_rows_are_written_and_found_as_others(
        columns_and_values in clusterings(),
        timestamp in prop_oneof![
            EPOCH_US..EPOCH_US + 300,
            // Deltas of each length.
            (0..63u32, 0..3i64).prop_map(|(bits, more)| EPOCH_US.wrapping_add((1 << bits) + more - 1)),
            any::<i64>(),
        ],
        expiring in prop::option::of((1..i32::MAX, EPOCH_S..EPOCH_S * 2)),
        previous_size in prop_oneof![0..200u64, 16_380..16_390u64, any::<u64>()],
        columns in prop_oneof![
            9 => prop::collection::vec(any::<u8>(), 0..200),
            1 => (16_360..16_400usize).prop_map(|len| vec![0xab; len]),
        ],
        has_all_columns: bool,
        behind in 0..200usize,
        cut in any::<prop::sample::Index>(),
        damage in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
    ) {
        let (types, values): (Vec<_>, Vec<_>) = columns_and_values.into_iter().unzip();
        let layout = Layout {
            clustering: ClusteringComparator::new(&types).unwrap(),
            ..layout(vec![], vec![column("v", CqlType::Bytes)])
        };
        let (ttl, seconds) = expiring.unwrap_or((0, NO_DELETION_TIME));
        let shape = RowShape {
            is_static: false,
            liveness: Liveness::new(timestamp, ttl, seconds),
            deletion: DeletionTime::LIVE,
            is_shadowable: false,
            has_complex_deletion: false,
            has_all_columns,
        };
        let mut clustering = Vec::new();
        layout.clustering.write_values(&mut clustering, values.iter().map(|v| v.as_deref()));
        let mut general = vec![1, 2, 3];
        let frame = RowFrame::begin(&mut general, &shape, &clustering, previous_size, 0);
        layout.put_body_start(&mut general, &shape);
        general.extend_from_slice(&columns);
        frame.end(&mut general);
        // The bytes between clustering and columns in the other SSTable do not matter.
        let mut of_other = [&[shape.flags().0], &clustering[..], &[0xee; 5], &columns].concat();
        let len = of_other.len();
        of_other.resize(len + behind, 0xcc);
        let mut plain = vec![1, 2, 3];
        let row = PlainRow {
            bytes: &of_other,
            len,
            clustering_end: 1 + clustering.len(),
            columns_start: len - columns.len(),
            liveness: shape.liveness,
            live_cells: 0,
            expiring_cells: 0,
        };
        layout.put_plain_row(&mut plain, &row, previous_size);
        prop_assert_eq!(&plain, &general);

        let mut bytes = plain.split_off(3);
        let (mut spans, mut general_spans) = (Vec::new(), Vec::new());
        prop_assert!(whole_row(&bytes, &layout, &mut spans).is_some());
        if let Some((at, byte)) = damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        for bytes in [&bytes[..], &bytes[..cut.index(bytes.len() + 1)]] {
            spans.clear();
            let found = whole_row(bytes, &layout, &mut spans);
            let general = parse_head(bytes, &layout, bytes.len() as u64, &mut general_spans);
            match general {
                Ok(UnfilteredHead::Row(head)) => {
                    prop_assert_eq!(found, Some(head));
                    prop_assert_eq!(&spans, &general_spans);
                }
                _ => prop_assert_eq!(found, None),
            }
        }
    }
}
