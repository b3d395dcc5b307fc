//! Numeric option values: accepted ranges and error texts.
//!
//! Options of numbers and sizes also take values with a minus sign (`with_minus`), so that `-1` is refused as a value and
//! not as an unknown option.

use std::any::{Any, TypeId};
use std::fmt::Display;
use std::num::{NonZeroU64, ParseFloatError, ParseIntError};
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Command;
use compactor::RateLimiter;
use compactor::table::MAX_THREADS;
use compactor_sstable::data::deletion_time::MAX_DELETION_TIME;

use crate::duration::Seconds;
use crate::flags::{ByteRate, ByteSize};

/// Range of `--threads`.
pub const THREADS: RangeInclusive<usize> = 1..=MAX_THREADS;

/// Range of `--outputs`.
pub const OUTPUTS: RangeInclusive<usize> = 1..=256;

/// SSTables that may be rewritten at a time.
pub const CONCURRENT: RangeInclusive<usize> = 1..=256;

/// Compactions after which `compact` may stop.
pub const MAX_COMPACTIONS: RangeInclusive<usize> = 1..=1_000_000;

/// Range of `--memory`: with less, an input has no room for a block.
pub const MEMORY: RangeInclusive<ByteSize> = ByteSize(1 << 20)..=ByteSize(1 << 40);

/// Default of `--memory`.
pub const DEFAULT_MEMORY: &str = "80MiB";

/// Memory of the program without buffers: 10 MiB for a minimal merge, and more for
/// stacks of threads and memory that the allocator cannot return.
const PROGRAM_BYTES: usize = 16 << 20;

/// Returns the bytes of `--memory` that remain after the program itself, at least half of them.
pub fn besides_program(memory: ByteSize) -> usize {
    let memory = usize::try_from(memory.0).unwrap_or(usize::MAX);
    memory - PROGRAM_BYTES.min(memory / 2)
}

/// Range of `--readahead`.
pub const READAHEAD: RangeInclusive<ByteSize> = ByteSize(4 << 10)..=ByteSize(1 << 30);

/// Range of `--throughput` in bytes per second. Below it, less than a block would be processed per second.
const THROUGHPUT: RangeInclusive<ByteRate> = ByteRate(1 << 20)..=ByteRate(1 << 40);

/// Sizes after which another output begins.
pub const SSTABLE_SIZE: RangeInclusive<ByteSize> = ByteSize(1 << 10)..=ByteSize(1 << 50);

/// Values of `gc_grace_seconds`, an `int` in Cassandra.
pub const GC_GRACE_SECONDS: RangeInclusive<u32> = 0..=i32::MAX as u32;

/// The command, all of whose options of numbers and sizes take values with a minus sign.
pub fn with_minus(command: Command) -> Command {
    let sizes = [
        TypeId::of::<ByteSize>(),
        TypeId::of::<ByteRate>(),
        TypeId::of::<Seconds>(),
        TypeId::of::<OrNone<ByteSize>>(),
        TypeId::of::<OrNone<ByteRate>>(),
    ];
    let numbers = [
        TypeId::of::<u32>(),
        TypeId::of::<u64>(),
        TypeId::of::<usize>(),
        TypeId::of::<i32>(),
        TypeId::of::<i64>(),
        TypeId::of::<f64>(),
    ];
    let options = command.mut_args(|option| {
        let of = option.get_value_parser().type_id();
        if sizes.iter().any(|size| of == *size) {
            option.allow_hyphen_values(true)
        } else if numbers.iter().any(|number| of == *number) {
            option.allow_negative_numbers(true)
        } else {
            option
        }
    });
    options.mut_subcommands(with_minus)
}

/// The limit of `--throughput`. Its waits end once `interrupted` is set.
pub fn rate_limiter(
    bytes_per_s: ByteRate,
    interrupted: &Arc<AtomicBool>,
) -> Option<Arc<RateLimiter>> {
    let rate = NonZeroU64::new(bytes_per_s.0)?;
    let limiter = RateLimiter::new(rate).stopped_by(Arc::clone(interrupted));
    Some(Arc::new(limiter))
}

/// Parses a value of `--throughput`. A bare number is bytes per second, and mostly meant to be megabytes, as
/// in `cassandra.yaml`.
pub fn throughput(text: &str) -> Result<ByteRate, String> {
    let is_bare = text != "0" && !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match text.parse::<ByteRate>() {
        Ok(rate) if is_bare && rate < *THROUGHPUT.start() => Err(format!(
            "{text} is {text} bytes/s; give a unit, e.g. {text}MB/s"
        )),
        _ => within(THROUGHPUT)(text),
    }
}

/// Parses a value and checks that it is in a range.
pub fn within<T>(
    range: RangeInclusive<T>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: FromStr<Err: Display + 'static> + PartialOrd + Display + Clone + Send + Sync + 'static,
{
    move |text| {
        let expected = format!("expected {} to {}", range.start(), range.end());
        match text.parse() {
            Ok(value) if range.contains(&value) => Ok(value),
            Ok(_) => Err(expected),
            // Rust's words for "not a number" explain nothing more.
            Err(other) if is_of_number(&other) => Err(expected),
            Err(other) => Err(format!("{expected}: {other}")),
        }
    }
}

/// A value, or `none`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrNone<T>(pub Option<T>);

/// Parses a value, or `none`.
pub fn or_none<T>(
    parse: impl Fn(&str) -> Result<T, String> + Clone,
) -> impl Fn(&str) -> Result<OrNone<T>, String> + Clone {
    move |text| match text {
        "none" => Ok(OrNone(None)),
        _ => match parse(text) {
            Ok(value) => Ok(OrNone(Some(value))),
            Err(reason) => Err(format!("{reason}, or none")),
        },
    }
}

fn is_of_number(error: &dyn Any) -> bool {
    error.is::<ParseIntError>() || error.is::<ParseFloatError>()
}

/// Parses a moment that something is judged at: seconds since 1970.
pub fn moment(text: &str) -> Result<i64, String> {
    match text.parse() {
        Ok(seconds) if (0..=MAX_DELETION_TIME).contains(&seconds) => Ok(seconds),
        Ok(seconds) if seconds > MAX_DELETION_TIME => Err(too_late()),
        _ => Err(format!(
            "expected seconds since 1970, 0 to {MAX_DELETION_TIME}"
        )),
    }
}

/// Parses the time before which deletions may be purged. It is a time minus a grace period, so that it may be before
/// 1970: then nothing is purged.
pub fn moment_or_before_1970(text: &str) -> Result<i64, String> {
    match text.parse() {
        Ok(seconds) if seconds <= MAX_DELETION_TIME => Ok(seconds),
        Ok(_) => Err(too_late()),
        Err(_) => Err(format!(
            "expected seconds since 1970, at most {MAX_DELETION_TIME}"
        )),
    }
}

fn too_late() -> String {
    format!("expected seconds since 1970, at most {MAX_DELETION_TIME}; are these milliseconds?")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn a_range_is_kept_and_named() {
        let threads = within(THREADS);
        assert_eq!((threads("1"), threads("1024")), (Ok(1), Ok(1024)));
        for text in [
            "0",
            "1025",
            "20000",
            "-1",
            "99999999999999999999",
            "two",
            "",
        ] {
            let printed = threads(text).unwrap_err();
            assert!(
                printed.starts_with("expected 1 to 1024"),
                "{text}: {printed}"
            );
        }
        let memory = within(MEMORY);
        assert_eq!(memory("1MiB"), Ok(ByteSize(1 << 20)));
        for text in ["0", "1048575", "2TiB", "-1MiB", "99999999999GiB", "1MX"] {
            let printed = memory(text).unwrap_err();
            assert!(
                printed.starts_with("expected 1MiB to 1TiB"),
                "{text}: {printed}"
            );
        }
        // The error includes the parse error of the value.
        assert!(memory("1MX").unwrap_err().contains("512MiB"));
        assert_eq!(memory("64MB"), Ok(ByteSize(64_000_000)));
        assert!(memory("1MB").is_err(), "1,000,000 bytes are less than 1MiB");
    }

    /// Options of `command` and of its subcommands, each with the words before it.
    fn options(command: &Command, before: &[String], all: &mut Vec<Vec<String>>) {
        let mut words = before.to_vec();
        words.push(command.get_name().to_owned());
        for option in command.get_arguments().filter_map(clap::Arg::get_long) {
            let value = format!("--{option}=1x");
            all.push(words.iter().cloned().chain([value]).collect());
        }
        for subcommand in command.get_subcommands() {
            options(subcommand, &words, all);
        }
    }

    #[test]
    fn what_is_no_number_is_refused_without_words_of_the_parser() {
        let command = with_minus(crate::Cli::command());
        let mut all = Vec::new();
        options(&command, &[], &mut all);
        assert!(all.len() > 100, "{}", all.len());
        for words in all {
            if let Err(error) = command.clone().try_get_matches_from(&words) {
                let printed = error.to_string();
                let is_raw = printed.contains("invalid digit") || printed.contains("invalid float");
                assert!(!is_raw, "{words:?}: {printed}");
            }
        }
    }

    #[test]
    fn a_rate_without_a_unit_is_a_misunderstanding() {
        assert_eq!(throughput("1MiB/s"), Ok(ByteRate(1 << 20)));
        assert_eq!(throughput("64000000"), Ok(ByteRate(64_000_000)));
        let printed = throughput("50").unwrap_err();
        assert_eq!(printed, "50 is 50 bytes/s; give a unit, e.g. 50MB/s");
        for text in ["0", "0.5MiB/s", "2TiB/s", "-1", "", "fast"] {
            let printed = throughput(text).unwrap_err();
            assert!(
                printed.starts_with("expected 1MiB/s to"),
                "{text}: {printed}"
            );
        }
    }

    #[test]
    fn memory_is_for_the_program_too() {
        assert_eq!(besides_program(ByteSize(96 << 20)), 80 << 20);
        assert_eq!(besides_program(ByteSize(1 << 20)), 512 << 10);
        assert_eq!(DEFAULT_MEMORY.parse(), Ok(ByteSize(80 << 20)));
    }

    #[test]
    fn moments() {
        assert_eq!(moment("0"), Ok(0));
        assert_eq!(moment("4294967293"), Ok(MAX_DELETION_TIME));
        assert!(moment("-1").is_err());
        assert_eq!(moment_or_before_1970("-5"), Ok(-5));
        for parse in [moment, moment_or_before_1970] {
            assert!(parse("1735689600000").unwrap_err().contains("milliseconds"));
            assert!(parse("today").unwrap_err().starts_with("expected seconds"));
            assert!(parse("99999999999999999999").is_err());
        }
    }
}
