//! Shares of the ring that SSTables cover, and the shards that it is divided into. A node owns the whole ring, of
//! Murmur3Partitioner, and its shards are not those of several data directories.
//!
//! Source: `ShardManager`, `ShardManagerNoDisks`, `Murmur3Partitioner`, `Token.size`.

use std::ops::Range;
use std::sync::Arc;

use crate::sstable::{Sstable, total_bytes};
use crate::token::Token;

/// Smallest coverage of the ring by which a length is divided, 2^-48. An SSTable below it has a single
/// partition (`ShardManager.MINIMUM_TOKEN_COVERAGE`).
const MINIMUM_COVERAGE: f64 = 1.0 / (1u64 << 48) as f64;

const MIN_TOKEN: i128 = i64::MIN as i128;
const MAX_TOKEN: i128 = i64::MAX as i128;

/// Length of an SSTable by its share of the ring. It grows with every kind of compaction, whether
/// outputs become longer or cover less.
pub(crate) fn density(sstable: &Sstable) -> f64 {
    sstable.data_bytes as f64 / coverage(sstable)
}

/// Density of the output of these SSTables (`calculateCombinedDensity`).
pub(crate) fn combined_density(sstables: &[Arc<Sstable>]) -> f64 {
    let tokens = tokens(sstables);
    total_bytes(sstables) as f64 / at_least_minimum(share(tokens.start, tokens.end))
}

/// Tokens of these SSTables from the first up to, and without, the last: a shard that ends at another one has all of
/// them, or none.
pub(crate) fn tokens(sstables: &[Arc<Sstable>]) -> Range<Token> {
    let first = sstables.iter().map(|sstable| sstable.first.token).min();
    let last = sstables.iter().map(|sstable| sstable.last.token).max();
    first.unwrap_or_default()..last.unwrap_or_default()
}

/// Last tokens of the shards that end within these tokens, of `shards` equal parts of the ring, except for the last part
/// (`BoundaryTracker`).
pub(crate) fn boundaries(shards: usize, within: Range<Token>) -> impl Iterator<Item = Token> {
    let count = shards as f64;
    let end_of = move |shard: usize| token_at(1.0 / count * shard as f64);
    // An estimate that is off by less than one. If partitions are a few tokens apart, there are billions before it.
    let start = (within.start.0 - MIN_TOKEN) as f64 / 2f64.powi(64) * count;
    let ends = ((start as usize).saturating_sub(1).max(1)..shards).map(end_of);
    ends.skip_while(move |end| *end < within.start)
        .take_while(move |end| *end < within.end)
}

/// Share of the ring that an SSTable covers (`rangeSpanned`).
fn coverage(sstable: &Sstable) -> f64 {
    let reported = sstable
        .token_space_coverage
        .filter(|coverage| *coverage > 0.0);
    at_least_minimum(reported.unwrap_or_else(|| share(sstable.first.token, sstable.last.token)))
}

/// The whole ring for less than the minimum.
fn at_least_minimum(coverage: f64) -> f64 {
    if coverage >= MINIMUM_COVERAGE {
        coverage
    } else {
        1.0
    }
}

/// Share of the ring from a token to another, both included (`Token.size`).
fn share(first: Token, last: Token) -> f64 {
    // The difference of tokens that are more than half a ring apart is negative.
    let size = (last.0 + 1 - first.0) as i64 as f64 / 2f64.powi(64);
    if size > 0.0 { size } else { size + 1.0 }
}

/// Token at a share of the ring, rounded towards zero, with the decimal digits of the share that Java prints
/// (`IPartitioner.split`, `BigDecimal.valueOf`).
fn token_at(share: f64) -> Token {
    let text = format!("{share:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let fraction = digits
        .split_once('.')
        .map_or(0, |(_, fraction)| fraction.len() as i32);
    let mantissa: i128 = digits.replace('.', "").parse().unwrap_or(0);
    let scale = fraction - exponent.parse::<i32>().unwrap_or(0);
    let product = (MAX_TOKEN - MIN_TOKEN) * mantissa;
    let power = 10i128.checked_pow(scale.unsigned_abs());
    let power = power.unwrap_or(i128::MAX);
    let floor = MIN_TOKEN + product / power;
    Token(floor + i128::from(floor < 0 && product % power != 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sstable::SstableId;

    /// Token at a percentage of the ring, as in `ShardManagerTest`.
    fn at(percent: f64) -> Token {
        token_at(percent / 100.0)
    }

    fn between(first: f64, last: f64) -> Sstable {
        Sstable::new(SstableId(1), 100, at(first), at(last))
    }

    fn assert_near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
    }

    #[test]
    fn sizes_are_shares_of_the_ring() {
        let (min, max) = (Token(MIN_TOKEN), Token(MAX_TOKEN));
        assert_eq!(share(min, max), 1.0);
        assert_eq!(share(min, Token(-1)), 0.5);
        assert_eq!(share(Token(0), max), 0.5);
        assert_eq!(share(Token(1), Token(1 << 62)), 0.25);
        assert_eq!(share(Token(1 - (1 << 62)), Token(1 << 62)), 0.5);
        assert_eq!(share(max, max), 1.0 / 2f64.powi(64));
    }

    #[test]
    fn tokens_are_rounded_towards_zero() {
        let found = [0.25, 0.5, 0.75].map(|share| token_at(share).0);
        assert_eq!(found, [-1 << 62, 0, (1 << 62) - 1]);
        assert_eq!(token_at(1e-30).0, MIN_TOKEN + 1);
    }

    /// `ShardManagerTest.testRangeSpannedFullOwnership`.
    #[test]
    fn coverage_of_the_whole_ring() {
        assert_near(coverage(&between(20.0, 70.0)), 0.5);
        assert_near(coverage(&between(30.0, 30.0)), 1.0);
        let reported = |coverage| Sstable {
            token_space_coverage: Some(coverage),
            ..between(20.0, 70.0)
        };
        assert_near(coverage(&reported(0.1)), 0.1);
        assert_near(coverage(&reported(0.0)), 0.5);
        assert_near(coverage(&reported(-1.0)), 0.5);
        assert_near(coverage(&reported(f64::NAN)), 0.5);
        assert_near(coverage(&reported(1e-50)), 1.0);
        assert_near(density(&between(20.0, 70.0)), 200.0);
    }

    #[test]
    fn boundaries_are_those_within_the_tokens() {
        let ring = Token(MIN_TOKEN)..Token(MAX_TOKEN);
        for shards in [1, 2, 3, 7, 64, 1000, 4096] {
            let all: Vec<Token> = boundaries(shards, ring.clone()).collect();
            assert_eq!(all.len(), shards - 1);
            let some = [shards / 3, shards / 2].map(|place| all.get(place).copied());
            let [first, last] = some.map(Option::unwrap_or_default);
            for (before, after) in [(-1, -1), (0, 0), (1, 1), (0, 1), (1, 0)] {
                let within = Token(first.0 + before)..Token(last.0 + after);
                let expected = all.iter().copied().filter(|end| within.contains(end));
                assert!(
                    boundaries(shards, within.clone()).eq(expected),
                    "{shards}, {within:?}"
                );
            }
        }
    }

    /// Partitions that are a few tokens apart have so great a density that all boundaries would take terabytes.
    #[test]
    fn boundaries_of_few_tokens_are_found_without_the_others() {
        let shards = 1 << 40;
        for share in [1e-9, 0.3, 0.5, 0.999_999] {
            let start = token_at(share).0;
            let within = Token(start)..Token(start + (10 << 24));
            let found: Vec<Token> = boundaries(shards, within.clone()).collect();
            assert!((9..=11).contains(&found.len()), "{found:?}");
            assert!(found.iter().all(|end| within.contains(end)), "{found:?}");
            assert!(found.is_sorted(), "{found:?}");
        }
    }
}
