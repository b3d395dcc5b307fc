use proptest::prelude::*;

use super::*;

fn of_sizes(sizes: &[u64]) -> Vec<SstableState> {
    let state = |&bytes: &u64| SstableState {
        data_bytes: bytes,
        bytes_on_disk: bytes,
        hotness: 0.0,
    };
    sizes.iter().map(state).collect()
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
fn the_largest_average_goes_first() {
    let strategy = SizeTiered {
        buckets: no_min(),
        ..SizeTiered::default()
    };
    let sstables = of_sizes(&[10, 10, 10, 10, 900, 900, 900, 900, 900, 70, 70]);
    assert_eq!(strategy.next(&sstables), [4, 5, 6, 7, 8]);
    assert_eq!(
        strategy.next_concurrent(&sstables),
        [vec![4, 5, 6, 7, 8], vec![0, 1, 2, 3]]
    );
}

#[test]
fn heat_goes_before_size() {
    let strategy = SizeTiered {
        buckets: no_min(),
        thresholds: Thresholds { min: 2, max: 2 },
        ..SizeTiered::default()
    };
    let mut sstables = of_sizes(&[10, 10, 10, 900, 900]);
    sstables[1].hotness = 0.5;
    sstables[2].hotness = 1.0;
    assert_eq!(strategy.next(&sstables), [2, 1]);
}

#[test]
fn no_more_than_the_threshold_and_the_smallest_first() {
    let strategy = SizeTiered::default();
    let sizes: Vec<u64> = (0..100).rev().collect();
    let next = strategy.next(&of_sizes(&sizes));
    assert_eq!(next, (68..100).rev().collect::<Vec<_>>());
    // Three compactions of 32 each, and enough are left for one of four.
    let concurrent = strategy.next_concurrent(&of_sizes(&sizes));
    let lens: Vec<usize> = concurrent.iter().map(Vec::len).collect();
    assert_eq!(lens, [32, 32, 32, 4]);
    assert_eq!(
        strategy.estimated_tasks(&[(0..100).collect(), (0..3).collect()]),
        4
    );
}

#[test]
fn the_largest_is_compacted_for_its_tombstones() {
    let strategy = SizeTiered::default();
    let sstables = of_sizes(&[5, 9, 7, 9, 20]);
    let found = strategy.next_for_tombstones(&sstables, |place| place != 4);
    assert_eq!(found, Some(1));
    assert_eq!(strategy.next_for_tombstones(&sstables, |_| false), None);
}

#[test]
fn bad_options_are_refused_in_cassandras_words() {
    let refused = |pairs: &[(&str, &str)], words: &str| {
        let owned = |(k, v): &(&str, &str)| ((*k).to_owned(), (*v).to_owned());
        let options = pairs.iter().map(owned).collect();
        assert_eq!(SizeTiered::from_options(&options).unwrap_err().0, words);
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
    /// No SSTable is in two jobs, no job is too small or too large, and no compaction is left.
    #[test]
    fn jobs_are_disjoint(
        sizes in prop::collection::vec(1u64..1 << 32, 0..200),
        min in 2usize..6,
        more in 0usize..40,
        min_size in prop_oneof![Just(0i64), Just(50i64 << 20), 0i64..1 << 32],
    ) {
        let strategy = SizeTiered {
            thresholds: Thresholds { min, max: min + more },
            buckets: BucketOptions { min_sstable_size: min_size, ..BucketOptions::default() },
            ..SizeTiered::default()
        };
        let sstables = of_sizes(&sizes);
        let jobs = strategy.next_concurrent(&sstables);
        let mut seen = vec![false; sizes.len()];
        for job in &jobs {
            prop_assert!((min..=min + more).contains(&job.len()));
            for &place in job {
                prop_assert!(!std::mem::replace(&mut seen[place], true));
            }
        }
        let left: Vec<SstableState> = (0..sizes.len()).filter(|p| !seen[*p]).map(|p| sstables[p]).collect();
        prop_assert!(strategy.next(&left).is_empty());
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
