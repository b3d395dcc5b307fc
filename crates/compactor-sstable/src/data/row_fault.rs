//! Fault in a row, as a small code: an error with its text would be copied through every read of a cell. The
//! text is generated on demand.

mod describe;

/// Field of a row, by the structure that errors name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Timestamp,
    Ttl,
    LocalDeletionTime,
    Deletion,
    Columns,
    Body,
    ComplexDeletion,
    CellCount,
    CellFlags,
    CellTimestamp,
    CellLocalDeletionTime,
    CellTtl,
    CellPath,
    CellPathLength,
    CellValue,
    CellValueLength,
}

impl Field {
    pub(super) fn name(self) -> &'static str {
        match self {
            Field::Timestamp => "row.timestamp",
            Field::Ttl => "row.ttl",
            Field::LocalDeletionTime => "row.local_deletion_time",
            Field::Deletion => "row.deletion",
            Field::Columns => "row.columns_subset",
            Field::Body => "row.body",
            Field::ComplexDeletion => "row.complex_deletion",
            Field::CellCount => "row.complex_column.cell_count",
            Field::CellFlags => "row.cell.flags",
            Field::CellTimestamp => "row.cell.timestamp",
            Field::CellLocalDeletionTime => "row.cell.local_deletion_time",
            Field::CellTtl => "row.cell.ttl",
            Field::CellPath => "row.cell.path",
            Field::CellPathLength => "row.cell.path_length",
            Field::CellValue => "row.cell.value",
            Field::CellValueLength => "row.cell.value_length",
        }
    }
}

/// Violation by a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Problem {
    /// The row ends before the field.
    Short,
    /// A timestamp, local deletion time or TTL outside the extremes in the statistics.
    Timestamp,
    DeletionTime,
    Ttl,
    NegativeTtl,
    /// More than 32 bits.
    Delta,
    /// Data that does not expire, although according to the statistics all does.
    Live,
    /// A length beyond the row, or beyond the longest value.
    Length,
    /// More cells than the rest of the row can contain.
    Count,
    /// Bytes after the last cell.
    Left,
    /// A subset with columns that the header does not have.
    Subset,
    /// A path that does not sort after the previous one.
    Order,
}

/// Position and kind of the damage in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowFault {
    pub(super) field: Field,
    pub(super) problem: Problem,
    /// Position of the field, or of the byte after it, relative to the row's first byte.
    pub(super) at: u32,
}

/// Minimum length of a cell of a complex column, bytes: flags and the length of its path.
pub(super) const MIN_CELL_LEN: usize = 2;
