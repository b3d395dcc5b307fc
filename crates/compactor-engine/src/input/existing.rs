//! Files that may not exist, and entries of directories.

use std::io::{self, ErrorKind};
use std::path::Path;

use compactor_io::DirectoryEntry;

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
