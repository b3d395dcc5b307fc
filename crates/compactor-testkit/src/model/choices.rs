//! Random cases from seeds, and simplification of a failing case before it is reported, with its seed.

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use crate::Random;
use crate::campaign;

/// Random choices; the first of several options is the simplest.
#[derive(Clone, Debug)]
pub struct Choices(Source);

#[derive(Clone, Debug)]
enum Source {
    Seed(Random),
    /// Remaining bytes, taken from the end. After the last one everything is zero, the simplest choice.
    Bytes(Vec<u8>),
}

impl Choices {
    pub fn from_seed(seed: u64) -> Choices {
        Choices(Source::Seed(Random::new(seed)))
    }

    /// Choices made by a fuzzer.
    pub fn from_bytes(bytes: &[u8]) -> Choices {
        Choices(Source::Bytes(bytes.iter().rev().copied().collect()))
    }

    /// Returns a number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        match &mut self.0 {
            // One byte per choice if that is sufficient, so that the effect of a byte stays local.
            Source::Bytes(bytes) if end <= 256 => {
                usize::from(bytes.pop().unwrap_or(0)) % end.max(1)
            }
            _ => (self.number() >> 33) as usize % end.max(1),
        }
    }

    /// Returns true with a probability of `percent`.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Returns one of the options.
    pub fn pick<T: Copy>(&mut self, options: &[T]) -> T {
        options[self.below(options.len())]
    }

    /// Returns any number.
    pub fn number(&mut self) -> u64 {
        match &mut self.0 {
            Source::Seed(random) => random.number(),
            Source::Bytes(bytes) => (0..8).fold(0, |number, _| {
                number << 8 | u64::from(bytes.pop().unwrap_or(0))
            }),
        }
    }
}

/// Checks random cases, `full` of them in a full campaign. `Err` or a panic is a failure; then `simpler` generates variants of the case to be
/// tried in its place, as long as one of them fails as well.
pub fn check<C: Debug>(
    name: &str,
    full: usize,
    generate: impl Fn(&mut Choices) -> C,
    verify: impl Fn(&C) -> Result<(), String>,
    simpler: impl Fn(&C, &mut dyn FnMut(C) -> bool) -> bool,
) {
    let (first, cases) = (campaign::first_seed(), campaign::cases(full));
    eprintln!("{name}: {cases} cases from seed {first}");
    for seed in (first..).take(cases) {
        let mut case = generate(&mut Choices::from_seed(seed));
        let Err(mut message) = run(&verify, &case) else {
            continue;
        };
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let mut found = None;
            // The callback returns true to stop at the first simpler case that fails.
            simpler(&case, &mut |candidate| {
                if Instant::now() > deadline {
                    return true;
                }
                match run(&verify, &candidate) {
                    Ok(()) => false,
                    Err(message) => {
                        found = Some((candidate, message));
                        true
                    }
                }
            });
            match found {
                Some(simplest) => (case, message) = simplest,
                None => break,
            }
        }
        panic!("{name}: seed {seed} fails. The simplest case found:\n{case:?}\n{message}");
    }
}

fn run<C>(verify: &impl Fn(&C) -> Result<(), String>, case: &C) -> Result<(), String> {
    match catch_unwind(AssertUnwindSafe(|| verify(case))) {
        Ok(result) => result,
        Err(payload) => {
            let text = payload.downcast_ref::<String>().map(String::as_str);
            let text = text.or(payload.downcast_ref::<&str>().copied());
            Err(format!("panic: {}", text.unwrap_or_default()))
        }
    }
}
