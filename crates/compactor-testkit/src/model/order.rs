//! Naive orders of values, cell paths and positions in a partition.

use std::cmp::Ordering;

use compactor_sstable::data::clustering::Kind;
use compactor_sstable::data::deletion_time::DeletionTime;

use super::table::{Base, ClusteringColumn, ColumnType, Schema, Unfiltered, Values};

/// Order of two values by their meaning.
pub fn compare_values(base: Base, a: &[u8], b: &[u8]) -> Ordering {
    if a.is_empty() || b.is_empty() {
        return b.is_empty().cmp(&a.is_empty());
    }
    match base {
        Base::Text | Base::Blob | Base::Boolean | Base::Counter => a.cmp(b),
        Base::Int | Base::Long | Base::Varint => integer(a).cmp(&integer(b)),
        Base::Decimal => decimal(a).cmp(&decimal(b)),
    }
}

fn integer(bytes: &[u8]) -> i128 {
    let start = if bytes[0] & 0x80 != 0 { -1 } else { 0 };
    bytes
        .iter()
        .fold(start, |value, byte| (value << 8) | i128::from(*byte))
}

/// In millionths: the generator's scales are small.
fn decimal(bytes: &[u8]) -> i128 {
    let scale = integer(&bytes[..4]);
    assert!((0..=6).contains(&scale), "scale {scale}");
    integer(&bytes[4..]) * 10i128.pow(6 - scale as u32)
}

/// Null first, in either direction; empty values first, but last in a descending column.
fn compare_clustering_values(
    column: ClusteringColumn,
    a: Option<&[u8]>,
    b: Option<&[u8]>,
) -> Ordering {
    match (a, b) {
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Less,
        (Some(_), None) => Ordering::Greater,
        (Some(a), Some(b)) if column.is_reversed => compare_values(column.base, b, a),
        (Some(a), Some(b)) => compare_values(column.base, a, b),
    }
}

/// Side of all clusterings that begin with the same values: -1 before, 0 the row itself, 1 after.
pub fn side(kind: Kind) -> i32 {
    match kind {
        Kind::ExclEndBound | Kind::InclStartBound | Kind::ExclEndInclStartBoundary => -1,
        Kind::InclEndExclStartBoundary | Kind::InclEndBound | Kind::ExclStartBound => 1,
        Kind::StaticClustering | Kind::Clustering => 0,
    }
}

/// Position of an unfiltered: its values and a side of them.
pub fn place(unfiltered: &Unfiltered) -> (&Values, i32) {
    match unfiltered {
        Unfiltered::Row { clustering, .. } => (clustering, 0),
        Unfiltered::Marker { kind, bound, .. } => (bound, side(*kind)),
    }
}

/// Kind of a marker on this side of its values, or `None` if it has no deletion.
pub fn marker_kind(side: i32, close: DeletionTime, open: DeletionTime) -> Option<Kind> {
    match (!close.is_live(), !open.is_live(), side < 0) {
        (false, false, _) => None,
        (false, true, true) => Some(Kind::InclStartBound),
        (false, true, false) => Some(Kind::ExclStartBound),
        (true, false, true) => Some(Kind::ExclEndBound),
        (true, false, false) => Some(Kind::InclEndBound),
        (true, true, true) => Some(Kind::ExclEndInclStartBoundary),
        (true, true, false) => Some(Kind::InclEndExclStartBoundary),
    }
}

/// Order of two positions in a partition, each given by values and a side of them.
pub fn compare_places(schema: &Schema, a: (&Values, i32), b: (&Values, i32)) -> Ordering {
    for (column, (left, right)) in schema.clustering.iter().zip(a.0.iter().zip(b.0)) {
        let order = compare_clustering_values(*column, left.as_deref(), right.as_deref());
        if order != Ordering::Equal {
            return order;
        }
    }
    match a.0.len().cmp(&b.0.len()) {
        Ordering::Equal => a.1.cmp(&b.1),
        // The shorter one is before or after all that begin with it.
        Ordering::Less => a.1.cmp(&0),
        Ordering::Greater => 0.cmp(&b.1),
    }
}

/// Order of cell paths in a complex column.
pub fn compare_paths(column_type: ColumnType, a: &[u8], b: &[u8]) -> Ordering {
    match column_type {
        ColumnType::Simple(_) => Ordering::Equal,
        // Time UUIDs of the generator differ only in the lower part of their timestamp.
        ColumnType::List(_) => a[..4].cmp(&b[..4]),
        ColumnType::Set(base) | ColumnType::Map(base, _) => compare_values(base, a, b),
        ColumnType::Udt => integer(a).cmp(&integer(b)),
    }
}
