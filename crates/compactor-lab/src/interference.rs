//! Interference experiment: p99 of reads of hot rows while their table is compacted, in each I/O mode.

mod experiment;
mod run;

pub use experiment::interference;
