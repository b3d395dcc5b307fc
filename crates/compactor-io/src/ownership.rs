//! Owner, group and mode, which a program that runs as root sets on files that it creates for another user.

use std::fs::{self, Metadata, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;

/// Owner, group and mode of a file or directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ownership {
    uid: u32,
    gid: u32,
    mode: u32,
}

impl Ownership {
    /// Whether a file or directory belongs to the user of this process.
    pub fn is_own(path: &Path) -> bool {
        std::fs::metadata(path)
            .is_ok_and(|found| found.uid() == rustix::process::geteuid().as_raw())
    }

    /// Returns those in the metadata.
    pub fn of(metadata: &Metadata) -> Ownership {
        Ownership {
            uid: metadata.uid(),
            gid: metadata.gid(),
            mode: metadata.mode() & 0o777,
        }
    }

    /// Returns the same for a directory, writable by its owner.
    #[must_use]
    pub fn writable(self) -> Ownership {
        Ownership {
            mode: self.mode | 0o700,
            ..self
        }
    }

    /// Sets them on a file or directory.
    ///
    /// # Errors
    ///
    /// A failed system call.
    pub fn apply_to(self, path: &Path) -> std::io::Result<()> {
        chown(path, Some(self.uid), Some(self.gid))?;
        fs::set_permissions(path, Permissions::from_mode(self.mode))
    }
}

/// Whether this process may change the owner of files.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
