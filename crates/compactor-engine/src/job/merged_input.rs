//! An input of a merge under way.

use std::sync::Mutex;

use crate::input::header_union::ColumnMap;
use crate::input::range_input::RangeInput;
use crate::read::data_trace::DataTrace;

/// An input, and what the merge makes of it.
#[derive(Debug)]
pub(crate) struct MergedInput {
    pub(crate) file: RangeInput,
    pub(crate) map: ColumnMap,
    pub(crate) min_local_deletion_time_s: i64,
    pub(crate) may_have_dropped: bool,
    /// An earlier pass made it.
    pub(crate) is_intermediate: bool,
    /// Until all has been told.
    pub(crate) trace: Mutex<Option<Box<dyn DataTrace>>>,
}
