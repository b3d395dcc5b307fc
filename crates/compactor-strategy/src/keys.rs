//! Estimate of an SSTable's number of partitions in token ranges.
//!
//! Source: `BigTableReader.estimatedKeysForRanges`, `IndexSummary.getSampleIndexesForRanges`.

use crate::key_estimate::{KeyEstimate, KeySamples};
use crate::sstable::Sstable;
use crate::token::{Token, joined};

/// Entries from which Cassandra relies on the estimate (`isEstimationInformative`).
const INFORMATIVE_SAMPLES: usize = 3;

impl KeyEstimate {
    /// Fraction of the partitions outside of other SSTables' token ranges; `None` if the index is too short
    /// for an estimate (`worthDroppingTombstones`).
    pub(crate) fn remaining_ratio(&self, sstable: &Sstable, others: &[&Sstable]) -> Option<f64> {
        let ranges = normalized(others);
        let inside = match &self.samples {
            None => self.evenly_inside(sstable, &ranges),
            Some(samples) if samples.tokens.len() < INFORMATIVE_SAMPLES => return None,
            Some(samples) => samples.inside(&ranges),
        };
        let remaining = self.keys as f64 - inside as f64;
        Some(remaining / self.partitions as f64)
    }

    fn evenly_inside(&self, sstable: &Sstable, ranges: &[(Token, Token)]) -> u64 {
        let (first, last) = (sstable.first.token.0, sstable.last.token.0);
        let width = last.saturating_sub(first).saturating_add(1) as f64;
        let covered = ranges.iter().map(|(from, to)| {
            let overlap = to.0.min(last).saturating_sub(from.0.max(first));
            overlap.saturating_add(1).max(0) as f64
        });
        (covered.sum::<f64>() / width * self.keys as f64) as u64
    }
}

impl KeySamples {
    fn inside(&self, ranges: &[(Token, Token)]) -> u64 {
        let entries = ranges.iter().map(|(from, to)| {
            // A range excludes its first token.
            let start = self.tokens.partition_point(|token| token <= from);
            let end = self.tokens.partition_point(|token| token <= to);
            end.saturating_sub(start) as u64
        });
        entries
            .sum::<u64>()
            .saturating_mul(self.keys_per_sample)
            .max(1)
    }
}

/// Token ranges of SSTables, ascending, with overlapping ones joined (`Range.normalize`). The range of a
/// single token is the whole ring.
fn normalized(sstables: &[&Sstable]) -> Vec<(Token, Token)> {
    if sstables.iter().any(|s| s.first.token == s.last.token) {
        return vec![(Token(i128::MIN), Token(i128::MAX))];
    }
    joined(sstables.iter().map(|s| (s.first.token, s.last.token)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sstable::SstableId;

    fn between(first: i128, last: i128) -> Sstable {
        Sstable::new(SstableId(1), 1, Token(first), Token(last))
    }

    #[test]
    fn evenly_distributed_keys() {
        let keys = KeyEstimate {
            keys: 100,
            partitions: 100,
            samples: None,
        };
        let (left, inner) = (between(-50, 24), between(10, 20));
        assert_eq!(
            keys.remaining_ratio(&between(0, 99), &[&inner, &left]),
            Some(0.75)
        );
    }

    #[test]
    fn sampled_keys() {
        let keys = KeyEstimate {
            keys: 400,
            partitions: 400,
            samples: Some(KeySamples {
                tokens: [0, 10, 20, 30].map(Token).into(),
                keys_per_sample: 100,
            }),
        };
        // The first token of a range is outside of it.
        assert_eq!(
            keys.remaining_ratio(&between(0, 39), &[&between(0, 10)]),
            Some(0.75)
        );
    }

    #[test]
    fn a_single_token_counts_as_the_whole_ring() {
        let keys = KeyEstimate {
            keys: 100,
            partitions: 100,
            samples: None,
        };
        let found = keys.remaining_ratio(&between(0, 99), &[&between(5, 5)]);
        assert_eq!(found, Some(0.0));
    }

    #[test]
    fn two_samples_are_too_few() {
        let keys = KeyEstimate {
            keys: 200,
            partitions: 200,
            samples: Some(KeySamples {
                tokens: [0, 10].map(Token).into(),
                keys_per_sample: 100,
            }),
        };
        assert_eq!(
            keys.remaining_ratio(&between(0, 39), &[&between(0, 10)]),
            None
        );
    }
}
