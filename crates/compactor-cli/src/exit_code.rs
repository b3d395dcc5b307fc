//! Exit codes.
//!
//! | Code | Meaning |
//! |---|---|
//! | 0 | done |
//! | 1 | failed: I/O, a full disk, a bug |
//! | 2 | wrong usage: invalid options or paths, something that is not supported |
//! | 3 | an input is damaged |
//! | 4 | refused, since it might lose data |
//! | 130 | interrupted |

use std::process::ExitCode;

use compactor::ErrorKind;
use compactor::table::plan::UnreadableSstable;

/// Options or paths are invalid.
pub const USAGE: u8 = 2;
/// An input is damaged.
pub const CORRUPT: u8 = 3;
/// A signal asked it to stop.
pub const INTERRUPTED: u8 = 130;

/// The exit code for an error.
pub fn of(error: &compactor::Error) -> u8 {
    of_kind(error.kind())
}

/// The exit code of a command that left these SSTables out.
pub fn of_left_out(sstables: &[UnreadableSstable]) -> ExitCode {
    let codes = sstables.iter().map(|sstable| of_kind(sstable.kind));
    ExitCode::from(codes.max().unwrap_or(0))
}

/// The exit code for errors of a kind.
fn of_kind(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::Corrupt => CORRUPT,
        ErrorKind::InvalidInput | ErrorKind::Unsupported => USAGE,
        ErrorKind::Refused => 4,
        ErrorKind::Cancelled => INTERRUPTED,
        _ => 1,
    }
}
