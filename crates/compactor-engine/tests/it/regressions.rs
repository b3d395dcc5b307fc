//! Cases found by random tests, each with the former defect, and cases that random tests would reach too
//! rarely.

use compactor_engine::Result;
use compactor_engine::merge::Observer;
use compactor_engine::row::PurgeLimit;
use compactor_sstable::Version;
use compactor_sstable::data::cell::Liveness;
use compactor_sstable::data::clustering::Kind;
use compactor_sstable::data::deletion_time::{DeletionTime, NO_DELETION_TIME};
use compactor_sstable::partitioner::Partitioner;
use compactor_sstable::statistics::{HeaderType, SerializationHeader};
use compactor_sstable::types::CqlType;

use compactor_testkit::model::case::{Case, PurgePlan, Source};
use compactor_testkit::model::comparison::merge_equals_the_model;
use compactor_testkit::model::encode::encode;
use compactor_testkit::model::engine::{
    Input, Settings, Unobserved, merge_raw, serialization_header,
};
use compactor_testkit::model::table::{
    Base, Cell, ClusteringColumn, Column, ColumnData, ColumnType, Header, Partition, Row, Schema,
    Table, Unfiltered, Values,
};

pub const NOW_S: i64 = 1_700_000_000;

pub fn column(name: &str, column_type: ColumnType, is_static: bool) -> Column {
    Column {
        name: name.as_bytes().to_vec(),
        column_type,
        is_static,
    }
}

pub fn header(columns: &[usize]) -> Header {
    Header {
        version: Version::Oa,
        min_timestamp: 0,
        min_local_deletion_time: 0,
        min_ttl: 0,
        columns: columns.to_vec(),
    }
}

pub fn deletion(marked_for_delete_at: i64, local_deletion_time: i64) -> DeletionTime {
    DeletionTime {
        marked_for_delete_at,
        local_deletion_time,
    }
}

pub fn live_cell(timestamp: i64, path: &[u8], value: &[u8]) -> Cell {
    Cell {
        timestamp,
        local_deletion_time: NO_DELETION_TIME,
        ttl: 0,
        path: path.to_vec(),
        value: value.to_vec(),
    }
}

fn live_row(timestamp: i64) -> Row {
    Row {
        liveness: Liveness::new(timestamp, 0, 0),
        ..Row::empty()
    }
}

pub fn source(header: Header, partition: Partition) -> Source {
    let key = vec![0, 0, 0, 1];
    let table = Table::from([((Partitioner::Murmur3.token(&key), key), partition)]);
    Source {
        header,
        table,
        liberties: None,
        block_len: 64,
    }
}

pub fn partition(static_row: Row, unfiltereds: Vec<Unfiltered>) -> Partition {
    Partition {
        deletion: DeletionTime::LIVE,
        static_row,
        unfiltereds,
    }
}

/// A table of rows with one clustering value and no columns.
pub fn by_number(base: Base) -> Schema {
    Schema {
        clustering: vec![ClusteringColumn {
            base,
            is_reversed: false,
        }],
        columns: Vec::new(),
    }
}

/// Rows of that table in one partition, by their clustering values.
fn live_rows(clusterings: impl Iterator<Item = Vec<u8>>) -> Source {
    let unfiltered = |value| Unfiltered::Row {
        clustering: vec![Some(value)],
        row: live_row(7),
    };
    let rows = clusterings.map(unfiltered).collect();
    source(header(&[]), partition(Row::empty(), rows))
}

/// An input whose statistics allow purging.
fn input_of(source: &Source, schema: &Schema, block_len: usize) -> Input {
    Input {
        block_len,
        min_local_deletion_time: 0,
        ..source.input(schema)
    }
}

/// Merges, and purges nothing.
pub fn merge_kept(inputs: &[Input], header: &SerializationHeader) -> Result<Vec<u8>> {
    merge_raw(inputs, header, 0, PurgeLimit::KeepAll, &mut Unobserved)
}

pub fn case(schema: Schema, sources: Vec<Source>) -> Case {
    let mut case = Case {
        schema,
        sources,
        settings: Settings {
            output: header(&[]),
            now_s: NOW_S,
            gc_before_s: i64::MIN,
            strips_ttl: false,
            output_block_len: 4096,
            column_index_size: 65_536,
        },
        purge: PurgePlan::Nothing,
    };
    case.choose_output_header();
    case
}

/// Merges in any order of inputs, and compares with the expected content of the only partition.
pub fn expect(mut case: Case, expected: Option<Partition>) {
    let key = vec![0, 0, 0, 1];
    let expected = expected.map(|p| ((Partitioner::Murmur3.token(&key), key), p));
    let expected = Table::from_iter(expected);
    let bytes = encode(&case.schema, &case.settings.output, &expected, None).bytes;
    assert_eq!(case.expected(), expected, "the model");
    for _ in 0..case.sources.len() {
        case.sources.rotate_left(1);
        assert_eq!(case.run().unwrap().bytes, bytes, "{case:?}");
        merge_equals_the_model(&case).unwrap();
    }
}

/// A static row was copied unmerged if the other input's header had no static columns; but Cassandra counts
/// that input as well and lets the column's deletion remove a cell of its timestamp.
#[test]
fn a_static_row_is_merged_in_a_partition_of_two_inputs() {
    let columns = vec![column("m", ColumnType::Map(Base::Int, Base::Int), true)];
    let schema = Schema {
        clustering: Vec::new(),
        columns,
    };
    let row = |cells| Row {
        columns: [(
            0,
            ColumnData {
                deletion: deletion(5, NOW_S),
                cells,
            },
        )]
        .into(),
        ..Row::empty()
    };
    let regular = Unfiltered::Row {
        clustering: Vec::new(),
        row: live_row(7),
    };
    let written = row(vec![live_cell(5, &[0, 0, 0, 1], &[0, 0, 0, 2])]);
    let sources = vec![
        source(header(&[0]), partition(written, Vec::new())),
        source(header(&[]), partition(Row::empty(), vec![regular.clone()])),
    ];
    expect(
        case(schema, sources),
        Some(partition(row(Vec::new()), vec![regular])),
    );
}

/// Under a range tombstone, a row of a single input was merged, which removed the deletion of a column that
/// equals its row's deletion; Cassandra does not merge such rows.
#[test]
fn a_single_source_row_is_unchanged_under_a_range() {
    let schema = Schema {
        clustering: vec![ClusteringColumn {
            base: Base::Int,
            is_reversed: false,
        }],
        columns: vec![column("m", ColumnType::Map(Base::Int, Base::Int), false)],
    };
    let at = |number: u8| -> Values { vec![Some(vec![0, 0, 0, number])] };
    let (early, late) = (deletion(4, NOW_S), deletion(5, NOW_S));
    let row = Row {
        deletion: late,
        columns: [(
            0,
            ColumnData {
                deletion: late,
                cells: Vec::new(),
            },
        )]
        .into(),
        ..Row::empty()
    };
    let written = partition(
        Row::empty(),
        vec![
            Unfiltered::Marker {
                kind: Kind::InclStartBound,
                bound: at(1),
                close: DeletionTime::LIVE,
                open: early,
            },
            Unfiltered::Row {
                clustering: at(2),
                row,
            },
            Unfiltered::Marker {
                kind: Kind::InclEndBound,
                bound: at(3),
                close: early,
                open: DeletionTime::LIVE,
            },
        ],
    );
    let case = case(schema, vec![source(header(&[0]), written.clone())]);
    expect(case, Some(written));
}

/// In a single input, a boundary with equal deletions was dropped, and so was a range tombstone that is no
/// newer than its partition's deletion. Cassandra keeps both, and drops them only if it merges several
/// inputs.
#[test]
fn markers_of_a_single_input_are_kept() {
    let schema = Schema {
        clustering: vec![ClusteringColumn {
            base: Base::Int,
            is_reversed: false,
        }],
        columns: Vec::new(),
    };
    let at = |n: u8| vec![Some(vec![0, 0, 0, n])];
    let marker = |kind, n, close, open| Unfiltered::Marker {
        kind,
        bound: at(n),
        close,
        open,
    };
    let (early, late) = (deletion(3, NOW_S), deletion(5, NOW_S));
    let boundary = marker(Kind::InclEndExclStartBoundary, 2, late, late);
    let ends = [
        marker(Kind::InclStartBound, 1, DeletionTime::LIVE, late),
        marker(Kind::InclEndBound, 3, late, DeletionTime::LIVE),
    ];
    let hidden = [
        marker(Kind::InclStartBound, 4, DeletionTime::LIVE, early),
        marker(Kind::InclEndBound, 5, early, DeletionTime::LIVE),
    ];
    let [start, end] = ends.clone();
    let mut unfiltereds = vec![start, boundary, end];
    unfiltereds.extend(hidden);
    let mut written = partition(Row::empty(), unfiltereds);
    written.deletion = early;
    let other = Partition {
        deletion: early,
        ..partition(Row::empty(), Vec::new())
    };
    let one = source(header(&[]), written.clone());
    expect(case(schema.clone(), vec![one.clone()]), Some(written));
    let merged = Partition {
        unfiltereds: ends.to_vec(),
        ..other.clone()
    };
    let two = source(header(&[]), other);
    expect(case(schema, vec![one, two]), Some(merged));
}

/// For bounds that compare equal but differ in their bytes, the bound of the first input was written, so that
/// the order of inputs mattered.
#[test]
fn equal_bounds_of_different_bytes() {
    let schema = Schema {
        clustering: vec![ClusteringColumn {
            base: Base::Varint,
            is_reversed: false,
        }],
        columns: Vec::new(),
    };
    let markers = |one: &[u8]| -> Vec<Unfiltered> {
        let bound: Values = vec![Some(one.to_vec())];
        let at = deletion(5, NOW_S);
        let marker = |kind, close, open| Unfiltered::Marker {
            kind,
            bound: bound.clone(),
            close,
            open,
        };
        vec![
            marker(Kind::InclStartBound, DeletionTime::LIVE, at),
            marker(Kind::InclEndBound, at, DeletionTime::LIVE),
        ]
    };
    let sources = vec![
        source(header(&[]), partition(Row::empty(), markers(&[0, 1]))),
        source(header(&[]), partition(Row::empty(), markers(&[1]))),
    ];
    expect(
        case(schema, sources),
        Some(partition(Row::empty(), markers(&[1]))),
    );
}

/// Rows of an input without data expired at `now_s` were never purged, even if `gc_before_s` was after
/// `now_s`; the same rows were purged if they met others.
#[test]
fn gc_before_after_now() {
    let schema = Schema {
        clustering: Vec::new(),
        columns: vec![column("v", ColumnType::Simple(Base::Int), false)],
    };
    let tombstone = Cell {
        local_deletion_time: NOW_S + 1,
        ..live_cell(5, &[], &[])
    };
    let data = ColumnData {
        deletion: DeletionTime::LIVE,
        cells: vec![tombstone],
    };
    let row = Row {
        columns: [(0, data)].into(),
        ..Row::empty()
    };
    let only = Unfiltered::Row {
        clustering: Vec::new(),
        row,
    };
    let sources = vec![source(header(&[0]), partition(Row::empty(), vec![only]))];
    let mut case = case(schema, sources);
    case.purge = PurgePlan::All;
    case.settings.gc_before_s = NOW_S + 50;
    expect(case, None);
}

/// A liveness with the timestamp `NO_TIMESTAMP` and a TTL was written with the flag of the TTL but without
/// its timestamp, and the output could not be read.
#[test]
fn liveness_without_a_timestamp_has_no_ttl() {
    let schema = Schema {
        clustering: Vec::new(),
        columns: vec![column("v", ColumnType::Simple(Base::Int), false)],
    };
    let header = header(&[0]);
    let mut bytes = vec![0, 4, 0, 0, 0, 1, 0x80];
    // Timestamp, TTL and all columns; timestamp i64::MIN, TTL 10, expiring at 100; a cell at 5.
    let mut body = vec![0, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 10, 100];
    body.extend_from_slice(&[0, 5, 0, 0, 0, 7]);
    bytes.extend_from_slice(&[0x2c, body.len() as u8]);
    bytes.extend_from_slice(&body);
    bytes.push(1);
    let input = Input {
        header: serialization_header(&schema, &header),
        version: Version::Oa,
        bytes,
        block_len: 10,
        min_local_deletion_time: 0,
        may_have_ttl: true,
    };
    let merge = |inputs: &[Input]| merge_kept(inputs, &inputs[0].header).unwrap();
    let data = ColumnData {
        deletion: DeletionTime::LIVE,
        cells: vec![live_cell(5, &[], &[0, 0, 0, 7])],
    };
    let row = Row {
        columns: [(0, data)].into(),
        ..Row::empty()
    };
    let only = Unfiltered::Row {
        clustering: Vec::new(),
        row,
    };
    let expected = source(header, partition(Row::empty(), vec![only])).input(&schema);
    for inputs in [vec![input.clone()], vec![input.clone(), input]] {
        assert_eq!(merge(&inputs), expected.bytes);
    }
}

/// A partition deletion before 1970, which only old versions can represent, was also written to new ones, and
/// the output could not be read.
#[test]
fn partition_deletions_before_1970_need_an_old_version() {
    let schema = Schema {
        clustering: Vec::new(),
        columns: Vec::new(),
    };
    let deleted = Partition {
        deletion: deletion(-5, NOW_S),
        static_row: Row::empty(),
        unfiltereds: Vec::new(),
    };
    let mut old = header(&[]);
    old.version = Version::Nb;
    let mut case = case(schema, vec![source(old, deleted.clone())]);
    expect(case.clone(), Some(deleted));
    case.settings.output.version = Version::Oa;
    let error = case.run().unwrap_err();
    assert!(
        error.contains("00000001") && error.contains("version nb"),
        "{error}"
    );
    // Past its grace period it need not be written.
    case.purge = PurgePlan::All;
    case.settings.gc_before_s = NOW_S + 1;
    expect(case, None);
}

/// As above, for a range tombstone that is open at the end of a block of the promoted index.
#[test]
fn range_tombstones_before_1970_in_wide_partitions_need_an_old_version() {
    let schema = Schema {
        clustering: vec![ClusteringColumn {
            base: Base::Int,
            is_reversed: false,
        }],
        columns: Vec::new(),
    };
    let early = deletion(-5, NOW_S);
    let at = |number: u8| -> Values { vec![Some(vec![0, 0, 0, number])] };
    let wide = Partition {
        deletion: DeletionTime::LIVE,
        static_row: Row::empty(),
        unfiltereds: vec![
            Unfiltered::Marker {
                kind: Kind::InclStartBound,
                bound: at(1),
                close: DeletionTime::LIVE,
                open: early,
            },
            Unfiltered::Row {
                clustering: at(2),
                row: live_row(7),
            },
            Unfiltered::Marker {
                kind: Kind::InclEndBound,
                bound: at(3),
                close: early,
                open: DeletionTime::LIVE,
            },
        ],
    };
    let mut case = case(schema, vec![source(header(&[]), wide.clone())]);
    case.settings.output.version = Version::Nb;
    case.settings.column_index_size = 1;
    expect(case.clone(), Some(wide.clone()));
    case.settings.output.version = Version::Oa;
    let error = case.run().unwrap_err();
    assert!(error.contains("version nb"), "{error}");
    case.settings.column_index_size = 65_536;
    expect(case, Some(wide));
}

/// Types of equal width and order may occur in one merge, but with different memcomparable prefixes: a date compares
/// by bytes, a timestamp as a signed number.
#[test]
fn clusterings_of_different_types_are_merged() {
    let schema = by_number(Base::Long);
    let rows = |places: &[i64], block_len| {
        let source = live_rows(places.iter().map(|place| place.to_be_bytes().to_vec()));
        input_of(&source, &schema, block_len)
    };
    let header_of = |cql_type: CqlType| {
        let mut of_type = serialization_header(&schema, &header(&[]));
        of_type.clustering_types = vec![HeaderType::new(cql_type)];
        of_type
    };
    let input = |cql_type, places: &[i64], block_len| Input {
        header: header_of(cql_type),
        ..rows(places, block_len)
    };
    for types in [
        [CqlType::LegacyDate, CqlType::Timestamp],
        [CqlType::Timestamp, CqlType::LegacyDate],
        [CqlType::Long, CqlType::Timestamp],
    ] {
        // With blocks of a few bytes no rows are located in advance.
        for (output, block_len) in types.iter().flat_map(|t| [(t, 7), (t, 1000)]) {
            let [a, b] = types.clone();
            let inputs = [
                input(a, &[1, 3, 4, 900, 901], block_len),
                input(b, &[2, 3, 5, 900, 902], block_len),
            ];
            let merged = merge_kept(&inputs, &header_of(output.clone())).unwrap();
            let expected = rows(&[1, 2, 3, 4, 5, 900, 901, 902], 7).bytes;
            assert_eq!(merged, expected, "{types:?} as {output:?}");
        }
    }
}

/// Clusterings that do not ascend are refused wherever they differ: in the first eight bytes of their first
/// value, after these, in a later value, or not at all.
#[test]
fn clusterings_that_do_not_ascend_are_refused() {
    let schema = |is_reversed| Schema {
        clustering: vec![
            ClusteringColumn {
                base: Base::Text,
                is_reversed,
            },
            ClusteringColumn {
                base: Base::Int,
                is_reversed: false,
            },
        ],
        columns: Vec::new(),
    };
    let merge = |is_reversed, rows: [(&str, i32); 2]| {
        let schema = schema(is_reversed);
        let unfiltered = |(text, number): (&str, i32)| Unfiltered::Row {
            clustering: vec![
                Some(text.as_bytes().to_vec()),
                Some(number.to_be_bytes().to_vec()),
            ],
            row: live_row(7),
        };
        let rows = rows.map(unfiltered).to_vec();
        let source = source(header(&[]), partition(Row::empty(), rows));
        let input = input_of(&source, &schema, 1000);
        merge_kept(std::slice::from_ref(&input), &input.header)
    };
    for (first, second) in [
        (("a", 1), ("b", 1)),
        (("same to eight a", 1), ("same to eight b", 1)),
        (("same to eight", 1), ("same to eight b", 1)),
        (("same", 1), ("same", 2)),
    ] {
        let is_by_number = first.0 == second.0;
        for is_reversed in [false, true] {
            let (before, behind) = if is_reversed && !is_by_number {
                (second, first)
            } else {
                (first, second)
            };
            merge(is_reversed, [before, behind]).unwrap();
            for wrong in [[behind, before], [before, before]] {
                let error = merge(is_reversed, wrong).unwrap_err().to_string();
                assert!(error.contains("clusterings in ascending order"), "{error}");
            }
        }
    }
}

/// Rows that do not ascend are refused after any number of rows in order and wherever blocks end, and rows
/// that do are merged.
#[test]
fn order_is_checked_after_rows_found_in_advance() {
    let schema = by_number(Base::Int);
    let merge = |numbers: &[i32], block_len| {
        let source = live_rows(numbers.iter().map(|n| n.to_be_bytes().to_vec()));
        let input = input_of(&source, &schema, block_len);
        let merged = merge_kept(std::slice::from_ref(&input), &input.header);
        merged.map(|merged| assert_eq!(merged, input.bytes))
    };
    for in_order in [1, 2, 14, 15, 16, 17, 31, 32, 33, 100] {
        for block_len in [1, 7, 64, 200, 5000] {
            let numbers: Vec<i32> = (0..in_order).collect();
            merge(&numbers, block_len).unwrap();
            for wrong in [in_order - 1, in_order - 2, -1] {
                let mut numbers = numbers.clone();
                numbers.extend([wrong, 1000, 1001]);
                let error = merge(&numbers, block_len).unwrap_err().to_string();
                assert!(error.contains("clusterings in ascending order"), "{error}");
            }
        }
    }
}

/// Counts calls of `is_cancelled`.
struct Asked(u32);

impl Observer for Asked {
    fn is_cancelled(&self) -> bool {
        false
    }

    fn progress(&mut self, _read_bytes: u64, _rows: u64, _partitions: u64) {
        self.0 += 1;
    }
}

/// A run of rows that is longer than the number copied between checks for cancellation, alone and before and
/// after rows of another input.
#[test]
fn long_runs_of_inserted_rows() {
    let schema = by_number(Base::Int);
    let input = |is_in: &dyn Fn(&i32) -> bool| {
        let numbers = (0..4000).filter(is_in);
        let source = live_rows(numbers.map(|n: i32| n.to_be_bytes().to_vec()));
        // A row at a block boundary would end the run.
        input_of(&source, &schema, 1 << 20)
    };
    let is_other = |number: &i32| [0, 1500, 3999].contains(number);
    let expected = input(&|_| true);
    let others = input(&is_other);
    let most = input(&|n| !is_other(n));
    for inputs in [
        vec![expected.clone()],
        vec![others.clone(), most.clone()],
        vec![most, others],
    ] {
        let (mut asked, limit) = (Asked(0), PurgeLimit::KeepAll);
        let merged = merge_raw(&inputs, &expected.header, 0, limit, &mut asked);
        let merged = merged.unwrap();
        assert!(merged == expected.bytes, "of {} inputs", inputs.len());
        assert!(asked.0 >= 3, "asked {} times", asked.0);
    }
}

/// Inserted rows none of which has every column: of each column the newest cell is kept, with its time, which
/// counts in the statistics.
#[test]
fn the_newest_cells_of_inserted_rows() {
    let columns = ["a", "b", "c"].map(|name| column(name, ColumnType::Simple(Base::Text), false));
    let schema = Schema {
        clustering: vec![ClusteringColumn {
            base: Base::Int,
            is_reversed: false,
        }],
        columns: columns.to_vec(),
    };
    let row = |timestamp: i64, cells: &[(usize, i64, &str)]| {
        let data = |&(index, timestamp, value): &(usize, i64, &str)| {
            let cells = vec![live_cell(timestamp, &[], value.as_bytes())];
            let deletion = DeletionTime::LIVE;
            (index, ColumnData { deletion, cells })
        };
        Unfiltered::Row {
            clustering: vec![Some(vec![0, 0, 0, 1])],
            row: Row {
                columns: cells.iter().map(data).collect(),
                ..live_row(timestamp)
            },
        }
    };
    let merge = |versions: &[Unfiltered], expected: Unfiltered| {
        let input = |row: &Unfiltered| {
            let mut source = source(
                header(&[0, 1, 2]),
                partition(Row::empty(), vec![row.clone()]),
            );
            source.block_len = 1000;
            source
        };
        let sources = versions.iter().map(input).collect();
        let expected = partition(Row::empty(), vec![expected]);
        expect(case(schema.clone(), sources), Some(expected));
    };
    let newest = row(7, &[(1, 7, "new")]);
    let older = row(5, &[(0, 5, ""), (1, 5, "old")]);
    let oldest = row(3, &[(0, 3, "older"), (2, 3, "oldest")]);
    merge(
        &[newest.clone(), older.clone()],
        row(7, &[(0, 5, ""), (1, 7, "new")]),
    );
    merge(
        &[newest, older.clone(), oldest],
        row(7, &[(0, 5, ""), (1, 7, "new"), (2, 3, "oldest")]),
    );
    // Of two equally new cells the greater value is kept.
    let as_new = row(5, &[(1, 5, "z"), (2, 5, "c")]);
    merge(
        &[older, as_new],
        row(5, &[(0, 5, ""), (1, 5, "z"), (2, 5, "c")]),
    );
}
