use super::*;
use crate::options::Options;
use crate::release::Release;
use crate::size_tiered::SizeTieredOptions;
use crate::sstable::Session;
use crate::task::TaskKind;
use crate::token::Token;

fn sstable(id: u64, repair: RepairState) -> Sstable {
    Sstable {
        repair,
        ..Sstable::new(SstableId(id), 1, Token(0), Token(9))
    }
}

fn load(sstables: Vec<Sstable>) -> CompactionStrategyManager {
    let params = CompactionParams::size_tiered(SizeTieredOptions::default());
    CompactionStrategyManager::load(params, Node::default(), TieBreak::First, sstables, 0)
}

/// `count` SSTables of a repair state, with ids from `first` on.
fn several(first: u64, count: u64, repair: RepairState) -> Vec<Sstable> {
    (first..first + count)
        .map(|id| sstable(id, repair))
        .collect()
}

fn first_input(task: &Task) -> u64 {
    task.inputs.first().map_or(0, |id| id.0)
}

#[test]
fn repair_states_are_not_mixed() {
    let mut sstables = several(1, 3, RepairState::Repaired);
    sstables.extend(several(10, 3, RepairState::Unrepaired));
    let mut manager = load(sstables);
    let idle = manager.next_task(0).unwrap_err();
    assert_eq!(idle.len(), 2);
    manager.add(sstable(20, RepairState::Unrepaired));
    let task = manager.next_task(0).expect("a task");
    assert_eq!(first_input(&task), 10);
    assert_eq!(task.inputs.len(), 4);
}

#[test]
fn groups_with_more_remaining_tasks_are_first() {
    let mut sstables = several(1, 4, RepairState::Repaired);
    sstables.extend(several(100, 40, RepairState::Unrepaired));
    let mut manager = load(sstables);
    // Nothing is counted before the first selection: repaired ones are first.
    assert_eq!(manager.remaining_tasks(), 0);
    let repaired = manager.next_task(0).expect("a task");
    assert_eq!(first_input(&repaired), 1);
    manager.begin(&repaired);
    assert_eq!(first_input(&manager.next_task(0).expect("a task")), 100);
    manager.abort(&repaired);
    // Two remain of the unrepaired ones, none was counted of the others.
    assert_eq!(manager.remaining_tasks(), 2);
    assert_eq!(first_input(&manager.next_task(0).expect("a task")), 100);
}

#[test]
fn only_the_pending_session_with_most_tasks_selects() {
    let mut sstables = several(1, 3, RepairState::Pending(Session(1)));
    sstables.extend(several(10, 4, RepairState::Pending(Session(2))));
    let mut manager = load(sstables);
    // Neither has counted its tasks yet, so the first session is asked, and has none.
    assert!(manager.next_task(0).is_err());
}

#[test]
fn directories_are_planned_separately() {
    let params = CompactionParams::size_tiered(SizeTieredOptions::default());
    let sstables = (0..7).map(|id| Sstable {
        directory: usize::from(id >= 3),
        ..sstable(id, RepairState::Unrepaired)
    });
    let mut manager =
        CompactionStrategyManager::load(params, Node::default(), TieBreak::First, sstables, 0);
    let task = manager.next_task(0).expect("a task");
    assert_eq!(task.inputs, [3, 4, 5, 6].map(SstableId));
}

#[test]
fn a_disabled_table_has_no_tasks() {
    let params = CompactionParams {
        is_enabled: false,
        ..CompactionParams::size_tiered(SizeTieredOptions::default())
    };
    let sstables = several(1, 4, RepairState::Unrepaired);
    let mut manager =
        CompactionStrategyManager::load(params, Node::default(), TieBreak::First, sstables, 0);
    assert_eq!(manager.next_task(0).unwrap_err()[0].1, Idle::Disabled);
    assert_eq!(manager.major(0, false).len(), 1);
}

/// A strategy looks for expired SSTables also while it has none, and not again before its interval is over.
#[test]
fn an_empty_table_is_checked_for_expired_sstables() {
    let class = "UnifiedCompactionStrategy";
    let params = CompactionParams::from_options(class, &Options::new(), Release::V5_0);
    let ties = TieBreak::First;
    let mut manager = CompactionStrategyManager::load(
        params.expect("options"),
        Node::default(),
        ties,
        Vec::new(),
        0,
    );
    let after = |seconds: i64| seconds * 1000;
    assert_eq!(manager.next_task(after(601)), Err(Vec::new()));
    manager.add(Sstable {
        max_local_deletion_time: -10_000_000,
        ..sstable(1, RepairState::Unrepaired)
    });
    assert!(manager.next_task(after(1201)).is_err());
    let task = manager.next_task(after(1202)).expect("a task");
    assert_eq!(task.kind, TaskKind::Expired);
}

#[test]
fn sstables_that_are_not_compacted_keep_what_overlaps_them() {
    let expired = |id| Sstable {
        max_local_deletion_time: 1,
        max_timestamp: 10,
        ..sstable(id, RepairState::Unrepaired)
    };
    let load = || {
        let params = CompactionParams::from_options(
            "TimeWindowCompactionStrategy",
            &Options::new(),
            Release::V6_0,
        );
        let live = Sstable {
            min_timestamp: 5,
            max_timestamp: 5,
            ..sstable(2, RepairState::Unrepaired)
        };
        let manager = CompactionStrategyManager::load(
            params.expect("valid options"),
            Node::default(),
            TieBreak::First,
            [expired(1)],
            LONG_AGO,
        );
        (manager, live)
    };
    let now_ms = 20_000 * 86_400_000;
    let (mut alone, live) = load();
    let task = alone.next_task(now_ms).expect("a task");
    assert_eq!(task.kind, TaskKind::Expired);

    let (mut manager, _) = load();
    manager.add_outside(live.clone());
    assert!(manager.next_task(now_ms).is_err());
    assert!(manager.major(now_ms, false)[0].inputs.len() == 1);

    // The newest window has the excluded one: two in it would be compacted.
    let (mut manager, _) = load();
    manager.add(live);
    manager.exclude(SstableId(2));
    assert_eq!(
        (manager.live().len(), manager.live().outside().len()),
        (1, 1)
    );
    assert!(manager.next_task(now_ms).is_err());
}

#[test]
fn only_repaired_ones_expire_if_the_caller_says_so() {
    for class in crate::params::CLASSES {
        let params = CompactionParams::from_options(class, &Options::new(), Release::V6_0);
        let mut params = params.expect("valid options");
        let option = (
            "only_purge_repaired_tombstones".to_owned(),
            "true".to_owned(),
        );
        let by_option = CompactionParams::from_options(class, &[option].into(), Release::V6_0);
        params.set_only_purge_repaired(true);
        assert_eq!(Ok(&params), by_option.as_ref());
        params.set_only_purge_repaired(false);
        assert_ne!(Ok(params), by_option);
    }
}
