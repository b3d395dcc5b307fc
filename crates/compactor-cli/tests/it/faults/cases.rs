//! Regression cases: faults that once caused a defect.

use crate::faults::inject::Injection;
use crate::faults::setting::{SEVERAL, Setting, TOKIO_URING, Tried};

pub fn known(setting: &Setting) -> Vec<(&Tried, Injection)> {
    let merge = setting.command("merge", "");
    let mut known = Vec::new();
    // Hung: a failed submission was never retried.
    for error in ["EAGAIN", "EBUSY", "EINTR", "ENOMEM"] {
        for when in ["2+2", "3", "4..9", "7"] {
            known.push((merge, Injection::new("io_uring_enter", error, when)));
        }
    }
    let tokio_uring = setting.command("merge", TOKIO_URING);
    for when in ["2+2", "3", "4..9", "7"] {
        known.push((
            tokio_uring,
            Injection::new("io_uring_enter", "EAGAIN", when),
        ));
    }
    // Hung: a submission that always fails.
    for when in ["2", "3", "6+"] {
        known.push((merge, Injection::new("io_uring_enter", "EIO", when)));
    }
    // Hung: a thread was not woken.
    for error in ["EIO", "EAGAIN"] {
        known.push((merge, Injection::new("write", error, "1+")));
    }
    known.push((merge, Injection::new("write", "EINTR", "1+2")));
    // Panicked: a directory could not be closed, a thread could not be started.
    for command in ["merge", "compact", "split", "upgrade", "scrub"] {
        let tried = setting.command(command, "");
        for when in ["5+", "8+", "12+", "20+"] {
            known.push((tried, Injection::new("close", "EIO", when)));
        }
        for when in ["1+", "2+", "4+", "6+", "9+", "12+"] {
            known.push((tried, Injection::new("clone3", "EAGAIN", when)));
        }
    }
    known.extend(during_rollback(setting));
    known
}

/// Data loss: the COMMIT of a transaction log was readable but not synced, and the rollback of the published files
/// was interrupted. Permanent refusal: the log could not be removed, but the file that identifies its owner was.
fn during_rollback(setting: &Setting) -> Vec<(&Tried, Injection)> {
    let mut known = Vec::new();
    for tried in [
        setting.command("swap", ""),
        setting.command("merge", SEVERAL),
    ] {
        let syncs = setting.calls(tried)["fsync"];
        for sync in syncs.saturating_sub(8)..=syncs {
            for (fault, when) in [
                ("signal=KILL", "2"),
                ("signal=KILL", "4"),
                ("error=EIO", "1"),
                ("error=EIO", "3"),
                ("error=EIO", "8"),
                ("error=EIO", "9"),
                ("error=EROFS", "2+"),
            ] {
                let injection = Injection::new("fsync", "EIO", &sync.to_string());
                known.push((tried, injection.with("unlink", fault, when.to_owned())));
            }
        }
        // The log cannot be restored either.
        for sync in syncs.saturating_sub(8)..=syncs {
            let when = format!("{sync}..{}", sync + 1);
            known.push((tried, Injection::new("fsync", "EIO", &when)));
        }
    }
    known
}
