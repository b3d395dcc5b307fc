//! Tests of the formats and types against Cassandra's files, in one binary.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bti;
mod generate;
mod rebuild;
mod types;
