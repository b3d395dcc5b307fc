//! What the command tells its caller.
//!
//! | Code | Meaning |
//! |---|---|
//! | 0 | done |
//! | 1 | failed: I/O, a full disk, a bug |
//! | 2 | wrong usage: options or paths that make no sense, something that is not supported |
//! | 3 | an input is damaged |
//! | 4 | refused, since it might lose data |
//! | 130 | interrupted |

use std::process::ExitCode;

use compactor::ErrorKind;

use crate::output::say;

/// An input is damaged.
pub const CORRUPT: u8 = 3;
const INTERRUPTED: u8 = 130;

/// Prints the error on stderr, with a remedy where there is one, and chooses the exit code. `writes`:
/// whether the command writes files, so that one may ask what became of them.
pub fn report(error: &anyhow::Error, writes: bool) -> ExitCode {
    let ours = error.downcast_ref::<compactor::Error>();
    let kind = ours.map(compactor::Error::kind);
    if kind == Some(ErrorKind::Cancelled) {
        say(match writes {
            true => format_args!("compactor: interrupted; nothing was written"),
            false => format_args!("compactor: interrupted"),
        });
        return ExitCode::from(INTERRUPTED);
    }
    say(format_args!("compactor: {error:#}"));
    if let Some(remedy) = kind.and_then(|kind| remedy(kind, writes)) {
        say(format_args!("  {remedy}"));
    }
    ExitCode::from(ours.map_or(1, of))
}

/// The exit code for an error.
pub fn of(error: &compactor::Error) -> u8 {
    match error.kind() {
        ErrorKind::Corrupt => CORRUPT,
        ErrorKind::InvalidInput | ErrorKind::Unsupported => 2,
        ErrorKind::Refused => 4,
        ErrorKind::Cancelled => INTERRUPTED,
        _ => 1,
    }
}

fn remedy(kind: ErrorKind, writes: bool) -> Option<&'static str> {
    Some(match kind {
        ErrorKind::Corrupt if writes => {
            "The input is damaged and nothing was written. Take this SSTable from another replica, \
             an older snapshot or a backup, or leave it out; `compactor verify` lists all damage."
        }
        ErrorKind::Corrupt => {
            "The SSTable is damaged; `compactor verify` lists all damage. It can be taken from another \
             replica, an older snapshot or a backup."
        }
        ErrorKind::NoSpace if writes => {
            "A merge needs at most as much room as its inputs have. Nothing was left behind."
        }
        ErrorKind::Internal => "This is a bug in compactor; please report it.",
        _ => return None,
    })
}
