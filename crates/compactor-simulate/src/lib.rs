//! Simulation of a table's compactions over time: flushes arrive, a strategy selects, compactors merge.
//!
//! The strategies are those of `compactor-strategy`, which select as a node does. SSTables have no rows here:
//! they are a token range with [cohorts](cohort::Cohort), numbers of rows that were written at about the same
//! time. A merge computes the expected number of rows that remain. Nothing is read or written, no clock is
//! used, and equal [`Setup`]s have equal [`Outcome`]s.
//!
//! ```
//! use compactor_simulate::{Setup, simulate};
//! use compactor_strategy::{CompactionParams, options::Options, release::Release};
//!
//! let strategy = CompactionParams::from_options(
//!     "SizeTieredCompactionStrategy",
//!     &Options::new(),
//!     Release::V6_0,
//! )?;
//! let outcome = simulate(&Setup::new(strategy))?;
//! assert!(outcome.write_amplification > 1.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(unsafe_code)]

mod arrivals;
pub mod cohort;
mod compactors;
mod distribution;
mod lifetime;
mod measure;
mod merge;
mod meter;
pub mod outcome;
mod outputs;
mod overlap;
mod popularity;
mod random;
mod segments;
pub mod selection;
pub mod setup;
mod setup_error;
mod shadow;
mod simulation;
mod stored;
mod table;
pub mod workload;

pub use distribution::Distribution;
pub use measure::level_count;
pub use outcome::Outcome;
pub use selection::Selection;
pub use setup::Setup;
pub use setup_error::SetupError;
pub use simulation::{simulate, simulate_with};
pub use workload::Workload;
