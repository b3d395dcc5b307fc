//! Operations that make names durable: renames and directory syncs.
//!
//! A file that has been created or renamed survives a power failure once its content *and* its directory have
//! been synced, in this order.

use std::fs::{self, File};
use std::path::Path;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use crate::error::{IoError, IoOperation};

/// Syncs a directory: names created, renamed and removed in it become durable.
///
/// # Errors
///
/// A failed system call. A failed sync is not repeated.
pub fn sync_directory(path: &Path) -> Result<(), IoError> {
    // A path like `x` has the empty parent, which means the current directory.
    let opened = if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    };
    File::open(opened)
        .and_then(|directory| directory.sync_all())
        .map_err(|error| IoError::system(IoOperation::SyncDirectory, opened, error))
}

/// Renames a file, replacing an existing one. Durable after the directory's sync.
///
/// # Errors
///
/// A failed system call; nothing has changed then.
pub fn rename(from: &Path, to: &Path) -> Result<(), IoError> {
    fs::rename(from, to).map_err(|error| IoError::system(IoOperation::Rename, from, error))
}

/// Renames a file unless the new name is taken. Durable after the directory's sync.
///
/// On the few file systems that cannot do this atomically, a file that another process creates between the
/// check and the rename would be replaced.
///
/// # Errors
///
/// [`AlreadyExists`](crate::IoErrorKind::AlreadyExists) naming `to`, or a failed system call; nothing has
/// changed then.
pub fn rename_no_replace(from: &Path, to: &Path) -> Result<(), IoError> {
    let taken = || IoError::system(IoOperation::Rename, to, Errno::EXIST.into());
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        Err(Errno::EXIST) => Err(taken()),
        // Not supported by the file system or the kernel, or unknown to a sandbox. A missing permission would
        // also fail the plain rename.
        Err(Errno::INVAL | Errno::NOSYS | Errno::PERM) => match fs::symlink_metadata(to) {
            Ok(_) => Err(taken()),
            Err(_) => rename(from, to),
        },
        Err(errno) => Err(IoError::system(IoOperation::Rename, from, errno.into())),
    }
}

/// Atomically exchanges two directories or files of one file system: other processes see both names with
/// either their old or their new content. Durable after the sync of both parents.
///
/// # Errors
///
/// A failed system call, also if the file system or the kernel does not support this; nothing has changed
/// then.
pub fn exchange(one: &Path, other: &Path) -> Result<(), IoError> {
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)
        .map_err(|errno| IoError::system(IoOperation::Exchange, other, errno.into()))
}

/// Removes a file; a missing file is not an error. Durable after the directory's sync.
///
/// # Errors
///
/// A failed system call.
pub fn remove_if_exists(path: &Path) -> Result<(), IoError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(IoError::system(IoOperation::Remove, path, error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::IoErrorKind;

    #[test]
    fn a_rename_replaces_only_when_asked_to() {
        let directory = tempfile::tempdir().unwrap();
        let (a, b) = (directory.path().join("a"), directory.path().join("b"));
        fs::write(&a, "a").unwrap();
        fs::write(&b, "b").unwrap();
        let error = rename_no_replace(&a, &b).unwrap_err();
        assert_eq!(error.kind(), IoErrorKind::AlreadyExists);
        assert_eq!(error.path(), b);
        assert_eq!(fs::read(&b).unwrap(), b"b");
        rename(&a, &b).unwrap();
        assert_eq!(fs::read(&b).unwrap(), b"a");
        rename_no_replace(&b, &a).unwrap();
        sync_directory(directory.path()).unwrap();
        remove_if_exists(&a).unwrap();
        remove_if_exists(&a).unwrap();
        assert_eq!(
            sync_directory(&b).unwrap_err().kind(),
            IoErrorKind::NotFound
        );
    }
}
