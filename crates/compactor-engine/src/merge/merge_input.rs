//! Input of a merge: its cursor and what its statistics rule out; and the order of several inputs.

use std::cmp::Ordering;

use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::data::layout::{ColumnLayout, Layout};

use crate::input::header_union::ColumnMap;
use crate::read::cursor::Cursor;
use crate::read::window::BlockSource;

/// Input of a merge.
#[derive(Debug)]
pub struct MergeInput<S> {
    pub(crate) cursor: Cursor<S>,
    pub(crate) map: ColumnMap,
    /// Whether clusterings are framed as in the output, so that their bytes can be copied.
    pub(crate) same_clustering: bool,
    /// Whether the output has the same regular columns with the same framing, so that the bytes of plain rows
    /// can be copied.
    pub(crate) same_columns: bool,
    /// Minimum local deletion time according to its statistics, seconds since 1970.
    pub(crate) min_local_deletion_time_s: i64,
    /// Whether, according to its statistics, nothing in it has expired or can be past its grace period.
    pub(crate) nothing_to_purge: bool,
    /// Whether, according to its statistics, it contains no data of dropped columns.
    pub(crate) nothing_dropped: bool,
    /// Whether rows have no TTL that is to be removed.
    pub(crate) nothing_to_strip: bool,
    /// Range tombstone open in this input at the merge's position.
    pub(crate) open: DeletionTime,
    /// Whether an earlier pass wrote it: its markers have been counted.
    pub(crate) is_intermediate: bool,
}

impl<S: BlockSource> MergeInput<S> {
    /// Creates an input before its first partition. `min_local_deletion_time_s` is taken from its statistics.
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
            .same_memcomparable_prefixes(&output.clustering)
        {
            cursor.without_memcomparable_prefixes();
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
            nothing_to_strip: true,
            open: DeletionTime::LIVE,
            is_intermediate: false,
        }
    }

    /// Marks the input as an intermediate SSTable, which an earlier pass wrote.
    #[must_use]
    pub fn of_an_earlier_pass(mut self) -> MergeInput<S> {
        self.is_intermediate = true;
        self
    }

    /// Marks the input as possibly containing data of dropped columns.
    #[must_use]
    pub fn with_dropped_cells(mut self) -> MergeInput<S> {
        self.nothing_dropped = false;
        self.cursor.detect_plain_rows(false);
        self
    }

    /// Marks the input as possibly containing data whose TTL is to be removed. Its plain rows are not copied,
    /// nor passed over as older than others, so that every TTL is counted.
    #[must_use]
    pub fn with_ttl_to_strip(mut self) -> MergeInput<S> {
        self.nothing_to_strip = false;
        self.cursor.detect_plain_rows(false);
        self
    }

    /// Whether the bytes of its plain rows can be copied after new times.
    #[inline]
    pub(crate) fn may_copy_rows(&self) -> bool {
        self.nothing_dropped && self.nothing_to_strip && self.same_clustering && self.same_columns
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

/// Whether a member of a group is positioned on a row or marker of the partition.
#[inline]
pub(crate) fn has_unfiltered<S: BlockSource>(
    inputs: &[MergeInput<S>],
    group: &[u32],
    member: u32,
) -> bool {
    let cursor = &inputs[group[member as usize] as usize].cursor;
    cursor.row().is_some() || cursor.marker().is_some()
}

/// Order of two members of a group in the partition; those at its end come last.
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
    if let (Some(a), Some(b)) = (a.memcomparable_prefix(), b.memcomparable_prefix())
        && a != b
    {
        return a.cmp(&b);
    }
    match (a.clustering(), b.clustering()) {
        (Some(a), Some(b)) => output.clustering.compare(a, b),
        (a, b) => b.is_some().cmp(&a.is_some()),
    }
}
