use super::*;
use crate::partitioner::Partitioner;

fn sorted(keys: impl Iterator<Item = Vec<u8>>) -> Vec<(KeyHash, Vec<u8>)> {
    let mut keys: Vec<(KeyHash, Vec<u8>)> = keys
        .map(|key| (Partitioner::Murmur3.hash_key(&key), key))
        .collect();
    keys.sort_by(|a, b| (a.0.token, &a.1).cmp(&(b.0.token, &b.1)));
    keys
}

fn of_token(token: i64) -> KeyHash {
    KeyHash {
        token,
        ..KeyHash::default()
    }
}

fn written(keys: &[(KeyHash, Vec<u8>)]) -> Vec<u8> {
    let mut writer = PartitionIndexWriter::new();
    for (index, (hash, key)) in keys.iter().enumerate() {
        writer.add(hash, key, place(index)).unwrap();
    }
    writer.finish().unwrap();
    writer.output().bytes().to_vec()
}

fn place(index: usize) -> PartitionPosition {
    match index % 3 {
        0 => PartitionPosition::Rows((index * index * index) as u64),
        _ => PartitionPosition::Data((index * 1000) as u64),
    }
}

/// The first partition at or after a token is one of the two; the key of the first one decides which.
#[test]
fn partitions_around_a_token() {
    for count in [1, 2, 3, 50, 2000] {
        let keys = sorted((0..count).map(|n| format!("key{n}").into_bytes()));
        let bytes = written(&keys);
        let index = PartitionIndex::parse(&bytes).unwrap();
        let tokens = keys.iter().flat_map(|(hash, _)| {
            [-1i64 << 40, -256, -1, 0, 1, 256, 1 << 40].map(|more| hash.token.saturating_add(more))
        });
        let mut doubts = 0;
        for token in tokens.chain([i64::MIN, 0, i64::MAX]) {
            let around = index.around(token).unwrap();
            let first = keys.partition_point(|key| key.0.token < token);
            let number = |entry: PartitionEntry| {
                let mut places = (0..keys.len()).map(place);
                places.position(|place| place == entry.position).unwrap()
            };
            let may_be_before = around.may_be_before.map(number);
            doubts += usize::from(may_be_before.is_some());
            let next = around.next.map_or(keys.len(), number);
            assert!(may_be_before.is_none_or(|n| n + 1 == next), "{token}");
            match may_be_before.filter(|n| keys[*n].0.token >= token) {
                Some(found) => assert_eq!(found, first, "{token}"),
                None => assert_eq!(next, first, "{token}"),
            }
        }
        assert!(doubts > 0, "{count}");
    }
}

#[test]
fn every_key_is_found() {
    for count in [1, 2, 3, 500, 5000] {
        let keys = sorted((0..count).map(|n| format!("key{n}").into_bytes()));
        let bytes = written(&keys);
        let index = PartitionIndex::parse(&bytes).unwrap();
        assert_eq!(index.key_count, count);
        assert_eq!(index.first_key, keys[0].1);
        assert_eq!(index.last_key, keys[keys.len() - 1].1);
        let mut entries = index.iter();
        for (n, (hash, key)) in keys.iter().enumerate() {
            let entry = entries.next_entry().unwrap().unwrap();
            assert_eq!(
                entry,
                PartitionEntry {
                    position: place(n),
                    hash: Some(hash.h2 as u8)
                }
            );
            let found = index.candidate(hash, key).unwrap();
            assert_eq!(found, Some(place(n)));
            for other in [n, n + 1, n.saturating_sub(1)] {
                let (hash, key) = &keys[other % keys.len()];
                let is_here = entries.leads_here(hash, key).unwrap();
                assert_eq!(is_here, other % keys.len() == n);
                let otherwise = KeyHash {
                    h2: !hash.h2,
                    ..*hash
                };
                assert!(!entries.leads_here(&otherwise, key).unwrap());
            }
        }
        assert_eq!(entries.next_entry().unwrap(), None);
        // Other keys match at most once in 256 times, by their hash.
        let others = sorted((0..2000).map(|n| format!("other{n}").into_bytes()));
        let found = others
            .iter()
            .filter(|(hash, key)| index.candidate(hash, key).unwrap().is_some())
            .count();
        assert!(found < 30, "{found} of {}", others.len());
    }
}

/// A table with the single partition `k` at position 0, without row index.
#[test]
fn a_single_key_leaves_a_bare_root() {
    let bytes = written(&sorted([b"k".to_vec()].into_iter())[..0]);
    assert_eq!(PartitionIndex::parse(&bytes).unwrap().key_count, 0);
    let keys = sorted([b"k".to_vec()].into_iter());
    let mut writer = PartitionIndexWriter::new();
    let (hash, key) = &keys[0];
    writer.add(hash, key, PartitionPosition::Data(0)).unwrap();
    writer.finish().unwrap();
    let mut expected = vec![0x08, hash.h2 as u8, 0xff, 0, 1, b'k', 0, 1, b'k'];
    for number in [3i64, 1, 0] {
        expected.extend(number.to_be_bytes());
    }
    assert_eq!(writer.output().bytes(), expected);
}

#[test]
fn positions_take_as_few_bytes_as_their_sign_allows() {
    for (value, len) in [
        (0i64, 1),
        (127, 1),
        (128, 2),
        (-128, 1),
        (-129, 2),
        (0x7f_ffff, 3),
        (0x80_0000, 4),
        (i64::MAX, 8),
        (i64::MIN, 8),
    ] {
        assert_eq!(signed_len(value), len, "{value}");
        let mut out = Vec::new();
        put_signed(&mut out, value, len);
        assert_eq!(read_signed(&out), value);
    }
}

/// A form that Cassandra reads but never writes: a payload without hash.
#[test]
fn payloads_without_hash() {
    let mut bytes = vec![0x02, 0xff, 0x00, 0, 1, b'k', 0, 1, b'k'];
    for number in [3i64, 1, 0] {
        bytes.extend(number.to_be_bytes());
    }
    let index = PartitionIndex::parse(&bytes).unwrap();
    let entry = index.iter().next_entry().unwrap().unwrap();
    assert_eq!(
        entry,
        PartitionEntry {
            position: PartitionPosition::Data(255),
            hash: None
        }
    );
    assert!(index.candidate(&of_token(1), b"x").unwrap().is_some());
}

#[test]
fn keys_must_ascend() {
    let mut writer = PartitionIndexWriter::new();
    writer
        .add(&of_token(5), b"a", PartitionPosition::Data(0))
        .unwrap();
    writer
        .add(&of_token(4), b"a", PartitionPosition::Data(9))
        .unwrap();
    assert!(writer.finish().is_err());
    let mut writer = PartitionIndexWriter::new();
    writer
        .add(&of_token(5), b"a", PartitionPosition::Data(0))
        .unwrap();
    writer
        .add(&of_token(5), b"a", PartitionPosition::Data(9))
        .unwrap();
    assert!(writer.finish().is_err());
}

#[test]
fn footers_that_cannot_be() {
    let keys = sorted((0..20).map(|n: u32| n.to_be_bytes().to_vec()));
    let bytes = written(&keys);
    let footer = bytes.len() - FOOTER_LEN;
    assert!(PartitionIndex::parse(&[]).is_err());
    assert!(PartitionIndex::parse(&bytes[1..]).is_err());
    assert!(PartitionIndex::parse(&bytes[..bytes.len() - 1]).is_err());
    for number in 0..3 {
        for value in [-1i64, i64::MIN, i64::MAX, bytes.len() as i64] {
            // The number of keys is not used.
            if number == 1 && value > 0 {
                continue;
            }
            let mut damaged = bytes.clone();
            damaged[footer + 8 * number..footer + 8 * number + 8]
                .copy_from_slice(&value.to_be_bytes());
            assert!(PartitionIndex::parse(&damaged).is_err(), "{number} {value}");
        }
    }
    // A number of keys other than the actual one.
    for count in [19u8, 21] {
        let mut damaged = bytes.clone();
        damaged[footer + 15] = count;
        let index = PartitionIndex::parse(&damaged).unwrap();
        assert_eq!(index.key_count, u64::from(count));
        let mut entries = index.iter();
        let mut found = 0;
        while entries.next_entry().unwrap().is_some() {
            found += 1;
        }
        assert_eq!(found, 20);
    }
}
