//! Order in which Cassandra visits the versions of a column, and of a cell in it. Between cells that differ
//! only in the bytes of paths that compare equal, the first one visited stays.
//!
//! Source: `Row.Merger`, `ColumnDataReducer`, `CellReducer`, `Cells.reconcile`.

use crate::row::merged_row::ComplexColumn;
use crate::row::source_heap::SourceHeap;

/// Positions of the inputs that have a version of a row among the inputs of the partition, in Cassandra's
/// order.
#[derive(Clone, Copy, Debug)]
pub struct Visits<'a> {
    /// Position of each version's input, in the order of the versions.
    pub places: &'a [u32],
    /// Number of inputs of the partition.
    pub sources: usize,
}

impl Visits<'_> {
    /// A single input.
    pub const SINGLE: Visits<'static> = Visits {
        places: &[0],
        sources: 1,
    };
}

/// Heaps of the versions of a row by their current columns, and of a column by their current cells. Reused.
#[derive(Debug, Default)]
pub(super) struct VisitOrder {
    /// Version and index of each simple column read.
    simple: Vec<(u32, u32)>,
    columns: SourceHeap,
    pub(super) cells: SourceHeap,
    /// Parts visited last.
    pub(super) visited: Vec<u32>,
}

impl VisitOrder {
    #[inline(always)]
    pub(super) fn clear(&mut self) {
        self.simple.clear();
    }

    /// Records that a version has this simple column.
    pub(super) fn note(&mut self, version: u32, index: u32) {
        self.simple.push((version, index));
    }

    /// Sorts parts by their columns, and those of one column in visiting order. Parts with neither cells nor a
    /// deletion are removed.
    pub(super) fn sort(&mut self, visits: Visits<'_>, parts: &mut Vec<ComplexColumn>) {
        // Columns of each source, ascending, with the part of a complex one.
        let mut columns = vec![Vec::new(); visits.sources];
        let mut add = |version: u32, index: u32, part: Option<ComplexColumn>| {
            let source = visits.places.get(version as usize);
            if let Some(columns) = source.and_then(|source| columns.get_mut(*source as usize)) {
                columns.push((index, part));
            }
        };
        for &(version, index) in &self.simple {
            add(version, index, None);
        }
        for part in parts.drain(..) {
            if part.count > 0 || !part.deletion.is_live() {
                add(part.version, part.index, Some(part));
            }
        }
        let mut taken = vec![0; visits.sources];
        let current = |taken: &[usize], source: u32| {
            let column = columns[source as usize].get(taken[source as usize]);
            column.map(|(index, _)| *index)
        };
        self.columns.start(
            0..visits.sources as u32,
            |source| current(&taken, source).is_some(),
            |a, b| current(&taken, a).cmp(&current(&taken, b)),
        );
        loop {
            self.visited.clear();
            self.columns.winners(&mut self.visited);
            if self.visited.is_empty() {
                break;
            }
            for source in self.visited.iter().map(|source| *source as usize) {
                let (_, part) = columns[source][taken[source]];
                parts.extend(part);
                taken[source] += 1;
            }
            self.columns.advance(
                |source| current(&taken, source).is_some(),
                |a, b| current(&taken, a).cmp(&current(&taken, b)),
            );
        }
    }
}
