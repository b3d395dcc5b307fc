//! Experiments on the effect of a compaction on reads of the same machine, and on its speed
//! ([`mod@bench`]).
//!
//! The interference experiment answers one question for a disk: what is the p99 of reads of hot
//! partitions while their table is compacted, in each way of moving the compaction's bytes? Its
//! result is an [`Outcome`](outcome::Outcome), which is all that reports are made of.
//!
//! The chunk-length experiment measures what the same reads cost when the same rows are stored in chunks of
//! other lengths and with other compressors; its result is a
//! [`ChunkLengthOutcome`](chunk_length::ChunkLengthOutcome).
#![deny(unsafe_code)]

pub mod arm;
pub mod bench;
mod caveats;
mod cgroup;
pub mod chunk_length;
mod clocks;
mod compaction;
pub mod comparison;
mod counters;
mod data_file;
mod environment;
mod experiment;
pub mod figure;
pub mod fio;
mod foreground;
mod hot_set;
mod index_map;
mod load;
mod lookup;
mod observer;
pub mod options;
pub mod outcome;
mod parallel;
mod point_read;
pub mod priority;
mod random;
pub mod report;
mod run;
mod sampler;
mod schedule;
pub mod scratch;
mod session;
pub mod stats;
mod table;
pub mod text_table;
mod validity;
mod warnings;
pub mod watcher;

pub use experiment::interference;
