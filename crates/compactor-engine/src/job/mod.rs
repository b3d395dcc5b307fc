//! A whole merge: settings derived from the inputs' metadata, ranges of partitions merged by equal threads,
//! several passes over too many inputs, and publication.

pub(crate) mod budget;
pub(crate) mod disjoint_chains;
pub(crate) mod earlier_passes;
pub(crate) mod fully_expired;
pub(crate) mod merge_job;
pub(crate) mod merge_run;
pub(crate) mod merged_input;
pub(crate) mod merged_rows;
pub(crate) mod options;
mod output_boundaries;
pub(crate) mod output_plan;
pub(crate) mod output_settings;
pub(crate) mod output_split;
pub(crate) mod overlapping;
pub(crate) mod overlapping_sstable;
pub(crate) mod pass;
pub(crate) mod passes;
pub(crate) mod range_output;
pub(crate) mod range_plan;
pub(crate) mod range_run;
pub(crate) mod range_sequencer;
pub(crate) mod range_summary;
pub(crate) mod refused_inputs;
pub(crate) mod shadow_plan;
pub(crate) mod splicer;
pub(crate) mod staged_merge;
pub(crate) mod token_shards;
pub(crate) mod tombstone_option;
pub(crate) mod tombstone_sources;

pub use budget::{Budget, Demands, free_files};
pub use disjoint_chains::DisjointChains;
pub use merge_job::MergeJob;
pub use merged_rows::{MergedRows, RowBlocks};
pub use options::{MergeOptions, OutputCompression, Scope};
pub use output_settings::decide_settings;
pub use output_split::OutputSplit;
pub use overlapping::{OutsideSstables, OverlappingSet};
pub use overlapping_sstable::OverlappingSstable;
pub use refused_inputs::refuse_duplicates;
pub use staged_merge::{MergeOutcome, StagedMerge, publish};
pub use tombstone_option::TombstoneOption;
