//! Data.db: partitions, rows and cells as views over decompressed bytes.
//!
//! A partition is a key, a deletion time, a static row if the serialization header has static columns,
//! unfiltereds (rows and range tombstone markers) in clustering order, and an end byte:
//!
//! ```text
//! partition := bytes16 key | deletion time | [static row] | unfiltered* | 01
//! ```
//!
//! Nothing here allocates per row or per cell: parsers return offsets into the caller's slice or views that
//! borrow it.
//!
//! Source: `UnfilteredSerializer`, `SortedTablePartitionWriter`.

pub mod cell;
pub mod clustering;
pub mod columns;
pub mod counter;
pub mod deletion_time;
mod deltas;
pub mod encode;
pub mod flags;
pub mod layout;
pub mod parse;
pub mod partition;
pub mod plain_row;
pub mod row;
pub mod row_fault;
#[cfg(test)]
mod row_samples;
pub mod stated_extremes;
pub mod unfiltered;

#[cfg(test)]
mod tests;
