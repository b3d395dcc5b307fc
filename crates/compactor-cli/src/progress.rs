//! Progress on stderr: a bar on a terminal, lines elsewhere, JSON lines for programs.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use compactor::Observer;
use indicatif::ProgressBar;

mod bar;

use bar::Bar;

use crate::flags::ByteSize;
use crate::output::say;
use crate::text_table::counted;

/// How progress is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ProgressMode {
    /// A bar on a terminal, plain lines otherwise.
    #[default]
    Auto,
    /// A bar with rate and remaining time.
    Bar,
    /// A line every five seconds.
    Plain,
    /// A JSON object per second, one a line.
    Json,
    /// Nothing.
    None,
}

/// Shows the progress of a job, and stops it when the person asks to. A bar is taken away when it is dropped.
#[derive(Debug)]
pub struct Progress {
    total_bytes: u64,
    style: Style,
    started: Instant,
    shown: Instant,
    interrupted: Arc<AtomicBool>,
}

#[derive(Debug)]
enum Style {
    Bar(Bar),
    Plain,
    Json,
    None,
}

impl Progress {
    /// Progress of a merge of `total_bytes` of uncompressed input.
    pub fn new(mode: ProgressMode, total_bytes: u64, interrupted: Arc<AtomicBool>) -> Progress {
        let style = match mode {
            ProgressMode::Auto if std::io::stderr().is_terminal() => {
                Style::Bar(Bar::on_stderr(total_bytes))
            }
            ProgressMode::Bar => Style::Bar(Bar::on_stderr(total_bytes)),
            ProgressMode::Auto | ProgressMode::Plain => Style::Plain,
            ProgressMode::Json => Style::Json,
            ProgressMode::None => Style::None,
        };
        let now = Instant::now();
        Progress {
            total_bytes,
            style,
            started: now,
            shown: now,
            interrupted,
        }
    }

    /// Prints lines while progress is shown.
    pub fn lines(&self) -> Lines {
        Lines(match &self.style {
            Style::Bar(bar) => Some(bar.shared()),
            _ => None,
        })
    }

    fn is_due(&mut self, interval: Duration) -> bool {
        let is_due = self.shown.elapsed() >= interval;
        if is_due {
            self.shown = Instant::now();
        }
        is_due
    }
}

/// Prints lines; a bar is hidden meanwhile.
#[derive(Debug)]
pub struct Lines(Option<ProgressBar>);

impl Lines {
    /// Calls `print`, which writes whole lines to the terminal.
    pub fn print<R>(&self, print: impl FnOnce() -> R) -> R {
        match &self.0 {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }
}

impl Observer for Progress {
    fn is_cancelled(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    fn message(&mut self, text: &str) {
        self.lines().print(|| say(format_args!("{text}")));
    }

    fn progress(&mut self, read_bytes: u64, rows: u64, partitions: u64) {
        match &self.style {
            Style::None => {}
            Style::Bar(bar) => {
                bar.set_position(read_bytes);
                if self.is_due(Duration::from_millis(200))
                    && let Style::Bar(bar) = &mut self.style
                {
                    bar.set_message(counted(partitions, "partition"));
                }
            }
            Style::Plain => {
                if self.is_due(Duration::from_secs(5)) {
                    let elapsed = self.started.elapsed().as_secs_f64().max(1e-9);
                    let rate = read_bytes as f64 / elapsed;
                    let left = (self.total_bytes.saturating_sub(read_bytes)) as f64 / rate;
                    // Nothing is read while the first compaction is selected.
                    let left = if left.is_finite() {
                        format!("{left:.0} s left")
                    } else {
                        "starting".to_owned()
                    };
                    say(format_args!(
                        "{:>3.0}%  {} of {}  {}/s  {left}  {}",
                        100.0 * read_bytes as f64 / self.total_bytes.max(1) as f64,
                        ByteSize(read_bytes),
                        ByteSize(self.total_bytes),
                        ByteSize(rate as u64),
                        counted(partitions, "partition"),
                    ));
                }
            }
            Style::Json => {
                if self.is_due(Duration::from_secs(1)) {
                    say(format_args!(
                        "{}",
                        serde_json::json!({
                            "read_uncompressed_bytes": read_bytes,
                            "total_uncompressed_bytes": self.total_bytes,
                            "rows": rows,
                            "partitions": partitions,
                            "elapsed_s": self.started.elapsed().as_secs_f64(),
                        })
                    ));
                }
            }
        }
    }
}
