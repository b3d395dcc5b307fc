//! Fault injection: every kind of system call failing at any point, on both backends, in every command;
//! and limits of threads, descriptors and memory.
//!
//! A run may fail, with a message and its own exit code. It must end, must not panic, must not report
//! its inputs as damaged, must not change them, and must not leave unwanted SSTables or files that the
//! next run does not remove. If it reports success, its output is byte for byte that of a run without
//! faults.
//!
//! `cargo test -p compactor-cli --test it faults` runs a fixed part. More, at random points:
//!
//! ```sh
//! COMPACTOR_CAMPAIGN=50 cargo test -p compactor-cli --test it faults::random -- --nocapture
//! ```
//!
//! `COMPACTOR_TEST_SEED` selects other faults. A failure is printed as a command that reproduces it.

mod cases;
mod hangs;
mod inject;
mod limits;
mod outcome;
mod setting;

use std::os::unix::process::ExitStatusExt as _;
use std::sync::atomic::{AtomicU64, Ordering};

use compactor_testkit::machine::{disk_directory, has_strace};
use compactor_testkit::{Random, campaign};
use inject::Injection;
use outcome::Outcome;
use setting::Setting;

/// Random faults of a full campaign.
const RUNS: usize = 64;
/// Runs at a time.
const AT_ONCE: usize = 2;

/// Calls `run` with each number, some concurrently, and panics with all failures.
fn each(runs: u64, run: impl Fn(u64) -> Result<(), String> + Sync) {
    let next = AtomicU64::new(0);
    let failures: Vec<String> = std::thread::scope(|scope| {
        let work = || {
            let mut failures = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= runs {
                    return failures;
                }
                if let Err(failure) = run(number) {
                    eprintln!("run {number}: {failure}");
                    failures.push(failure);
                }
                if number % 100 == 99 {
                    eprintln!("{} runs", number + 1);
                }
            }
        };
        let threads: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        let all = threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap());
        all.collect()
    });
    let count = failures.len();
    assert!(
        failures.is_empty(),
        "{count} of {runs} runs:\n{}",
        failures.join("\n\n")
    );
}

/// Regression tests: faults after which a command hung, panicked or was misreported.
#[test]
fn known() {
    if !has_strace() {
        return;
    }
    let setting = Setting::shared();
    let known = campaign::some_of(cases::known(&setting));
    each(known.len() as u64, |number| {
        let (command, injection) = &known[number as usize];
        setting.try_fault(command, injection)
    });
}

/// A signal that is not sent would let every case of a killed run pass.
#[test]
fn an_injected_signal_kills() {
    if !has_strace() {
        return;
    }
    let injection = Injection::new("fsync", "EIO", "1000").with("fsync", "signal=KILL", "1".into());
    let directory = disk_directory();
    let out = directory.path().join("out").display().to_string();
    let line = ["generate", "--rows", "10", "--output", &out].map(str::to_owned);
    let line = [&[setting::compactor()][..], &line[..]].concat();
    let killed = Outcome::of(&injection.tracer(&line)).status.unwrap();
    assert_eq!(killed.signal(), Some(9), "{killed:?}");
}

#[test]
fn random() {
    if !has_strace() {
        return;
    }
    let setting = Setting::shared();
    let seed = campaign::first_seed();
    let runs = campaign::cases(RUNS) as u64;
    let commands = setting.commands.iter();
    let commands: Vec<_> = commands.filter(|command| command.ends_soon()).collect();
    each(runs, |number| {
        let mut random = Random::new(seed.wrapping_mul(1 << 32).wrapping_add(number));
        let command = *random.pick(&commands);
        let injection = Injection::random(&mut random, setting.calls(command));
        setting.try_fault(command, &injection)
    });
}
