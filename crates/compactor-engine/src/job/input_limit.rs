//! How many inputs a merge can read at a time.

use compactor_io::open_files_limit;

use crate::error::{Error, Result};
use crate::input::sstable::InputSstable;
use crate::job::budget::Budget;
use crate::job::options::MergeOptions;
use crate::job::shadow_plan::ShadowPlan;

/// Descriptors that are left for everything but inputs: the output, components being checked, a ring
/// for each I/O thread.
const RESERVED_FILES: u64 = 96;
/// Descriptors that an input being read takes, at most: `Data.db`, and `Index.db` where it is held
/// against the rows; the uring backend has two of each.
const FILES_PER_INPUT: u64 = 4;
/// Inputs that are read at a time however little there is.
const LEAST_AT_ONCE: usize = 2;
/// Uncompressed bytes per chunk of an intermediate SSTable.
pub(crate) const INTERMEDIATE_CHUNK_LEN: u32 = 16 << 10;

/// How many inputs can be read at a time with so much memory, beside what shadows them.
///
/// # Errors
/// What shadows them leaves no room.
pub(crate) fn inputs_at_once(
    buffer_bytes: usize,
    options: &MergeOptions,
    inputs: &[InputSstable],
    shadow: Option<&ShadowPlan>,
) -> Result<usize> {
    let unit = inputs
        .iter()
        .map(InputSstable::block_unit)
        .max()
        .unwrap_or(0);
    // Intermediate ones are among them then.
    let unit = unit.max(INTERMEDIATE_CHUNK_LEN as usize);
    let unit = unit.max(shadow.map_or(0, ShadowPlan::block_unit));
    let by_memory = Budget::inputs_per_pass(buffer_bytes, unit);
    let files = options.open_files.unwrap_or_else(free_files);
    let by_files = usize::try_from(files / FILES_PER_INPUT).unwrap_or(usize::MAX);
    let sources = shadow.map_or(0, ShadowPlan::at_once);
    let room = by_memory.min(by_files);
    if sources > LEAST_AT_ONCE && sources + LEAST_AT_ONCE > room {
        let (what, remedy) = match by_memory <= by_files {
            true => ("memory", "give it more memory"),
            false => ("the number of files that may be open", "raise that limit"),
        };
        return Err(Error::InvalidInput(format!(
            "{sources} overlapping SSTables are to be read at a time for the tombstones they provide, and \
             {what} is enough for {} beside the inputs: {remedy}, or merge without them",
            room.saturating_sub(LEAST_AT_ONCE)
        )));
    }
    Ok(room.saturating_sub(sources).max(LEAST_AT_ONCE))
}

/// Descriptors that this process may still open for inputs.
pub fn free_files() -> u64 {
    let Some(limit) = open_files_limit().soft else {
        return u64::MAX;
    };
    let taken = compactor_io::read_dir("/proc/self/fd").map_or(0, |list| list.count() as u64);
    limit.saturating_sub(taken + RESERVED_FILES)
}
