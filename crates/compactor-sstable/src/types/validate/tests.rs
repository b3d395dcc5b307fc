use super::*;

fn check(text: &str, valid: &[&[u8]], invalid: &[&[u8]]) {
    let cql_type = CqlType::parse(text).unwrap();
    for bytes in valid {
        assert_eq!(cql_type.validate(bytes), Ok(()), "{text}: {bytes:x?}");
    }
    for bytes in invalid {
        assert!(cql_type.validate(bytes).is_err(), "{text}: {bytes:x?}");
    }
}

#[test]
fn widths() {
    check("ByteType", &[&[0]], &[&[], &[0; 2]]);
    check("ShortType", &[&[0; 2]], &[&[], &[0]]);
    check("SimpleDateType", &[&[0; 4]], &[&[], &[0; 8]]);
    check("TimeType", &[&[0; 8]], &[&[], &[0; 4]]);
    check("BooleanType", &[&[], &[0], &[9]], &[&[0; 2]]);
    check("Int32Type", &[&[], &[0; 4]], &[&[0; 3], &[0; 5]]);
    check("FloatType", &[&[], &[0; 4]], &[&[0; 8]]);
    for text in [
        "LongType",
        "DoubleType",
        "TimestampType",
        "DateType",
        "ReversedType(LongType)",
    ] {
        check(text, &[&[], &[0; 8]], &[&[0; 4], &[0; 9]]);
    }
    for text in ["UUIDType", "LexicalUUIDType", "LegacyTimeUUIDType"] {
        check(text, &[&[], &[0; 16]], &[&[0; 15]]);
    }
    check("EmptyType", &[&[]], &[&[0]]);
    check("InetAddressType", &[&[], &[0; 4], &[0; 16]], &[&[0; 5]]);
    check("DecimalType", &[&[], &[0; 5]], &[&[0; 3], &[0; 4]]);
    check("IntegerType", &[&[], &[0], &[0; 30]], &[]);
    check("BytesType", &[&[], &[0xff]], &[]);
    check("AsciiType", &[&[], b"a\x7f"], &[&[0x80]]);
    check("UTF8Type", &[&[], "é".as_bytes()], &[&[0xe9]]);
}

#[test]
fn timeuuid_is_of_version_1() {
    let mut one = [0; 16];
    one[6] = 0x10;
    let mut four = [0; 16];
    four[6] = 0x40;
    check("TimeUUIDType", &[&[], &one], &[&four, &[0; 16], &one[..15]]);
}

#[test]
fn durations_have_one_sign() {
    check(
        "DurationType",
        &[&[0, 0, 0], &[2, 4, 6], &[1, 3, 0]],
        &[&[], &[0, 0], &[1, 2, 0]],
    );
    // Months of 33 bits.
    check("DurationType", &[], &[&[0xf1, 0, 0, 0, 0, 0, 0]]);
}

#[test]
fn counters_are_whole_shards() {
    check(
        "CounterColumnType",
        &[
            &[0, 0],
            &[0; 34],
            &[&[0, 1, 0x80, 0][..], &[0; 32]].concat(),
            &[&[0xff, 0xff, 0, 0][..], &[0; 64]].concat(),
        ],
        &[
            &[],
            &[0],
            &[0; 33],
            &[0, 1],
            &[0x7f, 0xff, 0, 0],
            &[0x80, 0],
        ],
    );
}

#[test]
fn collections() {
    for text in [
        "FrozenType(ListType(Int32Type))",
        "FrozenType(SetType(Int32Type))",
    ] {
        check(
            text,
            &[
                &[0; 4],
                &[0, 0, 0, 1, 0, 0, 0, 4, 1, 2, 3, 4],
                &[0, 0, 0, 1, 0, 0, 0, 0],
            ],
            &[
                &[],
                &[0; 3],
                &[0xff, 0xff, 0xff, 0xff],
                &[0, 0, 0, 1],
                &[0x7f, 0xff, 0xff, 0xff],
                &[0, 0, 0, 1, 0, 0, 0, 4, 1, 2, 3],
                &[0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff],
                &[0, 0, 0, 1, 0, 0, 0, 3, 1, 2, 3],
                &[0, 0, 0, 0, 0],
            ],
        );
    }
    check(
        "FrozenType(MapType(Int32Type,UTF8Type))",
        &[&[0, 0, 0, 1, 0, 0, 0, 4, 1, 2, 3, 4, 0, 0, 0, 1, b'a']],
        &[
            &[0, 0, 0, 1, 0, 0, 0, 4, 1, 2, 3, 4],
            &[0, 0, 0, 1, 0, 0, 0, 4, 1, 2, 3, 4, 0, 0, 0, 1, 0xff],
        ],
    );
}

#[test]
fn tuples_may_end_early_but_not_late() {
    for text in [
        "TupleType(Int32Type,UTF8Type)",
        "FrozenType(UserType(k,75,61:Int32Type,62:UTF8Type))",
    ] {
        check(
            text,
            &[
                &[],
                &[0xff; 4],
                &[0, 0, 0, 4, 1, 2, 3, 4],
                &[0, 0, 0, 4, 1, 2, 3, 4, 0xff, 0xff, 0xff, 0xff],
            ],
            &[&[0], &[0, 0, 0, 4, 1], &[0, 0, 0, 1, 1], &[0xff; 12]],
        );
    }
}

#[test]
fn vectors_have_their_dimension() {
    check(
        "VectorType(Int32Type , 2)",
        &[&[0; 8]],
        &[&[], &[0; 4], &[0; 9]],
    );
    check(
        "VectorType(UTF8Type , 2)",
        &[&[0, 1, b'a']],
        &[&[], &[0], &[0, 1], &[0, 0, 0], &[1, 0xff, 0]],
    );
    check("VectorType(EmptyType , 2147483647)", &[], &[&[], &[0]]);
}

#[test]
fn composites_follow_their_types() {
    check(
        "CompositeType(Int32Type,UTF8Type)",
        &[
            &[],
            &[0, 4, 0, 0, 0, 1, 0],
            &[0, 4, 0, 0, 0, 1, 0, 0, 1, b'a', 0],
            &[0xff, 0xff, 0, 4, 0, 0, 0, 1, 1],
        ],
        &[
            &[0, 4, 0, 0, 0, 1],
            &[0, 3, 0, 0, 1, 0],
            &[0, 4, 0, 0, 0, 1, 1, 0, 1, b'a', 0],
            &[0, 4, 0, 0, 0, 1, 0, 0, 1, b'a', 0, 0, 0, 0],
        ],
    );
}

#[test]
fn messages_name_the_place() {
    let nested = CqlType::parse("FrozenType(ListType(TupleType(UTF8Type,Int32Type)))").unwrap();
    let bytes = [
        0, 0, 0, 1, 0, 0, 0, 9, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1, 7,
    ];
    assert_eq!(
        nested.validate(&bytes).unwrap_err().to_string(),
        "element 0 of a list: field 1: expected 0 or 4 bytes, found 1 bytes"
    );
}
