//! Tests `compactor` against real Apache Cassandra in process.
//!
//! [`Cassandra`] starts one JVM per storage compatibility mode (that is, per SSTable version written) and asks it to
//! run CQL, flush, compact, dump, verify and describe SSTables. [`scenarios`] is the list of schemas and mutations
//! that the tests walk through; [`ours`] is the only place that knows how our own merge is called.
//!
//! Maven fetches `cassandra-all` and `javac` compiles `java/` on first use (module `toolchain`); nothing is built when
//! `java` or `mvn` is missing; [`skip`] reports it.

pub mod cases;
mod cassandra;
pub mod compare;
pub mod daemon;
pub mod files;
pub mod findings;
mod jobs;
pub mod lenience;
pub mod old;
pub mod ours;
pub mod parity;
pub mod passes;
pub mod planning;
pub mod pool;
mod program;
pub mod random;
pub mod scenarios;
mod scratch;
mod server;
pub mod skip;
pub mod strategy;
mod template;
mod toolchain;
pub mod usage;

pub use cassandra::{
    Access, Cassandra, CompactRequest, Compacted, Mode, Options, Pipeline, Release, Repair, Table,
};
