//! How long random and differential tests run: `COMPACTOR_CAMPAIGN` and `COMPACTOR_TEST_SEED`.
//!
//! `COMPACTOR_CAMPAIGN` is `short` (default: minutes; some tests are skipped), `full`, or a factor by which the cases
//! of `full` are multiplied (`.ci/run` sets 0.125).

use std::env;

use crate::skip;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Campaign {
    Short,
    /// Factor of the cases of `full`.
    Full(f64),
}

/// Returns the number of cases to run, where a full campaign has `full`, and a short one a sixteenth of them.
///
/// # Panics
/// If `COMPACTOR_CAMPAIGN` has no meaning.
pub fn cases(full: usize) -> usize {
    match current() {
        Campaign::Short => full.div_ceil(16),
        Campaign::Full(factor) => ((full as f64 * factor) as usize).max(1),
    }
}

/// Returns by how many to step through exhaustive cases: 1, or 8 in a short campaign.
///
/// # Panics
/// If `COMPACTOR_CAMPAIGN` has no meaning.
pub fn stride() -> usize {
    match current() {
        Campaign::Short => 8,
        Campaign::Full(_) => 1,
    }
}

/// Returns all of them, or every fourth in a short campaign, in which the test is reported as skipped in part.
///
/// # Panics
/// If `COMPACTOR_CAMPAIGN` has no meaning.
#[track_caller]
pub fn some_of<T>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let step = if is_full_or_in_part() { 1 } else { 4 };
    all.into_iter().step_by(step).collect()
}

/// Whether the campaign is not a short one. If it is, the test is reported as skipped.
///
/// # Panics
/// If `COMPACTOR_CAMPAIGN` has no meaning.
#[track_caller]
pub fn is_full() -> bool {
    let is_full = current() != Campaign::Short;
    if !is_full {
        skip::note(NOT_IN_SHORT);
    }
    is_full
}

/// As [`is_full`], but the test is reported as skipped in part.
///
/// # Panics
/// If `COMPACTOR_CAMPAIGN` has no meaning.
#[track_caller]
pub fn is_full_or_in_part() -> bool {
    let is_full = current() != Campaign::Short;
    if !is_full {
        skip::note_part(NOT_IN_SHORT);
    }
    is_full
}

const NOT_IN_SHORT: &str = "not in a short COMPACTOR_CAMPAIGN";

/// Returns the seed of the first random case: `COMPACTOR_TEST_SEED`, by default 1.
///
/// # Panics
/// If the seed is not a number.
pub fn first_seed() -> u64 {
    match env::var("COMPACTOR_TEST_SEED") {
        Ok(text) => text.parse().expect("COMPACTOR_TEST_SEED is a number"),
        Err(_) => 1,
    }
}

fn current() -> Campaign {
    let text = env::var("COMPACTOR_CAMPAIGN").unwrap_or_default();
    parse(&text).unwrap_or_else(|| {
        panic!("COMPACTOR_CAMPAIGN is short, full or a number above 0, not {text:?}")
    })
}

fn parse(text: &str) -> Option<Campaign> {
    match text {
        "" | "short" => Some(Campaign::Short),
        "full" => Some(Campaign::Full(1.0)),
        number => {
            let factor = number.parse().ok().filter(|factor| *factor > 0.0)?;
            Some(Campaign::Full(factor))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn campaigns_are_named_or_counted() {
        assert_eq!(parse(""), Some(Campaign::Short));
        assert_eq!(parse("short"), Some(Campaign::Short));
        assert_eq!(parse("full"), Some(Campaign::Full(1.0)));
        assert_eq!(parse("2.5"), Some(Campaign::Full(2.5)));
        for nonsense in ["long", "0", "-1", "NaN", "Full"] {
            assert_eq!(parse(nonsense), None, "{nonsense}");
        }
    }
}
