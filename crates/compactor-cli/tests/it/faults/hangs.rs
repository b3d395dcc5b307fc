//! Operations that never complete.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use compactor_testkit::campaign;
use compactor_testkit::machine::has_strace;

use crate::faults::setting::{Setting, compactor, files_below};

/// strace option that delays a call for longer than any test waits.
fn stuck(call: &str, when: &str) -> String {
    format!("--inject={call}:delay_enter=100s:when={when}")
}

/// SIGINT ends a run even if it waits for an operation that never completes. The next run removes the
/// files that it was writing.
#[test]
fn an_interrupted_run_ends_whatever_it_waits_for() {
    if !has_strace() {
        return;
    }
    // A stuck run has its inputs open, which runs of other tests would refuse.
    let setting = Setting::new();
    for (backend, call, when) in [
        ("uring", "io_uring_enter", "4+"),
        // The dynamic loader uses this call before, to read libraries.
        ("threads", "pread64", "6+"),
        ("threads", "pwrite64", "1+"),
        ("threads", "fdatasync", "1+"),
        ("threads", "renameat2", "2+"),
    ]
    .into_iter()
    .step_by(campaign::stride())
    {
        let tried = setting.command("merge", &format!("--backend {backend}"));
        let directory = setting.new_directory();
        let out = directory.join("out");
        let mut strace = Command::new("strace")
            .args(["-f", "--seccomp-bpf", "-qq", "-o", "/dev/null"])
            .args(["-e", &format!("trace={call}"), &stuck(call, when)])
            .arg(compactor())
            .args(tried.arguments(&out))
            .stderr(File::create(directory.join("stderr")).unwrap())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_secs(3));
        let traced = child_of(&strace).expect("it is not stuck");
        assert!(!has_ended(&traced), "{call}: it is not stuck");
        let sent = Command::new("kill").args(["-INT", &traced]).status();
        assert!(sent.unwrap().success());
        let interrupted = Instant::now();
        while !has_ended(&traced) {
            assert!(
                interrupted.elapsed() < Duration::from_secs(40),
                "{call}: it does not end"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        let code = exit_code(&traced);
        // strace waits for the thread that it delays, and detaches from it when killed.
        strace.kill().unwrap();
        strace.wait().unwrap();
        let stderr = fs::read_to_string(directory.join("stderr")).unwrap();
        assert!(
            matches!(code, None | Some(130)),
            "{call}: {code:?}, {stderr}"
        );
        assert!(
            stderr.contains("may be in a hidden directory"),
            "{call}: {stderr}"
        );
        let next = Command::new(compactor())
            .args(tried.arguments(&out))
            .output();
        assert!(next.as_ref().unwrap().status.success(), "{call}: {next:?}");
        assert_eq!(files_below(&out), setting.known(tried).good, "{call}");
    }
}

fn child_of(parent: &Child) -> Option<String> {
    let id = parent.id();
    let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children"));
    children.ok()?.split(' ').next().map(str::to_owned)
}

/// Whether a process has no threads left except those stopped by strace.
fn has_ended(process: &str) -> bool {
    let threads = fs::read_dir(format!("/proc/{process}/task"));
    let threads = threads.into_iter().flatten().flatten();
    let states = threads.filter_map(|thread| fields(&thread.path().join("stat")));
    states
        .into_iter()
        .all(|fields| fields.starts_with(['Z', 'X', 't']))
}

/// Exit code of a zombie, or `None` if its main thread is stopped by strace.
fn exit_code(process: &str) -> Option<i32> {
    let fields = fields(format!("/proc/{process}/stat").as_ref())?;
    let code: i32 = fields.trim_end().rsplit(' ').next()?.parse().ok()?;
    fields.starts_with('Z').then_some(code >> 8)
}

/// Fields of `/proc/PID/stat` of a process or thread, from its state on.
fn fields(stat: &Path) -> Option<String> {
    let line = fs::read_to_string(stat).ok()?;
    let (_, fields) = line.rsplit_once(") ")?;
    Some(fields.to_owned())
}
