//! Entry point: opens and creates files in a mode, on a backend, with one buffer pool.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex};

use rustix::io::ReadWriteFlags;

use crate::backend::FileHandle;
use crate::backend::IoBackend;
use crate::backend::threads::ThreadsBackend;
use crate::backend::tokio_uring::TokioUringBackend;
use crate::backend::uring::UringBackend;
use crate::backend::watched::Watchdog;
use crate::dio;
use crate::error::{IoError, IoErrorKind, IoOperation};
use crate::evict::ReadEvictor;
use crate::file::open_regular;
use crate::input::InputFile;
use crate::lock;
use crate::mode::{BackendKind, Mode, ReadMode, WriteMode};
use crate::open_input::OpenInput;
use crate::pool::BufferPool;
use crate::process_limits::THREAD_REMEDY;
use crate::sys::RWF_DONTCACHE;
use crate::writer::{SequentialWriter, WriterOptions};

/// Options of an [`Io`]. Values below the minimum are raised to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IoOptions {
    /// Backend.
    pub backend: BackendKind,
    /// Backend `uring`: maximum number of operations in flight, up to 1024. Further ones are queued. It has one
    /// I/O thread, as one handles several gigabytes per second.
    pub queue_depth: usize,
    /// Backend `threads`: number of threads, which is also the maximum number of operations in flight. With
    /// backend `uring` these threads perform blocking calls and `dontcache`.
    pub worker_threads: usize,
    /// Maximum bytes of unused buffers kept for reuse.
    pub free_bytes_limit: usize,
}

impl Default for IoOptions {
    fn default() -> Self {
        IoOptions {
            backend: BackendKind::Auto,
            queue_depth: 32,
            worker_threads: 8,
            free_bytes_limit: 32 << 20,
        }
    }
}

/// The backend in use, and the reason if it is not the preferred one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackendUsed {
    /// Never [`BackendKind::Auto`].
    pub kind: BackendKind,
    /// Reason why `auto` did not use io_uring; `None` if it did, or if the backend was not chosen by `auto`.
    pub fallback_reason: Option<String>,
}

/// A fallback of mode `auto`. There is one per directory and direction, for any number of files.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fallback {
    /// Directory of the files.
    pub directory: PathBuf,
    /// Preferred mode.
    pub asked: Mode,
    /// Mode used instead.
    pub used: Mode,
    /// Reason, for the first file.
    pub reason: String,
    /// Number of files.
    pub files: u64,
}

impl fmt::Display for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} {} uses {}, not direct: {}",
            self.directory.display(),
            self.asked.kind_name(),
            self.asked,
            self.used,
            self.reason
        )
    }
}

/// Opens and creates files. Clones share threads and buffers; the threads end when the last clone and the
/// last file have been dropped, after all operations in flight.
///
/// Do not `fork` while reads are in flight: direct I/O into memory that a child shares copy-on-write can
/// corrupt it. Starting a child with `posix_spawn` or `vfork`, as [`std::process::Command`] does where
/// possible, shares no memory.
#[derive(Debug, Clone)]
pub struct Io {
    shared: Arc<IoShared>,
}

#[derive(Debug)]
struct IoShared {
    asked_backend: BackendKind,
    used: BackendUsed,
    backend: Arc<dyn IoBackend>,
    /// Backend that supports flags; the same as `backend` if that one does.
    threads: Arc<dyn IoBackend>,
    pool: BufferPool,
    /// Fallbacks by directory and requested mode.
    fallbacks: Mutex<BTreeMap<(PathBuf, Mode), Fallback>>,
}

impl Io {
    /// Starts the threads.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](IoErrorKind::Unsupported) if [`BackendKind::Uring`] was requested and does not work;
    /// or the system's error if it refuses a thread.
    pub fn new(options: IoOptions) -> Result<Io, IoError> {
        let no_thread = |name: &'static str| {
            move |error| {
                let path = Path::new(name);
                IoError::system(IoOperation::StartBackend, path, error).remedy(THREAD_REMEDY)
            }
        };
        let threads =
            ThreadsBackend::start(options.worker_threads).map_err(no_thread("threads"))?;
        let threads: Arc<dyn IoBackend> = Arc::new(threads);
        let depth = options.queue_depth;
        let blocking = Arc::clone(&threads);
        let uring: Option<io::Result<Arc<dyn IoBackend>>> = match options.backend {
            BackendKind::Threads => None,
            BackendKind::Uring | BackendKind::Auto => {
                let started = UringBackend::start(depth, blocking);
                Some(started.map(|uring| Arc::new(uring) as _))
            }
            BackendKind::TokioUring => {
                let started = TokioUringBackend::start(depth, blocking);
                Some(started.map(|uring| Arc::new(uring) as _))
            }
        };
        let (backend, fallback_reason) = match uring {
            Some(Ok(uring)) => (uring, None),
            Some(Err(error)) if options.backend != BackendKind::Auto => {
                let reason = format!("io_uring does not work here: {error}");
                let kind = IoErrorKind::Unsupported;
                return Err(IoError::found(
                    IoOperation::StartBackend,
                    kind,
                    Path::new(options.backend.name()),
                    reason,
                )
                .remedy(URING_REMEDY));
            }
            Some(Err(error)) => (
                Arc::clone(&threads),
                Some(format!("io_uring does not work here: {error}")),
            ),
            None => (Arc::clone(&threads), None),
        };
        let used = BackendUsed {
            kind: backend.kind(),
            fallback_reason,
        };
        let watchdog = Watchdog::start().map_err(no_thread("watchdog"))?;
        let (backend, threads) = (watchdog.watch(backend), watchdog.watch(threads));
        Ok(Io::assemble(options, used, backend, threads))
    }

    /// Creates an `Io` that uses the given backend for everything: for tests that inject faults. Nothing ends a run whose
    /// backend never answers.
    pub fn with_backend(options: IoOptions, backend: Arc<dyn IoBackend>) -> Io {
        let used = BackendUsed {
            kind: backend.kind(),
            fallback_reason: None,
        };
        Io::assemble(options, used, Arc::clone(&backend), backend)
    }

    fn assemble(
        options: IoOptions,
        used: BackendUsed,
        backend: Arc<dyn IoBackend>,
        threads: Arc<dyn IoBackend>,
    ) -> Io {
        Io {
            shared: Arc::new(IoShared {
                asked_backend: options.backend,
                used,
                backend,
                threads,
                pool: BufferPool::new(options.free_bytes_limit),
                fallbacks: Mutex::default(),
            }),
        }
    }

    /// Pool of all buffers.
    pub fn pool(&self) -> &BufferPool {
        &self.shared.pool
    }

    /// The backend in use.
    pub fn backend_used(&self) -> &BackendUsed {
        &self.shared.used
    }

    /// The fallbacks so far, by directory.
    pub fn fallbacks(&self) -> Vec<Fallback> {
        lock(&self.shared.fallbacks).values().cloned().collect()
    }

    /// Fallbacks of `auto` so far and their reasons, in sentences: the backend, then the modes.
    pub fn notes(&self) -> Vec<String> {
        let backend = (self.shared.used.fallback_reason.iter())
            .map(|reason| format!("backend auto uses {}: {reason}", self.shared.used.kind));
        let modes = self.fallbacks().into_iter().map(|mode| mode.to_string());
        backend.chain(modes).collect()
    }

    /// Opens a regular file for reading.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](IoErrorKind::Unsupported) if the mode is not supported for this file (only
    /// [`ReadMode::Auto`] falls back) or by the requested backend; or a failed system call.
    pub fn open(&self, path: &Path, mode: ReadMode) -> Result<InputFile, IoError> {
        let asked = Mode::Read(mode);
        let backend =
            self.backend_for(IoOperation::Open, path, asked, mode == ReadMode::DontCache)?;
        let file = open_regular(path).map_err(|error| error.in_mode(asked))?;
        let facts = file_facts(&file, path, asked)?;
        let resolved = dio::resolve_read(&file, path, mode, &facts)?;
        if let Some(reason) = resolved.fallback {
            self.record_fallback(path, asked, Mode::Read(resolved.mode), reason);
        }
        let own_readahead = matches!(resolved.mode, ReadMode::DontNeed | ReadMode::DontCache);
        if own_readahead {
            // Pages that the kernel reads ahead would remain after the read ones have been dropped. Only
            // advice: a file system that refuses it can still be read.
            let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Random);
        }
        Ok(InputFile::new(OpenInput {
            handle: FileHandle::new(file, path, backend),
            pool: self.shared.pool.clone(),
            len: facts.len,
            mode: resolved.mode,
            alignment: resolved.alignment,
            flags: flags_of(mode == ReadMode::DontCache),
            evictor: (resolved.mode == ReadMode::DontNeed).then(ReadEvictor::default),
        }))
    }

    /// Creates a file that must not exist yet.
    ///
    /// # Errors
    ///
    /// [`AlreadyExists`](IoErrorKind::AlreadyExists); [`Unsupported`](IoErrorKind::Unsupported) if the mode
    /// is not supported here (only [`WriteMode::Auto`] falls back) or by the requested backend; or a failed
    /// system call. No new file is left then.
    pub fn create(
        &self,
        path: &Path,
        mode: WriteMode,
        options: WriterOptions,
    ) -> Result<SequentialWriter, IoError> {
        let asked = Mode::Write(mode);
        let dontcache = mode == WriteMode::DontCache;
        let backend = self.backend_for(IoOperation::Create, path, asked, dontcache)?;
        // Also readable, to determine whether it accepts RWF_DONTCACHE.
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)
            .map_err(|error| IoError::system(IoOperation::Create, path, error).in_mode(asked))?;
        let resolved = file_facts(&file, path, asked)
            .and_then(|facts| dio::resolve_write(&file, path, mode, &facts))
            .inspect_err(|_| {
                // The file is new and empty; the error that led here matters more than this one.
                drop(fs::remove_file(path));
            })?;
        if let Some(reason) = resolved.fallback {
            self.record_fallback(path, asked, Mode::Write(resolved.mode), reason);
        }
        Ok(SequentialWriter::new(
            FileHandle::new(file, path, backend),
            self.shared.pool.clone(),
            resolved.mode,
            resolved.alignment,
            flags_of(dontcache),
            options,
        ))
    }

    fn backend_for(
        &self,
        operation: IoOperation,
        path: &Path,
        asked: Mode,
        needs_flags: bool,
    ) -> Result<Arc<dyn IoBackend>, IoError> {
        if !needs_flags {
            return Ok(Arc::clone(&self.shared.backend));
        }
        let asked_backend = self.shared.asked_backend;
        if !matches!(asked_backend, BackendKind::Auto | BackendKind::Threads) {
            let reason = format!("the {asked_backend} backend cannot pass RWF_DONTCACHE");
            let kind = IoErrorKind::Unsupported;
            return Err(IoError::found(operation, kind, path, reason)
                .in_mode(asked)
                .remedy(format!(
                    "choose backend auto or threads, or {} dontneed",
                    asked.kind_name()
                )));
        }
        Ok(Arc::clone(&self.shared.threads))
    }

    fn record_fallback(&self, path: &Path, asked: Mode, used: Mode, reason: String) {
        let directory = visible_directory(path);
        let mut fallbacks = lock(&self.shared.fallbacks);
        let fallback = fallbacks
            .entry((directory.clone(), asked))
            .or_insert(Fallback {
                directory,
                asked,
                used,
                reason,
                files: 0,
            });
        fallback.files += 1;
    }
}

/// Directory of a file; for one in a hidden directory of a run, of which there may be thousands, the directory that
/// contains that.
fn visible_directory(path: &Path) -> PathBuf {
    let parent = path.parent().unwrap_or(Path::new(""));
    let is_visible = |component: &Component<'_>| {
        let name = component.as_os_str().as_encoded_bytes();
        !name.starts_with(RUN_DIRECTORY_PREFIX.as_bytes())
    };
    let visible: PathBuf = parent.components().take_while(is_visible).collect();
    if visible.as_os_str().is_empty() {
        PathBuf::from(".")
    } else {
        visible
    }
}

/// Prefix of the names of the hidden directories in which a run keeps its unpublished files.
pub const RUN_DIRECTORY_PREFIX: &str = ".compactor-";

/// Remedy if io_uring does not work.
const URING_REMEDY: &str = "it may be disabled (sysctl kernel.io_uring_disabled), blocked by a \
     container's seccomp profile, or short of locked memory (`ulimit -l`); choose backend threads \
     or auto";

fn file_facts(file: &File, path: &Path, asked: Mode) -> Result<dio::FileFacts, IoError> {
    dio::file_facts(file)
        .map_err(|error| IoError::system(IoOperation::Stat, path, error).in_mode(asked))
}

fn flags_of(dontcache: bool) -> ReadWriteFlags {
    if dontcache {
        RWF_DONTCACHE
    } else {
        ReadWriteFlags::empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_a_run_are_not_named() {
        let visible = |path: &str| visible_directory(Path::new(path));
        assert_eq!(visible("/a/.b/c-Data.db"), Path::new("/a/.b"));
        let hidden = "/a/.compactor-1-2-0/inside-0/inside-7/c-Data.db";
        assert_eq!(visible(hidden), Path::new("/a"));
        assert_eq!(visible(".compactor-1-2-0/c-Data.db"), Path::new("."));
        assert_eq!(visible("c-Data.db"), Path::new("."));
    }
}
