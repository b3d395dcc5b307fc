use super::*;
use crate::bti::trie_read::Trie;

#[derive(Clone, Copy, Debug)]
struct Number(u64);

impl Payload for Number {
    fn encoded_len(&self) -> usize {
        1 + (self.0 % 15) as usize
    }
    fn bits(&self) -> u8 {
        (self.0 % 15) as u8 + 1
    }
    fn write(&self, out: &mut Vec<u8>) {
        out.extend(std::iter::repeat_n(self.0 as u8, self.encoded_len()));
    }
}

fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Writes keys to a file that is not empty, and walks over the result.
fn check(keys: &[Vec<u8>], start: usize) {
    let mut out = PagedOutput::new();
    out.buffer().resize(start, 0x55);
    let mut file = Vec::new();
    let mut writer = TrieWriter::new();
    for (index, key) in keys.iter().enumerate() {
        writer.add(&mut out, key, Number(index as u64)).unwrap();
        if index % 7 == 0 {
            file.extend_from_slice(out.bytes());
            out.clear();
        }
    }
    let root = writer.complete(&mut out);
    file.extend_from_slice(out.bytes());
    assert_eq!(file.len() as u64, out.position());
    let trie = Trie::new(&file, 0, root);
    let mut walk = trie.walk();
    for (index, key) in keys.iter().enumerate() {
        let node = walk.next_payload().unwrap().unwrap();
        let payload = Number(index as u64);
        assert_eq!(walk.key(), key);
        assert_eq!(node.payload_bits(), payload.bits());
        assert_eq!(node.after()[0], payload.0 as u8);
        trie.check_page(&node, payload.encoded_len()).unwrap();
        let (followed, is_whole_key) = trie.follow(key).unwrap();
        assert!(is_whole_key && followed.position() == node.position());
    }
    assert!(walk.next_payload().unwrap().is_none());
    assert!(walk.next_payload().unwrap().is_none());
}

fn random_keys(state: &mut u64, count: usize, max_len: u64, alphabet: u64) -> Vec<Vec<u8>> {
    let mut keys: Vec<Vec<u8>> = (0..count)
        .map(|_| {
            let len = next(state) % (max_len + 1);
            (0..len)
                .map(|_| (next(state) % alphabet * (255 / (alphabet - 1))) as u8)
                .collect()
        })
        .collect();
    keys.sort();
    keys.dedup();
    keys
}

#[test]
fn keys_come_back_in_order() {
    let mut state = 88;
    for (count, max_len, alphabet) in [
        (1, 3, 2),
        (10, 4, 2),
        (300, 12, 2),
        (2000, 3, 256),
        (3000, 30, 3),
        (4000, 60, 5),
    ] {
        for start in [0, 1, 2000, 4095] {
            check(&random_keys(&mut state, count, max_len, alphabet), start);
        }
    }
}

/// Deeper than any stack, if this were recursive.
#[test]
fn long_keys_are_no_deeper_than_memory() {
    let mut state = 3;
    let mut keys: Vec<Vec<u8>> = (0..40u8)
        .map(|n| {
            let mut key = vec![7; 3000 * usize::from(n)];
            key.extend((0..next(&mut state) % 4000).map(|i| i as u8));
            key
        })
        .collect();
    keys.push(vec![7; 300_000]);
    keys.sort();
    keys.dedup();
    check(&keys, 100);
}

/// Wide pointers, and branches that grow until they are placed.
#[test]
fn branches_are_packed_page_by_page() {
    let keys: Vec<Vec<u8>> = (0..60_000u32)
        .map(|n| (n.wrapping_mul(2_654_435_761)).to_be_bytes().to_vec())
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
        .collect();
    check(&keys, 17);
}

#[test]
fn keys_must_ascend() {
    let mut out = PagedOutput::new();
    let mut writer = TrieWriter::new();
    writer.add(&mut out, b"b", Number(1)).unwrap();
    for key in [&b""[..], b"a", b"b", b"azz"] {
        assert!(writer.add(&mut out, key, Number(2)).is_err(), "{key:?}");
    }
    writer.add(&mut out, b"ba", Number(2)).unwrap();
    assert!(writer.add(&mut out, b"b", Number(3)).is_err());
}

#[test]
fn nothing_and_the_empty_key() {
    let mut out = PagedOutput::new();
    let mut writer = TrieWriter::<Number>::new();
    assert_eq!(writer.complete(&mut out), 0);
    assert_eq!(out.bytes(), [0]);
    writer.reset();
    writer.add(&mut out, b"", Number(0)).unwrap();
    assert_eq!(writer.complete(&mut out), 1);
    assert_eq!(out.bytes(), [0, 0x01, 0]);
    writer.reset();
    writer.add(&mut out, b"a", Number(0)).unwrap();
    writer.add(&mut out, b"ac", Number(1)).unwrap();
    assert_eq!(writer.complete(&mut out), 10);
    assert_eq!(
        out.bytes()[3..],
        [0x02, 1, 1, 0x21, b'c', 3, 0, 0x14, b'a'][..]
    );
}
