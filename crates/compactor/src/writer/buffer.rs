//! Rows in memory, until they are sorted and written.

use std::cmp::Ordering;
use std::ops::Range;

use compactor_engine::row::{MergedRow, left_wins};
use compactor_sstable::data::cell::{Cell, Liveness, Span};
use compactor_sstable::data::clustering::{Kind, Prefix, ValueSpan};
use compactor_sstable::data::deletion_time::{DeletionTime, NO_DELETION_TIME};
use compactor_sstable::partitioner::{KeyHash, Partitioner};
use compactor_sstable::schema::ColumnKind;
use compactor_sstable::statistics::EncodingStats;
use compactor_sstable::statistics::header::DELETION_TIME_EPOCH;
use compactor_sstable::types::Value;

use super::columns::Columns;
use crate::{Error, Result};

/// Longest partition key, and longest clustering value (`FBUtilities.MAX_UNSIGNED_SHORT`).
const MAX_KEY_LEN: usize = u16::MAX as usize;
/// Cells are found by offsets of 32 bits.
const MAX_BYTES: usize = 1 << 30;
/// Greatest length with a row that exceeds [`MAX_BYTES`]. Its clustering follows.
const MAX_BYTES_WITH_ROW: usize = 3 << 30;

/// Timestamp and expiry of a row and all its cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Times {
    timestamp_us: i64,
    ttl_s: i32,
    expires_at_s: i64,
    /// Time when the row was added, seconds since 1970: local deletion time of collections that it replaces.
    now_s: i64,
}

impl Times {
    pub(super) fn new(timestamp_us: i64, ttl_s: u32, now_s: i64) -> Times {
        Times {
            timestamp_us,
            ttl_s: ttl_s as i32,
            expires_at_s: match ttl_s {
                0 => NO_DELETION_TIME,
                _ => now_s + i64::from(ttl_s),
            },
            now_s,
        }
    }

    /// Deletion of the collection that an `INSERT` replaces (`CellPath` cells of `UpdateParameters`).
    fn before(&self) -> DeletionTime {
        DeletionTime::build(self.timestamp_us - 1, self.now_s)
    }
}

/// Rows as they were added. Keys, clusterings, paths and values are in `bytes`.
#[derive(Debug, Default)]
pub(super) struct RowBuffer {
    bytes: Vec<u8>,
    rows: Vec<Row>,
    cells: Vec<PendingCell>,
    row: MergedRow,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    token: i64,
    key: Span,
    /// Serialized; of a static row the empty span.
    clustering: Span,
    is_static: bool,
    times: Times,
    first_cell: u32,
    cells: u32,
}

/// A cell, or the beginning of a complex column, whose cells come next.
#[derive(Clone, Copy, Debug)]
struct PendingCell {
    column: u32,
    kind: CellKind,
    path: Span,
    value: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CellKind {
    Simple,
    Complex,
    Element,
}

impl RowBuffer {
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Bytes of memory.
    pub(super) fn len_in_memory(&self) -> usize {
        let bytes = self.bytes.len()
            + self.rows.len() * size_of::<Row>()
            + self.cells.len() * size_of::<PendingCell>();
        if self.bytes.len() < MAX_BYTES {
            bytes
        } else {
            usize::MAX
        }
    }

    /// Adds a row, and its static part apart.
    pub(super) fn add<N: AsRef<str>>(
        &mut self,
        columns: &Columns,
        values: impl IntoIterator<Item = (N, Value)>,
        times: Times,
        list_path: impl FnMut() -> [u8; 16],
    ) -> Result<()> {
        let (bytes, cells) = (self.bytes.len(), self.cells.len());
        let added = self.try_add(columns, values, times, list_path);
        if added.is_err() {
            self.bytes.truncate(bytes);
            self.cells.truncate(cells);
        }
        added
    }

    fn try_add<N: AsRef<str>>(
        &mut self,
        columns: &Columns,
        values: impl IntoIterator<Item = (N, Value)>,
        times: Times,
        mut list_path: impl FnMut() -> [u8; 16],
    ) -> Result<()> {
        let mut key: Vec<Option<Span>> = vec![None; columns.partition_key];
        let mut clustering: Vec<Option<Span>> = vec![None; columns.clustering];
        // Those of the static row first.
        let mut cells: [Vec<PendingCell>; 2] = Default::default();
        for (name, value) in values {
            let column = columns.named(name.as_ref())?;
            let set_twice = || column.refusal(&"it is set twice");
            let kind = column.kind;
            if matches!(kind, ColumnKind::PartitionKey | ColumnKind::Clustering) {
                let start = self.bytes.len();
                column.write(&value, &mut self.bytes)?;
                let span = span(start, self.bytes.len());
                if span.len() > MAX_KEY_LEN {
                    return Err(column.refusal(&format!(
                        "{} bytes; a value of a key has {MAX_KEY_LEN} at most",
                        span.len()
                    )));
                }
                let slots = match kind {
                    ColumnKind::PartitionKey => &mut key,
                    _ => &mut clustering,
                };
                let slot = slots.get_mut(column.index as usize).ok_or_else(set_twice)?;
                if slot.replace(span).is_some() {
                    return Err(set_twice());
                }
                continue;
            }
            let cells = &mut cells[usize::from(kind == ColumnKind::Regular)];
            if cells.iter().any(|cell| cell.column == column.index) {
                return Err(set_twice());
            }
            let mut cell = PendingCell {
                column: column.index,
                kind: CellKind::Simple,
                path: Span::default(),
                value: Span::default(),
            };
            if column.cql_type.is_multi_cell() {
                let elements = value
                    .cells(&column.cql_type, &mut list_path)
                    .map_err(|e| column.refusal(&e))?;
                cell.kind = CellKind::Complex;
                cells.push(cell);
                for (path, value) in elements {
                    column.refuse_length(path.len().max(value.len()))?;
                    cells.push(PendingCell {
                        kind: CellKind::Element,
                        path: self.append(&path),
                        value: self.append(&value),
                        ..cell
                    });
                }
            } else {
                let start = self.bytes.len();
                column.write(&value, &mut self.bytes)?;
                column.refuse_length(self.bytes.len() - start)?;
                cell.value = span(start, self.bytes.len());
                cells.push(cell);
            }
        }
        let missing = |kind, slots: &[Option<Span>]| {
            let index = slots.iter().position(Option::is_none)?;
            let name = columns.key_name(kind, index);
            Some(Error::invalid(format!(
                "column {name} of the primary key is not set"
            )))
        };
        if let Some(error) = missing(ColumnKind::PartitionKey, &key) {
            return Err(error);
        }
        let key = self.append_key(&key)?;
        let token = Partitioner::Murmur3.token(self.of(key));
        if self.bytes.len() > MAX_BYTES_WITH_ROW {
            return Err(Error::invalid("a row of more than 2 GiB"));
        }
        let [static_cells, regular_cells] = cells;
        let has_static = !static_cells.is_empty();
        let is_static_only = has_static
            && regular_cells.is_empty()
            && !clustering.is_empty()
            && clustering.iter().all(Option::is_none);
        let mut row = Row {
            token,
            key,
            clustering: Span::default(),
            is_static: true,
            times,
            first_cell: 0,
            cells: 0,
        };
        if !is_static_only {
            if let Some(error) = missing(ColumnKind::Clustering, &clustering) {
                return Err(error);
            }
            let values: Vec<Vec<u8>> = clustering
                .iter()
                .flatten()
                .map(|span| self.of(*span).to_vec())
                .collect();
            // A node refuses every statement with a longer one (`ClusteringPrefix.validate`).
            let len: usize = values.iter().map(Vec::len).sum();
            if len > MAX_KEY_LEN {
                return Err(Error::invalid(format!(
                    "clustering columns of {len} bytes; together they have {MAX_KEY_LEN} at most"
                )));
            }
            let start = self.bytes.len();
            let values = values.iter().map(|value| Some(value.as_slice()));
            columns
                .layout
                .clustering
                .write_values(&mut self.bytes, values);
            self.push_row(
                Row {
                    is_static: false,
                    clustering: span(start, self.bytes.len()),
                    ..row
                },
                regular_cells,
            );
        }
        if has_static {
            row.is_static = true;
            self.push_row(row, static_cells);
        }
        Ok(())
    }

    fn push_row(&mut self, row: Row, mut cells: Vec<PendingCell>) {
        // Stable: elements stay after the beginning of their column.
        cells.sort_by_key(|cell| cell.column);
        self.rows.push(Row {
            first_cell: self.cells.len() as u32,
            cells: cells.len() as u32,
            ..row
        });
        self.cells.append(&mut cells);
    }

    fn append(&mut self, bytes: &[u8]) -> Span {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        span(start, self.bytes.len())
    }

    /// A partition key: the value of one column, or a composite of several (`CompositeType`).
    fn append_key(&mut self, values: &[Option<Span>]) -> Result<Span> {
        let start = self.bytes.len();
        match values {
            [Some(only)] => {
                self.bytes.extend_from_within(range_of(*only));
            }
            _ => {
                for value in values.iter().flatten() {
                    let len = value.len() as u16;
                    self.bytes.extend_from_slice(&len.to_be_bytes());
                    self.bytes.extend_from_within(range_of(*value));
                    self.bytes.push(0);
                }
            }
        }
        let key = span(start, self.bytes.len());
        match key.len() {
            0 => Err(Error::invalid("the partition key is empty")),
            len if len > MAX_KEY_LEN => Err(Error::invalid(format!(
                "a partition key of {len} bytes; the longest has {MAX_KEY_LEN}"
            ))),
            _ => Ok(key),
        }
    }

    fn of(&self, span: Span) -> &[u8] {
        span.of(&self.bytes)
    }

    /// Sorts the rows as in an SSTable, and rows of one primary key by timestamp, then in the order in which they were
    /// added.
    pub(super) fn sort(&mut self, columns: &Columns) {
        let mut rows = std::mem::take(&mut self.rows);
        let (mut left, mut right) = (Vec::new(), Vec::new());
        // A stable sort would take half of their memory once more.
        rows.sort_unstable_by(|a, b| {
            a.token
                .cmp(&b.token)
                .then_with(|| self.of(a.key).cmp(self.of(b.key)))
                .then_with(|| b.is_static.cmp(&a.is_static))
                .then_with(|| {
                    if a.is_static {
                        Ordering::Equal
                    } else {
                        self.compare_clusterings(columns, a, b, &mut left, &mut right)
                    }
                })
                .then_with(|| a.times.timestamp_us.cmp(&b.times.timestamp_us))
                .then_with(|| a.key.start().cmp(&b.key.start()))
        });
        self.rows = rows;
    }

    fn compare_clusterings(
        &self,
        columns: &Columns,
        a: &Row,
        b: &Row,
        left: &mut Vec<ValueSpan>,
        right: &mut Vec<ValueSpan>,
    ) -> Ordering {
        let (a, b) = (self.of(a.clustering), self.of(b.clustering));
        let clustering = &columns.layout.clustering;
        // They were serialized here, so that they can be parsed.
        let parsed = clustering.parse_row(a, &mut 0, left).is_ok()
            && clustering.parse_row(b, &mut 0, right).is_ok();
        debug_assert!(parsed);
        let prefix = |base, spans| Prefix {
            kind: Kind::Clustering,
            base,
            spans,
        };
        clustering.compare(prefix(a, left), prefix(b, right))
    }

    /// Least values of the rows, the bases of the deltas that are written. The header has that of local
    /// deletion times in 31 bits, of which readers make a negative one if it does not fit
    /// (`EncodingStats.Serializer`).
    pub(super) fn encoding_stats(&self) -> EncodingStats {
        let mut timestamp = i64::MAX;
        let (mut deletion_time, mut ttl) = (NO_DELETION_TIME, i32::MAX);
        for row in &self.rows {
            let has_complex = self
                .cells_of(row)
                .iter()
                .any(|cell| cell.kind == CellKind::Complex);
            let times = &row.times;
            timestamp = timestamp.min(times.timestamp_us - i64::from(has_complex));
            deletion_time = deletion_time.min(times.expires_at_s);
            if has_complex {
                deletion_time = deletion_time.min(times.now_s);
            }
            ttl = ttl.min(times.ttl_s);
        }
        if deletion_time != NO_DELETION_TIME {
            deletion_time = deletion_time.min(DELETION_TIME_EPOCH + i64::from(i32::MAX));
        }
        EncodingStats::new(
            timestamp,
            deletion_time,
            if ttl == i32::MAX { 0 } else { ttl },
        )
    }

    /// Number of partitions; the rows are sorted.
    pub(super) fn partitions(&self) -> u64 {
        let is_new = |pair: &&[Row]| self.of(pair[0].key) != self.of(pair[1].key);
        let first = u64::from(!self.rows.is_empty());
        first + self.rows.windows(2).filter(is_new).count() as u64
    }

    fn cells_of(&self, row: &Row) -> &[PendingCell] {
        let first = row.first_cell as usize;
        self.cells
            .get(first..first + row.cells as usize)
            .unwrap_or_default()
    }

    fn cells_of_column(&self, row: &Row, column: u32) -> &[PendingCell] {
        let cells = self.cells_of(row);
        let start = cells.partition_point(|cell| cell.column < column);
        let end = cells.partition_point(|cell| cell.column <= column);
        cells.get(start..end).unwrap_or_default()
    }

    /// Calls `write` with each row of an SSTable, in order, and clears the buffer.
    pub(super) fn drain(
        &mut self,
        columns: &Columns,
        mut write: impl FnMut(&SortedRow<'_>) -> Result<()>,
    ) -> Result<()> {
        let rows = std::mem::take(&mut self.rows);
        let mut merged = std::mem::take(&mut self.row);
        let (mut left, mut right) = (Vec::new(), Vec::new());
        let mut rest = &rows[..];
        while let Some(first) = rest.first() {
            // Clusterings may be equal that differ in their bytes (decimals, varints, tuples).
            let mut is_same = |row: &Row| {
                self.of(row.key) == self.of(first.key)
                    && row.is_static == first.is_static
                    && (self.of(row.clustering) == self.of(first.clustering)
                        || self
                            .compare_clusterings(columns, first, row, &mut left, &mut right)
                            .is_eq())
            };
            let others = rest.iter().skip(1).take_while(|row| is_same(row)).count();
            let (versions, others) = rest.split_at(1 + others);
            rest = others;
            self.merge(columns, versions, &mut merged);
            write(&SortedRow {
                key: self.of(first.key),
                is_static: first.is_static,
                clustering: self.of(first.clustering),
                row: &merged,
                bytes: &self.bytes,
            })?;
        }
        self.row = merged;
        self.bytes.clear();
        self.cells.clear();
        Ok(())
    }

    /// Reconciles versions of a row, of ascending timestamps, as Cassandra does. A collection that is set
    /// later deletes the one before; of those with equal timestamps the union is left.
    fn merge(&self, columns: &Columns, versions: &[Row], merged: &mut MergedRow) {
        merged.reset(columns.most());
        for row in versions.iter().filter(|row| !row.is_static) {
            let times = &row.times;
            let liveness = Liveness::new(times.timestamp_us, times.ttl_s, times.expires_at_s);
            if liveness.supersedes(&merged.liveness) {
                merged.liveness = liveness;
            }
        }
        if let [only] = versions {
            for pending in self.cells_of(only) {
                pending.put(&only.times, merged);
            }
            return;
        }
        let is_static = versions.iter().any(|row| row.is_static);
        let mut elements = Vec::new();
        for (column, index) in columns.layout.columns(is_static).iter().zip(0..) {
            let mut best: Option<Cell> = None;
            let (mut is_complex, mut deletion) = (false, DeletionTime::LIVE);
            elements.clear();
            for row in versions {
                for pending in self.cells_of_column(row, index) {
                    let cell = pending.cell(&row.times);
                    match pending.kind {
                        CellKind::Simple if best.is_some_and(|best| self.wins(&best, &cell)) => {}
                        CellKind::Simple => best = Some(cell),
                        CellKind::Complex => {
                            let before = row.times.before();
                            if deletion.marked_for_delete_at < before.marked_for_delete_at {
                                elements.clear();
                            }
                            is_complex = true;
                            deletion = deletion.max(before);
                        }
                        CellKind::Element => elements.push(cell),
                    }
                }
            }
            if let Some(cell) = best {
                merged.put_cell(index, cell);
            }
            if !is_complex {
                continue;
            }
            merged.begin_complex(index, deletion);
            elements.sort_by(|a: &Cell, b: &Cell| {
                let (a, b) = (self.of(a.path), self.of(b.path));
                column.cql_type.compare_paths(a, b)
            });
            for same in elements.chunk_by(|a, b| {
                let (a, b) = (self.of(a.path), self.of(b.path));
                column.cql_type.compare_paths(a, b).is_eq()
            }) {
                let best = same
                    .iter()
                    .copied()
                    .reduce(|best, cell| if self.wins(&best, &cell) { best } else { cell });
                if let Some(cell) = best {
                    merged.push_element(cell);
                }
            }
        }
    }

    fn wins(&self, left: &Cell, right: &Cell) -> bool {
        left_wins((left, &self.bytes), (right, &self.bytes))
    }
}

impl PendingCell {
    fn cell(&self, times: &Times) -> Cell {
        Cell {
            timestamp: times.timestamp_us,
            local_deletion_time: times.expires_at_s,
            ttl: times.ttl_s,
            path: self.path,
            value: self.value,
            version: 0,
        }
    }

    fn put(&self, times: &Times, row: &mut MergedRow) {
        let cell = self.cell(times);
        match self.kind {
            CellKind::Simple => row.put_cell(self.column, cell),
            CellKind::Complex => row.begin_complex(self.column, times.before()),
            CellKind::Element => row.push_element(cell),
        }
    }
}

/// A row as it is written.
pub(super) struct SortedRow<'b> {
    pub(super) key: &'b [u8],
    pub(super) is_static: bool,
    pub(super) clustering: &'b [u8],
    pub(super) row: &'b MergedRow,
    /// Paths and values of its cells are in these.
    pub(super) bytes: &'b [u8],
}

impl SortedRow<'_> {
    pub(super) fn hash(&self) -> KeyHash {
        Partitioner::Murmur3.hash_key(self.key)
    }
}

fn span(start: usize, end: usize) -> Span {
    Span::new(start as u32, (end - start) as u32)
}

fn range_of(span: Span) -> Range<usize> {
    span.start()..span.start() + span.len()
}
