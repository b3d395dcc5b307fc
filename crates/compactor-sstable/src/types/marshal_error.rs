//! Error of a value whose bytes are not valid for its type.

use std::fmt;

/// Error of a serializer (`MarshalException`).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct MarshalError {
    message: String,
}

impl MarshalError {
    #[cold]
    pub(super) fn new(message: impl Into<String>) -> MarshalError {
        MarshalError {
            message: message.into(),
        }
    }

    /// `expected <expected>, found <len> bytes`.
    #[cold]
    pub(super) fn length(expected: &str, bytes: &[u8]) -> MarshalError {
        MarshalError::new(format!("expected {expected}, found {} bytes", bytes.len()))
    }

    /// The same error inside `place`.
    #[cold]
    pub(super) fn within(self, place: impl fmt::Display) -> MarshalError {
        MarshalError::new(format!("{place}: {}", self.message))
    }
}
