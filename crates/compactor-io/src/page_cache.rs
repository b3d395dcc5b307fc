//! Observing the page cache: how much of a file it holds.

use std::fmt;
use std::fs::File;
use std::path::Path;

use crate::error::{IoError, IoOperation};
use crate::sys::{cachestat, mincore};

/// How a [`Residency`] was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResidencyMethod {
    /// `cachestat(2)`, Linux 6.5.
    Cachestat,
    /// `mincore(2)`, which knows nothing of dirty pages and tells the truth only to those who own
    /// the file or may write to it.
    Mincore,
}

impl fmt::Display for ResidencyMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ResidencyMethod::Cachestat => "cachestat",
            ResidencyMethod::Mincore => "mincore",
        })
    }
}

/// Pages of a file in the page cache, at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Residency {
    /// Pages that the file's length makes up.
    pub pages_total: u64,
    /// Pages of it in the page cache.
    pub pages_resident: u64,
    /// Of these, pages that are dirty; `None` where the method cannot tell.
    pub dirty: Option<u64>,
    /// Of these, pages that are being written; `None` where the method cannot tell.
    pub writeback: Option<u64>,
    /// How this was found.
    pub method: ResidencyMethod,
}

/// Counts the pages of a file that are in the page cache.
///
/// # Errors
///
/// Where the file cannot be opened, or neither `cachestat` nor `mincore` works.
pub fn residency(path: &Path) -> Result<Residency, IoError> {
    let failed = |error| IoError::system(IoOperation::Residency, path, error);
    let file = File::open(path).map_err(failed)?;
    let len = file.metadata().map_err(failed)?.len();
    let pages_total = len.div_ceil(rustix::param::page_size() as u64);
    match cachestat::cachestat(&file) {
        Ok(stat) => Ok(Residency {
            pages_total,
            pages_resident: stat.cached,
            dirty: Some(stat.dirty),
            writeback: Some(stat.writeback),
            method: ResidencyMethod::Cachestat,
        }),
        // Before 6.5, under a seccomp profile that does not know it, or for a file that the caller
        // may only read.
        Err(_) => Ok(Residency {
            pages_total,
            pages_resident: mincore::resident_pages(&file, len).map_err(failed)?,
            dirty: None,
            writeback: None,
            method: ResidencyMethod::Mincore,
        }),
    }
}

/// Syncs a file and drops all of its pages from the page cache, whoever uses them: for tests,
/// demonstrations and measurements.
///
/// # Errors
///
/// The system's.
pub fn drop_clean_pages(path: &Path) -> Result<(), IoError> {
    let failed = |error| IoError::system(IoOperation::Evict, path, error);
    let file = File::open(path).map_err(failed)?;
    // Dirty pages stay in the cache: they have to be clean first.
    file.sync_data().map_err(failed)?;
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)
        .map_err(|errno| failed(errno.into()))
}
