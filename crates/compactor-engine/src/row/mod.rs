//! Merging the versions of one row: reconciliation, shadowing and purging, independent of files and of the
//! order of rows and partitions.

pub(crate) mod counter_merge;
pub(crate) mod dropped_columns;
pub(crate) mod merged_row;
pub(crate) mod purge;
pub(crate) mod purge_counts;
pub(crate) mod reconcile;
pub(crate) mod row_merge;
pub(crate) mod row_shadow;
pub(crate) mod row_version;
pub(crate) mod source_heap;
pub(crate) mod strip_ttl;

pub use dropped_columns::DropTimes;
pub use merged_row::MergedRow;
pub use purge::{PurgeLimit, PurgeLimits};
pub use reconcile::left_wins;
