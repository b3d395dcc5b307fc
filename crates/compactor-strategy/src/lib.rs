//! Selection of the SSTables to compact next, by Cassandra's rules, from the state of a table. Nothing is
//! read or written here, and no clock is used.
//!
//! Source: package `org.apache.cassandra.db.compaction` of Cassandra 6.0-alpha2.

pub mod java_hash_map;
pub mod options;
pub mod size_tiered;
pub mod tombstones;

pub use options::OptionError;
