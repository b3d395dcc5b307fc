//! Files through the page cache or bypassing it: aligned buffers, I/O modes and backends.
//!
//! This crate moves bytes between files and memory on Linux. It knows nothing of what is in the
//! files, prints nothing and decides nothing about names or order of publication.
//!
//! Start with [`Io`]: it [opens](Io::open) an [`InputFile`] in a [`ReadMode`] and
//! [creates](Io::create) a file through a [`SequentialWriter`] in a [`WriteMode`]. An `InputFile`
//! is read at any place ([`InputFile::read_at`], [`InputFile::submit_read`]) or from front to back
//! with readahead ([`SequentialReader`]). Operations are carried out by a backend
//! ([`BackendKind`]): io_uring, or a pool of threads. Every mode on every backend gives the same
//! bytes.
//!
//! Buffers are page-aligned and come from a [`BufferPool`], which counts them.
//! [`residency`] shows how much of a file is in the page cache; [`probe()`] reports which features work in a
//! directory.
//!
//! # Example
//!
//! Copies a file bypassing the page cache (where direct I/O is possible; else by the same means as
//! [`ReadMode::DontNeed`]).
//!
//! ```
//! use compactor_io::{Io, IoOptions, ReadMode, ReadaheadOptions, SequentialReader, WriteMode};
//! use compactor_io::{WriterOptions, residency, sync_directory};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! let source = directory.path().join("source");
//! let target = directory.path().join("target");
//! std::fs::write(&source, b"some bytes")?;
//!
//! let io = Io::new(IoOptions::default())?;
//! let mut reader =
//!     SequentialReader::whole(io.open(&source, ReadMode::Auto)?, ReadaheadOptions::default());
//! let mut writer = io.create(&target, WriteMode::Auto, WriterOptions::default())?;
//! while let Some(extent) = reader.next()? {
//!     writer.write_all(&extent)?;
//! }
//! let written = writer.finish()?; // complete and durable
//! sync_directory(directory.path())?; // and so is its name
//!
//! assert_eq!(written.len, 10);
//! assert_eq!(std::fs::read(&target)?, b"some bytes");
//! println!("of the copy, {}", residency(&target)?);
//! for fallback in io.fallbacks() {
//!     println!("{fallback}");
//! }
//! # Ok(())
//! # }
//! ```
#![deny(unsafe_code)]

#[cfg(not(target_os = "linux"))]
compile_error!("compactor-io is for Linux only: O_DIRECT, statx, io_uring, cachestat");

use std::sync::{Mutex, MutexGuard, PoisonError};

mod align;
mod aligned_memory;
mod backend;
mod buffer;
mod dio;
mod directory;
mod durable;
mod error;
mod evict;
mod exiting_allocator;
mod extent;
mod file;
mod free_buffers;
mod free_memory;
mod input;
mod io;
mod limits;
mod mapped;
mod mode;
mod open_input;
mod open_output;
mod ownership;
mod page_cache;
mod pool;
mod preallocate;
mod prefetch;
mod probe;
mod process_limits;
mod range_set;
mod read_transfer;
mod reader;
mod sys;
mod write_transfer;
mod writeback;
mod writer;

pub use align::DEFAULT_ALIGNMENT;
pub use backend::watched::{Stall, set_stall_hook};
pub use backend::{
    BlockingCall, Completion, FileHandle, IoBackend, Operation, Outcome, ReadTarget, Request,
};
pub use buffer::AlignedBuffer;
pub use directory::{DirectoryEntry, read_dir, remove_dir_all};
pub use durable::{exchange, remove_if_exists, rename, rename_no_replace, sync_directory};
pub use error::{IoError, IoErrorKind, IoOperation};
pub use exiting_allocator::ExitingAllocator;
pub use extent::Extent;
pub use file::open_regular;
pub use free_memory::{release_free_memory, share_arenas};
pub use input::InputFile;
pub use io::{BackendUsed, Fallback, Io, IoOptions, RUN_DIRECTORY_PREFIX};
pub use mapped::MappedFile;
pub use mode::{BackendKind, Mode, ReadMode, UnknownName, WriteMode};
pub use ownership::{Ownership, is_root};
pub use page_cache::{Residency, ResidencyMethod, drop_clean_pages, residency, resident_pages};
pub use pool::BufferPool;
pub use prefetch::prefetch;
pub use probe::{BlockDevice, Choice, MountPoint, Probe, Support, probe};
pub use process_limits::{
    ProcessLimit, THREAD_REMEDY, locked_memory_limit, open_files_limit, raise_open_files_limit,
};
pub use read_transfer::ReadDone;
pub use reader::{ReadaheadOptions, SequentialReader};
pub use writer::{SequentialWriter, WriterOptions, WrittenFile};

/// Locks a mutex whose data is always consistent, so that a panic of another holder can be ignored: its own thread
/// reports it.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
