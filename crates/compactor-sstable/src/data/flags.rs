//! Flag bits of unfiltereds and cells.
//!
//! Source: `UnfilteredSerializer`, `Cell.Serializer`.

/// End of the partition.
pub const END_OF_PARTITION: u8 = 0x01;
/// The unfiltered is a range tombstone marker, not a row.
pub const IS_MARKER: u8 = 0x02;
/// The row has primary-key liveness.
pub const HAS_TIMESTAMP: u8 = 0x04;
/// The primary-key liveness has a TTL.
pub const HAS_TTL: u8 = 0x08;
/// The row has a deletion.
pub const HAS_DELETION: u8 = 0x10;
/// Every column of the header is present.
pub const HAS_ALL_COLUMNS: u8 = 0x20;
/// Every complex column present is preceded by a deletion time.
pub const HAS_COMPLEX_DELETION: u8 = 0x40;
/// A second flag byte follows.
pub const EXTENSION_FLAG: u8 = 0x80;

/// Second byte: the row is static.
pub const IS_STATIC: u8 = 0x01;
/// Second byte: the row deletion is shadowable (materialized views before 4.0).
pub const HAS_SHADOWABLE_DELETION: u8 = 0x02;

/// The cell is a tombstone.
pub const CELL_IS_DELETED: u8 = 0x01;
/// The cell has a TTL.
pub const CELL_IS_EXPIRING: u8 = 0x02;
/// The value is empty and omitted.
pub const CELL_HAS_EMPTY_VALUE: u8 = 0x04;
/// The timestamp is that of the row's liveness and omitted.
pub const CELL_USE_ROW_TIMESTAMP: u8 = 0x08;
/// TTL and expiration time are those of the row's liveness and omitted.
pub const CELL_USE_ROW_TTL: u8 = 0x10;
