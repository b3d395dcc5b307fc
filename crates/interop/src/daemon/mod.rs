//! Real Cassandra daemons, and a third-party client.
//!
//! A `Node` is one `CassandraDaemon` from Maven's jars with its own directories and ports. `tables` creates tables of
//! every kind in it; `commands` runs the command `compactor` on what the node wrote; `workflows` brings the outputs
//! back into the node, as the guide describes; `view` compares what a client sees.

mod campaign;
mod client;
mod commands;
mod configuration;
mod content;
mod journal;
mod kind;
mod node;
mod nodetool;
mod pair;
mod parity;
mod process;
pub mod skip;
mod snapshot;
pub mod tables;
mod tools;
mod view;
mod workflows;
mod written;

pub use campaign::{Campaign, Outcome, Part};
pub use kind::Kind;
pub use pair::Pair;
