//! What can stop a merge.

use std::path::PathBuf;

use compactor_io::{IoError, THREAD_REMEDY};

/// Result of the engine.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a job stopped. Whatever it is, inputs are untouched and no output is visible.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An input's bytes are damaged, or of a kind that is not handled.
    #[error(transparent)]
    Format(#[from] compactor_sstable::Error),
    /// Reading or writing failed.
    #[error(transparent)]
    Io(#[from] IoError),
    /// A file operation outside the I/O layer failed.
    #[error("{operation} {}: {cause}", path.display())]
    File {
        /// What was tried, such as `create directory`.
        operation: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said. Part of the message, and so not a source of its own.
        cause: std::io::Error,
    },
    /// The request makes no sense: no inputs, two tables, and the like.
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
        /// What it is for.
        purpose: &'static str,
        /// What the system said. Part of the message, and so not a source of its own.
        cause: std::io::Error,
    },
    /// A thread of the pipeline ended without a word: a bug in this program.
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
