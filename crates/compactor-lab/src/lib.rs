//! Experiments on the effect of a compaction on reads of the same machine, and on its speed
//! ([`mod@bench`]).
//!
//! Every experiment runs its arms once in each repeat, in an order drawn anew, and each run yields
//! [figures](figure::Figure). A [`Comparison`](comparison::Comparison) has their medians, intervals, ratios and
//! caveats, whatever the experiment, and a [`Report`](report::Report) shows it.
//!
//! - [`interference()`]: p99 of reads of hot rows while their table is compacted, in each I/O mode.
//! - [`chunk_length`]: cost of the same reads of the same rows, stored with several chunk lengths and
//!   compressors.
//! - [`fan_out`]: bytes that leveled compaction writes by fan-out and SSTable size, in comparison with the
//!   simulator and a formula.
//! - [`fio`]: models of both, and the ceilings of the device, without SSTables.
//! - [`mod@bench`]: speed of a merge in comparison with a plain copy, the codec alone, and Cassandra.
//!
//! An outcome has everything that was measured; a report can be made of it at any time.
#![deny(unsafe_code)]

pub mod arm;
pub mod bench;
mod caveats;
mod cgroup;
pub mod chunk_length;
mod clocks;
mod compaction;
mod compare;
pub mod comparison;
mod counters;
mod data_file;
mod draw;
mod environment;
mod experiment;
pub mod fan_out;
pub mod figure;
pub mod fio;
mod foreground;
mod hot_set;
mod index_map;
mod interference;
mod load;
mod lookup;
pub mod options;
pub mod outcome;
mod parallel;
mod point_read;
pub mod priority;
mod random;
pub mod report;
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

pub use interference::interference;
