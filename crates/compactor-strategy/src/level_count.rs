//! Leveled compaction into a fixed number of levels: the SSTable size follows from the size of the data.
//!
//! Cassandra has no such strategy; CASSANDRA-7871 asks for it. Its rules are those of leveled compaction,
//! except that sizes change with the data and the highest level has no limit. SSTables keep their size and
//! level when sizes change, and are rewritten by the compactions that follow.

mod options;

pub use options::LevelCountOptions;

/// Name in `compaction = {'class': ...}`.
pub(crate) const CLASS: &str = "LevelCountCompactionStrategy";

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::context::{Context, Node};
    use crate::leveled::Leveled;
    use crate::live::Live;
    use crate::random::TieBreak;
    use crate::sstable::{Sstable, SstableId};
    use crate::strategy::Strategy;
    use crate::task::{Idle, Reason, Split, Task};
    use crate::token::Token;

    const GIB: u64 = 1 << 30;

    fn in_level(id: u64, level: u32, bytes: u64) -> Arc<Sstable> {
        let first = Token(100 * i128::from(id));
        let last = Token(first.0 + 99);
        Arc::new(Sstable {
            level,
            ..Sstable::new(SstableId(id), bytes, first, last)
        })
    }

    fn with_options(options: LevelCountOptions) -> Leveled {
        Leveled::new(options.leveled).with_sizing(options.sizing)
    }

    fn next(strategy: &mut Leveled) -> Result<Task, Idle> {
        strategy.next_task(&mut Context {
            live: &Live::default(),
            node: &Node::default(),
            now_ms: 0,
            ties: &mut TieBreak::First,
        })
    }

    #[test]
    fn the_sstable_size_follows_the_data_with_hysteresis() {
        let mut strategy = with_options(LevelCountOptions::default());
        let mut size_with = |id, gib: u64| {
            strategy.add(&in_level(id, 4, gib * GIB));
            // The highest level has no limit.
            assert_eq!(next(&mut strategy), Err(Idle::LevelsWithinLimits { l0: 0 }));
            strategy.sizes().sstable_bytes() >> 20
        };
        assert_eq!(size_with(1, 64), 256);
        assert_eq!(size_with(2, 64), 256);
        assert_eq!(size_with(3, 1), 512);
        assert_eq!(size_with(4, 100), 512);
    }

    #[test]
    fn levels_below_the_highest_have_limits() {
        let mut options = LevelCountOptions::default();
        options.leveled.single_sstable_uplevel = false;
        let mut strategy = with_options(options);
        strategy.add(&in_level(1, 4, 256 * GIB));
        // 341 GiB in SSTables of 1 GiB: the fan-out is 4.3, and L3 has a limit of 79 GiB.
        for id in 2..87 {
            strategy.add(&in_level(id, 3, GIB));
        }
        let task = next(&mut strategy).expect("a task");
        assert!(
            matches!(task.reason, Reason::LevelOverLimit { level: 3, .. }),
            "{task:?}"
        );
        assert_eq!(task.output.level, 4);
        let Split::MaxBytes(bytes) = task.output.split else {
            panic!("{task:?}");
        };
        assert_eq!(bytes, GIB);
    }
}
