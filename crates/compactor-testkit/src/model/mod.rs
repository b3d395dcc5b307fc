//! Random tables, merges of them by a naive model, and by the engine in memory.
//!
//! A case is a schema, tables and purge settings, all made of [`choices`], which come from a seed or from a fuzzer.
//! [`naive`] merges the tables as Cassandra does, one rule after the other, and [`encode`] writes them;
//! [`comparison`] compares the bytes with the engine's.
#![expect(
    missing_docs,
    missing_debug_implementations,
    clippy::unwrap_used,
    reason = "the names of a model's fields suffice, and functions for tests panic as tests do"
)]

pub mod case;
pub mod choices;
pub mod comparison;
pub mod counters;
pub mod decode;
pub mod encode;
pub mod engine;
pub mod expected_statistics;
pub mod generate;
pub mod naive;
pub mod order;
pub mod promoted;
pub mod stored;
pub mod table;
