//! The head of a row or range tombstone marker: everything that is needed to place it in its
//! partition and to find its end, without touching the body.
//!
//! ```text
//! row    := flags | [extended flags] | clustering | uvint bodySize | uvint prevSize | body
//! marker := 02 | u8 kind | u16 count | values | uvint size | uvint prevSize | deletion [deletion]
//! ```
//!
//! `bodySize` counts everything after itself, `prevSize` included.
//!
//! Source: `UnfilteredSerializer.serialize`, `deserializeOne`.

use crate::data::clustering::{Kind, ValueSpan};
use crate::data::deletion_time::DeletionTime;
use crate::data::flags;
use crate::data::layout::Layout;
use crate::data::parse::{MAX_BODY_LEN, Parse, Stop};
use crate::data::row::{deletion_time_beyond, no_deletion_or_beyond};
use crate::error::Error;
use crate::vint;

/// One unfiltered, located. Offsets are relative to its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnfilteredHead {
    /// A row.
    Row(RowHead),
    /// A range tombstone bound or boundary.
    Marker(MarkerHead),
    /// The end of the partition, one byte.
    EndOfPartition,
}

/// A row, located.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowHead {
    /// First flag byte.
    pub flags: u8,
    /// Second flag byte, 0 when absent.
    pub extended_flags: u8,
    /// First byte of the clustering.
    pub clustering_start: usize,
    /// Behind the last byte of the clustering.
    pub clustering_end: usize,
    /// First byte of the body, behind `prevSize`.
    pub body_start: usize,
    /// Length of the whole row.
    pub len: usize,
}

impl RowHead {
    /// True for the static row.
    #[inline]
    pub fn is_static(&self) -> bool {
        self.extended_flags & flags::IS_STATIC != 0
    }

    /// True for a row that has every column of the header.
    #[inline(always)]
    pub fn has_all_columns(&self) -> bool {
        self.flags & flags::HAS_ALL_COLUMNS != 0
    }
}

/// A range tombstone marker, parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkerHead {
    /// Bound or boundary.
    pub kind: Kind,
    /// The deletion that ends here; live for a bound that opens.
    pub close: DeletionTime,
    /// The deletion that starts here; live for a bound that closes.
    pub open: DeletionTime,
    /// Length of the whole marker.
    pub len: usize,
}

/// Parses the unfiltered at the start of `bytes`; clustering values go to `spans`.
///
/// `file_remaining` is how many bytes the file holds from the start of `bytes`: a size beyond it is
/// corruption, not a reason to ask for more.
///
/// # Errors
/// [`Stop::Incomplete`] until the whole unfiltered, body included, is in `bytes`.
#[inline]
pub fn parse_head(
    bytes: &[u8],
    layout: &Layout,
    file_remaining: u64,
    spans: &mut Vec<ValueSpan>,
) -> Parse<UnfilteredHead> {
    let flag_byte = *bytes.first().ok_or(Stop::Incomplete)?;
    if flag_byte & (flags::END_OF_PARTITION | flags::IS_MARKER | flags::EXTENSION_FLAG) == 0 {
        return parse_row(bytes, layout, file_remaining, spans, flag_byte, 0, 1);
    }
    if flag_byte & flags::END_OF_PARTITION != 0 {
        return Ok(UnfilteredHead::EndOfPartition);
    }
    let (extended, pos) = if flag_byte & flags::EXTENSION_FLAG != 0 {
        (*bytes.get(1).ok_or(Stop::Incomplete)?, 2)
    } else {
        (0, 1)
    };
    if flag_byte & flags::IS_MARKER != 0 {
        return parse_marker(bytes, layout, spans, pos);
    }
    if extended & flags::IS_STATIC != 0 {
        return Err(corrupt(
            "row.extended_flags",
            1,
            "no static flag behind the static row",
            format!("{extended:#04x}"),
        ));
    }
    parse_row(
        bytes,
        layout,
        file_remaining,
        spans,
        flag_byte,
        extended,
        pos,
    )
}

/// The row at the start of `bytes`, if there is one, without a second flag byte, whole and sound; its
/// clustering values are added to `spans`. Of anything else [`parse_head`] tells what it is; of such a
/// row it tells the same. Its result has many forms and comes by way of memory, which takes longer than
/// the parsing of a short row.
#[inline(always)]
pub fn whole_row(bytes: &[u8], layout: &Layout, spans: &mut Vec<ValueSpan>) -> Option<RowHead> {
    let flag_byte = *bytes.first()?;
    if flag_byte & (flags::END_OF_PARTITION | flags::IS_MARKER | flags::EXTENSION_FLAG) != 0 {
        return None;
    }
    let clustering_start = 1;
    let mut pos = clustering_start;
    layout.clustering.append_row(bytes, &mut pos, spans).ok()?;
    let clustering_end = pos;
    let body_size = vint::read_unsigned(bytes, &mut pos)?;
    if body_size > MAX_BODY_LEN || body_size > (bytes.len() - pos) as u64 {
        return None;
    }
    let len = pos + body_size as usize;
    vint::read_unsigned(&bytes[..len], &mut pos)?;
    Some(RowHead {
        flags: flag_byte,
        extended_flags: 0,
        clustering_start,
        clustering_end,
        body_start: pos,
        len,
    })
}

/// Parses the static row at the start of `bytes`, which a partition has exactly if its header has
/// static columns.
///
/// # Errors
/// [`Stop::Incomplete`] until the whole row is in `bytes`.
pub fn parse_static_head(bytes: &[u8], file_remaining: u64) -> Parse<RowHead> {
    let Some(&[flag_byte, extended]) = bytes.get(..2) else {
        return Err(Stop::Incomplete);
    };
    let is_extended_row = flag_byte
        & (flags::END_OF_PARTITION | flags::IS_MARKER | flags::EXTENSION_FLAG)
        == flags::EXTENSION_FLAG;
    if !is_extended_row || extended & flags::IS_STATIC == 0 {
        return Err(corrupt(
            "static_row.flags",
            0,
            "a static row",
            format!("flags {flag_byte:#04x} {extended:#04x}"),
        ));
    }
    let mut pos = 2;
    finish_row(bytes, file_remaining, flag_byte, extended, 2, &mut pos)
}

#[inline]
fn parse_row(
    bytes: &[u8],
    layout: &Layout,
    file_remaining: u64,
    spans: &mut Vec<ValueSpan>,
    flag_byte: u8,
    extended: u8,
    mut pos: usize,
) -> Parse<UnfilteredHead> {
    let clustering_start = pos;
    layout.clustering.parse_row(bytes, &mut pos, spans)?;
    finish_row(
        bytes,
        file_remaining,
        flag_byte,
        extended,
        clustering_start,
        &mut pos,
    )
    .map(UnfilteredHead::Row)
}

#[inline]
fn finish_row(
    bytes: &[u8],
    file_remaining: u64,
    flag_byte: u8,
    extended: u8,
    clustering_start: usize,
    pos: &mut usize,
) -> Parse<RowHead> {
    let clustering_end = *pos;
    let body_size = vint::read_unsigned(bytes, pos).ok_or(Stop::Incomplete)?;
    let after_size = *pos;
    if body_size > MAX_BODY_LEN || body_size > file_remaining.saturating_sub(after_size as u64) {
        return Err(corrupt(
            "row.body_size",
            clustering_end,
            &format!(
                "at most {} bytes, what the file holds from here",
                file_remaining
                    .saturating_sub(after_size as u64)
                    .min(MAX_BODY_LEN)
            ),
            body_size.to_string(),
        ));
    }
    let len = after_size + body_size as usize;
    if len > bytes.len() {
        return Err(Stop::Incomplete);
    }
    // prevSize is counted in bodySize; nobody reads its value.
    if vint::read_unsigned(&bytes[..len], pos).is_none() {
        return Err(corrupt(
            "row.prev_size",
            after_size,
            "a vint",
            "the end of the row".into(),
        ));
    }
    Ok(RowHead {
        flags: flag_byte,
        extended_flags: extended,
        clustering_start,
        clustering_end,
        body_start: *pos,
        len,
    })
}

fn parse_marker(
    bytes: &[u8],
    layout: &Layout,
    spans: &mut Vec<ValueSpan>,
    mut pos: usize,
) -> Parse<UnfilteredHead> {
    let kind = layout.clustering.parse_bound(bytes, &mut pos, spans)?;
    // The size is not to be trusted: for local deletion times 2^31 s above the header's minimum
    // Cassandra predicts another length than it writes. Cassandra's reader ignores it as well.
    vint::read_unsigned(bytes, &mut pos).ok_or(Stop::Incomplete)?;
    vint::read_unsigned(bytes, &mut pos).ok_or(Stop::Incomplete)?;
    let mut close = DeletionTime::LIVE;
    let mut open = DeletionTime::LIVE;
    if kind.is_boundary() {
        close = read_marker_deletion(bytes, &mut pos, layout)?;
        open = read_marker_deletion(bytes, &mut pos, layout)?;
    } else if kind.is_open() {
        open = read_marker_deletion(bytes, &mut pos, layout)?;
    } else {
        close = read_marker_deletion(bytes, &mut pos, layout)?;
    }
    Ok(UnfilteredHead::Marker(MarkerHead {
        kind,
        close,
        open,
        len: pos,
    }))
}

fn read_marker_deletion(bytes: &[u8], pos: &mut usize, layout: &Layout) -> Parse<DeletionTime> {
    let at = *pos;
    let timestamp = vint::read_unsigned(bytes, pos).ok_or(Stop::Incomplete)?;
    let seconds_at = *pos;
    let seconds = vint::read_unsigned(bytes, pos).ok_or(Stop::Incomplete)?;
    let seconds = delta_seconds(seconds).ok_or_else(|| {
        corrupt(
            "marker.local_deletion_time",
            seconds_at,
            "a delta of 32 bits",
            seconds.to_string(),
        )
    })?;
    let deletion = DeletionTime::build(
        layout.min_timestamp.wrapping_add(timestamp as i64),
        seconds + layout.min_local_deletion_time,
    );
    if deletion.marked_for_delete_at == i64::MIN {
        return Err(corrupt(
            "marker.deletion_time",
            at,
            "a deletion",
            "the timestamp of no deletion".into(),
        ));
    }
    if !layout.timestamp_deltas.contains(timestamp) {
        no_deletion_or_beyond("marker.deletion_time", at, deletion.marked_for_delete_at)
            .map_err(Stop::Corrupt)?;
    }
    let seconds = deletion.local_deletion_time;
    if !layout.stated.has_deletion_time(seconds) {
        let structure = "marker.local_deletion_time";
        return Err(Stop::Corrupt(deletion_time_beyond(
            structure, seconds_at, seconds,
        )));
    }
    Ok(deletion)
}

/// A vint that must fit a Java `int`.
#[inline]
pub(super) fn delta_seconds(raw: u64) -> Option<i64> {
    i32::try_from(raw as i64).ok().map(i64::from)
}

#[cold]
fn corrupt(structure: &'static str, at: usize, expected: &str, found: String) -> Stop {
    Stop::Corrupt(Error::corrupt(structure, at as u64, expected, found))
}
