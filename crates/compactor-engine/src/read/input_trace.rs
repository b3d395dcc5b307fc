//! Listener for the partitions of an input that is read in parts, by several threads.

use std::ops::Range;

use crate::read::data_trace::DataTrace;
use crate::read::trace_batch::TraceBatch;

/// Listener for all partitions of an input, which is read in parts.
pub trait InputTrace: std::fmt::Debug + Send {
    /// Returns a listener for the partitions that begin in `positions`, while others listen to the partitions
    /// before and after. `None` if this listener needs all partitions in order: then it gets them in batches.
    fn of_part(&mut self, positions: Range<u64>) -> Option<Box<dyn DataTrace>>;

    /// The next events, in the order of the input.
    fn batch(&mut self, batch: TraceBatch);

    /// There are no more partitions.
    fn end(&mut self);
}
