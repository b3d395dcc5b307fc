//! Forced write-back after a buffered writer: the `trickle` and `dontneed` write modes.
//!
//! Works in steps of a window: a step starts write-back of the newest complete window, waits for that of the
//! previous one and, in `dontneed` mode, drops its pages, which works only for clean pages. One step runs at
//! a time. A writer that gets two windows ahead of it waits, so that the dirty pages of one file are bounded:
//! those ahead, those being written and those awaited are each at most two windows and the writes in flight.

use std::io;

use rustix::fs::{Advice, fadvise};

use crate::align::{DEFAULT_ALIGNMENT_U64, round_down};
use crate::backend::FileHandle;
use crate::evict::drop_pages;
use crate::sys::sync_file_range;

/// Number of windows that a writer may be ahead of write-back before it waits.
const WINDOWS_AHEAD_MAX: u64 = 2;

/// State of forced write-back.
#[derive(Debug)]
pub(crate) struct Writeback {
    window_bytes: u64,
    drop_pages: bool,
    /// Offset up to which write-back has been awaited.
    awaited: u64,
    /// Offset up to which write-back has been started.
    started: u64,
}

/// A step of write-back, to be run on a thread that may block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    awaited: u64,
    started: u64,
    end: u64,
    drop_pages: bool,
}

impl Writeback {
    pub(crate) fn new(window_bytes: u64, drop_pages: bool) -> Writeback {
        let window_bytes = round_down(window_bytes, DEFAULT_ALIGNMENT_U64);
        Writeback {
            window_bytes: window_bytes.max(DEFAULT_ALIGNMENT_U64),
            drop_pages,
            awaited: 0,
            started: 0,
        }
    }

    /// Returns the next step, if the bytes before `written` complete a window.
    pub(crate) fn next_step(&mut self, written: u64) -> Option<Step> {
        let end = round_down(written, DEFAULT_ALIGNMENT_U64);
        if end.saturating_sub(self.started) < self.window_bytes {
            return None;
        }
        let step = Step {
            awaited: self.awaited,
            started: self.started,
            end,
            drop_pages: self.drop_pages,
        };
        self.awaited = self.started;
        self.started = end;
        Some(step)
    }

    /// Whether a writer at this offset, not counting writes in flight, must wait.
    pub(crate) fn is_behind(&self, written: u64) -> bool {
        let ahead = written.saturating_sub(self.started);
        ahead > self.window_bytes.saturating_mul(WINDOWS_AHEAD_MAX)
    }
}

impl Step {
    pub(crate) fn offset(&self) -> u64 {
        self.awaited
    }

    pub(crate) fn len(&self) -> u64 {
        self.end - self.awaited
    }

    pub(crate) fn run(self, file: &FileHandle) -> io::Result<()> {
        sync_file_range::start_writeback(file, self.started, self.end - self.started)?;
        if self.drop_pages {
            // A folio that extends into the next window is not dropped yet; the last step and `finish` drop
            // from the start of the file.
            drop_pages(file, self.awaited, self.started)
        } else if self.started > self.awaited {
            sync_file_range::write_back(file, self.awaited, self.started - self.awaited)
        } else {
            Ok(())
        }
    }
}

/// Drops all pages of a file that has been synced. Pages that cannot be dropped are harmless, and visible in
/// `residency`.
pub(crate) fn drop_all_pages(file: &FileHandle) {
    let _ = fadvise(file, 0, None, Advice::DontNeed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_starts_one_window_and_awaits_the_one_before() {
        let mut writeback = Writeback::new(8192, true);
        assert!(writeback.next_step(8191).is_none());
        let first = writeback.next_step(9000).unwrap();
        assert_eq!((first.awaited, first.started, first.end), (0, 0, 8192));
        assert!(writeback.next_step(12288).is_none());
        let second = writeback.next_step(20480).unwrap();
        assert_eq!(
            (second.awaited, second.started, second.end),
            (0, 8192, 20480)
        );
        let third = writeback.next_step(28672).unwrap();
        assert_eq!(
            (third.awaited, third.started, third.end),
            (8192, 20480, 28672)
        );
        assert!(!writeback.is_behind(28672 + 2 * 8192));
        assert!(writeback.is_behind(28672 + 2 * 8192 + 1));
    }
}
