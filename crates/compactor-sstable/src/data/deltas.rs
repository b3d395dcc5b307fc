//! Times in rows: deltas to the header's encoding stats, validated against the statistics.
//!
//! Source: `SerializationHeader.readTimestamp`, `readLocalDeletionTime`, `readTTL`.

use crate::data::deletion_time::DeletionTime;
use crate::data::layout::Layout;
use crate::data::row_fault::Problem;
use crate::vint;

/// Converts a vint that must fit a Java `int`.
#[inline(always)]
fn delta_seconds(raw: u64) -> Option<i64> {
    i32::try_from(raw as i64).ok().map(i64::from)
}

/// Reads a timestamp; that of a live deletion is always accepted.
#[inline(always)]
pub(super) fn timestamp(bytes: &[u8], pos: &mut usize, layout: &Layout) -> Result<i64, Problem> {
    let delta = vint::read_unsigned(bytes, pos).ok_or(Problem::Short)?;
    let timestamp = layout.min_timestamp.wrapping_add(delta as i64);
    if layout.timestamp_deltas.contains(delta)
        || timestamp == DeletionTime::LIVE.marked_for_delete_at
    {
        return Ok(timestamp);
    }
    Err(Problem::Timestamp)
}

/// Reads seconds without validation against the statistics, for a live deletion.
#[inline(always)]
pub(super) fn any_seconds(bytes: &[u8], pos: &mut usize, layout: &Layout) -> Result<i64, Problem> {
    let raw = vint::read_unsigned(bytes, pos).ok_or(Problem::Short)?;
    let delta = delta_seconds(raw).ok_or(Problem::Delta)?;
    Ok(delta + layout.min_local_deletion_time)
}

/// Reads a local deletion time without decoding it.
#[inline(always)]
pub(super) fn seconds(bytes: &[u8], pos: &mut usize, layout: &Layout) -> Result<i64, Problem> {
    let seconds = any_seconds(bytes, pos, layout)?;
    if layout.stated.has_deletion_time(seconds) {
        Ok(seconds)
    } else {
        Err(Problem::DeletionTime)
    }
}

/// Reads a TTL, seconds.
#[inline(always)]
pub(super) fn ttl(bytes: &[u8], pos: &mut usize, layout: &Layout) -> Result<i32, Problem> {
    let raw = vint::read_unsigned(bytes, pos).ok_or(Problem::Short)?;
    let delta = delta_seconds(raw).ok_or(Problem::Delta)?;
    // Java adds with overflow; a negative sum is refused in either case.
    let ttl = (delta as i32).wrapping_add(layout.min_ttl);
    if ttl < 0 {
        return Err(Problem::NegativeTtl);
    }
    if layout.stated.has_ttl(ttl) {
        Ok(ttl)
    } else {
        Err(Problem::Ttl)
    }
}

/// Reads the deletion of a row or a complex column, which may be live.
#[inline(always)]
pub(super) fn deletion_time(
    bytes: &[u8],
    pos: &mut usize,
    layout: &Layout,
) -> Result<DeletionTime, Problem> {
    let marked_for_delete_at = timestamp(bytes, pos, layout)?;
    let is_live = marked_for_delete_at == DeletionTime::LIVE.marked_for_delete_at;
    let seconds = if is_live {
        any_seconds(bytes, pos, layout)?
    } else {
        seconds(bytes, pos, layout)?
    };
    Ok(DeletionTime::build(marked_for_delete_at, seconds))
}

/// Expected and found value of a problem with a time whose delta is `raw`, for an error.
#[cold]
pub(super) fn explain(problem: Problem, raw: u64, layout: &Layout) -> (String, String) {
    let stated =
        |what: &str| format!("{what} between the minimum and the maximum in Statistics.db");
    let seconds = delta_seconds(raw).unwrap_or_default();
    let ttl = (seconds as i32).wrapping_add(layout.min_ttl).to_string();
    match problem {
        Problem::Timestamp => {
            let timestamp = layout.min_timestamp.wrapping_add(raw as i64);
            (stated("a timestamp"), timestamp.to_string())
        }
        Problem::DeletionTime => {
            let seconds = seconds + layout.min_local_deletion_time;
            (stated("a local deletion time"), seconds.to_string())
        }
        Problem::Ttl => (stated("a TTL"), ttl),
        Problem::NegativeTtl => ("0 or more".to_owned(), ttl),
        _ => ("a delta of 32 bits".to_owned(), raw.to_string()),
    }
}
