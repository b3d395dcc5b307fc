//! Input of a merge in progress.

use std::sync::Mutex;

use crate::input::range_input::RangeInput;
use crate::merge::merge_input::InputFacts;
use crate::read::input_trace::InputTrace;

/// Input of a merge in progress.
#[derive(Debug)]
pub(crate) struct MergedInput {
    pub(crate) file: RangeInput,
    pub(crate) facts: InputFacts,
    /// Listener for its content; `None` after its end.
    pub(crate) trace: Mutex<Option<Box<dyn InputTrace>>>,
}
