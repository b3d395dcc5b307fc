//! Error type, with a kind that tells a caller how to react.

use std::path::Path;

use compactor_engine::Error as EngineError;
use compactor_io::{IoError, IoErrorKind};
use compactor_sstable::{Corruption, Error as FormatError};

/// Result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Anything that can go wrong. The message names file, place, expectation and finding.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Error(#[from] EngineError);

/// Kind of an [`Error`], by the possible reaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An input is damaged: restore it from a replica or a snapshot.
    Corrupt,
    /// Something valid that this release does not handle.
    Unsupported,
    /// The request makes no sense as it is.
    InvalidInput,
    /// The request might lose data or state.
    Refused,
    /// Reading or writing failed.
    Io,
    /// The disk or quota is full.
    NoSpace,
    /// The observer asked to stop.
    Cancelled,
    /// A bug in this program.
    Internal,
}

impl Error {
    /// Kind of the error.
    pub fn kind(&self) -> ErrorKind {
        match &self.0 {
            EngineError::Format(FormatError::Corrupt(_)) => ErrorKind::Corrupt,
            EngineError::Format(_) => ErrorKind::Unsupported,
            EngineError::Io(e) if e.is_no_space() => ErrorKind::NoSpace,
            // An input shorter than stated in its metadata is damaged, whichever layer detected it.
            EngineError::Io(e) if e.kind() == IoErrorKind::UnexpectedEof => ErrorKind::Corrupt,
            EngineError::Io(_) | EngineError::File { .. } | EngineError::Thread { .. } => {
                ErrorKind::Io
            }
            EngineError::InvalidInput(_) => ErrorKind::InvalidInput,
            EngineError::Refused(_) => ErrorKind::Refused,
            EngineError::Cancelled => ErrorKind::Cancelled,
            _ => ErrorKind::Internal,
        }
    }

    /// Whether a file would have passed the limit on file sizes, of the process or the file system.
    pub fn is_file_too_large(&self) -> bool {
        matches!(&self.0, EngineError::Io(e)
            if e.io_error().is_some_and(|e| e.kind() == std::io::ErrorKind::FileTooLarge))
    }

    /// Whether an output was not put in place since there is a file of its name.
    pub fn is_already_there(&self) -> bool {
        matches!(&self.0, EngineError::Io(e)
            if e.io_error().is_some_and(|e| e.kind() == std::io::ErrorKind::AlreadyExists))
    }

    /// The file that it is about, if it is about one.
    pub fn path(&self) -> Option<&Path> {
        match &self.0 {
            EngineError::Format(FormatError::Corrupt(c)) => c.path.as_deref(),
            EngineError::Format(FormatError::Unsupported(u)) => u.path.as_deref(),
            EngineError::Io(e) => Some(e.path()),
            EngineError::File { path, .. } => Some(path),
            _ => None,
        }
    }

    /// A request that makes no sense.
    pub fn invalid(message: impl Into<String>) -> Error {
        Error(EngineError::InvalidInput(message.into()))
    }

    /// A request that might lose data.
    pub fn refused(message: impl Into<String>) -> Error {
        Error(EngineError::Refused(message.into()))
    }

    /// Error of the engine.
    pub(crate) fn into_engine(self) -> EngineError {
        self.0
    }

    /// The observer asked to stop.
    pub(crate) fn cancelled() -> Error {
        Error(EngineError::Cancelled)
    }

    /// Damage and its location.
    pub fn corruption(&self) -> Option<&Corruption> {
        match &self.0 {
            EngineError::Format(FormatError::Corrupt(corruption)) => Some(corruption),
            _ => None,
        }
    }

    /// The refusal of a thread for `purpose`.
    pub fn thread(purpose: &'static str) -> impl FnOnce(std::io::Error) -> Error {
        let wrap = EngineError::thread(purpose);
        move |cause| Error(wrap(cause))
    }

    /// A failed file operation, such as `list`, on `path`.
    pub fn file(
        operation: &'static str,
        path: impl Into<std::path::PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Error {
        let wrap = EngineError::file(operation, path);
        move |source| Error(wrap(source))
    }
}

impl From<IoError> for Error {
    fn from(error: IoError) -> Error {
        Error(EngineError::Io(error))
    }
}

impl From<FormatError> for Error {
    fn from(error: FormatError) -> Error {
        Error(EngineError::Format(error))
    }
}
