//! Counting resident pages of a file with `mincore(2)`, if `cachestat` is missing.
#![expect(unsafe_code, reason = "mincore has no safe wrapper")]

use std::io;
use std::os::fd::AsFd;

use rustix::mm::ProtFlags;

use super::mapping::Mapping;

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
        let mapping = Mapping::new(&file, offset, step as usize, ProtFlags::empty())?;
        pages(&mapping)?
            .iter()
            .for_each(|page| report(page & 1 != 0));
        offset += step;
    }
    Ok(())
}

/// Returns a byte for each page of a mapping, whose lowest bit is set if it is resident.
fn pages(mapping: &Mapping) -> io::Result<Vec<u8>> {
    let mut pages = vec![0u8; mapping.len().div_ceil(rustix::param::page_size())];
    // SAFETY: the mapping lives until the end of this function, and the vector has one byte for each of its
    // pages, which is what the kernel writes.
    let result = unsafe { libc::mincore(mapping.address(), mapping.len(), pages.as_mut_ptr()) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(pages)
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
