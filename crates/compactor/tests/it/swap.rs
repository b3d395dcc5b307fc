//! Swaps that are killed after each step: a program that applies the transaction log, and the next swap,
//! find the table either entirely old or entirely new.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use compactor::generate::{Amount, GenerateOptions, Shape, generate};
use compactor::merge::run_merges;
use compactor::run_record::Recorder;
use compactor::swap::{Step, SwapRequest, SwapState, swap};
use compactor::{ErrorKind, InputCheck, Io, MergeJob, MergeRequest, NoObserver, Scope, Table};
use compactor_io::IoOptions;
use compactor_sstable::transaction_log::{self, TransactionLog};

/// Environment variable with the directory that the child swaps in.
const CHILD: &str = "COMPACTOR_TEST_SWAP_IN";
/// Environment variable with the step, counted from 0, after which the child kills itself.
const KILLED_AFTER: &str = "COMPACTOR_TEST_SWAP_KILLED_AFTER";

fn request(directory: &Path) -> SwapRequest {
    SwapRequest {
        output: directory.join("out"),
        table_directory: directory.join("ks/t-0123456789abcdef0123456789abcdef"),
        inputs_to: directory.join("inputs"),
    }
}

/// Not a test by itself: run by the others in a child process.
#[test]
fn child() {
    let Some(directory) = std::env::var_os(CHILD) else {
        return;
    };
    let after: usize = std::env::var(KILLED_AFTER).unwrap().parse().unwrap();
    let mut steps = 0;
    swap(&request(Path::new(&directory)), &mut |_| {
        if steps == after {
            let us = rustix::process::getpid();
            rustix::process::kill_process(us, rustix::process::Signal::KILL).unwrap();
        }
        steps += 1;
        Ok(())
    })
    .unwrap();
}

/// Returns whether the child was killed before it was done.
fn swap_in_a_child(directory: &Path, killed_after: usize) -> bool {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "swap::child"])
        .env(CHILD, directory)
        .env(KILLED_AFTER, killed_after.to_string())
        .output()
        .unwrap();
    let was_killed = output.status.signal() == Some(9);
    let stderr = String::from_utf8_lossy(&output.stdout);
    assert!(was_killed || output.status.success(), "{stderr}");
    was_killed
}

/// A table of three SSTables, and the run that merged two of them into two outputs.
struct Setting {
    temp: tempfile::TempDir,
    old: BTreeSet<String>,
    new: BTreeSet<String>,
}

fn names(directory: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(directory).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

fn merge(inputs: &[PathBuf], output: &Path, scope: Scope) {
    let mut request = MergeRequest::new(inputs.to_vec(), output);
    request.scope = scope;
    request.gc_before_s = Some(0);
    request.split = compactor::OutputSplit::MaxBytes(300 << 10);
    let recorder = Recorder::new("merge", &request).unwrap();
    let jobs = MergeJob::open_groups(Io::new(IoOptions::default()).unwrap(), request).unwrap();
    let check = InputCheck::AllComponents;
    run_merges(jobs, check, Some(&recorder), &mut NoObserver).unwrap();
}

impl Setting {
    fn new() -> Setting {
        let temp = tempfile::tempdir().unwrap();
        let table = request(temp.path()).table_directory;
        fs::create_dir_all(&table).unwrap();
        let mut options = GenerateOptions::new(Shape::KeyValue, temp.path().join("made"));
        options.sstables = 3;
        options.amount = Amount::Rows(1000);
        let made = generate(IoOptions::default(), options, &mut NoObserver).unwrap();
        for sstable in made.sstables {
            let from = sstable.data_path.parent().unwrap();
            for entry in fs::read_dir(from).unwrap() {
                let entry = entry.unwrap();
                fs::copy(entry.path(), table.join(entry.file_name())).unwrap();
            }
        }
        // A component that compactor does not know is moved with its SSTable.
        fs::write(table.join("oa-1-big-SAI+aa+ix+Meta.db"), "index").unwrap();
        let inputs = [1, 2].map(|id| table.join(format!("oa-{id}-big-Data.db")));
        let others = vec![table.join("oa-3-big-Data.db")];
        merge(
            &inputs,
            &temp.path().join("out"),
            Scope::Overlapping(others),
        );
        let old = names(&table);
        let replaced = |name: &str| name.starts_with("oa-1-") || name.starts_with("oa-2-");
        let stays = old.iter().filter(|name| !replaced(name));
        let out = names(&temp.path().join("out"));
        let placed = out.into_iter().filter(|name| name.starts_with("oa-"));
        let new: BTreeSet<String> = stays.cloned().chain(placed).collect();
        assert!(new.iter().filter(|n| n.ends_with("Data.db")).count() > 2);
        Setting { temp, old, new }
    }

    fn table(&self) -> PathBuf {
        request(self.temp.path()).table_directory
    }

    /// Applies the transaction logs as Cassandra does when it starts (`interop` tests it with a real node).
    fn node_starts(&self) {
        let table = self.table();
        for name in names(&table) {
            if !transaction_log::is_file_name(&name) {
                continue;
            }
            let log = TransactionLog::parse(&fs::read(table.join(&name)).unwrap()).unwrap();
            for record in log.leftovers() {
                for file in names(&table) {
                    if file.starts_with(record.file_prefix()) {
                        fs::remove_file(table.join(file)).unwrap();
                    }
                }
            }
            fs::remove_file(table.join(name)).unwrap();
        }
    }

    fn is_new(&self) -> bool {
        let found = names(&self.table());
        assert!(found == self.old || found == self.new, "{found:?}");
        found == self.new
    }

    fn assert_inputs_kept(&self) {
        let kept = names(&self.temp.path().join("inputs"));
        let gone: BTreeSet<String> = self.old.difference(&self.new).cloned().collect();
        assert_eq!(kept, gone);
    }
}

/// Steps of the swap of a [`Setting`], from one that is not killed.
fn steps() -> Vec<Step> {
    let setting = Setting::new();
    let mut steps = Vec::new();
    let report = swap(&request(setting.temp.path()), &mut |step| {
        steps.push(step);
        Ok(())
    })
    .unwrap();
    assert_eq!(report.state, SwapState::Done);
    assert!(setting.is_new());
    setting.assert_inputs_kept();
    let again = swap(&request(setting.temp.path()), &mut |_| Ok(())).unwrap();
    assert_eq!(again.state, SwapState::AlreadyDone);
    assert!(setting.is_new());
    steps
}

#[test]
fn a_killed_swap_leaves_the_table_old_or_new_for_a_node_and_the_next_swap() {
    let steps = steps();
    let committed = steps.iter().position(|s| *s == Step::Committed).unwrap();
    assert_eq!(steps.last(), Some(&Step::InputsRemoved));
    assert!(steps.contains(&Step::OutputPlaced) && steps.contains(&Step::FileRemoved));
    // The first and the last of consecutive equal steps.
    let differs = |a: usize, b: usize| steps.get(a) != steps.get(b);
    for after in
        (0..steps.len()).filter(|&at| at == 0 || differs(at, at - 1) || differs(at, at + 1))
    {
        let is_committed = after >= committed;

        // The command is run again.
        let setting = Setting::new();
        assert!(swap_in_a_child(setting.temp.path(), after));
        let report = swap(&request(setting.temp.path()), &mut |_| Ok(())).unwrap();
        let expected = if is_committed {
            SwapState::Finished
        } else {
            SwapState::Done
        };
        assert_eq!(report.state, expected, "{after}");
        assert!(setting.is_new(), "{after}");
        setting.assert_inputs_kept();

        // A node is started instead, and the command is run again after that.
        let setting = Setting::new();
        assert!(swap_in_a_child(setting.temp.path(), after));
        setting.node_starts();
        assert_eq!(setting.is_new(), is_committed, "{after}");
        swap(&request(setting.temp.path()), &mut |_| Ok(())).unwrap();
        assert!(setting.is_new(), "{after}");
        setting.assert_inputs_kept();
    }
}

/// A swap that is killed while it resumes a killed one.
#[test]
fn a_swap_that_is_killed_twice_is_resumed() {
    let steps = steps();
    let committed = steps.iter().position(|s| *s == Step::Committed).unwrap();
    for (first, second) in [
        (committed - 1, committed),
        (committed, 2),
        (committed + 3, 0),
    ] {
        let setting = Setting::new();
        assert!(swap_in_a_child(setting.temp.path(), first));
        assert!(swap_in_a_child(setting.temp.path(), second));
        swap(&request(setting.temp.path()), &mut |_| Ok(())).unwrap();
        assert!(setting.is_new(), "{first} {second}");
        setting.assert_inputs_kept();
    }
}

#[test]
fn a_swap_that_fails_or_is_cancelled_before_its_commit_leaves_nothing() {
    let steps = steps();
    let committed = steps.iter().position(|s| *s == Step::Committed).unwrap();
    for at in 0..committed {
        let setting = Setting::new();
        let out = names(&setting.temp.path().join("out"));
        let mut reached = 0;
        let error = swap(&request(setting.temp.path()), &mut |_| {
            reached += 1;
            if reached > at {
                Err(compactor::Error::Cancelled)
            } else {
                Ok(())
            }
        })
        .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled);
        assert!(!setting.is_new(), "{at}");
        assert!(!setting.temp.path().join("inputs").exists(), "{at}");
        assert_eq!(names(&setting.temp.path().join("out")), out, "{at}");
    }
}

/// The note of an interrupted swap lists outputs to remove, and could be edited.
#[test]
fn invalid_paths_in_a_note_are_refused() {
    let setting = Setting::new();
    let directory = setting.temp.path();
    let not_text = directory.join(OsStr::from_bytes(b"\xff"));
    let to = SwapRequest {
        inputs_to: not_text.clone(),
        ..request(directory)
    };
    fs::rename(directory.join("out"), &not_text).unwrap();
    let from = SwapRequest {
        output: not_text.clone(),
        ..request(directory)
    };
    let assert_refused = |request: &SwapRequest| {
        let error = swap(request, &mut |_| Ok(())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains("not UTF-8"), "{error}");
        assert!(!setting.is_new());
    };
    assert_refused(&from);
    fs::rename(&not_text, directory.join("out")).unwrap();
    assert_refused(&to);
    assert!(!not_text.exists());
}

/// If the log is committed and outputs are missing, removing the inputs would lose the data.
#[test]
fn inputs_are_kept_if_outputs_are_incomplete() {
    let steps = steps();
    let committed = steps.iter().position(|s| *s == Step::Committed).unwrap();
    let setting = Setting::new();
    assert!(swap_in_a_child(setting.temp.path(), committed));
    let mut placed = setting.new.difference(&setting.old);
    let index = placed.find(|name| name.ends_with("-Index.db")).unwrap();
    fs::remove_file(setting.table().join(index)).unwrap();
    let before = names(&setting.table());
    let error = swap(&request(setting.temp.path()), &mut |_| Ok(())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(error.to_string().contains(index.as_str()), "{error}");
    assert_eq!(names(&setting.table()), before);
}

#[test]
fn a_directory_that_was_there_stays_and_the_log_is_the_nodes_to_read() {
    use std::os::unix::fs::PermissionsExt;

    let setting = Setting::new();
    fs::create_dir(setting.temp.path().join("inputs")).unwrap();
    let table = setting.table();
    let data = table.join("oa-1-big-Data.db");
    fs::set_permissions(&data, fs::Permissions::from_mode(0o604)).unwrap();
    let mut mode = None;
    swap(&request(setting.temp.path()), &mut |step| {
        if step != Step::Begun {
            return Ok(());
        }
        let mut names = names(&table).into_iter();
        let log = names
            .find(|name| transaction_log::is_file_name(name))
            .unwrap();
        mode = Some(fs::metadata(table.join(log)).unwrap().mode() & 0o7777);
        Err(compactor::Error::Cancelled)
    })
    .unwrap_err();
    assert_eq!(mode, Some(0o604));
    assert!(setting.temp.path().join("inputs").is_dir());
}

/// Files are written into the table's directory between the check and the COMMIT.
#[test]
fn an_sstable_that_appears_before_the_commit_undoes_a_swap() {
    let setting = Setting::new();
    let table = setting.table();
    let error = swap(&request(setting.temp.path()), &mut |step| {
        if step == Step::OutputsPlaced {
            fs::write(table.join("oa-99-big-Data.db"), "x").unwrap();
        }
        Ok(())
    })
    .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(error.to_string().contains("oa-99-big-Data.db"), "{error}");
    fs::remove_file(table.join("oa-99-big-Data.db")).unwrap();
    assert!(!setting.is_new());

    let error = swap(&request(setting.temp.path()), &mut |step| {
        if step == Step::Begun {
            fs::write(table.join("oa-1-big-Data.db"), "another").unwrap();
        }
        Ok(())
    })
    .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(!setting.is_new());
}

/// The same in another data directory of the table, whose SSTables the run was given as overlapping.
#[test]
fn an_sstable_that_appears_in_another_data_directory_undoes_a_swap() {
    let setting = Setting::new();
    let (table, temp) = (setting.table(), setting.temp.path());
    let other = temp.join("data2/ks").join(table.file_name().unwrap());
    fs::create_dir_all(&other).unwrap();
    for name in setting.old.iter().filter(|name| name.starts_with("oa-3-")) {
        fs::rename(table.join(name), other.join(name)).unwrap();
    }
    fs::remove_dir_all(temp.join("out")).unwrap();
    let inputs = [1, 2].map(|id| table.join(format!("oa-{id}-big-Data.db")));
    let overlapping = other.join("oa-3-big-Data.db");
    let scope = Scope::Overlapping(vec![overlapping.clone()]);
    merge(&inputs, &temp.join("out"), scope);
    let before = names(&table);
    let late = other.join("oa-99-big-Data.db");
    let error = swap(&request(temp), &mut |step| {
        if step == Step::OutputsPlaced {
            fs::hard_link(&overlapping, &late).unwrap();
        }
        Ok(())
    })
    .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(error.to_string().contains("oa-99-big-Data.db"), "{error}");
    assert_eq!(names(&table), before);
    fs::remove_file(late).unwrap();
    swap(&request(temp), &mut |_| Ok(())).unwrap();
}

/// A later run into the same directory is not mistaken for the one that was swapped before.
#[test]
fn a_note_applies_only_to_its_own_record() {
    let setting = Setting::new();
    let out = setting.temp.path().join("out");
    swap(&request(setting.temp.path()), &mut |_| Ok(())).unwrap();
    assert_eq!(names(&out).len(), 2, "the record and the note");
    let inputs = Table::open(setting.table()).unwrap().sstables().to_vec();
    merge(&inputs, &out, Scope::Complete);
    let second = SwapRequest {
        inputs_to: setting.temp.path().join("second"),
        ..request(setting.temp.path())
    };
    let report = swap(&second, &mut |_| Ok(())).unwrap();
    assert_eq!(report.state, SwapState::Done);
    assert_eq!(report.inputs.len(), inputs.len());
}

#[test]
fn inputs_are_linked_and_outputs_have_their_owner_and_mode() {
    use std::os::unix::fs::PermissionsExt;

    let setting = Setting::new();
    let table = setting.table();
    let data = table.join("oa-1-big-Data.db");
    fs::set_permissions(&data, fs::Permissions::from_mode(0o604)).unwrap();
    let inode = fs::metadata(&data).unwrap().ino();
    swap(&request(setting.temp.path()), &mut |_| Ok(())).unwrap();
    let kept = setting.temp.path().join("inputs/oa-1-big-Data.db");
    assert_eq!(fs::metadata(kept).unwrap().ino(), inode);
    for name in setting.new.difference(&setting.old) {
        let mode = fs::metadata(table.join(name)).unwrap().mode() & 0o7777;
        assert_eq!(mode, 0o604, "{name}");
    }
}
