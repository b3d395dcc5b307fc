//! Listing and removing directories. Unlike the standard library's functions, these do not panic if a
//! directory cannot be closed, which is an ordinary error on a network file system.

use std::ffi::{CStr, OsStr, OsString};
use std::fs::{self, FileType as StdFileType, Metadata};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, statat, unlinkat};
use rustix::io::{Errno, retry_on_intr};

/// Lists the entries of a directory, in no particular order, without `.` and `..`.
///
/// # Errors
///
/// A failed system call, here and in each step.
pub fn read_dir<P: AsRef<Path>>(
    path: P,
) -> io::Result<impl Iterator<Item = io::Result<DirectoryEntry>>> {
    let parent = path.as_ref().to_owned();
    let entries = Dir::new(open(CWD, parent.as_path(), OFlags::empty())?)?;
    // A directory that cannot be read would report this forever.
    let mut has_failed = false;
    let entries =
        entries.take_while(move |entry| !std::mem::replace(&mut has_failed, entry.is_err()));
    let entries = entries.filter(|entry| !matches!(entry, Ok(entry) if is_dots(entry.file_name())));
    Ok(entries.map(move |entry| {
        let name = entry?.file_name().to_bytes().to_owned();
        Ok(DirectoryEntry {
            path: parent.join(OsStr::from_bytes(&name)),
        })
    }))
}

/// An entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryEntry {
    path: PathBuf,
}

impl DirectoryEntry {
    /// Path of the directory as given, joined with the entry's name.
    pub fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// File name.
    pub fn file_name(&self) -> OsString {
        self.path.file_name().unwrap_or_default().to_owned()
    }

    /// Metadata of the entry itself, also if it is a symbolic link.
    ///
    /// # Errors
    ///
    /// A failed system call.
    pub fn metadata(&self) -> io::Result<Metadata> {
        fs::symlink_metadata(&self.path)
    }

    /// Type of the entry itself, as [`metadata`](Self::metadata).
    ///
    /// # Errors
    ///
    /// A failed system call.
    pub fn file_type(&self) -> io::Result<StdFileType> {
        Ok(self.metadata()?.file_type())
    }
}

/// Removes a directory with its contents. Symbolic links are removed and not followed. Entries that another
/// process removes at the same time are not an error.
///
/// # Errors
///
/// A failed system call; a part may have been removed then.
pub fn remove_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    Ok(remove_tree(CWD, path.as_ref())?)
}

fn open(
    parent: BorrowedFd<'_>,
    path: impl rustix::path::Arg + Copy,
    more: OFlags,
) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | more;
    retry_on_intr(|| openat(parent, path, flags, Mode::empty()))
}

fn remove_tree(
    parent: BorrowedFd<'_>,
    path: impl rustix::path::Arg + Copy,
) -> rustix::io::Result<()> {
    // Without following a link, which may lead out of the directory.
    let kind = FileType::from_raw_mode(statat(parent, path, AtFlags::SYMLINK_NOFOLLOW)?.st_mode);
    if kind != FileType::Directory {
        return unlinkat(parent, path, AtFlags::empty());
    }
    let directory = open(parent, path, OFlags::NOFOLLOW)?;
    for entry in Dir::read_from(&directory)? {
        let entry = entry?;
        if is_dots(entry.file_name()) {
            continue;
        }
        match remove_tree(directory.as_fd(), entry.file_name()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno),
        }
    }
    unlinkat(parent, path, AtFlags::REMOVEDIR)
}

fn is_dots(name: &CStr) -> bool {
    matches!(name.to_bytes(), b"." | b"..")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn names(path: &Path) -> Vec<String> {
        let entries = read_dir(path).unwrap().map(|entry| entry.unwrap());
        let mut names: Vec<_> = entries
            .map(|entry| {
                assert_eq!(entry.path(), path.join(entry.file_name()));
                entry.file_name().into_string().unwrap()
            })
            .collect();
        names.sort();
        names
    }

    /// Guards against entries that are omitted or listed twice in a directory that takes several calls to
    /// read.
    #[test]
    fn every_entry_is_listed_once() {
        let temp = tempfile::tempdir().unwrap();
        assert_eq!(names(temp.path()), [""; 0]);
        let mut all: Vec<String> = (0..3000).map(|n| format!(".file-{n:060}")).collect();
        for name in &all {
            fs::write(temp.path().join(name), "").unwrap();
        }
        fs::create_dir(temp.path().join("directory")).unwrap();
        all.push("directory".to_owned());
        assert_eq!(names(temp.path()), all);
        let error = read_dir(temp.path().join("none")).err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        let error = read_dir(temp.path().join(&all[0])).err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::NotADirectory);
    }

    /// Guards against removing the target of a link.
    #[test]
    fn a_tree_is_removed_without_its_link_targets() {
        let temp = tempfile::tempdir().unwrap();
        let (kept, tree) = (temp.path().join("kept"), temp.path().join("tree"));
        fs::create_dir_all(tree.join("a/b/c")).unwrap();
        fs::create_dir(&kept).unwrap();
        for file in [kept.join("file"), tree.join("file"), tree.join("a/b/file")] {
            fs::write(file, "x").unwrap();
        }
        symlink(&kept, tree.join("a/link")).unwrap();
        symlink("nowhere", tree.join("broken")).unwrap();
        remove_dir_all(&tree).unwrap();
        assert_eq!(names(temp.path()), ["kept"]);
        assert_eq!(names(&kept), ["file"]);
        let error = remove_dir_all(&tree).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
