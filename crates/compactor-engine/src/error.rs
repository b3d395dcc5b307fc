//! Error type, with a kind on which callers decide how to react.

use std::path::{Path, PathBuf};

use compactor_io::{IoError, IoErrorKind, THREAD_REMEDY};
use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::{Component, Corruption, Error as FormatError};

/// Result of a job.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Reason why a job stopped. After a failed merge the inputs are unchanged and no output is visible; other
/// operations document what they leave.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An input is damaged, or has unsupported content.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// A read or write failed.
    #[error(transparent)]
    Io(#[from] IoError),
    /// A file operation outside the I/O layer failed.
    #[error("{operation} {}: {cause}", path.display())]
    File {
        /// Attempted operation, such as `create directory`.
        operation: &'static str,
        /// File or directory.
        path: PathBuf,
        /// Error of the system. It is part of the message, and so not returned as the error's source.
        cause: std::io::Error,
    },
    /// The request is contradictory: no inputs, SSTables of two tables, and the like.
    #[error("{0}")]
    InvalidInput(String),
    /// The request might lose data or state, and is therefore refused.
    #[error("{0}")]
    Refused(String),
    /// The observer asked to stop.
    #[error("cancelled")]
    Cancelled,
    /// The system refused a thread.
    #[error("start a thread for {purpose}: {cause}; {THREAD_REMEDY}")]
    Thread {
        /// Purpose of the thread.
        purpose: &'static str,
        /// Error of the system. It is part of the message, and so not returned as the error's source.
        cause: std::io::Error,
    },
    /// An internal error: a thread of the pipeline ended without a result, or an invariant does not hold.
    #[error("internal error: {0}")]
    Internal(String),
}

/// Kind of an [`Error`], by the possible reaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An input is damaged: restore it from a replica or a snapshot.
    Corrupt,
    /// Something valid that this release does not handle.
    Unsupported,
    /// The request is invalid or contradictory.
    InvalidInput,
    /// The request might lose data or state.
    Refused,
    /// Reading or writing failed.
    Io,
    /// The disk or quota is full, or a file would exceed a size limit (`ulimit -f`).
    NoSpace,
    /// The observer asked to stop.
    Cancelled,
    /// A bug in this program.
    Internal,
}

/// Whether a disk or a quota is full, or a file would be too large.
fn is_no_space(kind: std::io::ErrorKind) -> bool {
    use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(kind, StorageFull | QuotaExceeded | FileTooLarge)
}

impl Error {
    /// Kind of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Format(FormatError::Corrupt(_)) => ErrorKind::Corrupt,
            Error::Format(_) => ErrorKind::Unsupported,
            Error::Io(e) if e.is_no_space() => ErrorKind::NoSpace,
            Error::File { cause, .. } if is_no_space(cause.kind()) => ErrorKind::NoSpace,
            // An input shorter than stated in its metadata is damaged, whichever layer detected it.
            Error::Io(e) if e.kind() == IoErrorKind::UnexpectedEof => ErrorKind::Corrupt,
            // An I/O mode that the file system or the kernel does not support.
            Error::Io(e) if e.kind() == IoErrorKind::Unsupported && e.mode().is_some() => {
                ErrorKind::InvalidInput
            }
            Error::Io(_) | Error::File { .. } | Error::Thread { .. } => ErrorKind::Io,
            Error::InvalidInput(_) => ErrorKind::InvalidInput,
            Error::Refused(_) => ErrorKind::Refused,
            Error::Cancelled => ErrorKind::Cancelled,
            Error::Internal(_) => ErrorKind::Internal,
        }
    }

    /// Whether a file would have exceeded the limit on file sizes, of the process or the file system.
    pub fn is_file_too_large(&self) -> bool {
        self.is_system_error(std::io::ErrorKind::FileTooLarge)
    }

    /// Whether an output was not put in place because a file of its name exists.
    pub fn is_already_there(&self) -> bool {
        matches!(self, Error::Io(_)) && self.is_system_error(std::io::ErrorKind::AlreadyExists)
    }

    /// Whether a file could not be opened or looked up because it does not exist.
    pub(crate) fn is_not_found(&self) -> bool {
        self.is_system_error(std::io::ErrorKind::NotFound)
    }

    fn is_system_error(&self, kind: std::io::ErrorKind) -> bool {
        match self {
            Error::Io(e) => e.io_error().is_some_and(|e| e.kind() == kind),
            Error::File { cause, .. } => cause.kind() == kind,
            _ => false,
        }
    }

    /// The file that the error concerns, if any.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Error::Format(FormatError::Corrupt(c)) => c.path.as_deref(),
            Error::Format(FormatError::Unsupported(u)) => u.path.as_deref(),
            Error::Io(e) => Some(e.path()),
            Error::File { path, .. } => Some(path),
            _ => None,
        }
    }

    /// Damage and its location.
    pub fn corruption(&self) -> Option<&Corruption> {
        match self {
            Error::Format(FormatError::Corrupt(corruption)) => Some(corruption),
            _ => None,
        }
    }

    /// An invalid or contradictory request.
    pub fn invalid(message: impl Into<String>) -> Error {
        Error::InvalidInput(message.into())
    }

    /// A request that might lose data.
    pub fn refused(message: impl Into<String>) -> Error {
        Error::Refused(message.into())
    }

    /// An invariant that does not hold.
    pub fn internal(message: impl Into<String>) -> Error {
        Error::Internal(message.into())
    }

    /// Wraps damage of a component of this SSTable.
    pub(crate) fn format(
        descriptor: &Descriptor,
        component: Component,
    ) -> impl Fn(FormatError) -> Error + Copy {
        move |error| Error::Format(error.with_file(&descriptor.path(component), component))
    }

    /// Wraps a failed file operation.
    pub fn file(
        operation: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.into();
        move |cause| Error::File {
            operation,
            path,
            cause,
        }
    }

    /// Wraps the refusal of a thread.
    pub fn thread(purpose: &'static str) -> impl FnOnce(std::io::Error) -> Error {
        move |cause| Error::Thread { purpose, cause }
    }
}
