//! Rows of an input, counted.

/// Rows of an input, as its statistics count them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowCounts {
    /// Rows, static ones that are not empty included.
    pub rows: u64,
    /// Static rows that are empty, which a partition of a table with static columns has, too.
    pub empty_static_rows: u64,
}
