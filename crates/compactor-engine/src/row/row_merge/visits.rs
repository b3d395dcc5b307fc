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

/// Number of no part, for a simple column.
const SIMPLE: u32 = u32::MAX;

/// Heaps of the versions of a row by their current columns, and of a column by their current cells. Reused.
#[derive(Debug, Default)]
pub(super) struct VisitOrder {
    /// Version and index of each simple column read.
    simple: Vec<(u32, u32)>,
    /// Parts before they are sorted.
    unsorted: Vec<ComplexColumn>,
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
        // Columns of each source, ascending, with the number of the part of a complex one.
        let mut columns = vec![Vec::new(); visits.sources];
        let mut add = |version: u32, index: u32, part: u32| {
            let source = visits.places.get(version as usize);
            match source.and_then(|source| columns.get_mut(*source as usize)) {
                Some(columns) => columns.push((index, part)),
                None => debug_assert!(false, "a version of no input"),
            }
        };
        for &(version, index) in &self.simple {
            add(version, index, SIMPLE);
        }
        self.unsorted.clear();
        self.unsorted.append(parts);
        for (number, part) in (0..).zip(&self.unsorted) {
            if part.count > 0 || !part.deletion.is_live() {
                add(part.version, part.index, number);
            }
        }
        let mut taken = vec![0; visits.sources];
        let current = |taken: &[usize], source: u32| {
            let column = columns[source as usize].get(taken[source as usize]);
            column.map(|(index, _)| *index)
        };
        self.columns.start(
            visits.sources,
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
                parts.extend(self.unsorted.get(part as usize));
                taken[source] += 1;
            }
            self.columns.advance(
                |source| current(&taken, source).is_some(),
                |a, b| current(&taken, a).cmp(&current(&taken, b)),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use compactor_sstable::data::deletion_time::DeletionTime;

    use super::*;

    fn part(version: u32, index: u32, count: u32) -> ComplexColumn {
        ComplexColumn {
            index,
            deletion: DeletionTime::LIVE,
            version,
            first: 0,
            count,
        }
    }

    /// Its cells were all of a dropped column: Cassandra does not read such a column.
    #[test]
    fn a_part_without_cells_does_not_change_the_order_of_others() {
        let visits = Visits {
            places: &[0, 1, 2],
            sources: 3,
        };
        let order = |mut parts: Vec<ComplexColumn>| -> Vec<(u32, u32)> {
            VisitOrder::default().sort(visits, &mut parts);
            let of = |part: &ComplexColumn| (part.index, part.version);
            parts.iter().map(of).collect()
        };
        let sound = [part(0, 8, 1), part(1, 7, 1), part(2, 7, 1), part(1, 8, 1)];
        let emptied = [&[part(0, 7, 0)], &sound[..]].concat();
        assert_eq!(order(emptied), order(sound.to_vec()));
        assert_eq!(order(sound.to_vec()).len(), 4);
    }

    /// The source that was last ahead with a column of its own is visited first.
    #[test]
    fn simple_columns_are_visited_too() {
        let visits = Visits {
            places: &[1, 0],
            sources: 2,
        };
        let mut order = VisitOrder::default();
        order.note(0, 3);
        let mut parts = vec![part(0, 7, 1), part(1, 7, 1)];
        order.sort(visits, &mut parts);
        let versions: Vec<u32> = parts.iter().map(|part| part.version).collect();
        assert_eq!(versions, [0, 1]);
    }
}
