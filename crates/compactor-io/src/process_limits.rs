//! Limits of this process that affect I/O.

use rustix::process::{Resource, Rlimit, setrlimit};

use crate::sys::limit::limit_of;

/// A soft limit and the hard limit to which it can be raised; `None` is unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessLimit {
    /// Current limit.
    pub soft: Option<u64>,
    /// Maximum to which the process may raise the soft limit.
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

/// Limit on open files (`RLIMIT_NOFILE`).
pub fn open_files_limit() -> ProcessLimit {
    limit_of(Resource::Nofile).into()
}

/// Raises the soft limit on open files to the hard limit and returns the resulting limit. The tokio-uring
/// backend has two descriptors for a file, and a merge may have thousands of inputs, while 1024 is a common
/// soft limit.
///
/// Meant to be called by programs at their start, not by libraries: the limit applies to the whole process.
/// (It is low for the sake of programs that use `select`.)
pub fn raise_open_files_limit() -> ProcessLimit {
    let limit = limit_of(Resource::Nofile);
    if limit.current != limit.maximum {
        // Refused only by unusual sandboxes; then the old limit is returned.
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

/// Remedy if the system refuses a thread.
pub const THREAD_REMEDY: &str = "a limit on threads (`ulimit -u`, TasksMax of a systemd unit, pids.max of a \
     container) or on memory has been reached: raise it, or use fewer threads (--threads)";

/// Limit on locked memory (`RLIMIT_MEMLOCK`), to which older kernels charge io_uring's rings.
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
