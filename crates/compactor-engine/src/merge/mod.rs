//! Merging the partitions of several inputs: the order of inputs, the rows and markers that are written, and what
//! overlapping SSTables shadow.

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
pub use merge_input::{InputFacts, MergeInput};
pub use observer::{InputRead, NoObserver, Observer};
pub use partition_merge::PartitionMerger;
