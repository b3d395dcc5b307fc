use compactor_sstable::Version;
use compactor_sstable::data::cell::Liveness;
use compactor_sstable::data::clustering::ClusteringComparator;
use compactor_sstable::data::columns::write_subset;
use compactor_sstable::data::encode::{RowFrame, RowShape};
use compactor_sstable::data::layout::{ColumnLayout, TimestampDeltas};
use compactor_sstable::data::stated_extremes::StatedExtremes;
use compactor_sstable::data::unfiltered::{RowHead, whole_row};
use compactor_sstable::types::CqlType;
use proptest::prelude::*;

use super::*;
use crate::cursor::RowRef;
use crate::dropped_columns::DropTimes;
use crate::purge::PurgeLimit;
use crate::row_merge::{RowContext, RowMerger};

const NOW_S: i64 = 1000;
const COLUMNS: [CqlType; 3] = [CqlType::Int32, CqlType::Utf8, CqlType::Long];

fn layout() -> Layout {
    let columns = COLUMNS.iter().enumerate();
    Layout {
        version: Version::Oa,
        min_timestamp: 0,
        timestamp_deltas: TimestampDeltas::ANY,
        stated: StatedExtremes::ANY,
        min_local_deletion_time: 0,
        min_ttl: 0,
        clustering: ClusteringComparator::new(&[]).unwrap(),
        static_columns: Vec::new(),
        regular_columns: columns
            .map(|(i, t)| ColumnLayout::new(vec![i as u8], t.clone()).unwrap())
            .collect(),
    }
}

#[derive(Clone, Debug)]
struct Row {
    liveness: Liveness,
    deletion: DeletionTime,
    cells: Vec<Option<Cell>>,
}

#[derive(Clone, Debug)]
struct Cell {
    timestamp: i64,
    /// TTL and local deletion time, if it does not live on.
    dies: Option<(i32, i64)>,
    first_byte: u8,
}

/// Few, so that many are equal.
fn timestamp() -> impl Strategy<Value = i64> {
    1..6i64
}

/// Around `now` and gc before.
fn seconds() -> impl Strategy<Value = i64> {
    prop_oneof![
        Just(NOW_S - 300),
        NOW_S - 102..NOW_S - 97,
        NOW_S - 2..NOW_S + 3
    ]
}

fn deletion() -> impl Strategy<Value = DeletionTime> {
    prop_oneof![
        2 => Just(DeletionTime::LIVE),
        1 => (timestamp(), seconds()).prop_map(|(at, seconds)| DeletionTime::build(at, seconds)),
    ]
}

fn row() -> impl Strategy<Value = Row> {
    let ttl = || prop_oneof![Just(NO_TTL), 1..4i32, Just(200)];
    let liveness = prop::option::of((timestamp(), ttl(), seconds()));
    let dies = prop::option::of((ttl(), seconds()));
    let cell = (timestamp(), dies, 0..3u8).prop_map(|(timestamp, dies, first_byte)| Cell {
        timestamp,
        dies,
        first_byte,
    });
    let cell = prop::option::weighted(0.7, cell);
    let cells = prop::collection::vec(cell, COLUMNS.len());
    (liveness, deletion(), cells).prop_map(|(liveness, deletion, cells)| Row {
        liveness: liveness.map_or(Liveness::EMPTY, |(at, ttl, seconds)| {
            Liveness::new(at, ttl, seconds)
        }),
        deletion,
        cells,
    })
}

fn write(layout: &Layout, row: &Row) -> Vec<u8> {
    let present = (0..row.cells.len()).filter(|i| row.cells[*i].is_some());
    let present: Vec<usize> = present.collect();
    let shape = RowShape {
        is_static: false,
        liveness: row.liveness,
        deletion: row.deletion,
        is_shadowable: false,
        has_complex_deletion: false,
        has_all_columns: present.len() == row.cells.len(),
    };
    let mut out = Vec::new();
    let frame = RowFrame::begin(&mut out, &shape, &[], 77, 30);
    layout.put_body_start(&mut out, &shape);
    if !shape.has_all_columns {
        write_subset(&mut out, row.cells.len(), present.into_iter());
    }
    for (column, cell) in layout.regular_columns.iter().zip(&row.cells) {
        let Some(Cell {
            timestamp,
            dies,
            first_byte,
        }) = *cell
        else {
            continue;
        };
        let (ttl, local_deletion_time) = dies.unwrap_or((NO_TTL, NO_DELETION_TIME));
        let value = [first_byte; 8];
        let is_tombstone = dies.is_some() && ttl == NO_TTL;
        let value = match column.fixed_len {
            _ if is_tombstone => &[],
            Some(len) => &value[..len as usize],
            None => &value[..usize::from(first_byte)],
        };
        let cell = CellView {
            timestamp,
            local_deletion_time,
            ttl,
            path: &[],
            value,
        };
        layout.put_cell(&mut out, column, &row.liveness, &cell);
    }
    frame.end(&mut out);
    out
}

/// Column, timestamp, local deletion time, TTL and value.
type OwnedCell = (u32, i64, i64, i32, Vec<u8>);
/// What is left of a row, with what was counted.
type Outcome = (
    Option<(Liveness, DeletionTime, Vec<OwnedCell>)>,
    PurgeCounts,
);

fn simple(
    layout: &Layout,
    rows: &[(Vec<u8>, RowHead)],
    map: &[u32],
    active: DeletionTime,
    purger: &Purger,
) -> Option<Outcome> {
    let versions: Vec<SimpleVersion<'_>> = rows
        .iter()
        .map(|(bytes, head)| SimpleVersion {
            row: SimpleRow::read(bytes, head, layout).unwrap(),
            layout,
            map,
        })
        .collect();
    let mut merger = SimpleMerger::new(COLUMNS.len()).unwrap();
    let mut counts = PurgeCounts::default();
    let left = merger.merge(&versions, active, purger, &mut counts)?;
    if left.is_empty() {
        return Some((None, counts));
    }
    let present = (0..COLUMNS.len()).filter(|column| left.present & (1 << column) != 0);
    let cells = present.map(|column| {
        let (cell, bytes) = merger.cell(column, &versions).unwrap();
        owned(column as u32, &cell.view(bytes))
    });
    Some((
        Some((left.liveness, left.deletion, cells.collect())),
        counts,
    ))
}

fn general(
    layout: &Layout,
    rows: &[(Vec<u8>, RowHead)],
    map: &[u32],
    active: DeletionTime,
    purger: &Purger,
) -> Outcome {
    let versions = rows.iter().map(|(bytes, head)| {
        let row = RowRef {
            bytes,
            head: *head,
            layout,
        };
        (row, map)
    });
    let context = RowContext {
        visits: None,
        active,
        inputs: rows.len(),
        purger,
        output: layout,
        drops: &DropTimes::default(),
        shadow: None,
    };
    let (mut left, mut counts) = (None, PurgeCounts::default());
    RowMerger::default()
        .merge(versions, &context, &mut counts, |row| {
            let cells = row.columns.iter().map(|column| {
                assert_eq!(column.cell_count, 1);
                owned(column.index, &row.cells[column.first_cell])
            });
            left = Some((row.liveness, row.deletion, cells.collect()));
        })
        .unwrap();
    (left, counts)
}

fn owned(column: u32, cell: &CellView<'_>) -> OwnedCell {
    let value = cell.value.to_vec();
    (
        column,
        cell.timestamp,
        cell.local_deletion_time,
        cell.ttl,
        value,
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// The same is left, and counted, as where rows of any kind are merged.
    #[test]
    fn merges_as_the_general_path_does(
        rows in prop::collection::vec(row(), 1..=MOST_VERSIONS),
        active in deletion(),
        limit in prop_oneof![
            Just(PurgeLimit::All),
            Just(PurgeLimit::Before(3)),
            Just(PurgeLimit::Nothing),
        ],
    ) {
        let layout = layout();
        let purger = Purger { now_s: NOW_S, gc_before_s: NOW_S - 100, limit };
        let rows: Vec<_> = rows
            .iter()
            .map(|row| {
                let bytes = write(&layout, row);
                let head = whole_row(&bytes, &layout, &mut Vec::new()).unwrap();
                (bytes, head)
            })
            .collect();
        let map: Vec<u32> = (0..COLUMNS.len() as u32).collect();
        let expected = general(&layout, &rows, &map, active, &purger);
        prop_assert_eq!(simple(&layout, &rows, &map, active, &purger), Some(expected));
    }

    /// Where a version is damaged nothing is counted, whatever came before it.
    #[test]
    fn of_a_damaged_version_nothing_is_counted(rows in prop::collection::vec(row(), 1..=MOST_VERSIONS)) {
        let layout = layout();
        let purger = Purger { now_s: NOW_S, gc_before_s: NOW_S - 100, limit: PurgeLimit::All };
        let mut rows: Vec<_> = rows
            .iter()
            .map(|row| {
                let bytes = write(&layout, row);
                let head = whole_row(&bytes, &layout, &mut Vec::new()).unwrap();
                (bytes, head)
            })
            .collect();
        if let Some((bytes, head)) = rows.last_mut() {
            bytes.push(0);
            head.len += 1;
        }
        let mut counts = PurgeCounts::default();
        let versions: Vec<SimpleVersion<'_>> = rows
            .iter()
            .map(|(bytes, head)| SimpleVersion {
                row: SimpleRow::read(bytes, head, &layout).unwrap(),
                layout: &layout,
                map: &[0, 1, 2],
            })
            .collect();
        let mut merger = SimpleMerger::new(COLUMNS.len()).unwrap();
        let merged = merger.merge(&versions, DeletionTime::LIVE, &purger, &mut counts);
        prop_assert!(merged.is_none());
        prop_assert_eq!(counts, PurgeCounts::default());
    }
}

/// A column that the output has not is none of this path's cases.
#[test]
fn columns_that_the_output_lacks_are_left_to_others() {
    let layout = layout();
    let row = Row {
        liveness: Liveness::EMPTY,
        deletion: DeletionTime::LIVE,
        cells: vec![
            Some(Cell {
                timestamp: 3,
                dies: None,
                first_byte: 1,
            }),
            None,
            None,
        ],
    };
    let bytes = write(&layout, &row);
    let head = whole_row(&bytes, &layout, &mut Vec::new()).unwrap();
    let purger = Purger {
        now_s: NOW_S,
        gc_before_s: NOW_S,
        limit: PurgeLimit::All,
    };
    let rows = [(bytes, head)];
    let of = |map: &[u32]| simple(&layout, &rows, map, DeletionTime::LIVE, &purger);
    assert!(of(&[2, 1, 0]).is_some_and(|(left, _)| left.unwrap().2[0].0 == 2));
    assert_eq!(of(&[3, 1, 0]), None);
    assert_eq!(of(&[]), None);
}

/// There are as many bits.
#[test]
fn rows_of_many_columns_are_left_to_others() {
    assert!(SimpleMerger::new(63).is_some());
    assert!(SimpleMerger::new(64).is_none());
}
