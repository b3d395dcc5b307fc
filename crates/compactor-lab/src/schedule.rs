//! Order of runs: every item once in each repeat, in an order drawn anew.

use std::time::{Duration, Instant};

use compactor::Result;

use crate::outcome::Subject;
use crate::random::Random;
use crate::watcher::Plan;

/// Repeats of each item.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Repeats {
    pub(crate) warm_ups: u32,
    pub(crate) counted: u32,
}

/// A run among all others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    /// Repeat, warm-ups included.
    pub(crate) repeat: u32,
    pub(crate) warm_up: bool,
    /// Position among all runs, from 0.
    pub(crate) order: u32,
    /// Number of all runs.
    pub(crate) runs: u32,
    time_left: Duration,
}

impl Turn {
    /// The plan of the run of an arm or a variant.
    pub(crate) fn plan(self, subject: Subject) -> Plan {
        Plan {
            subject,
            repeat: self.repeat,
            warm_up: self.warm_up,
            order: self.order,
            runs: self.runs,
            time_left: self.time_left,
        }
    }
}

/// Runs of an experiment, and how much longer they take than planned.
#[derive(Debug)]
pub(crate) struct Schedule {
    repeats: Repeats,
    /// Number of all runs.
    runs: u32,
    /// Number of runs that are over.
    done: u32,
    /// Seconds that those took longer than planned: to warm up and to clean, and for a compaction that is
    /// slower than its limit.
    late_s: f64,
}

impl Schedule {
    /// A schedule of an experiment that runs a number of items in each repeat, all together.
    pub(crate) fn new(items: usize, repeats: Repeats) -> Schedule {
        let items = u32::try_from(items).unwrap_or(u32::MAX);
        Schedule {
            repeats,
            runs: items.saturating_mul(repeats.warm_ups + repeats.counted),
            done: 0,
            late_s: 0.0,
        }
    }

    /// Runs each item once in each repeat. `planned` is the duration of a run of a repeat, and `arrange`
    /// may change the order of a warm-up.
    ///
    /// # Errors
    /// Those of `run`.
    pub(crate) fn run<T: Copy>(
        &mut self,
        items: &mut [T],
        random: &mut Random,
        planned: impl Fn(u32) -> Duration,
        arrange: impl Fn(&mut [T]),
        mut run: impl FnMut(T, Turn) -> Result<()>,
    ) -> Result<()> {
        let count = u32::try_from(items.len()).unwrap_or(u32::MAX);
        for repeat in 0..self.repeats.warm_ups + self.repeats.counted {
            let warm_up = repeat < self.repeats.warm_ups;
            random.shuffle(items);
            if warm_up {
                arrange(items);
            }
            for &item in items.iter() {
                let started = Instant::now();
                let turn = Turn {
                    repeat,
                    warm_up,
                    order: self.done,
                    runs: self.runs,
                    time_left: self.time_left(count, &planned),
                };
                run(item, turn)?;
                self.add(planned(repeat), started.elapsed());
            }
        }
        Ok(())
    }

    /// Adds a run that is over.
    fn add(&mut self, planned: Duration, taken: Duration) {
        self.done += 1;
        self.late_s += taken.as_secs_f64() - planned.as_secs_f64();
    }

    /// Expected duration of all runs that are not over.
    fn time_left(&self, items: u32, planned: &impl Fn(u32) -> Duration) -> Duration {
        let repeats = self.repeats.warm_ups + self.repeats.counted;
        let repeat_of = |order: u32| order / items.max(1) % repeats.max(1);
        let left = self.done..self.runs;
        let planned: Duration = left.clone().map(|order| planned(repeat_of(order))).sum();
        let late_s = match self.done {
            0 => 0.0,
            done => self.late_s / f64::from(done) * left.len() as f64,
        };
        Duration::from_secs_f64((planned.as_secs_f64() + late_s).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Warm-ups take half as long, and do not predict the others.
    #[test]
    fn the_time_left_is_that_of_runs_that_measure_more() {
        let second = Duration::from_secs(1);
        let planned = |repeat| if repeat == 0 { 3 * second } else { 6 * second };
        let repeats = Repeats {
            warm_ups: 1,
            counted: 5,
        };
        let mut schedule = Schedule::new(4, repeats);
        let left = |schedule: &Schedule| schedule.time_left(4, &planned);
        assert_eq!(left(&schedule), 4 * 3 * second + 20 * 6 * second);
        // Each warm-up took a second more than that.
        (0..4).for_each(|_| schedule.add(3 * second, 4 * second));
        assert_eq!(left(&schedule), 20 * 7 * second);
    }
}
