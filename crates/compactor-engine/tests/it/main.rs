//! Tests of the engine's merge against a naive model, and of its jobs on real files under all kinds of
//! faults.
//!
//! Random cases print their first seed; `COMPACTOR_TEST_CASES` multiplies their number.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod against_the_model;
mod case;
mod choices;
mod counters;
mod decode;
mod encode;
mod engine;
mod equal_clusterings;
mod expected_statistics;
#[path = "../../../compactor-io/tests/it/fault_backend.rs"]
mod fault_backend;
mod faults;
mod file_merges;
mod files;
mod generate;
mod hostile;
mod killed;
mod layers;
mod metamorphic;
mod model;
mod order;
mod promoted;
mod provided;
mod ranges;
mod regressions;
mod simple_rows;
mod split;
mod stored;
mod table;
mod visible;
