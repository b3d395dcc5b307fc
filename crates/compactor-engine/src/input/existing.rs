//! Files that may not exist, entries of directories, and the SSTables among them.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use compactor_io::DirectoryEntry;
use compactor_sstable::Component;
use compactor_sstable::descriptor::{Descriptor, NameError};

use crate::error::{Error, Result};

/// Returns the result of looking up, opening or removing a file; `None` if there is none of this name.
pub(crate) fn if_exists<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}

/// Lists a directory.
///
/// # Errors
/// The directory cannot be opened. The last item is an error if it could not be listed to its end.
pub(crate) fn list(directory: &Path) -> Result<impl Iterator<Item = Result<DirectoryEntry>>> {
    let failed = move |e| Error::file("list", directory)(e);
    let entries = compactor_io::read_dir(directory).map_err(failed)?;
    Ok(entries.map(move |entry| entry.map_err(failed)))
}

/// As [`list`]; without entries if there is no such directory.
pub(crate) fn list_if_exists(
    directory: &Path,
) -> Result<impl Iterator<Item = Result<DirectoryEntry>>> {
    let entries = match list(directory) {
        Err(e) if e.is_not_found() => None,
        entries => Some(entries?),
    };
    Ok(entries.into_iter().flatten())
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
