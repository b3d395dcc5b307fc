//! Measures what a compaction does to concurrent reads, buffered and direct, on the disk of a directory.
//!
//! `cargo run --release -p compactor-examples --example interference [-- DIRECTORY]`
//!
//! It takes about a minute. `compactor lab interference` does the same with more arms and options.

use std::error::Error;
use std::num::NonZeroU64;
use std::path::PathBuf;

use compactor::Version;
use compactor::generate::Shape;
use compactor_examples::directory_on_disk;
use compactor_lab::interference;
use compactor_lab::options::{Data, InterferenceOptions};
use compactor_lab::outcome::Outcome;
use compactor_lab::watcher::{Event, Watcher};

/// Prints each run, and never stops.
struct Lines;

impl Watcher for Lines {
    fn is_cancelled(&self) -> bool {
        false
    }

    fn event(&self, event: &Event<'_>) {
        match event {
            Event::RunStarted(plan) => {
                println!("run {} of {}: {}", plan.order + 1, plan.runs, plan.arm);
            }
            Event::Warning(warning) => println!("warning: {}", warning.text),
            _ => {}
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    // Removed when it is dropped, at the end.
    let scratch = directory_on_disk()?;
    let directory = std::env::args_os().nth(1).map(PathBuf::from);
    let mut options = InterferenceOptions::quick(directory.as_deref().unwrap_or(scratch.path()));
    options.arms = vec!["buffered/buffered".parse()?, "direct/direct".parse()?];
    options.setup.data = Data::Generated {
        shape: Shape::KeyValue,
        version: Version::Oa,
        uncompressed_bytes: Some(128 << 20),
        sstables: 2,
    };
    options.hot_sets_bytes = vec![24 << 20];
    options.setup.memory_limit_bytes = Some(192 << 20);
    options.setup.throughput_bytes_per_s = NonZeroU64::new(16 << 20);
    options.setup.repeats = 2;

    let outcome = interference(&options, &Lines)?;
    for point in &outcome.points {
        for &arm in &options.arms {
            for run in Outcome::counted(point, arm) {
                println!(
                    "{arm}: p99 {:.3} ms before, {:.3} ms during the compaction, {} hot pages evicted",
                    run.before.p99_ns as f64 / 1e6,
                    run.during.p99_ns as f64 / 1e6,
                    run.hot_set.evicted.unwrap_or(0),
                );
            }
            for run in point.runs.iter().filter(|run| run.arm == arm) {
                for reason in &run.attempt.invalid {
                    println!(
                        "{arm}: repeat {} does not count: {}",
                        run.attempt.repeat, reason.text
                    );
                }
            }
        }
    }
    Ok(())
}
