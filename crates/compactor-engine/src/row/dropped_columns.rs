//! Dropped columns: cells written to them before the drop are dead.
//!
//! SSTables are not rewritten when a column is dropped. Instead, readers skip its cells, and deletions of a
//! complex column as a whole, up to the time of the drop; newer ones were written after the column had been
//! added again. A row without other content is treated as if it did not exist.
//!
//! Source: `DeserializationHelper.isDropped`, `DeserializationHelper.isDroppedComplexDeletion`.

use std::collections::HashSet;
use std::path::Path;

use compactor_sstable::schema::{Column, ColumnKind, Table};
use compactor_sstable::statistics::header::{HeaderColumn, SerializationHeader};

use crate::error::{Error, Result};
use crate::input::by_kind::ByKind;

/// Time at which a column was dropped, if it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ColumnDrop(Option<i64>);

impl ColumnDrop {
    /// A column dropped at this time, microseconds since 1970.
    pub fn at(micros: i64) -> ColumnDrop {
        ColumnDrop(Some(micros))
    }

    /// Whether a cell written at `timestamp` is dead.
    #[inline]
    pub fn covers(self, timestamp: i64) -> bool {
        self.0.is_some_and(|dropped_at| timestamp <= dropped_at)
    }
}

/// Drop times of the columns of a header; no values if no column was dropped.
pub type DropTimes = ByKind<ColumnDrop>;

impl DropTimes {
    /// Returns the drop times of the columns of `header` according to the table's schema. `path` names the
    /// header in errors.
    ///
    /// # Errors
    /// Refused if a column was dropped and the schema does not specify when.
    pub fn of(table: &Table, header: &SerializationHeader, path: &Path) -> Result<DropTimes> {
        if table.dropped_columns.is_empty() {
            return Ok(DropTimes::default());
        }
        let times = table.drop_times_micros();
        let timeless: HashSet<&str> = table
            .dropped_columns
            .iter()
            .filter(|column| column.dropped_at_micros.is_none())
            .map(|column| column.name.as_str())
            .collect();
        let of = |columns: &[HeaderColumn]| -> Result<Vec<ColumnDrop>> {
            let mut drops = Vec::with_capacity(columns.len());
            for column in columns {
                let name = String::from_utf8_lossy(&column.name);
                if timeless.contains(&*name) {
                    return Err(Error::Refused(format!(
                        "column {name:?}, which {} has, was dropped, but the schema does not specify \
                         when: add USING TIMESTAMP and the microseconds to its ALTER TABLE ... DROP, \
                         as schema.cql of a snapshot has it",
                        path.display()
                    )));
                }
                drops.push(ColumnDrop(times.get(&*name).copied()));
            }
            if drops.iter().all(|drop| drop.0.is_none()) {
                drops.clear();
            }
            Ok(drops)
        };
        let mut drops = DropTimes {
            static_columns: of(&header.static_columns)?,
            regular_columns: of(&header.regular_columns)?,
        };
        let is_static = |column: &Column| column.kind == ColumnKind::Static;
        if !table.compact_storage && !table.columns.iter().any(is_static) {
            // If the table has no static columns left, even cells newer than the drop are dropped
            // (`UnfilteredRowIterators.mergeStaticRows`).
            drops.static_columns.fill(ColumnDrop::at(i64::MAX));
        }
        Ok(drops)
    }

    /// Whether an SSTable with this minimum timestamp may contain dropped cells.
    pub fn may_cover(&self, min_timestamp: i64) -> bool {
        let drops = self.static_columns.iter().chain(&self.regular_columns);
        drops.into_iter().any(|drop| drop.covers(min_timestamp))
    }
}

/// Whether the table no longer has a column of a header; no values if it has all.
pub type RemovedColumns = ByKind<bool>;

impl RemovedColumns {
    /// Columns of `header` that were dropped and not added again, according to the table's schema.
    pub fn of(table: &Table, header: &SerializationHeader) -> RemovedColumns {
        let dropped = table.dropped_columns.iter().map(|column| &*column.name);
        let dropped: HashSet<&str> = dropped.collect();
        let of = |kind: ColumnKind, columns: &[HeaderColumn]| -> Vec<bool> {
            let known = table.columns.iter().filter(|column| column.kind == kind);
            let known: HashSet<&str> = known.map(|column| &*column.name).collect();
            let is_removed = |column: &HeaderColumn| {
                let name = String::from_utf8_lossy(&column.name);
                dropped.contains(&*name) && !known.contains(&*name)
            };
            let removed: Vec<bool> = columns.iter().map(is_removed).collect();
            if removed.contains(&true) {
                removed
            } else {
                Vec::new()
            }
        };
        RemovedColumns {
            static_columns: of(ColumnKind::Static, &header.static_columns),
            regular_columns: of(ColumnKind::Regular, &header.regular_columns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use compactor_sstable::schema::Schema;
    use compactor_sstable::statistics::HeaderType;
    use compactor_sstable::statistics::header::EncodingStats;
    use compactor_sstable::types::CqlType;

    fn header(regular: &[&str]) -> SerializationHeader {
        let columns = |names: &[&str]| {
            let column = |name: &&str| HeaderColumn {
                name: name.as_bytes().to_vec(),
                column_type: HeaderType::new(CqlType::Int32),
            };
            names.iter().map(column).collect()
        };
        SerializationHeader {
            encoding_stats: EncodingStats::default(),
            key_type: HeaderType::new(CqlType::Int32),
            clustering_types: Vec::new(),
            static_columns: columns(&["s"]),
            regular_columns: columns(regular),
        }
    }

    fn times(text: &str, regular: &[&str]) -> Result<DropTimes> {
        let schema = Schema::parse(text).unwrap();
        let table = schema.only_table().unwrap();
        DropTimes::of(table, &header(regular), Path::new("nb-1-big-Statistics.db"))
    }

    const TABLE: &str = "CREATE TABLE t (k int PRIMARY KEY, a int, b int);";

    #[test]
    fn the_last_drop_counts_up_to_its_own_microsecond() {
        let text = format!(
            "{TABLE} ALTER TABLE t DROP b USING TIMESTAMP -7; ALTER TABLE t ADD b int;
             ALTER TABLE t DROP b USING TIMESTAMP 9; ALTER TABLE t ADD b int;"
        );
        let times = times(&text, &["a", "b"]).unwrap();
        assert!(times.of_kind(true).is_empty());
        let [a, b] = times.of_kind(false) else {
            panic!("{times:?}");
        };
        assert!(!a.covers(i64::MIN));
        assert!(b.covers(i64::MIN) && b.covers(9) && !b.covers(10));
        assert!(times.may_cover(9) && !times.may_cover(10));
    }

    #[test]
    fn a_drop_without_a_time_is_refused_where_it_matters() {
        let text = format!("{TABLE} ALTER TABLE t DROP b;");
        let error = times(&text, &["a", "b"]).unwrap_err().to_string();
        assert!(
            error.contains("\"b\"") && error.contains("USING TIMESTAMP"),
            "{error}"
        );
        assert_eq!(times(&text, &["a"]).unwrap(), DropTimes::default());
    }
}
