//! Tests of the engine's merge against a naive model, and of its jobs on real files under all kinds of
//! faults.
//!
//! Random cases print their first seed; `COMPACTOR_CAMPAIGN` decides their number.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod against_the_model;
mod counter_maps;
mod equal_clusterings;
mod faults;
mod file_merges;
mod files;
mod hostile;
mod killed;
mod layers;
mod metamorphic;
mod provided;
mod ranges;
mod regressions;
mod simple_rows;
mod split;
mod strip_ttl;
mod visible;
