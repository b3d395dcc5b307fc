//! What goes on while an experiment runs: a line per second in the manner of cassandra-stress.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use compactor_lab::outcome::{Interval, Phase, Run};
use compactor_lab::watcher::{Event, Plan, Watcher};
use serde_json::json;

use crate::flags::ByteSize;
use crate::output::say;
use crate::progress::ProgressMode;

/// Between two lines on the generation of data.
const GENERATING_EVERY: Duration = Duration::from_secs(5);

/// Shows progress on stderr, and stops the experiment when the person asks to.
pub struct LabProgress {
    style: Style,
    interrupted: Arc<AtomicBool>,
    told: Mutex<Option<Instant>>,
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
            told: Mutex::new(None),
        }
    }

    fn is_due(&self, every: Duration) -> bool {
        let Ok(mut told) = self.told.lock() else {
            return true;
        };
        let is_due = told.is_none_or(|told| told.elapsed() >= every);
        if is_due {
            *told = Some(Instant::now());
        }
        is_due
    }

    fn line(&self, event: &Event<'_>) {
        match event {
            Event::Generating {
                done_bytes,
                total_bytes,
            } if self.is_due(GENERATING_EVERY) => say(format_args!(
                "generating data: {} of {}",
                ByteSize(*done_bytes),
                ByteSize(*total_bytes)
            )),
            Event::HotSet {
                rows,
                bytes,
                pressure,
            } => say(format_args!(
                "hot set: {rows} rows on {} of pages, {:.0}% of the memory they may take",
                ByteSize(*bytes),
                100.0 * pressure
            )),
            Event::Warning(warning) => say(format_args!("warning: {}", warning.text)),
            Event::RunStarted(plan) => {
                say(format_args!("{}", title(plan)));
                say(format_args!(
                    "{:>11} {:>8} {:>9} {:>9} {:>9} {:>9} {:>9} {:>6}  phase",
                    "total ops", "op/s", "mean ms", "p50 ms", "p99 ms", "p99.9 ms", "max ms", "s"
                ));
            }
            Event::Interval {
                interval,
                operations,
                compaction_read_bytes,
                compaction_bytes,
                ..
            } => {
                let done = match (interval.phase, compaction_bytes) {
                    (Phase::During, 1..) => {
                        format!(
                            ", {}% compacted",
                            100 * compaction_read_bytes / compaction_bytes
                        )
                    }
                    _ => String::new(),
                };
                say(format_args!(
                    "{}  {}{done}",
                    columns(interval, *operations),
                    name(interval)
                ));
            }
            Event::RunEnded { run, .. } => {
                for line in verdict(run) {
                    say(format_args!("{line}"));
                }
            }
            _ => {}
        }
    }

    fn json(&self, event: &Event<'_>) {
        let line = match event {
            Event::Generating {
                done_bytes,
                total_bytes,
            } if self.is_due(Duration::from_secs(1)) => json!({
                "event": "generating", "done_bytes": done_bytes, "total_bytes": total_bytes,
            }),
            Event::HotSet {
                rows,
                bytes,
                pressure,
            } => json!({ "event": "hot_set", "rows": rows, "bytes": bytes, "pressure": pressure }),
            Event::Warning(warning) => json!({
                "event": "warning", "kind": warning.kind, "text": warning.text,
            }),
            Event::RunStarted(plan) => json!({
                "event": "run_started", "arm": plan.arm, "repeat": plan.repeat,
                "warm_up": plan.warm_up, "order": plan.order, "runs": plan.runs,
                "time_left_s": plan.time_left.map(|left| left.as_secs_f64()),
            }),
            Event::Interval {
                plan,
                interval,
                operations,
                compaction_read_bytes,
                compaction_bytes,
            } => json!({
                "event": "interval", "order": plan.order, "arm": plan.arm,
                "operations": operations, "interval": interval,
                "compaction_read_bytes": compaction_read_bytes,
                "compaction_bytes": compaction_bytes,
            }),
            Event::RunEnded { plan, run } => json!({
                "event": "run_ended", "order": plan.order, "arm": plan.arm,
                "invalid": run.invalid, "p99_ns": run.during.p99_ns,
            }),
            _ => return,
        };
        say(format_args!("{line}"));
    }
}

impl Watcher for LabProgress {
    fn is_cancelled(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    fn event(&self, event: &Event<'_>) {
        match self.style {
            Style::Lines => self.line(event),
            Style::Json => self.json(event),
            Style::None => {}
        }
    }
}

fn title(plan: &Plan) -> String {
    let left = match plan.time_left {
        None => String::new(),
        Some(left) => format!(", about {} left for all", span(left)),
    };
    let what = match plan.warm_up {
        true => "warm-up",
        false => "repeat",
    };
    format!(
        "run {} of {}: {}, {what} {}{left}",
        plan.order + 1,
        plan.runs,
        plan.arm,
        plan.repeat
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

fn name(interval: &Interval) -> &'static str {
    match interval.phase {
        Phase::Before => "before",
        Phase::During => "during",
        Phase::After => "after",
    }
}

fn verdict(run: &Run) -> Vec<String> {
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
    let reasons = run.invalid.iter();
    lines.extend(reasons.map(|reason| format!("  NOT COUNTED: {}", reason.text)));
    let warnings = run.warnings.iter();
    lines.extend(warnings.map(|warning| format!("  warning: {}", warning.text)));
    lines
}
