//! Serialization header prepared for decoding and encoding rows.
//!
//! Source: `SerializationHeader`, `EncodingStats`, `Columns`.

use crate::data::clustering::ClusteringComparator;
use crate::data::stated_extremes::StatedExtremes;
use crate::error::{Error, Result};
use crate::types::CqlType;
use crate::version::Version;

/// One static or regular column.
#[derive(Clone, Debug)]
pub struct ColumnLayout {
    /// Name, as raw bytes.
    pub name: Vec<u8>,
    /// Type in this SSTable's header, which determines the framing of values.
    pub cql_type: CqlType,
    /// Length of each non-empty value of a simple cell; `None` if a vint length precedes it.
    pub fixed_len: Option<u32>,
    /// Whether the column is multi-cell: a deletion and any number of cells with paths.
    pub is_complex: bool,
    /// Whether cells are counter contexts, those of a complex column too.
    pub is_counter: bool,
    pub(crate) plain_value: PlainValue,
}

/// Framing of a column's values in rows that [`PlainRow`](crate::data::plain_row::PlainRow) reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlainValue {
    /// Values have this length, which is not 0.
    Fixed(u32),
    /// A vint length precedes each.
    WithLength,
    /// A row with such a column is not plain.
    None,
}

impl ColumnLayout {
    /// Creates the layout of a column with this name and type.
    ///
    /// # Errors
    /// Unsupported if values have a fixed length of more than 4 GiB.
    pub fn new(name: Vec<u8>, cql_type: CqlType) -> Result<ColumnLayout> {
        let fixed_len = match cql_type.fixed_len() {
            None => None,
            Some(len) => Some(
                u32::try_from(len)
                    .map_err(|_| Error::unsupported(format!("values of {len} bytes")))?,
            ),
        };
        let is_complex = cql_type.is_multi_cell();
        let is_counter = cql_type.has_counter_cells();
        let plain_value = match fixed_len {
            Some(0) => PlainValue::None,
            _ if is_complex || is_counter => PlainValue::None,
            Some(len) => PlainValue::Fixed(len),
            None => PlainValue::WithLength,
        };
        Ok(ColumnLayout {
            name,
            is_complex,
            is_counter,
            plain_value,
            fixed_len,
            cql_type,
        })
    }
}

/// Information for reading and writing rows of one SSTable.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Version of the file, which determines the form of partition-level deletion times and overflowed
    /// seconds.
    pub version: Version,
    /// Base of timestamp deltas (`EncodingStats.minTimestamp`).
    pub min_timestamp: i64,
    /// Timestamp deltas that rows and markers may have.
    pub timestamp_deltas: TimestampDeltas,
    /// Bounds of TTLs, local deletion times and clusterings.
    pub stated: StatedExtremes,
    /// Base of local deletion time deltas, seconds.
    pub min_local_deletion_time: i64,
    /// Base of TTL deltas, seconds.
    pub min_ttl: i32,
    /// Framing and order of clusterings.
    pub clustering: ClusteringComparator,
    /// Static columns in header order.
    pub static_columns: Vec<ColumnLayout>,
    /// Regular columns in header order.
    pub regular_columns: Vec<ColumnLayout>,
}

/// Range of timestamp deltas that lead to timestamps between the minimum and the maximum of the statistics.
/// Another delta shows that the data, or its base, is damaged or belongs to another SSTable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimestampDeltas {
    least: u64,
    span: u64,
}

impl TimestampDeltas {
    /// No bounds.
    pub const ANY: TimestampDeltas = TimestampDeltas {
        least: 0,
        span: u64::MAX,
    };

    /// Returns the deltas of timestamps from `min` to `max` relative to `base`.
    pub fn between(base: i64, min: i64, max: i64) -> TimestampDeltas {
        if min > max {
            return TimestampDeltas::ANY;
        }
        TimestampDeltas {
            least: min.wrapping_sub(base) as u64,
            span: max.wrapping_sub(min) as u64,
        }
    }

    /// Whether the delta is in the range.
    #[inline(always)]
    pub fn contains(&self, delta: u64) -> bool {
        delta.wrapping_sub(self.least) <= self.span
    }
}

impl Layout {
    /// Whether every partition has a static row.
    #[inline]
    pub fn has_static(&self) -> bool {
        !self.static_columns.is_empty()
    }

    /// Static or regular columns, in header order.
    #[inline]
    pub fn columns(&self, is_static: bool) -> &[ColumnLayout] {
        if is_static {
            &self.static_columns
        } else {
            &self.regular_columns
        }
    }
}

/// Sort key of header order among static or regular columns: simple before complex ones, names that begin with a
/// byte above 0x7f before all others, then unsigned bytes of the name. `ColumnMetadata.comparisonOrder` shifts the
/// first bytes of the name, whose top bit is inverted for signed comparison, to where no sign is.
pub fn column_order<N: AsRef<[u8]>>(is_complex: bool, name: N) -> (bool, bool, N) {
    let is_ascii = name.as_ref().first().is_none_or(u8::is_ascii);
    (is_complex, is_ascii, name)
}

/// Checks that static or regular columns are in header order, as every writer leaves them.
///
/// # Errors
/// Corruption naming the first pair that is out of order.
pub fn check_column_order(columns: &[ColumnLayout]) -> Result<()> {
    for pair in columns.windows(2) {
        let [a, b] = pair else { continue };
        if column_order(a.is_complex, &a.name) >= column_order(b.is_complex, &b.name) {
            return Err(Error::corrupt(
                "header.columns",
                0,
                format!(
                    "columns after {:?} in header order",
                    String::from_utf8_lossy(&a.name)
                ),
                format!("{:?}", String::from_utf8_lossy(&b.name)),
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::column_order;

    /// The order in which Cassandra 5.0.5 lists the columns of such a table.
    #[test]
    fn names_that_do_not_begin_with_ascii_are_first() {
        let names = ["é", "日本", "Z", "a", "aé", "z"];
        let keys = |is_complex| names.map(|name| column_order(is_complex, name));
        let ordered = [keys(false), keys(true)].concat();
        assert!(ordered.is_sorted_by(|a, b| a < b), "{ordered:?}");
    }
}
