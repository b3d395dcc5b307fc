//! Interference experiment: p99 of reads of hot rows while their table is compacted, in each I/O mode; for each size of
//! the hot set all arms in random order, repeated.

mod run;

use std::sync::Arc;
use std::time::Duration;

use compactor::Result;

use run::{Bench, MOST_COMPACTIONS};

use crate::arm::Arm;
use crate::hot_set::HotSet;
use crate::options::InterferenceOptions;
use crate::outcome::{Outcome, Phase, Run, SweepPoint};
use crate::random::Random;
use crate::report::units::bytes;
use crate::schedule::Schedule;
use crate::session::Session;
use crate::table::{GENERATING, Table};
use crate::watcher::{Event, Plan, Watcher, watched};
use crate::{report, warnings};

/// Stream of random numbers of the seed, for the order of runs.
const STREAM: u64 = 0x6f72_6465;
/// Duration of an idle run while that of a compaction is unknown.
const IDLE: Duration = Duration::from_secs(20);

/// Measures what a compaction does to reads of hot rows, in each of the arms.
///
/// Everything it makes on the disk is below `options.directory` and removed at the end, and so is its
/// cgroup. If the watcher stops it, what was measured until then is returned, with
/// [`End::Interrupted`](crate::outcome::End::Interrupted).
///
/// # Errors
/// Invalid options, no disk space, a failed read, or cancellation before the first run.
pub fn interference(options: &InterferenceOptions, watcher: &dyn Watcher) -> Result<Outcome> {
    options.check()?;
    let limit = options.memory_limit_bytes;
    let session = Session::begin(&options.directory, "lab", limit, watcher)?;
    let warnings = session.warn(warnings::of_environment(&session.environment, options));
    let sizes = &options.hot_sets_bytes;
    let largest = sizes.iter().copied().max();
    let bytes = options.data.generated_bytes(largest.unwrap_or(0));
    // Inputs, the output before and that which is being written: compressed, each is about half of it.
    let mut table = Table::prepare(
        &options.data,
        (bytes, 2 * bytes),
        options.seed,
        session.directory(),
        &mut watched(watcher, GENERATING, (0, bytes)),
    )?;
    let arms = options.arms.iter().map(Arm::to_string).collect();
    let mut schedule = Schedule::new(arms, sizes.len(), (options.warm_ups, options.repeats));
    let mut points = Vec::new();
    let runs = sizes.iter().try_for_each(|&size| {
        let hot = Arc::new(HotSet::of_table(&table, size, options.seed, watcher)?);
        table.record.partitions = hot.partitions;
        let cgroup = session.enter_cgroup()?;
        let mut point = point(options, &session, &table, &hot, size);
        let bench = Bench {
            options,
            session: &session,
            table: &table,
            hot: &hot,
            cgroup: cgroup.as_ref(),
            pressure: point.pressure,
        };
        let runs = run_all(&bench, &mut point, &mut schedule);
        points.push(point);
        runs
    });
    let has_runs = points.iter().any(|point| !point.runs.is_empty());
    let (header, environment) = session.finish(runs, has_runs)?;
    Ok(Outcome {
        header,
        options: options.clone(),
        environment,
        points,
        warnings,
    })
}

/// A size of the hot set, and caveats about it.
fn point(
    options: &InterferenceOptions,
    session: &Session<'_>,
    table: &Table,
    hot: &HotSet,
    hot_set_bytes: u64,
) -> SweepPoint {
    let hot_bytes = hot.page_count() * session.environment.page_bytes;
    let room_bytes = session.room_bytes();
    let pressure = hot_bytes as f64 / room_bytes as f64;
    session.note(&format!(
        "hot set: {} rows on {} of pages, {:.0}% of the memory they may take",
        hot.rows.len(),
        bytes(hot_bytes as f64),
        100.0 * pressure
    ));
    let own_bytes = options.compaction_memory_bytes as u64;
    let data = &table.record;
    let found = warnings::of_point(data, hot_bytes, hot_set_bytes, room_bytes, own_bytes);
    SweepPoint {
        hot_set_bytes,
        data: table.record.clone(),
        memory_limit_bytes: session.limit_bytes,
        cache_room_bytes: None,
        pressure,
        runs: Vec::new(),
        warnings: session.warn(found),
    }
}

/// All runs at one size of the hot set. What was measured is in the point, however they end.
fn run_all(bench: &Bench<'_>, point: &mut SweepPoint, schedule: &mut Schedule) -> Result<()> {
    let (options, watcher) = (bench.options, bench.session.watcher);
    let mut random = Random::new(options.seed, STREAM ^ point.hot_set_bytes);
    let planned = planned(options, bench.table);
    // Idle lasts as long as compactions do, which is known after one.
    let idle_last = options.arms.iter().position(|arm| *arm == Arm::Idle);
    let one = |arm: usize, plan: Plan| {
        watcher.event(&Event::RunStarted(&plan));
        let idle = idle(options, bench.table, &point.runs);
        let run = bench.run(options.arms[arm], idle, &plan)?;
        watcher.event(&Event::RunEnded(&report::interference::measured(&run)));
        if point.cache_room_bytes.is_none() {
            point.cache_room_bytes = cache_room(point.memory_limit_bytes, &run);
        }
        point.runs.push(run);
        Ok(())
    };
    schedule.run(&mut random, |_| planned, idle_last, one)
}

/// Average duration of the compactions before, or expected duration.
fn idle(options: &InterferenceOptions, table: &Table, runs: &[Run]) -> Duration {
    let compactions = runs.iter().filter_map(|run| run.compaction.as_ref());
    let times: Vec<f64> = compactions.map(|compaction| compaction.elapsed_s).collect();
    match times.len() {
        0 => compactions_at_limit(options, table.data_file_bytes())
            .unwrap_or(IDLE.max(options.least_compaction)),
        count => Duration::from_secs_f64(times.iter().sum::<f64>() / count as f64),
    }
}

/// Duration of the compactions of a run, if they have a limit: whole ones, until they have taken long enough.
fn compactions_at_limit(options: &InterferenceOptions, data_file_bytes: u64) -> Option<Duration> {
    let rate = options.throughput_bytes_per_s?.get();
    let once = data_file_bytes.max(1) as f64 / rate as f64;
    let least = options.least_compaction.as_secs_f64();
    let times = (least / once).ceil().clamp(1.0, MOST_COMPACTIONS as f64);
    Some(Duration::from_secs_f64(once * times).max(options.least_compaction))
}

/// Duration of a run by the options, without warming up and cleaning.
fn planned(options: &InterferenceOptions, table: &Table) -> Duration {
    let compactions = compactions_at_limit(options, table.data_file_bytes());
    options.before + compactions.unwrap_or(options.least_compaction) + options.after
}

/// Bytes that the limit left to the page cache when the hot set had been warmed.
fn cache_room(limit: Option<u64>, run: &Run) -> Option<u64> {
    let first = run.samples.iter().find(|s| s.phase == Phase::Before)?;
    let found = first.cgroup?;
    let other = found.usage_bytes?.saturating_sub(found.file_bytes?);
    Some(limit?.saturating_sub(other))
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use super::*;

    /// Guards against an idle run, before there is any other, that is shorter than those with compactions.
    #[test]
    fn compactions_are_repeated_for_long_enough() {
        let second = Duration::from_secs(1);
        let mut options = InterferenceOptions {
            least_compaction: 4 * second,
            ..InterferenceOptions::new("/data")
        };
        options.setup.throughput_bytes_per_s = NonZeroU64::new(100);
        let of = |bytes| compactions_at_limit(&options, bytes).unwrap();
        assert_eq!((of(150), of(1000)), (second * 9 / 2, 10 * second));
        assert_eq!((of(0), of(1)), (4 * second, 4 * second));
        options.setup.throughput_bytes_per_s = None;
        assert_eq!(compactions_at_limit(&options, 150), None);
    }
}
