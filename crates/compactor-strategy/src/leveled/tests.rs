use super::*;
use crate::context::Node;
use crate::droppable::DroppableTombstones;
use crate::manager::CompactionStrategyManager;
use crate::params::{CompactionParams, StrategyOptions};
use crate::random::TieBreak;
use crate::release::Release;
use crate::token::Token;

const MIB: u64 = 1 << 20;

fn sstable(id: u64, level: u32, bytes: u64, first: i128, last: i128) -> Sstable {
    Sstable {
        level,
        max_timestamp: id as i64,
        ..Sstable::new(SstableId(id), bytes, Token(first), Token(last))
    }
}

fn load(options: LeveledOptions, sstables: Vec<Sstable>) -> CompactionStrategyManager {
    let params = CompactionParams {
        is_enabled: true,
        strategy: StrategyOptions::Leveled(options),
    };
    CompactionStrategyManager::load(params, Node::default(), TieBreak::First, sstables, 0)
}

fn manager(sstables: Vec<Sstable>) -> CompactionStrategyManager {
    load(LeveledOptions::new(Release::V6_0), sstables)
}

fn inputs(task: &Task) -> Vec<u64> {
    let mut ids: Vec<u64> = task.inputs.iter().map(|id| id.0).collect();
    ids.sort_unstable();
    ids
}

/// L1 filled beyond its limit, each SSTable over a hundred tokens.
fn full_l1() -> Vec<Sstable> {
    let at = |id: u64| sstable(id, 1, 160 * MIB, 100 * id as i128, 100 * id as i128 + 99);
    (0..11).map(at).collect()
}

#[test]
fn a_level_over_its_limit_moves_up_one_sstable() {
    let mut sstables = full_l1();
    sstables.push(sstable(20, 2, 160 * MIB, 50, 60));
    sstables.push(sstable(21, 2, 160 * MIB, 99, 120));
    sstables.push(sstable(22, 2, 160 * MIB, 121, 150));
    // L2 was written after its first SSTable, so the round continues after token 60.
    sstables[11].created_ms = 1;
    let mut manager = manager(sstables);
    let task = manager.next_task(0).expect("a task");
    assert_eq!(inputs(&task), [1, 21, 22]);
    assert_eq!(task.output.level, 2);
    assert_eq!(task.output.split, Split::MaxBytes(160 * MIB));
    assert_eq!(task.kind, TaskKind::Compact);
    assert_eq!(manager.remaining_tasks(), 1);
}

#[test]
fn a_level_above_the_highest_is_the_highest() {
    let options = LeveledOptions {
        sizes: LevelSizes::new(MIB, 1.0),
        ..LeveledOptions::new(Release::V6_0)
    };
    let sstables = vec![sstable(1, 7, 2 * MIB, 0, 9), sstable(2, 100, MIB, 5, 6)];
    let task = load(options, sstables).next_task(0).expect("a task");
    assert_eq!((inputs(&task), task.output.level), (vec![1, 2], 8));
}

#[test]
fn without_overlap_only_the_level_changes() {
    for (release, kind) in [
        (Release::V6_0, TaskKind::LevelOnly),
        (Release::V5_0, TaskKind::Compact),
    ] {
        let mut manager = load(LeveledOptions::new(release), full_l1());
        let task = manager.next_task(0).expect("a task");
        assert_eq!((inputs(&task), task.kind), (vec![0], kind));
        manager.begin(&task);
        // Without the one that is being compacted the level is within its limit.
        assert!(manager.next_task(0).is_err());
        manager.complete(&task, [sstable(0, 2, 160 * MIB, 0, 99)]);
        assert_eq!(manager.level(SstableId(0)), Some(2));
    }
}

#[test]
fn a_blocked_level_is_named() {
    let mut sstables = full_l1();
    for sstable in &mut sstables {
        sstable.is_suspect = true;
    }
    let idle = manager(sstables).next_task(0).unwrap_err();
    assert_eq!(idle[0].1, Idle::LevelBlocked { level: 1 });
}

#[test]
fn small_sstables_stay_in_l0() {
    let mut manager = manager(vec![sstable(1, 0, MIB, 0, 10), sstable(2, 0, MIB, 5, 20)]);
    let task = manager.next_task(0).expect("a task");
    assert_eq!((inputs(&task), task.output.level), (vec![1, 2], 0));
    assert_eq!(task.reason, Reason::L0 { sstables: 2 });
}

#[test]
fn l0_takes_all_of_l1_between_its_ends() {
    let mut manager = manager(vec![
        sstable(1, 0, 100 * MIB, 0, 10),
        sstable(2, 0, 100 * MIB, 80, 100),
        sstable(3, 1, MIB, 40, 50),
        sstable(4, 1, MIB, 100, 110),
        sstable(5, 1, MIB, 111, 120),
    ]);
    let task = manager.next_task(0).expect("a task");
    assert_eq!((inputs(&task), task.output.level), (vec![1, 2, 3, 4], 1));
    // While it runs, L0 has no others.
    manager.begin(&task);
    assert!(manager.next_task(0).is_err());
    manager.abort(&task);
    assert_eq!(manager.next_task(0), Ok(task));
}

#[test]
fn l0_is_limited_to_its_oldest() {
    let at = |id: u64| sstable(id, 0, MIB, 0, 10);
    let options = LeveledOptions {
        thresholds: crate::options::Thresholds { min: 2, max: 8 },
        ..LeveledOptions::new(Release::V6_0)
    };
    let task = load(options, (0..20).map(at).collect())
        .next_task(0)
        .expect("a task");
    assert_eq!(inputs(&task), (0..8).collect::<Vec<_>>());
}

#[test]
fn a_large_l0_is_compacted_by_size_before_levels() {
    let mut sstables = full_l1();
    sstables.extend((100..133).map(|id| sstable(id, 0, MIB, 0, 1000)));
    let task = manager(sstables.clone()).next_task(0).expect("a task");
    assert_eq!(inputs(&task), (100..132).collect::<Vec<_>>());
    assert_eq!(task.reason, Reason::SizeTierInL0 { sstables: 33 });
    assert_eq!(task.output, Output::default());
    // One fewer, and L1 is next.
    sstables.pop();
    let task = manager(sstables).next_task(0).expect("a task");
    assert_eq!(inputs(&task), [0]);
}

#[test]
fn a_starved_level_takes_part() {
    let mut sstables = full_l1();
    // The round of L1 restarts after the last token of L2.
    sstables.push(sstable(20, 2, MIB, 2000, 2010));
    sstables.push(sstable(30, 3, MIB, 20, 30));
    sstables.push(sstable(31, 3, MIB, 40, 50));
    let mut manager = manager(sstables);
    for round in 1..=26 {
        let task = manager.next_task(0).expect("a task");
        let expected = if round > 25 { vec![0, 30] } else { vec![0] };
        assert_eq!(inputs(&task), expected, "task {round}");
    }
}

#[test]
fn tombstones_of_the_highest_level_are_first() {
    let with_tombstones = |id, level, count| Sstable {
        tombstones: DroppableTombstones::new(&[(0, count)], 100),
        ..sstable(id, level, MIB, 10 * id as i128, 10 * id as i128 + 9)
    };
    let sstables = vec![
        with_tombstones(1, 1, 90),
        with_tombstones(2, 2, 30),
        with_tombstones(3, 2, 40),
        with_tombstones(4, 3, 10),
    ];
    let task = manager(sstables).next_task(1 << 50).expect("a task");
    assert_eq!((inputs(&task), task.kind), (vec![3], TaskKind::Tombstones));
    assert_eq!(task.output.level, 2);
}

#[test]
fn tasks_are_estimated_from_bytes() {
    let mut sstables = full_l1();
    sstables.extend((100..165).map(|id| sstable(id, 0, 10 * MIB, 0, 1000)));
    // L0: 650 MiB exceed 640.64, one task, and 65 / 32 by size. L1: 1760 MiB exceed 1601.6 by less than one.
    assert_eq!(manager(sstables).remaining_tasks(), 1 + 2 + 1);
}

#[test]
fn a_major_compaction_fills_levels_from_l1() {
    let tasks = manager(full_l1()).major(0, false);
    assert_eq!(inputs(&tasks[0]), (0..11).collect::<Vec<_>>());
    let split = LevelSplit {
        sstable_bytes: 160 * MIB,
        fanout: 10.0,
        top: 8,
    };
    assert_eq!(
        tasks[0].output,
        Output {
            level: 1,
            split: Split::Levels(split)
        }
    );
}
