//! Runs every harness over all seeds, their prefixes, and simple mutants of them: the first inputs of a
//! fuzzer, on a stable toolchain and in seconds.

use std::path::Path;
use std::time::{Duration, Instant};

use compactor_sstable_fuzz::data::count_partitions;
use compactor_sstable_fuzz::seeds::{Seeds, add_directory, add_handmade};
use compactor_sstable_fuzz::{HARNESSES, run};
use compactor_testkit::Random;

/// Number of mutants of each seed.
const MUTANTS: u64 = 400;
/// Maximum duration of a parser for an input of at most 48 KiB.
const SLOW: Duration = Duration::from_secs(60);

/// A single test, since the memory limit applies to the process.
#[test]
fn seeds_and_mutants() {
    let mut seeds = Seeds::new();
    add_handmade(&mut seeds);
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata");
    add_directory(&mut seeds, &testdata).unwrap();
    for (harness, _) in HARNESSES {
        let of_it: Vec<&Vec<u8>> = seeds
            .iter()
            .filter(|(name, _)| *name == harness)
            .map(|(_, bytes)| bytes)
            .collect();
        assert!(!of_it.is_empty(), "no seeds for {harness}");
        if harness == "data" {
            // Seeds that are truncated in their first partition have none.
            let whole = of_it.iter().filter(|seed| count_partitions(seed) > 0);
            assert!(2 * whole.count() > of_it.len());
        }
        let started = Instant::now();
        for (number, seed) in (0u64..).zip(&of_it) {
            timed(harness, seed);
            for mutant in 0..MUTANTS {
                timed(harness, &mutate(seed, number * MUTANTS + mutant, &of_it));
            }
        }
        println!("{harness}: {} seeds, {:?}", of_it.len(), started.elapsed());
    }
}

fn timed(harness: &str, bytes: &[u8]) {
    let started = Instant::now();
    let outcome = std::panic::catch_unwind(|| run(harness, bytes));
    if outcome.is_err() || started.elapsed() > SLOW {
        let path = std::env::temp_dir().join(format!("compactor-fuzz-{harness}"));
        std::fs::write(&path, bytes).unwrap();
        panic!("{harness} on {}, {:?}", path.display(), started.elapsed());
    }
}

/// Returns a mutant of `seed`, the same every time.
fn mutate(seed: &[u8], number: u64, others: &[&Vec<u8>]) -> Vec<u8> {
    let mut random = Random::new(number);
    let mut random = |end: usize| random.index(end.max(1));
    let mut bytes = seed.to_vec();
    for _ in 0..=random(3) {
        let at = random(bytes.len());
        match random(7) {
            0 => bytes.truncate(at),
            1 => bytes
                .iter_mut()
                .skip(at)
                .take(1)
                .for_each(|byte| *byte ^= 1 << random(8)),
            2 => bytes
                .iter_mut()
                .skip(at)
                .take(1 + random(8))
                .for_each(|byte| *byte = 0xff),
            3 => bytes
                .iter_mut()
                .skip(at)
                .take(1 + random(8))
                .for_each(|byte| *byte = 0),
            4 => {
                let len = random(bytes.len() - at);
                bytes.drain(at..at + len);
            }
            5 => {
                let copied = bytes[at..at + random(64).min(bytes.len() - at)].to_vec();
                bytes.splice(at..at, copied);
            }
            _ => {
                let other = others[random(others.len())];
                bytes.truncate(at);
                bytes.extend_from_slice(&other[at.min(other.len())..]);
            }
        }
    }
    bytes
}
