//! One partition as a line of JSON, written while the partition is read.

use std::borrow::Cow;
use std::io::Write;

use compactor_engine::merge::Observer;
use compactor_engine::read::{BlockSource, Cursor, RowRef};
use compactor_sstable::Error as FormatError;
use compactor_sstable::data::cell::{Cell, Liveness};
use compactor_sstable::data::clustering::{Kind, Prefix};
use compactor_sstable::data::counter::Context;
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::data::layout::ColumnLayout;
use compactor_sstable::data::unfiltered::MarkerHead;
use compactor_sstable::statistics::SerializationHeader;
use compactor_sstable::types::CqlType;
use compactor_sstable::types::identifier::maybe_quote;
use compactor_sstable::types::json::{UNSUPPORTED, push_quoted};
use compactor_sstable::types::temporal::{date_string_of_micros, date_string_of_seconds};

use super::DumpOptions;
use super::row_deletion::has_deletion;
use crate::cancellation::check_cancelled;
use crate::{Error, Result};

/// Number of buffered bytes at which they are written.
const FLUSH_LEN: usize = 64 << 10;

/// Formats partitions as lines.
pub(super) struct PartitionJson<'a> {
    key_type: CqlType,
    clustering_types: Vec<CqlType>,
    static_names: Vec<String>,
    regular_names: Vec<String>,
    table_kind: &'static str,
    options: &'a DumpOptions,
    /// Output not written yet.
    line: String,
}

impl<'a> PartitionJson<'a> {
    pub(super) fn new(
        header: &SerializationHeader,
        table_kind: &'static str,
        options: &'a DumpOptions,
    ) -> PartitionJson<'a> {
        let names = |columns: &[compactor_sstable::statistics::HeaderColumn]| {
            let names = columns.iter().map(|c| quoted_name(&c.name));
            names.collect()
        };
        PartitionJson {
            key_type: header.key_type.cql_type.clone(),
            clustering_types: header
                .clustering_types
                .iter()
                .map(|t| t.cql_type.clone())
                .collect(),
            static_names: names(&header.static_columns),
            regular_names: names(&header.regular_columns),
            table_kind,
            options,
            line: String::new(),
        }
    }

    /// The key as one string, by which options name it.
    pub(super) fn key_text(&self, key: &[u8]) -> String {
        self.key_type.describe(key)
    }

    /// Writes the partition that the cursor is at the start of, and leaves the cursor at its end.
    /// False if the options exclude all of it.
    pub(super) fn write_partition<S: BlockSource>(
        &mut self,
        cursor: &mut Cursor<S>,
        observer: &dyn Observer,
        out: &mut dyn Write,
    ) -> Result<bool> {
        let start = self.line.len();
        let static_len = cursor.static_row().map_or(0, |row| row.head.len);
        // Cassandra's reader has already read the static row when it asks for the partition's position.
        let mut position = cursor.position() + static_len as u64;
        let deletion = cursor.partition_deletion();
        self.line.push_str("{\"table kind\":\"");
        self.line.push_str(self.table_kind);
        self.line.push_str("\",\"partition\":{\"key\":");
        self.push_key(cursor.key());
        self.push_position(position);
        if !deletion.is_live() {
            self.line.push(',');
            self.push_deletion(deletion);
        }
        self.line.push_str("},\"rows\":[");
        let mut is_wanted = !self.options.tombstones_only || !deletion.is_live();
        let mut is_first = true;
        if let Some(row) = cursor.static_row() {
            let at_row = |error| cursor.locate_error(error);
            is_wanted |= self.takes(&row).map_err(at_row)?
                && self
                    .write_row(&row, None, position, &mut is_first)
                    .map_err(at_row)?;
        }
        loop {
            check_cancelled(observer)?;
            cursor.next_unfiltered()?;
            let Some(clustering) = cursor.clustering() else {
                break;
            };
            let at_row = |error| cursor.locate_error(error);
            if let Some(row) = cursor.row() {
                let end = cursor.position() + row.head.len as u64;
                if !self.takes(&row).map_err(at_row)? {
                    position = end;
                    continue;
                }
                if !self
                    .write_row(&row, Some(clustering), position, &mut is_first)
                    .map_err(at_row)?
                {
                    // Cassandra's reader skips it, and the next row gets this position.
                    continue;
                }
                position = end;
            } else if let Some(marker) = cursor.marker() {
                self.separate(&mut is_first);
                self.push_marker(&marker, clustering);
                position = cursor.position() + marker.len as u64;
            }
            is_wanted = true;
            if self.line.len() >= FLUSH_LEN {
                self.flush(out)?;
            }
        }
        if is_wanted {
            self.line.push_str("]}\n");
            if self.line.len() >= FLUSH_LEN {
                self.flush(out)?;
            }
        } else {
            // Nothing of it can have been flushed: that happens only after selected content.
            self.line.truncate(start);
        }
        Ok(is_wanted)
    }

    /// Writes a line with nothing but the key.
    pub(super) fn write_key_line(&mut self, key: &[u8], out: &mut dyn Write) -> Result<()> {
        self.push_key(key);
        self.line.push('\n');
        if self.line.len() >= FLUSH_LEN {
            self.flush(out)
        } else {
            Ok(())
        }
    }

    /// Writes the collected output.
    pub(super) fn flush(&mut self, out: &mut dyn Write) -> Result<()> {
        out.write_all(self.line.as_bytes())
            .map_err(Error::file("write", "dump output"))?;
        self.line.clear();
        Ok(())
    }

    fn takes(&self, row: &RowRef<'_>) -> Result<bool, FormatError> {
        Ok(!self.options.tombstones_only || has_deletion(&row.read()?, self.options.now_s))
    }

    /// Writes a row; false, and nothing written, if it is empty. Cassandra's reader skips rows of
    /// which nothing is left without what their own deletions cover.
    fn write_row(
        &mut self,
        row: &RowRef<'_>,
        clustering: Option<Prefix<'_>>,
        position: u64,
        is_first: &mut bool,
    ) -> Result<bool, FormatError> {
        let start = self.line.len();
        let was_first = *is_first;
        self.separate(is_first);
        let kind = if clustering.is_some() {
            "row"
        } else {
            "static_block"
        };
        self.line.push_str("{\"type\":\"");
        self.line.push_str(kind);
        self.line.push('"');
        self.push_position(position);
        if let Some(clustering) = clustering {
            self.push_clustering(clustering);
        }
        let content = row.read()?;
        let mut is_empty = true;
        let (liveness, deletion) = (content.start.liveness, content.start.deletion);
        if !liveness.is_empty() {
            is_empty = false;
            self.push_liveness(&liveness);
        }
        if !deletion.is_live() {
            is_empty = false;
            self.line.push(',');
            self.push_deletion(deletion);
        }
        self.line.push_str(",\"cells\":[");
        let mut is_first_cell = true;
        let is_static = clustering.is_none();
        for column in content.columns() {
            let place = CellPlace {
                is_static,
                index: column.index,
                column: &row.layout.columns(is_static)[column.index],
                liveness,
            };
            if !column.deletion.is_live() {
                self.separate(&mut is_first_cell);
                self.push_cell_name(&place);
                self.line.push(',');
                self.push_deletion(column.deletion);
                self.line.push('}');
            }
            for cell in column.cells {
                self.separate(&mut is_first_cell);
                self.push_cell(&place, cell, row.bytes);
            }
        }
        self.line.push_str("]}");
        if is_empty && is_first_cell {
            self.line.truncate(start);
            *is_first = was_first;
            return Ok(false);
        }
        Ok(true)
    }

    fn separate(&mut self, is_first: &mut bool) {
        if !std::mem::take(is_first) {
            self.line.push(',');
        }
    }

    fn push_key(&mut self, key: &[u8]) {
        self.line.push('[');
        match self.key_type.key_values(key) {
            Ok(values) => {
                for (index, (part, value)) in values.into_iter().enumerate() {
                    if index > 0 {
                        self.line.push(',');
                    }
                    push_quoted(&part.describe(value), &mut self.line);
                }
            }
            Err(_) => push_quoted(&self.key_type.describe(key), &mut self.line),
        }
        self.line.push(']');
    }

    fn push_position(&mut self, position: u64) {
        self.line.push_str(",\"position\":");
        self.line.push_str(&position.to_string());
    }

    /// Appends the clustering; nothing for a bound without values, which starts before or ends after all
    /// rows.
    fn push_clustering(&mut self, clustering: Prefix<'_>) {
        let mut values = clustering.values();
        if values.len() == 0 {
            return;
        }
        self.line.push_str(",\"clustering\":[");
        for (index, cql_type) in self.clustering_types.iter().enumerate() {
            if index > 0 {
                self.line.push(',');
            }
            match values.next() {
                Some(value) => push_value(cql_type, value, &mut self.line),
                None => self.line.push_str("\"*\""),
            }
        }
        self.line.push(']');
    }

    fn push_liveness(&mut self, liveness: &Liveness) {
        self.line.push_str(",\"liveness_info\":{\"tstamp\":");
        self.push_micros(liveness.timestamp);
        if liveness.is_expiring() {
            let expires_at_s = liveness.local_expiration_time;
            self.push_expiry(
                liveness.ttl,
                expires_at_s,
                expires_at_s < self.options.now_s,
            );
        }
        self.line.push('}');
    }

    fn push_expiry(&mut self, ttl: i32, expires_at_s: i64, is_expired: bool) {
        self.line.push_str(",\"ttl\":");
        self.line.push_str(&ttl.to_string());
        self.line.push_str(",\"expires_at\":");
        self.push_seconds(expires_at_s);
        self.line.push_str(",\"expired\":");
        self.line
            .push_str(if is_expired { "true" } else { "false" });
    }

    fn push_deletion(&mut self, deletion: DeletionTime) {
        self.line.push_str("\"deletion_info\":{\"marked_deleted\":");
        self.push_micros(deletion.marked_for_delete_at);
        self.line.push_str(",\"local_delete_time\":");
        self.push_seconds(deletion.local_deletion_time);
        self.line.push('}');
    }

    fn push_marker(&mut self, marker: &MarkerHead, clustering: Prefix<'_>) {
        let kind = marker.kind;
        self.line.push_str("{\"type\":\"range_tombstone_");
        self.line.push_str(if kind.is_boundary() {
            "boundary\""
        } else {
            "bound\""
        });
        if kind.is_open() {
            let is_inclusive =
                matches!(kind, Kind::InclStartBound | Kind::ExclEndInclStartBoundary);
            self.push_bound("start", is_inclusive, clustering, marker.open);
        }
        if kind.is_close() {
            let is_inclusive = matches!(kind, Kind::InclEndBound | Kind::InclEndExclStartBoundary);
            self.push_bound("end", is_inclusive, clustering, marker.close);
        }
        self.line.push('}');
    }

    fn push_bound(
        &mut self,
        side: &str,
        is_inclusive: bool,
        clustering: Prefix<'_>,
        deletion: DeletionTime,
    ) {
        self.line.push_str(",\"");
        self.line.push_str(side);
        self.line.push_str("\":{\"type\":\"");
        self.line.push_str(if is_inclusive {
            "inclusive\""
        } else {
            "exclusive\""
        });
        self.push_clustering(clustering);
        self.line.push(',');
        self.push_deletion(deletion);
        self.line.push('}');
    }

    /// The opening brace of a cell, and its name.
    fn push_cell_name(&mut self, place: &CellPlace<'_>) {
        let names = if place.is_static {
            &self.static_names
        } else {
            &self.regular_names
        };
        self.line.push_str("{\"name\":");
        match names.get(place.index) {
            Some(name) => self.line.push_str(name),
            None => self.line.push_str(&quoted_name(&place.column.name)),
        }
    }

    fn push_cell(&mut self, place: &CellPlace<'_>, cell: &Cell, row: &[u8]) {
        let (path, value) = (cell.path.of(row), cell.value.of(row));
        self.push_cell_name(place);
        if place.column.is_complex {
            self.line.push_str(",\"path\":[");
            push_quoted(&path_text(&place.column.cql_type, path), &mut self.line);
            self.line.push(']');
        }
        if cell.is_tombstone() {
            self.line
                .push_str(",\"deletion_info\":{\"local_delete_time\":");
            self.push_seconds(cell.local_deletion_time);
            self.line.push('}');
        } else {
            self.line.push_str(",\"value\":");
            match place.column.cql_type.cell_type(path) {
                Some(cell_type) => {
                    let value = if place.column.is_counter && !place.column.is_complex {
                        counter_as_read(value)
                    } else {
                        Cow::Borrowed(value)
                    };
                    push_value(cell_type, Some(&value), &mut self.line);
                }
                None => push_quoted(UNSUPPORTED, &mut self.line),
            }
        }
        let liveness = &place.liveness;
        if liveness.is_empty() || cell.timestamp != liveness.timestamp {
            self.line.push_str(",\"tstamp\":");
            self.push_micros(cell.timestamp);
        }
        if cell.is_expiring() && (liveness.is_empty() || cell.ttl != liveness.ttl) {
            let is_expired = !cell.is_live(self.options.now_s);
            self.push_expiry(cell.ttl, cell.local_deletion_time, is_expired);
        }
        self.line.push('}');
    }

    fn push_micros(&mut self, micros: i64) {
        self.push_time(micros, date_string_of_micros);
    }

    fn push_seconds(&mut self, seconds: i64) {
        self.push_time(seconds, date_string_of_seconds);
    }

    fn push_time(&mut self, time: i64, date: fn(i64) -> String) {
        self.line.push('"');
        let text = if self.options.raw_timestamps {
            time.to_string()
        } else {
            date(time)
        };
        self.line.push_str(&text);
        self.line.push('"');
    }
}

/// Context of a cell.
struct CellPlace<'a> {
    is_static: bool,
    /// Index of the column in the header.
    index: usize,
    column: &'a ColumnLayout,
    /// Liveness of the row: cells show only times that differ from it.
    liveness: Liveness,
}

/// A column's name as CQL has it, as a JSON string.
fn quoted_name(name: &[u8]) -> String {
    let mut out = String::new();
    push_quoted(&maybe_quote(&String::from_utf8_lossy(name)), &mut out);
    out
}

/// A simple counter's context as Cassandra reads it: local shards that are marked for it are remote ones
/// (`DeserializationHelper.maybeClearCounterValue`).
fn counter_as_read(value: &[u8]) -> Cow<'_, [u8]> {
    let mut cleared = Vec::new();
    match Context::parse(value) {
        Ok(context) if context.should_clear_local() && context.clear_local(&mut cleared) => {
            Cow::Owned(cleared)
        }
        _ => Cow::Borrowed(value),
    }
}

/// Types that Cassandra prints where there is no value at all (`DecimalSerializer`, `EmptyType`).
fn prints_nothing(cql_type: &CqlType) -> bool {
    match cql_type {
        CqlType::Reversed(base) => prints_nothing(base),
        _ => matches!(cql_type, CqlType::Decimal | CqlType::Empty),
    }
}

/// `None` is a clustering that is absent, in a table of compact storage.
fn push_value(cql_type: &CqlType, value: Option<&[u8]>, out: &mut String) {
    let is_rendered = match value {
        Some(value) => cql_type.to_json(value, out).is_ok(),
        None if prints_nothing(cql_type) => {
            out.push_str("\"\"");
            true
        }
        None => false,
    };
    if !is_rendered {
        push_quoted(UNSUPPORTED, out);
    }
}

/// Fields of a UDT by name, everything else as text.
fn path_text(cql_type: &CqlType, path: &[u8]) -> String {
    if let CqlType::Udt(udt) = cql_type {
        let index = <[u8; 2]>::try_from(path).map(u16::from_be_bytes);
        let field = index
            .ok()
            .and_then(|index| udt.fields.get(usize::from(index)));
        if let Some((name, _)) = field {
            return String::from_utf8_lossy(name).into_owned();
        }
    }
    match cql_type.path_type() {
        Some(path_type) => path_type.describe(path),
        None => CqlType::Bytes.describe(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_shards_that_are_marked_are_remote() {
        let shard = [7; 32];
        let context = |count: i16, elements: &[i16]| {
            let mut bytes = count.to_be_bytes().to_vec();
            bytes.extend(elements.iter().flat_map(|element| element.to_be_bytes()));
            bytes.extend(shard);
            bytes
        };
        let global = i16::MIN;
        assert_eq!(*counter_as_read(&context(-1, &[0])), context(0, &[]));
        // Not marked; no local one; no context.
        for bytes in [context(1, &[0]), context(-1, &[global]), vec![0xff]] {
            assert_eq!(*counter_as_read(&bytes), bytes);
        }
    }

    #[test]
    fn an_absent_clustering_of_some_types_is_an_empty_text() {
        let json = |cql_type: &CqlType| {
            let mut out = String::new();
            push_value(cql_type, None, &mut out);
            out
        };
        let reversed = CqlType::Reversed(CqlType::Decimal.into());
        assert_eq!(json(&CqlType::Decimal), "\"\"");
        assert_eq!(json(&reversed), "\"\"");
        assert_eq!(json(&CqlType::Int32), format!("\"{UNSUPPORTED}\""));
    }
}
