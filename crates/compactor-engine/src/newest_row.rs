//! Versions of a row of which the newest one is all that is left.

use std::cmp::Ordering;

use compactor_sstable::data::plain_row::PlainRow;

use crate::cursor::RowRef;
use crate::merge_input::MergeInput;
use crate::window::BlockSource;

/// The version that is what merging the rows of `members`, of which `first` is the first one's, comes
/// to: where all are plain, and the newest has every column. Its cells are then newer than all others
/// of their columns. Where two are as new, they must be the same.
#[inline(always)]
pub(crate) fn newest_plain<'a, S: BlockSource>(
    inputs: &'a [MergeInput<S>],
    members: &[u32],
    first: &RowRef<'a>,
) -> Option<PlainRow<'a>> {
    let (&number, others) = members.split_first()?;
    let mut newest = first.plain()?;
    let mut same_columns = inputs[number as usize].same_columns;
    let mut is_ambiguous = false;
    for &number in others {
        let input = &inputs[number as usize];
        let row = input.cursor.row()?;
        // Clusterings that compare equal may differ in their bytes.
        if !input.nothing_dropped
            || !input.same_clustering
            || row.clustering_bytes() != first.clustering_bytes()
        {
            return None;
        }
        let plain = row.plain()?;
        match plain.liveness.timestamp.cmp(&newest.liveness.timestamp) {
            Ordering::Less => {}
            Ordering::Equal => {
                is_ambiguous |= plain != newest || input.same_columns != same_columns;
            }
            Ordering::Greater => {
                newest = plain;
                same_columns = input.same_columns;
                is_ambiguous = false;
            }
        }
    }
    let is_whole = others.is_empty() || newest.has_all_columns;
    (same_columns && is_whole && !is_ambiguous).then_some(newest)
}
