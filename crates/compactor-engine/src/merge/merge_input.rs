//! One input of a merge: its cursor, and what its statistics say that it does not need. And the order of
//! several.

use std::cmp::Ordering;

use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::data::layout::{ColumnLayout, Layout};

use crate::input::header_union::ColumnMap;
use crate::read::cursor::Cursor;
use crate::read::window::BlockSource;

/// One input of a merge.
#[derive(Debug)]
pub struct MergeInput<S> {
    pub(crate) cursor: Cursor<S>,
    pub(crate) map: ColumnMap,
    /// Clusterings are framed as in the output, so that their bytes can be copied.
    pub(crate) same_clustering: bool,
    /// The output has the same regular columns, framed as here: bytes of plain rows can be copied.
    pub(crate) same_columns: bool,
    /// Least local deletion time in it, by its statistics.
    pub(crate) min_local_deletion_time_s: i64,
    /// By its statistics nothing in it has expired or can be past its grace.
    pub(crate) nothing_to_purge: bool,
    /// By its statistics nothing in it was dropped with its column.
    pub(crate) nothing_dropped: bool,
    /// The range tombstone open in this input at the merge's position.
    pub(crate) open: DeletionTime,
    /// An earlier pass made it: its markers have been counted.
    pub(crate) is_intermediate: bool,
}

impl<S: BlockSource> MergeInput<S> {
    /// An input before its first partition. `min_local_deletion_time_s` is that of its statistics.
    pub fn new(
        mut cursor: Cursor<S>,
        map: ColumnMap,
        output: &Layout,
        min_local_deletion_time_s: i64,
        now_s: i64,
    ) -> MergeInput<S> {
        let same_clustering = cursor.layout().clustering.same_framing(&output.clustering);
        let same_columns = same_columns(cursor.layout(), output, &map);
        if !cursor
            .layout()
            .clustering
            .same_order_prefixes(&output.clustering)
        {
            cursor.without_order_prefixes();
        }
        cursor.detect_plain_rows(same_clustering && same_columns);
        MergeInput {
            cursor,
            map,
            same_clustering,
            same_columns,
            min_local_deletion_time_s,
            nothing_to_purge: min_local_deletion_time_s > now_s,
            nothing_dropped: true,
            open: DeletionTime::LIVE,
            is_intermediate: false,
        }
    }

    /// It is no input of the whole merge, but was made of several.
    #[must_use]
    pub fn of_an_earlier_pass(mut self) -> MergeInput<S> {
        self.is_intermediate = true;
        self
    }

    /// Something in it may have been dropped with its column.
    #[must_use]
    pub fn with_dropped_cells(mut self) -> MergeInput<S> {
        self.nothing_dropped = false;
        self.cursor.detect_plain_rows(false);
        self
    }

    /// Bytes of its plain rows can be copied, behind their times.
    #[inline]
    pub(crate) fn may_copy_rows(&self) -> bool {
        self.nothing_dropped && self.same_clustering && self.same_columns
    }

    /// The cursor, for counters.
    pub fn cursor(&self) -> &Cursor<S> {
        &self.cursor
    }
}

fn same_columns(input: &Layout, output: &Layout, map: &ColumnMap) -> bool {
    let (columns, of_output) = (&input.regular_columns, &output.regular_columns);
    let form = |column: &ColumnLayout| (column.fixed_len, column.is_complex, column.is_counter);
    columns.len() == of_output.len()
        && map
            .regular_columns
            .iter()
            .copied()
            .eq(0..columns.len() as u32)
        && columns.iter().map(form).eq(of_output.iter().map(form))
}

#[inline]
pub(crate) fn compare_partitions<S: BlockSource>(
    inputs: &[MergeInput<S>],
    a: u32,
    b: u32,
) -> Ordering {
    let (a, b) = (&inputs[a as usize].cursor, &inputs[b as usize].cursor);
    match (a.has_partition(), b.has_partition()) {
        (true, true) => a
            .position_in_ring()
            .cmp(&b.position_in_ring())
            .then_with(|| a.key().cmp(b.key())),
        (a_has, b_has) => b_has.cmp(&a_has),
    }
}

/// Whether a member of a group stands at a row or marker of the partition.
#[inline]
pub(crate) fn has_unfiltered<S: BlockSource>(
    inputs: &[MergeInput<S>],
    group: &[u32],
    member: u32,
) -> bool {
    let cursor = &inputs[group[member as usize] as usize].cursor;
    cursor.row().is_some() || cursor.marker().is_some()
}

/// Order of two members of a group inside the partition; those at its end come last.
#[inline]
pub(crate) fn compare_unfiltereds<S: BlockSource>(
    inputs: &[MergeInput<S>],
    output: &Layout,
    group: &[u32],
    a: u32,
    b: u32,
) -> Ordering {
    let a = &inputs[group[a as usize] as usize].cursor;
    let b = &inputs[group[b as usize] as usize].cursor;
    if let (Some(a), Some(b)) = (a.order_prefix(), b.order_prefix())
        && a != b
    {
        return a.cmp(&b);
    }
    match (a.clustering(), b.clustering()) {
        (Some(a), Some(b)) => output.clustering.compare(a, b),
        (a, b) => b.is_some().cmp(&a.is_some()),
    }
}
