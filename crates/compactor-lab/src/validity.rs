//! Whether a run did what its arm claims. One that did not is shown, with its reasons, and not counted.

use std::time::Duration;

use compactor_io::{ReadMode, WriteMode};

use crate::arm::{Arm, IoPair};
use crate::caveats::Warnings;
use crate::outcome::{CompactionRecord, Latency, Pages, Run, Warning};
use crate::report::units::mebibytes;

/// Share of an output's pages that modes which drop them after writing may leave: those that were just
/// being written when they were counted.
const MOST_LEFT_BY_DROPPING: f64 = 0.01;
/// Share of the pages off the hot set that may come into the cache in a mode that is to leave none: what
/// the kernel reads ahead where the foreground load misses. Pages of the hot set and of the index are those of
/// the load, and come and go as it reads.
const MOST_COLD_GROWTH: f64 = 0.02;
/// Share of the hot set that must be in the cache when the compaction begins, where there is room.
const LEAST_WARM: f64 = 0.95;
/// Pressure up to which the hot set has to be warm.
const PRESSURE_WITH_ROOM: f64 = 0.6;
/// Share of the reads that may find no row: deletions shadow some.
const MOST_NOT_FOUND: f64 = 0.01;
/// Time within which a reader that is free has to be woken for 99 percent of the reads.
const MOST_WAKE_UP_DELAY: Duration = Duration::from_millis(20);
/// Share of the reads that must be done for a schedule to be kept.
pub(crate) const LEAST_ACHIEVED: f64 = 0.95;
/// Share of the inputs' pages that may be left when their pages have been dropped: some are in use for a
/// moment.
const MOST_NOT_DROPPED: f64 = 0.01;
/// Share of its limit that a compaction has to reach.
const LEAST_RATE: f64 = 0.9;

/// Reasons that a run of any experiment on reads does not count.
impl Warnings {
    pub(crate) fn failed(&mut self, error: &str) {
        self.when(true, "failed", || format!("the compaction failed: {error}"));
    }

    pub(crate) fn failed_reads(&mut self, errors: u64, first: Option<&str>) {
        self.when(errors > 0 || first.is_some(), "reads_failed", || {
            let first = first.unwrap_or("for an unknown reason");
            format!("{errors} reads of the foreground load failed: {first}")
        });
    }

    pub(crate) fn rows_not_found(&mut self, not_found: u64, all: f64) {
        let too_many = not_found as f64 > MOST_NOT_FOUND * all;
        self.when(too_many, "reads_failed", || {
            format!("{not_found} of {all:.0} reads found no row")
        });
    }

    /// Judges how late readers were woken; `name`, of the measurement, begins the text.
    pub(crate) fn wake_up(&mut self, name: &str, p99_ns: u64) {
        let late = Duration::from_nanos(p99_ns);
        self.when(late > MOST_WAKE_UP_DELAY, "generator_late", || {
            format!(
                "{name}1 percent of the reads began at least {:.1} ms late although a reader was free: the \
                 processors were busy, so the latencies measure them and not the disk",
                late.as_secs_f64() * 1e3
            )
        });
    }

    /// Judges the modes that were used: `None` if unknown.
    pub(crate) fn modes(&mut self, requested: IoPair, used: [&str; 2], notes: &[String]) {
        let requested = [
            ("read", requested.read.name()),
            ("wrote", requested.write.name()),
        ];
        for ((did, requested), used) in requested.into_iter().zip(used) {
            self.when(used != requested, "fallback", || {
                let why = match notes {
                    [] => String::new(),
                    notes => format!(": {}", notes.join("; ")),
                };
                format!("the compaction {did} in mode {used}, not {requested}{why}")
            });
        }
    }

    pub(crate) fn lost_cgroup(&mut self, is_lost: bool) {
        self.when(is_lost, "memory_limit_lost", || {
            "the process was moved out of its cgroup while it ran".to_owned()
        });
    }
}

/// Circumstances of a run that are not in its record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Circumstances<'a> {
    /// Error of the compaction.
    pub(crate) failure: Option<&'a str>,
    pub(crate) least_compaction: Duration,
    /// The first read that failed.
    pub(crate) first_error: Option<&'a str>,
    /// Hot set divided by the memory that it may take.
    pub(crate) pressure: f64,
    /// Whether the process was in its cgroup to the end; `None` without one.
    pub(crate) kept_cgroup: Option<bool>,
    /// Pages of the inputs that were still in the page cache when it had been dropped.
    pub(crate) not_dropped: Option<Pages>,
}

/// Reasons that the run does not count; none if it does.
pub(crate) fn judge(run: &Run, circumstances: &Circumstances<'_>) -> Vec<Warning> {
    let mut reasons = Warnings::default();
    if let Some(error) = circumstances.failure {
        reasons.failed(error);
    }
    if let (Arm::Compaction(modes), Some(compaction)) = (run.arm, &run.compaction) {
        let wrote = compaction.write_mode.as_deref().unwrap_or("nothing");
        let used = [compaction.read_mode.as_str(), wrote];
        reasons.modes(modes, used, &compaction.fallbacks);
        judge_pages(modes, compaction, &mut reasons);
        let least = circumstances.least_compaction.as_secs_f64();
        reasons.when(compaction.elapsed_s < least, "compaction_too_short", || {
            format!(
                "the compaction took {:.1} s, less than the {least} s that a run needs; use more data, or \
                 a lower --throughput",
                compaction.elapsed_s
            )
        });
    }
    judge_reads(run, circumstances, &mut reasons);
    reasons.lost_cgroup(circumstances.kept_cgroup == Some(false));
    reasons.0
}

fn judge_pages(modes: IoPair, compaction: &CompactionRecord, reasons: &mut Warnings) {
    let IoPair { read, write } = modes;
    let most = match write {
        WriteMode::Direct => 0,
        WriteMode::DontNeed | WriteMode::DontCache => {
            (compaction.output_pages as f64 * MOST_LEFT_BY_DROPPING) as u64
        }
        _ => u64::MAX,
    };
    if let Some(left) = compaction.output_pages_after {
        reasons.when(left > most, "pages_left", || {
            format!(
                "{left} of {} pages of the output were in the page cache when it was published, in write \
                 mode {write}",
                compaction.output_pages
            )
        });
    }
    let cold = (compaction.cold_pages_before).zip(compaction.cold_pages_after);
    let leaves_none = [ReadMode::Direct, ReadMode::DontNeed, ReadMode::DontCache].contains(&read);
    if let (true, Some((before, after))) = (leaves_none, cold) {
        let most = before + (compaction.cold_pages as f64 * MOST_COLD_GROWTH) as u64;
        reasons.when(after > most, "pages_left", || {
            format!(
                "{after} of {} pages of the inputs without hot rows were in the page cache when the \
                 compaction was done, {before} when it began, in read mode {read}",
                compaction.cold_pages
            )
        });
    }
}

fn judge_reads(run: &Run, circumstances: &Circumstances<'_>, reasons: &mut Warnings) {
    let phases = [&run.before, &run.during, &run.after];
    let errors = phases.iter().map(|reads| reads.errors).sum();
    reasons.failed_reads(errors, circumstances.first_error);
    let all: u64 = phases.iter().map(|reads| reads.operations).sum();
    reasons.rows_not_found(run.generator.rows_not_found, all as f64);
    reasons.when(!keeps_schedule(&run.before), "generator_late", || {
        format!(
            "without any compaction {:.0} of {:.0} reads/s were done; use a lower --rate or more \
             --reader-threads",
            run.before.achieved_per_s, run.before.intended_per_s
        )
    });
    reasons.wake_up("", run.generator.wake_up_p99_during_ns);
    reasons.when(run.generator.is_unfinished, "generator_late", || {
        "reads that were due were still waiting seconds after the run".to_owned()
    });
    let hot = &run.hot_set;
    let resident = hot.resident_before.unwrap_or(hot.pages);
    let has_room = circumstances.pressure <= PRESSURE_WITH_ROOM;
    let is_cold = (resident as f64) < LEAST_WARM * hot.pages as f64;
    reasons.when(has_room && is_cold, "hot_set_not_warm", || {
        format!(
            "{resident} of {} pages of the hot set were in the page cache when the compaction began",
            hot.pages
        )
    });
}

/// Whether reads kept up with their schedule.
pub(crate) fn keeps_schedule(reads: &Latency) -> bool {
    reads.achieved_per_s >= LEAST_ACHIEVED * reads.intended_per_s
}

/// Caveats about a run that are no reason to discard it.
pub(crate) fn caveats(run: &Run, circumstances: &Circumstances<'_>) -> Vec<Warning> {
    let mut found = Warnings::default();
    found.when(!keeps_schedule(&run.during), "rate_not_held", || {
        format!(
            "{:.0} of {:.0} reads/s were done meanwhile: latencies are those of a queue that grows for as \
             long as it takes; use a lower --rate",
            run.during.achieved_per_s, run.during.intended_per_s
        )
    });
    let pages = circumstances.not_dropped.unwrap_or_default();
    let stayed = pages.resident as f64 > MOST_NOT_DROPPED * pages.total as f64;
    found.when(stayed, "cache_not_dropped", || {
        format!(
            "{} of {} pages of the inputs stayed in the page cache when it was dropped before the run: \
             another process uses them, and they do not count against the memory limit",
            pages.resident, pages.total
        )
    });
    if let Some(compaction) = &run.compaction
        && let Some(limit) = compaction.throughput_limit_bytes_per_s
    {
        let rate = compaction.stored_bytes_per_s;
        found.when(rate < LEAST_RATE * limit as f64, "slower_than_limit", || {
            format!(
                "the compaction took {} MiB/s of its inputs, less than the {} MiB/s that it was allowed: \
                 arms do not have one rate",
                mebibytes(rate),
                mebibytes(limit as f64)
            )
        });
    }
    found.0
}

#[cfg(test)]
mod tests;
