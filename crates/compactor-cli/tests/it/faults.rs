//! Answers of the kernel that nobody expects: every kind of system call failing at any place, on both
//! backends, in every command; and limits of threads, descriptors and memory.
//!
//! A run may fail, with a message and an exit code of its own. It must end, must not panic, must not take
//! its inputs for damaged, must leave them as they were, and must leave nothing that is an SSTable
//! and not one that was wanted, or that the next run does not remove. If it reports success its
//! output is that of a run without faults, to the byte.
//!
//! `cargo test -p compactor-cli --test it faults` does a fixed part. More, at random places:
//!
//! ```sh
//! COMPACTOR_FAULT_RUNS=5000 cargo test -p compactor-cli --test it faults::random -- --nocapture
//! ```
//!
//! `COMPACTOR_FAULT_SEED` chooses others. What fails is printed as a command that does it again.

mod cases;
mod hangs;
mod inject;
mod limits;
mod outcome;
mod setting;

use std::env;
use std::sync::atomic::{AtomicU64, Ordering};

use inject::Injection;
use setting::Setting;

/// Runs of the random test, unless the environment says how many.
const RUNS: u64 = 24;
/// Runs at a time.
const AT_ONCE: usize = 2;

/// Random numbers, the same for the same seed (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % end.max(1) as u64) as usize
    }

    fn of<'a, T>(&mut self, things: &'a [T]) -> &'a T {
        &things[self.below(things.len())]
    }
}

fn number(name: &str, default: u64) -> u64 {
    env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// Does what `run` does for each number, some at a time, and fails with all that failed.
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

/// Faults that once did harm: each hung, panicked, or was taken for something else.
#[test]
fn known() {
    if !inject::works() {
        return;
    }
    let setting = Setting::new();
    let known = cases::known(&setting);
    each(known.len() as u64, |number| {
        let (command, injection) = &known[number as usize];
        setting.try_fault(command, injection)
    });
}

#[test]
fn random() {
    if !inject::works() {
        return;
    }
    let setting = Setting::new();
    let seed = number("COMPACTOR_FAULT_SEED", 1);
    let runs = number("COMPACTOR_FAULT_RUNS", RUNS);
    let commands = setting.commands.iter();
    let commands: Vec<_> = commands.filter(|command| command.ends_soon()).collect();
    each(runs, |number| {
        let mut random = Random(seed.wrapping_mul(1 << 32).wrapping_add(number));
        let command = *random.of(&commands);
        let injection = Injection::random(&mut random, setting.known(command));
        setting.try_fault(command, &injection)
    });
}
