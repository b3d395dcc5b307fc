//! Replacement of an output directory in a single step.
//!
//! ```text
//! <parent>/.compactor-.../replaces    name of the output directory
//! <parent>/.compactor-.../obsolete    names of the files of all SSTables, old and new; before the exchange
//! <parent>/.compactor-.../new/        the new outputs
//! <parent>/<output directory>/        the old ones
//! ```
//!
//! When the new outputs are complete and synced, the two directories are exchanged by the kernel
//! (`renameat2`, `RENAME_EXCHANGE`): at no moment does the output directory contain neither generation, or
//! both. Then the old SSTables are removed, and other files of the old directory are moved back. After a kill
//! the next run completes this. It need not know whether the exchange took place, since in either case the
//! SSTables in `new` that are listed are obsolete; without a list all are.
//!
//! If another program puts SSTables into the output directory during the run, the exchange is refused.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use compactor_io::{Ownership, exchange, is_root, rename_no_replace, sync_directory};
use compactor_sstable::descriptor::{Descriptor, TableDirectory};
use compactor_sstable::transaction_log;

use crate::error::{Error, Result};
use crate::input::existing::{if_exists, is_data, list_if_exists};
use crate::publish::publication::{metadata_of, read, sync_file};
use crate::publish::run_directory::{RunDirectory, find_in, has_only, is_of_run, is_run_directory};

/// Name of the file next to a run's outputs that records what the run read and wrote.
pub const RUN_RECORD: &str = "compactor-run.json";

/// End of the name of the record, and of other JSON files, while they are written.
pub const TMP_SUFFIX: &str = ".tmp";

/// Name of the file that contains the name of the directory to be replaced.
const NOTE: &str = "replaces";
/// Name of the file that lists what is removed after the exchange: names, each ended by a zero byte.
const OBSOLETE: &str = "obsolete";
/// Its name while it is written.
const OBSOLETE_TMP: &str = "obsolete.tmp";
/// Name of the new directory; of the old one after the exchange.
const NEW: &str = "new";

/// A directory that will replace another. Dropped before the commit, it leaves nothing.
#[derive(Debug)]
pub(crate) struct Replacement {
    /// Canonical path.
    target: PathBuf,
    run: RunDirectory,
    /// Names of the files of the SSTables that are replaced.
    old: BTreeSet<OsString>,
    is_committed: AtomicBool,
    /// Whether the exchange is not on disk, as far as is known: what it replaced stays for the next run.
    is_in_doubt: AtomicBool,
}

impl Replacement {
    /// Creates an empty directory that will replace `target`, which has the SSTable files `old`.
    ///
    /// # Errors
    /// A refusal if it cannot be replaced in one step, or belongs to a node.
    pub(crate) fn begin(target: &Path, old: BTreeSet<OsString>) -> Result<Replacement> {
        let target = target
            .canonicalize()
            .map_err(Error::file("look up", target))?;
        let refused = |why: String| {
            Error::Refused(format!(
                "{} cannot be replaced in one step: {why}. Choose an empty directory, or move the SSTables \
                 away",
                target.display()
            ))
        };
        if TableDirectory::parse(&target).is_some_and(|table| table.table_id.is_some()) {
            return Err(refused("it is named as a node's own directory".to_owned()));
        }
        let Some((parent, name)) = target.parent().zip(target.file_name()) else {
            return Err(refused("it is the root directory".to_owned()));
        };
        let device = |path: &Path| fs::metadata(path).map(|metadata| metadata.dev()).ok();
        if device(parent) != device(&target) {
            return Err(refused("it is a mount point".to_owned()));
        }
        let run = RunDirectory::create(parent).map_err(|error| match &error {
            Error::File { cause, .. } if is_forbidden(cause) => refused(error.to_string()),
            _ => error,
        })?;
        let replacement = Replacement {
            target: target.clone(),
            run,
            old,
            is_committed: AtomicBool::new(false),
            is_in_doubt: AtomicBool::new(false),
        };
        let (work, new) = (replacement.work().to_owned(), replacement.new_directory());
        let note = work.join(NOTE);
        fs::write(&note, name.as_bytes()).map_err(Error::file("write", &note))?;
        sync_file(&note)?;
        // Tried out before the merge instead of failing after it.
        let other = work.join("other");
        for directory in [&new, &other] {
            fs::create_dir(directory).map_err(Error::file("create directory", directory))?;
        }
        exchange(&new, &other).map_err(|e| refused(e.to_string()))?;
        fs::remove_dir(&other).map_err(Error::file("remove", &other))?;
        refuse_fixed(&target, &work).map_err(|e| {
            if !target.exists() {
                // It is at the path of the run's directory, and could not be moved back.
                replacement.run.leave();
            }
            refused(e.to_string())
        })?;
        let metadata = fs::metadata(&target).map_err(Error::file("look up", &target))?;
        if is_root() {
            let given = Ownership::of(&metadata).apply_to(&new);
            given.map_err(|e| {
                refused(format!("its owner cannot be set on a new directory ({e})"))
            })?;
        }
        fs::set_permissions(&new, metadata.permissions())
            .map_err(Error::file("set the mode of", &new))?;
        Ok(replacement)
    }

    /// Directory in which staging directories may be created.
    pub(crate) fn work(&self) -> &Path {
        self.run.path()
    }

    /// Directory in which the new outputs are published.
    pub(crate) fn new_directory(&self) -> PathBuf {
        self.run.path().join(NEW)
    }

    /// Whether the directories have been exchanged.
    pub(crate) fn is_committed(&self) -> bool {
        self.is_committed.load(Ordering::Relaxed)
    }

    /// Exchanges the directories and removes the old SSTables. Returns a message for the user if the exchange could not be
    /// made durable, or something of the old SSTables stays.
    ///
    /// # Errors
    /// A refusal if there are SSTables that were not there at the beginning. A failed sync before the exchange, or a
    /// failed exchange. Nothing has changed then.
    pub(crate) fn commit(&self) -> Result<Option<String>> {
        if self.is_committed() {
            // A second exchange would restore the old directory.
            return Ok(None);
        }
        let new = self.new_directory();
        let mut names = sstable_files(&self.target)?;
        if let Some(name) = names.difference(&self.old).next() {
            return Err(Error::Refused(format!(
                "{} was put into the output directory during this run, and nothing was replaced: move it away, and run \
                 again",
                self.target.join(name).display()
            )));
        }
        names.append(&mut sstable_files(&new)?);
        self.list_obsolete(&names)?;
        sync_directory(&new)?;
        sync_directory(self.work())?;
        exchange(&new, &self.target)?;
        self.is_committed.store(true, Ordering::Relaxed);
        let parent = self.target.parent().unwrap_or(Path::new("/"));
        let synced = sync_directory(self.work()).and_then(|()| sync_directory(parent));
        let target = self.target.display();
        if let Err(error) = synced {
            self.is_in_doubt.store(true, Ordering::Relaxed);
            return Ok(Some(format!(
                "the new output is in {target}, but a crash of the machine may restore the old one, which is \
                 still in {}: {error}. The next run with --replace-output removes it",
                new.display()
            )));
        }
        Ok(clear(self.work(), &self.target).err().map(|error| {
            format!(
                "the new output is in {target}, but what it replaces is still in {}: {error}. The next run with \
                 --replace-output removes it",
                new.display()
            )
        }))
    }

    /// Writes the list of what is removed after the exchange. A list that is cut off would keep new outputs of a run that
    /// is killed before the exchange.
    fn list_obsolete(&self, names: &BTreeSet<OsString>) -> Result<()> {
        let mut list = Vec::new();
        for name in names {
            list.extend_from_slice(name.as_bytes());
            list.push(0);
        }
        let [tmp, path] = [OBSOLETE_TMP, OBSOLETE].map(|name| self.work().join(name));
        fs::write(&tmp, list).map_err(Error::file("write", &tmp))?;
        sync_file(&tmp)?;
        fs::rename(&tmp, &path).map_err(Error::file("rename", &tmp))
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        // Files of other programs must not be removed with the directory: the next run tries again.
        if *self.is_in_doubt.get_mut() || clear(self.work(), &self.target).is_err() {
            self.run.leave();
        }
    }
}

/// Completes replacements of `target` that killed runs had begun.
///
/// # Errors
/// A failed removal, or another file at the name that a file is moved back to.
pub(crate) fn finish_replacements(target: &Path) -> Result<()> {
    let Ok(target) = target.canonicalize() else {
        return Ok(());
    };
    let Some(parent) = target.parent() else {
        return Ok(());
    };
    let is_for_target = |run: &Path| {
        let note = read(&run.join(NOTE)).ok().flatten().unwrap_or_default();
        target
            .file_name()
            .is_some_and(|name| name.as_bytes() == note)
            || has_only(run, &[NOTE, OBSOLETE, OBSOLETE_TMP])
    };
    // A user who may not list the directory has created nothing there.
    for found in find_in(parent, is_for_target).unwrap_or_default() {
        if !found.is_active() {
            // The exchange may have been the last step of the run, or its sync may have failed.
            sync_directory(&found.path)?;
            sync_directory(parent)?;
            clear(&found.path, &target)?;
            found.remove()?;
        }
    }
    Ok(())
}

/// Whether a run's directory is that of a replacement.
pub(crate) fn is_replacement(run: &Path) -> bool {
    run.join(NOTE).exists()
}

/// Whether a file describes the SSTables of its directory, and is removed with them; the record also if it was
/// still being written.
fn is_of_outputs(name: &str) -> bool {
    transaction_log::is_file_name(name)
        || name.strip_suffix(TMP_SUFFIX).unwrap_or(name) == RUN_RECORD
}

/// Whether the user may not write to a directory.
fn is_forbidden(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem
    )
}

/// Returns the error with which a directory cannot be moved into `work`, next to it: it is a mount point, or in a lower
/// layer of overlayfs. Tried out by a rename to a directory that is not empty, which fails in any case.
fn refuse_fixed(directory: &Path, work: &Path) -> io::Result<()> {
    match fs::rename(directory, work) {
        Err(e)
            if matches!(
                e.kind(),
                ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists
            ) =>
        {
            Ok(())
        }
        Err(e) => Err(e),
        Ok(()) => {
            fs::rename(work, directory)?;
            Err(io::Error::other(
                "its file system replaces directories that are not empty",
            ))
        }
    }
}

/// Names of the files of SSTables in a directory; of versions that are not known here, those of `Data.db`.
pub(crate) fn sstable_files(directory: &Path) -> Result<BTreeSet<OsString>> {
    let mut names = BTreeSet::new();
    for entry in list_if_exists(directory)? {
        let entry = entry?;
        let path = entry.path();
        if Descriptor::parse(&path).is_ok() || is_data(&path) {
            names.insert(entry.file_name());
        }
    }
    Ok(names)
}

/// Names that the run has listed as obsolete; `None` without a list.
fn obsolete_files(run: &Path) -> Result<Option<BTreeSet<OsString>>> {
    let path = run.join(OBSOLETE);
    if metadata_of(&path)?.is_none() {
        return Ok(None);
    }
    // Without the list, files of other programs would be removed.
    let list = read(&path)?.ok_or_else(|| {
        Error::InvalidInput(format!("{}: no list of obsolete files", path.display()))
    })?;
    let names = list.split(|byte| *byte == 0).map(<[u8]>::to_vec);
    Ok(Some(names.map(OsString::from_vec).collect()))
}

/// Removes the obsolete SSTables of a run's directory `new`, moves all other files to `target`, and removes the
/// directory.
fn clear(run: &Path, target: &Path) -> Result<()> {
    let old = &run.join(NEW);
    let obsolete = obsolete_files(run)?;
    for entry in list_if_exists(old)? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let text = name.to_str().unwrap_or_default();
        let is_listed = obsolete.as_ref().is_none_or(|names| names.contains(&name));
        let is_obsolete = is_listed && Descriptor::parse(&path).is_ok();
        let removed = match is_directory {
            false if is_obsolete || is_of_outputs(text) => fs::remove_file(&path),
            // The directory of the replacing run.
            true if is_of_run(&path) => compactor_io::remove_dir_all(&path),
            // One whose removal was cut off.
            true if is_run_directory(text) && fs::remove_dir(&path).is_ok() => Ok(()),
            _ => {
                rename_no_replace(&path, &target.join(&name))?;
                Ok(())
            }
        };
        if_exists(removed).map_err(Error::file("remove", path))?;
    }
    if_exists(fs::remove_dir(old)).map_err(Error::file("remove", old))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files of a killed run, and files of other programs.
    #[test]
    fn only_files_of_other_programs_are_moved_back() {
        let temp = tempfile::tempdir().unwrap();
        let [run, target] = ["run", "target"].map(|name| temp.path().join(name));
        let old = run.join(NEW);
        fs::create_dir(&target).unwrap();
        for directory in [".compactor-1-2-3", ".compactor-1-2-4/theirs", "backups"] {
            fs::create_dir_all(old.join(directory)).unwrap();
        }
        for file in [
            "oa-7-big-Data.db",
            "compactor-run.json",
            "compactor-run.json.tmp",
            "notes",
        ] {
            fs::write(old.join(file), "x").unwrap();
        }
        clear(&run, &target).unwrap();
        assert!(!old.exists());
        let entries = fs::read_dir(&target).unwrap();
        let mut moved: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        moved.sort();
        assert_eq!(moved, [".compactor-1-2-4", "backups", "notes"]);
    }

    /// Killed after the exchange; another program had added an SSTable between the list and the exchange.
    #[test]
    fn only_listed_sstables_are_removed() {
        let temp = tempfile::tempdir().unwrap();
        let [run, target] = ["run", "target"].map(|name| temp.path().join(name));
        let old = run.join(NEW);
        for directory in [&old, &target] {
            fs::create_dir_all(directory).unwrap();
        }
        for file in ["oa-7-big-Data.db", "oa-8-big-Data.db"] {
            fs::write(old.join(file), "x").unwrap();
        }
        fs::write(run.join(OBSOLETE), "oa-7-big-Data.db\0oa-9-big-Data.db\0").unwrap();
        clear(&run, &target).unwrap();
        let left = sstable_files(&target).unwrap();
        assert_eq!(Vec::from_iter(left), ["oa-8-big-Data.db"]);

        fs::create_dir(&old).unwrap();
        fs::rename(
            target.join("oa-8-big-Data.db"),
            old.join("oa-8-big-Data.db"),
        )
        .unwrap();
        fs::remove_file(run.join(OBSOLETE)).unwrap();
        fs::create_dir(run.join(OBSOLETE)).unwrap();
        assert!(clear(&run, &target).is_err(), "the list cannot be read");
        assert!(old.join("oa-8-big-Data.db").exists());
    }
}
