//! Cleanup of files that killed runs left in an output directory.

use std::path::{Path, PathBuf};

use compactor_io::remove_if_exists;
use compactor_sstable::Component;
use compactor_sstable::descriptor::Descriptor;

use crate::error::{Error, Result};
use crate::input::existing::{list, list_if_exists};
use crate::publish::publication::undo_unfinished;
use crate::publish::replacement::{finish_replacements, is_replacement};
use crate::publish::run_directory::find_in;

/// Removes files that killed runs left in the directory. Refuses a directory in which a run is active.
pub(crate) fn clean_up(directory: &Path) -> Result<()> {
    for found in find_in(directory, |_| true)? {
        if found.is_active() {
            return Err(Error::Refused(format!(
                "another run is writing into {} ({}): wait until it has ended, or choose another \
                 directory",
                directory.display(),
                found.path.display()
            )));
        }
        // It replaces a directory in this one, whose next run completes it.
        if is_replacement(&found.path) {
            continue;
        }
        for part in parts(&found.path)? {
            undo_unfinished(&part, directory)?;
            remove_orphans(directory, &part)?;
        }
        found.remove()?;
    }
    finish_replacements(directory)
}

/// Returns a run's directory and the staging directories in it.
fn parts(run: &Path) -> Result<Vec<PathBuf>> {
    let mut parts = vec![run.to_owned()];
    for entry in list(run)? {
        let entry = entry?;
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            parts.push(entry.path());
        }
    }
    Ok(parts)
}

/// Removes orphans of a killed run. A run that was killed while renaming leaves `Data.db` in its staging
/// directory and other components in the output directory, where they are useless without `Data.db`.
fn remove_orphans(target: &Path, staging: &Path) -> Result<()> {
    // Its own run may just have removed it.
    for entry in list_if_exists(staging)? {
        let Ok(file) = Descriptor::parse(&entry?.path()) else {
            continue;
        };
        if file.component != Some(Component::Data) {
            continue;
        }
        let mut descriptor = file.descriptor;
        descriptor.directory = target.to_owned();
        let data = descriptor.path(Component::Data);
        // A file that cannot be looked up may exist.
        if data.try_exists().map_err(Error::file("look up", &data))? {
            continue;
        }
        for component in Component::ALL {
            remove_if_exists(&descriptor.path(component))?;
        }
    }
    Ok(())
}
