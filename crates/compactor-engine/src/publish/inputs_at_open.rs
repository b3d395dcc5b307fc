//! Detection of inputs that were replaced during a merge.
//!
//! A running node may compact the SSTables of its table directory at any time. A merge whose inputs it has
//! replaced must not publish: the output would contain rows that the node has purged since, and its id may be
//! that of the node's own output.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use compactor_sstable::Component;
use compactor_sstable::descriptor::Descriptor;

use crate::error::{Error, Result};
use crate::input::existing::{data_files, if_exists, is_data, list};
use crate::publish::file_identity::FileIdentity;
use crate::publish::publication::is_unfinished_log;
use crate::publish::quiet_directories::QuietDirectories;
use crate::publish::staging::is_staging;

/// State of an input before it was opened.
#[derive(Clone, Debug)]
pub struct InputAtOpen {
    /// Path of `Data.db` as given by the caller.
    pub data_path: PathBuf,
    /// Identity of `Data.db`.
    pub data: FileIdentity,
    /// Identity of `Statistics.db`, which a node rewrites when repair state or level changes.
    pub statistics: Option<FileIdentity>,
}

/// State of a run's inputs and their directories before they were opened.
#[derive(Debug)]
pub struct InputsAtOpen {
    inputs: Vec<InputAtOpen>,
    /// Directories of the inputs, with each `Data.db` in them if new SSTables matter, sorted.
    directories: BTreeMap<PathBuf, Option<Vec<PathBuf>>>,
    quiet: QuietDirectories,
}

impl InputsAtOpen {
    /// Records the state of inputs that are about to be opened. `purges`: the run may drop tombstones, so
    /// that SSTables that appear in the inputs' directories matter.
    ///
    /// A missing input is skipped: opening it fails and reports it.
    ///
    /// # Errors
    /// An input or its directory cannot be looked up.
    pub fn look(inputs: &[PathBuf], purges: bool) -> Result<InputsAtOpen> {
        let mut seen = Vec::with_capacity(inputs.len());
        let mut directories = BTreeMap::new();
        for data_path in inputs {
            let Some(data) = identity_of(data_path)? else {
                continue;
            };
            let statistics = match Descriptor::parse(data_path) {
                Ok(file) => identity_of(&file.descriptor.path(Component::Statistics))?,
                Err(_) => None,
            };
            seen.push(InputAtOpen {
                data_path: data_path.clone(),
                data,
                statistics,
            });
            // A given input may be a symbolic link: a node works in the directory of its target.
            let own = data_path.canonicalize();
            let own = own.map_err(Error::file("look up", data_path))?;
            let Some(own) = own.parent().filter(|directory| !is_staging(directory)) else {
                continue;
            };
            if !directories.contains_key(own) {
                let names = purges.then(|| data_files(own)).transpose()?;
                directories.insert(own.to_owned(), names);
            }
        }
        Ok(InputsAtOpen {
            inputs: seen,
            directories,
            quiet: QuietDirectories::default(),
        })
    }

    /// Sets the directories that need not be listed again, where new SSTables do not matter.
    #[must_use]
    pub(crate) fn with_quiet(mut self, quiet: QuietDirectories) -> InputsAtOpen {
        self.quiet = quiet;
        self
    }

    /// The inputs, in the given order.
    pub fn inputs(&self) -> &[InputAtOpen] {
        &self.inputs
    }

    /// Returns the reason why opening the inputs failed: that they were replaced meanwhile, or else `error`.
    pub fn reason_for_open(&self, error: Error) -> Error {
        match self.recheck() {
            Err(replaced @ Error::Refused(_)) if !matches!(error, Error::Cancelled) => replaced,
            _ => error,
        }
    }

    /// Returns the reason why reading the inputs failed after all of them had been opened: that they were
    /// replaced meanwhile, or else `error`.
    pub fn reason_for_read(&self, error: Error) -> Error {
        match self.missing_component(&error) {
            Some(replaced) => self.recheck().err().unwrap_or(replaced),
            None => self.reason_for_open(error),
        }
    }

    /// The refusal if an input's component was missing. A node removes `Data.db` first, which
    /// [`recheck`](Self::recheck) finds; `nodetool clearsnapshot` and `rm` remove files in any order.
    fn missing_component(&self, error: &Error) -> Option<Error> {
        let path = error.path().filter(|_| error.is_not_found())?;
        let sstable = Descriptor::parse(path).ok()?.descriptor;
        let mut inputs = self.inputs.iter();
        let is_input = inputs.any(|input| sstable.path(Component::Data) == input.data_path);
        is_input.then(|| replaced(format!("{} is gone", path.display())))
    }

    /// Compares the inputs and their directories with their recorded state.
    ///
    /// # Errors
    /// [`Error::Refused`] if an input is missing or replaced, a transaction is in progress in its directory,
    /// or new SSTables exist that purged tombstones may have shadowed.
    pub fn recheck(&self) -> Result<()> {
        for input in &self.inputs {
            let path = input.data_path.display();
            match identity_of(&input.data_path)? {
                Some(now) if now.is_same_file(&input.data) => {}
                Some(_) => return Err(replaced(format!("{path} has been replaced"))),
                None => return Err(replaced(format!("{path} is gone"))),
            }
        }
        for (directory, before) in &self.directories {
            match before {
                Some(known) => refuse_change(directory, |path| known.binary_search(path).is_err())?,
                None => (self.quiet).check(directory, || refuse_change(directory, |_| false))?,
            }
        }
        Ok(())
    }
}

/// Refuses a directory with a transaction in progress or with new SSTables.
fn refuse_change(directory: &Path, is_new: impl Fn(&PathBuf) -> bool) -> Result<()> {
    for entry in list(directory)? {
        let entry = entry?;
        let path = entry.path();
        if is_unfinished_log(&entry)? {
            return Err(replaced(format!(
                "{}: a transaction is in progress in the inputs' directory",
                path.display()
            )));
        }
        if is_new(&path) && is_data(&path) {
            return Err(replaced(format!(
                "{} has appeared next to the inputs, and may hold rows that a purged tombstone deletes",
                path.display()
            )));
        }
    }
    Ok(())
}

fn replaced(what: String) -> Error {
    Error::Refused(format!(
        "{what}: the inputs' directory has changed since the run began, so nothing was published. Merge \
         a snapshot (`nodetool snapshot`), or stop the node first"
    ))
}

/// Returns the file's identity; `None` if it does not exist.
fn identity_of(path: &Path) -> Result<Option<FileIdentity>> {
    if_exists(FileIdentity::of(path)).map_err(Error::file("look up", path))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use compactor_sstable::transaction_log;

    use super::*;

    fn directory() -> (tempfile::TempDir, Vec<PathBuf>) {
        let temp = tempfile::tempdir().unwrap();
        let inputs = ["oa-1-big-Data.db", "oa-2-big-Data.db"].map(|name| temp.path().join(name));
        for input in &inputs {
            fs::write(input, "x").unwrap();
        }
        (temp, inputs.to_vec())
    }

    fn assert_refused(seen: &InputsAtOpen, why: &str) {
        match seen.recheck() {
            Err(Error::Refused(message)) => assert!(message.contains(why), "{message}"),
            other => panic!("{why}: {other:?}"),
        }
    }

    #[test]
    fn missing_or_replaced_inputs_are_refused() {
        let (_temp, inputs) = directory();
        let seen = InputsAtOpen::look(&inputs, false).unwrap();
        seen.recheck().unwrap();
        fs::write(&inputs[0], "longer").unwrap();
        assert_refused(&seen, "has been replaced");

        let seen = InputsAtOpen::look(&inputs, false).unwrap();
        let other = inputs[0].with_file_name("other");
        // Its time may be the same.
        fs::write(&other, "even longer").unwrap();
        fs::rename(&other, &inputs[0]).unwrap();
        assert_refused(&seen, "has been replaced");
        fs::remove_file(&inputs[0]).unwrap();
        assert_refused(&seen, "is gone");
    }

    #[test]
    fn an_input_that_is_being_removed_is_the_reason_of_a_missing_component() {
        let (_temp, inputs) = directory();
        let seen = InputsAtOpen::look(&inputs, false).unwrap();
        let missing = |name: &str| {
            let path = inputs[0].with_file_name(name);
            let cause = fs::metadata(&path).unwrap_err();
            seen.reason_for_read(Error::file("open", &path)(cause))
        };
        let of_input = missing("oa-2-big-Index.db");
        assert!(
            matches!(&of_input, Error::Refused(why) if why.contains("oa-2-big-Index.db is gone")),
            "{of_input}"
        );
        let of_other = missing("oa-3-big-Index.db");
        assert!(matches!(of_other, Error::File { .. }), "{of_other}");
    }

    #[test]
    fn new_sstables_matter_where_tombstones_were_purged() {
        let (temp, inputs) = directory();
        let (keeps, purges) = (
            InputsAtOpen::look(&inputs, false).unwrap(),
            InputsAtOpen::look(&inputs, true).unwrap(),
        );
        fs::write(temp.path().join("oa-3-big-TOC.txt"), "").unwrap();
        purges.recheck().unwrap();
        fs::write(temp.path().join("oa-3-big-Data.db"), "x").unwrap();
        keeps.recheck().unwrap();
        assert_refused(&purges, "oa-3-big-Data.db has appeared");
    }

    #[test]
    fn an_unfinished_transaction_is_refused() {
        let (temp, inputs) = directory();
        let seen = InputsAtOpen::look(&inputs, false).unwrap();
        let log = temp.path().join(transaction_log::file_name(
            compactor_sstable::Version::Oa,
            5,
            6,
        ));
        let add = transaction_log::Record::add("/d/oa-3-big-", 8).line();
        fs::write(&log, &add).unwrap();
        assert_refused(&seen, "a transaction is in progress");
        let commit = transaction_log::Record::commit().line();
        fs::write(&log, add + &commit).unwrap();
        seen.recheck().unwrap();
    }
}
