//! Exclusive claim of a run on its output directory, which never contains SSTables of two generations.
//!
//! An SSTable made yesterday may contain rows that were deleted since. Together with one made today it would
//! restore them when the directory is loaded. So a directory that contains SSTables is refused, or its
//! SSTables are replaced as a whole.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use compactor_io::{Ownership, is_root, lock, sync_directory};
use compactor_sstable::Component;
use compactor_sstable::descriptor::{Descriptor, NameError};

use crate::error::{Error, Result};
use crate::input::existing::{if_exists, list};
use crate::publish::directory_lock::{is_same_directory, lock_directory};
use crate::publish::node_directory::refuse_directory_of_node;
use crate::publish::publication::{refuse_unfinished, sync_file};
use crate::publish::replaceable::Replaceable;
use crate::publish::replacement::Replacement;
use crate::publish::run_directory::RunDirectory;
use crate::publish::stale_runs::clean_up;

/// Treatment of SSTables that the output directory already contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExistingOutput {
    /// The directory is refused.
    #[default]
    Refuse,
    /// They are replaced in one step when the outputs are complete: there are either all old or all new ones,
    /// even if a run is killed.
    Replace,
    /// They are kept: the caller knows that they and the outputs belong together.
    Keep,
}

/// An output directory claimed by this run: no other run writes into it.
#[derive(Debug)]
pub struct OutputClaim {
    /// Directory in which outputs are published.
    target: PathBuf,
    /// Directory in which staging directories are created.
    work: PathBuf,
    /// Directory whose lock shows other runs that this one is active. `None` if another run's lock protects
    /// the output directory.
    run: Option<RunDirectory>,
    replacement: Option<Replacement>,
    /// Directories that were created, the innermost first; removed on drop if they are empty.
    made: Vec<PathBuf>,
    /// Owner and mode of the files, if they are to be changed.
    ownership: Option<Ownership>,
    /// Message for the user.
    note: Mutex<Option<String>>,
}

impl OutputClaim {
    /// Creates the directory if it does not exist, removes files that killed runs left there, and excludes
    /// other runs until dropped.
    ///
    /// If this process is root, outputs get the owner, group and mode of the last input of `replaceable`, and
    /// created directories get those of its directory. A node must own the files it imports.
    ///
    /// # Errors
    /// Refused if another run is active there, or was interrupted in a state that only a node can clean up;
    /// if it contains SSTables that are neither to be kept nor can be replaced; or if it belongs to a node.
    /// Or a failed file operation.
    pub fn take(
        directory: &Path,
        existing: ExistingOutput,
        replaceable: Replaceable<'_>,
    ) -> Result<Arc<OutputClaim>> {
        refuse_directory_of_node(directory, existing == ExistingOutput::Keep)?;
        let made = missing_directories(directory);
        let result = claim(directory, existing, replaceable);
        if result.is_err() {
            remove_empty(&made);
        }
        let (run, replacement) = result?;
        let (target, work) = match &replacement {
            None => (directory.to_owned(), run.path().to_owned()),
            Some(replacement) => (replacement.new_directory(), replacement.work().to_owned()),
        };
        let like = replaceable.inputs.last().filter(|_| is_root());
        let owners = like.and_then(|data| owners_like(data));
        let claim = OutputClaim {
            target,
            work,
            run: Some(run),
            replacement,
            made,
            ownership: owners.map(|(of_files, _)| of_files),
            note: Mutex::new(None),
        };
        if let Some((_, of_directories)) = owners {
            for made in &claim.made {
                claim.give(made, of_directories);
            }
        }
        Ok(Arc::new(claim))
    }

    /// Returns this directory as an output directory. The caller must exclude other runs from it until the
    /// claim is dropped.
    pub(crate) fn of_protected(directory: PathBuf) -> Arc<OutputClaim> {
        Arc::new(OutputClaim {
            target: directory.clone(),
            work: directory,
            run: None,
            replacement: None,
            made: Vec::new(),
            ownership: None,
            note: Mutex::new(None),
        })
    }

    /// Returns the refusal that [`OutputClaim::take`] would return now, without changing anything.
    ///
    /// # Errors
    /// The refusal, or a failed read.
    pub fn check(
        directory: &Path,
        existing: ExistingOutput,
        replaceable: Replaceable<'_>,
    ) -> Result<()> {
        refuse_directory_of_node(directory, existing == ExistingOutput::Keep)?;
        if directory.is_dir() {
            refuse_existing(directory, existing, replaceable)
        } else {
            Ok(())
        }
    }

    /// Directory in which outputs are published. Outputs that replace others appear under the directory's own
    /// name after [`OutputClaim::commit`].
    pub fn directory(&self) -> &Path {
        &self.target
    }

    /// Directory in which staging directories are created.
    ///
    /// # Errors
    /// The replacement has already been committed.
    pub(crate) fn work(&self) -> Result<&Path> {
        match &self.replacement {
            Some(replacement) if replacement.is_committed() => Err(Error::internal(
                "a second publication into a directory that has been replaced",
            )),
            _ => Ok(&self.work),
        }
    }

    /// Completes the publication of all outputs: if they replace others, those are removed now.
    ///
    /// # Errors
    /// A failed exchange or sync.
    pub fn commit(&self) -> Result<()> {
        if let Some(replacement) = &self.replacement
            && let Some(doubt) = replacement.commit()?
        {
            *lock(&self.note) = Some(doubt);
        }
        Ok(())
    }

    /// Whether SSTables that were in the directory are replaced.
    pub fn replaces(&self) -> bool {
        self.replacement.is_some()
    }

    /// Message for the user: that the owner of files could not be set.
    pub fn note(&self) -> Option<String> {
        lock(&self.note).clone()
    }

    /// Sets the owner of a file that is about to be published.
    ///
    /// # Errors
    /// A failed sync.
    pub(crate) fn set_owner(&self, path: &Path) -> Result<()> {
        if let Some(ownership) = self.ownership
            && self.give(path, ownership)
        {
            sync_file(path)?;
        }
        Ok(())
    }

    fn give(&self, path: &Path, ownership: Ownership) -> bool {
        let given = ownership.apply_to(path);
        if let Err(error) = &given {
            let target = self.target.display();
            lock(&self.note).get_or_insert_with(|| {
                format!("the owner of the outputs in {target} could not be set to that of the inputs: {error}")
            });
        }
        given.is_ok()
    }

    /// Keeps the run's directory, which records what must be undone.
    pub(crate) fn leave(&self) {
        if let Some(run) = &self.run {
            run.leave();
        }
    }

    /// Syncs the parents of directories that were created.
    pub(crate) fn sync_made(&self) -> Result<()> {
        for made in &self.made {
            // The parent of a relative path of one name is the empty path: the current directory.
            sync_directory(made.parent().unwrap_or(Path::new("")))?;
        }
        Ok(())
    }
}

impl Drop for OutputClaim {
    fn drop(&mut self) {
        drop(self.run.take());
        // With a replacement that was not committed.
        drop(self.replacement.take());
        remove_empty(&self.made);
    }
}

/// Returns the owners of created files and directories, as those of this file and its directory.
fn owners_like(data: &Path) -> Option<(Ownership, Ownership)> {
    let data = data.canonicalize().ok()?;
    let directory = fs::metadata(data.parent()?).ok()?;
    let of_files = Ownership::of(&fs::metadata(&data).ok()?);
    Some((of_files, Ownership::of(&directory).writable()))
}

fn claim(
    directory: &Path,
    existing: ExistingOutput,
    replaceable: Replaceable<'_>,
) -> Result<(RunDirectory, Option<Replacement>)> {
    // A failing run removes directories that it created, even while other runs are about to use them.
    const ATTEMPTS: usize = 100;
    let mut not_made = None;
    for _ in 0..ATTEMPTS {
        not_made = match fs::create_dir_all(directory) {
            Ok(()) => None,
            Err(e) if e.kind() == ErrorKind::NotFound => Some(e),
            // It existed, but not any more when it was looked up.
            Err(e)
                if e.kind() == ErrorKind::AlreadyExists
                    && fs::symlink_metadata(directory).map_or(true, |found| found.is_dir()) =>
            {
                Some(e)
            }
            Err(e) => return Err(Error::file("create directory", directory)(e)),
        };
        if not_made.is_some() {
            continue;
        }
        match claim_existing(directory, existing, replaceable) {
            Ok(Some(claimed)) => return Ok(claimed),
            Ok(None) => {}
            Err(Error::File { cause, .. }) if cause.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Err(match not_made {
        // A file system without directories such as /proc, or a link to nothing on the way.
        Some(cause) => Error::file("create directory", directory)(cause),
        None => Error::InvalidInput(format!(
            "{}: another process keeps removing it; choose another directory",
            directory.display()
        )),
    })
}

/// Returns `None` if the directory has been removed or exchanged meanwhile.
fn claim_existing(
    directory: &Path,
    existing: ExistingOutput,
    replaceable: Replaceable<'_>,
) -> Result<Option<(RunDirectory, Option<Replacement>)>> {
    let Some(guard) = lock_directory(directory)? else {
        return Ok(None);
    };
    clean_up(directory)?;
    refuse_existing(directory, existing, replaceable)?;
    let run = RunDirectory::create(directory)?;
    // Removing an empty directory does not take its lock, so another run may have created and locked another
    // directory of the same name. A directory that is not empty is no longer removed.
    if !is_same_directory(directory, &guard)? {
        return Ok(None);
    }
    let replacement = match existing {
        ExistingOutput::Replace if !data_files(directory)?.is_empty() => {
            Some(Replacement::begin(directory)?)
        }
        _ => None,
    };
    Ok(Some((run, replacement)))
}

fn refuse_existing(
    directory: &Path,
    existing: ExistingOutput,
    replaceable: Replaceable<'_>,
) -> Result<()> {
    refuse_unfinished(directory)?;
    if existing == ExistingOutput::Keep {
        return Ok(());
    }
    match &data_files(directory)?[..] {
        [] => Ok(()),
        all if existing == ExistingOutput::Replace => replaceable.refuse_others(all),
        [first, others @ ..] => Err(Error::Refused(format!(
            "{} holds SSTables already ({}{}): new output must not be loaded together with them, which may \
             hold rows that were deleted since. Choose an empty directory, or move them away (remove what an \
             interrupted run left); merge and compact replace them with --replace-output",
            directory.display(),
            first.file_name().unwrap_or_default().to_string_lossy(),
            match others.len() {
                0 => String::new(),
                others => format!(" and {others} more"),
            }
        ))),
    }
}

/// Returns each `Data.db` in a directory, of any version, sorted by name.
pub(crate) fn data_files(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in list(directory)? {
        let path = entry?.path();
        if is_data(&path) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

pub(crate) fn is_data(path: &Path) -> bool {
    match Descriptor::parse(path) {
        Ok(file) => file.component == Some(Component::Data),
        Err(NameError::NotAnSstable(_)) => false,
        Err(_) => path
            .to_str()
            .is_some_and(|name| name.ends_with(&format!("-{}", Component::Data.file_suffix()))),
    }
}

/// Returns the directory and its ancestors that do not exist, the innermost first.
fn missing_directories(directory: &Path) -> Vec<PathBuf> {
    directory
        .ancestors()
        // One that cannot be looked up may exist, and must not be removed.
        .take_while(|d| !d.as_os_str().is_empty() && matches!(d.try_exists(), Ok(false)))
        .map(Path::to_owned)
        .collect()
}

/// Removes directories, the innermost first, until one is not empty. Those that were not created are skipped.
fn remove_empty(directories: &[PathBuf]) {
    for directory in directories {
        if if_exists(fs::remove_dir(directory)).is_err() {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

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
        let components = [Component::Data, Component::Toc];
        let descriptor = Descriptor::new("", compactor_sstable::Version::Oa, "3".parse().unwrap());
        let staging = Staging::create(&claim).unwrap();
        for component in components {
            fs::write(staging.path(&descriptor, component), "new").unwrap();
        }
        publish_all(&[(Arc::new(staging), descriptor.clone(), components.to_vec())]).unwrap();
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
            let staging = Staging::create(&claim).unwrap();
            for component in components {
                fs::write(staging.path(&descriptor, component), "new").unwrap();
            }
            publish_all(&[(Arc::new(staging), descriptor.clone(), components.to_vec())]).unwrap();
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
        assert_refused(take(&temp.path().join("ks/t")), "instead of its own");
        drop(take(&temp.path().join("ks/other")).unwrap());
        assert_eq!(names(temp.path()), ["ks"]);
        assert_eq!(names(&live), ["oa-1-big-Data.db"]);
    }
}
