//! Progress of an experiment on stderr: a line per second in the manner of cassandra-stress.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use compactor_lab::comparison::Measured;
use compactor_lab::figure::Unit;
use compactor_lab::outcome::{Interval, Phase};
use compactor_lab::watcher::{Event, Plan, Watcher};

use crate::flags::ByteSize;
use crate::output::say;
use crate::progress::ProgressMode;

/// Shows progress on stderr, and stops the experiment when the user interrupts it.
pub struct LabProgress {
    mode: ProgressMode,
    interrupted: Arc<AtomicBool>,
    last: Mutex<Option<Instant>>,
}

impl LabProgress {
    pub fn new(mode: ProgressMode, interrupted: Arc<AtomicBool>) -> LabProgress {
        LabProgress {
            mode,
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
}

impl Watcher for LabProgress {
    fn is_cancelled(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    fn event(&self, event: &Event<'_>) {
        let every = match self.mode {
            ProgressMode::Auto | ProgressMode::Bar | ProgressMode::Plain => Duration::from_secs(5),
            ProgressMode::Json => Duration::from_secs(1),
            ProgressMode::None => return,
        };
        if matches!(event, Event::Progress { .. }) && !self.is_due(every) {
            return;
        }
        match (self.mode, serde_json::to_string(event)) {
            (ProgressMode::Json, Ok(json)) => say(format_args!("{json}")),
            _ => lines(event)
                .iter()
                .for_each(|line| say(format_args!("{line}"))),
        }
    }
}

/// Lines for people.
fn lines(event: &Event<'_>) -> Vec<String> {
    match event {
        Event::Note { text } => vec![(*text).to_owned()],
        Event::Progress {
            work,
            done_bytes,
            total_bytes,
        } => vec![format!(
            "{work}: {} of {}",
            ByteSize(*done_bytes),
            ByteSize(*total_bytes)
        )],
        Event::Warning(warning) => vec![format!("warning: {}", warning.text)],
        Event::RunStarted(plan) => vec![title(plan)],
        Event::Interval {
            interval,
            operations,
            compaction_read_bytes,
            compaction_bytes,
            ..
        } => {
            let done = match (interval.phase, compaction_bytes) {
                (Phase::Before, _) => "before".to_owned(),
                (Phase::During, 0) => "during".to_owned(),
                (Phase::During, bytes) => compacted(*compaction_read_bytes, *bytes),
                (Phase::After, _) => "after".to_owned(),
            };
            // The first of a run is preceded by the names of the columns.
            let names = (*operations == interval.operations + interval.errors).then(column_names);
            let line = format!("{}  {done}", columns(interval, *operations));
            names.into_iter().chain([line]).collect()
        }
        Event::RunEnded(run) => ended(run),
        _ => Vec::new(),
    }
}

/// Share of the compaction that is done, and its number from the second on.
fn compacted(read_bytes: u64, bytes: u64) -> String {
    let before = read_bytes.saturating_sub(1) / bytes;
    let share = 100 * (read_bytes - before * bytes) / bytes;
    match before {
        0 => format!("during, {share}% compacted"),
        _ => format!("during, {share}% compacted, round {}", before + 1),
    }
}

fn title(plan: &Plan) -> String {
    let kind = if plan.warm_up { "warm-up" } else { "repeat" };
    let left = match plan.time_left.as_secs() {
        0 => String::new(),
        seconds @ 1..60 => format!(", about {seconds} s left for all"),
        seconds @ 60..3600 => format!(", about {} min left for all", seconds.div_ceil(60)),
        seconds => format!(
            ", about {} h {} min left for all",
            seconds / 3600,
            seconds % 3600 / 60
        ),
    };
    format!(
        "run {} of {}: {}, {kind} {}{left}",
        plan.order + 1,
        plan.runs,
        plan.arm,
        plan.repeat,
    )
}

fn column_names() -> String {
    format!(
        "{:>11} {:>8} {:>9} {:>9} {:>9} {:>9} {:>9} {:>6}  phase",
        "total ops", "op/s", "mean ms", "p50 ms", "p99 ms", "p99.9 ms", "max ms", "s"
    )
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

/// Figures that arms are compared by, reasons that the run does not count, and caveats about it.
fn ended(run: &Measured) -> Vec<String> {
    let compared = run.figures.iter();
    let compared = compared.filter(|(figure, _)| figure.better.is_some());
    let figures = compared.map(|(figure, value)| {
        let unit = match figure.unit {
            Unit::Milliseconds => " ms",
            _ => "",
        };
        format!("{} {}{unit}", figure.title(), figure.unit.text(*value))
    });
    let figures: Vec<String> = figures.collect();
    let mut lines = vec![format!("{}: {}", run.arm, figures.join(", "))];
    let invalid = run.attempt.invalid.iter();
    lines.extend(invalid.map(|reason| format!("  NOT COUNTED: {}", reason.text)));
    let warnings = run.attempt.warnings.iter();
    lines.extend(warnings.map(|warning| format!("  warning: {}", warning.text)));
    lines
}
