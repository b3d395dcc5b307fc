//! Random schemas and mutations: Cassandra writes the inputs and compacts them, and our merge of the same files must
//! pass the verifier and hold the same rows and statistics.
//!
//! A seed decides everything ([`plan`]). The tables are in no schema and the mutations are given cell by cell, which
//! includes what CQL cannot express: deletions at the timestamp of liveness, expiries apart from TTLs, counter shards of
//! old kinds, rows as views write them.
//!
//! Where Cassandra's result depends on the order of a hash set of inputs, the generator avoids the case: values that
//! compare equal but differ in bytes, and row deletions at the timestamp of a shadowable one.

mod campaign;
mod counters;
mod generate;
mod metadata_text;
mod minimise;
mod other_commands;
mod plan;
mod run;
mod table;
mod types;

pub use campaign::{Campaign, Report, parse_seeds};
pub use generate::{plan, plan_for};
pub use plan::Plan;
pub(crate) use run::{drop_table, make_table, write_input};
