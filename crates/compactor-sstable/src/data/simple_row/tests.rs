use proptest::prelude::*;

use super::*;
use crate::Version;
use crate::data::clustering::ClusteringComparator;
use crate::data::columns::{write_missing, write_subset};
use crate::data::encode::{RowFrame, RowShape};
use crate::data::layout::{ColumnLayout, TimestampDeltas};
use crate::data::row::RowBody;
use crate::data::stated_extremes::StatedExtremes;
use crate::data::unfiltered::{UnfilteredHead, parse_head};
use crate::types::CqlType;

/// Timestamps from 1000 to 1100 are what the statistics speak of.
fn layout(types: &[CqlType], version: Version) -> Layout {
    let columns = types.iter().enumerate();
    Layout {
        version,
        min_timestamp: 1000,
        timestamp_deltas: TimestampDeltas::between(1000, 1000, 1100),
        stated: StatedExtremes::ANY,
        min_local_deletion_time: 50,
        min_ttl: 3,
        clustering: ClusteringComparator::new(&[]).unwrap(),
        static_columns: Vec::new(),
        regular_columns: columns
            .map(|(i, t)| ColumnLayout::new(vec![i as u8], t.clone()).unwrap())
            .collect(),
    }
}

#[derive(Clone, Debug)]
struct Cell {
    value: Vec<u8>,
    /// Instead of the row's.
    timestamp: Option<i64>,
    /// TTL and local deletion time; no TTL for a tombstone.
    dies: Option<(i32, i64)>,
    is_missing: bool,
}

#[derive(Clone, Debug)]
struct Row {
    liveness: Liveness,
    deletion: DeletionTime,
    cells: Vec<Cell>,
}

fn times() -> impl Strategy<Value = i64> {
    1000..1101i64
}

fn cell() -> impl Strategy<Value = Cell> {
    let value = prop_oneof![
        Just(Vec::new()),
        prop::collection::vec(0u8.., 1..40),
        prop::collection::vec(0u8.., 120..300),
    ];
    let dies = prop::option::of((prop_oneof![Just(NO_TTL), 3..500i32], 50..9000i64));
    let timestamp = prop::option::of(times());
    (value, timestamp, dies, prop::bool::weighted(0.3)).prop_map(
        |(value, timestamp, dies, is_missing)| Cell {
            value,
            timestamp,
            dies,
            is_missing,
        },
    )
}

fn column_type() -> impl Strategy<Value = CqlType> {
    prop_oneof![
        Just(CqlType::Int32),
        Just(CqlType::Utf8),
        Just(CqlType::Uuid),
        Just(CqlType::Long),
    ]
}

fn row(columns: usize) -> impl Strategy<Value = Row> {
    let ttl = prop_oneof![Just(NO_TTL), 3..500i32];
    let liveness = prop::option::of((times(), ttl, 600..9000i64));
    let deletion = prop::option::of((times(), 50..9000i64));
    let cells = prop::collection::vec(cell(), columns);
    (liveness, deletion, cells).prop_map(|(liveness, deletion, cells)| Row {
        liveness: liveness.map_or(Liveness::EMPTY, |(timestamp, ttl, seconds)| {
            Liveness::new(timestamp, ttl, seconds)
        }),
        deletion: deletion.map_or(DeletionTime::LIVE, |(marked, seconds)| {
            DeletionTime::build(marked, seconds)
        }),
        cells,
    })
}

fn table() -> impl Strategy<Value = (Vec<CqlType>, Row)> {
    prop::collection::vec(column_type(), 0..9).prop_flat_map(|types| {
        let count = types.len();
        (Just(types), row(count))
    })
}

fn view<'a>(row: &Row, cell: &'a Cell, column: &ColumnLayout) -> CellView<'a> {
    let is_tombstone = cell.dies.is_some_and(|(ttl, _)| ttl == NO_TTL);
    let value = match column.fixed_len {
        _ if cell.value.is_empty() || is_tombstone => &[][..],
        Some(len) => &[9; 16][..len as usize],
        None => &cell.value,
    };
    let (ttl, local_deletion_time) = cell.dies.unwrap_or((NO_TTL, NO_DELETION_TIME));
    CellView {
        timestamp: match (cell.timestamp, row.liveness.is_empty()) {
            (Some(timestamp), _) => timestamp,
            (None, false) => row.liveness.timestamp,
            (None, true) => 1050,
        },
        local_deletion_time: local_deletion_time.max(i64::from(ttl)),
        ttl,
        path: &[],
        value,
    }
}

/// The row, which ends where its bytes do.
fn write(layout: &Layout, row: &Row) -> Vec<u8> {
    let columns = &layout.regular_columns;
    let present = (0..columns.len()).filter(|i| !row.cells[*i].is_missing);
    let present: Vec<usize> = present.collect();
    let shape = RowShape {
        is_static: false,
        liveness: row.liveness,
        deletion: row.deletion,
        is_shadowable: false,
        has_complex_deletion: false,
        has_all_columns: present.len() == columns.len(),
    };
    let mut out = Vec::new();
    let frame = RowFrame::begin(&mut out, &shape, &[], 77, 30);
    layout.put_body_start(&mut out, &shape);
    if !shape.has_all_columns {
        write_subset(&mut out, columns.len(), present.iter().copied());
    }
    for index in present {
        let column = &columns[index];
        let cell = view(row, &row.cells[index], column);
        layout.put_cell(&mut out, column, &row.liveness, &cell);
    }
    frame.end(&mut out);
    out
}

fn head(bytes: &[u8], layout: &Layout) -> RowHead {
    match parse_head(bytes, layout, bytes.len() as u64, &mut Vec::new()) {
        Ok(UnfilteredHead::Row(head)) => head,
        other => panic!("{other:?}"),
    }
}

type Read<'a> = (Liveness, DeletionTime, Vec<(usize, CellView<'a>)>);

/// All of the row, as [`SimpleRow`] reads it.
fn read<'a>(bytes: &'a [u8], head: &RowHead, layout: &Layout) -> Option<Read<'a>> {
    let row = SimpleRow::read(bytes, head, layout)?;
    let mut cells = row.cells();
    let mut read = Vec::new();
    while let Some((index, cell)) = cells.next(layout)? {
        read.push((index, cell.view(bytes)));
    }
    Some((row.liveness, row.deletion, read))
}

/// The same, as [`RowBody`] does.
fn read_step_by_step<'a>(
    bytes: &'a [u8],
    head: &RowHead,
    layout: &'a Layout,
) -> crate::Result<Read<'a>> {
    let mut body = RowBody::open(bytes, head, layout)?;
    let mut read = Vec::new();
    while let Some(index) = body.next_column()? {
        let column = body.column(index);
        read.extend(body.simple_cell(column)?.map(|cell| (index, cell)));
    }
    Ok((body.liveness, body.deletion, read))
}

proptest! {
    /// A row that Cassandra might write is read, as the general reader reads it, whatever lies behind it.
    #[test]
    fn reads_what_the_general_reader_reads((types, row) in table(), is_legacy: bool, behind in 0..40usize) {
        let version = if is_legacy { Version::Nb } else { Version::Oa };
        let layout = layout(&types, version);
        let mut bytes = write(&layout, &row);
        let head = head(&bytes, &layout);
        bytes.resize(bytes.len() + behind, 0x5a);
        let read = read(&bytes, &head, &layout);
        prop_assert_eq!(read, Some(read_step_by_step(&bytes, &head, &layout).unwrap()));
    }

    /// Of damaged rows it reads none otherwise than the general reader, and none that this refuses.
    #[test]
    fn never_takes_more_than_the_general_reader(
        (types, row) in table(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        flags: Option<u8>,
        cut in prop::option::weighted(0.2, any::<prop::sample::Index>()),
    ) {
        let layout = layout(&types, Version::Oa);
        let mut bytes = write(&layout, &row);
        let mut head = head(&bytes, &layout);
        let body_len = bytes.len() - head.body_start;
        if body_len > 0 {
            for (at, byte) in changes {
                bytes[head.body_start + at.index(body_len)] = byte;
            }
        }
        head.flags = flags.unwrap_or(head.flags);
        if let Some(cut) = cut {
            head.len -= cut.index(body_len + 1);
        }
        if let Some(read) = read(&bytes, &head, &layout) {
            let expected = read_step_by_step(&bytes, &head, &layout);
            prop_assert_eq!(Some(read), expected.ok());
        }
    }

    /// Cells are written as the general writer writes them, for a row of another liveness too.
    #[test]
    fn cells_are_written_as_others_are(
        (types, row) in table(),
        liveness in prop::option::of((times(), 600..700i64)),
        behind in 0..40usize,
    ) {
        let layout = layout(&types, Version::Oa);
        let mut bytes = write(&layout, &row);
        let head = head(&bytes, &layout);
        bytes.resize(bytes.len() + behind, 0x5a);
        let other = liveness.map(|(timestamp, seconds)| Liveness::new(timestamp, 9, seconds));
        let liveness = other.unwrap_or(row.liveness);
        let simple = SimpleRow::read(&bytes, &head, &layout).unwrap();
        let mut cells = simple.cells();
        while let Some((index, cell)) = cells.next(&layout).unwrap() {
            let column = &layout.regular_columns[index];
            let (mut fast, mut general) = (vec![1, 2], vec![1, 2]);
            layout.put_simple_cell(&mut fast, column, &liveness, &cell, &bytes);
            layout.put_cell(&mut general, column, &liveness, &cell.view(&bytes));
            prop_assert_eq!(fast, general);
        }
    }

    #[test]
    fn missing_columns_are_a_subset_of_few(count in 1..64usize, bits: u64) {
        let all = (1u64 << count) - 1;
        let present: Vec<usize> = (0..count).filter(|i| bits & (1 << i) != 0).collect();
        prop_assume!(present.len() < count);
        let (mut by_bits, mut by_list) = (Vec::new(), Vec::new());
        write_missing(&mut by_bits, all & !bits);
        write_subset(&mut by_list, count, present.into_iter());
        prop_assert_eq!(by_bits, by_list);
    }
}

/// These are for the general reader, which knows what they are.
#[test]
fn other_rows_are_left_to_others() {
    let map = CqlType::Map {
        key: CqlType::Int32.into(),
        value: CqlType::Int32.into(),
        multi_cell: true,
    };
    let plain = Row {
        liveness: Liveness::new(1000, NO_TTL, 0),
        deletion: DeletionTime::LIVE,
        cells: vec![Cell {
            value: vec![7; 4],
            timestamp: None,
            dies: None,
            is_missing: false,
        }],
    };
    for last in [map, CqlType::CounterColumn, CqlType::Empty] {
        let layout = layout(&[CqlType::Utf8, last], Version::Oa);
        for (is_missing, value) in [(true, 7), (false, 7), (false, 0)] {
            let mut row = plain.clone();
            row.cells.push(Cell {
                is_missing,
                value: vec![value; usize::from(value)],
                ..plain.cells[0].clone()
            });
            let bytes = write(&layout, &row);
            let head = head(&bytes, &layout);
            let is_read = read(&bytes, &head, &layout).is_some();
            assert_eq!(is_read, is_missing, "{layout:?}");
        }
    }
    let simple = layout(&[CqlType::Utf8], Version::Oa);
    let bytes = write(&simple, &plain);
    let head = head(&bytes, &simple);
    assert!(read(&bytes, &head, &simple).is_some());
    for other in [flags::HAS_COMPLEX_DELETION, flags::EXTENSION_FLAG] {
        let mut head = head;
        head.flags |= other;
        assert!(
            SimpleRow::read(&bytes, &head, &simple).is_none(),
            "{other:#x}"
        );
    }
    let mut shadowable = head;
    shadowable.extended_flags = flags::HAS_SHADOWABLE_DELETION;
    assert!(SimpleRow::read(&bytes, &shadowable, &simple).is_none());
    let many = layout(&vec![CqlType::Int32; LIST_FORM_FROM], Version::Oa);
    let bytes = [0x24, 2, 0, 0];
    let head = match parse_head(&bytes, &many, 4, &mut Vec::new()) {
        Ok(UnfilteredHead::Row(head)) => head,
        other => panic!("{other:?}"),
    };
    assert!(SimpleRow::read(&bytes, &head, &many).is_none());
}

/// A cell may have the TTL of a liveness that the row's own deletion covers.
#[test]
fn cells_refer_to_the_liveness_as_written() {
    let layout = layout(&[CqlType::Int32], Version::Oa);
    let row = Row {
        liveness: Liveness::new(1010, 10, 700),
        deletion: DeletionTime::build(1020, 60),
        cells: vec![Cell {
            value: vec![7],
            timestamp: Some(1030),
            dies: Some((10, 700)),
            is_missing: false,
        }],
    };
    let bytes = write(&layout, &row);
    let head = head(&bytes, &layout);
    let (liveness, _, cells) = read(&bytes, &head, &layout).unwrap();
    assert!(liveness.is_empty());
    let expected = view(&row, &row.cells[0], &layout.regular_columns[0]);
    assert_eq!(cells, [(0, expected)]);
    let general = read_step_by_step(&bytes, &head, &layout).unwrap();
    assert_eq!(general, (liveness, row.deletion, cells));
}

/// Times that mean something else, or nothing, are for the general reader.
#[test]
fn odd_times_are_left_to_others() {
    let layout = Layout {
        min_timestamp: NO_TIMESTAMP,
        timestamp_deltas: TimestampDeltas::ANY,
        stated: StatedExtremes::ANY,
        ..layout(&[CqlType::Int32], Version::Oa)
    };
    let read = |flags: u8, times: &[u8]| {
        let mut bytes = vec![flags | flags::HAS_ALL_COLUMNS, 0, 0];
        bytes.extend_from_slice(times);
        // A cell at the least timestamp but five.
        bytes.extend_from_slice(&[0, 5, 0, 0, 0, 7]);
        bytes[1] = (bytes.len() - 2) as u8;
        let head = head(&bytes, &layout);
        read(&bytes, &head, &layout).is_some()
    };
    const EXPIRING: u8 = flags::HAS_TIMESTAMP | flags::HAS_TTL;
    assert!(read(flags::HAS_TIMESTAMP, &[1]));
    assert!(!read(flags::HAS_TIMESTAMP, &[0]));
    assert!(read(EXPIRING, &[1, 10, 100]));
    assert!(!read(EXPIRING, &[0, 10, 100]));
    assert!(read(flags::HAS_DELETION, &[1, 100]));
    assert!(!read(flags::HAS_DELETION, &[0, 100]));
    // A TTL of 3 - 4.
    let negative = [1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfc, 100];
    assert!(!read(EXPIRING, &negative));
}

/// A copy of constant length takes what lies behind a short value along, if there is something.
#[test]
fn values_of_each_length_are_written_as_others_are() {
    for cql_type in [CqlType::Bytes, CqlType::Int32, CqlType::Long, CqlType::Uuid] {
        let layout = layout(&[cql_type], Version::Oa);
        for len in 0..40 {
            let row = Row {
                liveness: Liveness::EMPTY,
                deletion: DeletionTime::LIVE,
                cells: vec![Cell {
                    value: vec![7; len],
                    timestamp: Some(1001),
                    dies: None,
                    is_missing: false,
                }],
            };
            let mut bytes = write(&layout, &row);
            let head = head(&bytes, &layout);
            for _ in 0..20 {
                let simple = SimpleRow::read(&bytes, &head, &layout).unwrap();
                let (_, cell) = simple.cells().next(&layout).unwrap().unwrap();
                let column = &layout.regular_columns[0];
                let (mut fast, mut general) = (Vec::new(), Vec::new());
                layout.put_simple_cell(&mut fast, column, &row.liveness, &cell, &bytes);
                layout.put_cell(&mut general, column, &row.liveness, &cell.view(&bytes));
                assert_eq!(fast, general, "{len} bytes");
                bytes.push(0x5a);
            }
        }
    }
}
