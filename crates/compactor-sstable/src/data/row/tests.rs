use proptest::prelude::*;

use super::*;
use crate::data::cell::NO_TIMESTAMP;
use crate::data::layout::TimestampDeltas;
use crate::data::row_samples::{SampleCell, SampleColumn, SampleRow, fitted, head, layout, values};
use crate::data::stated_extremes::StatedExtremes;
use crate::statistics::StatsMetadata;
use crate::statistics::tests::of_nothing;
use crate::types::CqlType;
use crate::version::Version;

const BASE: i64 = 50;

fn map_of_int() -> CqlType {
    CqlType::Map {
        key: CqlType::Int32.into(),
        value: CqlType::Utf8.into(),
        multi_cell: true,
    }
}

/// Types of simple, complex and counter columns.
fn column_types() -> impl Strategy<Value = CqlType> {
    let simple = prop_oneof![
        Just(CqlType::Int32),
        Just(CqlType::Utf8),
        Just(CqlType::Uuid),
        Just(CqlType::Empty),
        Just(CqlType::CounterColumn),
    ];
    let complex = prop_oneof![
        Just(map_of_int()),
        Just(CqlType::Set {
            element: CqlType::Utf8.into(),
            multi_cell: true,
        }),
        Just(CqlType::List {
            element: CqlType::Int32.into(),
            multi_cell: true,
        }),
    ];
    prop_oneof![3 => simple, 1 => complex]
}

fn times() -> impl Strategy<Value = i64> {
    prop_oneof![9 => 1000..1101i64, 1 => any::<i64>().prop_filter("a time", |t| *t != NO_TIMESTAMP)]
}

/// Cells of a row with this liveness, whose times they may share.
fn cell(liveness: Liveness) -> impl Strategy<Value = SampleCell> {
    let ttls = prop_oneof![Just(NO_TTL), 1..500i32];
    let own = prop::option::of((ttls, 600..9000i64));
    let of_row = (any::<bool>(), any::<bool>());
    (values(), values(), times(), own, of_row).prop_map(
        move |(path, value, timestamp, own, (has_timestamp, has_ttl))| {
            let (mut ttl, mut local_deletion_time) = own.unwrap_or((NO_TTL, NO_DELETION_TIME));
            if has_ttl && liveness.is_expiring() {
                (ttl, local_deletion_time) = (liveness.ttl, liveness.local_expiration_time);
            }
            SampleCell {
                timestamp: if has_timestamp && !liveness.is_empty() {
                    liveness.timestamp
                } else {
                    timestamp
                },
                local_deletion_time,
                ttl,
                path,
                value,
            }
        },
    )
}

fn deletion() -> impl Strategy<Value = DeletionTime> {
    let deletion = (times(), 50..9000i64);
    prop::option::weighted(0.3, deletion).prop_map(|deletion| {
        deletion.map_or(DeletionTime::LIVE, |(marked, seconds)| {
            DeletionTime::build(marked, seconds)
        })
    })
}

fn row(types: Vec<CqlType>) -> impl Strategy<Value = SampleRow> {
    let ttl = prop_oneof![Just(NO_TTL), 1..500i32];
    let liveness = prop::option::of((times(), ttl, 600..9000i64)).prop_map(|liveness| {
        liveness.map_or(Liveness::EMPTY, |(timestamp, ttl, seconds)| {
            Liveness::new(timestamp, ttl, seconds)
        })
    });
    let density = prop_oneof![Just(0.02), Just(0.7), Just(0.98), Just(0.9999)];
    (liveness, density).prop_flat_map(move |(liveness, density)| {
        let types = types.clone();
        let cells = prop::collection::vec(cell(liveness), 1..4);
        let column = prop::option::weighted(density, (deletion(), cells));
        let columns = prop::collection::vec(column, types.len());
        (Just(liveness), deletion(), any::<bool>(), columns).prop_map(
            move |(liveness, deletion, is_shadowable, columns)| {
                let layout = layout(&types, Version::Oa, BASE);
                let columns = columns.into_iter().zip(&layout.regular_columns).enumerate();
                SampleRow {
                    liveness,
                    deletion,
                    is_shadowable: is_shadowable && !deletion.is_live(),
                    columns: columns
                        .filter_map(|(index, (column, layout))| {
                            let (deletion, cells) = column?;
                            Some(sample_column(index, layout, deletion, cells))
                        })
                        .collect(),
                }
            },
        )
    })
}

/// Values of these that a column may contain.
fn sample_column(
    index: usize,
    column: &ColumnLayout,
    deletion: DeletionTime,
    mut cells: Vec<SampleCell>,
) -> SampleColumn {
    for cell in &mut cells {
        cell.value = fitted(column, std::mem::take(&mut cell.value));
        if cell.local_deletion_time != NO_DELETION_TIME && cell.ttl == NO_TTL {
            cell.value.clear();
        }
    }
    if !column.is_complex {
        cells.truncate(1);
        cells[0].path.clear();
        return SampleColumn {
            index,
            deletion: DeletionTime::LIVE,
            cells,
        };
    }
    match &column.cql_type {
        CqlType::Map { .. } => cells.iter_mut().for_each(|cell| cell.path.resize(4, 1)),
        CqlType::List { .. } => cells.iter_mut().for_each(|cell| {
            cell.path.resize(16, 3);
            // Version 1, which is ordered by time.
            cell.path[6] = 0x10;
        }),
        _ => {}
    }
    let order = |a: &SampleCell, b: &SampleCell| column.cql_type.compare_paths(&a.path, &b.path);
    cells.sort_by(order);
    cells.dedup_by(|a, b| order(a, b).is_eq());
    SampleColumn {
        index,
        deletion,
        cells,
    }
}

fn table() -> impl Strategy<Value = (Vec<CqlType>, SampleRow)> {
    let count = prop_oneof![6 => 0..9usize, 2 => 60..67usize, 1 => 120..140usize];
    count
        .prop_flat_map(|count| prop::collection::vec(column_types(), count))
        .prop_flat_map(|mut types| {
            // Header order.
            types.sort_by_key(CqlType::is_multi_cell);
            (Just(types.clone()), row(types))
        })
}

proptest! {
    /// A written row is read as it was, whatever bytes follow it, except for cells that the row's own
    /// deletions cover.
    #[test]
    fn written_rows_are_read_back(
        (types, row) in table(),
        is_legacy: bool,
        spare in [0..20usize, 0..20usize],
        behind in 0..40usize,
    ) {
        let version = if is_legacy { Version::Nb } else { Version::Oa };
        let layout = layout(&types, version, BASE);
        let mut bytes = row.write(&layout, spare);
        let head = head(&bytes, &layout);
        prop_assert_eq!(head.len, bytes.len());
        bytes.resize(bytes.len() + behind, 0x5a);
        let row_ref = RowRef { bytes: &bytes, head: &head, layout: &layout };
        let start = row_ref.start().unwrap();
        prop_assert_eq!(start.has_columns(), !row.columns.is_empty());
        let read = SampleRow::read(&bytes, &head, &layout).unwrap();
        prop_assert_eq!(read, row.kept(&layout));
    }

    /// The positions of path and value in the row, and the bytes after them, do not affect the written bytes.
    #[test]
    fn cells_are_written_the_same_wherever_they_come_from(
        (types, row) in table(),
        spare in [0..40usize, 0..40usize],
    ) {
        let layout = layout(&types, Version::Oa, BASE);
        prop_assert_eq!(row.write(&layout, spare), row.write(&layout, [0, 0]));
    }

    /// Damage is a fault that can be described, or results in a consistent row.
    #[test]
    fn damage_is_reported_or_harmless(
        (types, row) in table(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        flags: Option<(u8, u8)>,
        cut in prop::option::weighted(0.4, any::<prop::sample::Index>()),
        cuts_bytes: bool,
        stated: bool,
    ) {
        let mut layout = layout(&types, Version::Oa, BASE);
        if stated {
            layout.timestamp_deltas = TimestampDeltas::between(BASE, 1000, 1100);
            layout.stated = StatedExtremes::of(&narrow_statistics(), layout.version);
        }
        let mut bytes = row.write(&layout, [0, 0]);
        let mut head = head(&bytes, &layout);
        let body_len = bytes.len() - head.body_start;
        if body_len > 0 {
            for (at, byte) in changes {
                bytes[head.body_start + at.index(body_len)] = byte;
            }
        }
        if let Some((first, second)) = flags {
            (head.flags, head.extended_flags) = (first, second & !flags::IS_STATIC);
        }
        if let Some(cut) = cut {
            let len = head.len - cut.index(body_len + 1);
            if cuts_bytes {
                bytes.truncate(len);
            } else {
                head.len = len;
            }
        }
        check(&bytes, &head, &layout)?;
    }
}

/// Statistics whose bounds few rows are within.
fn narrow_statistics() -> StatsMetadata {
    StatsMetadata {
        min_ttl: 10,
        max_ttl: 400,
        min_local_deletion_time: 700,
        max_local_deletion_time: 8000,
        ..of_nothing().stats
    }
}

fn check(bytes: &[u8], head: &RowHead, layout: &Layout) -> Result<(), TestCaseError> {
    let row = RowRef {
        bytes,
        head,
        layout,
    };
    let content = match row.read() {
        Ok(content) => content,
        Err(Error::Corrupt(corruption)) => {
            prop_assert!(corruption.structure.starts_with("row."));
            prop_assert!(corruption.offset >= head.body_start as u64);
            prop_assert!(corruption.offset <= head.len as u64);
            prop_assert!(!corruption.expected.is_empty() && !corruption.found.is_empty());
            return Ok(());
        }
        Err(other) => return Err(TestCaseError::fail(other.to_string())),
    };
    let inside = |span: Span| span.is_empty() || span.of(&bytes[..head.len]).len() == span.len();
    let mut before = None;
    for column in content.columns() {
        prop_assert!(before.is_none_or(|before| before < column.index));
        before = Some(column.index);
        let of_layout = &layout.regular_columns[column.index];
        if !of_layout.is_complex {
            prop_assert_eq!(column.cells.len(), 1);
            prop_assert!(column.deletion.is_live() && column.cells[0].path.is_empty());
            if let Some(len) = of_layout.fixed_len {
                prop_assert!([0, len as usize].contains(&column.cells[0].value.len()));
            }
        }
        let mut path_before: Option<&[u8]> = None;
        for cell in column.cells {
            prop_assert!(inside(cell.path) && inside(cell.value));
            prop_assert!(!content.start.deletion.deletes(cell.timestamp));
            prop_assert!(cell.timestamp >= column.deletion.marked_for_delete_at);
            let path = cell.path.of(bytes);
            let order = path_before.map(|before| of_layout.cql_type.compare_paths(before, path));
            prop_assert!(order.is_none_or(|order| order.is_lt()));
            path_before = Some(path);
        }
    }
    let liveness = content.start.liveness.timestamp;
    prop_assert!(!content.start.deletion.deletes(liveness) || content.start.liveness.is_empty());
    Ok(())
}

/// Every prefix of a row that contains all kinds of fields.
#[test]
fn every_truncation_is_reported() {
    let layout = layout(&[CqlType::Utf8, map_of_int()], Version::Oa, BASE);
    let row = sample();
    let bytes = row.write(&layout, [0, 0]);
    let whole = head(&bytes, &layout);
    assert_eq!(SampleRow::read(&bytes, &whole, &layout).unwrap(), row);
    for len in whole.body_start..bytes.len() {
        let head = RowHead { len, ..whole };
        assert!(SampleRow::read(&bytes, &head, &layout).is_err(), "{len}");
        assert!(SampleRow::read(&bytes[..len], &whole, &layout).is_err());
        check(&bytes, &head, &layout).unwrap();
    }
}

/// A text and a map, all with their own times.
fn sample() -> SampleRow {
    SampleRow {
        liveness: Liveness::new(1010, 60, 700),
        deletion: DeletionTime::build(1005, 100),
        is_shadowable: false,
        columns: vec![
            SampleColumn {
                index: 0,
                deletion: DeletionTime::LIVE,
                cells: vec![SampleCell::live(1020, &[], b"text")],
            },
            SampleColumn {
                index: 1,
                deletion: DeletionTime::build(1006, 101),
                cells: vec![
                    SampleCell::live(1021, &[0, 0, 0, 1], b"one"),
                    SampleCell::live(1022, &[0, 0, 0, 2], b"two"),
                ],
            },
        ],
    }
}

/// A cell may refer to the TTL of a liveness that the row's own deletion covers.
#[test]
fn cells_refer_to_the_liveness_as_written() {
    let layout = layout(&[CqlType::Int32], Version::Oa, BASE);
    let cell = SampleCell {
        local_deletion_time: 700,
        ttl: 10,
        ..SampleCell::live(1030, &[], &[0, 0, 0, 7])
    };
    let row = SampleRow {
        liveness: Liveness::new(1010, 10, 700),
        deletion: DeletionTime::build(1020, 60),
        is_shadowable: false,
        columns: vec![SampleColumn {
            index: 0,
            deletion: DeletionTime::LIVE,
            cells: vec![cell.clone()],
        }],
    };
    let bytes = row.write(&layout, [0, 0]);
    let read = SampleRow::read(&bytes, &head(&bytes, &layout), &layout).unwrap();
    assert!(read.liveness.is_empty());
    assert_eq!(read.columns[0].cells, [cell]);
}

/// The timestamps of an empty liveness and of a live deletion, as they are written.
#[test]
fn times_that_mean_nothing() {
    let mut layout = layout(&[CqlType::Int32], Version::Oa, 3);
    layout.min_timestamp = NO_TIMESTAMP;
    let read = |flag_byte: u8, times: &[u8]| -> crate::Result<_> {
        let mut bytes = vec![flag_byte | flags::HAS_ALL_COLUMNS, 0, 0];
        bytes.extend_from_slice(times);
        // A cell whose timestamp is the minimum plus five.
        bytes.extend_from_slice(&[0, 5, 0, 0, 0, 7]);
        bytes[1] = (bytes.len() - 2) as u8;
        let read = SampleRow::read(&bytes, &head(&bytes, &layout), &layout)?;
        assert_eq!(read.columns[0].cells[0].timestamp, NO_TIMESTAMP + 5);
        Ok((read.liveness, read.deletion))
    };
    const EXPIRING: u8 = flags::HAS_TIMESTAMP | flags::HAS_TTL;
    let live = DeletionTime::LIVE;
    let nothing = (Liveness::EMPTY, live);
    let one = NO_TIMESTAMP + 1;
    let of = |flag_byte: u8, times: &[u8]| read(flag_byte, times).unwrap();
    assert_eq!(
        of(flags::HAS_TIMESTAMP, &[1]),
        (Liveness::new(one, 0, 0), live)
    );
    assert_eq!(of(flags::HAS_TIMESTAMP, &[0]), nothing);
    assert_eq!(
        of(EXPIRING, &[1, 10, 100]),
        (Liveness::new(one, 13, 103), live)
    );
    assert_eq!(of(EXPIRING, &[0, 10, 100]), nothing);
    assert_eq!(
        of(flags::HAS_DELETION, &[1, 100]),
        (Liveness::EMPTY, DeletionTime::build(one, 103))
    );
    let (liveness, deletion) = of(flags::HAS_DELETION, &[0, 100]);
    assert!(liveness.is_empty() && deletion.marked_for_delete_at == NO_TIMESTAMP);
    // A TTL of 3 - 4.
    let negative = [1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfc, 100];
    assert!(read(EXPIRING, &negative).is_err());
}

/// Each fault has position, expectation and finding, so that the offset can be looked up in the damaged file.
#[test]
fn faults_are_described() {
    const TIMESTAMPS: &str = "a timestamp between the minimum and the maximum in Statistics.db";
    const TIMES: &str =
        "a local deletion time between the minimum and the maximum in Statistics.db";
    const TTLS: &str = "a TTL between the minimum and the maximum in Statistics.db";
    const EXPIRING: &str = "only data that expires, by max_local_deletion_time in Statistics.db";
    const MORE: &str = "more bytes";
    const END: &str = "the end of the row";
    const ALL: u8 = flags::HAS_ALL_COLUMNS;
    const STAMP: u8 = flags::HAS_TIMESTAMP;
    const TTL: u8 = flags::HAS_TTL;
    const DELETION: u8 = flags::HAS_DELETION;
    const COMPLEX: u8 = flags::HAS_COMPLEX_DELETION;
    const DELETED: u8 = flags::CELL_IS_DELETED;
    const EXPIRES: u8 = flags::CELL_IS_EXPIRING;
    const EMPTY: u8 = flags::CELL_HAS_EMPTY_VALUE;
    // Offsets are relative to the body, after flags and two sizes.
    const START: u64 = 3;
    let int = [CqlType::Int32];
    let text = [CqlType::Utf8];
    let map = [map_of_int()];
    let many = vec![CqlType::Int32; 64];
    let long = [0xf8, 1, 0, 0, 0, 0];
    let long_found = (1u64 << 32).to_string();
    let with = |before: &[u8], after: &[u8]| [before, after].concat();
    type Case<'a> = (
        &'a [CqlType],
        fn() -> StatedExtremes,
        u8,
        Vec<u8>,
        (&'a str, u64, &'a str, &'a str),
    );
    fn anything() -> StatedExtremes {
        StatedExtremes::ANY
    }
    fn few() -> StatedExtremes {
        StatedExtremes::of(&narrow_statistics(), Version::Oa)
    }
    #[rustfmt::skip]
    let cases: Vec<Case<'_>> = vec![
        // The start of a row.
        (&int, anything, ALL | STAMP, vec![], ("row.timestamp", 0, MORE, END)),
        (&int, anything, ALL | STAMP, vec![0x80], ("row.timestamp", 0, MORE, END)),
        (&int, anything, ALL | STAMP, vec![101], ("row.timestamp", 0, TIMESTAMPS, "1101")),
        (&int, few, ALL | STAMP, vec![5], ("row.timestamp", 1, EXPIRING, "data without a TTL")),
        (&int, anything, ALL | STAMP | TTL, vec![5], ("row.ttl", 1, MORE, END)),
        (&int, few, ALL | STAMP | TTL, vec![5, 2], ("row.ttl", 1, TTLS, "5")),
        (&int, anything, ALL | STAMP | TTL, with(&[5], &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]), ("row.ttl", 1, MORE, END)),
        (&int, anything, ALL | STAMP | TTL, with(&[5], &long), ("row.ttl", 1, "a delta of 32 bits", &long_found)),
        (&int, anything, ALL | STAMP | TTL, vec![5, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfc], ("row.ttl", 1, "0 or more", "-1")),
        (&int, anything, ALL | STAMP | TTL, vec![5, 10], ("row.local_deletion_time", 2, MORE, END)),
        (&int, few, ALL | STAMP | TTL, vec![5, 10, 4], ("row.local_deletion_time", 2, TIMES, "54")),
        (&int, anything, ALL | STAMP | TTL, with(&[5, 10], &long), ("row.local_deletion_time", 2, "a delta of 32 bits", &long_found)),
        (&int, anything, ALL | DELETION, vec![], ("row.deletion", 0, MORE, END)),
        (&int, anything, ALL | DELETION, vec![101], ("row.deletion", 0, TIMESTAMPS, "1101")),
        (&int, anything, ALL | DELETION, vec![0x80, 5], ("row.deletion", 2, MORE, END)),
        (&int, few, ALL | DELETION, vec![0x80, 5, 4], ("row.deletion", 2, TIMES, "54")),
        (&int, anything, ALL | DELETION, with(&[0x80, 5], &long), ("row.deletion", 2, "a delta of 32 bits", &long_found)),
        (&int, anything, 0, vec![], ("row.columns_subset", 0, MORE, END)),
        (&int, anything, 0, vec![2], ("row.columns_subset", 0, "a bitmap of 1 columns", "0x2")),
        (&many, anything, 0, vec![], ("row.columns_subset", 0, "a vint", END)),
        (&many, anything, 0, vec![65], ("row.columns_subset.missing_count", 0, "at most 64 columns", "65")),
        (&many, anything, 0, vec![62, 5, 5], ("row.columns_subset.index", 2, "ascending indexes below 64", "5")),
        (&many, anything, 0, vec![62, 5], ("row.columns_subset", 2, "a vint", END)),
        // Cells.
        (&int, anything, ALL, vec![], ("row.cell.flags", 0, MORE, END)),
        (&int, few, ALL, vec![0, 5], ("row.cell.flags", 2, EXPIRING, "data without a TTL")),
        (&int, anything, ALL, vec![0], ("row.cell.timestamp", 1, MORE, END)),
        (&int, anything, ALL, vec![0, 101], ("row.cell.timestamp", 1, TIMESTAMPS, "1101")),
        (&int, anything, ALL, vec![DELETED | EMPTY, 5], ("row.cell.local_deletion_time", 2, MORE, END)),
        (&int, few, ALL, vec![DELETED | EMPTY, 5, 4], ("row.cell.local_deletion_time", 2, TIMES, "54")),
        (&int, anything, ALL, with(&[EXPIRES, 5], &long), ("row.cell.local_deletion_time", 2, "a delta of 32 bits", &long_found)),
        (&int, anything, ALL, vec![EXPIRES, 5, 20], ("row.cell.ttl", 3, MORE, END)),
        (&int, few, ALL, vec![EXPIRES, 5, 0x83, 0, 2], ("row.cell.ttl", 4, TTLS, "5")),
        (&int, anything, ALL, with(&[EXPIRES, 5, 20], &long), ("row.cell.ttl", 3, "a delta of 32 bits", &long_found)),
        (&int, anything, ALL, vec![0, 5, 1, 2, 3], ("row.cell.value", 2, MORE, END)),
        (&text, anything, ALL, vec![0, 5], ("row.cell.value_length", 2, MORE, END)),
        (&text, anything, ALL, vec![0, 5, 3, 1, 2], ("row.cell.value_length", 2, "at most 2 bytes", "3")),
        (&text, anything, ALL, with(&[0, 5], &long), ("row.cell.value_length", 2, "at most 0 bytes", &long_found)),
        // Complex columns.
        (&map, anything, ALL | COMPLEX, vec![], ("row.complex_deletion", 0, MORE, END)),
        (&map, anything, ALL | COMPLEX, vec![101], ("row.complex_deletion", 0, TIMESTAMPS, "1101")),
        (&map, anything, ALL | COMPLEX, vec![5], ("row.complex_deletion", 1, MORE, END)),
        (&map, few, ALL | COMPLEX, vec![5, 4], ("row.complex_deletion", 1, TIMES, "54")),
        (&map, anything, ALL, vec![], ("row.complex_column.cell_count", 0, MORE, END)),
        (&map, anything, ALL, vec![3, 0, 0, 0, 0, 0], ("row.complex_column.cell_count", 0, "at most 2, which fit into the row", "3")),
        (&map, anything, ALL, vec![1, EMPTY, 5], ("row.cell.path_length", 3, MORE, END)),
        (&map, anything, ALL, vec![1, EMPTY, 5, 4, 0, 0, 0], ("row.cell.path_length", 3, "at most 3 bytes", "4")),
        (&map, anything, ALL, vec![1, 0, 5, 1, 9], ("row.cell.value_length", 5, MORE, END)),
        (&map, anything, ALL, vec![2, EMPTY, 5, 1, 9, EMPTY, 5, 1, 9], ("row.cell.path", 8, "a path that sorts after 09", "09 in column \0")),
        // The end.
        (&int, anything, ALL, vec![EMPTY, 5, 1, 2], ("row.body", 2, END, "2 bytes left")),
        (&[], anything, ALL, vec![7], ("row.body", 0, END, "1 bytes left")),
    ];
    for (types, stated, flag_byte, body, (structure, at, expected, found)) in cases {
        let mut layout = layout(types, Version::Oa, BASE);
        layout.min_timestamp = 1000;
        layout.min_ttl = 3;
        layout.timestamp_deltas = TimestampDeltas::between(1000, 1000, 1100);
        layout.stated = stated();
        let bytes = [&[flag_byte, body.len() as u8 + 1, 0], &body[..]].concat();
        let error = SampleRow::read(&bytes, &head(&bytes, &layout), &layout);
        let Err(Error::Corrupt(told)) = error else {
            panic!("{error:?} of {body:x?}")
        };
        assert_eq!(
            (
                told.structure,
                told.offset,
                &told.expected[..],
                &told.found[..]
            ),
            (structure, START + at, expected, found),
            "{body:x?}"
        );
    }
}
