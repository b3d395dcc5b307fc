//! Identity of a file, to distinguish it from another of the same name.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Identity of a file, which distinguishes it from another file of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileIdentity {
    /// Device number.
    pub device: u64,
    /// Inode number.
    pub inode: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// Last modification, nanoseconds since 1970.
    pub modified_ns: i64,
}

impl FileIdentity {
    /// Returns the identity of the file at a path, following symbolic links.
    ///
    /// # Errors
    /// A failed system call.
    pub fn of(path: &Path) -> std::io::Result<FileIdentity> {
        fs::metadata(path).map(|metadata| FileIdentity::from(&metadata))
    }

    /// Whether the lengths are equal, and the inodes or the times of the last modification. Some file systems, such as
    /// sshfs, give a file another inode number once the kernel has forgotten it; a copy that kept the time is as good
    /// as the file.
    pub fn is_same_file(&self, other: &FileIdentity) -> bool {
        let inode = |file: &FileIdentity| (file.device, file.inode);
        self.bytes == other.bytes
            && (inode(self) == inode(other) || self.modified_ns == other.modified_ns)
    }
}

impl From<&Metadata> for FileIdentity {
    fn from(metadata: &Metadata) -> FileIdentity {
        FileIdentity {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.len(),
            modified_ns: metadata
                .mtime()
                .saturating_mul(1_000_000_000)
                .saturating_add(metadata.mtime_nsec()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_the_same_with_another_inode_number_or_another_time() {
        let file = FileIdentity {
            device: 1,
            inode: 2,
            bytes: 3,
            modified_ns: 4,
        };
        let others = [
            (FileIdentity { inode: 9, ..file }, true),
            (FileIdentity { device: 9, ..file }, true),
            (
                FileIdentity {
                    modified_ns: 9,
                    ..file
                },
                true,
            ),
            (FileIdentity { bytes: 9, ..file }, false),
            (
                FileIdentity {
                    inode: 9,
                    modified_ns: 9,
                    ..file
                },
                false,
            ),
        ];
        for (other, is_same) in others {
            assert_eq!(file.is_same_file(&other), is_same, "{other:?}");
        }
    }
}
