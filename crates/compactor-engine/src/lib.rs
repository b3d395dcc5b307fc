//! Cursors, k-way merge, reconciliation, purging, pipeline and publication.
//!
//! [`merge_job::MergeJob`] is the whole of it: it opens inputs and decides what is to be done, and
//! [`merge_run`] merges them and publishes an output.
//! The way of the data:
//!
//! 1. [`decode`]: extents are read ahead, and their chunks decompressed by whoever needs them next, or ahead
//!    of it by threads that wait for something else ([`workers`]);
//! 2. [`window`] and [`cursor`]: contiguous bytes, and rows as views over them;
//! 3. [`partition_merge`], [`row_merge`], [`reconcile`], [`purge`]: many versions become one;
//!    [`shadow_sources`] and [`row_shadow`]: what SSTables beside the merge remove of it;
//! 4. [`partition_writer`]: bytes, index entries and statistics;
//! 5. what ranges of partitions come to is joined in their order, and in [`data_output`] its blocks are
//!    compressed by any thread and written in order;
//! 6. [`sstable_writer`], [`staging`]: the other components, and publication.
//!
//! This crate prints nothing, parses no options and chooses no SSTables.
#![forbid(unsafe_code)]

pub mod big_index_output;
pub mod bti_index_output;
pub mod budget;
pub mod component_list;
mod contest;
pub mod counter_merge;
pub mod cursor;
pub mod data_output;
pub mod decode;
pub mod dropped_columns;
pub mod each_of_many;
pub mod error;
pub mod header_union;
mod index_heads;
pub mod input;
pub mod inputs_at_open;
pub mod key_estimate;
pub mod key_range;
mod marker;
pub mod merge_counts;
pub mod merge_input;
pub mod merge_job;
pub mod merge_run;
mod newest_plain;
pub mod observer;
pub mod output_blocks;
pub mod output_claim;
pub mod output_id;
mod outputs;
pub mod overlapping;
pub mod partition_merge;
pub mod partition_writer;
pub mod passes;
mod places_hash;
pub mod publication;
pub mod purge;
mod range_input;
mod range_output;
mod range_places;
mod range_plan;
mod range_run;
pub mod rate_limiter;
pub mod reconcile;
pub mod repair_group;
pub mod replaceable;
mod replacement;
pub mod row_merge;
pub mod row_shadow;
pub mod run_directory;
pub mod scan;
mod scanner_order;
mod shadow_plan;
pub mod shadow_sources;
pub mod source_heap;
mod splicer;
pub mod sstable_index;
pub mod sstable_writer;
pub mod staging;
pub mod tombstone_option;
pub mod tournament;
pub mod transaction_file;
mod trie_places;
mod turns;
pub mod window;
pub mod workers;

pub use error::{Error, Result};
