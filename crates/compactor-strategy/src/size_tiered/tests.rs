use proptest::prelude::*;

use super::*;
use crate::context::Node;
use crate::droppable::DroppableTombstones;
use crate::manager::CompactionStrategyManager;
use crate::options::of;
use crate::params::CompactionParams;
use crate::random::TieBreak;
use crate::sstable::SstableId;
use crate::task::TaskKind;
use crate::token::Token;

fn of_sizes(sizes: &[u64]) -> Vec<Sstable> {
    let sstable =
        |(id, &bytes): (usize, &u64)| Sstable::new(SstableId(id as u64), bytes, Token(0), Token(9));
    sizes.iter().enumerate().map(sstable).collect()
}

fn no_min() -> BucketOptions {
    BucketOptions {
        min_sstable_size: 0,
        ..BucketOptions::default()
    }
}

fn sizes_of(buckets: &[Vec<usize>], sizes: &[i64]) -> Vec<Vec<i64>> {
    let of = |bucket: &Vec<usize>| bucket.iter().map(|&place| sizes[place]).collect();
    buckets.iter().map(of).collect()
}

fn manager(options: SizeTieredOptions, sstables: Vec<Sstable>) -> CompactionStrategyManager {
    CompactionStrategyManager::load(
        CompactionParams::size_tiered(options),
        Node::default(),
        TieBreak::First,
        sstables,
        0,
    )
}

/// Inputs of all tasks that can run concurrently.
fn concurrent(manager: &mut CompactionStrategyManager) -> Vec<Vec<u64>> {
    let mut tasks = Vec::new();
    while let Ok(task) = manager.next_task(0) {
        manager.begin(&task);
        tasks.push(task.inputs.iter().map(|id| id.0).collect());
    }
    tasks
}

#[test]
fn buckets_come_as_from_cassandra() {
    let sizes = [300, 100, 420, 150, 120, 260, 181];
    let buckets = no_min().buckets(&sizes);
    assert_eq!(
        sizes_of(&buckets, &sizes),
        [vec![420], vec![260, 300], vec![100, 120, 150, 181]]
    );
}

#[test]
fn small_sstables_share_a_bucket() {
    let sizes = [1, 10 << 20, 100, 49 << 20, 50 << 20, 200 << 20];
    let buckets = BucketOptions::default().buckets(&sizes);
    let mut found = sizes_of(&buckets, &sizes);
    found.sort();
    assert_eq!(
        found,
        [
            vec![1, 100, 10 << 20, 49 << 20],
            vec![50 << 20],
            vec![200 << 20]
        ]
    );
}

#[test]
fn bounds_are_exclusive() {
    // 50 is half of 100, and 150 is one and a half times 100: both bounds are exclusive.
    assert_eq!(no_min().buckets(&[100, 150]).len(), 2);
    assert_eq!(no_min().buckets(&[100, 149]).len(), 1);
}

#[test]
fn a_bucket_may_take_the_place_of_another() {
    // Zero bytes are not more than half of zero bytes, so each is in a bucket of its own, under the same key.
    assert_eq!(no_min().buckets(&[0, 0, 0]), [vec![2]]);
}

#[test]
fn the_largest_average_is_first() {
    let options = SizeTieredOptions {
        buckets: no_min(),
        ..SizeTieredOptions::default()
    };
    let sstables = of_sizes(&[10, 10, 10, 10, 900, 900, 900, 900, 900, 70, 70]);
    let mut manager = manager(options, sstables);
    assert_eq!(
        concurrent(&mut manager),
        [vec![4, 5, 6, 7, 8], vec![0, 1, 2, 3]]
    );
    assert_eq!(
        manager.next_task(0).unwrap_err(),
        [(
            crate::manager::Group::default(),
            Idle::SmallTiers {
                largest: 2,
                min_threshold: 4
            }
        )]
    );
}

#[test]
fn no_more_than_the_threshold_and_the_smallest_first() {
    let sizes: Vec<u64> = (0..100).rev().collect();
    let mut manager = manager(SizeTieredOptions::default(), of_sizes(&sizes));
    let task = manager.next_task(0).expect("a task");
    let ids: Vec<u64> = task.inputs.iter().map(|id| id.0).collect();
    assert_eq!(ids, (68..100).rev().collect::<Vec<_>>());
    assert_eq!(manager.remaining_tasks(), 4);
    // Three compactions of 32 each, and enough are left for one of four.
    let lens: Vec<usize> = concurrent(&mut manager).iter().map(Vec::len).collect();
    assert_eq!(lens, [32, 32, 32, 4]);
    assert_eq!(manager.remaining_tasks(), 0);
    assert_eq!(manager.pending_tasks(), 4);
}

#[test]
fn the_largest_is_compacted_for_its_tombstones() {
    let mut sstables = of_sizes(&[5 << 20, 900 << 20, 7 << 20, 900 << 20, 20_000 << 20]);
    for (place, sstable) in sstables.iter_mut().enumerate() {
        let cells = if place == 4 { 1000 } else { 10 };
        sstable.tombstones = DroppableTombstones::new(&[(0, 9)], cells);
        let first = Token(10 * place as i128);
        (sstable.first, sstable.last) = (first.into(), first.into());
    }
    let mut manager = manager(SizeTieredOptions::default(), sstables);
    let task = manager.next_task(1 << 50).expect("a task");
    assert_eq!(
        (task.inputs, task.kind),
        (vec![SstableId(1)], TaskKind::Tombstones)
    );
}

#[test]
fn a_major_compaction_has_one_output_or_halves() {
    let mut manager = manager(SizeTieredOptions::default(), of_sizes(&[5, 900]));
    let tasks = manager.major(0, false);
    assert_eq!(tasks[0].inputs, [SstableId(0), SstableId(1)]);
    assert_eq!(tasks[0].output.split, Split::None);
    let halves = Split::Halves {
        min_bytes: 50_000_000,
    };
    assert_eq!(manager.major(0, true)[0].output.split, halves);
    manager.begin(&tasks[0]);
    assert!(manager.major(0, false).is_empty());
}

#[test]
fn invalid_options_are_refused_with_cassandras_messages() {
    let refused = |pairs: &[(&str, &str)], words: &str| {
        let found = SizeTieredOptions::from_options(&of(pairs)).unwrap_err();
        assert_eq!(found.0, words);
    };
    refused(
        &[("min_sstable_size", "-1")],
        "min_sstable_size must be non negative: -1",
    );
    refused(
        &[("min_sstable_size", "1MiB")],
        "1MiB is not a parsable int (base10) for min_sstable_size",
    );
    refused(
        &[("bucket_low", "low")],
        "low is not a parsable float for bucket_low",
    );
    refused(
        &[("bucket_high", "0.5")],
        "bucket_high value (0.5) is less than or equal to the bucket_low value (0.5)",
    );
}

proptest! {
    /// No SSTable is in two tasks, no task is too small or too large, and no compaction is left.
    #[test]
    fn tasks_are_disjoint(
        sizes in prop::collection::vec(1u64..1 << 32, 0..200),
        min in 2usize..6,
        more in 0usize..40,
        min_size in prop_oneof![Just(0i64), Just(50i64 << 20), 0i64..1 << 32],
    ) {
        let options = SizeTieredOptions {
            thresholds: Thresholds { min, max: min + more },
            buckets: BucketOptions { min_sstable_size: min_size, ..BucketOptions::default() },
            ..SizeTieredOptions::default()
        };
        let mut manager = manager(options, of_sizes(&sizes));
        let mut seen = vec![false; sizes.len()];
        for task in concurrent(&mut manager) {
            prop_assert!((min..=min + more).contains(&task.len()));
            for id in task {
                prop_assert!(!std::mem::replace(&mut seen[id as usize], true));
            }
        }
        prop_assert_eq!(manager.remaining_tasks(), 0);
    }

    /// All SSTables of a bucket were similar when they were added: none is smaller than the lower bound for
    /// the smallest average.
    #[test]
    fn buckets_hold_each_sstable_once(sizes in prop::collection::vec(1i64..1 << 40, 0..300)) {
        let mut all: Vec<usize> = no_min().buckets(&sizes).into_iter().flatten().collect();
        all.sort_unstable();
        let before = all.len();
        all.dedup();
        prop_assert_eq!(all.len(), before);
        for bucket in no_min().buckets(&sizes) {
            prop_assert!(bucket.windows(2).all(|pair| sizes[pair[0]] <= sizes[pair[1]]));
        }
    }
}
