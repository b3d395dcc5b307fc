use compactor_testkit::Random;

use super::*;

fn build(times: impl IntoIterator<Item = i64>) -> TombstoneHistogram {
    let mut builder = TombstoneHistogramBuilder::new();
    times.into_iter().for_each(|time| builder.add(time));
    builder.build()
}

#[test]
fn times_round_up_to_minutes() {
    let histogram = build([0, 1, 59, 60, 61, 119, 120, 60]);
    assert_eq!(histogram.bins(), [(0, 1), (60, 4), (120, 3)]);
    assert_eq!(build([MAX_DELETION_TIME]).bins(), [(MAX_DELETION_TIME, 1)]);
    assert_eq!(build([]).bins(), []);
}

#[test]
fn the_hundred_and_first_point_merges_the_closest() {
    let mut times: Vec<i64> = (0..99).map(|i| i * 6000).collect();
    times.extend([99 * 6000, 99 * 6000 + 60]);
    let histogram = build(times);
    assert_eq!(histogram.bins().len(), 100);
    // The mean of both is half a minute after the first, rounded up.
    assert_eq!(histogram.bins().last(), Some(&(99 * 6000 + 60, 2)));
}

/// The sum of counts is constant; points ascend and stay in the range of the added times.
#[test]
fn more_distinct_points_than_the_spool_holds() {
    let mut random = Random::new(7);
    let times: Vec<i64> = (0..300_000)
        .map(|_| random.below(4_000_000_000) as i64)
        .collect();
    let histogram = build(times.iter().copied());
    assert_eq!(histogram.bins().len(), 100);
    assert_eq!(
        histogram
            .bins()
            .iter()
            .map(|bin| i64::from(bin.1))
            .sum::<i64>(),
        300_000
    );
    assert!(histogram.bins().is_sorted_by(|a, b| a.0 < b.0));
}

/// CRC32 of the bins, as text, from Cassandra's builder for the same times.
#[test]
fn bins_that_cassandra_made() {
    for (seed, count, range, crc) in [
        (0, 50, 1_000_000, 700_416_608),
        (1, 5000, 4_000_000_000, 744_605_059),
        (2, 200_000, 4_294_967_294, 3_172_850_037),
        (5, 400_000, 30_000_000, 1_357_824_680),
    ] {
        let mut state = 12_345u64 + seed;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let mut builder = TombstoneHistogramBuilder::new();
        for _ in 0..count {
            let time = (next() % range) as i64;
            (0..1 + next() % 3).for_each(|_| builder.add(time));
        }
        let bins = builder.build();
        let text: Vec<String> = bins
            .bins()
            .iter()
            .map(|bin| format!("{}:{}", bin.0, bin.1))
            .collect();
        assert_eq!(
            crate::compression::crc32(text.join(" ").as_bytes()),
            crc,
            "{count}"
        );
    }
}

#[test]
fn estimated_sums() {
    let histogram = build([60, 120, 120, 120]);
    assert_eq!(histogram.sum(59), 0.0);
    assert_eq!(histogram.sum(120), 4.0);
    // Half way: 1 - 1 + (1 + 2) * 0.5 / 2 + 1 / 2
    assert_eq!(histogram.sum(90), 1.25);
}

#[test]
fn both_forms_round_trip() {
    let histogram = build([60, 120, 120]);
    for version in [Version::Nb, Version::Oa] {
        let mut out = Vec::new();
        histogram.write(&mut out, version);
        let len = if version == Version::Oa { 12 } else { 16 };
        assert_eq!(out.len(), 8 + 2 * len);
        let parsed = TombstoneHistogram::parse(&mut ByteReader::new(&out), version).unwrap();
        assert_eq!(parsed, histogram);
        for len in 0..out.len() {
            let mut reader = ByteReader::new(&out[..len]);
            assert!(TombstoneHistogram::parse(&mut reader, version).is_err());
        }
    }
}

/// A damaged file may have any times.
#[test]
fn wild_times_count_as_the_last_one() {
    let mut builder = TombstoneHistogramBuilder::new();
    for time in [60, 60 << 40, -60, -30, i64::MIN, i64::MAX - 1, 60] {
        builder.add(time);
    }
    assert_eq!(builder.build().bins(), [(60, 2), (MAX_DELETION_TIME, 5)]);
}

#[test]
fn wild_points_saturate_and_join() {
    let mut out = Vec::new();
    out.put_i32(100);
    out.put_i32(4);
    for (point, count) in [(i64::MIN, 1), (60, i32::MAX), (i64::MAX, 2), (60, 5)] {
        out.put_i64(point);
        out.put_i32(count);
    }
    let parsed = TombstoneHistogram::parse(&mut ByteReader::new(&out), Version::Oa).unwrap();
    assert_eq!(parsed.bins(), [(60, i32::MAX), (MAX_DELETION_TIME, 3)]);

    let mut out = Vec::new();
    out.put_i32(100);
    out.put_i32(2);
    for (point, count) in [(f64::NAN, 1), (-1.0, i64::MAX)] {
        out.put_f64(point);
        out.put_i64(count);
    }
    let parsed = TombstoneHistogram::parse(&mut ByteReader::new(&out), Version::Nb).unwrap();
    assert_eq!(parsed.bins(), [(0, 1), (2_147_483_646, i32::MAX)]);
}
