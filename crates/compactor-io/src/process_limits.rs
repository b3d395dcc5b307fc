//! Limits of this process that I/O runs into.

use rustix::process::{Resource, Rlimit, setrlimit};

use crate::sys::limit::limit_of;

/// A soft limit and the hard one that it can be raised to; `None` is unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessLimit {
    /// What counts now.
    pub soft: Option<u64>,
    /// The most that the process may set by itself.
    pub hard: Option<u64>,
}

impl From<Rlimit> for ProcessLimit {
    fn from(limit: Rlimit) -> Self {
        ProcessLimit {
            soft: limit.current,
            hard: limit.maximum,
        }
    }
}

/// The limit of open files (`RLIMIT_NOFILE`).
pub fn open_files_limit() -> ProcessLimit {
    limit_of(Resource::Nofile).into()
}

/// Raises the soft limit of open files to the hard one and returns what then holds. The
/// tokio-uring backend has two descriptors for a file, and a merge has thousands of inputs, while 1024 is a
/// usual soft limit.
///
/// For programs to call at their start, not for libraries: the limit belongs to the process. (It
/// is low for the sake of programs that use `select`.)
pub fn raise_open_files_limit() -> ProcessLimit {
    let limit = limit_of(Resource::Nofile);
    if limit.current != limit.maximum {
        // Refused only by exotic sandboxes; then the old limit holds, and is returned.
        let _ = setrlimit(
            Resource::Nofile,
            Rlimit {
                current: limit.maximum,
                maximum: limit.maximum,
            },
        );
    }
    open_files_limit()
}

/// What to do where the system refuses a thread.
pub const THREAD_REMEDY: &str = "a limit on threads (`ulimit -u`, TasksMax of a systemd unit, pids.max of a \
     container) or on memory has been reached: raise it, or use fewer threads (--threads)";

/// The limit of locked memory (`RLIMIT_MEMLOCK`), which older kernels charge rings of io_uring to.
pub fn locked_memory_limit() -> ProcessLimit {
    limit_of(Resource::Memlock).into()
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
