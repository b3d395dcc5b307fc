//! Killed merges: at any time, and at each system call of publication. The output directory contains nothing
//! or the whole output, in one SSTable or several, and the next merge cleans up. If the output replaces an
//! older one, it contains all of the old or all of the new.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use compactor_engine::job::{MergeOptions, OutputSplit};
use compactor_engine::publish::{ExistingOutput, OutputIds};
use compactor_sstable::transaction_log::{self, TransactionLog};
use compactor_testkit::machine::{disk_directory, has_strace};

use crate::files::{contents, io, key_value_sstables, merge_files, options, scan, sstables};
use compactor_testkit::campaign;
use compactor_testkit::model::choices::Choices;

/// Environment variable with the directory in which the child merges.
const CHILD: &str = "COMPACTOR_TEST_MERGE_IN";
/// Environment variable with the maximum size of an output, if there is one.
const CHILD_LIMIT: &str = "COMPACTOR_TEST_MERGE_LIMIT";
/// Environment variable with the number of ranges that get an output each, if they do.
const CHILD_RANGES: &str = "COMPACTOR_TEST_MERGE_RANGES";
/// Environment variable that is set if the output replaces existing SSTables.
const CHILD_REPLACES: &str = "COMPACTOR_TEST_MERGE_REPLACES";

/// Outputs of a merge.
#[derive(Clone, Copy, Debug)]
enum Outputs {
    One,
    /// Outputs of at most this size, bytes.
    OfSize(u64),
    /// One output for each of this number of ranges.
    PerRange(NonZeroUsize),
}

/// Not a test: the merge that the tests start in a separate process, and kill.
#[test]
fn child() {
    let Some(directory) = std::env::var_os(CHILD) else {
        return;
    };
    let directory = PathBuf::from(directory);
    let variable = |name| std::env::var(name).ok();
    let outputs = match (variable(CHILD_LIMIT), variable(CHILD_RANGES)) {
        (Some(limit), _) => Outputs::OfSize(limit.parse().unwrap()),
        (None, Some(ranges)) => Outputs::PerRange(ranges.parse().unwrap()),
        (None, None) => Outputs::One,
    };
    let options = match variable(CHILD_REPLACES) {
        Some(_) => replacing_merge_of(&directory, outputs),
        None => merge_of(&directory, outputs),
    };
    merge_files(&io(), options).unwrap();
}

/// A merge whose outputs have the same names each time.
fn replacing_merge_of(directory: &Path, outputs: Outputs) -> MergeOptions {
    let mut options = merge_of(directory, outputs);
    options.existing_output = ExistingOutput::Replace;
    options.ids = Some(OutputIds::starting_at("100".parse().unwrap()));
    options
}

fn merge_of(directory: &Path, outputs: Outputs) -> MergeOptions {
    let inputs = sstables(&directory.join("inputs"));
    let mut options = options(&inputs, &directory.join("output"));
    // SSTables of the previous merge are kept, to count the remains of each.
    options.existing_output = ExistingOutput::Keep;
    match outputs {
        Outputs::One => {}
        Outputs::OfSize(limit) => options.split = OutputSplit::MaxBytes(limit),
        Outputs::PerRange(ranges) => {
            options.split = OutputSplit::Count(ranges);
            options.range_bytes = Some(256 << 10);
        }
    }
    options
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
    outputs: Outputs,
    /// Expected bytes of the `Data.db` of each output.
    data: Vec<Vec<u8>>,
    partitions: u64,
}

/// SSTables that no unfinished transaction marks for deletion: those that Cassandra finds.
fn live_sstables(directory: &Path) -> Vec<PathBuf> {
    let mut live = sstables(directory);
    for (name, bytes) in contents(directory) {
        if transaction_log::is_file_name(&name.to_string_lossy()) {
            let log = TransactionLog::parse(&bytes.unwrap()).unwrap();
            for record in log.leftovers() {
                live.retain(|data| {
                    let name = data.file_name().unwrap().to_string_lossy();
                    !name.starts_with(record.file_prefix())
                });
            }
        }
    }
    live
}

impl Setting {
    fn new(partitions: i32, value_len: usize, outputs: Outputs) -> Setting {
        let directory = disk_directory();
        key_value_sstables(&directory.path().join("inputs"), partitions, value_len);
        merge_files(&io(), merge_of(directory.path(), outputs)).unwrap();
        let output = directory.path().join("output");
        let data: Vec<Vec<u8>> = sstables(&output)
            .iter()
            .map(|path| std::fs::read(path).unwrap())
            .collect();
        assert_eq!(data.len() > 1, !matches!(outputs, Outputs::One));
        std::fs::remove_dir_all(&output).unwrap();
        Setting {
            inputs: contents(&directory.path().join("inputs")),
            directory,
            outputs,
            data,
            partitions: partitions as u64,
        }
    }

    fn output(&self) -> PathBuf {
        self.directory.path().join("output")
    }

    fn merge_in_a_child(&self, tracer: &[&str]) -> Command {
        let test = std::env::current_exe().unwrap();
        let mut command = match tracer {
            [] => Command::new(&test),
            [program, arguments @ ..] => {
                let mut command = Command::new(program);
                command.args(arguments).arg(&test);
                command
            }
        };
        match self.outputs {
            Outputs::One => {}
            Outputs::OfSize(limit) => {
                command.env(CHILD_LIMIT, limit.to_string());
            }
            Outputs::PerRange(ranges) => {
                command.env(CHILD_RANGES, ranges.to_string());
            }
        }
        command
            .args(["--exact", "killed::child", "--test-threads", "1"])
            .env(CHILD, self.directory.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    /// Asserts that after a merge was killed each output is complete and none is missing. Returns the number of
    /// merges that have outputs.
    fn assert_whole(&self, what: &str) -> usize {
        let found = live_sstables(&self.output());
        assert_eq!(found.len() % self.data.len(), 0, "{what}: {found:?}");
        for merge in found.chunks(self.data.len()) {
            let mut partitions = 0;
            for (path, data) in merge.iter().zip(&self.data) {
                partitions += scan(path).unwrap_or_else(|e| panic!("{what}: {e}"));
                assert!(
                    std::fs::read(path).unwrap() == *data,
                    "{what}: {}",
                    path.display()
                );
            }
            assert_eq!(partitions, self.partitions, "{what}");
        }
        found.len() / self.data.len()
    }

    /// Asserts that the next merge succeeds and leaves only SSTables.
    fn start_replay(&self, found: usize, what: &str) {
        merge_files(&io(), merge_of(self.directory.path(), self.outputs))
            .unwrap_or_else(|e| panic!("{what}: {e}"));
        assert_eq!(self.assert_whole(what), found + 1, "{what}");
        let mut names = contents(&self.output());
        // A log that could not be removed, but marks nothing for deletion.
        names.retain(|name, bytes| {
            let log = bytes.as_deref().map(TransactionLog::parse);
            !(transaction_log::is_file_name(&name.to_string_lossy())
                && log.is_some_and(|log| log.unwrap().is_committed()))
        });
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
    kill_at_any_moment(&Setting::new(1500, 1500, Outputs::One));
}

#[test]
fn several_ranges_killed_at_any_moment() {
    let outputs = Outputs::PerRange(NonZeroUsize::new(3).unwrap());
    kill_at_any_moment(&Setting::new(1500, 1500, outputs));
}

fn kill_at_any_moment(setting: &Setting) {
    let started = Instant::now();
    wait(setting.merge_in_a_child(&[]).spawn().unwrap());
    let whole = started.elapsed();
    assert_eq!(setting.assert_whole("undisturbed"), 1);
    setting.start_replay(1, "undisturbed");
    let mut choices = Choices::from_seed(campaign::first_seed());
    let (mut killed_early, mut complete) = (0, 0);
    for _ in 0..campaign::cases(12) {
        let after = whole.mul_f64(choices.below(1200) as f64 / 1000.0);
        let mut child = setting.merge_in_a_child(&[]).spawn().unwrap();
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
        setting.start_replay(found, &what);
    }
    eprintln!("killed {killed_early} times before and {complete} times after publication");
}

/// Kills before, and fails, each call that creates, syncs, renames or removes a file.
#[test]
fn killed_or_failing_at_each_call() {
    if has_strace() {
        let faults = ["signal=SIGKILL", "error=EIO", "error=ENOSPC"];
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
        kill_and_fail_each_call(&Setting::new(60, 300, Outputs::One), &calls, &faults);
    }
}

/// Several outputs appear all or none, also for Cassandra, which interprets transaction logs.
#[test]
fn several_outputs_killed_or_failing_at_each_call() {
    if has_strace() {
        let faults = ["signal=SIGKILL", "error=EIO"];
        let calls = [
            "rename,renameat,renameat2",
            "fsync",
            "unlinkat,unlink,rmdir",
        ];
        let setting = Setting::new(60, 300, Outputs::OfSize(14 << 10));
        kill_and_fail_each_call(&setting, &calls, &faults);
    }
}

fn kill_and_fail_each_call(setting: &Setting, calls: &[&str], faults: &[&str]) {
    let mut injections = 0;
    let both = calls
        .iter()
        .flat_map(|call| faults.iter().map(move |fault| (call, fault)));
    for (call, faults) in campaign::some_of(both) {
        for number in (1..).step_by(campaign::stride()) {
            let inject = format!("inject={call}:{faults}:when={number}");
            let trace = setting.directory.path().join("trace");
            let tracer = ["strace", "-f", "-o", trace.to_str().unwrap(), "-e", &inject];
            wait(setting.merge_in_a_child(&tracer).spawn().unwrap());
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
            setting.start_replay(found, &inject);
        }
    }
    eprintln!("{injections} calls killed or failed");
}

/// The lock file of a run outlasts a power failure as its outputs do; the next run can lock it on NFS, which needs it
/// open for writing; and NFS and FUSE keep a removed file in its directory until it is closed.
#[test]
fn the_lock_file_of_a_killed_run_suits_any_file_system() {
    if !has_strace() {
        return;
    }
    let setting = Setting::new(60, 300, Outputs::One);
    let trace = setting.directory.path().join("trace");
    let traced = |options: &[&str]| {
        let mut tracer = vec!["strace", "-f", "-y", "-o", trace.to_str().unwrap()];
        tracer.extend(["-e", "trace=fsync,rename,openat,close,rmdir"]);
        tracer.extend(options);
        wait(setting.merge_in_a_child(&tracer).spawn().unwrap());
        std::fs::read_to_string(&trace).unwrap()
    };
    let line_of = |text: &str, call: &str, path: &str| {
        let is_it = |line: &str| line.contains(call) && line.contains(path);
        let found = text.lines().position(is_it);
        found.unwrap_or_else(|| panic!("no {call} of {path}: {text}"))
    };
    let killed = traced(&["-e", "inject=fsync:signal=SIGKILL:when=4"]);
    assert!(line_of(&killed, "fsync(", "/lock>") < line_of(&killed, "rename(", "/.compactor-"));
    let run = std::fs::read_dir(setting.output())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .find(|name| name.starts_with(".compactor-"))
        .unwrap();
    let next = traced(&[]);
    let opened = line_of(&next, "openat(", &format!("{run}/lock\", O_RDWR"));
    let closed = line_of(&next, "close(", &format!("{run}/lock>"));
    assert!(opened < closed && closed < line_of(&next, "rmdir(", &format!("{run}\"")));
}

/// Directory content that a new output replaces: other SSTables, and a file that is kept.
struct Replaced {
    setting: Setting,
    old: BTreeMap<PathBuf, Option<Vec<u8>>>,
    new: BTreeMap<PathBuf, Option<Vec<u8>>>,
}

const NOTES: &str = "notes.txt";

impl Replaced {
    fn new(outputs: Outputs) -> Replaced {
        let setting = Setting::new(60, 300, outputs);
        let output = setting.output();
        let merge = replacing_merge_of(setting.directory.path(), outputs);
        merge_files(&io(), merge).unwrap();
        let new = contents(&output);
        std::fs::remove_dir_all(&output).unwrap();
        key_value_sstables(&output, 20, 100);
        std::fs::write(output.join(NOTES), "mine").unwrap();
        let old = contents(&output);
        Replaced { setting, old, new }
    }

    /// Files of SSTables that are visible in the directory.
    fn visible(&self) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
        let mut found = contents(&self.setting.output());
        found.retain(|name, _| {
            let name = name.to_string_lossy();
            !name.starts_with(".compactor-") && !name.starts_with(".starting-") && name != NOTES
        });
        found
    }

    /// Asserts that all SSTables are old or all are new; returns whether they are new.
    fn assert_one_of_them(&self, what: &str) -> bool {
        let mut old = self.old.clone();
        old.remove(Path::new(NOTES));
        let found = self.visible();
        assert!(
            found == old || found == self.new,
            "{what}: {:?}",
            found.keys()
        );
        found == self.new
    }

    /// Asserts that the next run leaves the new output, the file that is kept, and nothing else.
    fn replace_again(&self, what: &str) {
        let merge = replacing_merge_of(self.setting.directory.path(), self.setting.outputs);
        merge_files(&io(), merge).unwrap_or_else(|e| panic!("{what}: {e}"));
        assert!(self.assert_one_of_them(what), "{what}: it is the old one");
        let mut found = contents(&self.setting.output());
        let notes = found.remove(Path::new(NOTES)).flatten();
        assert_eq!(notes.as_deref(), Some(&b"mine"[..]), "{what}");
        assert!(found == self.new, "{what} leaves {:?}", found.keys());
        let mut around: Vec<_> = std::fs::read_dir(self.setting.directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        around.sort();
        assert_eq!(around, ["inputs", "output"], "{what}");
        let inputs = contents(&self.setting.directory.path().join("inputs"));
        assert!(inputs == self.setting.inputs, "{what}: inputs have changed");
    }

    fn restore_old(&self) {
        let output = self.setting.output();
        std::fs::remove_dir_all(&output).unwrap();
        std::fs::create_dir(&output).unwrap();
        for (name, bytes) in &self.old {
            std::fs::write(output.join(name), bytes.as_ref().unwrap()).unwrap();
        }
    }
}

#[test]
fn an_existing_output_is_replaced_in_one_step() {
    let calls = [
        "mkdir",
        "rename,renameat,renameat2",
        "fsync",
        "unlinkat,unlink,rmdir",
    ];
    kill_and_fail_each_call_of_a_replacement(Outputs::One, &calls);
}

#[test]
fn existing_outputs_are_replaced_by_several_in_one_step() {
    kill_and_fail_each_call_of_a_replacement(
        Outputs::OfSize(14 << 10),
        &["rename,renameat,renameat2"],
    );
}

fn kill_and_fail_each_call_of_a_replacement(outputs: Outputs, calls: &[&str]) {
    if !has_strace() {
        return;
    }
    let (mut injections, mut replaced_then) = (0, 0);
    let replaced = Replaced::new(outputs);
    for call in calls {
        for fault in ["signal=SIGKILL", "error=EIO"] {
            for number in (1..).step_by(campaign::stride()) {
                let inject = format!("inject={call}:{fault}:when={number}");
                let trace = replaced.setting.directory.path().join("trace");
                let tracer = ["strace", "-f", "-o", trace.to_str().unwrap(), "-e", &inject];
                let mut child = replaced.setting.merge_in_a_child(&tracer);
                wait(child.env(CHILD_REPLACES, "").spawn().unwrap());
                let happened = std::fs::read_to_string(&trace).unwrap();
                let injected =
                    happened.contains("(INJECTED)") || happened.contains("killed by SIGKILL");
                std::fs::remove_file(&trace).unwrap();
                let is_new = replaced.assert_one_of_them(&inject);
                if !injected {
                    assert!(number > 1 && is_new, "{inject}");
                    replaced.restore_old();
                    break;
                }
                injections += 1;
                replaced_then += usize::from(is_new);
                replaced.replace_again(&inject);
                replaced.restore_old();
            }
        }
    }
    assert!(replaced_then < injections);
    // Of the renames alone a short campaign tries those before the exchange.
    assert!(replaced_then > 0 || calls.len() == 1);
    eprintln!("{injections} calls killed or failed, {replaced_then} after the exchange");
}
