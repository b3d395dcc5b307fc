//! Places files in another directory: by hard link, or by copy if linking fails.

use std::fs::{self, File, FileTimes, Metadata, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use compactor_engine::publish::FileIdentity;
use compactor_io::{
    Io, ReadMode, ReadaheadOptions, SequentialReader, WriteMode, WriterOptions, remove_if_exists,
    rename_no_replace,
};
use compactor_sstable::descriptor::TMP_SUFFIX;

use crate::{Error, Result};

/// Owner, group and mode of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) user: u32,
    pub(super) group: u32,
    pub(super) mode: u32,
}

impl Owner {
    pub(super) fn of(metadata: &Metadata) -> Owner {
        Owner {
            user: metadata.uid(),
            group: metadata.gid(),
            mode: metadata.mode() & 0o7777,
        }
    }

    /// Sets owner, group and mode of a file where they differ.
    pub(super) fn take(&self, path: &Path) -> std::io::Result<()> {
        let has = Owner::of(&fs::metadata(path)?);
        if (has.user, has.group) != (self.user, self.group) {
            match chown(path, Some(self.user), Some(self.group)) {
                // A group that this user is not in; the node, which is this user, needs none.
                Err(e) if e.kind() == ErrorKind::PermissionDenied && has.user == self.user => {}
                owned => owned?,
            }
        }
        // A change of owner may clear bits of the mode.
        if Owner::of(&fs::metadata(path)?).mode != self.mode {
            fs::set_permissions(path, Permissions::from_mode(self.mode))?;
        }
        Ok(())
    }
}

/// Mode of placing files.
#[derive(Clone, Copy, Debug)]
pub(super) enum Placement {
    /// The owner stays; an existing file is kept if it is the same file or a copy.
    Keeping,
    /// The file gets this owner; it must not exist.
    As(Owner),
}

/// Places files. Contents are durable, names are not until their directory is synced.
pub(super) struct Placing<'a> {
    io: &'a Io,
    placement: Placement,
}

impl Placing<'_> {
    pub(super) fn new(io: &Io, placement: Placement) -> Placing<'_> {
        Placing { io, placement }
    }

    /// Places `from` at `to`. Returns false if it exists already. Durable after the directory's sync.
    ///
    /// # Errors
    /// Another file of that name, or a failed file operation; `to` is as it was before then.
    pub(super) fn place(&self, from: &Path, to: &Path) -> Result<bool> {
        match fs::hard_link(from, to) {
            Ok(()) => {}
            Err(e) if e.kind() == ErrorKind::AlreadyExists => return self.is_there(from, to),
            Err(e) if e.kind() == ErrorKind::NotFound => return Err(Error::file("link", from)(e)),
            // Another file system, one without links, or a file that may not be linked.
            Err(_) => return self.copy(from, to).map(|()| true),
        }
        if let Err(error) = self.own(from, to, false) {
            let _ = fs::remove_file(to);
            return Err(error);
        }
        Ok(true)
    }

    fn is_there(&self, from: &Path, to: &Path) -> Result<bool> {
        let of = |path: &Path| FileIdentity::of(path).map_err(Error::file("look up", path));
        let (wanted, there) = (of(from)?, of(to)?);
        if matches!(self.placement, Placement::Keeping) {
            refuse_another(&wanted, &there, to).map(|()| false)
        } else {
            Err(another(to))
        }
    }

    fn copy(&self, from: &Path, to: &Path) -> Result<()> {
        let mut tmp = to.as_os_str().to_owned();
        tmp.push(TMP_SUFFIX);
        let tmp = PathBuf::from(tmp);
        remove_if_exists(&tmp)?;
        let copied = self
            .copy_bytes(from, &tmp)
            .and_then(|()| self.own(from, &tmp, true))
            .and_then(|()| Ok(rename_no_replace(&tmp, to)?));
        if copied.is_err() {
            let _ = fs::remove_file(&tmp);
        }
        copied
    }

    fn copy_bytes(&self, from: &Path, to: &Path) -> Result<()> {
        let input = self.io.open(from, ReadMode::Auto)?;
        let options = WriterOptions {
            expected_len: Some(input.len()),
            ..WriterOptions::default()
        };
        let mut writer = self.io.create(to, WriteMode::Auto, options)?;
        let mut reader = SequentialReader::whole(input, ReadaheadOptions::default());
        while let Some(extent) = reader.next()? {
            writer.write_all(&extent)?;
        }
        writer.finish()?;
        Ok(())
    }

    /// Sets owner, mode and, for a copy, the modification time.
    fn own(&self, from: &Path, to: &Path, is_copy: bool) -> Result<()> {
        let result = fs::metadata(from).and_then(|metadata| {
            match self.placement {
                Placement::As(owner) => owner.take(to)?,
                // An input of another user is kept in any case.
                Placement::Keeping if is_copy => drop(Owner::of(&metadata).take(to)),
                Placement::Keeping => {}
            }
            let file = File::open(to)?;
            if is_copy {
                file.set_times(FileTimes::new().set_modified(metadata.modified()?))?;
            }
            file.sync_all()
        });
        result.map_err(Error::file("set owner and mode of", to))
    }
}

/// Refuses a file that is at `to` instead of the one to be placed or kept there, or a copy of it.
///
/// # Errors
/// Another file.
pub(super) fn refuse_another(wanted: &FileIdentity, there: &FileIdentity, to: &Path) -> Result<()> {
    if wanted.is_same_file(there) {
        Ok(())
    } else {
        Err(another(to))
    }
}

fn another(to: &Path) -> Error {
    Error::refused(format!(
        "{}: there is another file of this name. Choose an empty directory",
        to.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use compactor_io::IoOptions;

    #[test]
    fn existing_files_are_kept() {
        let temp = tempfile::tempdir().unwrap();
        let (from, to) = (temp.path().join("a"), temp.path().join("b"));
        fs::write(&from, "a").unwrap();
        let io = Io::new(IoOptions::default()).unwrap();
        let owner = Owner::of(&fs::metadata(&from).unwrap());
        let (keeping, placing) = (
            Placing::new(&io, Placement::Keeping),
            Placing::new(
                &io,
                Placement::As(Owner {
                    mode: 0o640,
                    ..owner
                }),
            ),
        );
        assert!(keeping.place(&from, &to).unwrap());
        assert!(!keeping.place(&from, &to).unwrap());
        placing.place(&from, &to).unwrap_err();
        fs::remove_file(&to).unwrap();
        fs::write(&to, "other").unwrap();
        keeping.place(&from, &to).unwrap_err();
        placing.place(&from, &to).unwrap_err();
        assert_eq!(fs::read(&to).unwrap(), b"other");
        fs::remove_file(&to).unwrap();
        assert!(placing.place(&from, &to).unwrap());
        assert_eq!(Owner::of(&fs::metadata(&to).unwrap()).mode, 0o640);
    }

    #[test]
    fn a_copy_has_bytes_time_and_owner() {
        let temp = tempfile::tempdir().unwrap();
        let (from, to) = (temp.path().join("a"), temp.path().join("b"));
        let bytes: Vec<u8> = (0..100_000u32).map(|at| (at % 251) as u8).collect();
        fs::write(&from, &bytes).unwrap();
        let old = std::time::UNIX_EPOCH + std::time::Duration::new(1_600_000_000, 123_456_789);
        File::open(&from).unwrap().set_modified(old).unwrap();
        fs::write(temp.path().join("b.tmp"), "left by a run that was killed").unwrap();
        let io = Io::new(IoOptions::default()).unwrap();
        let owner = Owner {
            mode: 0o600,
            ..Owner::of(&fs::metadata(&from).unwrap())
        };
        let placing = Placing::new(&io, Placement::As(owner));
        placing.copy(&from, &to).unwrap();
        assert_eq!(fs::read(&to).unwrap(), bytes);
        let metadata = fs::metadata(&to).unwrap();
        assert_eq!(metadata.modified().unwrap(), old);
        assert_eq!(Owner::of(&metadata), owner);
        assert!(!temp.path().join("b.tmp").exists());
        let keeping = Placing::new(&io, Placement::Keeping);
        assert!(!keeping.place(&from, &to).unwrap(), "a copy of it is there");
    }
}
