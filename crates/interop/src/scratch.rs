//! Directories for temporary files.

use std::path::{Path, PathBuf};

/// Space that servers and their files take, with room to spare.
const ENOUGH_BYTES: u64 = 4 << 30;

/// Returns a directory in memory if there is enough of it, so that nothing waits for a disk; otherwise the system's
/// temporary directory.
#[must_use]
pub fn scratch() -> PathBuf {
    let memory = Path::new("/dev/shm");
    match rustix::fs::statvfs(memory) {
        Ok(found) if found.f_bavail.saturating_mul(found.f_frsize) >= ENOUGH_BYTES => {
            memory.to_owned()
        }
        _ => std::env::temp_dir(),
    }
}
