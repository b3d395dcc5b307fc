use super::*;

fn bytes_of(estimator: &HyperLogLogPlus) -> Vec<u8> {
    let mut out = Vec::new();
    estimator.write(&mut out);
    out
}

fn of_ints(range: std::ops::Range<i32>) -> HyperLogLogPlus {
    let mut estimator = HyperLogLogPlus::new();
    range.for_each(|key| estimator.add(&key.to_be_bytes()));
    estimator
}

#[test]
fn bytes_that_cassandra_wrote() {
    let expected = [
        0xff, 0xff, 0xff, 0xfe, 0x0d, 0x19, 0x01, 0x03, 0xa2, 0x8d, 0xfb, 0x09, 0xbc, 0xb1, 0x8e,
        0x02, 0x82, 0x9d, 0xad, 0x06,
    ];
    let estimator = of_ints(0..3);
    assert_eq!(bytes_of(&estimator), expected);
    let parsed = HyperLogLogPlus::parse(&expected).unwrap();
    assert_eq!(bytes_of(&parsed), expected);
    assert_eq!((parsed.cardinality(), estimator.cardinality()), (3, 3));
}

/// Keys of 1 to 40 bytes, the same in every run.
fn key(seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    next();
    let len = 1 + next() % 40;
    (0..len).map(|_| (next() >> 32) as u8).collect()
}

fn of_keys(range: std::ops::Range<u64>) -> HyperLogLogPlus {
    let mut estimator = HyperLogLogPlus::new();
    range.for_each(|seed| estimator.add(&key(seed)));
    estimator
}

/// Estimates and CRC32 of the serialized bytes of stream-lib 2.5.2 for the same keys.
#[test]
fn estimates_that_stream_lib_gave() {
    for (keys, estimate, crc) in [
        (0, 0, 974_759_724),
        (100, 100, 203_528_761),
        (1537, 1535, 2_531_060_933),
        (6145, 6127, 2_185_693_375),
        (7000, 6976, 1_965_359_576),
        (7681, 7649, 3_286_441_229),
        (12_000, 12_134, 116_489_869),
        (30_000, 29_726, 2_821_634_828),
        (50_000, 50_035, 935_724_468),
        (100_000, 98_929, 3_993_268_239),
    ] {
        let estimator = of_keys(0..keys);
        let found = crate::compression::crc32(&bytes_of(&estimator));
        assert_eq!((estimator.cardinality(), found), (estimate, crc), "{keys}");
    }
    assert_eq!(of_ints(0..100_000).cardinality(), 96_278);
}

/// Unions computed by stream-lib 2.5.2.
#[test]
fn unions_that_stream_lib_gave() {
    for (first, second, estimate) in [
        (0..100, 50..200, 200),
        (0..5000, 2500..7500, 7470),
        (0..6000, 6000..12_000, 12_134),
        (0..7000, 0..3, 6976),
        (0..3, 0..7000, 6976),
        (0..20_000, 10_000..30_000, 29_726),
        (0..1500, 1500..3000, 2996),
        (0..7600, 7600..7700, 7668),
        (0..7000, 7000..7300, 7271),
    ] {
        let (a, b) = (of_keys(first), of_keys(second));
        assert_eq!(HyperLogLogPlus::estimate_union([&a, &b]), Some(estimate));
    }
}

#[test]
fn repeated_keys_do_not_count() {
    let mut estimator = of_ints(0..1000);
    (0..1000i32).for_each(|key| estimator.add(&key.to_be_bytes()));
    assert_eq!(estimator.cardinality(), 1000);
    assert_eq!(bytes_of(&estimator), bytes_of(&of_ints(0..1000)));
    assert_eq!(HyperLogLogPlus::new().cardinality(), 0);
}

#[test]
fn estimates_stay_close_through_the_change_to_registers() {
    for keys in [
        1, 10, 1536, 1537, 5000, 6144, 6145, 8000, 20_000, 100_000, 1_000_000,
    ] {
        let estimate = of_ints(0..keys).cardinality() as f64;
        let error = (estimate / f64::from(keys) - 1.0).abs();
        assert!(error < 0.05, "{keys}: {estimate}");
    }
}

#[test]
fn every_state_round_trips() {
    for keys in [0, 1, 2000, 7000, 50_000] {
        let estimator = of_ints(0..keys);
        let bytes = bytes_of(&estimator);
        let parsed = HyperLogLogPlus::parse(&bytes).unwrap();
        assert_eq!(bytes_of(&parsed), bytes);
        assert_eq!(parsed.cardinality(), estimator.cardinality());
        for len in (0..bytes.len()).step_by(bytes.len() / 50 + 1) {
            assert!(
                HyperLogLogPlus::parse(&bytes[..len]).is_err(),
                "{keys} {len}"
            );
        }
    }
}

#[test]
fn union_of_overlapping_sets() {
    for (first, second, union) in [
        (0..500, 250..750, 750.0),
        (0..5000, 2500..7500, 7500.0),
        (0..100, 0..100_000, 100_000.0),
        (0..100_000, 50..100, 100_000.0),
        (0..60_000, 30_000..90_000, 90_000.0),
    ] {
        let (a, b) = (of_ints(first), of_ints(second));
        let estimate = HyperLogLogPlus::estimate_union([&a, &b]).unwrap() as f64;
        assert!((estimate / union - 1.0).abs() < 0.05, "{union}: {estimate}");
        let mut merged = a.clone();
        merged.merge(&b);
        assert!((merged.cardinality() as f64 / union - 1.0).abs() < 0.05);
    }
    assert_eq!(HyperLogLogPlus::estimate_union([]), None);
    assert_eq!(HyperLogLogPlus::estimate_union([&of_ints(0..9)]), Some(9));
}

#[test]
fn registers_agree_with_the_sparse_list() {
    let keys = 0..5000i32;
    let mut normal = of_ints(keys.clone());
    normal.make_normal();
    let mut direct = HyperLogLogPlus {
        state: State::Normal(Box::new([0; REGISTER_WORDS])),
    };
    keys.for_each(|key| direct.add(&key.to_be_bytes()));
    assert_eq!(normal, direct);
}

#[test]
fn other_layouts_are_named() {
    for (bytes, message) in [
        ([0, 0, 0, 13, 0, 0, 0, 25].as_slice(), "layout 13"),
        (
            &[0xff, 0xff, 0xff, 0xfe, 14, 25, 1, 0],
            "precisions 14 and 25",
        ),
        (&[0xff, 0xff, 0xff, 0xfe, 13, 25, 2, 0], "format 0 or 1"),
        (&[0xff, 0xff, 0xff, 0xfe, 13, 25, 0, 4], "5464 bytes"),
        (
            &[0xff, 0xff, 0xff, 0xfe, 13, 25, 1, 0xff, 0xff, 0xff, 0xff, 7],
            "at most 0 entries",
        ),
        (
            &[0xff, 0xff, 0xff, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            "at most 5 bytes",
        ),
    ] {
        let error = HyperLogLogPlus::parse(bytes).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}

proptest::proptest! {
    #[test]
    fn hostile_entries(deltas in proptest::collection::vec(0u32.., 0..200)) {
        let mut bytes = vec![0xff, 0xff, 0xff, 0xfe, 13, 25, 1];
        put_leb128(&mut bytes, deltas.len() as u32);
        deltas.iter().for_each(|&delta| put_leb128(&mut bytes, delta));
        let mut parsed = HyperLogLogPlus::parse(&bytes).unwrap();
        parsed.cardinality();
        parsed.merge(&of_ints(0..100));
        parsed.make_normal();
        parsed.cardinality();
    }
}
