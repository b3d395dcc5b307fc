//! Cursors, k-way merge, reconciliation, purging, pipeline and publication.
//!
//! [`job::MergeJob`] is the whole of it: it opens inputs and decides what is to be done, merges them and
//! publishes an output. The folders, each of which imports from those before it only:
//!
//! 1. [`read`]: `Data.db` is read ahead, its chunks decompressed, and rows are views over the bytes;
//! 2. [`input`]: what an SSTable's other components say of it, and where they allow to begin reading;
//! 3. [`row`]: versions of a row become one: reconciled, shadowed, purged;
//! 4. [`publish`]: the directory in which outputs are made, and how they appear under their names;
//! 5. [`mod@write`]: an SSTable: bytes, index entries, statistics, compressed blocks, the other components;
//! 6. [`merge`]: partitions of many inputs become one, which is written;
//! 7. [`job`]: what is decided before, ranges of partitions worked off by equal threads and joined in their
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

pub use error::{Error, Result};
