//! Where the outputs of a merge begin, if their number or tokens are given.

use compactor_sstable::partitioner::Position;

/// Where the outputs of a merge begin. It depends only on the inputs: a merge in passes decides it before the first
/// pass.
#[derive(Clone, Debug, Default)]
pub(crate) struct OutputPlan {
    /// First position of each output but the first.
    pub(crate) splits: Vec<Position>,
    /// Expected partitions of each output, if they differ.
    pub(crate) keys: Vec<u64>,
}

impl OutputPlan {
    /// Number of outputs, if something is left for each.
    pub(crate) fn count(&self) -> usize {
        self.splits.len() + 1
    }
}
