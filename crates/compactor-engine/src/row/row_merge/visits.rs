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

    /// Sorts parts by their columns, and those of one column in visiting order.
    pub(super) fn sort(&mut self, visits: Visits<'_>, parts: &mut [ComplexColumn]) {
        let is_there = |part: &ComplexColumn| part.count > 0 || !part.deletion.is_live();
        // Columns of each source, from its current one on.
        let mut columns: Vec<std::vec::IntoIter<u32>> = Vec::with_capacity(visits.sources);
        for source in 0..visits.sources as u32 {
            let version = visits.places.iter().position(|place| *place == source);
            let version = version.map(|version| version as u32);
            let simple = self.simple.iter().filter(|(v, _)| Some(*v) == version);
            let complex = parts.iter().filter(|p| Some(p.version) == version);
            let complex = complex.filter(|part| is_there(part)).map(|part| part.index);
            let of_source: Vec<u32> = simple.map(|(_, index)| *index).chain(complex).collect();
            columns.push(of_source.into_iter());
        }
        let mut ranks: Vec<(u32, u32)> = Vec::with_capacity(parts.len());
        let at = |columns: &[std::vec::IntoIter<u32>], source: u32| {
            columns[source as usize].as_slice().first().copied()
        };
        self.columns.start(
            0..visits.sources as u32,
            |source| at(&columns, source).is_some(),
            |a, b| at(&columns, a).cmp(&at(&columns, b)),
        );
        loop {
            self.visited.clear();
            self.columns.winners(&mut self.visited);
            if self.visited.is_empty() {
                break;
            }
            for &source in &self.visited {
                if let Some(index) = columns[source as usize].next()
                    && let Some(version) = visits.places.iter().position(|place| *place == source)
                {
                    ranks.push((index, version as u32));
                }
            }
            self.columns.advance(
                |source| at(&columns, source).is_some(),
                |a, b| at(&columns, a).cmp(&at(&columns, b)),
            );
        }
        let rank = |part: &ComplexColumn| {
            let of_part = (part.index, part.version);
            ranks.iter().position(|visited| *visited == of_part)
        };
        parts.sort_by_key(|part| (part.index, rank(part)));
    }
}
