//! Header of a row or range tombstone marker: all that is needed to determine its position in the partition
//! and its end, without reading the body.
//!
//! ```text
//! row    := flags | [extended flags] | clustering | uvint bodySize | uvint prevSize | body
//! marker := 02 | u8 kind | u16 count | values | uvint size | uvint prevSize | deletion [deletion]
//! ```
//!
//! `bodySize` counts everything after itself, including `prevSize`.
//!
//! Source: `UnfilteredSerializer.serialize`, `deserializeOne`.

use crate::data::clustering::{Kind, ValueSpan};
use crate::data::deletion_time::DeletionTime;
use crate::data::deltas;
use crate::data::flags;
use crate::data::layout::Layout;
use crate::data::parse::{MAX_BODY_LEN, Parse, Stop};
use crate::data::row_fault::Problem;
use crate::error::Error;
use crate::vint;

/// A located unfiltered. Offsets are relative to its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnfilteredHead {
    /// A row.
    Row(RowHead),
    /// A range tombstone bound or boundary.
    Marker(MarkerHead),
    /// The end of the partition, one byte.
    EndOfPartition,
}

/// A located row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowHead {
    /// First flag byte.
    pub flags: u8,
    /// Second flag byte, 0 when absent.
    pub extended_flags: u8,
    /// First byte of the clustering.
    pub clustering_start: usize,
    /// End of the clustering.
    pub clustering_end: usize,
    /// First byte of the body, after `prevSize`.
    pub body_start: usize,
    /// Length of the row.
    pub len: usize,
}

impl RowHead {
    /// Whether the row is static.
    #[inline]
    pub fn is_static(&self) -> bool {
        self.extended_flags & flags::IS_STATIC != 0
    }

    /// Whether the row has every column of the header.
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
    /// Deletion that ends here; live for a bound that opens.
    pub close: DeletionTime,
    /// Deletion that starts here; live for a bound that closes.
    pub open: DeletionTime,
    /// Position after the kind, which is the first byte of the bound.
    pub bound_start: usize,
    /// End of the bound.
    pub bound_end: usize,
    /// Length of the marker.
    pub len: usize,
}

/// Reason why no row was found. [`parse_head`] and [`parse_static_head`] convert it to their results. A
/// result that may contain an error has many forms and is returned through memory, which takes longer than
/// locating a short row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Halt {
    /// The end of the partition, a marker, or a static row among others.
    NoRow,
    /// The bytes end within the header.
    Incomplete,
    /// The clustering is damaged, or the bytes end within it.
    Clustering,
    /// The body is longer than the bytes or than the maximum.
    BodySize,
    /// The body ends within the size of the previous unfiltered.
    PreviousSize,
}

/// Locates the row at the start of `bytes`, if there is one that is whole and valid; appends its clustering
/// values to `spans`. For anything else [`parse_head`] determines what it is.
#[inline(always)]
pub fn whole_row(bytes: &[u8], layout: &Layout, spans: &mut Vec<ValueSpan>) -> Option<RowHead> {
    row_at(bytes, layout, false, spans).ok()
}

#[inline(always)]
fn row_at(
    bytes: &[u8],
    layout: &Layout,
    is_static: bool,
    spans: &mut Vec<ValueSpan>,
) -> Result<RowHead, Halt> {
    let flag_byte = *bytes.first().ok_or(Halt::Incomplete)?;
    if flag_byte & (flags::END_OF_PARTITION | flags::IS_MARKER) != 0 {
        return Err(Halt::NoRow);
    }
    let (mut extended_flags, mut pos) = (0, 1);
    if flag_byte & flags::EXTENSION_FLAG != 0 {
        extended_flags = *bytes.get(1).ok_or(Halt::Incomplete)?;
        pos = 2;
    }
    if (extended_flags & flags::IS_STATIC != 0) != is_static {
        return Err(Halt::NoRow);
    }
    let clustering_start = pos;
    if !is_static {
        let clustering = &layout.clustering;
        let appended = clustering.append_values(bytes, &mut pos, clustering.len(), spans);
        appended.map_err(|_| Halt::Clustering)?;
    }
    let clustering_end = pos;
    let body_size = vint::read_unsigned(bytes, &mut pos).ok_or(Halt::Incomplete)?;
    if body_size > MAX_BODY_LEN || body_size > (bytes.len() - pos) as u64 {
        return Err(Halt::BodySize);
    }
    let len = pos + body_size as usize;
    // It is included in the body's size; its value is not used.
    vint::read_unsigned(&bytes[..len], &mut pos).ok_or(Halt::PreviousSize)?;
    Ok(RowHead {
        flags: flag_byte,
        extended_flags,
        clustering_start,
        clustering_end,
        body_start: pos,
        len,
    })
}

/// Parses the unfiltered at the start of `bytes`; clustering values are stored in `spans`.
///
/// `file_remaining` is the number of bytes in the file from the start of `bytes`: a size beyond it is
/// corrupt, and no reason to request more bytes.
///
/// # Errors
/// [`Stop::Incomplete`] until the whole unfiltered, including its body, is in `bytes`.
pub fn parse_head(
    bytes: &[u8],
    layout: &Layout,
    file_remaining: u64,
    spans: &mut Vec<ValueSpan>,
) -> Parse<UnfilteredHead> {
    spans.clear();
    let halt = match row_at(bytes, layout, false, spans) {
        Ok(head) => return Ok(UnfilteredHead::Row(head)),
        Err(halt) => halt,
    };
    let flag_byte = *bytes.first().ok_or(Stop::Incomplete)?;
    if flag_byte & flags::END_OF_PARTITION != 0 {
        return Ok(UnfilteredHead::EndOfPartition);
    }
    let start = 1 + usize::from(flag_byte & flags::EXTENSION_FLAG != 0);
    if flag_byte & flags::IS_MARKER != 0 {
        return if bytes.len() < start {
            Err(Stop::Incomplete)
        } else {
            parse_marker(bytes, layout, spans, start)
        };
    }
    if halt == Halt::NoRow {
        return Err(corrupt(
            "row.extended_flags",
            1,
            "no static flag after the static row",
            format!("{:#04x}", bytes.get(1).copied().unwrap_or_default()),
        ));
    }
    Err(halted(halt, bytes, layout, file_remaining, start))
}

/// Parses the static row at the start of `bytes`, which a partition has if and only if its header has static
/// columns.
///
/// # Errors
/// [`Stop::Incomplete`] until the whole row is in `bytes`.
pub fn parse_static_head(bytes: &[u8], layout: &Layout, file_remaining: u64) -> Parse<RowHead> {
    let halt = match row_at(bytes, layout, true, &mut Vec::new()) {
        Ok(head) => return Ok(head),
        Err(halt) => halt,
    };
    let Some(&[flag_byte, extended]) = bytes.get(..2) else {
        return Err(Stop::Incomplete);
    };
    if halt == Halt::NoRow {
        return Err(corrupt(
            "static_row.flags",
            0,
            "a static row",
            format!("flags {flag_byte:#04x} {extended:#04x}"),
        ));
    }
    Err(halted(halt, bytes, layout, file_remaining, 2))
}

/// Converts the reason why there is no row, whose clustering begins at `start`.
#[cold]
fn halted(halt: Halt, bytes: &[u8], layout: &Layout, file_remaining: u64, start: usize) -> Stop {
    let mut pos = start;
    let is_static = bytes
        .get(1)
        .is_some_and(|byte| byte & flags::IS_STATIC != 0)
        && start == 2;
    if !is_static {
        let clustering = &layout.clustering;
        if let Err(stop) = clustering.parse_row(bytes, &mut pos, &mut Vec::new()) {
            return stop;
        }
    }
    let clustering_end = pos;
    let Some(body_size) = vint::read_unsigned(bytes, &mut pos) else {
        return Stop::Incomplete;
    };
    let room = file_remaining.saturating_sub(pos as u64).min(MAX_BODY_LEN);
    if body_size > room {
        return corrupt(
            "row.body_size",
            clustering_end,
            &format!("at most {room} bytes, which the file has from here"),
            body_size.to_string(),
        );
    }
    match halt {
        Halt::PreviousSize => corrupt(
            "row.prev_size",
            pos,
            "a vint",
            "the end of the row".to_owned(),
        ),
        _ => Stop::Incomplete,
    }
}

fn parse_marker(
    bytes: &[u8],
    layout: &Layout,
    spans: &mut Vec<ValueSpan>,
    mut pos: usize,
) -> Parse<UnfilteredHead> {
    let bound_start = pos + 1;
    let kind = layout.clustering.parse_bound(bytes, &mut pos, spans)?;
    let bound_end = pos;
    // The size cannot be trusted: for local deletion times 2^31 s above the header's minimum, Cassandra
    // predicts a length other than that it writes. Cassandra's reader ignores it as well.
    vint::read_unsigned(bytes, &mut pos).ok_or(Stop::Incomplete)?;
    vint::read_unsigned(bytes, &mut pos).ok_or(Stop::Incomplete)?;
    let mut deletion = |is_there: bool| {
        if is_there {
            read_marker_deletion(bytes, &mut pos, layout)
        } else {
            Ok(DeletionTime::LIVE)
        }
    };
    let close = deletion(kind.is_close())?;
    let open = deletion(kind.is_open())?;
    Ok(UnfilteredHead::Marker(MarkerHead {
        kind,
        close,
        open,
        bound_start,
        bound_end,
        len: pos,
    }))
}

fn read_marker_deletion(bytes: &[u8], pos: &mut usize, layout: &Layout) -> Parse<DeletionTime> {
    let fault = |problem: Problem, structure: &'static str, at: usize| {
        if problem == Problem::Short {
            return Stop::Incomplete;
        }
        let raw = vint::read_unsigned(bytes, &mut { at }).unwrap_or_default();
        let (expected, found) = deltas::explain(problem, raw, layout);
        corrupt(structure, at, &expected, found)
    };
    let at = *pos;
    let marked_for_delete_at = deltas::timestamp(bytes, pos, layout)
        .map_err(|problem| fault(problem, "marker.deletion_time", at))?;
    if marked_for_delete_at == DeletionTime::LIVE.marked_for_delete_at {
        return Err(corrupt(
            "marker.deletion_time",
            at,
            "a deletion",
            "the timestamp of no deletion".into(),
        ));
    }
    let seconds_at = *pos;
    let seconds = deltas::seconds(bytes, pos, layout)
        .map_err(|problem| fault(problem, "marker.local_deletion_time", seconds_at))?;
    Ok(DeletionTime::build(marked_for_delete_at, seconds))
}

#[cold]
fn corrupt(structure: &'static str, at: usize, expected: &str, found: String) -> Stop {
    Stop::Corrupt(Error::corrupt(structure, at as u64, expected, found))
}
