//! Checks of a row: its body is parsed to the end, every value validated against its type, every timestamp checked.
//!
//! Source: `UnfilteredValidation`, `AbstractCell.hasInvalidDeletions`, `ColumnMetadata.validateCell`.

use compactor_engine::read::RowRef;
use compactor_sstable::Error as FormatError;
use compactor_sstable::data::cell::{Cell, Liveness};
use compactor_sstable::data::clustering::Prefix;
use compactor_sstable::data::deletion_time::{
    DeletionTime, INVALID_DELETION_TIME, NO_DELETION_TIME,
};
use compactor_sstable::data::layout::ColumnLayout;
use compactor_sstable::data::row::RowContent;
use compactor_sstable::statistics::{HeaderType, MetadataCollector};
use compactor_sstable::types::CqlType;

use super::finding::{Findings, Location};
use super::{short_class, short_hex, shortened};

/// State of the checks of rows.
pub(crate) struct RowCheck<'a> {
    pub(crate) findings: &'a Findings,
    pub(crate) clustering_types: &'a [HeaderType],
    /// Text of the current partition's key.
    pub(crate) partition: String,
    /// Cells so far.
    pub(crate) cells: u64,
    /// Minimum TTL of expiring cells and rows.
    pub(crate) least_ttl: Option<i32>,
    /// Reused.
    content: RowContent,
}

impl<'a> RowCheck<'a> {
    pub(crate) fn new(findings: &'a Findings, clustering_types: &'a [HeaderType]) -> RowCheck<'a> {
        RowCheck {
            findings,
            clustering_types,
            partition: String::new(),
            cells: 0,
            least_ttl: None,
            content: RowContent::default(),
        }
    }

    fn place(&self, position: u64) -> Location {
        Location::position(position).in_partition(self.partition.clone())
    }

    /// Checks a row at `position`; false if it is empty.
    pub(crate) fn row(
        &mut self,
        row: &RowRef<'_>,
        position: u64,
        collector: &mut MetadataCollector,
    ) -> Result<bool, FormatError> {
        let mut content = std::mem::take(&mut self.content);
        row.read_into(&mut content)?;
        let start = &content.start;
        if !start.liveness.is_empty() {
            let liveness = &start.liveness;
            self.liveness(liveness, position);
            let expiration = liveness.local_expiration_time;
            self.note_ttl(liveness.ttl);
            collector.update_liveness(liveness.timestamp, liveness.ttl, expiration);
        }
        self.deletion("row.deletion", &start.deletion, position);
        collector.update_deletion_time(&start.deletion);
        let mut columns_set = 0;
        let columns = row.layout.columns(row.head.is_static());
        for found in content.columns() {
            let column = &columns[found.index];
            self.deletion("row.complex_deletion", &found.deletion, position);
            collector.update_deletion_time(&found.deletion);
            for cell in found.cells {
                self.path(column, cell, row.bytes, position);
                self.cell(column, cell, row.bytes, position, collector);
            }
            columns_set += u64::from(!found.cells.is_empty());
        }
        let is_empty = start.is_empty();
        if !is_empty {
            collector.add_row(columns_set);
        }
        self.content = content;
        Ok(!is_empty)
    }

    fn note_ttl(&mut self, ttl: i32) {
        if ttl > 0 && self.least_ttl.is_none_or(|least| ttl < least) {
            self.least_ttl = Some(ttl);
        }
    }

    /// Checks the clustering of a row or marker.
    pub(crate) fn clustering(&self, prefix: &Prefix<'_>, position: u64) {
        let columns = self.clustering_types.iter().zip(prefix.values());
        for (index, (column, value)) in columns.enumerate() {
            let Some(value) = value.filter(|value| !value.is_empty()) else {
                continue;
            };
            if let Err(error) = column.cql_type.validate(value) {
                self.findings.ignored_by_merge(
                    self.place(position),
                    "clustering.value",
                    format!(
                        "a {} as clustering value {index}",
                        short_class(&column.cql_type)
                    ),
                    format!("{}: {error}", short_hex(value)),
                );
            }
        }
    }

    fn cell(
        &mut self,
        column: &ColumnLayout,
        cell: &Cell,
        row: &[u8],
        position: u64,
        collector: &mut MetadataCollector,
    ) {
        let (path, value) = (cell.path.of(row), cell.value.of(row));
        self.cells += 1;
        self.note_ttl(cell.ttl);
        collector.update_cell(cell.timestamp, cell.ttl, cell.local_deletion_time);
        let seconds = cell.local_deletion_time;
        if seconds == INVALID_DELETION_TIME
            || seconds < 0
            || (cell.is_expiring() && seconds == NO_DELETION_TIME)
        {
            self.invalid(
                "cell.local_deletion_time",
                column_name(column),
                seconds,
                position,
            );
        }
        if cell.is_tombstone() {
            if !value.is_empty() {
                self.findings.ignored_by_merge(
                    self.place(position),
                    "cell.value",
                    format!("no value in a tombstone of column {}", column_name(column)),
                    short_hex(value),
                );
            }
            return;
        }
        match column.cql_type.cell_type(path) {
            Some(cql_type) => self.value(cql_type, column, cell, value, position),
            None => self.findings.ignored_by_merge(
                self.place(position),
                "cell.path",
                format!(
                    "a field of {}, column {}",
                    short_class(&column.cql_type),
                    column_name(column)
                ),
                short_hex(path),
            ),
        }
    }

    fn value(
        &self,
        cql_type: &CqlType,
        column: &ColumnLayout,
        cell: &Cell,
        value: &[u8],
        position: u64,
    ) {
        let Err(error) = cql_type.validate(value) else {
            return;
        };
        let expected = format!(
            "a {} in column {}",
            short_class(cql_type),
            column_name(column)
        );
        let place = self.place(position);
        if value.is_empty() {
            // Cassandra stores and serves an empty value of any type.
            self.findings
                .note(place, "cell.value", expected, "an empty value");
        } else {
            let found = format!("{}: {error}", short_hex(value));
            // The shards of a counter are merged, unless it expires.
            if column.is_counter && cell.local_deletion_time == NO_DELETION_TIME {
                self.findings.damage(place, "cell.value", expected, found);
            } else {
                self.findings
                    .ignored_by_merge(place, "cell.value", expected, found);
            }
        }
    }

    fn path(&self, column: &ColumnLayout, cell: &Cell, row: &[u8], position: u64) {
        let path = cell.path.of(row);
        if let Some(path_type) = column.cql_type.path_type()
            && let Err(error) = path_type.validate(path)
        {
            self.findings.ignored_by_merge(
                self.place(position),
                "cell.path",
                format!(
                    "a {} in column {}",
                    short_class(path_type),
                    column_name(column)
                ),
                format!("{}: {error}", short_hex(path)),
            );
        }
    }

    fn liveness(&self, liveness: &Liveness, position: u64) {
        let seconds = liveness.local_expiration_time;
        if liveness.is_expiring()
            && (seconds < 0 || seconds == INVALID_DELETION_TIME || seconds == NO_DELETION_TIME)
        {
            self.invalid(
                "row.local_expiration_time",
                "the primary key".into(),
                seconds,
                position,
            );
        }
    }

    /// Checks the deletion of a row, complex column, marker or partition.
    pub(crate) fn deletion(&self, structure: &str, deletion: &DeletionTime, position: u64) {
        if !deletion.is_valid() {
            let seconds = deletion.local_deletion_time;
            self.invalid(structure, "its deletion".into(), seconds, position);
        }
    }

    fn invalid(&self, structure: &str, of: String, seconds: i64, position: u64) {
        let (place, expected) = (
            self.place(position),
            format!("a valid local deletion time of {of}"),
        );
        let found = format!("{seconds}, which is negative, overflowed or missing");
        // No version can store it.
        if seconds == INVALID_DELETION_TIME {
            self.findings.damage(place, structure, expected, found);
        } else {
            self.findings
                .ignored_by_merge(place, structure, expected, found);
        }
    }
}

fn column_name(column: &ColumnLayout) -> String {
    shortened(String::from_utf8_lossy(&column.name).into_owned())
}
