//! The priority of a compaction's threads.
#![expect(
    unsafe_code,
    reason = "a system call without a wrapper: sched_setscheduler"
)]

use std::io;

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString};

/// Priority of a compaction's threads for processors, and with it for I/O, relative to the foreground load.
///
/// Where processors are few, a compaction at full speed takes them from concurrent reads, whatever it does to
/// the page cache; an operator who runs one alongside a node gives it less.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Display, EnumString,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case", parse_err_ty = String, parse_err_fn = no_priority)]
pub enum Priority {
    /// Priority of any other thread.
    #[default]
    Normal,
    /// `SCHED_IDLE`, as under `chrt --idle 0`: processors that are otherwise idle. Unless it is set with
    /// `ionice`, its I/O class follows: idle, for schedulers that have classes, and not for what the
    /// kernel writes back on its behalf.
    Idle,
}

impl Priority {
    /// Sets the priority of the calling thread and of threads that it starts later.
    ///
    /// # Errors
    /// The system's; lowering takes no privilege.
    pub(crate) fn apply(self) -> io::Result<()> {
        if self == Priority::Normal {
            return Ok(());
        }
        // SAFETY: `sched_param` is plain numbers, for which zeros are valid; this policy wants just
        // that.
        let parameters: libc::sched_param = unsafe { std::mem::zeroed() };
        // SAFETY: 0 is the calling thread; the pointer is to a structure that lives through the call.
        let result =
            unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) };
        match result {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

fn no_priority(text: &str) -> String {
    format!("`{text}` is no priority: expected normal or idle")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Field 41 of `/proc/self/stat`, of the calling thread.
    fn policy() -> i32 {
        let text = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        let (_, fields) = text.rsplit_once(") ").unwrap();
        fields.split(' ').nth(38).unwrap().parse().unwrap()
    }

    #[test]
    fn threads_of_an_idle_thread_are_idle_and_others_are_not() {
        let before = policy();
        let inherited = std::thread::spawn(|| {
            Priority::Idle.apply().unwrap();
            std::thread::spawn(policy).join().unwrap()
        });
        assert_eq!(inherited.join().unwrap(), libc::SCHED_IDLE);
        Priority::Normal.apply().unwrap();
        assert_eq!(policy(), before);
    }

    #[test]
    fn names_parse_back() {
        for priority in [Priority::Normal, Priority::Idle] {
            assert_eq!(priority.to_string().parse(), Ok(priority));
        }
        assert!("nice".parse::<Priority>().is_err());
    }
}
