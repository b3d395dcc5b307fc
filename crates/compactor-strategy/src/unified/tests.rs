use super::*;
use crate::context::Node;
use crate::manager::CompactionStrategyManager;
use crate::options::of;
use crate::params::{CompactionParams, StrategyOptions};
use crate::random::TieBreak;
use crate::release::Release;
use crate::task::TaskKind;
use crate::token::Token;

const MIB: u64 = 1 << 20;

/// Token at a fraction of the ring.
fn at(fraction: f64) -> Token {
    Token((fraction * 2f64.powi(64)) as i128 - (1 << 63))
}

/// An SSTable over a part of the ring, as old as its id is small.
fn over(id: u64, bytes: u64, first: f64, last: f64) -> Sstable {
    Sstable {
        max_timestamp: id as i64,
        ..Sstable::new(SstableId(id), bytes, at(first), at(last))
    }
}

fn parsed(pairs: &[(&str, &str)]) -> UnifiedOptions {
    UnifiedOptions::from_options(&of(pairs), Release::V6_0).expect("valid options")
}

fn load(
    options: UnifiedOptions,
    ties: TieBreak,
    sstables: Vec<Sstable>,
) -> CompactionStrategyManager {
    let params = CompactionParams {
        is_enabled: true,
        strategy: StrategyOptions::Unified(options),
    };
    CompactionStrategyManager::load(params, Node::default(), ties, sstables, 0)
}

fn ids(task: &Task) -> Vec<u64> {
    let mut ids: Vec<u64> = task.inputs.iter().map(|id| id.0).collect();
    ids.sort_unstable();
    ids
}

/// Rows of SSTables that do not overlap, each row over the whole ring (`testBucketSelection`).
fn rows(counts: &[usize]) -> Vec<Sstable> {
    let mut sstables = Vec::new();
    for &count in counts {
        for place in 0..count {
            let width = 1.0 / count as f64;
            let first = width * place as f64;
            let mut sstable = over(sstables.len() as u64, 0, first, first + width * 0.99);
            // A density of 100 MiB over the whole ring.
            sstable.token_space_coverage = Some(width);
            sstable.data_bytes = (100.0 * MIB as f64 * width) as u64;
            sstables.push(sstable);
        }
    }
    sstables
}

/// Sizes of all selections, and how many SSTables are left.
fn selections(counts: &[usize], inclusion: Inclusion) -> (Vec<usize>, usize) {
    let rows = rows(counts);
    let options = UnifiedOptions {
        scaling: Scaling::parse(&(counts.len() - 2).to_string()).expect("a parameter"),
        flush_bytes: Some(90 * MIB),
        inclusion,
        ..UnifiedOptions::new(Release::V6_0)
    };
    let total = rows.len();
    let mut manager = load(options, TieBreak::Last, rows);
    let mut sizes = Vec::new();
    while let Ok(task) = manager.next_task(0) {
        manager.begin(&task);
        sizes.push(task.inputs.len());
    }
    let left = total - sizes.iter().sum::<usize>();
    (sizes, left)
}

/// `UnifiedCompactionStrategyTest.testBucketSelection…`.
#[test]
fn buckets_are_selected_by_overlap() {
    use Inclusion::{None, Single, Transitive};
    assert_eq!(selections(&[10; 4], Transitive), (vec![4; 10], 0));
    for inclusion in [Transitive, Single] {
        assert_eq!(selections(&[10, 5, 10, 5], inclusion), (vec![6; 5], 0));
    }
    assert_eq!(selections(&[10, 5, 10, 5], None), (vec![4; 5], 10));
    assert_eq!(selections(&[25, 15, 10], Transitive), (vec![10; 5], 0));
    let (mut single, left) = selections(&[25, 15, 10], Single);
    single.sort_unstable();
    assert_eq!((single, left), ([[4; 5], [6; 5]].concat(), 0));
    assert_eq!(selections(&[25, 15, 10], None), (vec![3; 10], 20));
}

/// The first bucket, the second, and the first again: Cassandra chooses at random.
#[test]
fn equal_buckets_are_enumerated() {
    let pick = |tie| {
        let sstables = vec![
            over(1, MIB, 0.0, 0.1),
            over(2, MIB, 0.0, 0.1),
            over(3, MIB, 0.5, 0.6),
            over(4, MIB, 0.5, 0.6),
        ];
        let options = parsed(&[("scaling_parameters", "N")]);
        ids(&load(options, TieBreak::Nth(tie), sstables)
            .next_task(0)
            .expect("a task"))
    };
    assert_eq!(
        [pick(0), pick(1), pick(2)],
        [vec![1, 2], vec![3, 4], vec![1, 2]]
    );
}

/// SSTables over the whole ring, of a number in L0 and one in L1.
fn in_two_levels(scaling: &str, lower: u64, upper: u64) -> CompactionStrategyManager {
    let whole = |id, bytes| Sstable {
        token_space_coverage: Some(1.0),
        ..over(id, bytes, 0.0, 0.9)
    };
    let mut sstables: Vec<Sstable> = (0..lower).map(|id| whole(id, MIB)).collect();
    sstables.extend((0..upper).map(|id| whole(100 + id, 12 * MIB)));
    load(
        parsed(&[("scaling_parameters", scaling)]),
        TieBreak::First,
        sstables,
    )
}

#[test]
fn a_level_below_its_threshold_blocks_others() {
    let stalled = |level, overlap, threshold| Idle::Stalled {
        level,
        overlap,
        threshold,
    };
    // T10: five do not reach ten, but are more than the four that reach two.
    let idle = in_two_levels("T10, L4", 5, 4).next_task(0).unwrap_err();
    assert_eq!(idle[0].1, stalled(0, 5, 10));
    let idle = in_two_levels("L4, T8", 3, 5).next_task(0).unwrap_err();
    assert_eq!(idle[0].1, stalled(1, 5, 8));
    // With equal overlap the lower level is considered.
    let idle = in_two_levels("T10, L4", 4, 4).next_task(0).unwrap_err();
    assert_eq!(idle[0].1, stalled(0, 4, 10));
    let task = in_two_levels("T10, L4", 3, 4).next_task(0).expect("a task");
    assert_eq!(ids(&task), [100, 101, 102, 103]);
    let idle = in_two_levels("T10", 3, 4).next_task(0).unwrap_err();
    assert_eq!(
        idle[0].1,
        Idle::LowOverlap {
            level: 1,
            overlap: 4,
            threshold: 10
        }
    );
}

#[test]
fn late_compactions_select_the_oldest() {
    let sstables = (0..55).map(|id| over(id, MIB, 0.0, 0.9)).collect();
    let mut manager = load(
        UnifiedOptions::new(Release::V6_0),
        TieBreak::First,
        sstables,
    );
    let task = manager.next_task(0).expect("a task");
    assert_eq!(ids(&task), (0..16).collect::<Vec<_>>());
    assert_eq!(manager.remaining_tasks(), 55 / 4);
    let limited = parsed(&[("max_sstables_to_compact", "6")]);
    let sstables = (0..12).map(|id| over(id, MIB, 0.0, 0.9)).collect();
    let task = load(limited, TieBreak::First, sstables)
        .next_task(0)
        .expect("a task");
    assert_eq!(ids(&task), (0..6).collect::<Vec<_>>());
}

#[test]
fn outputs_are_split_into_shards() {
    let sstables = (0..4).map(|id| over(id, 600 * MIB, 0.0, 0.999)).collect();
    let options = parsed(&[
        ("target_sstable_size", "100MiB"),
        ("min_sstable_size", "0B"),
        ("sstable_growth", "0"),
    ]);
    let task = load(options, TieBreak::First, sstables)
        .next_task(0)
        .expect("a task");
    let Split::Shards(shards) = task.output.split else {
        panic!("not split: {task:?}");
    };
    assert!(shards.is_parallel);
    assert_eq!(shards.boundaries.len(), 31);
    assert_eq!(shards.boundaries[15], Token(0));
    assert_eq!(task.output.level, 0);
}

/// As Cassandra 6.0-alpha2 divides them.
#[test]
fn a_parallel_shard_is_divided_by_its_own_density() {
    let mut sstables: Vec<_> = (0..4).map(|id| over(id, 6 * MIB, 0.0, 0.15)).collect();
    sstables.push(over(4, 35 * MIB, 0.13, 0.999));
    let sstables: Vec<_> = sstables.into_iter().map(Arc::new).collect();
    let of = |is_parallel, count| {
        let options = parsed(&[
            ("base_shard_count", "4"),
            ("min_sstable_size", "0B"),
            ("target_sstable_size", "7MiB"),
            ("sstable_growth", "0"),
            ("parallelize_output_shards", is_parallel),
        ]);
        match Unified::new(options).output(&sstables[..count]).split {
            Split::Shards(shards) => shards.boundaries,
            split => panic!("not split into shards: {split:?}"),
        }
    };
    // Of 32 parts of the ring.
    let parts = |boundaries: Vec<Token>| -> Vec<i128> {
        let part = |token: &Token| (token.0 + (1 << 63) + 1) >> 59;
        boundaries.iter().map(part).collect()
    };
    let whole = [4, 8, 12, 16, 20, 24, 28];
    assert_eq!(parts(of("false", 5)), whole);
    // The others have less in total than the first.
    let finer = [1, 2, 3];
    assert_eq!(parts(of("true", 5)), [&finer[..], &whole].concat());
}

/// Of partitions that are a few tokens apart, all boundaries in the ring would take 10 TiB.
#[test]
fn shards_of_great_density_are_those_of_the_inputs() {
    let sstables = |tokens: [i128; 2]| {
        let [first, last] = tokens.map(Token);
        (0..4).map(move |id| Sstable::new(SstableId(id), 600 * MIB, first, last))
    };
    for is_parallel in ["false", "true"] {
        let options = parsed(&[
            ("base_shard_count", "1048576"),
            ("target_sstable_size", "1MiB"),
            ("min_sstable_size", "0B"),
            ("sstable_growth", "0"),
            ("parallelize_output_shards", is_parallel),
        ]);
        // A shard has 2^24 tokens.
        for (last, count) in [(1_400_000, 1), (1 << 25, 2)] {
            let mut manager = load(
                options.clone(),
                TieBreak::First,
                sstables([-1, last]).collect(),
            );
            let [task] = &manager.major(0, false)[..] else {
                panic!("not one task");
            };
            assert_eq!(task.output, manager.next_task(0).expect("a task").output);
            let Split::Shards(shards) = &task.output.split else {
                panic!("not split: {task:?}");
            };
            assert_eq!(
                (shards.boundaries[0], shards.boundaries.len()),
                (Token(0), count)
            );
        }
        // One shard has them all.
        let mut manager = load(options, TieBreak::First, sstables([1, 1_400_000]).collect());
        let shards = Split::Shards(Shards {
            is_parallel: is_parallel == "true",
            boundaries: Vec::new(),
        });
        assert_eq!(manager.next_task(0).expect("a task").output.split, shards);
    }
}

#[test]
fn small_outputs_are_not_split() {
    let sstables = (0..4).map(|id| over(id, MIB, 0.0, 0.999)).collect();
    let task = load(
        UnifiedOptions::new(Release::V6_0),
        TieBreak::First,
        sstables,
    );
    let output = task_output(task);
    assert_eq!(output, Output::default());
}

fn task_output(mut manager: CompactionStrategyManager) -> Output {
    manager.next_task(0).expect("a task").output
}

#[test]
fn expired_sstables_are_found_one_interval_after_the_start() {
    let expired = Sstable {
        max_local_deletion_time: 1,
        max_timestamp: -1,
        ..over(1, MIB, 0.0, 0.5)
    };
    let mut manager = load(
        UnifiedOptions::new(Release::V6_0),
        TieBreak::First,
        vec![expired],
    );
    manager.node_mut().gc_grace_s = 0;
    assert!(manager.next_task(600_000).is_err());
    let task = manager.next_task(600_001).expect("a task");
    assert_eq!((ids(&task), task.kind), (vec![1], TaskKind::Expired));
}

/// `UnifiedCompactionStrategyTest.testMaximalSelection`.
#[test]
fn a_major_compaction_of_five_is_one_per_non_overlapping_set() {
    let mut sstables = Vec::new();
    for (count, mib) in [(10u64, 100), (15, 200), (25, 400)] {
        for place in 0..count {
            let width = 1.0 / count as f64;
            let first = width * place as f64;
            let id = sstables.len() as u64;
            sstables.push(over(id, mib * MIB, first + 1e-6, first + width - 1e-6));
        }
    }
    let mut five = load(
        UnifiedOptions::new(Release::V5_0),
        TieBreak::First,
        sstables.clone(),
    );
    let bytes = |manager: &CompactionStrategyManager, task: &Task| {
        let sizes = task
            .inputs
            .iter()
            .filter_map(|&id| Some(manager.live().get(id)?.data_bytes));
        sizes.sum::<u64>() / MIB
    };
    let tasks = five.major(0, false);
    let found: Vec<(usize, u64)> = tasks
        .iter()
        .map(|task| (task.inputs.len(), bytes(&five, task)))
        .collect();
    assert_eq!(found, [(10, 2 * 100 + 3 * 200 + 5 * 400); 5]);
    // 6.0 joins what shares an output shard: 14,000 MiB are four shards, across which SSTables overlap.
    let mut six = load(
        UnifiedOptions::new(Release::V6_0),
        TieBreak::First,
        sstables,
    );
    assert_eq!(six.major(0, false).len(), 1);
}

#[test]
fn invalid_options_are_refused_with_cassandras_messages() {
    for (name, value, words) in [
        (
            "base_shard_count",
            "0",
            "Invalid configuration, base_shard_count should be positive: 0",
        ),
        (
            "base_shard_count",
            "1048577",
            "base_shard_count of more than 1048576 is not supported: 1048577",
        ),
        (
            "target_sstable_size",
            "100KiB",
            "target_sstable_size 100KiB is not acceptable, size must be at least 1.000MiB",
        ),
        (
            "min_sstable_size",
            "800MiB",
            "Invalid configuration, min_sstable_size (800.000MiB) should be less than 70% of the \
             targetSSTableSize (1.000GiB)",
        ),
        (
            "sstable_growth",
            "1.1",
            "sstable_growth 1.1 must be between 0 and 1",
        ),
        (
            "expired_sstable_check_frequency_seconds",
            "1m",
            "1m is not a parsable long (base10) for expired_sstable_check_frequency_seconds",
        ),
        (
            "overlap_inclusion_method",
            "all",
            "Invalid overlap inclusion method all. The valid options are [NONE, SINGLE, TRANSITIVE].",
        ),
        (
            "min_threshold",
            "4",
            "Properties specified [min_threshold] are not understood by UnifiedCompactionStrategy",
        ),
    ] {
        let found = UnifiedOptions::from_options(&of(&[(name, value)]), Release::V6_0);
        assert_eq!(found.unwrap_err().0, words);
    }
}

#[test]
fn options_are_parsed_in_any_case_where_cassandra_does() {
    let options = parsed(&[
        ("overlap_inclusion_method", "single"),
        ("parallelize_output_shards", "FALSE"),
        ("target_sstable_size", "NaNB"),
    ]);
    assert_eq!(options.inclusion, Inclusion::Single);
    assert!(!options.is_parallel);
    // Not a number is zero as a `long`.
    assert_eq!(options.shards.target_bytes, 0.0);
}
