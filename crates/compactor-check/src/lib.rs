//! Verifies, inspects, dumps and salvages Apache Cassandra SSTables.
//!
//! - [`mod@verify`]: every checksum, every byte parsed, and every component against the others;
//! - [`mod@scrub`]: salvages the rows of a damaged SSTable into a new one;
//! - [`input_check`]: verifies the inputs of a merge while it runs;
//! - [`mod@dump`]: partitions as JSON, as `sstabledump` prints them;
//! - [`mod@metadata`]: what is in the components other than the data.
#![forbid(unsafe_code)]

mod cancellation;
pub mod dump;
pub mod input_check;
pub mod metadata;
pub mod scrub;
pub mod sstable_report;
pub mod verify;

pub use compactor_engine::{Error, ErrorKind, Result};
