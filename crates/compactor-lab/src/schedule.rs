//! Order of runs: every arm once in each repeat, in an order drawn anew.

use std::time::{Duration, Instant};

use compactor::Result;

use crate::random::Random;
use crate::watcher::Plan;

/// Runs of an experiment, and how much longer they take than planned.
#[derive(Debug)]
pub(crate) struct Schedule {
    arms: Vec<String>,
    /// Repeats, which begin with warm-ups.
    repeats: u32,
    warm_ups: u32,
    /// Number of all runs.
    runs: u32,
    /// Number of runs that are over.
    done: u32,
    /// Seconds that those took longer than planned: to warm up and to clean, and for a compaction that is
    /// slower than its limit.
    late_s: f64,
}

impl Schedule {
    /// A schedule that runs each arm in each repeat, at each of a number of points. Repeats that count follow warm-ups.
    pub(crate) fn new(
        arms: Vec<String>,
        points: usize,
        (warm_ups, counted): (u32, u32),
    ) -> Schedule {
        let repeats = warm_ups + counted;
        let runs = u32::try_from(arms.len() * points).unwrap_or(u32::MAX);
        Schedule {
            arms,
            repeats,
            warm_ups,
            runs: runs.saturating_mul(repeats),
            done: 0,
            late_s: 0.0,
        }
    }

    /// Runs each arm, by its index, once in each repeat. `planned` is the duration of a run of a repeat;
    /// `last` is the arm that runs last in warm-ups.
    ///
    /// # Errors
    /// Those of `run`.
    pub(crate) fn run(
        &mut self,
        random: &mut Random,
        planned: impl Fn(u32) -> Duration,
        last: Option<usize>,
        mut run: impl FnMut(usize, Plan) -> Result<()>,
    ) -> Result<()> {
        let mut order: Vec<usize> = (0..self.arms.len()).collect();
        for repeat in 0..self.repeats {
            let warm_up = repeat < self.warm_ups;
            random.shuffle(&mut order);
            if warm_up {
                order.sort_by_key(|arm| Some(*arm) == last);
            }
            for &arm in &order {
                let plan = Plan {
                    arm: self.arms[arm].clone(),
                    repeat,
                    warm_up,
                    order: self.done,
                    runs: self.runs,
                    time_left: self.time_left(&planned),
                    started: Instant::now(),
                };
                let started = plan.started;
                run(arm, plan)?;
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
    fn time_left(&self, planned: &impl Fn(u32) -> Duration) -> Duration {
        let arms = u32::try_from(self.arms.len()).unwrap_or(u32::MAX);
        let repeat_of = |order: u32| order / arms.max(1) % self.repeats.max(1);
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
        let mut schedule = Schedule::new(vec![String::new(); 4], 1, (1, 5));
        let left = |schedule: &Schedule| schedule.time_left(&planned);
        assert_eq!(left(&schedule), 4 * 3 * second + 20 * 6 * second);
        // Each warm-up took a second more than that.
        (0..4).for_each(|_| schedule.add(3 * second, 4 * second));
        assert_eq!(left(&schedule), 20 * 7 * second);
    }
}
