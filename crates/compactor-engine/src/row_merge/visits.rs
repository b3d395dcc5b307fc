//! The order in which Cassandra visits versions of a column, and of a cell in it, which decides between cells
//! that differ in nothing but the bytes of paths that compare equal: the first one stays.
//!
//! A column of which a version has nothing left, all of it having been dropped, takes part here and does not
//! there.
//!
//! Source: `Row.Merger`, `ColumnDataReducer`, `CellReducer`, `Cells.reconcile`.

use std::cmp::Ordering;

use compactor_sstable::data::layout::ColumnLayout;

use super::Version;
use crate::source_heap::SourceHeap;

/// Where the inputs with a version of a row are among those of the partition, as Cassandra visits them.
#[derive(Clone, Copy, Debug)]
pub struct Visits<'a> {
    /// Of each version, in the order in which they come.
    pub places: &'a [u32],
    /// Inputs of the partition.
    pub sources: usize,
}

impl Visits<'_> {
    /// A single input.
    pub const ALONE: Visits<'static> = Visits {
        places: &[0],
        sources: 1,
    };
}

/// Versions of a row by their current columns, and of a column by their current cells. Reused.
#[derive(Debug, Default)]
pub(super) struct VisitOrder {
    columns: SourceHeap,
    cells: SourceHeap,
    /// The version of each input of the partition.
    version_at: Vec<Option<u32>>,
    /// Inputs last visited.
    visited: Vec<u32>,
    /// Versions with the current column or cell, in their order.
    pub(super) versions: Vec<u32>,
}

impl VisitOrder {
    /// Begins a row whose versions stand at their first columns.
    pub(super) fn start_row(&mut self, visits: Visits<'_>, versions: &[Version<'_>]) {
        self.version_at.clear();
        self.version_at.resize(visits.sources, None);
        for (number, place) in visits.places.iter().enumerate() {
            if let Some(version) = self.version_at.get_mut(*place as usize) {
                *version = Some(number as u32);
            }
        }
        let at = Columns(&self.version_at, versions);
        self.columns.start(
            0..visits.sources as u32,
            |source| at.column(source).is_some(),
            |a, b| at.column(a).cmp(&at.column(b)),
        );
    }

    /// Visits the versions of the least column.
    pub(super) fn visit_column(&mut self) {
        self.visited.clear();
        self.columns.winners(&mut self.visited);
        let versions = self.visited.iter();
        let versions = versions.filter_map(|place| self.version_at[*place as usize]);
        self.versions.clear();
        self.versions.extend(versions);
    }

    /// Goes on after the versions of the column last visited have moved.
    pub(super) fn next_column(&mut self, versions: &[Version<'_>]) {
        let at = Columns(&self.version_at, versions);
        self.columns.advance(
            |source| at.column(source).is_some(),
            |a, b| at.column(a).cmp(&at.column(b)),
        );
    }

    /// Begins the complex column last visited, whose versions stand at their first cells.
    pub(super) fn start_cells(&mut self, column: &ColumnLayout, versions: &[Version<'_>]) {
        let sources = self.versions.iter().copied();
        self.cells
            .start(sources, has_cell(versions), compare_cells(column, versions));
    }

    /// Visits the cells of the least path.
    pub(super) fn visit_cell(&mut self) {
        self.versions.clear();
        self.cells.winners(&mut self.versions);
    }

    /// Goes on after the versions with the cell last visited have moved.
    pub(super) fn next_cell(&mut self, column: &ColumnLayout, versions: &[Version<'_>]) {
        self.cells
            .advance(has_cell(versions), compare_cells(column, versions));
    }
}

/// Inputs of a partition and the columns at which their versions stand.
struct Columns<'c, 'a>(&'c [Option<u32>], &'c [Version<'a>]);

impl Columns<'_, '_> {
    fn column(&self, source: u32) -> Option<u32> {
        let version = self.0[source as usize]?;
        let (_, output) = self.1[version as usize].column?;
        Some(output)
    }
}

fn has_cell(versions: &[Version<'_>]) -> impl Fn(u32) -> bool {
    |version| versions[version as usize].cell.is_some()
}

fn compare_cells(column: &ColumnLayout, versions: &[Version<'_>]) -> impl Fn(u32, u32) -> Ordering {
    |a, b| {
        let path = |version: u32| versions[version as usize].cell.map_or(&[][..], |c| c.path);
        column.cql_type.compare_paths(path(a), path(b))
    }
}
