use super::*;

fn shape(children: &[(u8, u64)], has_payload: bool) -> NodeShape {
    NodeShape {
        children: children.len(),
        first: children.first().map_or(0, |child| child.0),
        last: children.last().map_or(0, |child| child.0),
        max_distance: children.iter().map(|child| child.1).max().unwrap_or(0),
        has_payload,
    }
}

/// Writes a node at a position that its children precede, and reads it.
fn round_trip(children: &[(u8, u64)], bits: u8) -> u8 {
    let shape = shape(children, bits != 0);
    let node_type = NodeType::of(&shape);
    let mut node_bytes = Vec::new();
    write_node(&mut node_bytes, node_type, bits, children);
    assert_eq!(node_bytes.len(), node_type.len_of(&shape), "{children:?}");
    // Distances of 40 bits and more lead before the start of any file that fits here.
    let position = shape.max_distance.min(1 << 20) as usize;
    let mut bytes = vec![0; position];
    bytes.extend_from_slice(&node_bytes);
    bytes.push(0x77);
    let node = Node::parse(&bytes, position as u64).unwrap();
    assert_eq!(node.payload_bits(), bits);
    assert_eq!(node.after(), [0x77]);
    for transition in 0..=255 {
        let wanted = children.iter().find(|child| child.0 == transition);
        match (wanted, node.search(transition)) {
            (Some((_, distance)), Ok(index)) => {
                assert_eq!(node.transition(index), transition);
                match (position as u64).checked_sub(*distance) {
                    Some(child) => assert_eq!(node.child(index).unwrap(), Some(child)),
                    None => assert!(node.child(index).is_err()),
                }
            }
            (None, Err(index)) => {
                assert!(index == node.range() || node.transition(index) >= transition);
                assert!(index == 0 || node.transition(index - 1) < transition);
            }
            other => panic!("{transition:02x}: {other:?}"),
        }
    }
    node_bytes[0] >> 4
}

#[test]
fn each_type_is_chosen_written_and_read() {
    let mut seen = std::collections::BTreeSet::new();
    seen.insert(round_trip(&[], 9));
    for bits in [0, 4, 8, 10, 12, 14, 16, 20, 24, 30, 32, 35, 40, 44, 62] {
        let distance = 1u64 << bits;
        for payload in [0, 1, 15] {
            seen.insert(round_trip(&[(0, distance)], payload));
            seen.insert(round_trip(&[(5, distance), (200, 1)], payload));
            seen.insert(round_trip(
                &[(5, distance), (9, 3), (255, distance / 2 + 1)],
                payload,
            ));
            let all: Vec<(u8, u64)> = (0..=255)
                .map(|t| (t, distance.max(u64::from(t) + 1)))
                .collect();
            seen.insert(round_trip(&all, payload));
            seen.insert(round_trip(&all[3..8], payload));
            seen.insert(round_trip(&all[3..9], payload));
        }
    }
    assert_eq!(seen, (0..16).collect());
}

#[test]
fn known_bytes() {
    let written = |children: &[(u8, u64)], bits: u8| {
        let mut out = Vec::new();
        write_node(
            &mut out,
            NodeType::of(&shape(children, bits != 0)),
            bits,
            children,
        );
        out
    };
    assert_eq!(written(&[(0x40, 15)], 0), [0x1f, 0x40]);
    assert_eq!(written(&[(0x40, 15)], 2), [0x22, 0x40, 15]);
    assert_eq!(written(&[(0x40, 0x123)], 0), [0x31, 0x23, 0x40]);
    assert_eq!(written(&[(0x40, 0x123)], 1), [0x41, 0x40, 0x01, 0x23]);
    assert_eq!(written(&[(1, 2), (9, 1)], 0), [0x50, 2, 1, 9, 2, 1]);
    assert_eq!(
        written(&[(1, 0x123), (9, 0x45), (40, 0x6)], 0),
        [0x60, 3, 1, 9, 40, 0x12, 0x30, 0x45, 0x00, 0x60]
    );
    // Two and three neighbours: equal sizes go to the dense form.
    assert_eq!(written(&[(1, 0x123), (2, 0x45)], 0)[0], 0xa0);
    assert_eq!(
        written(&[(1, 3), (2, 4)], 0),
        [0xa0, 1, 1, 0x00, 0x30, 0x04]
    );
    assert_eq!(written(&[(1, 3), (3, 4)], 3)[..3], [0x53, 2, 1]);
}

#[test]
fn nodes_that_cannot_be() {
    let cases: [&[u8]; 12] = [
        &[],
        &[0x10],
        &[0x20, 1],
        &[0x30, 1],
        &[0x40, 1, 2],
        // No child, too few bytes, transitions not ascending.
        &[0x50, 0],
        &[0x50, 2, 1, 2, 3],
        &[0x50, 2, 2, 1, 3, 4],
        // Transitions beyond ff, vacant ends, too few bytes.
        &[0xb0, 0xff, 1, 0, 1, 0, 1],
        &[0xb0, 1, 1, 0, 0, 0, 1],
        &[0xb0, 1, 1, 0, 1, 0, 0],
        &[0xf0, 1, 0, 0, 0, 0, 0, 0, 0, 0],
    ];
    for bytes in cases {
        assert!(Node::parse(bytes, 0).is_err(), "{bytes:02x?}");
    }
    assert!(Node::parse(&[0x00], 1).is_err());
    assert!(Node::parse(&[0x00], u64::MAX).is_err());
    // Distances: to itself, out of the file.
    for bytes in [
        &[0x10, 1][..],
        &[0x11, 1],
        &[0x20, 1, 0],
        &[0x50, 1, 1, 0],
        &[0x50, 1, 1, 9],
    ] {
        let node = Node::parse(bytes, 0).unwrap();
        assert!(node.child(0).is_err(), "{bytes:02x?}");
    }
}
