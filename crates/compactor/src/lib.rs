//! Merge Apache Cassandra SSTables outside the JVM.
//!
//! ```no_run
//! use compactor::catalog;
//!
//! # fn main() -> Result<(), compactor::Error> {
//! let found = catalog::find(&["snapshot".into()])?;
//! // The schema beside them says how long tombstones must live.
//! let mut request = found.merge_request("merged");
//! request.scope = compactor::Scope::Complete;
//! let report = compactor::merge(request, &mut compactor::NoObserver)?;
//! println!("{} partitions", report.partitions_written);
//! # Ok(())
//! # }
//! ```
//!
//! [`merge()`] is the main thing; [`catalog`] finds SSTables, [`Scan`] reads one row by row,
//! [`verify`], [`dump`] and [`metadata`] look at them, [`generate`] makes some.
#![forbid(unsafe_code)]

pub mod catalog;
pub mod compact;
pub mod concurrent;
pub mod dump;
pub mod error;
pub mod generate;
pub mod live_directory;
pub mod merge;
pub mod metadata;
pub mod node_command;
pub mod node_processes;
pub mod output_directory;
pub mod output_layout;
pub mod process;
pub mod report;
mod request;
pub mod run_record;
pub mod scrub;
pub mod swap;
pub mod verify;

pub use compactor_engine::input::Scan;
pub use compactor_engine::job::{MergeJob, OutputCompression, Scope, TombstoneOption};
pub use compactor_engine::merge::{InputRead, MergeCounts, Observer};
pub use compactor_engine::read::RateLimiter;
pub use compactor_engine::{Error as EngineError, Result as EngineResult, input, read};
pub use compactor_io as io;
pub use compactor_sstable as sstable;
pub use compactor_strategy as strategy;
pub use error::{Error, ErrorKind, Result};
pub use merge::{
    InputCheck, MergeRequest, NoObserver, merge, open_merge, open_merge_groups, run_merge,
    run_merges_recorded, run_merges_together,
};
pub use node_command::NodeCommand;
pub use output_directory::{ExistingOutput, OutputClaim};
pub use output_layout::{OutputLayout, TableName};
pub use report::{CompressionReport, MergeReport};

/// The examples of README.md, compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct ReadmeExamples;
