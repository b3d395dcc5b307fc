use std::sync::atomic::{AtomicUsize, Ordering};

use compactor_sstable::Component;
use compactor_sstable::descriptor::Descriptor;
use compactor_testkit::{Need, skip};

use super::*;
use crate::publish::staging::{Staging, publish_all};

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn make(directory: &Path, files: &[&str]) {
    fs::create_dir_all(directory).unwrap();
    for file in files {
        fs::write(directory.join(file), file).unwrap();
    }
}

fn take(directory: &Path) -> Result<Arc<OutputClaim>> {
    OutputClaim::take(directory, ExistingOutput::Refuse, Replaceable::default())
}

fn check(directory: &Path, existing: ExistingOutput) -> Result<()> {
    OutputClaim::check(directory, existing, Replaceable::default())
}

fn assert_refused<T: std::fmt::Debug>(result: Result<T>, why: &str) {
    match result {
        Err(Error::Refused(message)) => assert!(message.contains(why), "{message}"),
        other => panic!("{other:?}"),
    }
}

/// Publishes an SSTable of this id.
fn publish(staging: Staging, id: &str) -> Result<()> {
    let components = [Component::Data, Component::Toc];
    let descriptor = Descriptor::new("", compactor_sstable::Version::Oa, id.parse().unwrap());
    for component in components {
        fs::write(staging.path(&descriptor, component), "new").unwrap();
    }
    publish_all(&[(Arc::new(staging), descriptor, components.to_vec())])
}

#[test]
fn killed_runs_are_cleaned_up_and_a_second_one_is_refused() {
    let temp = tempfile::tempdir().unwrap();
    let target = temp.path();
    let dead = target.join(".compactor-1-1-0");
    make(&dead, &["lock"]);
    make(&dead.join("inside-0"), &["oa-7-big-Data.db"]);
    make(target, &["oa-7-big-Filter.db", "oa-8-big-Filter.db"]);
    let claim = take(target).unwrap();
    assert!(!dead.exists());
    assert!(!target.join("oa-7-big-Filter.db").exists());
    assert!(target.join("oa-8-big-Filter.db").exists());
    for existing in [
        ExistingOutput::Refuse,
        ExistingOutput::Replace,
        ExistingOutput::Keep,
    ] {
        assert_refused(
            OutputClaim::take(target, existing, Replaceable::default()),
            "another run",
        );
    }
    drop(claim);
    drop(take(target).unwrap());
    assert_eq!(names(target), ["oa-8-big-Filter.db"]);
}

/// Directories of a run that was killed while it created or removed its directory, and similar ones.
#[test]
fn only_files_of_a_killed_run_are_removed() {
    let temp = tempfile::tempdir().unwrap();
    let target = temp.path();
    make(&target.join(".starting-compactor-1-1-0"), &[]);
    make(&target.join(".starting-compactor-1-1-1"), &["lock"]);
    make(&target.join(".compactor-1-1-2"), &[]);
    make(&target.join(".compactor-1-1-3"), &["oa-7-big-Data.db"]);
    make(&target.join(".compactor-notes"), &["lock"]);
    make(target, &["oa-7-big-Filter.db"]);
    drop(take(target).unwrap());
    let left = [".compactor-1-1-3", ".compactor-notes", "oa-7-big-Filter.db"];
    assert_eq!(names(target), left);
    assert!(target.join(".compactor-notes/lock").exists());
}

#[test]
fn claimed_at_the_same_time_by_one_only() {
    let temp = tempfile::tempdir().unwrap();
    let target = temp.path().join("new/out");
    let at_work = AtomicUsize::new(0);
    let taken = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..50 {
                    match take(&target) {
                        Ok(claim) => {
                            assert_eq!(at_work.fetch_add(1, Ordering::SeqCst), 0);
                            let staging = Staging::create(&claim).unwrap();
                            assert!(staging.directory().is_dir());
                            taken.fetch_add(1, Ordering::SeqCst);
                            at_work.fetch_sub(1, Ordering::SeqCst);
                        }
                        Err(Error::Refused(message)) => {
                            assert!(message.contains("another run"), "{message}");
                        }
                        Err(other) => panic!("{other}"),
                    }
                }
            });
        }
    });
    assert!(taken.into_inner() > 0);
    // A run that found an existing directory does not remove it.
    assert!(!target.exists() || names(&target).is_empty());
}

/// The disk was full when the third was to be created.
#[test]
fn directories_are_removed_as_far_as_they_were_created() {
    let temp = tempfile::tempdir().unwrap();
    let missing = missing_directories(&temp.path().join("out/ks/t"));
    fs::create_dir_all(temp.path().join("out/ks")).unwrap();
    remove_empty(&missing);
    assert_eq!(names(temp.path()), [""; 0]);
    make(&temp.path().join("out"), &["mine"]);
    remove_empty(&missing);
    assert!(temp.path().join("out/mine").exists());
}

#[test]
fn existing_sstables_are_refused_or_replaced() {
    let temp = tempfile::tempdir().unwrap();
    for name in ["oa-1-big-Data.db", "la-1-big-Data.db", "ks-t-jb-1-Data.db"] {
        let target = temp.path().join(name).join("out");
        make(&target, &[name, "oa-2-big-Data.db", "notes"]);
        assert_refused(take(&target), "and 1 more");
        assert_refused(check(&target, ExistingOutput::Refuse), "holds SSTables");
        assert_eq!(names(&target).len(), 3);
    }
    let parent = temp.path().join("oa-1-big-Data.db");
    let target = parent.join("out");
    make(&target.join("mine"), &["file"]);
    let replace =
        || OutputClaim::take(&target, ExistingOutput::Replace, Replaceable::default()).unwrap();
    let before = names(&target);
    let claim = replace();
    fs::write(claim.directory().join("oa-3-big-Data.db"), "x").unwrap();
    drop(claim);
    assert_eq!(names(&target), before, "not committed");

    let claim = replace();
    publish(Staging::create(&claim).unwrap(), "3").unwrap();
    assert_eq!(names(&target).len(), before.len() + 1, "and the lock");
    claim.commit().unwrap();
    claim.commit().unwrap();
    let sstables = |name: &String| name.starts_with("oa-");
    let new = ["oa-3-big-Data.db", "oa-3-big-TOC.txt"];
    let found: Vec<String> = names(&target).into_iter().filter(sstables).collect();
    assert_eq!(found, new);
    assert!(Staging::create(&claim).is_err(), "it has been replaced");
    drop(claim);
    assert_eq!(names(&target), ["mine", "notes", new[0], new[1]]);
    assert!(target.join("mine/file").exists());
    assert_eq!(names(&parent), ["out"]);
}

/// Needs root, which tests in a container have.
#[test]
fn files_created_by_root_get_the_inputs_owner() {
    if !is_root() {
        skip(Need::Root, "only root can change the owner of files");
        return;
    }
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
    let temp = tempfile::tempdir().unwrap();
    let input = temp.path().join("in/oa-1-big-Data.db");
    make(&temp.path().join("in"), &["oa-1-big-Data.db"]);
    let set = |path: &Path, uid, mode| {
        chown(path, Some(uid), Some(uid + 1)).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    set(input.parent().unwrap(), 4321, 0o550);
    set(&input, 1234, 0o640);
    let of = |path: &Path| {
        let metadata = fs::metadata(path).unwrap();
        (metadata.uid(), metadata.gid(), metadata.mode() & 0o7777)
    };
    let root = of(temp.path());
    let target = temp.path().join("out/ks/t");
    let components = [Component::Data, Component::Toc];
    let descriptor = Descriptor::new("", compactor_sstable::Version::Oa, "3".parse().unwrap());
    for existing in [ExistingOutput::Refuse, ExistingOutput::Replace] {
        let replaceable = Replaceable::of_inputs(std::slice::from_ref(&input));
        let claim = OutputClaim::take(&target, existing, replaceable).unwrap();
        publish(Staging::create(&claim).unwrap(), "3").unwrap();
        claim.commit().unwrap();
        assert_eq!(claim.note(), None);
        drop(claim);
        for component in components {
            let path = target.join(descriptor.file_name(component));
            assert_eq!(of(&path), (1234, 1235, 0o640));
        }
        for made in [
            &target,
            &temp.path().join("out/ks"),
            &temp.path().join("out"),
        ] {
            assert_eq!(of(made), (4321, 4322, 0o750), "{}", made.display());
        }
    }
    assert_eq!(of(temp.path()), root);
}

#[test]
fn old_sstables_that_cannot_be_removed_are_noted() {
    let temp = tempfile::tempdir().unwrap();
    let target = temp.path().join("ks/t");
    make(&target, &["oa-1-big-Data.db"]);
    let claim =
        OutputClaim::take(&target, ExistingOutput::Replace, Replaceable::default()).unwrap();
    let new = claim.replacement.as_ref().unwrap().new_directory();
    // A file of this name is moved to the new directory, which has one.
    for directory in [&target, &new] {
        fs::write(directory.join("notes"), "foreign").unwrap();
    }
    claim.commit().unwrap();
    let listed = fs::read(new.with_file_name("obsolete")).unwrap();
    assert_eq!(listed, b"oa-1-big-Data.db\0");
    let note = claim.note().unwrap();
    assert!(
        note.contains(&format!("still in {}", new.display())),
        "{note}"
    );
    drop(claim);
    assert!(new.join("notes").exists() && target.join("notes").exists());
}

#[test]
fn directories_of_a_node_are_refused() {
    let temp = tempfile::tempdir().unwrap();
    let id = "0123456789abcdef0123456789abcdef";
    let live = temp.path().join(format!("ks/t-{id}"));
    make(&live, &["oa-1-big-Data.db"]);
    let new = temp.path().join(format!("a.b/t-{id}"));
    for table in [&live, &new] {
        for inside in [
            "backups",
            "backups/ks/t",
            "snapshots",
            "snapshots/before",
            "snapshots/before/ks/t",
        ] {
            assert_refused(take(&table.join(inside)), "snapshots and backups");
        }
        for existing in [ExistingOutput::Refuse, ExistingOutput::Replace] {
            for own in [table.clone(), table.join(".by_a")] {
                let taken = OutputClaim::take(&own, existing, Replaceable::default());
                assert_refused(taken, "a node's own directory");
                let checked = check(&own, existing);
                assert_refused(checked, "a node's own directory");
            }
        }
        drop(take(&table.join("out")).unwrap());
    }
    drop(OutputClaim::take(&new, ExistingOutput::Keep, Replaceable::default()).unwrap());
    let link = temp.path().join("link");
    std::os::unix::fs::symlink(temp.path().join("ks"), &link).unwrap();
    for beside in ["ks/t", "ks/t/new", "ks/t/new/sub", "link/t", "link/t/new"] {
        assert_refused(take(&temp.path().join(beside)), "instead of its own");
    }
    fs::remove_file(link).unwrap();
    assert_eq!(names(&temp.path().join("ks")), [format!("t-{id}")]);
    drop(take(&temp.path().join("ks/other")).unwrap());
    assert_eq!(names(temp.path()), ["ks"]);
    assert_eq!(names(&live), ["oa-1-big-Data.db"]);
}

#[test]
fn sstables_of_another_program_that_appear_meanwhile_are_kept() {
    let temp = tempfile::tempdir().unwrap();
    let target = temp.path().join("out");
    let claim = take(&target).unwrap();
    let staging = Staging::create(&claim).unwrap();
    fs::write(target.join("me-9-big-Data.db"), "theirs").unwrap();
    assert_refused(Staging::create(&claim), "me-9-big-Data.db was put into");
    assert_refused(publish(staging, "3"), "me-9-big-Data.db was put into");
    drop(claim);
    assert_eq!(names(&target), ["me-9-big-Data.db"]);

    let replace =
        || OutputClaim::take(&target, ExistingOutput::Replace, Replaceable::default()).unwrap();
    let claim = replace();
    publish(Staging::create(&claim).unwrap(), "3").unwrap();
    // Of a version that is not known here.
    fs::write(target.join("la-8-big-Data.db"), "theirs").unwrap();
    assert_refused(claim.commit(), "la-8-big-Data.db was put into");
    drop(claim);
    assert_eq!(names(&target), ["la-8-big-Data.db", "me-9-big-Data.db"]);
    fs::remove_file(target.join("la-8-big-Data.db")).unwrap();

    let claim = replace();
    publish(Staging::create(&claim).unwrap(), "3").unwrap();
    claim.commit().unwrap();
    drop(claim);
    assert_eq!(names(&target), ["oa-3-big-Data.db", "oa-3-big-TOC.txt"]);
    assert_eq!(names(temp.path()), ["out"]);
}

/// An upgrade publishes one after the other.
#[test]
fn later_outputs_of_a_run_are_published_next_to_earlier_ones() {
    let temp = tempfile::tempdir().unwrap();
    let claim = take(temp.path()).unwrap();
    publish(Staging::create(&claim).unwrap(), "3").unwrap();
    publish(Staging::create(&claim).unwrap(), "4").unwrap();
    drop(claim);
    assert_eq!(names(temp.path()).len(), 4);
}

#[test]
fn a_killed_replacement_is_left_to_the_next_run_in_the_directory_that_it_replaces() {
    let temp = tempfile::tempdir().unwrap();
    let [parent, target] = ["parent", "parent/out"].map(|name| temp.path().join(name));
    let run = parent.join(".compactor-1-1-0");
    make(&target, &["oa-9-big-Data.db"]);
    make(&run, &["lock"]);
    fs::write(run.join("replaces"), "out").unwrap();
    fs::write(run.join("obsolete"), "oa-7-big-Data.db\0oa-9-big-Data.db\0").unwrap();
    make(
        &run.join("new"),
        &["notes", "oa-7-big-Data.db", "oa-8-big-Data.db"],
    );
    drop(take(&parent).unwrap());
    assert!(run.join("new/notes").exists());
    assert_refused(take(&target), "holds SSTables");
    assert!(!run.exists());
    assert_eq!(
        names(&target),
        ["notes", "oa-8-big-Data.db", "oa-9-big-Data.db"]
    );
}
