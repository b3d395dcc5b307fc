//! Versions of a row that are all plain: often the newest one is all that is left, and otherwise the newest
//! cell of each column is.

use std::cmp::Ordering;

use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::data::plain_cells::PlainCells;
use compactor_sstable::data::plain_row::PlainRow;

use crate::merge_input::MergeInput;
use crate::window::BlockSource;

/// The version that is what merging the rows of `members` comes to: where all are plain, and the newest
/// has every column, or is the only one. Its cells are then newer than all others of their columns. Where
/// two are as new, they must be the same.
#[inline(always)]
pub(crate) fn newest_plain<'a, S: BlockSource>(
    inputs: &'a [MergeInput<S>],
    members: &[u32],
) -> Option<PlainRow<'a>> {
    let (&number, others) = members.split_first()?;
    let first = &inputs[number as usize];
    if !first.nothing_dropped || !first.same_clustering {
        return None;
    }
    let mut newest = first.cursor.plain_row()?;
    let mut same_columns = first.same_columns;
    let mut is_ambiguous = false;
    for &number in others {
        let input = &inputs[number as usize];
        let plain = input.cursor.plain_row()?;
        // Clusterings that compare equal may differ in their bytes.
        if !input.nothing_dropped
            || !input.same_clustering
            || plain.clustering() != newest.clustering()
        {
            return None;
        }
        match plain.liveness.timestamp.cmp(&newest.liveness.timestamp) {
            Ordering::Less => {}
            Ordering::Equal => {
                is_ambiguous |=
                    !plain.has_same_content(&newest) || input.same_columns != same_columns;
            }
            Ordering::Greater => {
                newest = plain;
                same_columns = input.same_columns;
                is_ambiguous = false;
            }
        }
    }
    let is_whole = others.is_empty() || newest.has_all_columns();
    (same_columns && is_whole && !is_ambiguous).then_some(newest)
}

/// Versions that [`plain_versions`] takes at most.
pub(crate) const MOST_VERSIONS: usize = 4;

/// Of the versions of a row, newest first, those that are newer than the deletion that is open; where all
/// are plain, no two are as new and none expires. Returns the newest and the number of them; `None` where
/// this does not hold, or nothing is left.
pub(crate) fn plain_versions<'a, S: BlockSource>(
    inputs: &'a [MergeInput<S>],
    members: &[u32],
    active: DeletionTime,
    versions: &mut [PlainCells<'a>; MOST_VERSIONS],
) -> Option<(PlainRow<'a>, usize)> {
    let mut newest: Option<PlainRow<'a>> = None;
    let mut count = 0;
    for &number in members {
        let input = &inputs[number as usize];
        let row = input.cursor.plain_row()?;
        let is_same_place = newest.is_none_or(|other| other.clustering() == row.clustering());
        if count == MOST_VERSIONS || !input.may_copy_rows() || !is_same_place {
            return None;
        }
        let cells = PlainCells::of(&row, input.cursor.layout())?;
        let older = versions[..count]
            .iter()
            .position(|other| other.timestamp() <= cells.timestamp())
            .unwrap_or(count);
        if older < count && versions[older].timestamp() == cells.timestamp() {
            return None;
        }
        versions[older..=count].rotate_right(1);
        versions[older] = cells;
        if older == 0 {
            newest = Some(row);
        }
        count += 1;
    }
    if !active.is_live() {
        let is_left = |version: &PlainCells<'_>| version.timestamp() > active.marked_for_delete_at;
        count = versions[..count].iter().take_while(|v| is_left(v)).count();
    }
    newest.filter(|_| count > 0).map(|newest| (newest, count))
}
