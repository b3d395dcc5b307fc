//! Probing which I/O features work in a directory, and which modes `auto` chooses there.
//!
//! Everything is tried on a file without a name that is removed with its descriptor; if the directory is not
//! writable, on an existing regular file, read only.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::dio;
use crate::error::{IoError, IoOperation};
use crate::io::{Io, IoOptions};
use crate::mode::{BackendKind, ReadMode, WriteMode};
use crate::page_cache;
use crate::process_limits::{ProcessLimit, locked_memory_limit, open_files_limit};
use crate::sys::cachestat;
use crate::sys::overlay::is_on_overlay;

mod device;
mod mount;

pub use device::BlockDevice;
pub use mount::MountPoint;

/// Whether a feature works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Support {
    /// It was tried and works.
    Works,
    /// It was tried and fails, with the reason.
    Fails(String),
    /// It could not be tried, with the reason.
    Unknown(String),
}

impl Support {
    /// Whether it was tried and works.
    pub fn works(&self) -> bool {
        *self == Support::Works
    }

    fn of<T>(result: Result<T, impl ToString>) -> Support {
        match result {
            Ok(_) => Support::Works,
            Err(reason) => Support::Fails(reason.to_string()),
        }
    }
}

/// Choice of `auto`, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice<M> {
    /// Chosen mode or backend, never `Auto`.
    pub chosen: M,
    /// Reason, as a sentence.
    pub reason: String,
}

/// Results of [`probe`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Probe {
    /// The directory.
    pub directory: PathBuf,
    /// Whether files can be created in it.
    pub writable: Support,
    /// The kernel's release, such as `6.12.1`.
    pub kernel: String,
    /// Mount of the directory; `None` if `/proc` does not report it.
    pub mount: Option<MountPoint>,
    /// Block device of the mount; `None` for file systems without one.
    pub device: Option<BlockDevice>,
    /// Direct I/O: whether `statx` reports it and `O_DIRECT` is accepted.
    pub direct: Support,
    /// Alignment of offsets and lengths of direct requests, if they work. Addresses are aligned to
    /// [`DEFAULT_ALIGNMENT`](crate::DEFAULT_ALIGNMENT).
    pub alignment: Option<u64>,
    /// `RWF_DONTCACHE`.
    pub dontcache: Support,
    /// io_uring.
    pub io_uring: Support,
    /// `cachestat(2)`; without it `mincore(2)` is used.
    pub cachestat: Support,
    /// Whether the kernel reports how much of an existing file is in the page cache; it does not for files
    /// that the caller neither owns nor may write to.
    pub page_counts: Support,
    /// `RLIMIT_MEMLOCK`.
    pub locked_memory_bytes: ProcessLimit,
    /// `RLIMIT_NOFILE`.
    pub open_files: ProcessLimit,
    /// Whether the multi-generational LRU decides on eviction; `None` if the kernel has none.
    pub mglru: Option<bool>,
    /// Read mode that `auto` chooses.
    pub read: Choice<ReadMode>,
    /// Write mode that `auto` chooses.
    pub write: Choice<WriteMode>,
    /// Backend that `auto` chooses.
    pub backend: Choice<BackendKind>,
}

/// Determines what works in a directory. Leaves no files.
///
/// # Errors
///
/// The directory cannot be opened. A feature that cannot be tried is not an error, but [`Support::Unknown`].
pub fn probe(directory: &Path) -> Result<Probe, IoError> {
    let failed = |error| IoError::system(IoOperation::Open, directory, error);
    let opened = File::open(directory).map_err(failed)?;
    let facts = rustix::fs::fstat(&opened).map_err(|errno| failed(errno.into()))?;
    if !rustix::fs::FileType::from_raw_mode(facts.st_mode).is_dir() {
        return Err(failed(rustix::io::Errno::NOTDIR.into()));
    }
    let mount = mount::of_file(&opened);
    let device = mount.as_ref().and_then(device::of_mount);
    let created = create_unnamed(directory);
    let writable = Support::of(created.as_ref());
    let found = first_regular_file(directory);
    let page_counts = match (&found, &created) {
        (Some((path, file)), _) => page_counts(file, path),
        (None, Ok(file)) => page_counts(file, directory),
        (None, Err(_)) => Support::Unknown("the directory contains no files".to_owned()),
    };
    let trial = match (created, found) {
        (Ok(file), _) | (Err(_), Some((_, file))) => Ok(file),
        (Err(error), None) => Err(format!(
            "no file can be created in the directory ({error}) and it contains none"
        )),
    };
    let (direct, alignment, dontcache) = try_modes(trial.as_ref());
    let uring = Io::new(IoOptions {
        backend: BackendKind::Uring,
        queue_depth: 1,
        worker_threads: 1,
        ..IoOptions::default()
    });
    let io_uring = Support::of(uring.as_ref());
    Ok(Probe {
        directory: directory.to_owned(),
        writable,
        kernel: rustix::system::uname()
            .release()
            .to_string_lossy()
            .into_owned(),
        mount,
        device,
        read: choose(&direct, ReadMode::Direct, ReadMode::DontNeed),
        write: choose(&direct, WriteMode::Direct, WriteMode::DontNeed),
        backend: match &io_uring {
            Support::Fails(reason) | Support::Unknown(reason) => Choice {
                chosen: BackendKind::Threads,
                reason: reason.clone(),
            },
            Support::Works => {
                let reason = "io_uring works; dontcache still goes to threads".to_owned();
                Choice {
                    chosen: BackendKind::Uring,
                    reason,
                }
            }
        },
        direct,
        alignment,
        dontcache,
        io_uring,
        cachestat: try_cachestat(&opened),
        page_counts,
        locked_memory_bytes: locked_memory_limit(),
        open_files: open_files_limit(),
        mglru: mglru(),
    })
}

/// On a file in memory owned by this process: for other files the kernel may refuse the query.
fn try_cachestat(directory: &File) -> Support {
    if is_on_overlay(directory) {
        return Support::Fails("it counts no pages of files on an overlay file system".to_owned());
    }
    match rustix::fs::memfd_create(c"cachestat", rustix::fs::MemfdFlags::CLOEXEC) {
        Ok(file) => Support::of(cachestat::cachestat(&file)),
        Err(error) => Support::Unknown(format!("memfd_create: {error}")),
    }
}

fn page_counts(file: &File, path: &Path) -> Support {
    match page_cache::of_file(file, path).map(|found| found.pages_resident) {
        Ok(Some(_)) => Support::Works,
        Ok(None) => Support::Fails(format!(
            "the kernel permits it only to the owner of {} and users who may write to it",
            path.display()
        )),
        Err(error) => Support::Fails(error.to_string()),
    }
}

fn choose<M>(direct: &Support, with: M, without: M) -> Choice<M> {
    match direct {
        Support::Works => Choice {
            chosen: with,
            reason: "statx reports direct I/O and O_DIRECT is accepted".to_owned(),
        },
        Support::Fails(reason) | Support::Unknown(reason) => Choice {
            chosen: without,
            reason: reason.clone(),
        },
    }
}

fn try_modes(file: Result<&File, &String>) -> (Support, Option<u64>, Support) {
    let facts = file.map_err(String::clone).and_then(|file| {
        let facts = dio::file_facts(file).map_err(|error| error.to_string())?;
        Ok((file, facts))
    });
    let (file, facts) = match facts {
        Ok(found) => found,
        Err(reason) => {
            let unknown = Support::Unknown(reason);
            return (unknown.clone(), None, unknown);
        }
    };
    // Before O_DIRECT is set, which excludes it.
    let dontcache = Support::of(dio::accepts_dontcache(file, facts.len));
    let accepted = facts
        .direct
        .and_then(|alignment| match dio::set_direct(file) {
            Ok(()) => Ok(alignment),
            Err(error) => Err(format!(
                "statx reports it, but O_DIRECT is refused: {error}"
            )),
        });
    (Support::of(accepted.as_ref()), accepted.ok(), dontcache)
}

/// Creates a file without a name (`O_TMPFILE`), or, if the file system does not support this, one whose name
/// is removed immediately.
fn create_unnamed(directory: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true);
    match options
        .clone()
        .custom_flags(libc::O_TMPFILE)
        .open(directory)
    {
        Err(error)
            if matches!(
                error.raw_os_error(),
                Some(libc::EOPNOTSUPP | libc::EISDIR | libc::EINVAL)
            ) =>
        {
            let path = directory.join(format!(".compactor-probe-{}", std::process::id()));
            let file = options.create_new(true).open(&path)?;
            fs::remove_file(&path)?;
            Ok(file)
        }
        result => result,
    }
}

fn first_regular_file(directory: &Path) -> Option<(PathBuf, File)> {
    crate::read_dir(directory)
        .ok()?
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
        .find_map(|entry| Some((entry.path(), File::open(entry.path()).ok()?)))
}

/// Bit 0 of the kernel's mask is the main switch.
fn mglru() -> Option<bool> {
    let text = fs::read_to_string("/sys/kernel/mm/lru_gen/enabled").ok()?;
    let mask = u32::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok()?;
    Some(mask & 1 != 0)
}
