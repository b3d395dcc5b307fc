//! Mappings of files into memory.
#![expect(unsafe_code, reason = "mmap has no safe wrapper")]

use std::io;
use std::os::fd::AsFd;
use std::ptr::{self, NonNull};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// A shared mapping of a part of a file, until it is dropped.
pub(crate) struct Mapping {
    address: NonNull<libc::c_void>,
    len: usize,
}

// SAFETY: a mapping belongs to no thread, and what may be done with its bytes is up to its users.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `len` bytes, which is not 0, with these access rights.
    pub(crate) fn new(
        file: impl AsFd,
        offset: u64,
        len: usize,
        rights: ProtFlags,
    ) -> io::Result<Mapping> {
        let address = ptr::null_mut();
        // SAFETY: the kernel chooses the address, so no mapping of anybody's is replaced, and no reference
        // into the new one is made here.
        let address = unsafe { mmap(address, len, rights, MapFlags::SHARED, file, offset) }?;
        match NonNull::new(address) {
            Some(address) => Ok(Mapping { address, len }),
            None => Err(io::Error::other("mmap returned a null address")),
        }
    }

    pub(crate) fn address(&self) -> *mut libc::c_void {
        self.address.as_ptr()
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new` with this address and length, and nothing borrows from it
        // any more. It cannot fail for such arguments.
        let _ = unsafe { munmap(self.address.as_ptr(), self.len) };
    }
}
