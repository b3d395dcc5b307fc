//! Residency of files in the page cache.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{Access, AtFlags, CWD, Stat, accessat, fstat};
use rustix::process::geteuid;

use crate::error::{IoError, IoOperation};
use crate::file::open_regular;
use crate::sys::{cachestat, mincore, overlay};

/// Method by which a [`Residency`] was determined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResidencyMethod {
    /// `cachestat(2)`, Linux 6.5.
    Cachestat,
    /// `mincore(2)`, which does not report dirty pages.
    Mincore,
    /// None: the kernel permits it only to the owner of a file and users who may write to it.
    Refused,
}

impl fmt::Display for ResidencyMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ResidencyMethod::Cachestat => "cachestat",
            ResidencyMethod::Mincore => "mincore",
            ResidencyMethod::Refused => "refused",
        })
    }
}

/// Number of a file's pages in the page cache, at one point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Residency {
    /// Number of pages of the file, by its length.
    pub pages_total: u64,
    /// Number of them in the page cache; `None` if the kernel does not permit the query.
    pub pages_resident: Option<u64>,
    /// Number of these that are dirty; `None` if the method does not report it.
    pub dirty: Option<u64>,
    /// Number of these that are being written back; `None` if the method does not report it.
    pub writeback: Option<u64>,
    /// Method used.
    pub method: ResidencyMethod,
}

impl fmt::Display for Residency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pages_resident {
            Some(resident) => write!(f, "{resident} of {} pages resident", self.pages_total),
            None => write!(
                f,
                "unknown how many of {} pages are resident",
                self.pages_total
            ),
        }
    }
}

/// Counts the pages of a file that are in the page cache.
///
/// The kernel permits this only to the owner of a file and to users who may write to it, since others could
/// observe which parts are read. For them the result has `None`.
///
/// # Errors
///
/// The file cannot be opened, or neither `cachestat` nor `mincore` works.
pub fn residency(path: &Path) -> Result<Residency, IoError> {
    of_file(&open_regular(path)?, path)
        .map_err(|error| IoError::system(IoOperation::Residency, path, error))
}

/// As [`residency`], for an open file; `path` is its path.
pub(crate) fn of_file(file: &File, path: &Path) -> io::Result<Residency> {
    if overlay::is_on_overlay(file) {
        return by_mincore(file, path);
    }
    match cachestat::cachestat(file) {
        Ok(stat) => Ok(Residency {
            pages_total: pages_of(&fstat(file)?),
            pages_resident: Some(stat.cached),
            dirty: Some(stat.dirty),
            writeback: Some(stat.writeback),
            method: ResidencyMethod::Cachestat,
        }),
        // Before 6.5, under a seccomp profile that does not know it, or for a file that the caller neither
        // owns nor may write to.
        Err(_) => by_mincore(file, path),
    }
}

/// Returns for each page of a file, in order, whether it is in the page cache; `None` if the kernel does not
/// permit the query.
///
/// It takes a byte and a check per page of the file: [`residency`] is cheaper if a count is sufficient.
///
/// # Errors
///
/// The file cannot be opened, or `mincore` does not work.
pub fn resident_pages(path: &Path) -> Result<Option<Vec<bool>>, IoError> {
    let failed = |error| IoError::system(IoOperation::Residency, path, error);
    let file = open_regular(path)?;
    let facts = fstat(&file).map_err(|errno| failed(errno.into()))?;
    let mut pages = Vec::new();
    mincore::for_each_page(&file, len_of(&facts), |is_resident| pages.push(is_resident))
        .map_err(failed)?;
    let may_tell = pages.contains(&false) || mincore_is_true(&facts, path);
    Ok(may_tell.then_some(pages))
}

/// Whether the result of `mincore` is true: since 5.2 the kernel reports every page as resident to users who
/// neither own the file nor may write to it.
fn mincore_is_true(facts: &Stat, path: &Path) -> bool {
    facts.st_uid == geteuid().as_raw()
        || accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS).is_ok()
}

fn by_mincore(file: &File, path: &Path) -> io::Result<Residency> {
    let facts = fstat(file)?;
    let pages_total = pages_of(&facts);
    let resident = mincore::resident_pages(file, len_of(&facts))?;
    let is_true = resident < pages_total || mincore_is_true(&facts, path);
    let (pages_resident, method) = if is_true {
        (Some(resident), ResidencyMethod::Mincore)
    } else {
        (None, ResidencyMethod::Refused)
    };
    Ok(Residency {
        pages_total,
        pages_resident,
        dirty: None,
        writeback: None,
        method,
    })
}

fn pages_of(facts: &Stat) -> u64 {
    len_of(facts).div_ceil(rustix::param::page_size() as u64)
}

/// No file has a negative length.
fn len_of(facts: &Stat) -> u64 {
    u64::try_from(facts.st_size).unwrap_or(0)
}

/// Syncs a file and drops all of its pages from the page cache, including those that other processes use: for
/// tests, demonstrations and measurements.
///
/// # Errors
///
/// A failed system call.
pub fn drop_clean_pages(path: &Path) -> Result<(), IoError> {
    let failed = |error| IoError::system(IoOperation::Evict, path, error);
    let file = open_regular(path)?;
    // Dirty pages are not dropped: they must be clean first.
    match file.sync_data() {
        // A file system that is never written to, such as squashfs, has no such operation.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
        result => result.map_err(failed)?,
    }
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)
        .map_err(|errno| failed(errno.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::os::unix::fs::PermissionsExt;

    use compactor_testkit::{Need, skip_part};

    /// Guards against refusing inputs on a read-only file system such as squashfs, which cannot sync a file, as `/proc`
    /// cannot.
    #[test]
    fn pages_of_a_file_that_cannot_be_synced_are_dropped() {
        let path = Path::new("/proc/self/status");
        let synced = File::open(path).unwrap().sync_data();
        assert_eq!(synced.unwrap_err().raw_os_error(), Some(libc::EINVAL));
        drop_clean_pages(path).unwrap();
    }

    /// Guards against reporting every page of another user's file as resident.
    #[test]
    fn residency_of_a_read_only_file_is_unknown() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, vec![1; 300_000]).unwrap();
        let mine = by_mincore(&File::open(&path).unwrap(), &path).unwrap();
        assert_eq!(mine.pages_resident, Some(mine.pages_total));
        assert_eq!(resident_pages(&path).unwrap(), Some(vec![true; 74]));
        for (place, mode) in [(directory.path(), 0o755), (&path, 0o644)] {
            std::fs::set_permissions(place, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        let as_somebody_else = std::thread::spawn(move || {
            let nobody = rustix::process::Uid::from_raw(65_534);
            // For this thread only; it also drops the capabilities.
            if rustix::thread::set_thread_res_uid(nobody, nobody, nobody).is_err() {
                return false;
            }
            let Ok(file) = File::open(&path) else {
                return false;
            };
            let theirs = by_mincore(&file, &path).unwrap();
            assert_eq!(theirs.pages_resident, None, "{theirs:?}");
            assert_eq!(resident_pages(&path).unwrap(), None);
            assert_eq!(theirs.method, ResidencyMethod::Refused);
            assert_eq!(theirs.pages_total, 74);
            // An older kernel's cachestat permits it to everyone; no kernel reports a wrong count.
            let found = residency(&path).unwrap();
            let told = found.method == ResidencyMethod::Cachestat;
            assert_eq!(found.pages_resident.is_some(), told, "{found:?}");
            true
        });
        if !as_somebody_else.join().unwrap() {
            skip_part(Need::Root, "no right to read a file as another user");
        }
    }
}
