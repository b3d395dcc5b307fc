//! Experiments on what a compaction does to others on the same machine.
//!
//! The interference experiment answers one question for a disk: what happens to the p99 of reads of
//! hot partitions while their table is compacted, in each way of moving the compaction's bytes? Its
//! result is an [`Outcome`](outcome::Outcome), which is all that reports are made of.
#![forbid(unsafe_code)]

pub mod arm;
pub mod outcome;
mod random;
pub mod report;
pub mod stats;
pub mod text_table;
