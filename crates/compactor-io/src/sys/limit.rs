//! Limits of the process. `rustix` provides them, but panics if a sandbox refuses the call.
#![expect(unsafe_code, reason = "a system call without a wrapper")]

use rustix::process::Resource;

/// A soft limit and the hard limit to which it can be raised; `None` is unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessLimit {
    /// Current limit.
    pub soft: Option<u64>,
    /// Maximum to which the process may raise the soft limit.
    pub hard: Option<u64>,
}

/// Limit on open files, locked memory or file sizes; unlimited if the system does not report it.
pub(crate) fn limit_of(resource: Resource) -> ProcessLimit {
    let unlimited = ProcessLimit {
        soft: None,
        hard: None,
    };
    let number = match resource {
        Resource::Nofile => libc::RLIMIT_NOFILE,
        Resource::Memlock => libc::RLIMIT_MEMLOCK,
        Resource::Fsize => libc::RLIMIT_FSIZE,
        _ => return unlimited,
    };
    let mut found = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: the structure is of the type that the call fills.
    let result = unsafe { libc::getrlimit(number, &raw mut found) };
    if result != 0 {
        return unlimited;
    }
    let known = |value| (value != libc::RLIM_INFINITY).then_some(value);
    ProcessLimit {
        soft: known(found.rlim_cur),
        hard: known(found.rlim_max),
    }
}
