//! All of Cassandra's SSTable formats, parsed from slices and written to sinks.
//!
//! This crate opens no files, starts no threads and reads no clocks: input is slices, and output is
//! `Vec<u8>`. It can therefore be tested and fuzzed in memory. The caller that opened a file adds its name to
//! an error with [`Error::with_file`].
//!
//! Start with [`descriptor::Descriptor`] (file names), [`statistics::Statistics`] (metadata), and [`data`]
//! (partitions, rows and cells).
#![forbid(unsafe_code)]

pub mod big;
pub mod bloom_filter;
pub mod bti;
pub mod byte_reader;
pub mod byte_sink;
pub mod component;
pub mod compression;
pub mod data;
pub mod descriptor;
pub mod digest;
pub mod error;
mod hex;
pub mod partitioner;
pub mod schema;
pub mod sstable_id;
pub mod statistics;
pub mod toc;
pub mod transaction_log;
pub mod types;
pub mod version;
pub mod vint;

pub use component::Component;
pub use error::{Corruption, Error, Result};
pub use version::{Format, Version};
