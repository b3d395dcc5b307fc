use super::*;
use crate::sstable::SstableId;

/// Token at a percentage of the ring, as in `ShardManagerTest`.
fn at(percent: f64) -> Token {
    let minimum = Partitioner::Murmur3.minimum();
    Partitioner::Murmur3.split(minimum, minimum, percent / 100.0)
}

fn percent_of(token: Token) -> i64 {
    (Partitioner::Murmur3.size(Partitioner::Murmur3.minimum(), token) * 100.0).round() as i64
}

/// Ring with ranges by percentages; one that wraps is in two parts.
fn ring(ranges: &[(f64, f64)], weights: &[f64], bounds: Vec<Token>) -> Ring {
    let minimum = Partitioner::Murmur3.minimum();
    let mut weighted = Vec::new();
    for (place, &(left, right)) in ranges.iter().enumerate() {
        let weight = weights.get(place).copied().unwrap_or(1.0);
        let range = |left, right| WeightedRange {
            left,
            right,
            weight,
        };
        let start = if left == 0.0 { minimum } else { at(left) };
        let end = if right == 100.0 { minimum } else { at(right) };
        if left < right {
            weighted.push(range(start, end))
        } else {
            weighted.extend([range(minimum, end), range(start, minimum)])
        }
    }
    weighted.sort_by_key(|range| range.left);
    Ring::new(Partitioner::Murmur3, weighted, bounds)
}

fn boundaries(ranges: &[(f64, f64)], weights: &[f64], shards: usize) -> Vec<i64> {
    let ring = ring(ranges, weights, Vec::new());
    ring.boundaries(shards)
        .into_iter()
        .map(percent_of)
        .collect()
}

/// Boundaries for several directories, which divide the node's ranges evenly (`Splitter.splitOwnedRanges`).
fn with_directories(
    ranges: &[(f64, f64)],
    weights: &[f64],
    shards: usize,
    directories: usize,
) -> Vec<i64> {
    let mut bounds = ring(ranges, weights, Vec::new()).boundaries(directories);
    bounds.push(Token(i128::from(i64::MAX)));
    let ring = ring(ranges, weights, bounds);
    ring.boundaries(shards)
        .into_iter()
        .map(percent_of)
        .collect()
}

/// `ShardManagerTest.testBoundaries…`.
#[test]
fn boundaries_divide_the_ranges_evenly() {
    assert_eq!(boundaries(&[(10.0, 50.0)], &[], 1), []);
    assert_eq!(boundaries(&[(10.0, 50.0)], &[], 2), [30]);
    assert_eq!(with_directories(&[(10.0, 50.0)], &[], 1, 2), [30]);
    let two = [(10.0, 51.0), (61.0, 70.0)];
    assert_eq!(boundaries(&two, &[], 5), [20, 30, 40, 50]);
    assert_eq!(with_directories(&two, &[], 1, 5), [20, 30, 40, 50]);
    assert_eq!(boundaries(&[(50.0, 10.0)], &[], 2), [70]);
    assert_eq!(
        boundaries(&[(91.0, 31.0), (61.0, 71.0)], &[], 5),
        [10, 20, 30, 70]
    );
}

#[test]
fn boundaries_within_directories() {
    assert_eq!(
        with_directories(&[(0.0, 90.0)], &[], 3, 3),
        [10, 20, 30, 40, 50, 60, 70, 80]
    );
    assert_eq!(
        with_directories(&[(0.0, 51.0), (61.0, 100.0)], &[], 3, 3),
        [10, 20, 30, 40, 50, 70, 80, 90]
    );
    assert_eq!(
        with_directories(&[(0.0, 49.0), (59.0, 100.0)], &[], 3, 3),
        [10, 20, 30, 40, 60, 70, 80, 90]
    );
    let many = [
        (0.0, 9.0),
        (11.0, 20.0),
        (21.0, 39.0),
        (41.0, 50.0),
        (51.0, 60.0),
        (64.0, 68.0),
        (68.0, 100.0),
    ];
    assert_eq!(
        with_directories(&many, &[], 3, 3),
        [12, 23, 33, 45, 56, 70, 80, 90]
    );
}

#[test]
fn boundaries_of_named_directories() {
    let ring = ring(&[(0.0, 100.0)], &[], vec![at(32.0), at(72.0), at(100.0)]);
    let found: Vec<i64> = ring.boundaries(4).into_iter().map(percent_of).collect();
    assert_eq!(found, [8, 16, 24, 32, 42, 52, 62, 72, 79, 86, 93]);
}

#[test]
fn weights_shift_boundaries() {
    // 2 / (n - i).
    assert_eq!(
        boundaries(&[(10.0, 51.0), (61.0, 70.0)], &[1.0, 2.0], 5),
        [22, 34, 45, 64]
    );
    assert_eq!(
        with_directories(&[(0.0, 51.0), (61.0, 100.0)], &[1.0, 2.0], 3, 3),
        [14, 29, 43, 64, 71, 79, 86, 93]
    );
}

fn between(first: f64, last: f64) -> Sstable {
    Sstable::new(SstableId(1), 100, at(first), at(last))
}

fn assert_near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
}

/// `ShardManagerTest.testRangeSpannedFullOwnership`.
#[test]
fn coverage_of_the_whole_ring() {
    let ring = Ring::default();
    assert_near(ring.coverage(&between(20.0, 70.0)), 0.5);
    assert_near(ring.coverage(&between(30.0, 30.0)), 1.0);
    let reported = |coverage| Sstable {
        token_space_coverage: Some(coverage),
        ..between(20.0, 70.0)
    };
    assert_near(ring.coverage(&reported(0.1)), 0.1);
    assert_near(ring.coverage(&reported(0.0)), 0.5);
    assert_near(ring.coverage(&reported(-1.0)), 0.5);
    assert_near(ring.coverage(&reported(f64::NAN)), 0.5);
    assert_near(ring.coverage(&reported(1e-50)), 1.0);
    assert_near(ring.density(&between(20.0, 70.0)), 200.0);
}

/// `ShardManagerTest.testRangeSpannedPartialOwnership`.
#[test]
fn coverage_of_owned_ranges() {
    let owned = [
        (5.0, 15.0),
        (30.0, 40.0),
        (45.0, 50.0),
        (70.0, 75.0),
        (75.0, 85.0),
        (90.0, 91.0),
        (92.0, 94.0),
        (98.0, 100.0),
    ];
    let ring = ring(&owned, &[], Vec::new());
    assert_near(ring.local_coverage(), 0.45);
    assert_near(ring.coverage(&between(20.0, 70.0)), 0.15);
    assert_near(ring.coverage(&between(50.0, 80.0)), 0.1);
    assert_near(ring.coverage(&between(60.0, 70.0)), 1.0);
    assert_near(ring.coverage(&between(60.0, 70.1)), 0.001);
}

#[test]
fn directories_by_first_token() {
    let ring = ring(&[(0.0, 100.0)], &[], vec![at(50.0), at(100.0)]);
    let directory = |first| ring.directory_of(&between(first, 99.0));
    assert_eq!(
        [directory(10.0), directory(50.0), directory(51.0)],
        [0, 0, 1]
    );
    let named = Sstable {
        directory: 3,
        ..between(1.0, 2.0)
    };
    assert_eq!(Ring::default().directory_of(&named), 3);
}
