//! Partitions of several inputs become one: which input is next, what of it is written, and what SSTables
//! beside the merge remove of it.

pub(crate) mod contest;
pub(crate) mod marker;
pub(crate) mod merge_counts;
pub(crate) mod merge_input;
pub(crate) mod newest_plain;
pub(crate) mod observer;
pub(crate) mod partition_merge;
pub(crate) mod shadow_sources;
pub(crate) mod tournament;

pub use merge_counts::MergeCounts;
pub use merge_input::MergeInput;
pub use observer::{InputRead, Observer};
pub use partition_merge::PartitionMerger;
