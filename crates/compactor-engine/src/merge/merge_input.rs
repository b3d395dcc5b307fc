//! Input of a merge: its cursor and what its statistics rule out; and the order of several inputs.

use std::cmp::Ordering;

use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::data::layout::{ColumnLayout, Layout};

use crate::input::header_union::ColumnMap;
use crate::read::cursor::Cursor;
use crate::read::window::BlockSource;
use crate::row::purge::Purger;

/// Facts about an input, from its header and statistics.
#[derive(Clone, Debug)]
pub struct InputFacts {
    /// Indexes of its columns in the output.
    pub map: ColumnMap,
    /// Minimum local deletion time, seconds since 1970.
    pub min_local_deletion_time_s: i64,
    /// Whether it may contain data of dropped columns.
    pub may_have_dropped: bool,
    /// Whether it may contain data whose TTL is to be removed. Its plain rows are neither copied nor passed
    /// over as older than others, so that every TTL is counted.
    pub has_ttl_to_strip: bool,
    /// Whether an earlier pass wrote it: its markers have been counted.
    pub is_intermediate: bool,
}

impl InputFacts {
    /// Facts about an SSTable that no pass wrote, with no data of dropped columns and no TTL to be removed.
    pub fn new(map: ColumnMap, min_local_deletion_time_s: i64) -> InputFacts {
        InputFacts {
            map,
            min_local_deletion_time_s,
            may_have_dropped: false,
            has_ttl_to_strip: false,
            is_intermediate: false,
        }
    }
}

/// Input of a merge.
#[derive(Debug)]
pub struct MergeInput<S> {
    /// Finds plain rows only if their bytes can be copied after new times: the output has the same columns
    /// with the same framing, and nothing in them is to be removed.
    pub(crate) cursor: Cursor<S>,
    pub(crate) facts: InputFacts,
    /// Whether clusterings are framed as in the output, so that their bytes can be copied.
    pub(crate) same_clustering: bool,
    /// Range tombstone open in this input at the merge's position.
    pub(crate) open: DeletionTime,
}

impl<S: BlockSource> MergeInput<S> {
    /// Creates an input before its first partition.
    pub fn new(mut cursor: Cursor<S>, facts: InputFacts, output: &Layout) -> MergeInput<S> {
        let layout = cursor.layout();
        let same_clustering = layout.clustering.same_framing(&output.clustering);
        let may_copy_rows = same_clustering
            && same_columns(layout, output, &facts.map)
            && !facts.may_have_dropped
            && !facts.has_ttl_to_strip;
        let clustering = &layout.clustering;
        if !clustering.same_memcomparable_prefixes(&output.clustering) {
            cursor.without_memcomparable_prefixes();
        }
        cursor.detect_plain_rows(may_copy_rows);
        MergeInput {
            cursor,
            facts,
            same_clustering,
            open: DeletionTime::LIVE,
        }
    }

    /// The cursor, for counters.
    pub fn cursor(&self) -> &Cursor<S> {
        &self.cursor
    }

    /// Whether, according to its statistics, nothing in it has expired or can be past its grace period.
    pub(crate) fn has_nothing_to_purge(&self, purger: &Purger) -> bool {
        let least = self.facts.min_local_deletion_time_s;
        least > purger.now_s && least >= purger.gc_before_s
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
