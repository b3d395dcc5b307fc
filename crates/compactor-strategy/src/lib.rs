//! Selection of the SSTables to compact next, by Cassandra's rules, from the state of a table. Nothing is
//! read or written here, and no clock is used.
//!
//! Source: package `org.apache.cassandra.db.compaction` of Cassandra 5.0.5 and 6.0-alpha2.

pub mod context;
pub mod droppable;
mod expired;
pub mod java_hash_map;
pub mod key_estimate;
mod keys;
pub mod level_count;
pub mod leveled;
pub mod live;
pub mod manager;
mod members;
pub mod model;
pub mod options;
pub mod params;
pub mod random;
pub mod release;
mod ring;
mod size_text;
pub mod size_tiered;
pub mod sstable;
pub mod strategy;
pub mod task;
pub mod time_window;
pub mod token;
pub mod tombstones;
pub mod unified;

pub use manager::{CompactionStrategyManager, Group};
pub use options::OptionError;
pub use params::{CompactionParams, StrategyOptions};
