use super::*;

const VECTOR: [u8; 60] = [
    0, 0, 0, 0x80, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0x80, 0, 0, 0, 1, // head
    4, 0, 0, 0, // offset, little-endian
    0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, // key and position
    0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 2, 0xee, 0xee, 0xee, 0xee,
];

fn vector() -> &'static [u8] {
    &VECTOR[..56]
}

#[test]
fn bytes_that_cassandra_wrote() {
    let summary = Summary::parse(vector(), Version::Nb).unwrap();
    assert_eq!(summary.entry(0), Some(([0, 0, 0, 1].as_slice(), 0)));
    assert_eq!(
        (summary.first_key.as_slice(), summary.last_key[3]),
        ([0, 0, 0, 1].as_slice(), 2)
    );
    let mut builder = SummaryBuilder::new(128);
    builder.add(&1i32.to_be_bytes(), 0);
    builder.add(&2i32.to_be_bytes(), 8);
    let mut out = Vec::new();
    builder
        .finish(&1i32.to_be_bytes(), &2i32.to_be_bytes())
        .write(&mut out);
    assert_eq!(out, vector());
}

#[test]
fn every_interval_th_key() {
    for (keys, interval, entries) in [
        (1, 1, 1),
        (5, 1, 5),
        (128, 128, 1),
        (129, 128, 2),
        (7, 3, 3),
    ] {
        let mut builder = SummaryBuilder::new(interval);
        for key in 0..keys {
            builder.add(format!("key{key}").as_bytes(), 10 * key);
        }
        let summary = builder.finish(b"key0", b"z");
        assert_eq!(
            (summary.len(), summary.size_at_full_sampling as usize),
            (entries, entries)
        );
        for (index, (key, position)) in summary.entries().enumerate() {
            let number = index as u64 * u64::from(interval);
            assert_eq!(
                (key, position),
                (format!("key{number}").as_bytes(), 10 * number)
            );
        }
        let mut out = Vec::new();
        summary.write(&mut out);
        assert_eq!(Summary::parse(&out, Version::Nb).unwrap(), summary);
    }
}

#[test]
fn truncations_and_contradictions() {
    for len in 0..vector().len() {
        assert!(
            Summary::parse(&vector()[..len], Version::Nb).is_err(),
            "{len}"
        );
    }
    assert!(Summary::parse(&VECTOR, Version::Nb).is_err());
    for (at, byte) in [
        (3, 0),     // interval 0
        (0, 0x80),  // negative interval
        (4, 0x7f),  // absurd count
        (7, 0),     // entries without offsets are tolerated, see below
        (15, 0xff), // size beyond the file
        (8, 0x80),  // negative size
        (15, 3),    // size below the offsets
        (19, 0),    // level 0
        (24, 0),    // big-endian offset
        (24, 5),    // first entry elsewhere
        (27, 0x80), // far offset
    ] {
        let mut bad = vector().to_vec();
        bad[at] = byte;
        let parsed = Summary::parse(&bad, Version::Nb);
        assert!(parsed.is_err() || at == 7, "{at}: {parsed:?}");
    }
}

#[test]
fn scylladb_leaves_the_full_size_out() {
    let mut bytes = vector().to_vec();
    bytes[23] = 0;
    let summary = Summary::parse(&bytes, Version::Me).unwrap();
    assert_eq!(summary.size_at_full_sampling, 0);
    assert!(Summary::parse(&bytes, Version::Nb).is_err());
    bytes[20] = 0x80;
    assert!(Summary::parse(&bytes, Version::Me).is_err());
}

proptest::proptest! {
    #[test]
    fn damage_never_panics(at in 0usize..56, byte: u8) {
        let mut bad = vector().to_vec();
        bad[at] = byte;
        if let Ok(summary) = Summary::parse(&bad, Version::Nb) {
            assert_eq!(summary.entries().count(), summary.len());
        }
    }

    #[test]
    fn any_keys_round_trip(
        keys in proptest::collection::vec(proptest::collection::vec(0u8.., 0..40), 1..50),
    ) {
        let mut builder = SummaryBuilder::new(2);
        keys.iter().for_each(|key| builder.add(key, u64::MAX));
        let summary = builder.finish(&keys[0], &keys[keys.len() - 1]);
        let mut out = Vec::new();
        summary.write(&mut out);
        proptest::prop_assert_eq!(Summary::parse(&out, Version::Nb).unwrap(), summary);
    }
}
