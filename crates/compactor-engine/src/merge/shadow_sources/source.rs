//! One overlapping SSTable while it is read.

use std::cmp::Ordering;

use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::data::flags;
use compactor_sstable::data::layout::Layout;

use crate::error::{Error, Result};
use crate::input::header_union::ColumnMap;
use crate::input::key_range::DecoratedKey;
use crate::read::cursor::Cursor;
use crate::read::window::BlockSource;
use crate::row::purge_counts::PurgeCounts;
use crate::row::row_merge::RowMerger;
use crate::row::row_version::Version;

/// Partitions and rows skipped between checks for cancellation.
const STEPS_PER_CHECK: u32 = 4096;

/// An open source.
#[derive(Debug)]
pub(super) struct Source<S> {
    pub(super) number: usize,
    pub(super) cursor: Cursor<S>,
    /// Whether it is after the last row of its partition.
    pub(super) is_at_end: bool,
    /// Whether it has reached the first row or marker of its partition.
    has_begun: bool,
    /// Range tombstone open in it.
    pub(super) open: DeletionTime,
}

impl<S: BlockSource> Source<S> {
    /// Creates a source that is positioned on its first partition.
    pub(super) fn start(number: usize, cursor: Cursor<S>) -> Source<S> {
        Source {
            number,
            cursor,
            is_at_end: false,
            has_begun: false,
            open: DeletionTime::LIVE,
        }
    }

    pub(super) fn place(&self) -> DecoratedKey<'_> {
        (self.cursor.position_in_ring(), self.cursor.key())
    }

    /// Advances to the first row or marker that may shadow something, if it has not done so.
    pub(super) fn begin(&mut self, by_cell: bool) -> Result<()> {
        if self.has_begun {
            return Ok(());
        }
        self.has_begun = true;
        self.next_unfiltered(by_cell)
    }

    /// Whether its partition, which is not deleted, contains anything but data of dropped columns
    /// (`UnfilteredRowIterator.isEmpty`). Advances to the rows if the static row does not.
    pub(super) fn has_anything(
        &mut self,
        map: &ColumnMap,
        reading: &mut Reading<'_>,
    ) -> Result<bool> {
        if self.is_anything_left(true, map, reading)? {
            return Ok(true);
        }
        self.begin(true)?;
        while self.cursor.row().is_some() && !self.is_anything_left(false, map, reading)? {
            ask(reading.steps, reading.is_cancelled)?;
            self.next_unfiltered(true)?;
        }
        Ok(!self.is_at_end)
    }

    /// Whether the row contains anything but data of dropped columns.
    fn is_anything_left(
        &self,
        is_static: bool,
        map: &ColumnMap,
        reading: &mut Reading<'_>,
    ) -> Result<bool> {
        let row = if !is_static {
            self.cursor.row()
        } else if self.cursor.has_static_content() {
            self.cursor.static_row()
        } else {
            None
        };
        let Some(row) = row else { return Ok(false) };
        let map = map.of_kind(is_static);
        let counts = &mut PurgeCounts::default();
        let is_left = reading
            .rows
            .is_anything_left(is_static, Version { row, map }, counts);
        is_left.map_err(|error| self.cursor.locate_error(error))
    }

    /// Advances to the next row or marker that may shadow something.
    pub(super) fn next_unfiltered(&mut self, by_cell: bool) -> Result<()> {
        while !self.is_at_end {
            self.cursor.next_unfiltered()?;
            match self.cursor.row() {
                // A row without a deletion shadows only cells.
                Some(row) if !by_cell && row.head.flags & flags::HAS_DELETION == 0 => {}
                _ => {
                    self.is_at_end = self.cursor.clustering().is_none();
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    pub(super) fn skip_partition(
        &mut self,
        steps: &mut u32,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<()> {
        loop {
            ask(steps, is_cancelled)?;
            if self.is_at_end {
                break;
            }
            self.next_unfiltered(true)?;
        }
        self.is_at_end = false;
        self.has_begun = false;
        self.cursor.next_partition()?;
        Ok(())
    }
}

/// State needed to determine what remains of a row.
pub(super) struct Reading<'a> {
    pub(super) rows: &'a mut RowMerger,
    pub(super) steps: &'a mut u32,
    pub(super) is_cancelled: &'a dyn Fn() -> bool,
}

/// Checks for cancellation every [`STEPS_PER_CHECK`] steps.
fn ask(steps: &mut u32, is_cancelled: &dyn Fn() -> bool) -> Result<()> {
    *steps += 1;
    if *steps >= STEPS_PER_CHECK {
        *steps = 0;
        if is_cancelled() {
            return Err(Error::Cancelled);
        }
    }
    Ok(())
}

/// Order of two members of a group in the partition; those at its end come last.
pub(super) fn compare<S: BlockSource>(
    sources: &[Source<S>],
    layout: &Layout,
    group: &[usize],
    a: u32,
    b: u32,
) -> Ordering {
    let a = sources[group[a as usize]].cursor.clustering();
    let b = sources[group[b as usize]].cursor.clustering();
    match (a, b) {
        (Some(a), Some(b)) => layout.clustering.compare(a, b),
        (a, b) => b.is_some().cmp(&a.is_some()),
    }
}
