//! Errors of the engine.

use std::path::PathBuf;

use compactor_io::{IoError, THREAD_REMEDY};

/// Result of an engine function.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Reason why a job stopped. In any case inputs are unchanged and no output is visible.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An input is damaged, or has unsupported content.
    #[error(transparent)]
    Format(#[from] compactor_sstable::Error),
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

impl Error {
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
