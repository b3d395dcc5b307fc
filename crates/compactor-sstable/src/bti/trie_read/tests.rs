use super::*;

/// A leaf, then nodes each of which has the previous one as both of its children: 2^n paths.
fn shared(levels: usize) -> Vec<u8> {
    let mut bytes = vec![0x01, 0x00];
    let mut distance = 2;
    for _ in 0..levels {
        bytes.extend([0x50, 2, 1, 2, distance, distance]);
        distance = 6;
    }
    bytes
}

#[test]
fn shared_branches_do_not_take_for_ever() {
    let bytes = shared(60);
    let mut walk = Trie::new(&bytes, 0, bytes.len() as u64 - 6).walk();
    let error = loop {
        match walk.next_payload() {
            Ok(node) => assert!(node.is_some()),
            Err(error) => break error,
        }
    };
    assert!(error.to_string().contains("shared"), "{error}");
    assert!(walk.next_payload().unwrap().is_none());
    // A single shared node does not exceed the bytes and is not detected here; callers that count keys detect
    // it.
    let bytes = shared(1);
    let mut walk = Trie::new(&bytes, 0, 2).walk();
    assert!(walk.next_payload().unwrap().is_some() && walk.next_payload().unwrap().is_some());
    assert!(walk.next_payload().unwrap().is_none());
}

#[test]
fn depth_has_a_limit() {
    let mut bytes = vec![0x01];
    bytes.extend([0x11, 0]);
    for _ in 0..MAX_DEPTH {
        bytes.extend([0x12, 0]);
    }
    let mut walk = Trie::new(&bytes, 0, bytes.len() as u64 - 2).walk();
    assert!(
        walk.next_payload()
            .unwrap_err()
            .to_string()
            .contains("longer")
    );
}

#[test]
fn dead_ends_and_bad_roots() {
    for (bytes, root) in [
        (&[0x00][..], 0),
        (&[0x00, 0x11, 5], 1),
        (&[0x01], 1),
        (&[], 0),
    ] {
        assert!(
            Trie::new(bytes, 0, root).walk().next_payload().is_err(),
            "{bytes:02x?}"
        );
    }
}

#[test]
fn nodes_may_not_cross_pages() {
    let mut bytes = vec![0; 4095];
    bytes.extend([0x01, 0xaa]);
    let trie = Trie::new(&bytes, 0, 4095);
    let node = trie.follow(&[]).unwrap().0;
    assert!(trie.check_page(&node, 0).is_ok());
    assert!(trie.check_page(&node, 1).is_err());
}

/// From the comments of `Walker.prefixAndNeighbours`.
#[test]
fn floor_of_separators() {
    use crate::bti::paged_output::PagedOutput;
    use crate::bti::trie_write::{Payload, TrieWriter};

    #[derive(Clone, Copy)]
    struct One(u8);
    impl Payload for One {
        fn encoded_len(&self) -> usize {
            1
        }
        fn bits(&self) -> u8 {
            1
        }
        fn write(&self, out: &mut Vec<u8>) {
            out.push(self.0);
        }
    }
    let separators: [&[u8]; 5] = [b"", b"abba", b"as", b"ask", b"c"];
    let mut out = PagedOutput::new();
    let mut writer = TrieWriter::new();
    for (index, key) in separators.iter().enumerate() {
        writer.add(&mut out, key, One(index as u8)).unwrap();
    }
    let root = writer.complete(&mut out);
    let trie = Trie::new(out.bytes(), 0, root);
    for (key, index) in [
        (&b"asking"[..], 3),
        (b"ash", 2),
        (b"as", 2),
        (b"ar", 1),
        (b"abb", 0),
        (b"abbaa", 1),
        (b"a", 0),
        (b"", 0),
        (b"b", 3),
        (b"d", 4),
        (b"\xff\xff", 4),
    ] {
        let node = trie.floor(key).unwrap().unwrap();
        assert_eq!(node.after()[0], index, "{key:?}");
    }
}

#[test]
fn no_node_before_the_start() {
    // A node with a payload, and a parent of it.
    let bytes = [0x01, 7, 0x12, b'a'];
    let mut walk = Trie::new(&bytes, 0, 2).walk();
    assert_eq!(walk.next_payload().unwrap().unwrap().position(), 0);
    let error = Trie::new(&bytes, 1, 2).walk().next_payload().unwrap_err();
    assert!(
        error.to_string().contains("a node at 1 or after it"),
        "{error}"
    );
}
