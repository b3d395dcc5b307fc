//! Merges that are killed: at any moment, and at each of the calls that publication consists of. The
//! output directory holds nothing or a whole SSTable, and the next merge cleans up.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::choices::{Choices, first_seed, scaled};
use crate::files::{
    contents, disk_directory, io, key_value_sstables, merge_files, options, scan, sstables,
};

/// Names the directory that the child merges in.
const CHILD: &str = "COMPACTOR_TEST_MERGE_IN";

/// Not a test by itself: what the others start in a process of its own, and kill.
#[test]
fn child() {
    let Some(directory) = std::env::var_os(CHILD) else {
        return;
    };
    let directory = PathBuf::from(directory);
    let inputs = sstables(&directory.join("inputs"));
    merge_files(&io(), options(&inputs, &directory.join("output"))).unwrap();
}

fn merge_in_a_child(directory: &Path, tracer: &[&str]) -> Command {
    let test = std::env::current_exe().unwrap();
    let mut command = match tracer {
        [] => Command::new(&test),
        [program, arguments @ ..] => {
            let mut command = Command::new(program);
            command.args(arguments).arg(&test);
            command
        }
    };
    command
        .args(["--exact", "killed::child", "--test-threads", "1"])
        .env(CHILD, directory)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

fn wait(mut child: Child) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < deadline, "a child does not end");
        std::thread::sleep(Duration::from_millis(5));
    }
}

struct Setting {
    directory: tempfile::TempDir,
    inputs: BTreeMap<PathBuf, Option<Vec<u8>>>,
    /// Bytes of `Data.db` as it is to be.
    data: Vec<u8>,
    partitions: u64,
}

impl Setting {
    fn new(partitions: i32, value_len: usize) -> Setting {
        let directory = disk_directory();
        let paths = key_value_sstables(&directory.path().join("inputs"), partitions, value_len);
        let output = directory.path().join("output");
        merge_files(&io(), options(&paths, &output)).unwrap();
        let data = std::fs::read(&sstables(&output)[0]).unwrap();
        std::fs::remove_dir_all(&output).unwrap();
        Setting {
            inputs: contents(&directory.path().join("inputs")),
            directory,
            data,
            partitions: partitions as u64,
        }
    }

    fn output(&self) -> PathBuf {
        self.directory.path().join("output")
    }

    /// What there is after a merge was killed: each SSTable is whole. Returns their number.
    fn assert_whole(&self, what: &str) -> usize {
        let found = sstables(&self.output());
        for path in &found {
            let partitions = scan(path).unwrap_or_else(|e| panic!("{what}: {e}"));
            assert_eq!(partitions, self.partitions, "{what}");
            assert!(
                std::fs::read(path).unwrap() == self.data,
                "{what}: {}",
                path.display()
            );
        }
        found.len()
    }

    /// The next merge succeeds and leaves nothing but SSTables.
    fn merge_again(&self, found: usize, what: &str) {
        let inputs = sstables(&self.directory.path().join("inputs"));
        merge_files(&io(), options(&inputs, &self.output()))
            .unwrap_or_else(|e| panic!("{what}: {e}"));
        assert_eq!(self.assert_whole(what), found + 1, "{what}");
        let names = contents(&self.output());
        let per_sstable = names.len() / (found + 1);
        assert_eq!(
            names.len(),
            per_sstable * (found + 1),
            "{what}: {:?}",
            names.keys()
        );
        for (name, bytes) in &names {
            let name = name.to_string_lossy();
            assert!(
                bytes.is_some() && name.starts_with("oa-"),
                "{what} leaves {name}"
            );
        }
        let inputs = contents(&self.directory.path().join("inputs"));
        assert!(inputs == self.inputs, "{what}: inputs have changed");
        std::fs::remove_dir_all(self.output()).unwrap();
    }
}

#[test]
fn killed_at_any_moment() {
    let setting = Setting::new(1500, 1500);
    let started = Instant::now();
    wait(
        merge_in_a_child(setting.directory.path(), &[])
            .spawn()
            .unwrap(),
    );
    let whole = started.elapsed();
    assert_eq!(setting.assert_whole("undisturbed"), 1);
    setting.merge_again(1, "undisturbed");
    let mut choices = Choices::from_seed(first_seed());
    let (mut killed_early, mut complete) = (0, 0);
    for _ in 0..scaled(12) {
        let after = whole.mul_f64(choices.below(1200) as f64 / 1000.0);
        let mut child = merge_in_a_child(setting.directory.path(), &[])
            .spawn()
            .unwrap();
        std::thread::sleep(after);
        let _ = child.kill();
        child.wait().unwrap();
        let what = format!("killed after {after:?} of {whole:?}");
        let found = setting.assert_whole(&what);
        if found == 0 {
            killed_early += 1
        } else {
            complete += 1
        }
        setting.merge_again(found, &what);
    }
    eprintln!("killed {killed_early} times before and {complete} times after publication");
}

/// Whether `strace` can trace children here; says so, loudly, if not.
fn strace_works() -> bool {
    let works = Command::new("strace")
        .args([
            "-f",
            "-o",
            "/dev/null",
            "-e",
            "inject=mkdir:error=EIO:when=9",
            "true",
        ])
        .output()
        .is_ok_and(|output| output.status.success());
    if !works {
        eprintln!("SKIPPED: strace cannot trace here");
    }
    works
}

/// At each call that makes, syncs, renames or removes something: killed before it happens, and
/// failing.
#[test]
fn killed_or_failing_at_each_call() {
    if !strace_works() {
        return;
    }
    let setting = Setting::new(60, 300);
    let calls = [
        "mkdir",
        "rename,renameat,renameat2",
        "fsync",
        "fdatasync",
        "unlinkat,unlink,rmdir",
        "ftruncate,fallocate",
        "pwrite64,pwritev,pwritev2",
        "flock",
    ];
    let mut injections = 0;
    for (call, faults) in calls.iter().flat_map(|call| {
        [
            (call, "signal=SIGKILL"),
            (call, "error=EIO"),
            (call, "error=ENOSPC"),
        ]
    }) {
        for number in 1.. {
            let inject = format!("inject={call}:{faults}:when={number}");
            let trace = setting.directory.path().join("trace");
            let tracer = ["strace", "-f", "-o", trace.to_str().unwrap(), "-e", &inject];
            wait(
                merge_in_a_child(setting.directory.path(), &tracer)
                    .spawn()
                    .unwrap(),
            );
            let happened = std::fs::read_to_string(&trace).unwrap();
            let injected =
                happened.contains("(INJECTED)") || happened.contains("killed by SIGKILL");
            std::fs::remove_file(&trace).unwrap();
            let found = setting.assert_whole(&inject);
            if !injected {
                assert!(number > 1 || found == 1, "{inject}");
                std::fs::remove_dir_all(setting.output()).unwrap();
                break;
            }
            injections += 1;
            setting.merge_again(found, &inject);
        }
    }
    eprintln!("{injections} calls killed or failed");
}
