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

use crate::error::{Error, Result};
use crate::input::existing::{data_files, if_exists, is_data};
use crate::publish::directory_lock::{is_same_directory, lock_directory};
use crate::publish::node_directory::refuse_directory_of_node;
use crate::publish::publication::{refuse_unfinished, sync_file};
use crate::publish::replaceable::Replaceable;
use crate::publish::replacement::{Replacement, sstable_files};
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
    /// Whether nothing was published yet, and `target` had no SSTables at the claim.
    is_empty: Mutex<bool>,
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
            is_empty: Mutex::new(replacement.is_none() && existing != ExistingOutput::Keep),
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
            is_empty: Mutex::new(false),
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

    /// Refuses SSTables that another program has put into the directory since the claim, before an output is begun. After
    /// the first publication it has outputs, and is not listed again.
    pub(crate) fn refuse_others(&self) -> Result<()> {
        self.refuse_others_if(*lock(&self.is_empty))
    }

    /// As [`OutputClaim::refuse_others`], before an output is published.
    pub(crate) fn begin_publication(&self) -> Result<()> {
        let mut is_empty = lock(&self.is_empty);
        self.refuse_others_if(*is_empty)?;
        *is_empty = false;
        Ok(())
    }

    fn refuse_others_if(&self, is_empty: bool) -> Result<()> {
        if is_empty && let Some(other) = data_files(&self.target)?.first() {
            return Err(Error::Refused(format!(
                "{} was put into the output directory during this run, and must not be loaded together with new output: \
                 move it away, and run again",
                other.display()
            )));
        }
        Ok(())
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
    // Listed before they are checked: what comes later is refused before the exchange.
    let old = sstable_files(directory)?;
    refuse_existing(directory, existing, replaceable)?;
    let run = RunDirectory::create(directory)?;
    // Removing an empty directory does not take its lock, so another run may have created and locked another
    // directory of the same name. A directory that is not empty is no longer removed.
    if !is_same_directory(directory, &guard)? {
        return Ok(None);
    }
    let replacement = match existing {
        ExistingOutput::Replace if old.iter().any(|name| is_data(name.as_ref())) => {
            Some(Replacement::begin(directory, old)?)
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
mod tests;
