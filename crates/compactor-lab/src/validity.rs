//! Whether a run did what its arm claims. One that did not is shown, with its reasons, and not counted.

use std::time::Duration;

use compactor::io::{ReadMode, WriteMode};

use crate::arm::Arm;
use crate::outcome::{CompactionRecord, HotSetRecord, Invalid, Latency};

/// Share of an output's pages that modes which drop them behind themselves may leave: what was just
/// being written when it was looked at.
const MOST_LEFT_BY_DROPPING: f64 = 0.01;
/// Share of the pages off the hot set that may come into the cache in a mode that is to leave none: what
/// the kernel reads ahead where the bystander misses. Pages of the hot set and of the index are the
/// bystander's, and come and go as it reads.
const MOST_COLD_GROWTH: f64 = 0.02;
/// Share of the hot set that must be in the cache when the compaction begins, where there is room.
const LEAST_WARM: f64 = 0.95;
/// Up to this share of the room the hot set has to be warm.
const PRESSURE_WITH_ROOM: f64 = 0.6;
/// Share of the reads that may find no row: deletions shadow some.
pub(crate) const MOST_NOT_FOUND: f64 = 0.01;
/// A reader that is free is to be woken within this for 99 percent of the reads.
pub(crate) const MOST_WAKE_UP_DELAY: Duration = Duration::from_millis(20);
/// Share of the reads that must be done for a schedule to be kept.
pub(crate) const LEAST_ACHIEVED: f64 = 0.95;

/// What a run is judged by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts<'a> {
    pub(crate) arm: Arm,
    pub(crate) compaction: Option<&'a CompactionRecord>,
    pub(crate) least_compaction: Duration,
    pub(crate) before: &'a Latency,
    pub(crate) during: &'a Latency,
    pub(crate) after: &'a Latency,
    pub(crate) first_error: Option<&'a str>,
    pub(crate) is_unfinished: bool,
    pub(crate) rows_not_found: u64,
    pub(crate) wake_up_p99: Duration,
    pub(crate) hot: &'a HotSetRecord,
    /// Hot set divided by the memory that it may take.
    pub(crate) pressure: f64,
    /// Whether the process was in its cgroup to the end; `None` without one.
    pub(crate) kept_cgroup: Option<bool>,
}

/// Why the run does not count; nothing if it does.
pub(crate) fn judge(facts: &Facts<'_>) -> Vec<Invalid> {
    let mut reasons = Vec::new();
    if let (Arm::Compaction { read, write }, Some(compaction)) = (facts.arm, facts.compaction) {
        judge_modes(read, write, compaction, &mut reasons);
        judge_pages(read, write, compaction, &mut reasons);
        let least = facts.least_compaction.as_secs_f64();
        if compaction.elapsed_s < least {
            reasons.push(invalid(
                "compaction_too_short",
                format!(
                    "the compaction took {:.1} s, less than the {least} s that a run needs; use more \
                     data, or a lower --throughput",
                    compaction.elapsed_s
                ),
            ));
        }
    }
    judge_bystander(facts, &mut reasons);
    if facts.kept_cgroup == Some(false) {
        reasons.push(invalid(
            "memory_limit_lost",
            "somebody moved the process out of its cgroup while it ran",
        ));
    }
    reasons
}

pub(crate) fn invalid(kind: &str, text: impl Into<String>) -> Invalid {
    Invalid {
        kind: kind.to_owned(),
        text: text.into(),
    }
}

fn judge_modes(
    read: ReadMode,
    write: WriteMode,
    compaction: &CompactionRecord,
    reasons: &mut Vec<Invalid>,
) {
    let used_write = compaction.write_mode.as_deref();
    let directions = [
        ("read", read.name(), Some(compaction.read_mode.as_str())),
        ("wrote", write.name(), used_write),
    ];
    for (did, asked, used) in directions {
        if used != Some(asked) {
            let used = used.unwrap_or("nothing");
            let why = match &compaction.fallbacks[..] {
                [] => String::new(),
                notes => format!(": {}", notes.join("; ")),
            };
            reasons.push(invalid(
                "fallback",
                format!("the compaction {did} in mode {used}, not {asked}{why}"),
            ));
        }
    }
}

fn judge_pages(
    read: ReadMode,
    write: WriteMode,
    compaction: &CompactionRecord,
    reasons: &mut Vec<Invalid>,
) {
    let most_left = match write {
        WriteMode::Direct => Some(0),
        WriteMode::DontNeed | WriteMode::DontCache => {
            Some((compaction.output_pages as f64 * MOST_LEFT_BY_DROPPING) as u64)
        }
        _ => None,
    };
    if let (Some(most), Some(left)) = (most_left, compaction.output_pages_after)
        && left > most
    {
        reasons.push(invalid(
            "pages_left",
            format!(
                "{left} of {} pages of the output were in the page cache when it was published, in \
                 write mode {write}",
                compaction.output_pages
            ),
        ));
    }
    let leaves_none = matches!(
        read,
        ReadMode::Direct | ReadMode::DontNeed | ReadMode::DontCache
    );
    if let (true, Some(before), Some(after)) = (
        leaves_none,
        compaction.cold_pages_before,
        compaction.cold_pages_after,
    ) {
        let most = before + (compaction.cold_pages as f64 * MOST_COLD_GROWTH) as u64;
        if after > most {
            reasons.push(invalid(
                "pages_left",
                format!(
                    "{after} of {} pages of the inputs that no hot row lies on were in the page cache \
                     when the compaction was done, {before} when it began, in read mode {read}",
                    compaction.cold_pages
                ),
            ));
        }
    }
}

fn judge_bystander(facts: &Facts<'_>, reasons: &mut Vec<Invalid>) {
    let errors = facts.before.errors + facts.during.errors + facts.after.errors;
    if errors > 0 || facts.first_error.is_some() {
        reasons.push(invalid(
            "reads_failed",
            format!(
                "{errors} reads of the bystander failed: {}",
                facts.first_error.unwrap_or("nobody knows why")
            ),
        ));
    }
    let all = facts.before.operations + facts.during.operations + facts.after.operations;
    if facts.rows_not_found as f64 > MOST_NOT_FOUND * all as f64 {
        reasons.push(invalid(
            "reads_failed",
            format!("{} of {all} reads found no row", facts.rows_not_found),
        ));
    }
    let alone = facts.before;
    if alone.achieved_per_s < LEAST_ACHIEVED * alone.intended_per_s {
        reasons.push(invalid(
            "generator_late",
            format!(
                "without any compaction {:.0} of {:.0} reads/s were done; use a lower --rate or more \
                 --reader-threads",
                alone.achieved_per_s, alone.intended_per_s
            ),
        ));
    }
    if facts.wake_up_p99 > MOST_WAKE_UP_DELAY {
        reasons.push(invalid(
            "generator_late",
            format!(
                "1 percent of the reads began {:.1} ms late or later although a reader was free: the \
                 processors were busy, and the latencies are theirs",
                facts.wake_up_p99.as_secs_f64() * 1e3
            ),
        ));
    }
    if facts.is_unfinished {
        reasons.push(invalid(
            "generator_late",
            "reads that were due were still waiting seconds after the run",
        ));
    }
    if let Some(resident) = facts.hot.resident_before
        && facts.pressure <= PRESSURE_WITH_ROOM
        && (resident as f64) < LEAST_WARM * facts.hot.pages as f64
    {
        reasons.push(invalid(
            "hot_set_not_warm",
            format!(
                "{resident} of {} pages of the hot set were in the page cache when the compaction \
                 began",
                facts.hot.pages
            ),
        ));
    }
}

#[cfg(test)]
mod tests;
