//! Number of an SSTable's partitions, and a sample of them.

use std::sync::Arc;

use crate::token::Token;

/// Number of partitions of an SSTable and where they are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeyEstimate {
    /// Estimated number of partitions (`estimatedKeys`).
    pub keys: u64,
    /// Partitions of the cell count histogram (`getEstimatedCellPerPartitionCount`).
    pub partitions: u64,
    /// Sampled partitions. `None`: evenly distributed between first and last, as for BTI, which has no
    /// summary, and in simulations.
    pub samples: Option<KeySamples>,
}

/// Entries of an index summary.
#[derive(Clone, Debug, PartialEq)]
pub struct KeySamples {
    /// Their tokens, ascending.
    pub tokens: Arc<[Token]>,
    /// Partitions per entry.
    pub keys_per_sample: u64,
}
