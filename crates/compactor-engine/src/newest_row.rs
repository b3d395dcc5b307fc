//! Versions of a row that are all plain: often the newest one is all that is left.

use std::cmp::Ordering;

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
