//! Interference experiment: data, and for each size of the hot set all arms in random order, repeated.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use compactor::{Error, ErrorKind, Observer, Result};
use compactor_io::{Io, IoOptions};

use crate::arm::Arm;
use crate::cgroup::{self, MemoryCgroup};
use crate::clocks::unix_ms;
use crate::environment::{capture, memory_bytes};
use crate::hot_set::HotSet;
use crate::observer::watched;
use crate::options::InterferenceOptions;
use crate::outcome::{End, FORMAT_VERSION, Outcome, Phase, Run, Subject, SweepPoint};
use crate::point_read::PointReader;
use crate::random::Random;
use crate::run::Bench;
use crate::schedule::{Schedule, Turn};
use crate::scratch::Scratch;
use crate::table::Table;
use crate::warnings;
use crate::watcher::{Event, Watcher};

/// Stream of random numbers of the seed, for the order of runs.
const STREAM: u64 = 0x6f72_6465;
/// Duration of an idle run while that of a compaction is unknown.
const IDLE: Duration = Duration::from_secs(20);

/// Measures what a compaction does to reads of hot rows, in each of the arms.
///
/// Everything it makes on the disk is below `options.directory` and removed at the end, and so is its
/// cgroup. If the watcher stops it, what was measured until then is returned, with
/// [`End::Interrupted`].
///
/// # Errors
/// Options that make no sense, no room, a failed read, or cancellation before the first run.
pub fn interference(options: &InterferenceOptions, watcher: &dyn Watcher) -> Result<Outcome> {
    options.check()?;
    let started = Instant::now();
    let started_at_ms = unix_ms();
    let scratch = Scratch::create(&options.directory, "lab")?;
    let environment = capture(
        scratch.path(),
        cgroup::available(options.memory_limit_bytes),
    )?;
    let found = warnings::of_environment(&environment, options);
    for warning in &found {
        watcher.event(&Event::Warning(warning));
    }
    let bytes = options.generated_bytes().unwrap_or(0);
    let mut generating = generating(watcher, bytes);
    // Inputs, the output before and that which is being written: compressed, each is about half of it.
    let mut table = Table::prepare(
        &options.data,
        (bytes, 2 * bytes),
        options.seed,
        scratch.path(),
        &mut generating,
    )?;
    drop(generating);
    let mut outcome = Outcome {
        format_version: FORMAT_VERSION,
        started_at_ms,
        elapsed_s: 0.0,
        end: End::Complete,
        options: options.clone(),
        environment,
        points: Vec::new(),
        warnings: found,
    };
    let items = options.arms.len() * options.hot_sets_bytes.len();
    let mut schedule = Schedule::new(items, options.all_repeats());
    for &hot_set_bytes in &options.hot_sets_bytes {
        let ended = point(
            options,
            hot_set_bytes,
            &mut table,
            scratch.path(),
            &mut outcome,
            &mut schedule,
            watcher,
        );
        match ended {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::Cancelled => {
                if outcome.points.iter().all(|point| point.runs.is_empty()) {
                    return Err(error);
                }
                outcome.end = End::Interrupted;
                break;
            }
            Err(error) => return Err(error),
        }
    }
    outcome.elapsed_s = started.elapsed().as_secs_f64();
    scratch.remove()?;
    Ok(outcome)
}

/// All runs at one size of the hot set. What was measured is in the outcome, however it ends.
fn point(
    options: &InterferenceOptions,
    hot_set_bytes: u64,
    table: &mut Table,
    directory: &Path,
    outcome: &mut Outcome,
    schedule: &mut Schedule,
    watcher: &dyn Watcher,
) -> Result<()> {
    let hot = Arc::new(choose_hot_set(table, hot_set_bytes, options.seed, watcher)?);
    table.record.partitions = hot.partitions;
    let cgroup = match options.memory_limit_bytes {
        Some(limit) if outcome.environment.memory_cgroup.starts_with('v') => {
            Some(MemoryCgroup::enter(limit).map_err(compactor::Error::invalid)?)
        }
        _ => None,
    };
    let limit = options.memory_limit_bytes.filter(|_| cgroup.is_some());
    let hot_bytes = hot.page_count() * outcome.environment.page_bytes;
    let room = limit.or_else(memory_bytes).unwrap_or(u64::MAX);
    let pressure = hot_bytes as f64 / room as f64;
    watcher.event(&Event::HotSet {
        rows: hot.rows.len(),
        bytes: hot_bytes,
        pressure,
    });
    let found = warnings::of_point(
        &table.record,
        hot_bytes,
        hot_set_bytes,
        pressure,
        limit,
        memory_bytes(),
    );
    for warning in &found {
        watcher.event(&Event::Warning(warning));
    }
    let device = outcome.environment.device.as_ref();
    let device = device.map(|device| device.name.clone());
    outcome.points.push(SweepPoint {
        hot_set_bytes,
        data: table.record.clone(),
        memory_limit_bytes: limit,
        cache_room_bytes: None,
        pressure,
        runs: Vec::new(),
        warnings: found,
    });
    let Some(point) = outcome.points.last_mut() else {
        return Ok(());
    };
    let mut random = Random::new(options.seed, STREAM ^ hot_set_bytes);
    let mut arms = options.arms.clone();
    let planned = planned(options, table);
    // Idle lasts as long as compactions do, which is known after one.
    let idle_last = |arms: &mut [Arm]| arms.sort_by_key(|arm| *arm == Arm::Idle);
    let one = |arm: Arm, turn: Turn| {
        let plan = turn.plan(Subject::Arm(arm));
        watcher.event(&Event::RunStarted(plan));
        let bench = Bench {
            options,
            table,
            hot: &hot,
            directory,
            cgroup: cgroup.as_ref(),
            device: device.as_deref(),
            pressure,
            idle: idle(options, table, &point.runs),
        };
        let run = bench.run(arm, plan, watcher)?;
        watcher.event(&Event::RunEnded {
            order: plan.order,
            arm,
            invalid: &run.attempt.invalid,
            p99_ns: run.during.p99_ns,
            run: &run,
        });
        if point.cache_room_bytes.is_none() {
            point.cache_room_bytes = cache_room(limit, &run);
        }
        point.runs.push(run);
        Ok(())
    };
    schedule.run(&mut arms, &mut random, |_| planned, idle_last, one)
}

/// Opens a table and draws its hot rows.
///
/// # Errors
/// Damage, a failed read, or cancellation.
pub(crate) fn choose_hot_set(
    table: &Table,
    bytes: u64,
    seed: u64,
    watcher: &dyn Watcher,
) -> Result<HotSet> {
    let io = Io::new(IoOptions::default())?;
    let readers: Vec<PointReader> = table
        .data_paths
        .iter()
        .map(|path| PointReader::open(&io, path))
        .collect::<Result<_>>()?;
    let page_bytes = rustix::param::page_size() as u64;
    let go_on = || match watcher.is_cancelled() {
        true => Err(Error::Cancelled),
        false => Ok(()),
    };
    HotSet::choose(&readers, bytes, page_bytes, seed, &go_on)
}

/// Average duration of the compactions before, or expected duration.
fn idle(options: &InterferenceOptions, table: &Table, runs: &[Run]) -> Duration {
    let times: Vec<f64> = runs
        .iter()
        .filter_map(|run| Some(run.compaction.as_ref()?.elapsed_s))
        .collect();
    if !times.is_empty() {
        return Duration::from_secs_f64(times.iter().sum::<f64>() / times.len() as f64);
    }
    match options.throughput_bytes_per_s {
        Some(rate) => Duration::from_secs_f64(table.data_file_bytes() as f64 / rate.get() as f64),
        None => IDLE,
    }
}

/// Duration of a run by the options, without warming up and cleaning.
fn planned(options: &InterferenceOptions, table: &Table) -> Duration {
    let once = options.throughput_bytes_per_s.map_or(0.0, |rate| {
        table.data_file_bytes() as f64 / rate.get() as f64
    });
    let least = options.least_compaction.as_secs_f64();
    let times = match once > 0.0 {
        true => (least / once).ceil().max(1.0),
        false => 0.0,
    };
    let compaction = Duration::from_secs_f64((once * times).max(least));
    options.before + compaction + options.after
}

/// Bytes that the limit left to the page cache when the hot set had been warmed.
fn cache_room(limit: Option<u64>, run: &Run) -> Option<u64> {
    let first = run.samples.iter().find(|s| s.phase == Phase::Before)?;
    let found = first.cgroup?;
    let other = found.usage_bytes?.saturating_sub(found.file_bytes?);
    Some(limit?.saturating_sub(other))
}

/// Observer of the generation of a table.
pub(crate) fn generating(watcher: &dyn Watcher, total_bytes: u64) -> impl Observer + '_ {
    watched(watcher, move |done_bytes| Event::Generating {
        done_bytes,
        total_bytes,
    })
}
