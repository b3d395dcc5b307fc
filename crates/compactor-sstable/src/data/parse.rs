//! How parsers of Data.db say that they cannot go on.

use crate::error::Error;

/// Longest value that is accepted, in bytes: Cassandra's default of `max_value_size`, beyond which
/// its own reader takes a length for corruption (`AbstractType.read`).
pub const MAX_VALUE_LEN: usize = 256 << 20;

/// Longest row or marker body, in bytes: Cassandra serializes a row through a buffer indexed by a
/// Java `int`, so nothing longer can exist (`UnfilteredSerializer.serialize`).
pub const MAX_BODY_LEN: u64 = i32::MAX as u64;

/// Why a parser stopped.
#[derive(Debug)]
pub enum Stop {
    /// The slice ends inside the structure: call again with more bytes, from its start.
    Incomplete,
    /// The bytes contradict the format; the offset is relative to the slice.
    Corrupt(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Corrupt(error)
    }
}

/// Result of a parser that may be given too few bytes.
pub type Parse<T> = Result<T, Stop>;
