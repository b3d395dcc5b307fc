//! Real Cassandra daemons, and a client that someone else wrote.
//!
//! A `Node` is one `CassandraDaemon` from Maven's jars with directories and ports of its own. `tables` makes tables of
//! every kind in it; `commands` lets the command `compactor` read and rewrite what the node wrote; `workflows` brings
//! what it wrote back into the node, as the guide describes, and compares what a client sees (`view`).

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
