//! Request of a merge.

use compactor_engine::job::MergeOptions;

/// Options of a merge; see [`MergeOptions`] for the fields.
pub type MergeRequest = MergeOptions;
