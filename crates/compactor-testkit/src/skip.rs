//! Tests that cannot run on this machine: reported when the test binary ends, and failed if `COMPACTOR_REQUIRE` names
//! what is missing.
//!
//! libtest hides what a passing test prints, so the report is written to the standard error stream itself, one line per
//! reason:
//!
//! ```text
//! SKIPPED 3 tests: strace is not installed, or may not trace
//! ```
//!
//! `COMPACTOR_REQUIRE` is `all`, or names of [`Need`] separated by commas.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display};
use std::io::Write;
use std::panic::Location;
use std::sync::{Mutex, Once, PoisonError};

use crate::exit::at_exit;

/// Something that a test needs and a machine may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Java and Maven, and the releases of Cassandra that Maven fetches.
    Cassandra,
    /// Control groups of version 2 that can be created.
    Cgroup,
    /// A browser without a window.
    Chromium,
    /// Requirements of Cassandra as a daemon: `setpriv`, `nice`, and a client that pip installs.
    Daemons,
    /// A file system with `O_DIRECT`.
    DirectIo,
    /// A kernel and a file system with `RWF_DONTCACHE`.
    DontCache,
    /// The benchmark `fio`.
    Fio,
    /// A kernel that permits io_uring.
    IoUring,
    /// The right to mount file systems, and `mkfs.ext4`.
    Mount,
    /// A file system whose clean pages can be dropped from the page cache.
    PageCache,
    /// Root, with the right to act as other users.
    Root,
    /// The right to install a filter of system calls.
    Seccomp,
    /// SSTables that others wrote, which the repository does not have.
    SharedSstables,
    /// `strace`, with the right to trace.
    Strace,
    /// `/dev/shm`, without direct I/O.
    Tmpfs,
}

/// Needs and their names in `COMPACTOR_REQUIRE`.
const NAMES: [(Need, &str); 15] = [
    (Need::Cassandra, "cassandra"),
    (Need::Cgroup, "cgroup"),
    (Need::Chromium, "chromium"),
    (Need::Daemons, "daemons"),
    (Need::DirectIo, "direct-io"),
    (Need::DontCache, "dontcache"),
    (Need::Fio, "fio"),
    (Need::IoUring, "io_uring"),
    (Need::Mount, "mount"),
    (Need::PageCache, "page-cache"),
    (Need::Root, "root"),
    (Need::Seccomp, "seccomp"),
    (Need::SharedSstables, "shared-sstables"),
    (Need::Strace, "strace"),
    (Need::Tmpfs, "tmpfs"),
];

impl Need {
    /// Whether `COMPACTOR_REQUIRE` names it.
    ///
    /// # Panics
    /// If `COMPACTOR_REQUIRE` has a name that is not known.
    pub fn is_required(self) -> bool {
        let text = std::env::var("COMPACTOR_REQUIRE").unwrap_or_default();
        let required = parse(&text).unwrap_or_else(|error| panic!("{error}"));
        required.contains(&self)
    }
}

impl Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES.iter().find(|(need, _)| need == self);
        let (_, name) = name.expect("every need has a name");
        f.write_str(name)
    }
}

/// Reports that the current test does not run, for lack of `need`.
///
/// Call it on the thread of the test. `reason` should be the same in every run: each is a line of the report.
///
/// # Panics
/// If `COMPACTOR_REQUIRE` names the need.
#[track_caller]
pub fn skip(need: Need, reason: impl Display) {
    add(need, Kind::Whole, &reason.to_string());
}

/// Reports that a part of the current test does not run, as [`skip`].
///
/// # Panics
/// If `COMPACTOR_REQUIRE` names the need.
#[track_caller]
pub fn skip_part(need: Need, reason: impl Display) {
    add(need, Kind::Part, &reason.to_string());
}

/// Reports that the current test does not run by choice, which is never a failure.
#[track_caller]
pub(crate) fn note(reason: &str) {
    record(Kind::Whole, reason);
}

/// As [`note`], for a part of the current test.
#[track_caller]
pub(crate) fn note_part(reason: &str) {
    record(Kind::Part, reason);
}

#[track_caller]
fn add(need: Need, kind: Kind, reason: &str) {
    assert!(
        !need.is_required(),
        "COMPACTOR_REQUIRE names {need}, but {reason}"
    );
    record(kind, reason);
}

/// Part of a test that is skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Whole,
    Part,
}

/// Names of the tests that were skipped, by extent and reason.
type Skipped = BTreeMap<(Kind, String), BTreeSet<String>>;

static SKIPPED: Mutex<Skipped> = Mutex::new(BTreeMap::new());

#[track_caller]
fn record(kind: Kind, reason: &str) {
    report_at_exit();
    let mut skipped = SKIPPED.lock().unwrap_or_else(PoisonError::into_inner);
    let tests = skipped.entry((kind, reason.to_owned())).or_default();
    tests.insert(current_test());
}

/// The name of the thread, which libtest names after the test. With one test thread libtest starts none; then the line
/// of the call distinguishes most tests.
#[track_caller]
fn current_test() -> String {
    match std::thread::current().name() {
        Some(name) if name != "main" => name.to_owned(),
        _ => Location::caller().to_string(),
    }
}

fn report_at_exit() {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| at_exit(report));
}

fn report() {
    let skipped = SKIPPED.lock().unwrap_or_else(PoisonError::into_inner);
    // Not `eprintln`, whose output libtest captures on threads of tests.
    let _ = std::io::stderr().write_all(lines(&skipped).as_bytes());
}

fn lines(skipped: &Skipped) -> String {
    let line = |((kind, reason), tests): (&(Kind, String), &BTreeSet<String>)| {
        let noun = if tests.len() == 1 { "test" } else { "tests" };
        let extent = match kind {
            Kind::Whole => "",
            Kind::Part => " in part",
        };
        format!("SKIPPED {} {noun}{extent}: {reason}\n", tests.len())
    };
    skipped.iter().map(line).collect()
}

/// Needs whose absence is a failure.
fn parse(text: &str) -> Result<Vec<Need>, String> {
    if text == "all" {
        return Ok(NAMES.map(|(need, _)| need).to_vec());
    }
    let names = text.split(',').map(str::trim);
    let need = |name: &str| {
        let found = NAMES.iter().find(|(_, own)| *own == name);
        found.map(|(need, _)| *need).ok_or_else(|| {
            let known = NAMES.map(|(_, name)| name).join(", ");
            format!("COMPACTOR_REQUIRE has {name:?}; it is \"all\" or any of {known}")
        })
    };
    names.filter(|name| !name.is_empty()).map(need).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed() {
        assert_eq!(parse(""), Ok(vec![]));
        assert_eq!(
            parse("strace, direct-io,"),
            Ok(vec![Need::Strace, Need::DirectIo])
        );
        assert_eq!(parse("all").map(|needs| needs.len()), Ok(NAMES.len()));
        let error = parse("strace,java").unwrap_err();
        assert!(error.contains("\"java\""), "{error}");
        assert!(error.contains("cassandra, cgroup, chromium"), "{error}");
    }

    /// Fails once, here, for a wrong name: other tests read the variable only if something is missing.
    #[test]
    fn the_environment_requires_known_names() {
        let text = std::env::var("COMPACTOR_REQUIRE").unwrap_or_default();
        assert_eq!(parse(&text).err(), None);
    }

    #[test]
    fn a_line_per_reason() {
        let tests = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let skipped = Skipped::from([
            ((Kind::Whole, "no fio".to_owned()), tests(&["a", "b"])),
            ((Kind::Part, "no io_uring".to_owned()), tests(&["c"])),
        ]);
        assert_eq!(
            lines(&skipped),
            "SKIPPED 2 tests: no fio\nSKIPPED 1 test in part: no io_uring\n"
        );
    }
}
