//! Merge Apache Cassandra SSTables outside the JVM.
//!
//! ```no_run
//! use compactor::Table;
//!
//! # fn main() -> Result<(), compactor::Error> {
//! // gc_grace_seconds, types and dropped columns are those of its schema.cql.
//! let table = Table::open("snapshot")?;
//! let merged = table.merge().complete().into("merged")?;
//! println!("{} partitions written", merged.partitions_written());
//! # Ok(())
//! # }
//! ```
//!
//! [`Table`] finds the SSTables of a table and merges, compacts, upgrades, splits and scrubs them.
//! [`Table::rows`] reads merged rows; [`verify`] checks SSTables, [`dump`] and [`metadata`] inspect one each;
//! [`generate`] writes tables of synthetic data.
#![forbid(unsafe_code)]

pub mod compact;
mod concurrent;
mod described;
pub mod generate;
pub mod merge;
pub mod node_processes;
mod partition_output;
pub mod process;
pub mod report;
pub mod run_record;
pub mod swap;
pub mod table;
mod table_directories;
mod time_uuid;
pub mod verify;
pub mod writer;

pub use compactor_check::input_check::InputCheck;
pub use compactor_check::{dump, metadata, scrub};
pub use compactor_engine::job::MergeOptions as MergeRequest;
pub use compactor_engine::job::{MergeJob, OutputCompression, OutputSplit, Scope, TombstoneOption};
pub use compactor_engine::merge::{MergeCounts, NoObserver, Observer};
pub use compactor_engine::read::RateLimiter;
pub use compactor_engine::{Error, ErrorKind, Result};
pub use compactor_io::{BackendKind, Io, IoOptions, ReadMode, WriteMode};
pub use compactor_sstable::compression::codec::Codec;
pub use compactor_sstable::compression::info::CompressionParams;
pub use compactor_sstable::schema::Table as TableSchema;
pub use compactor_sstable::types::Value;
pub use compactor_sstable::{Component, Corruption, Format, Version};
pub use report::{CompressionReport, MergeReport};

pub use table::{
    Compression, ExistingOutput, Merged, OutputForm, Purging, Resources, Table, TableName,
};
pub use writer::SstableWriter;

/// The examples of README.md and of the guide, compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
#[doc = include_str!("../../compactor-cli/docs/library.md")]
struct DocumentedExamples;
