//! Leveled compaction into a fixed number of levels: the SSTable size follows from the size of the data.
//!
//! Cassandra has no such strategy; CASSANDRA-7871 asks for it. Its rules are those of leveled compaction,
//! except that sizes change with the data and the highest level has no limit. SSTables keep their size and
//! level when sizes change, and are rewritten by the compactions that follow.

mod options;
mod sizing;

use std::sync::Arc;

pub use options::LevelCountOptions;
pub use sizing::Sizing;

use crate::context::Context;
use crate::leveled::{LevelSizes, Leveled};
use crate::sstable::Sstable;
use crate::strategy::Strategy;
use crate::task::{Idle, Task};

/// Name in `compaction = {'class': ...}`.
pub(crate) const CLASS: &str = "LevelCountCompactionStrategy";

/// Strategy of a group of SSTables with a fixed number of levels.
#[derive(Clone, Debug)]
pub struct LevelCount {
    sizing: Sizing,
    leveled: Leveled,
    /// Bytes for which the sizes were computed.
    sized_for: u64,
}

impl LevelCount {
    /// A strategy without SSTables.
    pub fn new(options: LevelCountOptions) -> LevelCount {
        LevelCount {
            sizing: options.sizing,
            leveled: Leveled::new(options.leveled),
            sized_for: 0,
        }
    }

    /// Size of SSTables and limits of levels at present.
    pub fn sizes(&self) -> LevelSizes {
        self.leveled.sizes()
    }

    fn follow_data(&mut self) {
        let bytes = self.leveled.bytes();
        if Sizing::is_outgrown(self.sized_for, bytes) {
            self.leveled.resize(self.sizing.sizes(bytes));
            self.sized_for = bytes;
        }
    }
}

impl Strategy for LevelCount {
    fn add(&mut self, sstable: &Arc<Sstable>) {
        self.leveled.add(sstable);
    }

    fn remove(&mut self, sstable: &Sstable) {
        self.leveled.remove(sstable);
    }

    fn replace(&mut self, removed: &[Arc<Sstable>], added: &[Arc<Sstable>]) {
        self.leveled.replace(removed, added);
    }

    fn start(&mut self, now_ms: i64) {
        self.leveled.start(now_ms);
        self.follow_data();
    }

    fn next_task(&mut self, context: &mut Context<'_>) -> Result<Task, Idle> {
        self.follow_data();
        self.leveled.next_task(context)
    }

    fn remaining_tasks(&self, context: &Context<'_>) -> usize {
        self.leveled.remaining_tasks(context)
    }

    fn major(&self, context: &Context<'_>, splits_output: bool) -> Vec<Task> {
        self.leveled.major(context, splits_output)
    }

    fn level(&self, context: &Context<'_>, sstable: &Sstable) -> Option<u32> {
        self.leveled.level(context, sstable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Node;
    use crate::live::Live;
    use crate::random::TieBreak;
    use crate::sstable::SstableId;
    use crate::task::{Reason, Split};
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

    fn next(strategy: &mut LevelCount) -> Result<Task, Idle> {
        strategy.next_task(&mut Context {
            live: &Live::default(),
            node: &Node::default(),
            now_ms: 0,
            ties: &mut TieBreak::First,
        })
    }

    #[test]
    fn the_sstable_size_follows_the_data_with_hysteresis() {
        let mut strategy = LevelCount::new(LevelCountOptions::default());
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
        let mut strategy = LevelCount::new(options);
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
