//! The simulation: events in the order of time.

use compactor_strategy::sstable::Sstable;
use compactor_strategy::task::{Task, TaskKind};

use crate::arrivals::{flushed, partitions};
use crate::cohort::{Buckets, US};
use crate::compactors::Compactors;
use crate::merge::Merge;
use crate::meter::Meter;
use crate::outcome::{End, Outcome, Sample};
use crate::popularity::Popularity;
use crate::random::Random;
use crate::selection::{Selection, SetupStrategy};
use crate::setup::Setup;
use crate::setup_error::SetupError;
use crate::stored::{RING, Range, Stored, bytes_of};
use crate::table::{Table, newest_s};

mod report;
mod sampling;

/// Start of a simulation without initial SSTables: 2024-01-01, seconds since 1970.
const START_S: i64 = 1_704_067_200;
/// Number of samples over the whole time.
const SAMPLES: f64 = 120.0;
/// Time between two looks at what has expired, seconds. Without expiry nothing changes between events.
const CHECK_S: f64 = 600.0;
/// Intervals of time in which rows are counted, until they expire or for the whole time.
const BUCKETS: f64 = 32.0;

/// Simulates a table.
///
/// # Errors
/// Numbers that are out of range, or contradict each other.
pub fn simulate(setup: &Setup) -> Result<Outcome, SetupError> {
    simulate_with(setup, &mut SetupStrategy)
}

/// Simulates a table of which `selection` selects the compactions.
///
/// # Errors
/// Numbers that are out of range, or contradict each other.
pub fn simulate_with(setup: &Setup, selection: &mut dyn Selection) -> Result<Outcome, SetupError> {
    setup.validate()?;
    let mut simulation = Simulation::new(setup, selection);
    simulation.run();
    Ok(simulation.outcome())
}

struct Simulation<'a> {
    setup: &'a Setup,
    selection: &'a mut dyn Selection,
    popularity: Popularity,
    buckets: Buckets,
    table: Table,
    compactors: Compactors,
    random: Random,
    meter: Meter,
    samples: Vec<Sample>,
    /// Time, bytes written and bytes read of the last sample.
    sampled: (f64, f64, f64),
    start_us: i64,
    /// Time since the start, seconds.
    now_s: f64,
    end: End,
}

/// The next event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Compacted,
    Flush,
    Check,
    Sample,
    End,
}

impl<'a> Simulation<'a> {
    fn new(setup: &'a Setup, selection: &'a mut dyn Selection) -> Simulation<'a> {
        let workload = &setup.workload;
        let duration_s = setup.duration_s as f64;
        let start_s = newest_s(&setup.initial).unwrap_or(START_S);
        let start_us = (start_s as f64 * US) as i64;
        let again = workload.updates + workload.deletes > 0.0;
        let horizon_s = match workload.ttl_s {
            Some(ttl) => (ttl as f64 + workload.gc_grace_s as f64).min(duration_s),
            None if again => duration_s,
            // The age of rows has no effect: one bucket is sufficient.
            None => duration_s * BUCKETS,
        };
        let buckets = Buckets::new(start_us, horizon_s / BUCKETS);
        Simulation {
            popularity: Popularity::new(workload.distribution, workload.existing_rows(duration_s)),
            buckets,
            table: Table::new(setup, buckets, start_us / 1000),
            compactors: Compactors::new(setup.concurrent_compactors, setup.throughput_bytes_per_s),
            random: Random::new(setup.seed),
            meter: Meter::default(),
            samples: Vec::new(),
            sampled: (0.0, 0.0, 0.0),
            start_us,
            now_s: 0.0,
            end: End::Complete,
            setup,
            selection,
        }
    }

    fn now_ms(&self) -> i64 {
        (self.start_us + (self.now_s * US) as i64) / 1000
    }

    fn run(&mut self) {
        let duration_s = self.setup.duration_s as f64;
        let flush_s = self.setup.workload.flush_interval_s();
        let sample_s = duration_s / SAMPLES;
        let expires = self.setup.workload.ttl_s.is_some() || self.setup.workload.deletes > 0.0;
        let (mut flushes, mut checks, mut samples) = (1.0, 1.0, 1.0);
        let live = self.table.manager.live().iter();
        let initial: Vec<Sstable> = live.map(|sstable| Sstable::clone(sstable)).collect();
        self.selection.start(&initial, self.now_ms());
        self.start_compactions();
        loop {
            let check_s = if expires {
                checks * CHECK_S
            } else {
                f64::INFINITY
            };
            let events = [
                (self.now_s + self.compactors.next_end_s(), Event::Compacted),
                (flushes * flush_s, Event::Flush),
                (check_s, Event::Check),
                (samples * sample_s, Event::Sample),
                (duration_s, Event::End),
            ];
            let first = events.into_iter().min_by(|a, b| a.0.total_cmp(&b.0));
            let Some((at, event)) = first else { return };
            self.compactors.advance(at - self.now_s);
            self.now_s = at;
            match event {
                Event::Compacted => self.end_compaction(),
                Event::Flush => {
                    flushes += 1.0;
                    self.flush(flush_s);
                    if self.is_overloaded() {
                        self.end = End::Overloaded;
                        self.sample();
                        return;
                    }
                }
                Event::Check => checks += 1.0,
                Event::Sample => {
                    samples += 1.0;
                    self.sample();
                    continue;
                }
                Event::End => {
                    self.sample();
                    return;
                }
            }
            self.start_compactions();
        }
    }

    fn flush(&mut self, interval_s: f64) {
        let workload = &self.setup.workload;
        let to_us = self.start_us + (self.now_s * US) as i64;
        let from_us = to_us - (interval_s * US) as i64;
        let times = (from_us, to_us);
        let cohorts = flushed(workload, &self.popularity, self.buckets, times, self.now_s);
        let rows = cohorts.iter().map(|cohort| cohort.rows).sum();
        let partitions = partitions(workload, rows, self.now_s);
        let (low, high) = self.random.extremes(partitions);
        let token = |share: f64| i128::from(i64::MIN) + 1 + (share * (RING - 3.0)) as i128;
        let range = Range {
            start: token(low),
            end: token(high) + 1,
        };
        let now_ms = self.now_ms();
        let stored = Stored::new(range, cohorts, 0);
        let sstable = self.table.flush(stored, now_ms, workload);
        self.selection.flushed(&sstable);
        let bytes = sstable.data_bytes;
        self.meter.flush(bytes);
        let node = self.table.manager.node_mut();
        node.memtable_min_timestamp = Some(to_us);
        node.flush_bytes = bytes as f64;
        self.note_room();
    }

    /// Starts compactions as long as there is one to start and room for it.
    fn start_compactions(&mut self) {
        while self.compactors.has_room() {
            let now_ms = self.now_ms();
            let manager = &mut self.table.manager;
            let Some(task) = self.selection.next_task(manager, now_ms) else {
                return;
            };
            self.table.manager.begin(&task);
            self.start(task, now_ms);
        }
    }

    fn start(&mut self, task: Task, now_ms: i64) {
        let workload = &self.setup.workload;
        let dropped = task.expired.len() as u64;
        self.meter.compactions.expired_sstables += dropped;
        match task.kind {
            TaskKind::LevelOnly => {
                self.meter.compactions.level_only += 1;
                let moved = self.table.move_to_level(&task);
                self.selection.completed(&task, &moved);
                return;
            }
            TaskKind::Expired => {
                let outputs = self.table.complete(&task, Vec::new(), now_ms, workload);
                self.selection.completed(&task, &outputs);
                return;
            }
            TaskKind::Tombstones => self.meter.compactions.tombstones += 1,
            TaskKind::Compact => self.meter.compactions.merges += 1,
        }
        let merge = Merge {
            workload,
            popularity: &self.popularity,
            start_us: self.start_us,
            elapsed_s: self.now_s,
        };
        let outputs = merge.outputs(&task, &self.table);
        let live = self.table.manager.live();
        let read = task.inputs.iter().filter(|id| !task.expired.contains(id));
        let read = read.filter_map(|&id| live.get(id)).map(|s| s.data_bytes);
        let read: u64 = read.sum();
        let written = outputs.iter().map(|o| bytes_of(&o.cohorts, workload)).sum();
        self.compactors.start(task, outputs, read as f64, written);
    }

    fn end_compaction(&mut self) {
        self.note_room();
        let Some(ended) = self.compactors.end_next() else {
            return;
        };
        let now_ms = self.now_ms();
        self.meter.read_bytes += ended.read_bytes;
        let workload = &self.setup.workload;
        let outputs = self
            .table
            .complete(&ended.task, ended.outputs, now_ms, workload);
        self.selection.completed(&ended.task, &outputs);
        for output in outputs {
            let level = self.table.level(output.id);
            self.meter.write(level, output.data_bytes);
        }
    }

    fn note_room(&mut self) {
        self.meter.room(
            self.table.bytes(),
            self.compactors.temporary_bytes(),
            self.table.len(),
        );
    }
}
