//! Running compactions, which share the throughput.

use compactor_strategy::task::Task;

use crate::stored::Stored;

/// A compaction that runs.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) task: Task,
    pub(crate) outputs: Vec<Stored>,
    /// Bytes of the inputs.
    pub(crate) read_bytes: f64,
    /// Bytes of the outputs.
    pub(crate) written_bytes: f64,
    /// Bytes of the inputs that are not read.
    remaining: f64,
}

/// Compactions that run at once.
#[derive(Debug)]
pub(crate) struct Compactors {
    running: Vec<Running>,
    most: usize,
    /// Bytes that all of them read per second; `None` if they take no time.
    bytes_per_s: Option<f64>,
}

/// Shortest time that a compaction takes if the throughput is limited, in bytes of its inputs: a strategy that
/// rewrites the same SSTable without end would stop the clock.
const FEWEST_BYTES: f64 = 1024.0;

impl Compactors {
    pub(crate) fn new(most: usize, bytes_per_s: Option<f64>) -> Compactors {
        Compactors {
            running: Vec::new(),
            most,
            bytes_per_s,
        }
    }

    /// Whether another compaction can start.
    pub(crate) fn has_room(&self) -> bool {
        self.running.len() < self.most
    }

    /// Starts a compaction whose inputs and outputs have these numbers of bytes.
    pub(crate) fn start(&mut self, task: Task, outputs: Vec<Stored>, read: f64, written: f64) {
        let read_bytes = read.max(FEWEST_BYTES);
        self.running.push(Running {
            task,
            outputs,
            read_bytes,
            written_bytes: written,
            remaining: read_bytes,
        });
    }

    /// Time until the next one ends, seconds; infinite if none runs.
    pub(crate) fn next_end_s(&self) -> f64 {
        let least = self.running.iter().map(|running| running.remaining);
        let least = least.fold(f64::INFINITY, f64::min);
        match self.bytes_per_s {
            None if least.is_finite() => 0.0,
            None => f64::INFINITY,
            Some(rate) => least * self.running.len().max(1) as f64 / rate,
        }
    }

    /// Lets them run for a time that is not longer than until the next end.
    pub(crate) fn advance(&mut self, seconds: f64) {
        let Some(rate) = self.bytes_per_s else { return };
        let each = rate * seconds / self.running.len().max(1) as f64;
        for running in &mut self.running {
            running.remaining = (running.remaining - each).max(0.0);
        }
    }

    /// Ends the one that has the fewest bytes left, of equal ones the first.
    pub(crate) fn end_next(&mut self) -> Option<Running> {
        let by_remaining = |(_, a): &(usize, &Running), (_, b): &(usize, &Running)| {
            a.remaining.total_cmp(&b.remaining)
        };
        let (next, _) = self.running.iter().enumerate().min_by(by_remaining)?;
        Some(self.running.remove(next))
    }

    /// Bytes of outputs whose inputs are still there.
    pub(crate) fn temporary_bytes(&self) -> f64 {
        let bytes = |running: &Running| match self.bytes_per_s {
            Some(_) => running.written_bytes * (1.0 - running.remaining / running.read_bytes),
            None => running.written_bytes,
        };
        self.running.iter().map(bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use compactor_strategy::task::{Output, Reason, TaskKind};

    use super::*;

    fn start(compactors: &mut Compactors, bytes: f64) {
        let task = Task {
            inputs: Vec::new(),
            expired: Vec::new(),
            kind: TaskKind::Compact,
            reason: Reason::Major,
            output: Output::default(),
        };
        compactors.start(task, Vec::new(), bytes, bytes / 2.0);
    }

    #[test]
    fn the_throughput_is_shared() {
        let mut compactors = Compactors::new(2, Some(1e6));
        start(&mut compactors, 2e6);
        assert_eq!(compactors.next_end_s(), 2.0);
        compactors.advance(1.0);
        start(&mut compactors, 4e6);
        assert!(!compactors.has_room());
        assert_eq!(compactors.next_end_s(), 2.0);
        compactors.advance(2.0);
        assert_eq!(compactors.temporary_bytes(), 1e6 + 0.5e6);
        let ended = compactors.end_next().expect("the first");
        assert_eq!(ended.written_bytes, 1e6);
        assert_eq!(compactors.next_end_s(), 3.0);
    }

    #[test]
    fn without_a_limit_they_take_no_time() {
        let mut compactors = Compactors::new(1, None);
        assert_eq!(compactors.next_end_s(), f64::INFINITY);
        start(&mut compactors, 2e6);
        assert_eq!(compactors.next_end_s(), 0.0);
        assert_eq!(compactors.temporary_bytes(), 1e6);
    }
}
