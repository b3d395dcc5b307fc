//! Where files live that nobody keeps.

use std::path::{Path, PathBuf};

/// Space that servers and their files take, with room to spare.
const ENOUGH_BYTES: u64 = 4 << 30;

/// In memory where there is enough of it, so that nothing waits for a disk; the system's temporary directory otherwise.
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
