//! Time window compaction: SSTables whose newest data is from the same window of time are compacted together.
//!
//! Source: `TimeWindowCompactionStrategy`.

mod options;
mod windows;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use options::TimeWindowOptions;
pub use windows::{Resolution, WindowSize, WindowUnit};

use crate::context::Context;
use crate::expired::ExpiredCheck;
pub use crate::expired::ExpiryOptions;
use crate::manager::LONG_AGO;
use crate::members::Members;
use crate::options::Thresholds;
use crate::size_tiered::most_interesting;
use crate::sstable::Sstable;
use crate::strategy::Strategy;
use crate::task::{Idle, Output, Reason, Task};

/// SSTables by the start of their window, milliseconds since 1970.
type Windows = BTreeMap<i64, Vec<Arc<Sstable>>>;

/// Time window strategy of a group of SSTables.
#[derive(Clone, Debug)]
pub struct TimeWindow {
    options: TimeWindowOptions,
    members: Members,
    expired: ExpiredCheck,
    /// Start of the newest window that had an available SSTable. It counts as the current one for good, also
    /// if its SSTables are gone.
    newest_ms: i64,
    remaining_tasks: usize,
}

impl TimeWindow {
    /// A strategy without SSTables.
    pub fn new(options: TimeWindowOptions) -> TimeWindow {
        TimeWindow {
            members: Members::default(),
            expired: ExpiredCheck {
                options: options.expiry,
                last_ms: 0,
            },
            newest_ms: 0,
            remaining_tasks: 0,
            options,
        }
    }

    /// Start of the window of an SSTable, milliseconds since 1970.
    pub fn window_of(&self, sstable: &Sstable) -> i64 {
        let time_ms = self.options.resolution.to_ms(sstable.max_timestamp);
        self.options.window.start_ms(time_ms)
    }

    fn windows(&self, sstables: &[Arc<Sstable>]) -> Windows {
        let mut windows = Windows::new();
        for sstable in sstables {
            let window = windows.entry(self.window_of(sstable)).or_default();
            window.push(Arc::clone(sstable));
        }
        windows
    }

    /// The newest window that has enough SSTables (`newestBucket`).
    fn next_window(&mut self, windows: &Windows) -> Option<Task> {
        if let Some((&newest, _)) = windows.last_key_value() {
            self.newest_ms = self.newest_ms.max(newest);
        }
        self.remaining_tasks = 0;
        let mut next = None;
        for (&start_ms, window) in windows.iter().rev() {
            if let Some(task) = self.task_of(start_ms, window) {
                self.remaining_tasks += estimated_tasks(window.len(), self.options.thresholds);
                next.get_or_insert(task);
            }
        }
        next
    }

    fn task_of(&self, start_ms: i64, window: &[Arc<Sstable>]) -> Option<Task> {
        let thresholds = self.options.thresholds;
        if start_ms < self.newest_ms {
            return (window.len() >= 2).then(|| {
                let reason = Reason::PastWindow {
                    start_ms,
                    sstables: window.len(),
                };
                let smallest = smallest(window, thresholds.max);
                Task::compact(&smallest, reason, Output::default())
            });
        }
        if window.len() < thresholds.min {
            return None;
        }
        let tiers = self.options.buckets.tiers(window);
        let tier = most_interesting(&tiers, thresholds)?;
        let reason = Reason::CurrentWindow { start_ms };
        Some(Task::compact(&tier.sstables, reason, Output::default()))
    }

    fn idle(&self, windows: &Windows) -> Idle {
        match windows.values().map(Vec::len).max() {
            None => Idle::NoSstables,
            Some(largest) => Idle::SmallWindows {
                largest,
                min_threshold: self.options.thresholds.min,
            },
        }
    }
}

/// The smallest SSTables of a window (`trimToThreshold`).
fn smallest(window: &[Arc<Sstable>], max: usize) -> Vec<Arc<Sstable>> {
    let mut ascending = window.to_vec();
    ascending.sort_by_key(|sstable| sstable.data_bytes);
    ascending.truncate(max);
    ascending
}

/// One for the selection, and as many as the rest needs if it is large.
fn estimated_tasks(sstables: usize, thresholds: Thresholds) -> usize {
    let rest = sstables.saturating_sub(thresholds.max);
    if rest > thresholds.min {
        1 + rest.div_ceil(thresholds.max)
    } else {
        1
    }
}

impl Strategy for TimeWindow {
    fn add(&mut self, sstable: &Arc<Sstable>) {
        self.members.insert(sstable);
    }

    fn remove(&mut self, sstable: &Sstable) {
        self.members.remove(sstable.id);
    }

    fn pass_interval(&mut self) {
        self.expired.last_ms = LONG_AGO;
    }

    fn next_task(&mut self, context: &mut Context<'_>) -> Result<Task, Idle> {
        if context.live.is_empty() {
            return Err(Idle::NoSstables);
        }
        // Suspect ones may expire, but not be compacted.
        let mut available = self.members.uncompacting(context.live);
        let expired = self.expired.expired(&available, context);
        available.retain(|sstable| !sstable.is_suspect && !expired.contains(&sstable.id));
        let windows = self.windows(&available);
        let selection = self.next_window(&windows);
        let selection = selection.or_else(|| {
            let smallest_first = |sstable: &Sstable| sstable.data_bytes;
            let tombstones = self.options.tombstones?;
            tombstones.first_task(&available, context, smallest_first)
        });
        Task::with_expired(selection.ok_or_else(|| self.idle(&windows)), expired)
    }

    fn remaining_tasks(&self) -> usize {
        self.remaining_tasks
    }

    fn major(&self, context: &Context<'_>, _splits_output: bool) -> Vec<Task> {
        Task::major(self.members.iter(), context.live, Output::default())
    }
}

#[cfg(test)]
mod tests;
