//! Shared by tests, benches, fuzz targets and `interop`; not published.
//!
//! [`mod@skip`], [`campaign`], [`random`], [`machine`] and [`exit`] know no other crate of the workspace, so that unit tests of each
//! can use them.

pub mod campaign;
pub mod exit;
#[cfg(feature = "io")]
pub mod fault_backend;
#[cfg(feature = "io")]
pub mod io;
pub mod machine;
#[cfg(feature = "model")]
pub mod model;
pub mod random;
pub mod skip;

pub use random::Random;
pub use skip::{Need, skip, skip_part};
