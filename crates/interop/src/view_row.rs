//! Rows of materialized views.

/// Rows that materialized views write and CQL cannot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ViewRow {
    /// A row deletion that newer liveness lifts.
    Shadowable,
    /// Liveness that is expired from the start.
    Expired,
}
