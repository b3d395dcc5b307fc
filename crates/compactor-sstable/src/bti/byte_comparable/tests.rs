use std::sync::Arc;

use super::*;
use crate::data::clustering::ClusteringComparator;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

fn encoded(cql_type: &CqlType, value: &[u8]) -> Vec<u8> {
    let mut out = vec![0xaa];
    assert!(
        append_value(cql_type, value, &mut out).unwrap(),
        "{cql_type:?} {value:02x?}"
    );
    assert_eq!(out.remove(0), 0xaa);
    out
}

fn check(cql_type: &CqlType, cases: &[(&[u8], &str)]) {
    for (value, form) in cases {
        assert_eq!(
            encoded(cql_type, value),
            bytes(form),
            "{cql_type:?} {value:02x?}"
        );
    }
}

/// From the comments of `ByteSource.AbstractEscaper`.
#[test]
fn escaped_bytes() {
    check(
        &CqlType::Bytes,
        &[
            (b"", "00"),
            (b"AB", "414200"),
            (b"A\0", "4100FE"),
            (b"A\0\0B", "4100FEFF4200"),
            (b"A\0B\0", "4100FF4200FE"),
            (b"\0\0\0", "00FEFEFE"),
        ],
    );
}

/// From the comments of `ByteSource.VariableLengthInteger`, and the limits of each length.
#[test]
fn bigint_is_of_variable_length() {
    for (value, form) in [
        (0i64, "80"),
        (1, "81"),
        (-1, "7F"),
        (63, "BF"),
        (64, "C040"),
        (-64, "40"),
        (-65, "3FBF"),
        ((1 << 20) - 1, "EFFFFF"),
        (1 << 20, "F0100000"),
        (-(1 << 20), "100000"),
        ((1 << 55) - 1, "FF7FFFFFFFFFFFFF"),
        (1 << 55, "FF8080000000000000"),
        (i64::MAX, "FFFFFFFFFFFFFFFFFF"),
        (i64::MIN, "000000000000000000"),
        (-(1 << 55), "0080000000000000"),
        (-(1 << 55) - 1, "007F7FFFFFFFFFFFFF"),
    ] {
        check(&CqlType::Long, &[(&value.to_be_bytes(), form)]);
    }
}

#[test]
fn varint_spells_out_its_length_from_seven_bytes() {
    check(
        &CqlType::Integer,
        &[
            (&[0], "80"),
            (&[0, 0], "80"),
            (&[0xff, 0xff, 0xff], "7F"),
            // 128 has one digit after the byte that contains only the sign is removed.
            (&[0, 0x80], "C080"),
            (&bytes("FFFFFFFFFFFF00"), "3F00"),
            (&bytes("7FFFFFFFFFFF"), "FE7FFFFFFFFFFF"),
            (&bytes("00FFFFFFFFFFFF"), "FEFFFFFFFFFFFF"),
            (&bytes("01000000000000"), "FF0001000000000000"),
            (&bytes("0080000000000000"), "FF0080000000000000"),
            (&bytes("FEFFFFFFFFFFFF"), "00FFFEFFFFFFFFFFFF"),
        ],
    );
    // 135 digits: the length is 128 and takes two bytes.
    let mut long = vec![1u8; 135];
    assert_eq!(encoded(&CqlType::Integer, &long)[..4], bytes("FF808001"));
    long[0] = 0x80;
    assert_eq!(encoded(&CqlType::Integer, &long)[..4], bytes("007F7F80"));
}

#[test]
fn values_of_constant_width() {
    check(&CqlType::Byte, &[(&[0x80], "00"), (&[0x7f], "ff")]);
    check(&CqlType::Short, &[(&[0xff, 0xfe], "7ffe")]);
    check(&CqlType::Int32, &[(&5i32.to_be_bytes(), "80000005")]);
    check(
        &CqlType::Timestamp,
        &[(&(-1i64).to_be_bytes(), "7fffffffffffffff")],
    );
    check(&CqlType::SimpleDate, &[(&[0x80, 0, 0, 1], "80000001")]);
    check(&CqlType::Boolean, &[(&[0], "00"), (&[7], "01")]);
    check(
        &CqlType::Float,
        &[
            (&1f32.to_be_bytes(), "bf800000"),
            (&(-0f32).to_be_bytes(), "7fffffff"),
        ],
    );
    let v1 = bytes("00112233 4455 1677 8899 aabbccddeeff");
    check(
        &CqlType::Uuid,
        &[(&v1, "1677 4455 00112233 8899aabbccddeeff")],
    );
    check(
        &CqlType::TimeUuid,
        &[(&v1, "1677 4455 00112233 08192a3b4c5d6e7f")],
    );
    check(
        &CqlType::LexicalUuid,
        &[(&v1, "8011223344551677 0899aabbccddeeff")],
    );
    let v4 = bytes("00112233 4455 4677 8899 aabbccddeeff");
    check(
        &CqlType::Uuid,
        &[(&v4, "4001122334455677 8899aabbccddeeff")],
    );
}

fn decimal(unscaled: i64, scale: i32) -> Vec<u8> {
    [&scale.to_be_bytes()[..], &unscaled.to_be_bytes()].concat()
}

#[test]
fn decimals_by_exponent_and_digits() {
    for (unscaled, scale, form) in [
        (0, 5, "80"),
        // 0.01 * 100^1
        (1, 0, "C1 01 81 00"),
        (100, 2, "C1 01 81 00"),
        // 0.1 * 100^1: the digit 10.
        (10, 0, "C1 01 8A 00"),
        (1, 1, "C0 8A 00"),
        (123, 0, "C1 02 81 97 00"),
        (-1, 0, "3F FF 7F 00"),
        // -0.0123 * 100^2: floor -2, then 0.77.
        (-123, 0, "3F FE 7E CD 00"),
        // 10^-5 = 0.1 * 100^-2
        (1, 5, "BF FE 8A 00"),
        (-1, 5, "41 02 76 00"),
    ] {
        check(&CqlType::Decimal, &[(&decimal(unscaled, scale), form)]);
    }
    // The exponent takes all four bytes.
    check(
        &CqlType::Decimal,
        &[(&decimal(1, i32::MIN), "C4 40000001 81 00")],
    );
    assert!(append_value(&CqlType::Decimal, &[0, 0, 0, 1], &mut Vec::new()).is_err());
}

#[test]
fn nested_values() {
    let int = Arc::new(CqlType::Int32);
    let list = CqlType::List {
        element: Arc::clone(&int),
        multi_cell: false,
    };
    let map = CqlType::Map {
        key: int,
        value: Arc::new(CqlType::Utf8),
        multi_cell: false,
    };
    let tuple = CqlType::Tuple([CqlType::Int32, CqlType::Utf8, CqlType::Int32].into());
    check(
        &list,
        &[
            (&bytes("00000000"), "38"),
            (
                &bytes("00000002 00000004 00000001 00000000"),
                "40 80000001 3E 38",
            ),
        ],
    );
    check(
        &map,
        &[(
            &bytes("00000001 00000004 00000001 00000001 61"),
            "40 80000001 40 6100 38",
        )],
    );
    check(
        &tuple,
        &[
            (&bytes("00000004 00000001"), "40 80000001 38"),
            (&bytes("ffffffff 00000001 61 ffffffff"), "3E 40 6100 38"),
            (&bytes("ffffffff ffffffff ffffffff"), "38"),
            // An empty int is a field, although it has no encoding.
            (&bytes("00000000"), "3E 38"),
        ],
    );
    let vector = CqlType::Vector {
        element: Arc::new(CqlType::Float),
        dimension: 2,
    };
    check(
        &vector,
        &[(&bytes("3f800000 bf800000"), "40 bf800000 40 407fffff 38")],
    );
    // Elements of no width are not written one by one, whatever number a header claims.
    let nothings = CqlType::Vector {
        element: Arc::new(CqlType::Empty),
        dimension: i32::MAX as u32,
    };
    let mut out = Vec::new();
    assert!(append_value(&nothings, &[0], &mut out).is_err());
    assert!(out.len() < 8, "{out:?}");
    let composite = CqlType::Composite([CqlType::Utf8, CqlType::Int32].into());
    check(
        &composite,
        &[
            (
                &bytes("0001 61 00 0004 00000001 ff"),
                "40 40 6100 40 80 40 80000001 40 7f 38",
            ),
            (&bytes("ffff 0001 61 01"), "3E 40 6100 40 81 38"),
        ],
    );
    for broken in [
        "000000",
        "00000001",
        "00000001 00000005 00",
        "00000000 00",
        "ffffffff",
    ] {
        assert!(
            append_value(&list, &bytes(broken), &mut Vec::new()).is_err(),
            "{broken}"
        );
    }
    assert!(append_value(&composite, &bytes("0001 61 01 0000 00"), &mut Vec::new()).is_err());
}

#[test]
fn dynamic_composites_name_their_types() {
    let aliases = CqlType::DynamicComposite([(b'i', CqlType::Int32)].into());
    let name = |text: &str| [&[0x40], text.as_bytes(), &[0]].concat();
    let expected = [
        vec![0x40],
        name("Int32Type"),
        name("org.apache.cassandra.db.marshal.Int32Type"),
        bytes("40 80000001 40 80 38"),
    ]
    .concat();
    assert_eq!(encoded(&aliases, &bytes("8069 0004 00000001 00")), expected);
    let reversed = b"ReversedType(Int32Type)";
    let spelled = [
        &(reversed.len() as u16).to_be_bytes()[..],
        reversed,
        &bytes("0004 00000001 00"),
    ]
    .concat();
    let expected = [
        vec![0x40],
        name("ReversedType"),
        name("Int32Type"),
        name("org.apache.cassandra.db.marshal.Int32Type"),
        bytes("40 7ffffffe 40 80 38"),
    ]
    .concat();
    assert_eq!(encoded(&aliases, &spelled), expected);
    assert_eq!(encoded(&aliases, b""), bytes("40 38"));
    for broken in ["80", "8078 0000 00", "0001 ff 0000 00", "8069 0004 00"] {
        assert!(
            append_value(&aliases, &bytes(broken), &mut Vec::new()).is_err(),
            "{broken}"
        );
    }
}

#[test]
fn prefixes_by_kind() {
    let types = [
        CqlType::Utf8,
        CqlType::Reversed(Arc::new(CqlType::Int32)),
        CqlType::Int32,
    ];
    let comparator = ClusteringComparator::new(&types).unwrap();
    let form = |kind: Kind, values: &[Option<&[u8]>]| {
        let mut serialized = Vec::new();
        comparator.write_prefix(&mut serialized, kind, values.iter().copied());
        let mut spans = Vec::new();
        let mut reader = crate::byte_reader::ByteReader::new(&serialized);
        let kind = comparator.read_prefix(&mut reader, &mut spans).unwrap();
        let mut out = Vec::new();
        append_prefix(
            &types,
            Prefix {
                kind,
                base: &serialized,
                spans: &spans,
            },
            &mut out,
        )
        .unwrap();
        out
    };
    let one = 1i32.to_be_bytes();
    assert_eq!(
        form(Kind::Clustering, &[Some(b"a"), Some(&one), Some(&one)]),
        bytes("40 6100 40 7ffffffe 40 80000001 38")
    );
    let reversed_text = CqlType::Reversed(Arc::new(CqlType::Utf8));
    check(&reversed_text, &[(b"", "ff"), (b"a", "9eff")]);
    // Empty text has an encoding; empty ints sort first, in a reversed column last; null sorts before all.
    assert_eq!(
        form(Kind::Clustering, &[Some(b""), Some(b""), Some(b"")]),
        bytes("40 00 41 3F 38")
    );
    assert_eq!(
        form(Kind::Clustering, &[None, None, None]),
        bytes("3E 3E 3E 38")
    );
    for (kind, end) in [
        (Kind::ExclEndBound, 0x20),
        (Kind::InclStartBound, 0x20),
        (Kind::ExclEndInclStartBoundary, 0x20),
        (Kind::InclEndExclStartBoundary, 0x60),
        (Kind::InclEndBound, 0x60),
        (Kind::ExclStartBound, 0x60),
    ] {
        assert_eq!(
            form(kind, &[Some(b"a")]),
            [bytes("40 6100"), vec![end]].concat()
        );
        assert_eq!(form(kind, &[]), [end]);
    }
}

#[test]
fn partition_keys() {
    let mut out = Vec::new();
    let mut hash = KeyHash {
        token: i64::MIN + 1,
        ..KeyHash::default()
    };
    append_key(&hash, b"a\0", &mut out);
    assert_eq!(out, bytes("40 0000000000000001 40 6100FE 38"));
    out.clear();
    hash.partitioner = Partitioner::Random;
    (hash.token, hash.token_rest) = (i64::MIN, 0x81);
    append_key(&hash, b"k", &mut out);
    assert_eq!(out, bytes("40 C080 40 6B00 38"));
    out.clear();
    hash.partitioner = Partitioner::ByteOrdered;
    append_key(&hash, b"k", &mut out);
    assert_eq!(out, bytes("40 6B00 40 6B00 38"));
}

#[test]
fn values_of_the_wrong_width_are_refused() {
    for cql_type in [
        CqlType::Int32,
        CqlType::Long,
        CqlType::Double,
        CqlType::Uuid,
        CqlType::Boolean,
        CqlType::SimpleDate,
        CqlType::Time,
    ] {
        assert!(
            append_value(&cql_type, &[1, 2, 3], &mut Vec::new()).is_err(),
            "{cql_type:?}"
        );
        assert!(
            !append_value(&cql_type, &[], &mut Vec::new()).unwrap(),
            "{cql_type:?}"
        );
    }
    assert!(append_value(&CqlType::CounterColumn, &[1], &mut Vec::new()).is_err());
    assert!(!append_value(&CqlType::Empty, &[1], &mut Vec::new()).unwrap());
}
