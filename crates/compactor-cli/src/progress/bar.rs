//! The bar on a terminal: one line, whatever the terminal's width.

use console::Term;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};

/// Default number of columns, for terminals that do not report theirs.
const DEFAULT_COLUMNS: u16 = 80;
/// Draws per second.
const DRAWS_PER_S: u8 = 5;

/// A bar that shows less the fewer columns there are, and is removed when it is dropped.
pub struct Bar {
    bar: ProgressBar,
    columns: Box<dyn Fn() -> u16 + Send + Sync>,
    styled_for: u16,
}

impl Bar {
    /// A bar on stderr for a total number of bytes.
    pub fn on_stderr(total_bytes: u64) -> Bar {
        let target = ProgressDrawTarget::stderr_with_hz(DRAWS_PER_S);
        let term = Term::stderr();
        let columns = move || {
            term.size_checked()
                .map_or(DEFAULT_COLUMNS, |(_, columns)| columns)
        };
        Bar::new(total_bytes, target, Box::new(columns))
    }

    fn new(
        total_bytes: u64,
        target: ProgressDrawTarget,
        columns: Box<dyn Fn() -> u16 + Send + Sync>,
    ) -> Bar {
        let mut bar = Bar {
            bar: ProgressBar::with_draw_target(Some(total_bytes), target)
                .with_finish(ProgressFinish::AndClear),
            columns,
            styled_for: 0,
        };
        bar.fit();
        bar
    }

    /// The bar, which others hide while they print.
    pub fn shared(&self) -> ProgressBar {
        self.bar.clone()
    }

    /// Moves the bar.
    pub fn set_position(&self, bytes: u64) {
        self.bar.set_position(bytes);
    }

    /// Sets the text after the bar, and fits the line to the terminal, which may have been resized.
    pub fn set_message(&mut self, message: String) {
        self.fit();
        self.bar.set_message(message);
    }

    fn fit(&mut self) {
        let columns = (self.columns)();
        if columns != self.styled_for
            && let Ok(style) = ProgressStyle::with_template(template(columns))
        {
            self.bar.set_style(style);
            self.styled_for = columns;
        }
    }
}

impl std::fmt::Debug for Bar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bar").field("bar", &self.bar).finish()
    }
}

/// The longest template whose parts of fixed width, and a bar of at least nine, fit into `columns`.
fn template(columns: u16) -> &'static str {
    match columns {
        0..40 => "{percent:>3}%  {eta} left",
        40..80 => "{wide_bar} {percent:>3}%  {bytes_per_sec}  {eta} left",
        80..100 => {
            "{wide_bar} {percent:>3}%  {bytes} of {total_bytes}  {bytes_per_sec}  {eta} left"
        }
        _ => {
            "{wide_bar} {percent:>3}%  {bytes} of {total_bytes}  {bytes_per_sec}  {eta} left  {msg}"
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use indicatif::TermLike;

    use super::*;

    /// A terminal in memory: everything that was written, by line.
    #[derive(Clone, Debug, Default)]
    struct Screen {
        columns: u16,
        written: Arc<Mutex<String>>,
    }

    impl Screen {
        fn push(&self, text: &str) -> io::Result<()> {
            self.written.lock().unwrap().push_str(text);
            Ok(())
        }
    }

    impl TermLike for Screen {
        fn width(&self) -> u16 {
            self.columns
        }

        fn move_cursor_up(&self, _n: usize) -> io::Result<()> {
            self.push("\n")
        }

        fn move_cursor_down(&self, _n: usize) -> io::Result<()> {
            self.push("\n")
        }

        fn move_cursor_right(&self, _n: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_left(&self, _n: usize) -> io::Result<()> {
            Ok(())
        }

        fn write_line(&self, s: &str) -> io::Result<()> {
            self.push(s)?;
            self.push("\n")
        }

        fn write_str(&self, s: &str) -> io::Result<()> {
            self.push(s)
        }

        fn clear_line(&self) -> io::Result<()> {
            self.push("\n")
        }

        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_fits_every_width() {
        for columns in [20, 40, 41, 60, 79, 80, 99, 100, 120, 200] {
            let screen = Screen {
                columns,
                ..Screen::default()
            };
            let target = ProgressDrawTarget::term_like(Box::new(screen.clone()));
            // The longest texts: numbers of five digits before and after the point.
            let total = (1023 << 40) + (1 << 39);
            let mut bar = Bar::new(total, target, Box::new(move || columns));
            for share in 0..=20 {
                bar.set_position(total / 20 * share);
                bar.set_message("12345678901 partitions".to_owned());
                bar.bar.force_draw();
            }
            let written = screen.written.lock().unwrap();
            let longest = written.lines().max_by_key(|line| line.chars().count());
            let longest = longest.unwrap();
            assert!(longest.contains('%'), "{columns}: {longest:?}");
            assert!(
                longest.chars().count() <= usize::from(columns),
                "{columns} columns: {} in {longest:?}",
                longest.chars().count()
            );
        }
    }
}
