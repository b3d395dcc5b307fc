//! Serialization of rows, markers and cells in Cassandra's canonical form.
//!
//! Source: `UnfilteredSerializer.serialize`, `Cell.Serializer.serialize`, `SerializationHeader.write*`.

use crate::byte_sink::ByteSink;
use crate::data::cell::{Cell, Liveness, Span};
use crate::data::clustering::Kind;
use crate::data::columns::{ColumnSet, write_subset};
use crate::data::deletion_time::{DeletionTime, NO_DELETION_TIME};
use crate::data::flags;
use crate::data::layout::{ColumnLayout, Layout};
use crate::data::plain_row::PlainRow;
use crate::vint;

/// Properties of a row that determine its flag bytes and the start of its body.
#[derive(Clone, Copy, Debug)]
pub struct RowShape {
    /// Whether the row is static.
    pub is_static: bool,
    /// Primary-key liveness.
    pub liveness: Liveness,
    /// Row deletion.
    pub deletion: DeletionTime,
    /// Whether the row deletion is shadowable.
    pub is_shadowable: bool,
    /// Whether some complex column of the row has a deletion.
    pub has_complex_deletion: bool,
    /// Whether every column of the header is present.
    pub has_all_columns: bool,
}

impl RowShape {
    /// Returns the flag byte and, if needed, the second one.
    #[inline]
    pub fn flags(&self) -> (u8, Option<u8>) {
        let mut first = 0;
        let mut second = 0;
        if !self.liveness.is_empty() {
            first |= flags::HAS_TIMESTAMP;
        }
        if self.liveness.is_expiring() {
            first |= flags::HAS_TTL;
        }
        if !self.deletion.is_live() {
            first |= flags::HAS_DELETION;
            if self.is_shadowable {
                second |= flags::HAS_SHADOWABLE_DELETION;
            }
        }
        if self.has_complex_deletion {
            first |= flags::HAS_COMPLEX_DELETION;
        }
        if self.has_all_columns {
            first |= flags::HAS_ALL_COLUMNS;
        }
        if self.is_static {
            second |= flags::IS_STATIC;
        }
        if second == 0 {
            (first, None)
        } else {
            (first | flags::EXTENSION_FLAG, Some(second))
        }
    }
}

/// A row being appended, with the position of its body size.
#[derive(Clone, Copy, Debug)]
pub struct RowFrame {
    size_at: usize,
    size_len: usize,
}

impl RowFrame {
    /// Appends flags, clustering and the previous unfiltered's size, with space for the body size, which is
    /// assumed to have the same encoded length as `guessed_body_len`.
    #[inline]
    pub fn begin(
        out: &mut Vec<u8>,
        shape: &RowShape,
        clustering: &[u8],
        previous_size: u64,
        guessed_body_len: usize,
    ) -> RowFrame {
        let (first, second) = shape.flags();
        out.push(first);
        if let Some(second) = second {
            out.push(second);
        }
        put_short(out, clustering);
        let size_at = out.len();
        let previous_size_len = vint::unsigned_len(previous_size);
        let size_len = vint::unsigned_len((guessed_body_len + previous_size_len) as u64);
        out.extend_from_slice(&[0u8; vint::MAX_LEN]);
        out.truncate(size_at + size_len);
        vint::write_unsigned(out, previous_size);
        RowFrame { size_at, size_len }
    }

    /// Writes the body size, and moves the body if the assumed length of the vint was wrong. Returns the size, which
    /// readers accept up to [`MAX_BODY_LEN`](crate::data::parse::MAX_BODY_LEN).
    #[inline]
    pub fn end(self, out: &mut Vec<u8>) -> u64 {
        let body_at = self.size_at + self.size_len;
        let body_size = (out.len() - body_at) as u64;
        let size_len = vint::unsigned_len(body_size);
        if size_len != self.size_len {
            self.move_body(out, size_len);
        }
        vint::overwrite(&mut out[self.size_at..self.size_at + size_len], body_size);
        body_size
    }

    #[cold]
    fn move_body(&self, out: &mut Vec<u8>, size_len: usize) {
        let body_at = self.size_at + self.size_len;
        let end = out.len();
        let target = self.size_at + size_len;
        if size_len > self.size_len {
            out.resize(end + size_len - self.size_len, 0);
        }
        out.copy_within(body_at..end, target);
        out.truncate(target + (end - body_at));
    }
}

/// Bytes copied unconditionally: flags and clustering of most rows.
const SHORT_HEAD: usize = 32;
/// Bytes copied unconditionally: columns of many rows.
const SHORT_COLUMNS: usize = 128;
/// Bytes copied unconditionally: values of many cells.
const SHORT_VALUE: usize = 16;
/// Bytes copied word by word: most clusterings.
const SHORT_CLUSTERING: usize = 16;
/// Maximum length of flags, timestamp, local deletion time, TTL and another length.
const CELL_HEAD: usize = 1 + 4 * vint::MAX_LEN;
/// Vints below this are at most two bytes long.
const TWO_BYTES: u64 = 1 << 14;

/// Appends bytes that are usually few: word by word, since a copy of variable length is a function call.
#[inline(always)]
fn put_short(out: &mut Vec<u8>, bytes: &[u8]) {
    if bytes.len() > SHORT_CLUSTERING {
        return out.extend_from_slice(bytes);
    }
    let mut words = bytes.chunks_exact(4);
    for word in words.by_ref() {
        out.extend_from_slice(&[word[0], word[1], word[2], word[3]]);
    }
    for byte in words.remainder() {
        out.push(*byte);
    }
}

/// Writes a vint at `at`. Returns its end.
#[inline(always)]
fn put_uvint_at(head: &mut [u8; CELL_HEAD], at: usize, value: u64) -> usize {
    if value < 0x80 {
        if let Some(byte) = head.get_mut(at) {
            *byte = value as u8;
        }
        return at + 1;
    }
    let (encoded, len) = vint::encode(value);
    if let Some(room) = head.get_mut(at..at + vint::MAX_LEN) {
        room.copy_from_slice(&encoded);
    }
    at + len
}

/// Appends bytes of a row that are usually few.
#[inline(always)]
fn put_span(out: &mut Vec<u8>, span: Span, row: &[u8]) {
    let len = span.len();
    match row.get(span.start()..).and_then(|rest| rest.first_chunk()) {
        Some(short) if len <= SHORT_VALUE => {
            let end = out.len() + len;
            let short: &[u8; SHORT_VALUE] = short;
            out.extend_from_slice(short);
            out.truncate(end);
        }
        _ => out.extend_from_slice(span.of(row)),
    }
}

/// Appends size of the body, size of the previous unfiltered and timestamp. Returns false, with nothing
/// written, if one of the sizes takes more than two bytes or the timestamp more than eight.
#[inline(always)]
fn put_short_start(
    out: &mut Vec<u8>,
    previous_size: u64,
    timestamp: u64,
    columns_len: usize,
) -> bool {
    let timestamp_len = vint::unsigned_len(timestamp);
    let previous_len = 1 + usize::from(previous_size >= 0x80);
    let size = (previous_len + timestamp_len + columns_len) as u64;
    if size >= TWO_BYTES || previous_size >= TWO_BYTES || timestamp_len == vint::MAX_LEN {
        return false;
    }
    let size_len = 1 + usize::from(size >= 0x80);
    let two_bytes = |value: u64, len: usize| value as u32 | (0x8000 * (len as u32 - 1));
    let sizes =
        (two_bytes(size, size_len) << (8 * previous_len)) | two_bytes(previous_size, previous_len);
    let sizes_len = size_len + previous_len;
    // Leading ones of a vint, shifted to its first byte.
    let ones = u64::from(!(0xff_u8 >> (timestamp_len - 1))) << 56;
    let timestamp = (timestamp << (64 - 8 * timestamp_len)) | ones;
    // Written in place: writing it elsewhere and copying it would wait for the last store.
    let begin = out.len();
    out.extend_from_slice(&[0; 12]);
    let room = &mut out[begin..][..12];
    room[..4].copy_from_slice(&(sizes << (32 - 8 * sizes_len)).to_be_bytes());
    room[sizes_len..sizes_len + 8].copy_from_slice(&timestamp.to_be_bytes());
    out.truncate(begin + sizes_len + timestamp_len);
    true
}

impl Layout {
    /// Appends a plain row of another SSTable with the same columns. Unlike in [`RowFrame`], all lengths are
    /// known.
    #[inline]
    pub fn put_plain_row(&self, out: &mut Vec<u8>, row: &PlainRow<'_>, previous_size: u64) {
        // Flags depend only on the row.
        match row.bytes.first_chunk::<SHORT_HEAD>() {
            // A copy of constant length compiles to a few instructions.
            Some(first) if row.clustering_end <= SHORT_HEAD => {
                let begin = out.len();
                out.extend_from_slice(first);
                out.truncate(begin + row.clustering_end);
            }
            _ => out.extend_from_slice(&row.bytes[..row.clustering_end]),
        }
        let columns = row.columns();
        let timestamp = row.liveness.timestamp.wrapping_sub(self.min_timestamp) as u64;
        if row.liveness.is_expiring()
            || !put_short_start(out, previous_size, timestamp, columns.len())
        {
            self.put_long_start(out, &row.liveness, previous_size, columns.len());
        }
        // As above: calls for short copies, each of a different length, would take as long as all the rest.
        match row.bytes.get(row.columns_start..) {
            Some(rest) if columns.len() <= SHORT_COLUMNS && rest.len() >= SHORT_COLUMNS => {
                let end = out.len() + columns.len();
                out.extend_from_slice(&rest[..SHORT_COLUMNS]);
                out.truncate(end);
            }
            _ => out.extend_from_slice(columns),
        }
    }

    /// Appends the bytes between the clustering and the columns of a row.
    fn put_long_start(
        &self,
        out: &mut Vec<u8>,
        liveness: &Liveness,
        previous_size: u64,
        columns_len: usize,
    ) {
        let times = self.liveness_deltas(liveness);
        let times_len: usize = times.iter().flatten().map(|t| vint::unsigned_len(*t)).sum();
        let size = vint::unsigned_len(previous_size) + times_len + columns_len;
        vint::write_unsigned(out, size as u64);
        vint::write_unsigned(out, previous_size);
        for delta in times.into_iter().flatten() {
            vint::write_unsigned(out, delta);
        }
    }

    /// Deltas of a liveness at the start of a body: timestamp, TTL and local expiration time.
    #[inline]
    fn liveness_deltas(&self, liveness: &Liveness) -> [Option<u64>; 3] {
        let timestamp = liveness.timestamp.wrapping_sub(self.min_timestamp) as u64;
        if !liveness.is_expiring() {
            return [Some(timestamp), None, None];
        }
        let ttl = self.ttl_delta(liveness.ttl);
        let seconds = self.seconds_delta(liveness.local_expiration_time);
        [Some(timestamp), Some(ttl), Some(seconds)]
    }

    /// Appends a timestamp as a wrapping delta.
    #[inline]
    pub fn put_timestamp(&self, out: &mut Vec<u8>, timestamp: i64) {
        vint::write_unsigned(out, timestamp.wrapping_sub(self.min_timestamp) as u64);
    }

    /// Local deletion time as a delta, truncated to 32 bits and sign-extended.
    #[inline(always)]
    fn seconds_delta(&self, seconds: i64) -> u64 {
        i64::from(seconds.wrapping_sub(self.min_local_deletion_time) as i32) as u64
    }

    /// TTL as a delta.
    #[inline(always)]
    fn ttl_delta(&self, ttl: i32) -> u64 {
        i64::from(ttl.wrapping_sub(self.min_ttl)) as u64
    }

    /// Appends a local deletion time as a delta.
    #[inline]
    pub fn put_local_deletion_time(&self, out: &mut Vec<u8>, seconds: i64) {
        vint::write_unsigned(out, self.seconds_delta(seconds));
    }

    /// Appends a TTL as a delta.
    #[inline]
    pub fn put_ttl(&self, out: &mut Vec<u8>, ttl: i32) {
        vint::write_unsigned(out, self.ttl_delta(ttl));
    }

    /// Appends the deletion time of a row, marker or complex column.
    #[inline]
    pub fn put_deletion_time(&self, out: &mut Vec<u8>, deletion: &DeletionTime) {
        self.put_timestamp(out, deletion.marked_for_delete_at);
        self.put_local_deletion_time(out, deletion.local_deletion_time);
    }

    /// Appends liveness and row deletion, the start of a body.
    #[inline]
    pub fn put_body_start(&self, out: &mut Vec<u8>, shape: &RowShape) {
        if !shape.liveness.is_empty() {
            self.put_timestamp(out, shape.liveness.timestamp);
        }
        if shape.liveness.is_expiring() {
            self.put_ttl(out, shape.liveness.ttl);
            self.put_local_deletion_time(out, shape.liveness.local_expiration_time);
        }
        if !shape.deletion.is_live() {
            self.put_deletion_time(out, &shape.deletion);
        }
    }

    /// Appends the deletion, if the row has any complex deletion, and the cell count of a complex column.
    #[inline]
    pub fn put_complex_header(
        &self,
        out: &mut Vec<u8>,
        has_complex_deletion: bool,
        deletion: &DeletionTime,
        cell_count: usize,
    ) {
        if has_complex_deletion {
            self.put_deletion_time(out, deletion);
        }
        out.put_uvint(cell_count as u64);
    }

    /// Appends one cell of `column`. `liveness` is that of the row as it is written; `row` contains the
    /// cell's path and value.
    ///
    /// Flags, times and short values are assembled in place with copies of constant length: each compiles to
    /// a few instructions, whereas a copy of variable length is a call.
    #[inline(always)]
    pub fn put_cell(
        &self,
        out: &mut Vec<u8>,
        column: &ColumnLayout,
        liveness: &Liveness,
        cell: &Cell,
        row: &[u8],
    ) {
        let begin = out.len();
        out.extend_from_slice(&[0; CELL_HEAD]);
        let Some(head) = out[begin..].first_chunk_mut::<CELL_HEAD>() else {
            return;
        };
        let mut at = self.put_cell_times(head, liveness, cell);
        let path_len = cell.path.len();
        let value_len = cell.value.len();
        if column.is_complex {
            at = put_uvint_at(head, at, path_len as u64);
            out.truncate(begin + at);
            put_span(out, cell.path, row);
            if value_len > 0 {
                vint::write_unsigned(out, value_len as u64);
            }
        } else {
            if value_len > 0 && column.fixed_len.is_none() {
                at = put_uvint_at(head, at, value_len as u64);
            }
            out.truncate(begin + at);
        }
        put_span(out, cell.value, row);
    }

    /// Writes the flags of a cell, and those of its times that differ from the row's. Returns their end.
    #[inline(always)]
    fn put_cell_times(
        &self,
        head: &mut [u8; CELL_HEAD],
        liveness: &Liveness,
        cell: &Cell,
    ) -> usize {
        let mut flag_byte = 0;
        let mut at = 1;
        if !liveness.is_empty() && cell.timestamp == liveness.timestamp {
            flag_byte |= flags::CELL_USE_ROW_TIMESTAMP;
        } else {
            let delta = cell.timestamp.wrapping_sub(self.min_timestamp) as u64;
            at = put_uvint_at(head, at, delta);
        }
        if cell.value.is_empty() {
            flag_byte |= flags::CELL_HAS_EMPTY_VALUE;
        }
        if cell.local_deletion_time != NO_DELETION_TIME || cell.is_expiring() {
            if !cell.is_expiring() {
                flag_byte |= flags::CELL_IS_DELETED;
                at = put_uvint_at(head, at, self.seconds_delta(cell.local_deletion_time));
            } else {
                flag_byte |= flags::CELL_IS_EXPIRING;
                if liveness.is_expiring()
                    && cell.ttl == liveness.ttl
                    && cell.local_deletion_time == liveness.local_expiration_time
                {
                    flag_byte |= flags::CELL_USE_ROW_TTL;
                } else {
                    at = put_uvint_at(head, at, self.seconds_delta(cell.local_deletion_time));
                    at = put_uvint_at(head, at, self.ttl_delta(cell.ttl));
                }
            }
        }
        head[0] = flag_byte;
        at
    }

    /// Appends an empty static row, for a table that has static columns.
    pub fn put_empty_static_row(&self, out: &mut Vec<u8>) {
        let shape = RowShape {
            is_static: true,
            liveness: Liveness::EMPTY,
            deletion: DeletionTime::LIVE,
            is_shadowable: false,
            has_complex_deletion: false,
            has_all_columns: false,
        };
        let frame = RowFrame::begin(out, &shape, &[], 0, 2);
        write_subset(out, self.static_columns.len(), &ColumnSet::default());
        let _ = frame.end(out);
    }

    /// Appends a range tombstone marker. `bound` is its serialized `u8 kind | u16 count | values`.
    pub fn put_marker(
        &self,
        out: &mut Vec<u8>,
        kind: Kind,
        bound: &[u8],
        close: &DeletionTime,
        open: &DeletionTime,
        previous_size: u64,
    ) {
        out.push(flags::IS_MARKER);
        out.extend_from_slice(bound);
        let mut size = vint::unsigned_len(previous_size) as u64;
        if kind.is_close() {
            size += self.predicted_deletion_len(close);
        }
        if kind.is_open() {
            size += self.predicted_deletion_len(open);
        }
        out.put_uvint(size);
        out.put_uvint(previous_size);
        if kind.is_close() {
            self.put_deletion_time(out, close);
        }
        if kind.is_open() {
            self.put_deletion_time(out, open);
        }
    }

    /// Length that Cassandra predicts, from the untruncated difference of seconds
    /// (`SerializationHeader.localDeletionTimeSerializedSize`): it may differ from the length that Cassandra
    /// then writes.
    fn predicted_deletion_len(&self, deletion: &DeletionTime) -> u64 {
        let timestamp = deletion
            .marked_for_delete_at
            .wrapping_sub(self.min_timestamp);
        let seconds = deletion
            .local_deletion_time
            .wrapping_sub(self.min_local_deletion_time);
        (vint::unsigned_len(timestamp as u64) + vint::unsigned_len(seconds as u64)) as u64
    }
}
