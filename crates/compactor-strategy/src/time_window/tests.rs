use super::*;
use crate::context::Node;
use crate::droppable::DroppableTombstones;
use crate::manager::CompactionStrategyManager;
use crate::params::{CompactionParams, StrategyOptions};
use crate::random::TieBreak;
use crate::sstable::SstableId;
use crate::task::TaskKind;
use crate::token::Token;
use crate::tombstones::TombstoneOptions;

const DAY_US: i64 = 86_400_000_000;

fn of_day(id: u64, day: i64, bytes: u64) -> Sstable {
    Sstable {
        min_timestamp: day * DAY_US,
        max_timestamp: day * DAY_US + id as i64,
        ..Sstable::new(SstableId(id), bytes, Token(0), Token(9))
    }
}

fn load(options: TimeWindowOptions, sstables: Vec<Sstable>) -> CompactionStrategyManager {
    let params = CompactionParams {
        is_enabled: true,
        strategy: StrategyOptions::TimeWindow(options),
    };
    CompactionStrategyManager::load(params, Node::default(), TieBreak::First, sstables, 0)
}

fn with_thresholds(min: usize, max: usize) -> TimeWindowOptions {
    TimeWindowOptions {
        thresholds: Thresholds { min, max },
        ..TimeWindowOptions::default()
    }
}

fn inputs(task: &Task) -> Vec<u64> {
    task.inputs.iter().map(|id| id.0).collect()
}

/// `TimeWindowCompactionStrategyTest.testPrepBucket`.
#[test]
fn the_current_window_needs_the_threshold() {
    let today = || (1..=3).map(|id| of_day(id, 100, 10)).collect();
    let mut few = load(with_thresholds(4, 32), today());
    let idle = Idle::SmallWindows {
        largest: 3,
        min_threshold: 4,
    };
    assert_eq!(few.next_task(0).unwrap_err()[0].1, idle);
    assert_eq!(few.remaining_tasks(), 0);
    let mut enough = load(with_thresholds(2, 32), today());
    assert_eq!(inputs(&enough.next_task(0).expect("a task")), [1, 2, 3]);
    assert_eq!(enough.remaining_tasks(), 1);
}

#[test]
fn a_past_window_needs_two_and_begins_with_the_smallest() {
    let mut sstables: Vec<Sstable> = (1..=40).map(|id| of_day(id, 99, 100 - id)).collect();
    sstables.push(of_day(41, 100, 1));
    sstables.push(of_day(42, 98, 1));
    sstables.push(of_day(43, 98, 1));
    let mut manager = load(with_thresholds(4, 32), sstables);
    let task = manager.next_task(0).expect("a task");
    assert_eq!(inputs(&task), (9..=40).rev().collect::<Vec<_>>());
    // One for day 98; for day 99 one, and one for the rest of eight.
    assert_eq!(manager.remaining_tasks(), 3);
    manager.begin(&task);
    assert_eq!(
        inputs(&manager.next_task(0).expect("a task")),
        [8, 7, 6, 5, 4, 3, 2, 1]
    );
}

#[test]
fn a_window_stays_the_current_one() {
    let mut manager = load(
        with_thresholds(4, 32),
        vec![of_day(1, 100, 1), of_day(2, 99, 1)],
    );
    assert!(manager.next_task(0).is_err());
    manager.remove(SstableId(1));
    manager.add(of_day(3, 99, 1));
    assert_eq!(inputs(&manager.next_task(0).expect("a task")), [2, 3]);
    // A new strategy does not know the later window.
    let mut new = load(
        with_thresholds(4, 32),
        vec![of_day(2, 99, 1), of_day(3, 99, 1)],
    );
    assert!(new.next_task(0).is_err());
}

#[test]
fn before_1970_no_window_is_current() {
    let sstables = vec![of_day(1, -5, 1), of_day(2, -5, 1)];
    let task = load(with_thresholds(4, 32), sstables)
        .next_task(0)
        .expect("a task");
    assert_eq!(
        task.reason,
        Reason::PastWindow {
            start_ms: -4 * 86_400_000,
            sstables: 2
        }
    );
}

#[test]
fn expired_sstables_are_dropped_alone_or_with_others() {
    let expired = |id, day| Sstable {
        max_local_deletion_time: 1,
        ..of_day(id, day, 1)
    };
    let far = 1 << 50;
    let mut alone = load(
        with_thresholds(4, 32),
        vec![expired(1, 50), of_day(2, 100, 1)],
    );
    let task = alone.next_task(far).expect("a task");
    assert_eq!((inputs(&task), task.kind), (vec![1], TaskKind::Expired));
    let sstables = vec![
        expired(1, 50),
        of_day(2, 99, 1),
        of_day(3, 99, 1),
        of_day(4, 100, 1),
    ];
    let mut joined = load(with_thresholds(4, 32), sstables);
    let task = joined.next_task(far).expect("a task");
    assert_eq!(
        (inputs(&task), task.kind),
        (vec![2, 3, 1], TaskKind::Compact)
    );
    assert_eq!(task.expired, [SstableId(1)]);
    // The check was just made.
    assert_eq!(inputs(&joined.next_task(far).expect("a task")), [2, 3]);
}

#[test]
fn the_smallest_is_compacted_for_its_tombstones() {
    let with_tombstones = |id, bytes| Sstable {
        tombstones: DroppableTombstones::new(&[(0, 9)], 10),
        first: Token(10 * i128::from(id)).into(),
        last: Token(10 * i128::from(id)).into(),
        ..of_day(id, id as i64, bytes)
    };
    let sstables = vec![
        with_tombstones(1, 20),
        with_tombstones(2, 10),
        with_tombstones(3, 30),
    ];
    let mut without = load(TimeWindowOptions::default(), sstables.clone());
    assert!(without.next_task(1 << 50).is_err());
    let options = TimeWindowOptions {
        tombstones: Some(TombstoneOptions::default()),
        ..TimeWindowOptions::default()
    };
    let task = load(options, sstables).next_task(1 << 50).expect("a task");
    assert_eq!((inputs(&task), task.kind), (vec![2], TaskKind::Tombstones));
}
