//! Directory of the files, if none is asked for.

use std::path::Path;

use procfs::{Current, Meminfo};

use crate::table::free_bytes;

/// A file system in memory, on most systems.
const IN_MEMORY: &str = "/dev/shm";
/// Free room and free memory, as a multiple of what is needed: others need some as well.
const SPARE: u64 = 2;

/// A directory in memory, if there is one with room to spare. Thousands of small SSTables are written, each with the
/// syncs of its files, which take longer on a disk than everything else, and are not measured.
pub fn directory_in_memory(needed_bytes: u64) -> Option<&'static Path> {
    let directory = Path::new(IN_MEMORY);
    let available = Meminfo::current().ok()?.mem_available?;
    let room = free_bytes(directory)?.min(available);
    (room >= needed_bytes.saturating_mul(SPARE)).then_some(directory)
}
