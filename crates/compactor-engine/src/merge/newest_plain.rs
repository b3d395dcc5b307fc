//! Versions of a row that are all plain, of which the newest is often the merged row.

use std::cmp::Ordering;

use compactor_sstable::data::plain_row::PlainRow;

use crate::merge::merge_input::MergeInput;
use crate::read::window::BlockSource;

/// Returns the merged row of `members`, to be copied, if all versions are plain and the newest has every
/// column, or is the only one: its cells are then newer than all others of their columns. If two are equally
/// new, they must be equal.
#[inline(always)]
pub(crate) fn newest_plain<'a, S: BlockSource>(
    inputs: &'a [MergeInput<S>],
    members: &[u32],
) -> Option<PlainRow<'a>> {
    let plain = |number: u32| inputs[number as usize].cursor.plain_row();
    let (&first, others) = members.split_first()?;
    let mut newest = plain(first)?;
    let mut is_ambiguous = false;
    for &other in others {
        let other = plain(other)?;
        // Clusterings that compare equal may differ in their bytes.
        if other.clustering() != newest.clustering() {
            return None;
        }
        match other.liveness.timestamp.cmp(&newest.liveness.timestamp) {
            Ordering::Less => {}
            Ordering::Equal => is_ambiguous |= !other.has_same_content(&newest),
            Ordering::Greater => {
                newest = other;
                is_ambiguous = false;
            }
        }
    }
    let is_whole = others.is_empty() || newest.has_all_columns();
    (is_whole && !is_ambiguous).then_some(newest)
}
