//! Row counts of an input.

/// Row counts of an input, as its statistics count them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowCounts {
    /// Number of rows, including static rows that are not empty.
    pub rows: u64,
    /// Number of empty static rows: every partition of a table with static columns has a static row. The cursor
    /// compaction of 6.0-alpha2 counts them as well.
    pub empty_static_rows: u64,
}
