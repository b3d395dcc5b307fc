//! Times as rows have them, deltas to the header's encoding stats, for readers that leave whatever is odd to
//! [`RowBody`](crate::data::row::RowBody), which says what is wrong with it.
//!
//! Source: `SerializationHeader.readTimestamp`, `readLocalDeletionTime`, `readTTL`.

use crate::data::layout::Layout;
use crate::data::unfiltered::delta_seconds;
use crate::vint;

/// `None` for a timestamp that the statistics do not cover.
#[inline(always)]
pub(super) fn timestamp(bytes: &[u8], pos: &mut usize, layout: &Layout) -> Option<i64> {
    let delta = vint::read_unsigned(bytes, pos)?;
    let is_covered = layout.timestamp_deltas.contains(delta);
    is_covered.then(|| layout.min_timestamp.wrapping_add(delta as i64))
}

/// A local deletion time, not decoded yet; `None` for one beyond 32 bits or one that the statistics do
/// not cover.
#[inline(always)]
pub(super) fn seconds(bytes: &[u8], pos: &mut usize, layout: &Layout) -> Option<i64> {
    let delta = delta_seconds(vint::read_unsigned(bytes, pos)?)?;
    let seconds = delta + layout.min_local_deletion_time;
    layout.stated.has_deletion_time(seconds).then_some(seconds)
}

/// `None` for a negative TTL or one that the statistics do not cover.
#[inline]
pub(super) fn ttl(bytes: &[u8], pos: &mut usize, layout: &Layout) -> Option<i32> {
    let delta = delta_seconds(vint::read_unsigned(bytes, pos)?)?;
    let ttl = (delta as i32).wrapping_add(layout.min_ttl);
    (ttl >= 0 && layout.stated.has_ttl(ttl)).then_some(ttl)
}
