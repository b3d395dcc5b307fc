//! Number of times that each arm is run.

/// Repeats of each arm.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Repeats {
    pub(crate) warm_ups: u32,
    pub(crate) counted: u32,
}
