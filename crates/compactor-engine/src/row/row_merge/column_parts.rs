//! Complex columns, whose cells are reconciled by path.
//!
//! A part is what one version has of a complex column. Parts are collected version by version and merged column
//! by column.

use std::cmp::Ordering;

use compactor_sstable::data::cell::Cell;
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::data::layout::ColumnLayout;

use super::visits::{VisitOrder, Visits};
use crate::row::counter_merge::Contexts;
use crate::row::merged_row::{ComplexColumn, MergedRow};
use crate::row::reconcile::{first_wins, left_wins};
use crate::row::row_version::{Version, VersionError, row_bytes};

/// Parts of a row's columns. Reused.
#[derive(Debug, Default)]
pub(super) struct ColumnParts {
    /// Ordered by version, then by column.
    parts: Vec<ComplexColumn>,
    cells: Vec<Cell>,
    order: VisitOrder,
    /// Parts that are positioned on the same path.
    equal: Vec<u32>,
}

impl ColumnParts {
    #[inline(always)]
    pub(super) fn clear(&mut self) {
        self.parts.clear();
        self.cells.clear();
        self.order.clear();
    }

    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Begins the part of a column in a version.
    #[inline]
    pub(super) fn begin(&mut self, index: u32, version: u32, deletion: DeletionTime) {
        self.parts.push(ComplexColumn {
            index,
            deletion,
            version,
            first: self.cells.len() as u32,
            count: 0,
        });
    }

    /// Appends a cell to it.
    #[inline(always)]
    pub(super) fn push(&mut self, cell: Cell) {
        if let Some(part) = self.parts.last_mut() {
            self.cells.push(cell);
            part.count += 1;
        }
    }

    /// Records that a version has this simple column, if the order of visits matters.
    pub(super) fn note_simple(&mut self, version: u32, index: u32) {
        self.order.note(version, index);
    }

    /// Moves all parts to the row of a single version, which is not merged.
    pub(super) fn take_as_read(&mut self, row: &mut MergedRow) {
        std::mem::swap(&mut self.parts, &mut row.complex);
        std::mem::swap(&mut self.cells, &mut row.cells);
    }

    /// Merges complex columns into `row`, under the active deletion for its cells.
    ///
    /// # Errors
    /// The value of a counter is not a context, or there are too many.
    pub(super) fn merge_paths(
        &mut self,
        row: &mut MergedRow,
        versions: &[Version<'_>],
        columns: &[ColumnLayout],
        active: DeletionTime,
        visits: Option<Visits<'_>>,
    ) -> Result<(), VersionError> {
        match visits {
            Some(visits) => self.order.sort(visits, &mut self.parts),
            None => self.parts.sort_by_key(|part| part.index),
        }
        let ColumnParts {
            parts,
            cells,
            order,
            equal,
        } = self;
        for parts in parts.chunk_by_mut(|a, b| a.index == b.index) {
            let Some(&ComplexColumn { index, .. }) = parts.first() else {
                continue;
            };
            let Some(column) = columns.get(index as usize) else {
                continue;
            };
            let deletions = parts.iter().map(|part| part.deletion);
            let mut deletion = deletions.fold(DeletionTime::LIVE, DeletionTime::max);
            let mut active = active;
            if deletion.supersedes(&active) {
                active = deletion;
            } else {
                deletion = DeletionTime::LIVE;
            }
            let first = row.cells.len();
            let is_left = |cell: &&Cell| !active.deletes(cell.timestamp);
            if let [only] = parts {
                let cells = &cells[only.first as usize..(only.first + only.count) as usize];
                row.cells.extend(cells.iter().filter(is_left));
            } else {
                let mut merge = PathMerge {
                    column,
                    parts,
                    cells,
                    versions,
                    active,
                    contexts: &mut row.contexts,
                };
                match visits {
                    Some(_) => merge.in_visit_order(order, &mut row.cells)?,
                    None => merge.run(equal, &mut row.cells)?,
                }
            }
            row.complex.push(ComplexColumn {
                index,
                deletion,
                version: 0,
                first: first as u32,
                count: (row.cells.len() - first) as u32,
            });
        }
        Ok(())
    }
}

/// Merge of the cells of one complex column.
struct PathMerge<'m> {
    column: &'m ColumnLayout,
    /// In visiting order. Each advances as its cells are taken.
    parts: &'m mut [ComplexColumn],
    cells: &'m [Cell],
    versions: &'m [Version<'m>],
    active: DeletionTime,
    contexts: &'m mut Contexts,
}

impl PathMerge<'_> {
    fn cell(&self, part: u32) -> Option<&Cell> {
        let part = self
            .parts
            .get(part as usize)
            .filter(|part| part.count > 0)?;
        self.cells.get(part.first as usize)
    }

    fn path(&self, part: u32) -> &[u8] {
        let bytes = |cell: &Cell| row_bytes(self.versions, cell.version);
        self.cell(part)
            .map_or(&[], |cell| cell.path.of(bytes(cell)))
    }

    fn compare(&self, a: u32, b: u32) -> Ordering {
        self.column
            .cql_type
            .compare_paths(self.path(a), self.path(b))
    }

    /// Reconciles the current cells of these parts, which have equal paths, and advances the parts.
    fn take(
        &mut self,
        equal: &[u32],
        in_visit_order: bool,
        out: &mut Vec<Cell>,
    ) -> Result<(), VersionError> {
        let mut merged: Option<Cell> = None;
        for &number in equal {
            let Some(&cell) = self.cell(number) else {
                continue;
            };
            let part = &mut self.parts[number as usize];
            part.first += 1;
            part.count -= 1;
            if self.active.deletes(cell.timestamp) {
                continue;
            }
            let bytes = |cell: &Cell| row_bytes(self.versions, cell.version);
            merged = Some(match merged {
                Some(mut best)
                    if self.column.is_counter && !(best.is_tombstone() && cell.is_tombstone()) =>
                {
                    let (sum, addend) = (bytes(&best), bytes(&cell));
                    let added = self.contexts.add((&mut best, sum), (&cell, addend));
                    added.map_err(|error| VersionError {
                        number: cell.version as usize,
                        error,
                    })?;
                    best
                }
                Some(best) => {
                    let (first, next) = ((&best, bytes(&best)), (&cell, bytes(&cell)));
                    let stays = if in_visit_order {
                        first_wins(first, next)
                    } else {
                        left_wins(first, next)
                    };
                    if stays { best } else { cell }
                }
                None => cell,
            });
        }
        out.extend(merged);
        Ok(())
    }

    fn run(&mut self, equal: &mut Vec<u32>, out: &mut Vec<Cell>) -> Result<(), VersionError> {
        loop {
            equal.clear();
            for number in 0..self.parts.len() as u32 {
                if self.cell(number).is_none() {
                    continue;
                }
                let order = match equal.first() {
                    Some(&least) => self.compare(number, least),
                    None => Ordering::Less,
                };
                if order.is_lt() {
                    equal.clear();
                }
                if order.is_le() {
                    equal.push(number);
                }
            }
            if equal.is_empty() {
                return Ok(());
            }
            self.take(equal, false, out)?;
        }
    }

    /// Merges in Cassandra's order, for paths that compare equal but may differ in their bytes.
    fn in_visit_order(
        &mut self,
        order: &mut VisitOrder,
        out: &mut Vec<Cell>,
    ) -> Result<(), VersionError> {
        let cells = &mut order.cells;
        cells.start(
            self.parts.len(),
            |part| self.cell(part).is_some(),
            |a, b| self.compare(a, b),
        );
        loop {
            order.visited.clear();
            order.cells.winners(&mut order.visited);
            if order.visited.is_empty() {
                return Ok(());
            }
            self.take(&order.visited, true, out)?;
            order
                .cells
                .advance(|part| self.cell(part).is_some(), |a, b| self.compare(a, b));
        }
    }
}
