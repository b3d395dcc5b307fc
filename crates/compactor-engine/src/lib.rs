//! Cursors, k-way merge, reconciliation, purging, pipeline and publication.
//!
//! [`job::MergeJob`] is the entry point: it opens inputs, decides the settings, merges, and publishes an
//! output. The folders, each of which imports only from those before it:
//!
//! 1. [`read`]: reads `Data.db` ahead, decompresses its chunks, and presents rows as views over the bytes;
//! 2. [`input`]: the other components of an SSTable, and the positions at which reading can begin;
//! 3. [`row`]: merges the versions of a row: reconciliation, shadowing, purging;
//! 4. [`publish`]: the directory in which outputs are created, and their publication;
//! 5. [`mod@write`]: writes an SSTable: data, index entries, statistics, compressed blocks, the other
//!    components;
//! 6. [`merge`]: merges the partitions of many inputs;
//! 7. [`job`]: a whole merge: settings, ranges of partitions that equal threads merge and that are joined in
//!    order, passes.
//!
//! The files of a folder are private to the engine; its `mod.rs` names what other crates may use.
//!
//! This crate prints nothing, parses no options and chooses no SSTables.
#![forbid(unsafe_code)]

mod error;
pub mod input;
pub mod job;
pub mod merge;
pub mod publish;
pub mod read;
pub mod row;
pub mod write;

pub use error::{Error, ErrorKind, Result};
