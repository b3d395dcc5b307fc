//! Rows of simple columns, which have a code path of their own: their counts, the order in which their times
//! are recorded, and the refusal of damaged ones.

use std::path::Path;
use std::sync::Arc;

use compactor_engine::input::{column_map, layout_of};
use compactor_engine::merge::{InputFacts, MergeInput, PartitionMerger};
use compactor_engine::row::{DropTimes, PurgeLimit};
use compactor_engine::write::{IndexBuilder, PartitionWriter};
use compactor_sstable::Version;
use compactor_sstable::data::cell::Liveness;
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::statistics::MetadataCollector;

use crate::regressions::{
    NOW_S, by_number, case, column, deletion, header, live_cell, partition, source,
};
use compactor_testkit::model::case::PurgePlan;
use compactor_testkit::model::comparison::merge_equals_the_model;
use compactor_testkit::model::engine::{
    Input, Limits, MemoryOutput, Unobserved, cursor, merge_into, merge_raw, serialization_header,
};
use compactor_testkit::model::table::{
    Base, Cell, ColumnData, ColumnType, Row, Schema, Unfiltered,
};

/// Schema clustered by numbers, with columns of text.
fn with_texts(names: &[&str]) -> Schema {
    let text = |name: &&str| column(name, ColumnType::Simple(Base::Text), false);
    Schema {
        columns: names.iter().map(text).collect(),
        ..by_number(Base::Int)
    }
}

fn row_at(number: i32, row: Row) -> Unfiltered {
    Unfiltered::Row {
        clustering: vec![Some(number.to_be_bytes().to_vec())],
        row,
    }
}

fn simple_data(cell: Cell) -> ColumnData {
    ColumnData {
        deletion: DeletionTime::LIVE,
        cells: vec![cell],
    }
}

/// A purged item of a row is counted once, however many versions it has: 17 are more than the faster code
/// paths handle, so all code paths are compared.
#[test]
fn purged_items_of_simple_rows_are_counted() {
    let schema = with_texts(&["a", "b", "c"]);
    let tombstone = Cell {
        local_deletion_time: NOW_S - 50,
        ..live_cell(7, &[], &[])
    };
    let expired = Cell {
        ttl: 10,
        local_deletion_time: NOW_S - 100,
        ..live_cell(7, &[], b"expired")
    };
    let left = live_cell(8, &[], b"left");
    let row = Row {
        liveness: Liveness::new(7, 10, NOW_S - 100),
        deletion: deletion(3, NOW_S - 1000),
        is_shadowable: false,
        columns: [
            (0, simple_data(tombstone)),
            (1, simple_data(expired)),
            (2, simple_data(left)),
        ]
        .into(),
    };
    for versions in [1, 2, 3, 4, 5, 16, 17] {
        let rows = || partition(Row::empty(), vec![row_at(1, row.clone())]);
        let sources = (0..versions).map(|_| source(header(&[0, 1, 2]), rows()));
        let mut case = case(schema.clone(), sources.collect());
        case.purge = PurgePlan::All;
        case.settings.gc_before_s = NOW_S;
        merge_equals_the_model(&case).unwrap();
        let purged = case.run().unwrap().counts.purged;
        let found = (purged.expired, purged.row_deletions, purged.cell_tombstones);
        assert_eq!(found, (2, 1, 1), "of {versions} versions: {purged:?}");
        assert_eq!(purged.total(), 4, "of {versions} versions: {purged:?}");
    }
}

/// A truncated row of simple columns is an error with its position, alone, after valid rows that were located
/// in advance, and along with another version: it is never omitted.
#[test]
fn damaged_simple_rows_are_refused() {
    let schema = with_texts(&["a", "b"]);
    let update = |number: i32, value: &str| {
        let columns = [
            (0, simple_data(live_cell(7, &[], value.as_bytes()))),
            (1, simple_data(live_cell(8, &[], b"other"))),
        ];
        let row = Row {
            columns: columns.into(),
            ..Row::empty()
        };
        row_at(number, row)
    };
    let rows = (0..5).map(|number| update(number, if number == 3 { "marked" } else { "sound" }));
    let sound = source(header(&[0, 1]), partition(Row::empty(), rows.collect()));
    let sound = sound.input(&schema);
    let at = sound
        .bytes
        .windows(6)
        .position(|window| window == b"marked");
    let length_at = at.unwrap() - 1;
    let merge = |inputs: &[&[u8]], block_len| {
        let input = |bytes: &&[u8]| Input {
            bytes: bytes.to_vec(),
            block_len,
            min_local_deletion_time: 0,
            ..sound.clone()
        };
        let inputs: Vec<Input> = inputs.iter().map(input).collect();
        merge_raw(
            &inputs,
            &sound.header,
            0,
            PurgeLimit::KeepAll,
            &mut Unobserved,
        )
    };
    let last_length_at = length_at + 9;
    assert_eq!(sound.bytes[last_length_at..][..6], *b"\x05other");
    for (at, length, structure, offset) in [
        (length_at, 100, "row.cell.value_length", length_at),
        (last_length_at, 6, "row.cell.value_length", last_length_at),
        (last_length_at, 4, "row.body", last_length_at + 5),
    ] {
        let mut damaged = sound.bytes.clone();
        damaged[at] = length;
        for block_len in [1, 64, 1 << 20] {
            for inputs in [
                &[&damaged[..]][..],
                &[&damaged, &sound.bytes],
                &[&sound.bytes, &damaged],
                &[&sound.bytes, &damaged, &sound.bytes],
            ] {
                let error = merge(inputs, block_len).unwrap_err().to_string();
                let place = format!("position {offset} ");
                assert!(
                    error.contains(structure) && error.contains(&place),
                    "{error}"
                );
            }
        }
        assert_eq!(merge(&[&sound.bytes], 64).unwrap(), sound.bytes);
    }
}

/// Rows that are not plain are also located in advance, and their order is checked.
#[test]
fn order_is_checked_after_deleted_rows() {
    let schema = by_number(Base::Int);
    let deleted = |number: &i32| {
        let row = Row {
            deletion: deletion(7, 100),
            ..Row::empty()
        };
        row_at(*number, row)
    };
    for in_order in [1, 2, 15, 16, 17, 33] {
        for wrong in [in_order - 1, in_order - 2, -1] {
            let numbers = (0..in_order).chain([wrong, 1000]);
            let rows: Vec<Unfiltered> = numbers.map(|n| deleted(&n)).collect();
            let mut source = source(header(&[]), partition(Row::empty(), rows));
            source.block_len = 5000;
            let error = case(schema.clone(), vec![source]).run().unwrap_err();
            assert!(error.contains("clusterings in ascending order"), "{error}");
        }
    }
}

/// The histogram of drop times depends on their order: those of the row first, then those of its cells, in
/// every code path of the merge.
#[test]
fn times_of_simple_rows_are_recorded_in_order() {
    let schema = with_texts(&["a", "b"]);
    let minutes = |n: i64| NOW_S + 60 * n;
    let dead = |seconds: i64| Cell {
        local_deletion_time: seconds,
        ..live_cell(8, &[], &[])
    };
    let row = Row {
        liveness: Liveness::new(7, 10, minutes(3)),
        deletion: deletion(3, minutes(1)),
        is_shadowable: false,
        columns: [
            (0, simple_data(dead(minutes(4)))),
            (1, simple_data(dead(minutes(2)))),
        ]
        .into(),
    };
    let mut expected = MetadataCollector::for_part();
    for number in [3, 1, 4, 2] {
        expected.update_local_deletion_time(minutes(number));
    }
    let expected = expected.take_times();
    for versions in [1, 2, 3, 4, 5, 16, 17] {
        let rows = || partition(Row::empty(), vec![row_at(1, row.clone())]);
        let sources = (0..versions).map(|_| source(header(&[0, 1]), rows()));
        let case = case(schema.clone(), sources.collect());
        let output = serialization_header(&schema, &case.settings.output);
        let layout = Arc::new(layout_of(&output, Version::Oa).unwrap());
        let writer = PartitionWriter::new(
            Arc::clone(&layout),
            MemoryOutput::new(4096),
            MetadataCollector::for_part(),
            IndexBuilder::big(Version::Oa, 300),
        )
        .unwrap();
        let limits = |_: &[u8]| PurgeLimit::KeepAll;
        let (inputs, settings) = (case.inputs(), &case.settings);
        let merged = merge_into(&inputs, settings, limits, writer, layout).unwrap();
        let (_, mut collector) = merged.0.finish();
        assert_eq!(collector.take_times(), expected, "of {versions} versions");
    }
}

/// Cells of a dropped column are also removed from simple rows, and counted, with any number of versions.
#[test]
fn cells_of_dropped_columns_are_removed_from_simple_rows() {
    let schema = with_texts(&["a", "b"]);
    let row = |columns: &[(usize, Cell)]| Row {
        columns: columns
            .iter()
            .map(|(index, cell)| (*index, simple_data(cell.clone())))
            .collect(),
        ..Row::empty()
    };
    let source_of = |row: Row| {
        source(
            header(&[0, 1]),
            partition(Row::empty(), vec![row_at(1, row)]),
        )
    };
    let left = (0, live_cell(5, &[], b"left"));
    let dropped = (1, live_cell(9, &[], b"dropped"));
    let written = source_of(row(&[left.clone(), dropped])).input(&schema);
    let expected = source_of(row(&[left])).input(&schema);
    let table = "CREATE TABLE t (k int, n int, a text, b text, PRIMARY KEY (k, n));
        ALTER TABLE t DROP b USING TIMESTAMP 9; ALTER TABLE t ADD b text;";
    let table = compactor_sstable::schema::Schema::parse(table).unwrap();
    let path = Path::new("Statistics.db");
    let drops = DropTimes::of(table.only_table().unwrap(), &written.header, path).unwrap();
    for versions in [1, 2, 3, 4, 5, 16, 17] {
        let layout = Arc::new(layout_of(&written.header, Version::Oa).unwrap());
        let input = || {
            let map = column_map(&layout, &layout).unwrap();
            let cursor = cursor(&written, (*layout).clone());
            let facts = InputFacts {
                may_have_dropped: true,
                ..InputFacts::new(map, i64::MAX)
            };
            MergeInput::new(cursor, facts, &layout)
        };
        let inputs = (0..versions).map(|_| input()).collect();
        let writer = PartitionWriter::new(
            Arc::clone(&layout),
            MemoryOutput::new(4096),
            MetadataCollector::for_part(),
            IndexBuilder::big(Version::Oa, 300),
        )
        .unwrap();
        let limits = Limits(|_: &[u8]| PurgeLimit::KeepAll);
        let merger = PartitionMerger::new(inputs, writer, layout, NOW_S, 0);
        let merger = merger.with_drops(drops.clone());
        let (writer, counts) = merger.run(&limits, &mut Unobserved).unwrap();
        assert_eq!(writer.finish().0.bytes, expected.bytes);
        assert_eq!(counts.purged.of_dropped_columns, versions);
    }
}
