//! Naive merge: whole partitions in memory, one rule after the other.
//!
//! Source: `Row.Merger`, `Cells.reconcile`, `LivenessInfo.supersedes`, `RangeTombstoneMarker.Merger`,
//! `PurgeFunction`, `BTreeRow.purge`, `AbstractCell.purge`, and for data dropped by reading
//! `BTreeRow.Builder`.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use compactor_sstable::data::cell::{EXPIRED_LIVENESS_TTL, Liveness};
use compactor_sstable::data::deletion_time::{DeletionTime, NO_DELETION_TIME};

use super::counters;
use super::encode::serialized_clustering;
use super::order::{compare_paths, compare_places, marker_kind, place};
use super::table::{
    Base, Cell, ColumnData, ColumnType, Partition, Row, Schema, Table, Unfiltered, Values,
};

/// Purge settings of one partition.
#[derive(Clone, Copy, Debug)]
pub struct Purge {
    pub now_s: i64,
    pub gc_before_s: i64,
    /// Deletions with a timestamp before this one may be purged; `None`: all.
    pub before: Option<i64>,
}

impl Purge {
    fn may_go(&self, timestamp: i64, local_deletion_time: i64) -> bool {
        local_deletion_time < self.gc_before_s && self.before.is_none_or(|limit| timestamp < limit)
    }

    fn deletion(&self, deletion: DeletionTime) -> DeletionTime {
        let DeletionTime {
            marked_for_delete_at,
            local_deletion_time,
        } = deletion;
        if !deletion.is_live() && self.may_go(marked_for_delete_at, local_deletion_time) {
            return DeletionTime::LIVE;
        }
        deletion
    }

    fn liveness(&self, liveness: Liveness) -> Liveness {
        let Liveness {
            timestamp,
            ttl,
            local_expiration_time,
        } = liveness;
        let has_expired =
            ttl == EXPIRED_LIVENESS_TTL || (ttl != 0 && self.now_s >= local_expiration_time);
        if has_expired && self.may_go(timestamp, local_expiration_time) {
            return Liveness::EMPTY;
        }
        liveness
    }

    fn cell(&self, cell: &Cell) -> Option<Cell> {
        let Cell {
            timestamp,
            local_deletion_time,
            ttl,
            ..
        } = *cell;
        let is_live = local_deletion_time == NO_DELETION_TIME
            || (ttl != 0 && self.now_s < local_deletion_time);
        if is_live {
            return Some(cell.clone());
        }
        if self.may_go(timestamp, local_deletion_time) {
            return None;
        }
        if ttl == 0 {
            return Some(cell.clone());
        }
        let local_deletion_time = local_deletion_time - i64::from(ttl);
        let tombstone = Cell {
            local_deletion_time,
            ttl: 0,
            value: Vec::new(),
            ..cell.clone()
        };
        (!self.may_go(timestamp, local_deletion_time)).then_some(tombstone)
    }

    fn row(&self, mut row: Row) -> Row {
        row.liveness = self.liveness(row.liveness);
        row.deletion = self.deletion(row.deletion);
        row.is_shadowable &= !row.deletion.is_live();
        for data in row.columns.values_mut() {
            data.deletion = self.deletion(data.deletion);
            data.cells = data
                .cells
                .iter()
                .filter_map(|cell| self.cell(cell))
                .collect();
        }
        row.columns
            .retain(|_, data| !data.deletion.is_live() || !data.cells.is_empty());
        row
    }
}

/// The merge of `inputs`, purged partition by partition.
pub fn merge(schema: &Schema, inputs: &[Table], purge: impl Fn(&[u8]) -> Purge) -> Table {
    let keys: BTreeSet<_> = inputs
        .iter()
        .flat_map(|table| table.keys().cloned())
        .collect();
    keys.into_iter()
        .map(|key| {
            let versions: Vec<&Partition> = inputs.iter().filter_map(|t| t.get(&key)).collect();
            let merged = merge_partition(schema, &versions, &purge(&key.1));
            (key, merged)
        })
        .filter(|(_, partition)| !partition.is_empty())
        .collect()
}

fn merge_partition(schema: &Schema, versions: &[&Partition], purge: &Purge) -> Partition {
    let versions: Vec<Partition> = versions.iter().map(|p| as_read(schema, p)).collect();
    let deletion = newest(versions.iter().map(|p| p.deletion));
    let static_rows: Vec<&Row> = versions.iter().map(|p| &p.static_row).collect();
    let static_row = if static_rows.iter().all(|row| row.is_empty()) {
        Row::empty()
    } else {
        purge.row(merge_rows(schema, &static_rows, deletion))
    };

    let mut places: Vec<(&Values, i32)> = versions
        .iter()
        .flat_map(|p| &p.unfiltereds)
        .map(place)
        .collect();
    // Of positions that compare equal but differ in their bytes, the least is chosen.
    places.sort_by(|a, b| {
        compare_places(schema, *a, *b).then_with(|| {
            serialized_clustering(schema, a.0).cmp(&serialized_clustering(schema, b.0))
        })
    });
    places.dedup_by(|b, a| compare_places(schema, *a, *b) == Ordering::Equal);

    let mut unfiltereds = Vec::new();
    let mut open_before = DeletionTime::LIVE;
    for (values, side) in places {
        // The newest range tombstone open after this position, if the partition deletion is older.
        let open = newest(versions.iter().map(|p| open_at(schema, p, (values, side))));
        let open = if versions.len() == 1 || supersedes(open, deletion) {
            open
        } else {
            DeletionTime::LIVE
        };
        if side == 0 {
            let rows: Vec<&Row> = versions
                .iter()
                .filter_map(|p| row_at(schema, p, values))
                .collect();
            // A partition of one input is not merged.
            let active = if versions.len() == 1 {
                DeletionTime::LIVE
            } else {
                newest([deletion, open])
            };
            let row = purge.row(merge_rows(schema, &rows, active));
            if !row.is_empty() {
                unfiltereds.push(Unfiltered::Row {
                    clustering: values.clone(),
                    row,
                });
            }
        } else if versions.len() == 1 || open != open_before {
            let (close, open) = (purge.deletion(open_before), purge.deletion(open));
            if let Some(kind) = marker_kind(side, close, open) {
                unfiltereds.push(Unfiltered::Marker {
                    kind,
                    bound: values.clone(),
                    close,
                    open,
                });
            }
        }
        open_before = open;
    }
    Partition {
        deletion: purge.deletion(deletion),
        static_row,
        unfiltereds,
    }
}

fn open_at(schema: &Schema, partition: &Partition, at: (&Values, i32)) -> DeletionTime {
    let mut result = DeletionTime::LIVE;
    for unfiltered in &partition.unfiltereds {
        if let Unfiltered::Marker { open, .. } = unfiltered
            && compare_places(schema, place(unfiltered), at) != Ordering::Greater
        {
            result = *open;
        }
    }
    result
}

fn row_at<'a>(schema: &Schema, partition: &'a Partition, at: &Values) -> Option<&'a Row> {
    partition
        .unfiltereds
        .iter()
        .find_map(|unfiltered| match unfiltered {
            Unfiltered::Row { clustering, row }
                if compare_places(schema, (clustering, 0), (at, 0)) == Ordering::Equal =>
            {
                Some(row)
            }
            _ => None,
        })
}

/// Merges rows of one clustering, at most one per input, under the active deletion.
fn merge_rows(schema: &Schema, rows: &[&Row], mut active: DeletionTime) -> Row {
    if let [only] = rows
        && active.is_live()
    {
        return (*only).clone();
    }
    let mut liveness = Liveness::EMPTY;
    let (mut deletion, mut is_shadowable) = (DeletionTime::LIVE, false);
    for row in rows {
        if liveness_supersedes(row.liveness, liveness) {
            liveness = row.liveness;
        }
        if supersedes(row.deletion, deletion) {
            (deletion, is_shadowable) = (row.deletion, row.is_shadowable);
        } else if row.deletion == deletion {
            // Cassandra keeps that of the first input; here the order of inputs must not matter.
            is_shadowable &= row.is_shadowable;
        }
    }
    if is_shadowable && liveness.timestamp > deletion.marked_for_delete_at {
        deletion = DeletionTime::LIVE;
    }
    if supersedes(deletion, active) {
        active = deletion;
    } else {
        deletion = DeletionTime::LIVE;
    }
    if deletes(active, liveness.timestamp) {
        liveness = Liveness::EMPTY;
    }
    let mut columns = BTreeMap::new();
    let names: BTreeSet<usize> = rows
        .iter()
        .flat_map(|row| row.columns.keys().copied())
        .collect();
    for index in names {
        let versions: Vec<&ColumnData> = rows
            .iter()
            .filter_map(|row| row.columns.get(&index))
            .collect();
        let own = newest(versions.iter().map(|data| data.deletion));
        let (deletion, active) = if supersedes(own, active) {
            (own, own)
        } else {
            (DeletionTime::LIVE, active)
        };
        let all = versions.iter().flat_map(|data| data.cells.iter());
        let visible = all.filter(|cell| !deletes(active, cell.timestamp)).cloned();
        let cells = reconcile_all(schema, index, visible);
        if !deletion.is_live() || !cells.is_empty() {
            columns.insert(index, ColumnData { deletion, cells });
        }
    }
    is_shadowable &= !deletion.is_live();
    Row {
        liveness,
        deletion,
        is_shadowable,
        columns,
    }
}

/// One cell per path, in the order of paths.
fn reconcile_all(schema: &Schema, column: usize, cells: impl Iterator<Item = Cell>) -> Vec<Cell> {
    let column = &schema.columns[column];
    let column_type = column.column_type;
    let mut winners: Vec<Cell> = Vec::new();
    for cell in cells {
        let same = |other: &&mut Cell| compare_paths(column_type, &other.path, &cell.path).is_eq();
        match winners.iter_mut().find(same) {
            Some(winner) if column.is_counter() => {
                *winner = reconcile_counters(winner, &cell);
            }
            Some(winner) if rank(&cell) > rank(winner) => *winner = cell,
            Some(_) => {}
            None => winners.push(cell),
        }
    }
    winners.sort_by(|a, b| compare_paths(column_type, &a.path, &b.path));
    winners
}

/// A tombstone wins whatever the timestamps, then an empty value, which counters never keep; other values are
/// added up.
fn reconcile_counters(left: &Cell, right: &Cell) -> Cell {
    let is_tombstone = |cell: &Cell| cell.local_deletion_time != NO_DELETION_TIME;
    match (is_tombstone(left), is_tombstone(right)) {
        (true, true) => std::cmp::max_by_key(left, right, |cell| rank(cell)).clone(),
        (true, false) => left.clone(),
        (false, true) => right.clone(),
        (false, false) => match (left.value.is_empty(), right.value.is_empty()) {
            (true, true) if left.timestamp > right.timestamp => left.clone(),
            (true, true) | (false, true) => right.clone(),
            (true, false) => left.clone(),
            (false, false) => Cell {
                timestamp: left.timestamp.max(right.timestamp),
                value: counters::merge(&left.value, &right.value),
                ..left.clone()
            },
        },
    }
}

/// The greater one wins: timestamp; then tombstones over expiring over live cells; of the same kind the later
/// local deletion time, then the lower TTL, then the greater value. Paths that compare equal but differ in
/// their bytes come last: the least is kept.
type Rank<'a> = (
    i64,
    u8,
    i64,
    std::cmp::Reverse<i32>,
    &'a [u8],
    std::cmp::Reverse<&'a [u8]>,
);

fn rank(cell: &Cell) -> Rank<'_> {
    let kind = match (cell.local_deletion_time, cell.ttl) {
        (NO_DELETION_TIME, _) => 0,
        (_, 0) => 2,
        _ => 1,
    };
    (
        cell.timestamp,
        kind,
        if kind == 0 {
            0
        } else {
            cell.local_deletion_time
        },
        std::cmp::Reverse(if kind == 1 { cell.ttl } else { 0 }),
        &cell.value,
        std::cmp::Reverse(&cell.path),
    )
}

fn supersedes(a: DeletionTime, b: DeletionTime) -> bool {
    a.marked_for_delete_at > b.marked_for_delete_at
        || (a.marked_for_delete_at == b.marked_for_delete_at
            && a.local_deletion_time > b.local_deletion_time)
}

fn newest(deletions: impl IntoIterator<Item = DeletionTime>) -> DeletionTime {
    let best = |best, deletion| {
        if supersedes(deletion, best) {
            deletion
        } else {
            best
        }
    };
    deletions.into_iter().fold(DeletionTime::LIVE, best)
}

fn deletes(deletion: DeletionTime, timestamp: i64) -> bool {
    timestamp <= deletion.marked_for_delete_at
}

fn liveness_supersedes(a: Liveness, b: Liveness) -> bool {
    let key = |l: Liveness| {
        let is_expired = l.ttl == EXPIRED_LIVENESS_TTL;
        (
            l.timestamp,
            is_expired,
            l.ttl != 0,
            l.local_expiration_time,
            std::cmp::Reverse(l.ttl),
        )
    };
    key(a) > key(b)
}

/// Removes the TTLs of all cells and rows. A liveness that a view has marked as expired is a tombstone.
pub fn strip_ttl(table: &mut Table) {
    for row in table.values_mut().flat_map(rows_mut) {
        if has_ttl(&row.liveness) {
            row.liveness = Liveness::new(row.liveness.timestamp, 0, 0);
        }
        for cell in row.columns.values_mut().flat_map(|data| &mut data.cells) {
            if cell.ttl != 0 {
                (cell.ttl, cell.local_deletion_time) = (0, NO_DELETION_TIME);
            }
        }
    }
}

/// Number of cells and of row livenesses with a TTL that are read from a table.
pub fn count_ttl(schema: &Schema, table: &Table) -> (u64, u64) {
    let (mut cells, mut rows) = (0, 0);
    for partition in table.values() {
        for row in rows_mut(&mut as_read(schema, partition)) {
            rows += u64::from(has_ttl(&row.liveness));
            let of_row = row.columns.values().flat_map(|data| &data.cells);
            cells += of_row.filter(|cell| cell.ttl != 0).count() as u64;
        }
    }
    (cells, rows)
}

fn has_ttl(liveness: &Liveness) -> bool {
    liveness.ttl != 0 && liveness.ttl != EXPIRED_LIVENESS_TTL
}

/// The static row and all others.
fn rows_mut(partition: &mut Partition) -> impl Iterator<Item = &mut Row> {
    let unfiltereds = partition.unfiltereds.iter_mut();
    let rows = unfiltereds.filter_map(|unfiltered| match unfiltered {
        Unfiltered::Row { row, .. } => Some(row),
        Unfiltered::Marker { .. } => None,
    });
    std::iter::once(&mut partition.static_row).chain(rows)
}

/// Returns a partition as Cassandra's reader returns it: data that its own deletions cover is dropped.
pub fn as_read(schema: &Schema, partition: &Partition) -> Partition {
    let mut read = partition.clone();
    read.static_row = row_as_read(schema, &partition.static_row);
    read.unfiltereds.clear();
    for unfiltered in &partition.unfiltereds {
        read.unfiltereds.push(match unfiltered {
            Unfiltered::Row { clustering, row } => {
                // Cassandra skips rows without remaining content, so that the row of another input is the
                // only one at its clustering. This is the case only for a cell with the timestamp
                // `NO_TIMESTAMP`; such a row counts here, as an empty one.
                Unfiltered::Row {
                    clustering: clustering.clone(),
                    row: row_as_read(schema, row),
                }
            }
            marker => marker.clone(),
        });
    }
    read
}

fn row_as_read(schema: &Schema, row: &Row) -> Row {
    let mut read = row.clone();
    if deletes(row.deletion, row.liveness.timestamp) {
        read.liveness = Liveness::EMPTY;
    }
    if row.is_shadowable && read.liveness.timestamp > row.deletion.marked_for_delete_at {
        read.deletion = DeletionTime::LIVE;
        read.is_shadowable = false;
    }
    for (index, data) in &mut read.columns {
        if data.deletion.marked_for_delete_at == i64::MIN {
            data.deletion = DeletionTime::LIVE;
        }
        // A column's own deletion does not delete cells of its own timestamp.
        let own = data.deletion.marked_for_delete_at;
        let column = &schema.columns[*index];
        let is_complex = column.is_complex();
        // Cassandra leaves counters in maps as they are.
        if column.column_type == ColumnType::Simple(Base::Counter) {
            for cell in &mut data.cells {
                cell.value = counters::as_read(&cell.value);
            }
        }
        data.cells.retain(|cell| {
            !(deletes(row.deletion, cell.timestamp) || (is_complex && cell.timestamp < own))
        });
    }
    read.columns
        .retain(|_, data| !data.deletion.is_live() || !data.cells.is_empty());
    read
}
