//! Faults that strace injects.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use compactor_testkit::Random;

use crate::faults::setting::{Calls, compactor};

/// System calls that may fail. Excluded: futex and getrandom, whose failure the standard library's locks and
/// hash maps cannot handle; calls that end processes; and those of memory maps, without which neither the
/// loader nor the allocator works (see the tests of limits).
pub const CALLS: &[&str] = &[
    "access",
    "clock_gettime",
    "clone3",
    "close",
    "epoll_create1",
    "epoll_ctl",
    "epoll_wait",
    "eventfd2",
    "fadvise64",
    "fallocate",
    "fchmod",
    "fchown",
    "fcntl",
    "fdatasync",
    "flock",
    "fstat",
    "fstatfs",
    "fsync",
    "ftruncate",
    "getdents64",
    "io_uring_enter",
    "io_uring_register",
    "io_uring_setup",
    "ioctl",
    "lseek",
    "madvise",
    "mincore",
    "mkdir",
    "mkdirat",
    "newfstatat",
    "openat",
    "pread64",
    "preadv2",
    "prlimit64",
    "pwrite64",
    "pwritev2",
    "read",
    "readlink",
    "readlinkat",
    "rename",
    "renameat",
    "renameat2",
    "rmdir",
    "sched_getaffinity",
    "sched_yield",
    "stat",
    "statfs",
    "statx",
    "sync_file_range",
    "sysinfo",
    "unlink",
    "unlinkat",
    "write",
    "cachestat",
];

/// `EACCES` is excluded: a directory above the inputs that may not be listed is skipped, which changes the ids of
/// outputs.
const ERRORS: &[&str] = &[
    "EIO", "EIO", "ENOSPC", "EAGAIN", "EAGAIN", "EINTR", "EINTR", "ENOMEM", "EBUSY", "EPERM",
    "EMFILE", "ENOSYS", "EINVAL", "EDQUOT", "ENOENT", "EEXIST",
];

/// Calls that fail.
#[derive(Debug)]
pub struct Injection {
    pub call: String,
    pub error: &'static str,
    /// Which of each thread's calls fail, in the syntax of strace: `3`, `3+`, `3+2`, `3..5`.
    pub when: String,
    /// A second fault: its call, `error=` or `signal=`, and when.
    pub second: Option<(&'static str, &'static str, String)>,
}

impl Injection {
    pub fn new(call: &str, error: &'static str, when: &str) -> Injection {
        Injection {
            call: call.to_owned(),
            error,
            when: when.to_owned(),
            second: None,
        }
    }

    pub fn with(mut self, call: &'static str, fault: &'static str, when: String) -> Injection {
        self.second = Some((call, fault, when));
        self
    }

    /// A random fault at any call of the command.
    pub fn random(random: &mut Random, calls: &Calls) -> Injection {
        let mut made: Vec<_> = CALLS
            .iter()
            .filter(|call| calls.contains_key(**call))
            .collect();
        made.sort();
        let call = **random.pick(&made);
        let first = 1 + random.index(calls[call]);
        let error = match *random.pick(ERRORS) {
            // The C library takes ENOENT for the end of the directory, and a missing file need not be removed.
            "ENOENT" if ["getdents64", "unlink", "unlinkat"].contains(&call) => "EIO",
            error => error,
        };
        let when = match random.index(6) {
            0..3 => first.to_string(),
            // The standard library would retry an interrupted call forever.
            3 if error != "EINTR" => format!("{first}+"),
            4 => format!("{first}+{}", 2 + random.index(5)),
            _ => format!("{first}..{}", first + 1 + random.index(8)),
        };
        let injection = Injection::new(call, error, &when);
        // A second fault while the first is handled: the process is killed, or the file system fails.
        let second = *random.pick(&["unlink", "rename", "fsync", "ftruncate"]);
        let fault = match second {
            "unlink" => *random.pick(&["error=EROFS", "signal=KILL"]),
            _ => "signal=KILL",
        };
        let at = 1 + random.index(calls.get(second).copied().unwrap_or(1));
        let is_mended = ["fsync", "fdatasync", "ftruncate", "write", "io_uring_enter"];
        if random.index(3) == 0 && is_mended.contains(&call) && second != call {
            injection.with(second, fault, format!("{at}+"))
        } else {
            injection
        }
    }

    /// The command line that runs `command` with this fault.
    pub fn tracer(&self, command: &[String]) -> Vec<String> {
        let Injection {
            call,
            error,
            when,
            second,
        } = self;
        let mut line: Vec<String> = ["strace", "-f", "-qq", "-o", "/dev/null"]
            .map(str::to_owned)
            .to_vec();
        // With this option strace 6.1 never sends the signals that it is to inject.
        let sends = matches!(second, Some((_, fault, _)) if fault.starts_with("signal="));
        if !sends {
            line.push("--seccomp-bpf".to_owned());
        }
        let also = second.as_ref().map(|(call, ..)| format!(",{call}"));
        let also = also.unwrap_or_default();
        line.extend(["-e".to_owned(), format!("trace={call}{also}")]);
        line.push(format!("--inject={call}:error={error}:when={when}"));
        if let Some((call, fault, when)) = second {
            line.push(format!("--inject={call}:{fault}:when={when}"));
        }
        line.extend(command.iter().cloned());
        line
    }
}

/// Counts of each call, in the thread that makes it most often.
pub fn count_calls(arguments: &[String], directory: &Path) -> HashMap<String, usize> {
    let log = directory.join("calls");
    let mut command = Command::new("strace");
    let traced = command.args(["-f", "-qq", "-o"]).arg(&log).arg(compactor());
    let output = traced.args(arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let mut of_threads: HashMap<(String, String), usize> = HashMap::new();
    for line in fs::read_to_string(log).unwrap().lines() {
        let mut words = line.split_whitespace();
        let thread = words.next().unwrap_or_default().to_owned();
        if let Some((call, _)) = words.next().and_then(|word| word.split_once('(')) {
            *of_threads.entry((thread, call.to_owned())).or_default() += 1;
        }
    }
    let mut most = HashMap::new();
    for ((_, call), count) in of_threads {
        let of_call: &mut usize = most.entry(call).or_default();
        *of_call = count.max(*of_call);
    }
    most
}
