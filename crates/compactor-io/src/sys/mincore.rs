//! Counting resident pages of a file with `mincore(2)`, if `cachestat` is missing.
#![expect(unsafe_code, reason = "mmap and mincore have no safe wrapper")]

use std::io;
use std::os::fd::AsFd;
use std::ptr::{self, NonNull};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Maximum length of a file mapped at a time, bytes. A multiple of every page size.
const STEP_BYTES: u64 = 1 << 30;

/// Counts the resident pages of the first `len` bytes of a file.
///
/// The result is true only for a caller that owns the file or may write to it; for others the kernel reports
/// every page as resident (since 5.2).
pub(crate) fn resident_pages(file: impl AsFd, len: u64) -> io::Result<u64> {
    let mut resident = 0;
    for_each_page(file, len, |is_resident| resident += u64::from(is_resident))?;
    Ok(resident)
}

/// Calls `f` for each page of the first `len` bytes of a file, in order, with its residency, which is true
/// under the conditions of [`resident_pages`].
pub(crate) fn for_each_page(
    file: impl AsFd,
    len: u64,
    mut report: impl FnMut(bool),
) -> io::Result<()> {
    let mut offset = 0;
    while offset < len {
        let step = STEP_BYTES.min(len - offset);
        let pages = Mapping::new(&file, offset, step as usize)?.pages()?;
        pages.iter().for_each(|page| report(page & 1 != 0));
        offset += step;
    }
    Ok(())
}

/// A mapping without access rights, used only for queries.
struct Mapping {
    address: NonNull<libc::c_void>,
    len: usize,
}

impl Mapping {
    fn new(file: impl AsFd, offset: u64, len: usize) -> io::Result<Mapping> {
        // SAFETY: the kernel chooses the address, so no mapping of anybody's is replaced, and no
        // reference into the new one is ever made.
        let address = unsafe {
            mmap(
                ptr::null_mut(),
                len,
                ProtFlags::empty(),
                MapFlags::SHARED,
                file,
                offset,
            )
        }?;
        match NonNull::new(address) {
            Some(address) => Ok(Mapping { address, len }),
            None => Err(io::Error::other("mmap returned a null address")),
        }
    }

    /// Returns a byte for each page, whose lowest bit is set if it is resident.
    fn pages(&self) -> io::Result<Vec<u8>> {
        let mut pages = vec![0u8; self.len.div_ceil(rustix::param::page_size())];
        // SAFETY: `address` and `len` are of a mapping that lives as long as `self`, and the vector
        // has one byte for each of its pages, which is what the kernel writes.
        let result = unsafe { libc::mincore(self.address.as_ptr(), self.len, pages.as_mut_ptr()) };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(pages)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new` with this address and length and nothing refers
        // into it. It cannot fail for such arguments.
        let _ = unsafe { munmap(self.address.as_ptr(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Guards against `mincore` counting pages differently from `cachestat`, for which it is a fallback.
    #[test]
    fn agrees_with_cachestat() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        for len in [0u64, 1, 4096, 300_000] {
            std::fs::write(&path, vec![1; len as usize]).unwrap();
            let file = std::fs::File::open(&path).unwrap();
            let resident = resident_pages(&file, len).unwrap();
            assert_eq!(resident, len.div_ceil(rustix::param::page_size() as u64));
            if let Ok(stat) = crate::sys::cachestat::cachestat(&file) {
                assert_eq!(resident, stat.cached);
            }
        }
    }
}
