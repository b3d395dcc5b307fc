//! Random schemas and tables, small and biased to edge cases: equal timestamps, seconds around `now_s` and
//! `gc_before_s`, extremes, touching range tombstones, empty values.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use compactor_sstable::Version;
use compactor_sstable::data::cell::{EXPIRED_LIVENESS_TTL, Liveness};
use compactor_sstable::data::deletion_time::{
    DeletionTime, INVALID_DELETION_TIME, MAX_DELETION_TIME, NO_DELETION_TIME,
};
use compactor_sstable::data::layout::column_order;
use compactor_sstable::partitioner::Partitioner;

use super::choices::Choices;
use super::counters;
use super::order::{compare_paths, compare_places, marker_kind, place};
use super::table::{
    Base, Cell, ClusteringColumn, Column, ColumnData, ColumnType, Header, Partition, Row, Schema,
    Table, Unfiltered, Values,
};

/// Time of all merges, seconds since 1970.
pub const NOW_S: i64 = 1_700_000_000;
/// Deletions before this may be purged, seconds since 1970.
pub const GC_BEFORE_S: i64 = NOW_S - 100;
/// Timestamp around which most data is written, microseconds since 1970.
pub const TIMESTAMP: i64 = NOW_S * 1_000_000;

const BASES: [Base; 7] = [
    Base::Int,
    Base::Text,
    Base::Blob,
    Base::Long,
    Base::Varint,
    Base::Decimal,
    Base::Boolean,
];

/// Limits on the size and the features of a table.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub partitions: usize,
    pub unfiltereds: usize,
    /// Length of the longest values.
    pub value_len: usize,
    /// Whether there are extreme timestamps and seconds.
    pub extremes: bool,
    /// Whether there are values that compare equal but differ in their bytes.
    pub aliases: bool,
    /// Whether partition keys may have any length, including 0.
    pub long_keys: bool,
    /// Whether most rows are as INSERT leaves them, many in a partition.
    pub inserted: bool,
}

pub fn limits(choices: &mut Choices) -> Limits {
    let inserted = choices.chance(25);
    let (partitions, unfiltereds) = if inserted {
        (2, 90)
    } else {
        choices.pick(&[(3, 6), (1, 12), (40, 1), (1, 60)])
    };
    let value_len = match choices.below(40) {
        // Longer than the headroom of a window.
        39 => 70_000,
        36..=38 => 3000,
        30..=35 => 300,
        _ => 3,
    };
    Limits {
        partitions,
        unfiltereds,
        value_len,
        extremes: choices.chance(30),
        aliases: true,
        long_keys: partitions < 5 && value_len > 300,
        inserted,
    }
}

pub fn schema(choices: &mut Choices, limits: Limits) -> Schema {
    let is_usual = limits.inserted && choices.chance(70);
    let clustering = (0..choices.pick(&[1, 2, 0, 3]))
        .map(|number| ClusteringColumn {
            base: if is_usual && number == 0 {
                Base::Int
            } else {
                choices.pick(&BASES)
            },
            is_reversed: choices.chance(30),
        })
        .collect();
    let mut columns = Vec::new();
    let regular_count = match choices.below(20) {
        18 => 62 + choices.below(4),
        19 => 70,
        _ => choices.pick(&[1, 2, 3, 5, 8, 0]),
    };
    let static_count = match choices.below(30) {
        29 => 64 + choices.below(3),
        count => count.saturating_sub(15).min(4),
    };
    let has_counters = !is_usual && choices.chance(10);
    for (count, is_static) in [(regular_count, false), (static_count, true)] {
        for number in 0..count {
            columns.push(Column {
                name: column_name(number, is_static),
                column_type: if has_counters {
                    counter_type(choices)
                } else if is_usual {
                    ColumnType::Simple(choices.pick(&BASES))
                } else {
                    column_type(choices)
                },
                is_static,
            });
        }
    }
    columns.sort_by(|a, b| {
        let key = |c: &Column| (c.is_static, column_order(c.is_complex(), c.name.clone()));
        key(a).cmp(&key(b))
    });
    Schema {
        clustering,
        columns,
    }
}

/// A name belongs to one column, static or not.
fn column_name(number: usize, is_static: bool) -> Vec<u8> {
    // A name that begins with a byte above 0x7f precedes the others.
    let first = ["c", "b", "c", "é"][number % 4];
    format!("{first}{number}{}", if is_static { "s" } else { "" }).into_bytes()
}

/// Maps of counters, as super column families have, are rarer.
fn counter_type(choices: &mut Choices) -> ColumnType {
    match choices.below(3) {
        2 => ColumnType::Map(choices.pick(&[Base::Text, Base::Int]), Base::Counter),
        _ => ColumnType::Simple(Base::Counter),
    }
}

fn column_type(choices: &mut Choices) -> ColumnType {
    match choices.below(8) {
        0..=3 => ColumnType::Simple(choices.pick(&BASES)),
        4 => ColumnType::List(choices.pick(&BASES)),
        5 => ColumnType::Set(choices.pick(&BASES)),
        6 => ColumnType::Map(choices.pick(&BASES), choices.pick(&BASES)),
        _ => ColumnType::Udt,
    }
}

pub fn header(choices: &mut Choices, schema: &Schema, extremes: bool) -> Header {
    let keeps_all = !choices.chance(30);
    let keeps = |choices: &mut Choices| keeps_all || choices.chance(60);
    let columns = (0..schema.columns.len())
        .filter(|_| keeps(choices))
        .collect();
    let mut min_timestamp = choices.pick(&[TIMESTAMP, TIMESTAMP - 1000, TIMESTAMP + 2, 0]);
    let mut min_local_deletion_time = choices.pick(&[NOW_S - 1000, NOW_S, NOW_S + 7, 0]);
    if extremes {
        min_timestamp =
            choices.pick(&[min_timestamp, -7, i64::MAX, i64::MIN, 1_442_880_000_000_000]);
        min_local_deletion_time =
            choices.pick(&[min_local_deletion_time, 1_442_880_000, 2_147_483_647]);
    }
    Header {
        version: choices.pick(&[Version::Oa, Version::Nb, Version::Pa]),
        min_timestamp,
        min_local_deletion_time,
        min_ttl: choices.pick(&[0, 0, 5]),
        columns,
    }
}

/// Generates a table that an SSTable with this header may contain.
pub fn table(choices: &mut Choices, schema: &Schema, header: &Header, limits: Limits) -> Table {
    let long_keys = limits.long_keys;
    let mut source = Source {
        choices,
        schema,
        limits,
    };
    let mut table = Table::new();
    for number in 0..limits.partitions {
        if !source.choices.chance(70) {
            continue;
        }
        let key = if long_keys {
            vec![number as u8; [0, 1, 300, 40_000][number % 4]]
        } else {
            (number as i32).to_be_bytes().to_vec()
        };
        let partition = source.partition(header);
        // An SSTable has no empty partitions.
        if !partition.is_empty() {
            table.insert((Partitioner::Murmur3.token(&key), key), partition);
        }
    }
    table
}

struct Source<'a> {
    choices: &'a mut Choices,
    schema: &'a Schema,
    limits: Limits,
}

impl Source<'_> {
    fn partition(&mut self, header: &Header) -> Partition {
        let mut deletion = self.deletion(20);
        if header.version != Version::Nb && deletion.marked_for_delete_at < 0 {
            // Cannot be represented since `oa`.
            deletion = DeletionTime::LIVE;
        }
        let statics = header.of_kind(self.schema, true);
        let static_row = if statics.is_empty() || self.choices.chance(30) {
            Row::empty()
        } else {
            Row {
                columns: self.columns(&statics),
                ..Row::empty()
            }
        };
        let regulars = header.of_kind(self.schema, false);
        let mut unfiltereds = self.markers();
        let row_count = if self.schema.clustering.is_empty() {
            1
        } else {
            self.choices.below(self.limits.unfiltereds + 1)
        };
        for _ in 0..row_count {
            let clustering = self.clustering(self.schema.clustering.len());
            let row = self.row(&regulars);
            let is_new = !unfiltereds.iter().any(|other| match other {
                Unfiltered::Row {
                    clustering: other, ..
                } => compare_places(self.schema, (other, 0), (&clustering, 0)).is_eq(),
                Unfiltered::Marker { .. } => false,
            });
            if is_new && !row.is_empty() {
                unfiltereds.push(Unfiltered::Row { clustering, row });
            }
        }
        unfiltereds.sort_by(|a, b| compare_places(self.schema, place(a), place(b)));
        Partition {
            deletion,
            static_row,
            unfiltereds,
        }
    }

    /// Generates range tombstones as a sequence of paired markers: intervals between positions, each with or
    /// without a deletion.
    fn markers(&mut self) -> Vec<Unfiltered> {
        if self.schema.clustering.is_empty() || !self.choices.chance(40) {
            return Vec::new();
        }
        let count = self.choices.below(self.limits.unfiltereds.min(8)) + 2;
        let mut places: Vec<(Values, i32)> = (0..count)
            .map(|_| {
                let len = self.choices.below(self.schema.clustering.len() + 1);
                (self.clustering(len), self.choices.pick(&[-1, 1]))
            })
            .collect();
        places.sort_by(|a, b| compare_places(self.schema, (&a.0, a.1), (&b.0, b.1)));
        places.dedup_by(|b, a| {
            compare_places(self.schema, (&a.0, a.1), (&b.0, b.1)) == Ordering::Equal
        });
        let mut markers = Vec::new();
        let mut close = DeletionTime::LIVE;
        let last = places.len() - 1;
        for (index, (bound, side)) in places.into_iter().enumerate() {
            let open = if index == last {
                DeletionTime::LIVE
            } else if self.choices.chance(10) {
                // Nothing changes here.
                close
            } else {
                self.inner_deletion(75)
            };
            let Some(kind) = marker_kind(side, close, open) else {
                continue;
            };
            markers.push(Unfiltered::Marker {
                kind,
                bound,
                close,
                open,
            });
            close = open;
        }
        markers
    }

    fn clustering(&mut self, len: usize) -> Values {
        let schema = self.schema;
        schema.clustering[..len]
            .iter()
            .map(|column| match self.choices.below(30) {
                28 => Some(Vec::new()),
                29 => None,
                _ if self.limits.unfiltereds > 20 && column.base == Base::Int => {
                    Some((self.choices.below(200) as i32).to_be_bytes().to_vec())
                }
                _ => Some(self.short_value(column.base)),
            })
            .collect()
    }

    fn row(&mut self, columns: &[usize]) -> Row {
        let liveness = match self.choices.below(10) {
            0..=3 => Liveness::new(self.timestamp(), 0, 0),
            4..=5 => {
                let ttl = self.ttl();
                Liveness::new(self.timestamp(), ttl, self.seconds())
            }
            6 if self.choices.chance(30) => {
                Liveness::new(self.timestamp(), EXPIRED_LIVENESS_TTL, self.seconds())
            }
            _ => Liveness::EMPTY,
        };
        let liveness = if liveness.is_empty() {
            Liveness::EMPTY
        } else {
            liveness
        };
        let deletion = self.inner_deletion(20);
        let is_shadowable = !deletion.is_live() && self.choices.chance(20);
        let row = Row {
            liveness,
            deletion,
            is_shadowable,
            columns: self.columns(columns),
        };
        let percent = if self.limits.inserted { 95 } else { 35 };
        if self.choices.chance(percent) {
            self.inserted(row, columns)
        } else {
            row
        }
    }

    /// Converts a row to one as INSERT leaves it: no deletion, and cells with the times of its liveness,
    /// usually in all columns.
    fn inserted(&mut self, row: Row, indexes: &[usize]) -> Row {
        let Row {
            mut liveness,
            mut columns,
            ..
        } = row;
        if liveness.is_empty() {
            liveness = Liveness::new(self.timestamp(), 0, 0);
        }
        let is_whole = self.choices.chance(70);
        for &index in indexes {
            let ColumnType::Simple(base) = self.schema.columns[index].column_type else {
                columns.remove(&index);
                continue;
            };
            if is_whole && !columns.contains_key(&index) {
                columns.insert(index, self.simple_column(base));
            }
        }
        for cell in columns.values_mut().flat_map(|data| &mut data.cells) {
            cell.timestamp = liveness.timestamp;
            // The marker of a view's expired row is not a TTL of cells.
            let has_ttl = liveness.is_expiring() && !liveness.is_expired();
            if cell.ttl != 0 && has_ttl {
                cell.ttl = liveness.ttl;
                cell.local_deletion_time = liveness.local_expiration_time;
            } else if self.choices.chance(95) {
                cell.ttl = 0;
                cell.local_deletion_time = NO_DELETION_TIME;
            }
        }
        Row {
            liveness,
            deletion: DeletionTime::LIVE,
            is_shadowable: false,
            columns,
        }
    }

    fn columns(&mut self, indexes: &[usize]) -> BTreeMap<usize, ColumnData> {
        let mut columns = BTreeMap::new();
        let density = self.choices.pick(&[60, 100, 10]);
        for &index in indexes {
            if !self.choices.chance(density) {
                continue;
            }
            let column_type = self.schema.columns[index].column_type;
            let data = match column_type {
                ColumnType::Simple(base) => self.simple_column(base),
                _ => self.complex_column(column_type),
            };
            if !data.deletion.is_live() || !data.cells.is_empty() {
                columns.insert(index, data);
            }
        }
        columns
    }

    fn simple_column(&mut self, base: Base) -> ColumnData {
        ColumnData {
            deletion: DeletionTime::LIVE,
            cells: vec![self.cell(Vec::new(), base)],
        }
    }

    fn complex_column(&mut self, column_type: ColumnType) -> ColumnData {
        let deletion = self.inner_deletion(40);
        let mut cells: Vec<Cell> = Vec::new();
        for _ in 0..self.choices.below(5) {
            let (path, base) = match column_type {
                ColumnType::Simple(_) => unreachable!("not complex"),
                ColumnType::List(base) => (self.time_uuid(), Some(base)),
                ColumnType::Set(base) => (self.short_value(base), None),
                ColumnType::Map(key, value) => (self.short_value(key), Some(value)),
                ColumnType::Udt => {
                    let field = self.choices.below(3);
                    (
                        (field as u16).to_be_bytes().to_vec(),
                        Some([Base::Int, Base::Text, Base::Long][field]),
                    )
                }
            };
            if cells
                .iter()
                .any(|cell| compare_paths(column_type, &cell.path, &path).is_eq())
            {
                continue;
            }
            let mut cell = self.cell(path, base.unwrap_or(Base::Blob));
            if base.is_none() {
                cell.value.clear();
            }
            cells.push(cell);
        }
        cells.sort_by(|a, b| compare_paths(column_type, &a.path, &b.path));
        ColumnData { deletion, cells }
    }

    /// Version 1, distinguished by the lower part of the timestamp.
    fn time_uuid(&mut self) -> Vec<u8> {
        let mut bytes = vec![
            0, 0, 0, 0, 0x12, 0x34, 0x11, 0xee, 0x80, 0, 1, 2, 3, 4, 5, 6,
        ];
        bytes[3] = self.choices.below(4) as u8;
        bytes[0] = self.choices.pick(&[0, 0xff]);
        bytes
    }

    fn cell(&mut self, path: Vec<u8>, base: Base) -> Cell {
        let timestamp = self.timestamp();
        let live = Cell {
            timestamp,
            local_deletion_time: NO_DELETION_TIME,
            ttl: 0,
            path,
            value: Vec::new(),
        };
        if base == Base::Counter {
            return match self.choices.below(10) {
                0 => Cell {
                    local_deletion_time: self.seconds(),
                    ..live
                },
                1 => live,
                _ => Cell {
                    value: counters::random_context(self.choices),
                    ..live
                },
            };
        }
        match self.choices.below(10) {
            0..=4 => Cell {
                value: self.value(base),
                ..live
            },
            5..=7 => {
                let (ttl, value) = (self.ttl(), self.value(base));
                Cell {
                    ttl,
                    local_deletion_time: self.seconds(),
                    value,
                    ..live
                }
            }
            _ => Cell {
                local_deletion_time: self.seconds(),
                ..live
            },
        }
    }

    fn value(&mut self, base: Base) -> Vec<u8> {
        match (base, self.choices.below(8)) {
            (_, 7) => Vec::new(),
            (Base::Text | Base::Blob, 6) => {
                let len = self.choices.below(self.limits.value_len + 1);
                let byte = self.choices.pick(b"az");
                vec![byte; len]
            }
            _ => self.short_value(base),
        }
    }

    /// A small set of values of each type, some of which compare equal but differ in their bytes.
    fn short_value(&mut self, base: Base) -> Vec<u8> {
        let mut number = self.choices.below(4);
        if !self.limits.aliases && matches!(base, Base::Varint | Base::Decimal) {
            number &= 2;
        }
        match base {
            Base::Int => [0i32, 1, -1, i32::MIN][number].to_be_bytes().to_vec(),
            Base::Long => [0i64, 1, -1, i64::MAX][number].to_be_bytes().to_vec(),
            Base::Text | Base::Blob => [&b"a"[..], b"b", b"ab", b"\x7f\xff"][number].to_vec(),
            Base::Boolean => vec![(number % 2) as u8],
            Base::Counter => unreachable!("generated by cell()"),
            Base::Varint => [&[1u8][..], &[0, 1], &[0xff], &[0xff, 0xff, 0xff]][number].to_vec(),
            Base::Decimal => {
                let (scale, unscaled): (i32, u8) = [(0, 1), (1, 10), (0, 0), (2, 0)][number];
                let mut bytes = scale.to_be_bytes().to_vec();
                bytes.push(unscaled);
                bytes
            }
        }
    }

    fn deletion(&mut self, percent: usize) -> DeletionTime {
        if !self.choices.chance(percent) {
            return DeletionTime::LIVE;
        }
        DeletionTime {
            marked_for_delete_at: self.timestamp(),
            local_deletion_time: self.seconds(),
        }
    }

    /// A deletion in a partition, where the least timestamp means that there is none.
    fn inner_deletion(&mut self, percent: usize) -> DeletionTime {
        match self.deletion(percent) {
            deletion if deletion.marked_for_delete_at == i64::MIN => DeletionTime::LIVE,
            deletion => deletion,
        }
    }

    fn timestamp(&mut self) -> i64 {
        if self.limits.extremes && self.choices.chance(30) {
            let extremes = [
                0,
                -1,
                i64::MAX,
                i64::MIN + 1,
                i64::MIN,
                -TIMESTAMP,
                i64::MAX - 1,
            ];
            return self.choices.pick(&extremes);
        }
        TIMESTAMP + self.choices.below(4) as i64
    }

    fn seconds(&mut self) -> i64 {
        if self.limits.extremes && self.choices.chance(30) {
            return self.choices.pick(&[
                0,
                1,
                2_147_483_646,
                2_147_483_647,
                2_147_483_648,
                MAX_DELETION_TIME,
                INVALID_DELETION_TIME,
            ]);
        }
        let around = self
            .choices
            .pick(&[NOW_S, GC_BEFORE_S, NOW_S + 50, GC_BEFORE_S + 10]);
        around + self.choices.below(3) as i64 - 1
    }

    fn ttl(&mut self) -> i32 {
        self.choices.pick(&[10, 1, 100, 110, 630_720_000])
    }
}
