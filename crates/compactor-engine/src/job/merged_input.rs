//! Input of a merge in progress.

use std::sync::Mutex;

use crate::input::header_union::ColumnMap;
use crate::input::range_input::RangeInput;
use crate::read::data_trace::DataTrace;

/// Input of a merge in progress.
#[derive(Debug)]
pub(crate) struct MergedInput {
    pub(crate) file: RangeInput,
    pub(crate) map: ColumnMap,
    pub(crate) min_local_deletion_time_s: i64,
    pub(crate) may_have_dropped: bool,
    /// Whether it may have data whose TTL is to be removed.
    pub(crate) has_ttl_to_strip: bool,
    /// Whether an earlier pass wrote it.
    pub(crate) is_intermediate: bool,
    /// Listener for its content; `None` after its end.
    pub(crate) trace: Mutex<Option<Box<dyn DataTrace>>>,
}
