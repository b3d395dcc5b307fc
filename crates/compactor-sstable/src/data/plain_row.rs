//! Rows as INSERT leaves them, whose columns can be copied without being serialized again.
//!
//! Times of a row are deltas to the encoding stats of its own SSTable, so in general rows cannot be copied.
//! But if every cell has the timestamp of the row's liveness, and its TTL or none, no cell contains a delta:
//! the bytes after the liveness are the same in every SSTable with these columns.

use crate::data::cell::{Liveness, NO_TIMESTAMP, NO_TTL, decode_local_deletion_time};
use crate::data::columns::LIST_FORM_FROM;
use crate::data::deletion_time::NO_DELETION_TIME;
use crate::data::deltas;
use crate::data::flags;
use crate::data::layout::{Layout, PlainValue};
use crate::data::parse::MAX_VALUE_LEN;
use crate::data::unfiltered::RowHead;
use crate::vint;

/// Flags of a cell with the timestamp of its row that does not expire.
const LIVE: u8 = flags::CELL_USE_ROW_TIMESTAMP;
/// Flags of a cell with the timestamp and the TTL of its row.
const EXPIRING: u8 =
    flags::CELL_USE_ROW_TIMESTAMP | flags::CELL_USE_ROW_TTL | flags::CELL_IS_EXPIRING;

/// A row, other than the static one, without any deletion, whose cells are all simple and have the times of
/// its liveness.
#[derive(Clone, Copy, Debug)]
pub struct PlainRow<'a> {
    /// Bytes in its SSTable from the row's first byte on; may be longer than the row.
    pub bytes: &'a [u8],
    /// Length of the row.
    pub len: usize,
    /// End of its clustering, which begins after the flags.
    pub clustering_end: usize,
    /// Start of the bytes after the liveness: the columns subset, unless all are present, and the cells.
    pub columns_start: usize,
    /// Primary-key liveness, which is not empty.
    pub liveness: Liveness,
    /// Number of cells that do not expire.
    pub live_cells: u32,
    /// Number of cells that expire with the liveness.
    pub expiring_cells: u32,
}

impl<'a> PlainRow<'a> {
    /// Whether a plain row may begin with this flag byte.
    #[inline(always)]
    fn may_have_flags(flag_byte: u8) -> bool {
        const PLAIN: u8 = flags::HAS_TIMESTAMP | flags::HAS_TTL | flags::HAS_ALL_COLUMNS;
        flag_byte & !PLAIN == 0 && flag_byte & flags::HAS_TIMESTAMP != 0
    }

    /// Reads the row at the start of `from_row`. `None` if it is not plain, not in Cassandra's canonical
    /// form, or damaged: then [`RowRef`](crate::data::row::RowRef) reads it or reports the damage.
    #[inline(always)]
    pub fn read(from_row: &'a [u8], head: &RowHead, layout: &Layout) -> Option<PlainRow<'a>> {
        if !PlainRow::may_have_flags(head.flags) {
            return None;
        }
        let bytes = from_row.get(..head.len)?;
        let mut pos = head.body_start;
        let timestamp = deltas::timestamp(bytes, &mut pos, layout).ok()?;
        if timestamp == NO_TIMESTAMP {
            return None;
        }
        let liveness = if head.flags & flags::HAS_TTL == 0 {
            Liveness::new(timestamp, NO_TTL, NO_DELETION_TIME)
        } else {
            expiring_liveness(bytes, &mut pos, timestamp, layout)?
        };
        let start = pos;
        let columns = &layout.regular_columns[..];
        let mut cells = CellCounts::default();
        let has_all_columns = head.has_all_columns();
        if has_all_columns {
            for column in columns {
                cells.skip_cell(bytes, &mut pos, column.plain_value)?;
            }
        } else {
            let mut present = canonical_subset(bytes, &mut pos, columns.len())?;
            while present != 0 {
                let column = columns.get(present.trailing_zeros() as usize)?;
                cells.skip_cell(bytes, &mut pos, column.plain_value)?;
                present &= present - 1;
            }
        }
        // Also if a value extends beyond the end.
        if pos != bytes.len() || (cells.expiring > 0 && !liveness.is_expiring()) {
            return None;
        }
        if !layout.stated.may_live() && (cells.live > 0 || !liveness.is_expiring()) {
            return None;
        }
        Some(PlainRow {
            bytes: from_row,
            len: head.len,
            clustering_end: head.clustering_end,
            columns_start: start,
            liveness,
            live_cells: cells.live,
            expiring_cells: cells.expiring,
        })
    }

    /// Whether every regular column of the header is present.
    #[inline(always)]
    pub fn has_all_columns(&self) -> bool {
        self.bytes
            .first()
            .is_some_and(|flags| flags & flags::HAS_ALL_COLUMNS != 0)
    }

    /// The serialized clustering.
    #[inline(always)]
    pub fn clustering(&self) -> &'a [u8] {
        self.bytes.get(1..self.clustering_end).unwrap_or_default()
    }

    /// All bytes after the liveness.
    #[inline(always)]
    pub fn columns(&self) -> &'a [u8] {
        self.bytes
            .get(self.columns_start..self.len)
            .unwrap_or_default()
    }

    /// Whether it has the same times and columns as a row of another SSTable.
    #[inline]
    pub fn has_same_content(&self, other: &PlainRow<'_>) -> bool {
        self.liveness == other.liveness
            && self.has_all_columns() == other.has_all_columns()
            && self.columns() == other.columns()
    }
}

#[inline]
fn expiring_liveness(
    bytes: &[u8],
    pos: &mut usize,
    timestamp: i64,
    layout: &Layout,
) -> Option<Liveness> {
    let ttl = deltas::ttl(bytes, pos, layout).ok()?;
    let seconds = deltas::seconds(bytes, pos, layout).ok()?;
    let seconds = decode_local_deletion_time(seconds, ttl, layout.version);
    let liveness = Liveness::new(timestamp, ttl, seconds);
    (ttl > 0 && !liveness.is_expired()).then_some(liveness)
}

/// Reads a subset in bitmap form in which some columns are missing; returns a bit set of the present ones.
#[inline]
fn canonical_subset(bytes: &[u8], pos: &mut usize, count: usize) -> Option<u64> {
    // With more columns the list form is used.
    if count >= LIST_FORM_FROM {
        return None;
    }
    let missing = canonical_vint(bytes, pos)?;
    let all = (1u64 << count) - 1;
    (missing != 0 && missing & !all == 0).then_some(all & !missing)
}

/// Reads a vint of minimum length.
#[inline(always)]
fn canonical_vint(bytes: &[u8], pos: &mut usize) -> Option<u64> {
    let first = *bytes.get(*pos)?;
    if first < 0x80 {
        *pos += 1;
        return Some(u64::from(first));
    }
    let start = *pos;
    let value = vint::read_unsigned(bytes, pos)?;
    (*pos - start == vint::unsigned_len(value)).then_some(value)
}

#[derive(Clone, Copy, Debug, Default)]
struct CellCounts {
    live: u32,
    expiring: u32,
}

impl CellCounts {
    /// Advances `pos` past a cell, or past the end of `bytes` if the cell is truncated.
    #[inline(always)]
    fn skip_cell(&mut self, bytes: &[u8], pos: &mut usize, value: PlainValue) -> Option<()> {
        let flag_byte = *bytes.get(*pos)?;
        *pos += 1;
        if flag_byte == LIVE {
            self.live += 1;
        } else {
            match flag_byte & !flags::CELL_HAS_EMPTY_VALUE {
                LIVE => self.live += 1,
                EXPIRING => self.expiring += 1,
                _ => return None,
            }
            if flag_byte & flags::CELL_HAS_EMPTY_VALUE != 0 {
                return (value != PlainValue::None).then_some(());
            }
        }
        match value {
            PlainValue::Fixed(len) => *pos += len as usize,
            PlainValue::WithLength => {
                let len = canonical_vint(bytes, pos)?;
                // An empty value is indicated by a flag.
                if len == 0 || len > MAX_VALUE_LEN as u64 {
                    return None;
                }
                *pos += len as usize;
            }
            PlainValue::None => return None,
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Version;
    use crate::data::columns::write_subset;
    use crate::data::deletion_time::DeletionTime;
    use crate::data::row::{RowContent, RowRef};
    use crate::data::row_samples::{
        SampleCell, SampleColumn, SampleRow, fitted, head, layout, values,
    };
    use crate::types::CqlType;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    struct Draft {
        value: Vec<u8>,
        /// Own times instead of the row's, which a plain row does not have.
        own_timestamp: Option<i64>,
        expires: bool,
        is_missing: bool,
    }

    fn row(layout: &Layout, liveness: Liveness, cells: &[Draft]) -> SampleRow {
        let present = cells.iter().enumerate().filter(|(_, c)| !c.is_missing);
        let columns = present.map(|(index, draft)| {
            let expires = draft.expires && liveness.is_expiring();
            let cell = SampleCell {
                timestamp: draft.own_timestamp.unwrap_or(liveness.timestamp),
                local_deletion_time: if expires {
                    liveness.local_expiration_time
                } else {
                    NO_DELETION_TIME
                },
                ttl: if expires { liveness.ttl } else { NO_TTL },
                path: Vec::new(),
                value: fitted(&layout.regular_columns[index], draft.value.clone()),
            };
            SampleColumn {
                index,
                deletion: DeletionTime::LIVE,
                cells: vec![cell],
            }
        });
        SampleRow {
            liveness,
            deletion: DeletionTime::LIVE,
            is_shadowable: false,
            columns: columns.collect(),
        }
    }

    fn draft() -> impl Strategy<Value = Draft> {
        let own = prop_oneof![9 => Just(None), 1 => (1000..1009i64).prop_map(Some)];
        (values(), own, any::<bool>(), prop::bool::weighted(0.1)).prop_map(
            |(value, own_timestamp, expires, is_missing)| Draft {
                value,
                own_timestamp,
                expires,
                is_missing,
            },
        )
    }

    fn column_type() -> impl Strategy<Value = CqlType> {
        prop_oneof![
            Just(CqlType::Int32),
            Just(CqlType::Utf8),
            Just(CqlType::Bytes),
            Just(CqlType::Long),
        ]
    }

    proptest! {
        /// The columns read from a row in one SSTable are the bytes that serializing it for another one
        /// produces.
        #[test]
        fn columns_are_the_same_bytes_in_another_sstable(
            columns in prop::collection::vec((column_type(), draft()), 0..9),
            ttl in prop_oneof![Just(NO_TTL), 1..500i32],
        ) {
            let (types, cells): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
            let (from, to) = (layout(&types, Version::Oa, 10), layout(&types, Version::Oa, 3));
            let liveness = Liveness::new(1000, ttl, 5000);
            let sample = row(&from, liveness, &cells);
            let bytes = sample.write(&from, [0, 0]);
            let plain = PlainRow::read(&bytes, &head(&bytes, &from), &from);
            let present = || cells.iter().filter(|c| !c.is_missing);
            let is_plain = present().all(|c| c.own_timestamp.is_none_or(|t| t == 1000));
            prop_assert_eq!(plain.is_some(), is_plain);
            if let Some(plain) = plain {
                let expiring = present().filter(|c| c.expires && ttl != NO_TTL).count();
                prop_assert_eq!(plain.liveness, liveness);
                prop_assert_eq!(plain.expiring_cells as usize, expiring);
                prop_assert_eq!(plain.live_cells as usize, present().count() - expiring);
                let again = sample.write(&to, [0, 0]);
                prop_assert!(again.ends_with(plain.columns()));
                let body_start = head(&again, &to).body_start;
                let times = again.len() - body_start - plain.columns().len();
                let most = if ttl == NO_TTL { 9 } else { 27 };
                prop_assert!(times <= most);
            }
        }

        /// For arbitrary bytes: a row that is read as a plain one is read the same by the general reader, and
        /// serialized to the same bytes.
        #[test]
        fn never_takes_more_than_the_general_reader(
            columns in prop::collection::vec((column_type(), draft()), 1..6),
            ttl in prop_oneof![Just(NO_TTL), 1..500i32],
            at: prop::sample::Index,
            byte: u8,
            flags: Option<u8>,
        ) {
            let (types, cells): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
            let layout = layout(&types, Version::Oa, 10);
            let mut bytes = row(&layout, Liveness::new(1000, ttl, 5000), &cells).write(&layout, [0, 0]);
            let mut head = head(&bytes, &layout);
            let at = head.body_start + at.index(bytes.len() - head.body_start);
            bytes[at] = byte;
            head.flags = flags.unwrap_or(head.flags);
            if let Some(plain) = PlainRow::read(&bytes, &head, &layout) {
                let general = RowRef { bytes: &bytes, head: &head, layout: &layout };
                let read: RowContent = general.read().unwrap();
                prop_assert_eq!(read.start.liveness, plain.liveness);
                prop_assert!(read.start.deletion.is_live());
                let mut written = Vec::new();
                let count = layout.regular_columns.len();
                let present = read.columns().map(|column| column.index).collect();
                prop_assert_eq!(plain.has_all_columns(), read.columns().count() == count);
                if !plain.has_all_columns() {
                    write_subset(&mut written, count, &present);
                }
                let mut cells = 0;
                for column in read.columns() {
                    let [cell] = column.cells else {
                        return Err(TestCaseError::fail("not one cell"));
                    };
                    let of_layout = &layout.regular_columns[column.index];
                    layout.put_cell(&mut written, of_layout, &plain.liveness, cell, &bytes);
                    prop_assert!(!cell.is_tombstone());
                    cells += 1;
                }
                prop_assert_eq!(cells, plain.live_cells + plain.expiring_cells);
                prop_assert_eq!(&written[..], plain.columns());
            }
        }
    }
}
