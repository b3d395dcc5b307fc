//! Outputs appear whole or not at all.
//!
//! 1. A staging directory is made inside the output directory and locked.
//! 2. Components are written there and synced one by one.
//! 3. The staging directory is synced, and the parents of directories that were made.
//! 4. Components are renamed into the output directory, all but `Data.db`, and that is synced: a
//!    power cut must not leave `Data.db` without the others, in whatever order a file system writes
//!    its renames.
//! 5. `Data.db` is renamed: without it nothing is an SSTable, neither to us nor to Cassandra, which
//!    removes such orphans when it starts.
//! 6. The output directory is synced again and the staging directory removed.
//!
//! Several outputs appear all or none: their `publication` begins before step 4
//! and is committed after step 5.
//!
//! A run that is killed leaves at most a staging directory and, inside steps 4 and 5, components
//! without their `Data.db`, or a transaction log and outputs that it names. The next run removes
//! staging directories that nobody holds the lock of, and with them what they had moved already.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use compactor_io::{remove_if_exists, rename_no_replace, sync_directory};
use compactor_sstable::Component;
use compactor_sstable::descriptor::Descriptor;

use crate::error::{Error, Result};
use crate::publication::{Publication, refuse_unfinished, undo_unfinished};
use crate::run_directory::{Found, RunDirectory, find_in, is_run_directory};

/// True if the directory is a run's staging directory, or inside one.
pub(crate) fn is_staging(directory: &Path) -> bool {
    directory
        .components()
        .any(|part| is_run_directory(&part.as_os_str().to_string_lossy()))
}

/// A locked directory for the components of the outputs of one run.
#[derive(Debug)]
pub struct Staging {
    directory: PathBuf,
    target: PathBuf,
    /// What paths were given out for: known by name, they can be removed when there is no descriptor
    /// left to list the directory with.
    files: Mutex<BTreeSet<PathBuf>>,
    /// Removed on drop together with what is in the staging directory.
    moved: Mutex<Vec<PathBuf>>,
    /// Something could not be taken back: the staging directory says what, and is not removed.
    stays: AtomicBool,
    /// Directories that did not exist, the innermost first; removed on drop if nothing is in them.
    made: Vec<PathBuf>,
    /// `None` of a directory inside that of another `Staging`, whose lock protects it.
    run: Option<RunDirectory>,
}

impl Staging {
    /// Makes the output directory if it does not exist, and a staging directory in it.
    ///
    /// # Errors
    /// A failed file operation.
    pub fn create(target: &Path) -> Result<Staging> {
        let made = missing_directories(target);
        let result = fs::create_dir_all(target)
            .map_err(Error::file("create directory", target))
            .and_then(|()| lock_directory(target))
            .and_then(|_guard| {
                remove_stale(target)?;
                refuse_unfinished(target)?;
                RunDirectory::create(target)
            });
        if result.is_err() {
            remove_empty(&made);
        }
        let run = result?;
        Ok(Staging {
            directory: run.path().to_owned(),
            target: target.to_owned(),
            files: Mutex::default(),
            moved: Mutex::default(),
            stays: AtomicBool::new(false),
            made,
            run: Some(run),
        })
    }

    /// A directory inside that of `outer`, which must outlive it: there may be hundreds, and each costs no
    /// descriptor.
    ///
    /// # Errors
    /// A failed file operation.
    pub(crate) fn inside(outer: &Staging) -> Result<Staging> {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let made = MADE.fetch_add(1, Ordering::Relaxed);
        let directory = outer.directory.join(format!("inside-{made}"));
        fs::create_dir(&directory).map_err(Error::file("create directory", &directory))?;
        Ok(Staging {
            directory,
            target: outer.directory.clone(),
            files: Mutex::default(),
            moved: Mutex::default(),
            stays: AtomicBool::new(false),
            made: Vec::new(),
            run: None,
        })
    }

    /// The staging directory itself.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Where a component of `descriptor` is written.
    pub fn path(&self, descriptor: &Descriptor, component: Component) -> PathBuf {
        let path = self.directory.join(descriptor.file_name(component));
        if let Ok(mut files) = self.files.lock() {
            files.insert(path.clone());
        }
        path
    }

    /// Steps 3 to 6 for one output. Returns the path of `Data.db`.
    ///
    /// # Errors
    /// As [`publish_all`].
    pub fn publish(self, descriptor: &Descriptor, components: &[Component]) -> Result<PathBuf> {
        let data = self.target.join(descriptor.file_name(Component::Data));
        publish_all(&[(Arc::new(self), descriptor, components)])?;
        Ok(data)
    }

    fn sync(&self) -> Result<()> {
        sync_directory(&self.directory)?;
        for made in &self.made {
            // The parent of a relative path of one name is the empty path: the current directory.
            sync_directory(made.parent().unwrap_or(Path::new("")))?;
        }
        Ok(())
    }

    fn move_to_target(&self, descriptor: &Descriptor, component: Component) -> Result<()> {
        let name = descriptor.file_name(component);
        let target = self.target.join(&name);
        rename_no_replace(&self.directory.join(&name), &target)?;
        if let Ok(mut moved) = self.moved.lock() {
            moved.push(target);
        }
        Ok(())
    }

    /// What was moved stays.
    fn keep_moved(&self) {
        if let Ok(mut moved) = self.moved.lock() {
            moved.clear();
        }
    }

    /// Removes what was moved; `Data.db` went last and goes first. False if something is still there.
    fn remove_moved(&self) -> bool {
        let Ok(mut moved) = self.moved.lock() else {
            return false;
        };
        while let Some(path) = moved.last() {
            if remove_if_exists(path).is_err() {
                return false;
            }
            moved.pop();
        }
        true
    }
}

/// Steps 3 to 6 for outputs of one directory, together: each step is taken for all before the next is
/// for any. The components must be synced. Several outputs may share a staging directory.
///
/// # Errors
/// A failed sync or rename, or a file that is there already. Nothing of any output stays.
pub fn publish_all(outputs: &[(Arc<Staging>, &Descriptor, &[Component])]) -> Result<()> {
    let mut synced: Option<&Arc<Staging>> = None;
    for (staging, ..) in outputs {
        if synced.is_none_or(|synced| !Arc::ptr_eq(synced, staging)) {
            staging.sync()?;
        }
        synced = Some(staging);
    }
    let Some((first, ..)) = outputs.first() else {
        return Ok(());
    };
    // Nobody may take what is moved already for what a killed run left.
    let _guard = lock_directory(&first.target)?;
    let mut publication = match outputs {
        [_] => None,
        several => Some(Publication::begin(
            &first.directory,
            &first.target,
            several
                .iter()
                .map(|(staging, descriptor, c)| (&*staging.directory, *descriptor, *c)),
        )?),
    };
    let moved = move_all(outputs, &first.target).and_then(|()| match &mut publication {
        Some(publication) => publication.commit(),
        None => Ok(()),
    });
    if moved.is_err() {
        let nothing_stays = outputs
            .iter()
            .rev()
            .fold(true, |all, (staging, ..)| staging.remove_moved() && all);
        match publication {
            Some(publication) if nothing_stays && sync_directory(&first.target).is_ok() => {
                publication.abandon();
            }
            // The next run finds the note and the log, and tries again.
            Some(_) => first.stays.store(true, Ordering::Relaxed),
            None => {}
        }
        return moved;
    }
    for (staging, ..) in outputs {
        staging.keep_moved();
    }
    Ok(())
}

/// Steps 4 to 6.
fn move_all(outputs: &[(Arc<Staging>, &Descriptor, &[Component])], target: &Path) -> Result<()> {
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
        self.remove_moved();
        if let Ok(files) = self.files.get_mut() {
            for path in files.iter() {
                let _ = fs::remove_file(path);
            }
        }
        let stays = *self.stays.get_mut();
        match self.run.take() {
            Some(mut run) if stays => run.leave(),
            Some(run) => drop(run),
            None => {
                let _ = fs::remove_dir(&self.directory)
                    .or_else(|_| fs::remove_dir_all(&self.directory));
            }
        }
        remove_empty(&self.made);
    }
}

/// The directory and those above it that do not exist, the innermost first.
fn missing_directories(directory: &Path) -> Vec<PathBuf> {
    directory
        .ancestors()
        .take_while(|d| !d.as_os_str().is_empty() && !d.exists())
        .map(Path::to_owned)
        .collect()
}

/// Removes directories, the innermost first, until one has something in it.
fn remove_empty(directories: &[PathBuf]) {
    for directory in directories {
        if fs::remove_dir(directory).is_err() {
            break;
        }
    }
}

/// Waits until no other run makes, publishes or cleans up in this directory, which none does for long.
/// The lock goes with the file, or with the process.
fn lock_directory(directory: &Path) -> Result<File> {
    const PATIENCE: Duration = Duration::from_secs(30);
    let file = File::open(directory).map_err(Error::file("open directory", directory))?;
    let started = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if started.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(TryLockError::WouldBlock) => {
                return Err(Error::InvalidInput(format!(
                    "{}: another program has locked this directory (flock). End it, or choose another \
                     directory",
                    directory.display()
                )));
            }
            Err(TryLockError::Error(e)) => return Err(Error::file("lock directory", directory)(e)),
        }
    }
}

/// Removes what killed runs left.
fn remove_stale(target: &Path) -> Result<()> {
    for found in find_in(target)? {
        if let Found::Left(left) = found {
            undo_unfinished(left.path(), target)?;
            remove_orphans(target, left.path())?;
            left.remove()?;
        }
    }
    Ok(())
}

/// A run that died while renaming left `Data.db` in its staging directory and other components
/// beside the outputs: without their `Data.db` these are nothing.
fn remove_orphans(target: &Path, staging: &Path) -> Result<()> {
    let entries = match fs::read_dir(staging) {
        Ok(entries) => entries,
        // Its own run was about to remove it.
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(Error::file("list", staging)(e)),
    };
    for entry in entries {
        let Ok(entry) = entry else { break };
        let Ok(file) = Descriptor::parse(&entry.path()) else {
            continue;
        };
        if file.component != Some(Component::Data) {
            continue;
        }
        let mut descriptor = file.descriptor;
        descriptor.directory = target.to_owned();
        if descriptor.path(Component::Data).exists() {
            continue;
        }
        for component in Component::ALL {
            let path = descriptor.path(component);
            match fs::remove_file(&path) {
                Ok(()) => {}
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                Err(e) => return Err(Error::file("remove orphan", path)(e)),
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
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

    #[test]
    fn publishes_all_or_nothing() {
        let temp = tempfile::tempdir().unwrap();
        let parents = temp.path().join("a");
        let target = parents.join("b/out");
        let staging = Staging::create(&target).unwrap();
        write(&staging, Component::Data);
        drop(staging);
        assert!(
            !parents.exists(),
            "directories made for a failed output go with it"
        );
        fs::write(&parents, b"").unwrap();
        Staging::create(&target).unwrap_err();
        assert_eq!(names(temp.path()), ["a"]);
        fs::remove_file(&parents).unwrap();

        let components = [Component::Data, Component::Toc];
        let staging = Staging::create(&target).unwrap();
        components.iter().for_each(|c| write(&staging, *c));
        staging.publish(&descriptor(), &components).unwrap();
        assert_eq!(names(&target), ["oa-7-big-Data.db", "oa-7-big-TOC.txt"]);

        // An id that is taken: what was moved goes again, what was there stays.
        fs::remove_file(target.join("oa-7-big-TOC.txt")).unwrap();
        let staging = Staging::create(&target).unwrap();
        components.iter().for_each(|c| write(&staging, *c));
        assert!(staging.publish(&descriptor(), &components).is_err());
        assert_eq!(names(&target), ["oa-7-big-Data.db"]);
    }

    #[test]
    fn directories_inside_another_share_its_lock() {
        let temp = tempfile::tempdir().unwrap();
        let outer = Staging::create(&temp.path().join("output")).unwrap();
        let first = Staging::inside(&outer).unwrap();
        let second = Staging::inside(&outer).unwrap();
        for inside in [&first, &second] {
            assert_eq!(inside.directory().parent(), Some(outer.directory()));
            std::fs::write(inside.directory().join("file"), "").unwrap();
        }
        let directory = first.directory().to_owned();
        drop(first);
        assert!(!directory.exists() && second.directory().exists());
        drop((second, outer));
        assert!(!temp.path().join("output").exists());
    }

    #[test]
    fn killed_runs_are_cleaned_up_and_live_ones_left_alone() {
        let temp = tempfile::tempdir().unwrap();
        let target = temp.path();
        let dead = target.join(".compactor-1-1-0");
        fs::create_dir(&dead).unwrap();
        fs::write(dead.join("lock"), b"").unwrap();
        fs::write(dead.join("oa-7-big-Data.db"), b"x").unwrap();
        fs::write(target.join("oa-7-big-Filter.db"), b"x").unwrap();
        fs::write(target.join("oa-8-big-Filter.db"), b"x").unwrap();
        let live = Staging::create(target).unwrap();
        let second = Staging::create(target).unwrap();
        assert!(!dead.exists() && live.directory.exists() && second.directory.exists());
        assert!(!target.join("oa-7-big-Filter.db").exists());
        assert!(target.join("oa-8-big-Filter.db").exists());
    }

    /// Of a run that was killed while it made or removed its directory, and what looks like it.
    #[test]
    fn only_what_a_run_left_is_removed() {
        let temp = tempfile::tempdir().unwrap();
        let target = temp.path();
        for (name, file) in [
            (".starting-compactor-1-1-0", None),
            (".starting-compactor-1-1-1", Some("lock")),
            (".compactor-1-1-2", None),
            (".compactor-1-1-3", Some("oa-7-big-Data.db")),
            (".compactor-notes", Some("lock")),
        ] {
            fs::create_dir(target.join(name)).unwrap();
            if let Some(file) = file {
                fs::write(target.join(name).join(file), b"x").unwrap();
            }
        }
        fs::write(target.join("oa-7-big-Filter.db"), b"x").unwrap();
        drop(Staging::create(target).unwrap());
        let left = [".compactor-1-1-3", ".compactor-notes", "oa-7-big-Filter.db"];
        assert_eq!(names(target), left);
        assert!(target.join(".compactor-notes/lock").exists());
    }

    #[test]
    fn directories_made_at_the_same_time() {
        let temp = tempfile::tempdir().unwrap();
        let target = temp.path();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let staging = Staging::create(target).unwrap();
                        write(&staging, Component::Data);
                        assert!(staging.path(&descriptor(), Component::Data).exists());
                    }
                });
            }
        });
        assert!(names(target).is_empty(), "{:?}", names(target));
    }
}
