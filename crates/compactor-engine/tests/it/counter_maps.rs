//! Counters in maps, as super column families of counters have them.

use compactor_sstable::data::deletion_time::DeletionTime;

use compactor_testkit::model::engine::serialization_header;
use compactor_testkit::model::table::{
    Base, Cell, ColumnData, ColumnType, Partition, Row, Schema, Unfiltered,
};

use crate::regressions::{
    NOW_S, case, column, expect, header, live_cell, merge_kept, partition, source,
};

/// A counter of a shard for each of these ids, with this clock and count. Local shards are marked to be cleared.
pub fn counter(is_local: bool, shards: &[(u8, i64, i64)]) -> Vec<u8> {
    let count = shards.len() as i16;
    let first = if is_local { 0 } else { i16::MIN };
    let mut context = if is_local { -count } else { count }.to_be_bytes().to_vec();
    context.extend((first..first + count).flat_map(i16::to_be_bytes));
    for (id, clock, count) in shards {
        context.extend([*id; 16]);
        context.extend(clock.to_be_bytes());
        context.extend(count.to_be_bytes());
    }
    context
}

fn map_of_counters() -> Schema {
    let map = ColumnType::Map(Base::Text, Base::Counter);
    Schema {
        clustering: Vec::new(),
        columns: vec![column("", map, false)],
    }
}

/// A partition with a row of these cells.
fn of_cells(cells: Vec<Cell>) -> Partition {
    let mut row = Row::empty();
    let deletion = DeletionTime::LIVE;
    row.columns = [(0, ColumnData { deletion, cells })].into();
    let clustering = Vec::new();
    partition(Row::empty(), vec![Unfiltered::Row { clustering, row }])
}

/// The newest of several counters in a map was kept, as if they were plain values. Super column families of counters
/// have such maps.
#[test]
fn counters_in_maps_are_added_up() {
    let tombstone = Cell {
        local_deletion_time: NOW_S,
        ..live_cell(3, b"deleted", b"")
    };
    let marked = counter(true, &[(1, 1, 1)]);
    let sources = [
        vec![
            live_cell(7, b"a", &counter(false, &[(1, 4, 40)])),
            tombstone.clone(),
            live_cell(7, b"one input", &marked),
        ],
        vec![
            live_cell(9, b"a", &counter(false, &[(1, 3, 30), (2, 1, 10)])),
            live_cell(5, b"b", &counter(false, &[(2, 1, 1)])),
            live_cell(9, b"deleted", &counter(false, &[(1, 1, 1)])),
        ],
        vec![
            live_cell(8, b"a", &counter(false, &[(3, 1, -5)])),
            // Less than the other input has, but newer.
            live_cell(6, b"b", &counter(false, &[(2, 0, 0)])),
        ],
    ];
    let expected = of_cells(vec![
        live_cell(
            9,
            b"a",
            &counter(false, &[(1, 4, 40), (2, 1, 10), (3, 1, -5)]),
        ),
        live_cell(6, b"b", &counter(false, &[(2, 1, 1)])),
        tombstone,
        live_cell(7, b"one input", &marked),
    ]);
    let sources = sources.map(|cells| source(header(&[0]), of_cells(cells)));
    expect(case(map_of_counters(), sources.to_vec()), Some(expected));
}

/// Also in a row that no other is merged with.
#[test]
fn counters_in_maps_that_are_no_contexts_are_refused() {
    let content = of_cells(vec![live_cell(1, b"a", &counter(false, &[(1, 1, 1)]))]);
    let schema = map_of_counters();
    let mut input = source(header(&[0]), content).input(&schema);
    let of_output = serialization_header(&schema, &header(&[0]));
    merge_kept(std::slice::from_ref(&input), &of_output).unwrap();
    // One global shard.
    let at = input
        .bytes
        .windows(4)
        .position(|head| head == [0, 1, 0x80, 0]);
    input.bytes[at.unwrap() + 1] = 99;
    let error = merge_kept(&[input], &of_output).unwrap_err().to_string();
    assert!(error.contains("row.cell.counter"), "{error}");
}
