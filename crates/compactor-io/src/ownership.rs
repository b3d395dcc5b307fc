//! Owner, group and mode: what a program that runs as root gives to what it makes for somebody else.

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
    /// Of what these metadata are of.
    pub fn of(metadata: &Metadata) -> Ownership {
        Ownership {
            uid: metadata.uid(),
            gid: metadata.gid(),
            mode: metadata.mode() & 0o777,
        }
    }

    /// The same, for a directory that its owner is to write into.
    #[must_use]
    pub fn writable(self) -> Ownership {
        Ownership {
            mode: self.mode | 0o700,
            ..self
        }
    }

    /// Gives them to a file or directory.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn give_to(self, path: &Path) -> std::io::Result<()> {
        chown(path, Some(self.uid), Some(self.gid))?;
        fs::set_permissions(path, Permissions::from_mode(self.mode))
    }
}

/// Whether this process may give files away.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
