//! Naive encoder of a table in memory as Data.db, following section 3 of the format sheet.
//!
//! Its canonical form is what a merge must write to the byte. With choices it deviates in ways that readers
//! must accept: redundant times, bitmaps and deletions, vints longer than necessary, and wrong sizes of
//! previous unfiltereds.

use compactor_sstable::Version;
use compactor_sstable::data::clustering::Kind;
use compactor_sstable::data::deletion_time::{DeletionTime, NO_DELETION_TIME};

use super::choices::Choices;
use super::table::{
    Base, Cell, ColumnType, Header, Partition, Row, Schema, Table, Unfiltered, Values,
};

/// A file, and the positions in it.
#[derive(Debug, Default)]
pub struct Encoded {
    pub bytes: Vec<u8>,
    pub partitions: Vec<EncodedPartition>,
}

#[derive(Debug)]
pub struct EncodedPartition {
    pub start: usize,
    /// Position after key, deletion and static row.
    pub header_end: usize,
    /// Start and end of each unfiltered.
    pub unfiltereds: Vec<(usize, usize)>,
    /// Position after the end byte.
    pub end: usize,
}

/// Encodes `table`; `liberties` are choices of deviations from the canonical form.
pub fn encode(
    schema: &Schema,
    header: &Header,
    table: &Table,
    liberties: Option<&mut Choices>,
) -> Encoded {
    let mut encoder = Encoder {
        schema,
        header,
        liberties,
    };
    let mut encoded = Encoded::default();
    for ((_, key), partition) in table {
        encoder.partition(&mut encoded, key, partition);
    }
    encoded
}

/// Clustering values of a row: the state of up to 32 in one vint, then the present ones.
pub fn serialized_clustering(schema: &Schema, values: &Values) -> Vec<u8> {
    let mut out = Vec::new();
    for (block_index, block) in values.chunks(32).enumerate() {
        let mut states = 0;
        for (index, value) in block.iter().enumerate() {
            let state = match value.as_deref() {
                None => 2,
                Some([]) => 1,
                Some(_) => 0,
            };
            states |= state << (2 * index);
        }
        put_uvint(&mut out, states);
        for (index, value) in block.iter().enumerate() {
            if let Some(bytes) = value.as_deref().filter(|bytes| !bytes.is_empty()) {
                put_value(
                    &mut out,
                    schema.clustering[32 * block_index + index].base,
                    bytes,
                );
            }
        }
    }
    out
}

/// Appends a vint of minimum length.
pub fn put_uvint(out: &mut Vec<u8>, value: u64) {
    put_uvint_of(out, value, uvint_len(value) - 1);
}

pub fn uvint_len(value: u64) -> usize {
    (1..9).find(|len| value < 1 << (7 * len)).unwrap_or(9)
}

/// Appends a vint with `extra` bytes after the first.
fn put_uvint_of(out: &mut Vec<u8>, value: u64, extra: usize) {
    let ones = if extra == 0 { 0 } else { 0xffu8 << (8 - extra) };
    let bytes = value.to_be_bytes();
    let high = if extra < 8 { bytes[7 - extra] } else { 0 };
    out.push(ones | high);
    out.extend_from_slice(&bytes[8 - extra..]);
}

fn put_value(out: &mut Vec<u8>, base: Base, value: &[u8]) {
    match base {
        Base::Int | Base::Long | Base::Boolean => {}
        Base::Text | Base::Blob | Base::Varint | Base::Decimal | Base::Counter => {
            put_uvint(out, value.len() as u64);
        }
    }
    out.extend_from_slice(value);
}

/// Appends a deletion as partitions and promoted indexes have it.
pub fn put_partition_deletion(out: &mut Vec<u8>, version: Version, deletion: DeletionTime) {
    let DeletionTime {
        marked_for_delete_at,
        local_deletion_time,
    } = deletion;
    if version == Version::Nb {
        let local = match local_deletion_time {
            NO_DELETION_TIME => i32::MAX,
            seconds => seconds.min(2_147_483_646) as i32,
        };
        out.extend_from_slice(&local.to_be_bytes());
        out.extend_from_slice(&marked_for_delete_at.to_be_bytes());
    } else if deletion.is_live() {
        out.push(0x80);
    } else {
        out.extend_from_slice(&marked_for_delete_at.to_be_bytes());
        out.extend_from_slice(&(local_deletion_time as u32).to_be_bytes());
    }
}

struct Encoder<'a, 'c> {
    schema: &'a Schema,
    header: &'a Header,
    liberties: Option<&'c mut Choices>,
}

impl Encoder<'_, '_> {
    /// Sometimes true, but never in the canonical form.
    fn takes_liberty(&mut self) -> bool {
        self.liberties
            .as_mut()
            .is_some_and(|choices| choices.chance(15))
    }

    fn put_vint(&mut self, out: &mut Vec<u8>, value: u64) {
        let mut extra = uvint_len(value) - 1;
        if self.takes_liberty() {
            extra = (extra + 1).min(8);
        }
        put_uvint_of(out, value, extra);
    }

    fn put_timestamp(&mut self, out: &mut Vec<u8>, timestamp: i64) {
        let delta = timestamp.wrapping_sub(self.header.min_timestamp);
        self.put_vint(out, delta as u64);
    }

    fn put_seconds(&mut self, out: &mut Vec<u8>, seconds: i64) {
        let delta = seconds.wrapping_sub(self.header.min_local_deletion_time) as i32;
        self.put_vint(out, i64::from(delta) as u64);
    }

    fn put_ttl(&mut self, out: &mut Vec<u8>, ttl: i32) {
        let delta = ttl.wrapping_sub(self.header.min_ttl);
        self.put_vint(out, i64::from(delta) as u64);
    }

    fn put_deletion(&mut self, out: &mut Vec<u8>, deletion: DeletionTime) {
        self.put_timestamp(out, deletion.marked_for_delete_at);
        self.put_seconds(out, deletion.local_deletion_time);
    }

    fn partition(&mut self, encoded: &mut Encoded, key: &[u8], partition: &Partition) {
        let start = encoded.bytes.len();
        let out = &mut encoded.bytes;
        out.extend_from_slice(&(key.len() as u16).to_be_bytes());
        out.extend_from_slice(key);
        put_partition_deletion(out, self.header.version, partition.deletion);
        if !self.header.of_kind(self.schema, true).is_empty() {
            let row = self.row(&partition.static_row, None, 0);
            out.extend_from_slice(&row);
        }
        let header_end = out.len();
        let mut unfiltereds = Vec::new();
        let mut previous = start;
        for unfiltered in &partition.unfiltereds {
            let begin = encoded.bytes.len();
            let mut previous_size = (begin - previous) as u64;
            if self.takes_liberty() {
                previous_size = 0;
            }
            let bytes = match unfiltered {
                Unfiltered::Row { clustering, row } => {
                    self.row(row, Some(clustering), previous_size)
                }
                Unfiltered::Marker {
                    kind,
                    bound,
                    close,
                    open,
                } => self.marker(*kind, bound, *close, *open, previous_size),
            };
            encoded.bytes.extend_from_slice(&bytes);
            unfiltereds.push((begin, encoded.bytes.len()));
            previous = begin;
        }
        encoded.bytes.push(0x01);
        let end = encoded.bytes.len();
        encoded.partitions.push(EncodedPartition {
            start,
            header_end,
            unfiltereds,
            end,
        });
    }

    fn marker(
        &mut self,
        kind: Kind,
        bound: &Values,
        close: DeletionTime,
        open: DeletionTime,
        previous_size: u64,
    ) -> Vec<u8> {
        let mut out = vec![0x02, kind as u8];
        out.extend_from_slice(&(bound.len() as u16).to_be_bytes());
        out.extend_from_slice(&serialized_clustering(self.schema, bound));
        let deletions: &[DeletionTime] = match kind {
            Kind::InclStartBound | Kind::ExclStartBound => &[open],
            Kind::InclEndBound | Kind::ExclEndBound => &[close],
            _ => &[close, open],
        };
        let mut body = Vec::new();
        self.put_vint(&mut body, previous_size);
        // Cassandra predicts a greater length than it writes for seconds far in the future.
        let mut size = body.len();
        for deletion in deletions {
            let DeletionTime {
                marked_for_delete_at,
                local_deletion_time,
            } = *deletion;
            size += uvint_len(marked_for_delete_at.wrapping_sub(self.header.min_timestamp) as u64);
            let seconds = local_deletion_time.wrapping_sub(self.header.min_local_deletion_time);
            size += uvint_len(seconds as u64);
            self.put_deletion(&mut body, *deletion);
        }
        self.put_vint(&mut out, size as u64);
        out.extend_from_slice(&body);
        out
    }

    /// A row; static if it has no clustering.
    fn row(&mut self, row: &Row, clustering: Option<&Values>, previous_size: u64) -> Vec<u8> {
        let header_columns = self.header.of_kind(self.schema, clustering.is_none());
        let has_all = row.columns.len() == header_columns.len();
        let has_all = has_all && !self.takes_liberty();
        let has_complex_deletion = row.columns.values().any(|data| !data.deletion.is_live());
        let has_complex_deletion = has_complex_deletion || self.takes_liberty();
        let mut flags = 0;
        let mut extended = u8::from(clustering.is_none());
        if !row.liveness.is_empty() {
            flags |= 0x04;
        }
        if row.liveness.ttl != 0 {
            flags |= 0x08;
        }
        if !row.deletion.is_live() {
            flags |= 0x10;
            extended |= if row.is_shadowable { 0x02 } else { 0 };
        }
        if has_all {
            flags |= 0x20;
        }
        if has_complex_deletion {
            flags |= 0x40;
        }
        let mut out = Vec::new();
        if extended != 0 || self.takes_liberty() {
            out.extend_from_slice(&[flags | 0x80, extended]);
        } else {
            out.push(flags);
        }
        if let Some(values) = clustering {
            out.extend_from_slice(&serialized_clustering(self.schema, values));
        }
        let mut body = Vec::new();
        self.put_vint(&mut body, previous_size);
        if !row.liveness.is_empty() {
            self.put_timestamp(&mut body, row.liveness.timestamp);
        }
        if row.liveness.ttl != 0 {
            self.put_ttl(&mut body, row.liveness.ttl);
            self.put_seconds(&mut body, row.liveness.local_expiration_time);
        }
        if !row.deletion.is_live() {
            self.put_deletion(&mut body, row.deletion);
        }
        if !has_all {
            self.put_subset(&mut body, row, &header_columns);
        }
        for (index, data) in &row.columns {
            let column_type = self.schema.columns[*index].column_type;
            if let ColumnType::Simple(base) = column_type {
                self.put_cell(&mut body, row, &data.cells[0], Some(base));
                continue;
            }
            if has_complex_deletion {
                self.put_deletion(&mut body, data.deletion);
            }
            self.put_vint(&mut body, data.cells.len() as u64);
            for cell in &data.cells {
                self.put_cell(&mut body, row, cell, None);
            }
        }
        self.put_vint(&mut out, body.len() as u64);
        out.extend_from_slice(&body);
        out
    }

    fn put_subset(&mut self, out: &mut Vec<u8>, row: &Row, header_columns: &[usize]) {
        let is_present = |column: &usize| row.columns.contains_key(column);
        let count = header_columns.len();
        let (mut present, mut missing) = (Vec::new(), Vec::new());
        for (position, column) in header_columns.iter().enumerate() {
            if is_present(column) {
                &mut present
            } else {
                &mut missing
            }
            .push(position as u64);
        }
        if count < 64 {
            let bitmap = missing
                .iter()
                .fold(0, |bitmap, position| bitmap | (1 << position));
            return self.put_vint(out, bitmap);
        }
        self.put_vint(out, missing.len() as u64);
        if missing.is_empty() {
            return;
        }
        let listed = if present.len() < count / 2 {
            present
        } else {
            missing
        };
        for position in listed {
            self.put_vint(out, position);
        }
    }

    /// A cell; `base` is the type of a simple column, whose values may have a fixed length.
    fn put_cell(&mut self, out: &mut Vec<u8>, row: &Row, cell: &Cell, base: Option<Base>) {
        let is_tombstone = cell.local_deletion_time != NO_DELETION_TIME && cell.ttl == 0;
        let has_row_timestamp = !row.liveness.is_empty()
            && cell.timestamp == row.liveness.timestamp
            && !self.takes_liberty();
        let has_row_ttl = cell.ttl != 0
            && cell.ttl == row.liveness.ttl
            && cell.local_deletion_time == row.liveness.local_expiration_time
            && !self.takes_liberty();
        let is_fixed = matches!(base, Some(Base::Int | Base::Long | Base::Boolean));
        let is_empty = cell.value.is_empty() && (is_fixed || !self.takes_liberty());
        let mut flags = 0;
        for (bit, is_set) in [
            (0x01, is_tombstone),
            (0x02, cell.ttl != 0),
            (0x04, is_empty),
            (0x08, has_row_timestamp),
            (0x10, has_row_ttl),
        ] {
            flags |= if is_set { bit } else { 0 };
        }
        out.push(flags);
        if !has_row_timestamp {
            self.put_timestamp(out, cell.timestamp);
        }
        if (is_tombstone || cell.ttl != 0) && !has_row_ttl {
            self.put_seconds(out, cell.local_deletion_time);
        }
        if cell.ttl != 0 && !has_row_ttl {
            self.put_ttl(out, cell.ttl);
        }
        if base.is_none() {
            self.put_vint(out, cell.path.len() as u64);
            out.extend_from_slice(&cell.path);
        }
        if !is_empty {
            if !is_fixed {
                self.put_vint(out, cell.value.len() as u64);
            }
            out.extend_from_slice(&cell.value);
        }
    }
}
