//! What the command tells its caller.
//!
//! | Code | Meaning |
//! |---|---|
//! | 0 | done |
//! | 1 | failed: I/O, a full disk, a bug |
//! | 2 | wrong usage: options or paths that make no sense, something not supported |
//! | 3 | an input is damaged |
//! | 4 | refused, since it might lose data |
//! | 130 | interrupted |

use std::process::ExitCode;

use compactor::ErrorKind;

/// An input is damaged.
pub const CORRUPT: u8 = 3;

/// Prints the error on stderr, with a remedy where there is one, and chooses the exit code.
pub fn report(error: &anyhow::Error) -> ExitCode {
    let kind = error
        .downcast_ref::<compactor::Error>()
        .map(compactor::Error::kind);
    if kind == Some(ErrorKind::Cancelled) {
        eprintln!("compactor: interrupted; nothing was written");
        return of(ErrorKind::Cancelled);
    }
    eprintln!("compactor: {error:#}");
    if let Some(remedy) = kind.and_then(remedy) {
        eprintln!("  {remedy}");
    }
    kind.map_or(ExitCode::FAILURE, of)
}

/// The exit code for a kind of error.
pub fn of(kind: ErrorKind) -> ExitCode {
    ExitCode::from(match kind {
        ErrorKind::Corrupt => CORRUPT,
        ErrorKind::Unsupported | ErrorKind::InvalidInput => 2,
        ErrorKind::Refused => 4,
        ErrorKind::Cancelled => 130,
        _ => 1,
    })
}

fn remedy(kind: ErrorKind) -> Option<&'static str> {
    Some(match kind {
        ErrorKind::Corrupt => {
            "The input is damaged and nothing was written. Take this SSTable from another replica, \
             an older snapshot or a backup, or leave it out; `compactor verify` lists all damage."
        }
        ErrorKind::NoSpace => {
            "The output needs at most as much room as its inputs. Nothing of it was left behind."
        }
        ErrorKind::Internal => "This is a bug in compactor; please report it.",
        _ => return None,
    })
}
