use super::*;
use crate::partitioner::Partitioner;

fn hash(key: &[u8]) -> KeyHash {
    Partitioner::Murmur3.hash_key(key)
}

#[test]
fn bits_that_cassandra_set() {
    let mut filter = BloomFilter::for_keys(3, 0.01).unwrap().unwrap();
    assert_eq!((filter.hash_count(), filter.bit_count()), (5, 64));
    for key in 0..3i32 {
        filter.add_key(&hash(&key.to_be_bytes()));
    }
    let mut out = Vec::new();
    filter.write(&mut out);
    assert_eq!(
        out,
        [
            0, 0, 0, 5, 0, 0, 0, 1, 0x12, 0x00, 0x82, 0xc8, 0x40, 0x20, 0x22, 0x00
        ]
    );
    assert_eq!(BloomFilter::parse(&out, Version::Nb).unwrap(), filter);
}

#[test]
fn bit_positions_by_javas_remainder() {
    let filter = BloomFilter::for_keys(50, 0.01).unwrap().unwrap();
    for (h1, h2) in [
        (1u64, 1u64 << 63),
        (u64::MAX, 5),
        (1 << 63, 1 << 63),
        (77, u64::MAX / 2),
    ] {
        let bits = filter.bit_count() as i64;
        let expected: Vec<(usize, u8)> = (0..5i64)
            .map(|i| {
                let sum = (h2 as i64).wrapping_add((h1 as i64).wrapping_mul(i));
                let bit = (sum % bits).unsigned_abs() as usize;
                (bit / 8, 1 << (bit % 8))
            })
            .collect();
        assert_eq!(filter.bit_positions(h1, h2).collect::<Vec<_>>(), expected);
    }
}

proptest::proptest! {
    #[test]
    fn remainders_are_those_of_a_division(value in 0..=1u64 << 63, words in 1..=i32::MAX as u64) {
        for words in [words, words % 1000 + 1, 1 << (words % 31)] {
            let bits = 64 * words;
            for value in [value, value - value % bits, (value - value % bits).saturating_sub(1)] {
                let found = remainder(value, bits, u64::MAX / bits);
                proptest::prop_assert_eq!(found, value % bits, "{} % {}", value, bits);
            }
        }
    }
}

#[test]
fn keys_are_never_missed_and_strangers_rarely_pass() {
    for (chance, limit) in [(0.1, 0.12), (0.01, 0.013), (0.0001, 0.0004)] {
        let mut filter = BloomFilter::for_keys(10_000, chance).unwrap().unwrap();
        let key = |number: u32| hash(format!("key{number}").as_bytes());
        (0..10_000).for_each(|number| filter.add_key(&key(number)));
        assert!((0..10_000).all(|number| filter.may_contain_key(&key(number))));
        let passed = (10_000..60_000)
            .filter(|&n| filter.may_contain_key(&key(n)))
            .count();
        assert!((passed as f64) < limit * 50_000.0, "{chance}: {passed}");
    }
}

#[test]
fn old_words_are_reversed() {
    let new = [0, 0, 0, 5, 0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8];
    let old = [0, 0, 0, 5, 0, 0, 0, 1, 8, 7, 6, 5, 4, 3, 2, 1];
    assert_eq!(
        BloomFilter::parse(&new, Version::Na).unwrap(),
        BloomFilter::parse(&old, Version::Me).unwrap()
    );
}

#[test]
fn an_empty_file_lets_everything_pass() {
    let filter = BloomFilter::parse(&[], Version::Oa).unwrap();
    assert!(filter.may_contain(1, 2));
    let mut out = Vec::new();
    filter.write(&mut out);
    assert!(out.is_empty());
    assert_eq!(BloomFilter::for_keys(10, 1.0).unwrap(), None);
}

#[test]
fn contradictions_and_truncations() {
    let good = [0, 0, 0, 5, 0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8];
    for len in 1..good.len() {
        assert!(
            BloomFilter::parse(&good[..len], Version::Oa).is_err(),
            "{len}"
        );
    }
    for (at, byte) in [
        (0, 0x80),
        (3, 0),
        (3, 22),
        (4, 0xff),
        (4, 0x7f),
        (7, 0),
        (7, 2),
    ] {
        let mut bad = good;
        bad[at] = byte;
        assert!(BloomFilter::parse(&bad, Version::Oa).is_err(), "{at}");
    }
    let mut long = good.to_vec();
    long.push(0);
    assert!(BloomFilter::parse(&long, Version::Oa).is_err());
}

#[test]
fn sizes() {
    assert_eq!(
        BloomFilter::for_keys(0, 0.01).unwrap().unwrap().bit_count(),
        64
    );
    // 1000 * 10 + 20 bits in whole words.
    assert_eq!(
        BloomFilter::for_keys(1000, 0.01)
            .unwrap()
            .unwrap()
            .bit_count(),
        10_048
    );
    assert!(BloomFilter::for_keys(u64::MAX, 0.01).is_err());
    assert!(BloomFilter::for_keys(1 << 34, 0.01).is_err());
}
