//! What goes on while an experiment runs: a line per second in the manner of cassandra-stress.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use compactor_lab::chunk_length::{Reads, VariantRun};
use compactor_lab::outcome::{Interval, Invalid, Phase, Run, Warning};
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
                    (Phase::During, 1..) => compacted(*compaction_read_bytes, *compaction_bytes),
                    _ => String::new(),
                };
                say(format_args!(
                    "{}  {}{done}",
                    columns(interval, *operations),
                    name(interval)
                ));
            }
            Event::Room { bytes, directory } => say(format_args!(
                "at most {} are needed in {}",
                ByteSize(*bytes),
                directory.display()
            )),
            Event::Writing {
                variant,
                done_bytes,
                total_bytes,
            } if self.is_due(GENERATING_EVERY) => say(format_args!(
                "writing {variant}: {} of {}",
                ByteSize(*done_bytes),
                ByteSize(*total_bytes)
            )),
            Event::Written(record) => say(format_args!(
                "{}: {} of Data.db, hot rows on {} of pages, {:.0}% of the memory they may take",
                record.variant,
                ByteSize(record.data_file_bytes),
                ByteSize(record.hot_bytes),
                100.0 * record.pressure
            )),
            Event::Rate(rate) => {
                say(format_args!("latencies are compared at {rate:.0} reads/s"));
            }
            Event::VariantStarted(plan) => say(format_args!(
                "{}",
                run_title(
                    &plan.variant.to_string(),
                    (plan.order, plan.runs),
                    (plan.warm_up, plan.repeat),
                    plan.time_left
                )
            )),
            Event::VariantEnded { run, .. } => {
                for line in verdict_of_variant(run) {
                    say(format_args!("{line}"));
                }
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
                "time_left_s": plan.time_left.as_secs_f64(),
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
            Event::Room { bytes, directory } => json!({
                "event": "room", "bytes": bytes, "directory": directory.to_string_lossy(),
            }),
            Event::Writing {
                variant,
                done_bytes,
                total_bytes,
            } if self.is_due(Duration::from_secs(1)) => json!({
                "event": "writing", "variant": variant, "done_bytes": done_bytes,
                "total_bytes": total_bytes,
            }),
            Event::Written(record) => json!({ "event": "written", "variant": record }),
            Event::Rate(rate) => json!({ "event": "rate", "reads_per_s": rate }),
            Event::VariantStarted(plan) => json!({
                "event": "variant_started", "variant": plan.variant, "repeat": plan.repeat,
                "warm_up": plan.warm_up, "order": plan.order, "runs": plan.runs,
                "time_left_s": plan.time_left.as_secs_f64(),
            }),
            Event::VariantEnded { plan, run } => json!({
                "event": "variant_ended", "order": plan.order, "variant": plan.variant,
                "invalid": run.attempt.invalid,
                "reads_per_s": run.alone.peak.latency.achieved_per_s,
            }),
            Event::RunEnded { plan, run } => json!({
                "event": "run_ended", "order": plan.order, "arm": plan.arm,
                "invalid": run.attempt.invalid, "p99_ns": run.during.p99_ns,
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

/// How far the compaction is, and which one it is, from the second on.
fn compacted(read_bytes: u64, bytes: u64) -> String {
    let before = read_bytes.saturating_sub(1) / bytes;
    let share = 100 * (read_bytes - before * bytes) / bytes;
    match before {
        0 => format!(", {share}% compacted"),
        _ => format!(", {share}% compacted, time {}", before + 1),
    }
}

fn title(plan: &Plan) -> String {
    run_title(
        &plan.arm.to_string(),
        (plan.order, plan.runs),
        (plan.warm_up, plan.repeat),
        plan.time_left,
    )
}

fn run_title(
    name: &str,
    (order, runs): (u32, u32),
    (warm_up, repeat): (bool, u32),
    time_left: Duration,
) -> String {
    let left = span(time_left);
    let what = match warm_up {
        true => "warm-up",
        false => "repeat",
    };
    format!(
        "run {} of {runs}: {name}, {what} {repeat}, about {left} left for all",
        order + 1
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

fn verdict_of_variant(run: &VariantRun) -> Vec<String> {
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
    let beside = run.beside.iter();
    lines.extend(beside.map(|reads| line("beside a compaction", reads)));
    lines.extend(remarks(&run.attempt.invalid, &run.attempt.warnings));
    lines
}

/// Why a run does not count, and what is doubtful about it.
fn remarks<'a>(
    invalid: &'a [Invalid],
    warnings: &'a [Warning],
) -> impl Iterator<Item = String> + 'a {
    let reasons = invalid.iter();
    let reasons = reasons.map(|reason| format!("  NOT COUNTED: {}", reason.text));
    let warnings = warnings.iter();
    reasons.chain(warnings.map(|warning| format!("  warning: {}", warning.text)))
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
    lines.extend(remarks(&run.attempt.invalid, &run.attempt.warnings));
    lines
}
