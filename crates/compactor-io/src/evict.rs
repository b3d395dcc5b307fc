//! Eviction for `dontneed` reads: pages are dropped a few mebibytes behind the reader.
//!
//! Only pages of ranges that were read through this file are dropped, even if another reader uses them:
//! `POSIX_FADV_DONTNEED` does not distinguish owners. Dirty pages are written back first; otherwise they
//! would not be dropped.

use std::io;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex};

use rustix::fs::{Advice, fadvise};

use crate::align::{round_down, round_up};
use crate::backend::FileHandle;
use crate::backend::{Request, on_io_thread};
use crate::lock;
use crate::range_set::RangeSet;
use crate::sys::sync_file_range;

/// Number of bytes read between drops: large enough for the calls to cost nothing, small enough not to
/// displace other pages.
const WINDOW_BYTES: u64 = 8 << 20;

/// Ranges that have been read through a file and may still be in the page cache.
#[derive(Debug, Default)]
pub(crate) struct ReadEvictor {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Ranges read since the last drop.
    recent: RangeSet,
    recent_bytes: u64,
    /// Ranges read since the last complete `evict`: a page shared by two ranges may outlive the drop of each.
    all: RangeSet,
}

impl ReadEvictor {
    /// Records that `start..end` has been read, and drops pages if it is time, on a thread that may block.
    pub(crate) fn record_read(&self, file: &Arc<FileHandle>, start: u64, end: u64) {
        let window = {
            let mut state = lock(&self.state);
            state.recent.insert(start, end);
            state.all.insert(start, end);
            state.recent_bytes += end.saturating_sub(start);
            if state.recent_bytes < WINDOW_BYTES {
                return;
            }
            state.recent_bytes = 0;
            std::mem::take(&mut state.recent)
        };
        later(file, move |file| {
            let page = rustix::param::page_size() as u64;
            // The last page may be needed by the following read, and is kept.
            window.iter().try_for_each(|(start, end)| {
                drop_pages(file, round_down(start, page), round_down(end, page))
            })
        });
    }

    /// Drops all pages of the ranges read: on this thread, so that it is complete when the call returns,
    /// unless it is an I/O thread, which must not be blocked.
    pub(crate) fn evict(&self, file: &Arc<FileHandle>) {
        let all = {
            let mut state = lock(&self.state);
            state.recent_bytes = 0;
            state.recent = RangeSet::default();
            std::mem::take(&mut state.all)
        };
        if all.is_empty() {
            return;
        }
        let drop_all = move |file: &FileHandle| {
            let page = rustix::param::page_size() as u64;
            all.iter().try_for_each(|(start, end)| {
                drop_pages(file, round_down(start, page), round_up(end, page))
            })
        };
        if on_io_thread() {
            later(file, drop_all);
        } else {
            // Pages that are not dropped are harmless, and visible in `residency`.
            drop(drop_all(file));
        }
    }
}

/// Runs a call on a thread that may block. It is not waited for, and its failure is ignored.
fn later(
    file: &Arc<FileHandle>,
    call: impl FnOnce(&FileHandle) -> io::Result<()> + Send + 'static,
) {
    file.submit(Request::Call(Box::new(call)), |_| {});
}

/// Writes back and drops the pages of a page-aligned range. Fails if they cannot be written.
pub(crate) fn drop_pages(file: &FileHandle, start: u64, end: u64) -> io::Result<()> {
    let Some(len) = NonZeroU64::new(end.saturating_sub(start)) else {
        return Ok(());
    };
    sync_file_range::write_back(file, start, len.get())?;
    // Only advice: pages that are not dropped are harmless, and visible in `residency`.
    let _ = fadvise(file, start, Some(len), Advice::DontNeed);
    Ok(())
}
