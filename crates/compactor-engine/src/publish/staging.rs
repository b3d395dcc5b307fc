//! Atomic publication of outputs.
//!
//! 1. A run [claims](crate::publish::output_claim) its output directory: it creates and locks its own
//!    directory in it, and staging directories in that.
//! 2. Components are written to a staging directory and synced one by one.
//! 3. The staging directory is synced, and the parents of directories that were created.
//! 4. All components but `Data.db` are renamed into the output directory, which is then synced: after a power
//!    failure `Data.db` must not exist without the others, in whatever order a file system writes renames.
//! 5. `Data.db` is renamed: files without it are not an SSTable, neither for this program nor for Cassandra,
//!    which removes such orphans when it starts.
//! 6. The output directory is synced again and the staging directory removed.
//!
//! Several outputs appear all or none: their `publication` begins before step 4 and is committed after step
//! 5.
//!
//! A killed run leaves at most its directory and, during steps 4 and 5, components without their `Data.db`,
//! or a transaction log and the outputs that it names. The next run removes directories of runs whose lock is
//! free, and the files that those runs had already moved.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use compactor_io::{lock, remove_if_exists, rename_no_replace, sync_directory};
use compactor_sstable::Component;
use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::transaction_log::Record;

use crate::error::{Error, Result};
use crate::publish::output_claim::OutputClaim;
use crate::publish::publication::{NOTE, create_log};
use crate::publish::run_directory::is_run_directory;
use crate::publish::transaction_file::TransactionFile;

/// Whether the directory is a run's staging directory, or inside one.
pub(crate) fn is_staging(directory: &Path) -> bool {
    directory
        .components()
        .any(|part| is_run_directory(&part.as_os_str().to_string_lossy()))
}

/// Directory for the components of outputs, inside that of the run.
#[derive(Debug)]
pub struct Staging {
    directory: PathBuf,
    /// Paths that were returned to writers: with their names, files can be removed even if no descriptor is
    /// left to list the directory.
    files: Mutex<BTreeSet<PathBuf>>,
    /// Files that were moved; removed on drop with the contents of the staging directory.
    moved: Mutex<Vec<PathBuf>>,
    /// Whether something could not be undone: the staging directory records it and is kept.
    is_kept: AtomicBool,
    claim: Arc<OutputClaim>,
}

impl Staging {
    /// Creates a staging directory for outputs that will be published in the claimed directory.
    ///
    /// # Errors
    /// SSTables of another program in that directory, or a failed file operation.
    pub fn create(claim: &Arc<OutputClaim>) -> Result<Staging> {
        static MADE: AtomicU64 = AtomicU64::new(0);
        claim.refuse_others()?;
        let made = MADE.fetch_add(1, Ordering::Relaxed);
        let directory = claim.work()?.join(format!("inside-{made}"));
        fs::create_dir(&directory).map_err(Error::file("create directory", &directory))?;
        Ok(Staging {
            directory,
            files: Mutex::default(),
            moved: Mutex::default(),
            is_kept: AtomicBool::new(false),
            claim: Arc::clone(claim),
        })
    }

    /// Returns this directory as an output directory, which the staging must outlive: the lock of its run
    /// protects it.
    pub fn as_output_directory(&self) -> Arc<OutputClaim> {
        OutputClaim::of_protected(self.directory.clone())
    }

    /// Path of the staging directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Path at which a component of `descriptor` is written.
    pub fn path(&self, descriptor: &Descriptor, component: Component) -> PathBuf {
        let path = self.directory.join(descriptor.file_name(component));
        lock(&self.files).insert(path.clone());
        path
    }

    fn move_to_target(&self, descriptor: &Descriptor, component: Component) -> Result<()> {
        let name = descriptor.file_name(component);
        let target = self.claim.directory().join(&name);
        rename_no_replace(&self.directory.join(&name), &target)?;
        lock(&self.moved).push(target);
        Ok(())
    }

    /// Removes the moved files: `Data.db` was moved last and is removed first. Returns false if some could
    /// not be removed.
    fn remove_moved(&self) -> bool {
        let mut moved = lock(&self.moved);
        while let Some(path) = moved.last() {
            if remove_if_exists(path).is_err() {
                return false;
            }
            moved.pop();
        }
        true
    }
}

/// An output in a staging directory, and its components.
pub type StagedOutput = (Arc<Staging>, Descriptor, Vec<Component>);

/// Performs steps 3 to 6 for outputs of one directory together: each step for all outputs before the next.
/// The components must be synced. Several outputs may share a staging directory.
///
/// # Errors
/// SSTables of another program in the directory, a failed sync or rename, or a file that already exists. Nothing of any
/// output stays.
pub fn publish_all(outputs: &[StagedOutput]) -> Result<()> {
    if let Some((staging, ..)) = outputs.first() {
        staging.claim.begin_publication()?;
    }
    for (staging, descriptor, components) in outputs {
        for component in components {
            let path = staging.directory.join(descriptor.file_name(*component));
            staging.claim.set_owner(&path)?;
        }
    }
    let mut synced: Option<&Arc<Staging>> = None;
    for (staging, ..) in outputs {
        if synced.is_none_or(|synced| !Arc::ptr_eq(synced, staging)) {
            sync_directory(&staging.directory)?;
            staging.claim.sync_made()?;
        }
        synced = Some(staging);
    }
    let Some((first, ..)) = outputs.first() else {
        return Ok(());
    };
    let target = first.claim.directory();
    let mut begun = match outputs {
        [_] => None,
        several => Some(create_log(
            &first.directory,
            target,
            several
                .iter()
                .map(|(staging, descriptor, c)| (&*staging.directory, descriptor, &c[..])),
        )?),
    };
    let begin = match &mut begun {
        Some((log, records)) => log.begin(records, |_| Ok(())),
        None => Ok(()),
    };
    let moved = begin.and_then(|()| move_all(outputs, target));
    let mut log = begun.map(|(log, _)| log);
    let moved = moved.and_then(|()| match &mut log {
        Some(log) => {
            log.append(&Record::commit().line())?;
            // From here on the outputs are kept. A log that cannot be removed is harmless: it lists nothing to
            // delete.
            Ok(log.remove().is_ok())
        }
        None => Ok(true),
    });
    // COMMIT may be on disk although it could not be synced: the moved files are kept then, and so is the log.
    let is_in_doubt = log.as_ref().is_some_and(TransactionFile::is_in_doubt);
    let is_settled = if moved.is_ok() || is_in_doubt {
        for (staging, ..) in outputs {
            lock(&staging.moved).clear();
        }
        matches!(moved, Ok(true))
    } else {
        let staged = outputs.iter().rev();
        let nothing_stays = staged.fold(true, |all, (staging, ..)| staging.remove_moved() && all);
        let may_end = || nothing_stays && sync_directory(target).is_ok();
        log.is_none_or(|log| may_end() && log.remove().is_ok())
    };
    if !is_settled {
        // The next run finds the note and the log, and acts according to the log.
        first.is_kept.store(true, Ordering::Relaxed);
    }
    moved.map(drop)
}

/// Steps 4 to 6.
fn move_all(outputs: &[StagedOutput], target: &Path) -> Result<()> {
    for (staging, descriptor, components) in outputs {
        for component in components.iter().filter(|c| **c != Component::Data) {
            staging.move_to_target(descriptor, *component)?;
        }
    }
    sync_directory(target)?;
    for (staging, descriptor, _) in outputs {
        staging.move_to_target(descriptor, Component::Data)?;
    }
    Ok(sync_directory(target)?)
}

impl Drop for Staging {
    fn drop(&mut self) {
        // `Data.db` in the staging directory identifies the output of the components that
        // could not be removed.
        let is_left = !self.remove_moved();
        if !is_left {
            for path in lock(&self.files).iter() {
                let _ = fs::remove_file(path);
            }
        }
        if is_left || *self.is_kept.get_mut() {
            self.claim.leave();
            return;
        }
        // Removing an empty directory needs no descriptor: a run that failed because none was left has none.
        let _ = fs::remove_file(self.directory.join(NOTE));
        let _ = fs::remove_dir(&self.directory)
            .or_else(|_| compactor_io::remove_dir_all(&self.directory));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::publish::output_claim::ExistingOutput;
    use crate::publish::replaceable::Replaceable;
    use compactor_sstable::Version;
    use compactor_sstable::sstable_id::SstableId;

    fn descriptor() -> Descriptor {
        let id: SstableId = "7".parse().unwrap();
        Descriptor::new("", Version::Oa, id)
    }

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(directory)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn write(staging: &Staging, component: Component) {
        fs::write(staging.path(&descriptor(), component), b"x").unwrap();
    }

    fn publish(staging: Staging, components: &[Component]) -> Result<()> {
        publish_all(&[(Arc::new(staging), descriptor(), components.to_vec())])
    }

    fn create(target: &Path) -> Result<Staging> {
        Staging::create(&OutputClaim::take(
            target,
            ExistingOutput::Keep,
            Replaceable::default(),
        )?)
    }

    #[test]
    fn publishes_all_or_nothing() {
        let temp = tempfile::tempdir().unwrap();
        let parents = temp.path().join("a");
        let target = parents.join("b/out");
        let staging = create(&target).unwrap();
        write(&staging, Component::Data);
        drop(staging);
        assert!(
            !parents.exists(),
            "directories made for a failed output go with it"
        );
        fs::write(&parents, b"").unwrap();
        create(&target).unwrap_err();
        assert_eq!(names(temp.path()), ["a"]);
        fs::remove_file(&parents).unwrap();

        let components = [Component::Data, Component::Toc];
        let staging = create(&target).unwrap();
        components.iter().for_each(|c| write(&staging, *c));
        publish(staging, &components).unwrap();
        assert_eq!(names(&target), ["oa-7-big-Data.db", "oa-7-big-TOC.txt"]);

        // With an id that is taken, the moved files are removed and the existing ones kept.
        fs::remove_file(target.join("oa-7-big-TOC.txt")).unwrap();
        let staging = create(&target).unwrap();
        components.iter().for_each(|c| write(&staging, *c));
        assert!(publish(staging, &components).is_err());
        assert_eq!(names(&target), ["oa-7-big-Data.db"]);
    }

    #[test]
    fn directories_inside_another_share_its_lock() {
        let temp = tempfile::tempdir().unwrap();
        let outer = create(&temp.path().join("output")).unwrap();
        let [first, second] =
            [(); 2].map(|()| Staging::create(&outer.as_output_directory()).unwrap());
        for inside in [&first, &second] {
            assert_eq!(inside.directory().parent(), Some(outer.directory()));
            fs::write(inside.directory().join("file"), "").unwrap();
        }
        let directory = first.directory().to_owned();
        drop(first);
        assert!(!directory.exists() && second.directory().exists());
        drop((second, outer));
        assert!(!temp.path().join("output").exists());
    }
}
