//! Progress of an experiment: a line per second in the manner of cassandra-stress.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use compactor_lab::chunk_length::{Reads, VariantRun};
use compactor_lab::outcome::{Attempt, Interval, Phase, Run};
use compactor_lab::watcher::{Event, Plan, Watcher};

use crate::flags::ByteSize;
use crate::output::say;
use crate::progress::ProgressMode;

/// Shows progress on stderr, and stops the experiment when the user interrupts it.
pub struct LabProgress {
    style: Style,
    interrupted: Arc<AtomicBool>,
    last: Mutex<Option<Instant>>,
}

enum Style {
    Lines,
    Json,
    None,
}

impl LabProgress {
    /// Lines, JSON lines or nothing.
    pub fn new(mode: ProgressMode, interrupted: Arc<AtomicBool>) -> LabProgress {
        LabProgress {
            style: match mode {
                ProgressMode::Auto | ProgressMode::Bar | ProgressMode::Plain => Style::Lines,
                ProgressMode::Json => Style::Json,
                ProgressMode::None => Style::None,
            },
            interrupted,
            last: Mutex::new(None),
        }
    }

    fn is_due(&self, every: Duration) -> bool {
        let Ok(mut last) = self.last.lock() else {
            return true;
        };
        let is_due = last.is_none_or(|last| last.elapsed() >= every);
        if is_due {
            *last = Some(Instant::now());
        }
        is_due
    }

    /// Prints lines for people.
    fn line(&self, event: &Event<'_>) {
        let lines = match event {
            Event::Generating {
                done_bytes,
                total_bytes,
            } => vec![format!(
                "generating data: {} of {}",
                ByteSize(*done_bytes),
                ByteSize(*total_bytes)
            )],
            Event::HotSet {
                rows,
                bytes,
                pressure,
            } => vec![format!(
                "hot set: {rows} rows on {} of pages, {:.0}% of the memory they may take",
                ByteSize(*bytes),
                100.0 * pressure
            )],
            Event::Warning(warning) => vec![format!("warning: {}", warning.text)],
            Event::RunStarted(plan) => vec![
                title(plan),
                format!(
                    "{:>11} {:>8} {:>9} {:>9} {:>9} {:>9} {:>9} {:>6}  phase",
                    "total ops", "op/s", "mean ms", "p50 ms", "p99 ms", "p99.9 ms", "max ms", "s"
                ),
            ],
            Event::VariantStarted(plan) => vec![title(plan)],
            Event::Interval {
                interval,
                operations,
                compaction_read_bytes,
                compaction_bytes,
                ..
            } => {
                let (phase, done) = match (interval.phase, compaction_bytes) {
                    (Phase::Before, _) => ("before", String::new()),
                    (Phase::During, 0) => ("during", String::new()),
                    (Phase::During, bytes) => ("during", compacted(*compaction_read_bytes, *bytes)),
                    (Phase::After, _) => ("after", String::new()),
                };
                vec![format!("{}  {phase}{done}", columns(interval, *operations))]
            }
            Event::Room { bytes, directory } => vec![format!(
                "at most {} are needed in {}",
                ByteSize(*bytes),
                directory.display()
            )],
            Event::Writing {
                variant,
                done_bytes,
                total_bytes,
            } => vec![format!(
                "writing {variant}: {} of {}",
                ByteSize(*done_bytes),
                ByteSize(*total_bytes)
            )],
            Event::Written { variant } => vec![format!(
                "{}: {} of Data.db, hot rows on {} of pages, {:.0}% of the memory they may take",
                variant.variant,
                ByteSize(variant.data_file_bytes),
                ByteSize(variant.hot_bytes),
                100.0 * variant.pressure
            )],
            Event::Rate { reads_per_s } => {
                vec![format!(
                    "latencies are compared at {reads_per_s:.0} reads/s"
                )]
            }
            Event::VariantEnded { run, .. } => of_variant(run),
            Event::RunEnded { run, .. } => of_arm(run),
            _ => Vec::new(),
        };
        for line in lines {
            say(format_args!("{line}"));
        }
    }
}

impl Watcher for LabProgress {
    fn is_cancelled(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    fn event(&self, event: &Event<'_>) {
        let is_frequent = matches!(event, Event::Generating { .. } | Event::Writing { .. });
        let every = match self.style {
            Style::Lines => Duration::from_secs(5),
            Style::Json => Duration::from_secs(1),
            Style::None => return,
        };
        if is_frequent && !self.is_due(every) {
            return;
        }
        match (&self.style, serde_json::to_string(event)) {
            (Style::Json, Ok(json)) => say(format_args!("{json}")),
            _ => self.line(event),
        }
    }
}

/// Share of the compaction that is done, and its number from the second on.
fn compacted(read_bytes: u64, bytes: u64) -> String {
    let before = read_bytes.saturating_sub(1) / bytes;
    let share = 100 * (read_bytes - before * bytes) / bytes;
    match before {
        0 => format!(", {share}% compacted"),
        _ => format!(", {share}% compacted, time {}", before + 1),
    }
}

fn title(plan: &Plan) -> String {
    let what = match plan.warm_up {
        true => "warm-up",
        false => "repeat",
    };
    format!(
        "run {} of {}: {}, {what} {}, about {} left for all",
        plan.order + 1,
        plan.runs,
        plan.subject,
        plan.repeat,
        span(plan.time_left)
    )
}

fn span(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min", seconds.div_ceil(60)),
        seconds => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

fn columns(interval: &Interval, operations: u64) -> String {
    let ms = |ns: f64| ns / 1e6;
    format!(
        "{operations:>11} {:>8.0} {:>9.3} {:>9.3} {:>9.3} {:>9.3} {:>9.3} {:>6.1}",
        interval.operations as f64 / interval.duration_s.max(1e-9),
        ms(interval.mean_ns),
        ms(interval.p50_ns as f64),
        ms(interval.p99_ns as f64),
        ms(interval.p999_ns as f64),
        ms(interval.max_ns as f64),
        interval.start_s + interval.duration_s,
    )
}

fn of_variant(run: &VariantRun) -> Vec<String> {
    let line = |what: &str, reads: &Reads| {
        let at_rate = reads.at_rate.as_ref().map_or_else(String::new, |reading| {
            format!(
                "; at {:.0} reads/s p50 {:.3} ms, p99 {:.3} ms",
                reading.latency.intended_per_s,
                reading.latency.p50_ns as f64 / 1e6,
                reading.latency.p99_ns as f64 / 1e6
            )
        });
        format!(
            "{} {what}: {:.0} reads/s, p99 {:.3} ms{at_rate}",
            run.variant,
            reads.peak.latency.achieved_per_s,
            reads.peak.latency.p99_ns as f64 / 1e6
        )
    };
    let mut lines = vec![line("alone", &run.alone)];
    let compacting = run.compacting.iter();
    lines.extend(compacting.map(|reads| line("during a compaction", reads)));
    lines.extend(remarks(&run.attempt));
    lines
}

/// Reasons that a run does not count, and caveats about it.
fn remarks(run: &Attempt) -> impl Iterator<Item = String> {
    let reasons = run.invalid.iter();
    let reasons = reasons.map(|reason| format!("  NOT COUNTED: {}", reason.text));
    let warnings = run.warnings.iter();
    reasons.chain(warnings.map(|warning| format!("  warning: {}", warning.text)))
}

fn of_arm(run: &Run) -> Vec<String> {
    let ms = |ns: u64| ns as f64 / 1e6;
    let rate = match &run.compaction {
        None => String::new(),
        Some(compaction) => format!(
            ", compaction {:.1} MiB/s",
            compaction.stored_bytes_per_s / f64::from(1 << 20)
        ),
    };
    let mut lines = vec![format!(
        "{}: p50 {:.3} ms, p99 {:.3} ms, p99.9 {:.3} ms, max {:.1} ms{rate}",
        run.arm,
        ms(run.during.p50_ns),
        ms(run.during.p99_ns),
        ms(run.during.p999_ns),
        ms(run.during.max_ns)
    )];
    lines.extend(remarks(&run.attempt));
    lines
}
