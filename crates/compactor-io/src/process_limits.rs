//! Limits of this process that affect I/O.

use rustix::process::{Resource, Rlimit, setrlimit};

use crate::sys::limit::limit_of;

pub use crate::sys::limit::ProcessLimit;

/// Limit on open files (`RLIMIT_NOFILE`).
pub fn open_files_limit() -> ProcessLimit {
    limit_of(Resource::Nofile)
}

/// Raises the soft limit on open files to the hard limit and returns the resulting limit. The tokio-uring
/// backend has two descriptors for a file, and a merge may have thousands of inputs, while 1024 is a common
/// soft limit.
///
/// Meant to be called by programs at their start, not by libraries: the limit applies to the whole process.
/// (It is low for the sake of programs that use `select`.)
pub fn raise_open_files_limit() -> ProcessLimit {
    let limit = limit_of(Resource::Nofile);
    if limit.soft != limit.hard {
        // Refused only by unusual sandboxes; then the old limit is returned.
        let _ = setrlimit(
            Resource::Nofile,
            Rlimit {
                current: limit.hard,
                maximum: limit.hard,
            },
        );
    }
    open_files_limit()
}

/// Remedy if the system refuses a thread.
pub const THREAD_REMEDY: &str = "a limit on threads (`ulimit -u`, TasksMax of a systemd unit, pids.max of a \
     container) or on memory has been reached: raise it, or use fewer threads (--threads)";

/// Limit on locked memory (`RLIMIT_MEMLOCK`), to which older kernels charge io_uring's rings.
pub fn locked_memory_limit() -> ProcessLimit {
    limit_of(Resource::Memlock)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raising_reaches_the_hard_limit() {
        let raised = raise_open_files_limit();
        assert_eq!(raised.soft, raised.hard);
        assert_eq!(open_files_limit(), raised);
    }
}
