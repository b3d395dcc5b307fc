//! SSTables whose data is all expired, and which shadow nothing.
//!
//! Source: `CompactionController.getFullyExpiredSSTables`.

use std::sync::Arc;

use crate::context::Context;
use crate::sstable::{RepairState, Sstable, SstableId};

pub(crate) const CHECK_INTERVAL: &str = "expired_sstable_check_frequency_seconds";
pub(crate) const AGGRESSIVE_EXPIRATION: &str = "unsafe_aggressive_sstable_expiration";

/// Options of the check for fully expired SSTables.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExpiryOptions {
    /// Interval, seconds (`expired_sstable_check_frequency_seconds`).
    pub interval_s: i64,
    /// Whether only repaired SSTables expire (`only_purge_repaired_tombstones`).
    pub only_repaired: bool,
}

impl Default for ExpiryOptions {
    fn default() -> ExpiryOptions {
        ExpiryOptions {
            interval_s: 600,
            only_repaired: false,
        }
    }
}

/// Check for fully expired SSTables that a strategy repeats in intervals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ExpiredCheck {
    pub(crate) options: ExpiryOptions,
    /// Time of the last check, milliseconds since 1970.
    pub(crate) last_ms: i64,
}

impl ExpiredCheck {
    /// The fully expired ones of the candidates, if it is time for a check.
    pub(crate) fn expired(
        &mut self,
        candidates: &[Arc<Sstable>],
        context: &Context<'_>,
    ) -> Vec<SstableId> {
        let interval_ms = self.options.interval_s.saturating_mul(1000);
        if context.now_ms.saturating_sub(self.last_ms) <= interval_ms {
            return Vec::new();
        }
        self.last_ms = context.now_ms;
        let candidates: Vec<&Sstable> = candidates.iter().map(Arc::as_ref).collect();
        let overlapping = context.live.overlapping(&candidates);
        fully_expired(
            &candidates,
            &overlapping,
            self.options.only_repaired,
            context,
        )
    }
}

/// Candidates that are fully expired and older than all other data that may be live. `overlapping`: the
/// SSTables that overlap a candidate. `only_repaired`: none is if a candidate is not repaired.
pub(crate) fn fully_expired(
    candidates: &[&Sstable],
    overlapping: &[&Sstable],
    only_repaired: bool,
    context: &Context<'_>,
) -> Vec<SstableId> {
    let is_unrepaired = |sstable: &&Sstable| sstable.repair != RepairState::Repaired;
    let is_refused = only_repaired && candidates.iter().any(is_unrepaired);
    if is_refused || context.node.never_purges_tombstones {
        return Vec::new();
    }
    let gc_before_s = context.gc_before_s();
    let is_expired = |sstable: &&&Sstable| sstable.max_local_deletion_time < gc_before_s;
    let others = overlapping.iter().chain(candidates);
    let live = others.filter(|sstable| !is_expired(sstable));
    let oldest = live.map(|sstable| sstable.min_timestamp);
    let oldest = oldest.chain(context.node.memtable_min_timestamp).min();
    let before = oldest.unwrap_or(i64::MAX);
    let shadows_nothing = |sstable: &&&Sstable| sstable.max_timestamp < before;
    let expired = candidates.iter().filter(is_expired).filter(shadows_nothing);
    expired.map(|sstable| sstable.id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Node;
    use crate::live::Live;
    use crate::random::TieBreak;
    use crate::token::Token;

    fn aged(id: u64, timestamps: (i64, i64), max_local_deletion_time: i64) -> Arc<Sstable> {
        Arc::new(Sstable {
            min_timestamp: timestamps.0,
            max_timestamp: timestamps.1,
            max_local_deletion_time,
            ..Sstable::new(SstableId(id), 1, Token(0), Token(9))
        })
    }

    fn check(only_repaired: bool) -> ExpiredCheck {
        ExpiredCheck {
            options: ExpiryOptions {
                only_repaired,
                ..ExpiryOptions::default()
            },
            last_ms: 0,
        }
    }

    fn expired(
        check: &mut ExpiredCheck,
        sstables: &[Arc<Sstable>],
        candidates: usize,
        now_ms: i64,
    ) -> Vec<u64> {
        let mut live = Live::default();
        for sstable in sstables {
            live.insert(Arc::clone(sstable));
        }
        let context = Context {
            live: &live,
            node: &Node {
                gc_grace_s: 0,
                ..Node::default()
            },
            now_ms,
            ties: &mut TieBreak::First,
        };
        let found = check.expired(&sstables[..candidates], &context);
        found.into_iter().map(|id| id.0).collect()
    }

    #[test]
    fn older_than_all_that_is_live() {
        let sstables = [
            aged(1, (10, 20), 100),
            aged(2, (21, 30), 100),
            aged(3, (31, 40), i64::MAX),
            aged(4, (25, 50), i64::MAX),
        ];
        // The fourth overlaps, but is no candidate: its oldest data may be shadowed by the second.
        assert_eq!(expired(&mut check(false), &sstables, 3, 601_000), [1]);
        assert_eq!(
            expired(&mut check(false), &sstables[..3], 3, 601_000),
            [1, 2]
        );
    }

    #[test]
    fn checked_in_intervals() {
        let sstables = [aged(1, (10, 20), 100)];
        let mut check = check(false);
        assert!(expired(&mut check, &sstables, 1, 600_000).is_empty());
        assert_eq!(expired(&mut check, &sstables, 1, 600_001), [1]);
        assert!(expired(&mut check, &sstables, 1, 1_200_001).is_empty());
        assert_eq!(expired(&mut check, &sstables, 1, 1_200_002), [1]);
    }

    #[test]
    fn an_unrepaired_candidate_prevents_it() {
        let sstables = [aged(1, (10, 20), 100)];
        assert!(expired(&mut check(true), &sstables, 1, 601_000).is_empty());
    }
}
