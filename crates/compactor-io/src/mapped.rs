//! Files mapped into memory, to be read through the page cache as a database maps its indexes.
#![expect(unsafe_code, reason = "the bytes of a mapping as a slice")]

use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use rustix::mm::ProtFlags;

use crate::error::{IoError, IoErrorKind, IoOperation};
use crate::file::open_regular;
use crate::sys::mapping::Mapping;

/// A memory-mapped file, whose pages are read through the page cache when they are accessed.
///
/// A failed read, or access to a truncated file, causes a signal (`SIGBUS`) and not an error.
pub struct MappedFile {
    path: PathBuf,
    mapping: Mapping,
}

impl MappedFile {
    /// Maps a regular file that is not empty.
    ///
    /// # Safety
    ///
    /// The file must not be changed or truncated while it is mapped: safe code assumes that the bytes are
    /// constant.
    ///
    /// # Errors
    ///
    /// A failed system call; [`Unsupported`](IoErrorKind::Unsupported) for an empty file, and for one longer
    /// than the address space.
    pub unsafe fn open(path: &Path) -> Result<MappedFile, IoError> {
        let failed = |error| IoError::system(IoOperation::Open, path, error);
        let file = open_regular(path)?;
        let found = rustix::fs::fstat(&file).map_err(|errno| failed(errno.into()))?;
        let len = usize::try_from(found.st_size).unwrap_or(0);
        if len == 0 {
            let reason = "an empty file cannot be mapped".to_owned();
            let kind = IoErrorKind::Unsupported;
            return Err(IoError::found(IoOperation::Open, kind, path, reason));
        }
        Ok(MappedFile {
            path: path.to_owned(),
            mapping: Mapping::new(&file, 0, len, ProtFlags::READ).map_err(failed)?,
        })
    }

    /// Path with which it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let start = self.mapping.address().cast::<u8>();
        // SAFETY: the bytes are readable and stay until `self` is dropped, and the caller of `open` promised
        // that nobody changes them.
        unsafe { std::slice::from_raw_parts(start, self.mapping.len()) }
    }
}

impl fmt::Debug for MappedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MappedFile")
            .field("path", &self.path)
            .field("len", &self.mapping.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapped_file_has_the_bytes_of_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let bytes: Vec<u8> = (0..10_000u32).map(|i| i as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        // SAFETY: no other process knows the file.
        let mapped = unsafe { MappedFile::open(&path) }.unwrap();
        assert_eq!(&mapped[..], &bytes);
        assert_eq!(mapped.path(), path);
        drop(mapped);
        std::fs::write(&path, b"").unwrap();
        // SAFETY: as above.
        let error = unsafe { MappedFile::open(&path) }.unwrap_err();
        assert_eq!(error.kind(), IoErrorKind::Unsupported);
    }
}
