//! Line of a summary about removed TTLs.

use compactor::report::TtlRemovedReport;

use crate::text_table::counted;

/// Prints the counts of cells and rows that lost their TTL.
pub fn line(removed: &TtlRemovedReport) -> String {
    let TtlRemovedReport { cells, rows, .. } = *removed;
    if (cells, rows) == (0, 0) {
        return "TTL removed from nothing: no cell or row of the inputs has one".to_owned();
    }
    let (cells, rows) = (counted(cells, "cell"), counted(rows, "row"));
    format!("TTL removed from {cells} and {rows}: they never expire")
}
