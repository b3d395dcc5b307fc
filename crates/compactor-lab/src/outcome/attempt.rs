//! Common part of runs of all experiments on reads.

use serde::{Deserialize, Serialize};

use super::Warning;

/// A run: its place among others, and whether it counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// Repeat, warm-ups included: with one warm-up the first that counts is 1.
    pub repeat: u32,
    /// Whether it was only to warm up, and is not counted.
    pub warm_up: bool,
    /// Position among all runs of the experiment, from 0.
    pub order: u32,
    /// Time of the start, milliseconds since 1970.
    pub started_at_ms: u64,
    /// Duration with preparation and cleaning.
    pub elapsed_s: f64,
    /// Reasons not to compare it with others; empty for a valid run. Their kinds are `failed`, `fallback`,
    /// `pages_left`, `compaction_too_short`, `generator_late`, `reads_failed`, `hot_set_not_warm`,
    /// `memory_limit_lost`.
    pub invalid: Vec<Warning>,
    /// Caveats that are no reason to discard it.
    pub warnings: Vec<Warning>,
}

impl Attempt {
    /// Whether it is compared with others.
    pub fn counts(&self) -> bool {
        !self.warm_up && self.invalid.is_empty()
    }
}
