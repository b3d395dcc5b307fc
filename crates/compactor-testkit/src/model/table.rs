//! A table in memory, as plain maps and lists.

use std::collections::BTreeMap;
use std::fmt;

use compactor_sstable::Version;
use compactor_sstable::data::cell::Liveness;
use compactor_sstable::data::clustering::Kind;
use compactor_sstable::data::deletion_time::DeletionTime;

/// Types of values: some of each framing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    Int,
    Text,
    Blob,
    Long,
    Varint,
    Decimal,
    Boolean,
    /// Only in simple columns and as values of maps.
    Counter,
}

/// Types of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    Simple(Base),
    List(Base),
    Set(Base),
    Map(Base, Base),
    Udt,
}

/// A column of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: Vec<u8>,
    pub column_type: ColumnType,
    pub is_static: bool,
}

impl Column {
    pub fn is_complex(&self) -> bool {
        !matches!(self.column_type, ColumnType::Simple(_))
    }

    /// Whether its cells are counters.
    pub fn is_counter(&self) -> bool {
        use ColumnType::{Map, Simple};
        matches!(
            self.column_type,
            Simple(Base::Counter) | Map(_, Base::Counter)
        )
    }
}

/// A clustering column: its type, and whether it is descending.
#[derive(Clone, Copy, Debug)]
pub struct ClusteringColumn {
    pub base: Base,
    pub is_reversed: bool,
}

/// Schema that the inputs of a merge share. Columns are in header order: simple before complex, then by name.
#[derive(Clone, Debug)]
pub struct Schema {
    pub clustering: Vec<ClusteringColumn>,
    pub columns: Vec<Column>,
}

impl Schema {
    /// Whether clusterings or paths that compare equal may differ in their bytes.
    pub fn has_several_encodings(&self) -> bool {
        let several = |base: Base| matches!(base, Base::Varint | Base::Decimal);
        let of_column = |column: &Column| match column.column_type {
            ColumnType::Set(path) | ColumnType::Map(path, _) => several(path),
            ColumnType::Simple(_) | ColumnType::List(_) | ColumnType::Udt => false,
        };
        self.clustering.iter().any(|column| several(column.base))
            || self.columns.iter().any(of_column)
    }
}

/// Header of one SSTable: delta bases and columns.
#[derive(Clone, Debug)]
pub struct Header {
    pub version: Version,
    pub min_timestamp: i64,
    pub min_local_deletion_time: i64,
    pub min_ttl: i32,
    /// Indexes in the schema's columns, ascending.
    pub columns: Vec<usize>,
}

impl Header {
    /// Schema indexes of its static or regular columns.
    pub fn of_kind(&self, schema: &Schema, is_static: bool) -> Vec<usize> {
        let is_of_kind = |index: &usize| schema.columns[*index].is_static == is_static;
        self.columns.iter().copied().filter(is_of_kind).collect()
    }
}

/// Clustering values; `None` is null.
pub type Values = Vec<Option<Vec<u8>>>;

#[derive(Clone, PartialEq, Eq)]
pub struct Cell {
    pub timestamp: i64,
    pub local_deletion_time: i64,
    pub ttl: i32,
    pub path: Vec<u8>,
    pub value: Vec<u8>,
}

/// Content of a column in a row: a single cell and no deletion if it is simple.
#[derive(Clone, PartialEq, Eq)]
pub struct ColumnData {
    pub deletion: DeletionTime,
    pub cells: Vec<Cell>,
}

#[derive(Clone, PartialEq, Eq)]
pub struct Row {
    pub liveness: Liveness,
    pub deletion: DeletionTime,
    pub is_shadowable: bool,
    /// Columns by schema index.
    pub columns: BTreeMap<usize, ColumnData>,
}

impl Row {
    pub fn empty() -> Row {
        Row {
            liveness: Liveness::EMPTY,
            deletion: DeletionTime::LIVE,
            is_shadowable: false,
            columns: BTreeMap::new(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.liveness.is_empty() && self.deletion.is_live() && self.columns.is_empty()
    }
}

#[derive(Clone, PartialEq, Eq)]
pub enum Unfiltered {
    Row {
        clustering: Values,
        row: Row,
    },
    Marker {
        kind: Kind,
        bound: Values,
        close: DeletionTime,
        open: DeletionTime,
    },
}

#[derive(Clone, PartialEq, Eq)]
pub struct Partition {
    pub deletion: DeletionTime,
    pub static_row: Row,
    pub unfiltereds: Vec<Unfiltered>,
}

impl Partition {
    pub fn is_empty(&self) -> bool {
        self.deletion.is_live() && self.static_row.is_empty() && self.unfiltereds.is_empty()
    }

    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.unfiltereds
            .iter()
            .filter_map(|unfiltered| match unfiltered {
                Unfiltered::Row { row, .. } => Some(row),
                Unfiltered::Marker { .. } => None,
            })
    }
}

/// Partitions by token and key.
pub type Table = BTreeMap<(i64, Vec<u8>), Partition>;

/// Bytes in hexadecimal digits, abbreviated in the middle.
pub fn hex(bytes: &[u8]) -> String {
    let digits = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    match bytes.len() {
        0..=200 => format!("x{}", digits(bytes)),
        len => format!(
            "x{}..{}({len})",
            digits(&bytes[..8]),
            digits(&bytes[len - 8..])
        ),
    }
}

fn show_values(values: &Values) -> String {
    let show = |value: &Option<Vec<u8>>| value.as_deref().map_or("null".to_owned(), hex);
    values.iter().map(show).collect::<Vec<_>>().join(":")
}

fn show_deletion(deletion: &DeletionTime) -> String {
    let DeletionTime {
        marked_for_delete_at,
        local_deletion_time,
    } = deletion;
    format!("del({marked_for_delete_at}, {local_deletion_time})")
}

impl fmt::Debug for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}={}@{}",
            hex(&self.path),
            hex(&self.value),
            self.timestamp
        )?;
        if self.ttl != 0 || self.local_deletion_time != i64::MAX {
            write!(f, " ttl {} ldt {}", self.ttl, self.local_deletion_time)?;
        }
        Ok(())
    }
}

impl fmt::Debug for ColumnData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.deletion.is_live() {
            write!(f, "{} ", show_deletion(&self.deletion))?;
        }
        write!(f, "{:?}", self.cells)
    }
}

impl fmt::Debug for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.liveness.is_empty() || self.liveness.ttl != 0 {
            let Liveness {
                timestamp,
                ttl,
                local_expiration_time,
            } = self.liveness;
            write!(f, "live({timestamp}, {ttl}, {local_expiration_time}) ")?;
        }
        if !self.deletion.is_live() {
            let shadowable = if self.is_shadowable {
                "shadowable "
            } else {
                ""
            };
            write!(f, "{shadowable}{} ", show_deletion(&self.deletion))?;
        }
        for (index, data) in &self.columns {
            write!(f, "#{index}: {data:?} ")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Unfiltered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unfiltered::Row { clustering, row } => {
                write!(f, "row [{}] {row:?}", show_values(clustering))
            }
            Unfiltered::Marker {
                kind,
                bound,
                close,
                open,
            } => {
                write!(f, "{kind:?} [{}]", show_values(bound))?;
                for (name, deletion) in [("close", close), ("open", open)] {
                    if !deletion.is_live() {
                        write!(f, " {name} {}", show_deletion(deletion))?;
                    }
                }
                Ok(())
            }
        }
    }
}

impl fmt::Debug for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} static {:?}",
            show_deletion(&self.deletion),
            self.static_row
        )?;
        for unfiltered in &self.unfiltereds {
            write!(f, "\n    {unfiltered:?}")?;
        }
        Ok(())
    }
}
