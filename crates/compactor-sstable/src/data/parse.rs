//! Errors of parsers of Data.db.

use crate::error::Error;

/// Maximum accepted length of a value, bytes: Cassandra's default of `max_value_size`, beyond which its own
/// reader regards a length as corrupt (`AbstractType.read`).
pub const MAX_VALUE_LEN: usize = 256 << 20;

/// Maximum length of a row or marker body, bytes: Cassandra serializes a row through a buffer indexed by a
/// Java `int`, so no longer one can exist (`UnfilteredSerializer.serialize`).
pub const MAX_BODY_LEN: u64 = i32::MAX as u64;

/// Reason why a parser stopped.
#[derive(Debug)]
pub enum Stop {
    /// The slice ends within the structure: call again with more bytes from the same start.
    Incomplete,
    /// The bytes violate the format; the offset is relative to the slice.
    Corrupt(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Corrupt(error)
    }
}

/// Result of a parser that may be given too few bytes.
pub type Parse<T> = Result<T, Stop>;
