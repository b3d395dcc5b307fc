use super::*;

fn text(cql_type: &str, bytes: &[u8]) -> Option<String> {
    CqlType::parse(cql_type).unwrap().to_text(bytes).ok()
}

fn check(cql_type: &str, cases: &[(&[u8], &str)]) {
    for (bytes, expected) in cases {
        assert_eq!(
            text(cql_type, bytes).as_deref(),
            Some(*expected),
            "{cql_type}: {bytes:x?}"
        );
    }
}

#[test]
fn simple_types() {
    check("UTF8Type", &[(b"a\"b", "a\"b"), (b"", "")]);
    check("BytesType", &[(&[0, 0xff], "00ff"), (&[], "")]);
    check("BooleanType", &[(&[1], "true"), (&[0], "false"), (&[], "")]);
    check("ByteType", &[(&[0x80], "-128")]);
    check("ShortType", &[(&[1, 0], "256")]);
    check("Int32Type", &[(&[0, 0, 0, 7], "7"), (&[], "")]);
    check("LongType", &[(&[0xff; 8], "-1")]);
    check(
        "FloatType",
        &[(&[0x7f, 0xc0, 0, 0], "NaN"), (&[0x3f, 0x80, 0, 0], "1.0")],
    );
    check(
        "DoubleType",
        &[(&[0xff, 0xf0, 0, 0, 0, 0, 0, 0], "-Infinity")],
    );
    check(
        "TimestampType",
        &[(&[0; 8], "1970-01-01T00:00:00.000Z"), (&[], "")],
    );
    check("SimpleDateType", &[(&[0x80, 0, 0, 0], "1970-01-01")]);
    check("TimeType", &[(&[0; 8], "00:00:00.000000000")]);
    check("DurationType", &[(&[2, 0, 0], "1mo")]);
    check("IntegerType", &[(&[0x7f], "127")]);
    check("DecimalType", &[(&[0, 0, 0, 1, 15], "1.5")]);
    check("InetAddressType", &[(&[10, 0, 0, 1], "10.0.0.1")]);
    check(
        "UUIDType",
        &[
            (&[0; 16], "00000000-0000-0000-0000-000000000000"),
            (&[], ""),
        ],
    );
    check("CounterColumnType", &[(&[0, 1], "0001")]);
    check("EmptyType", &[(&[1], "")]);
    assert_eq!(text("Int32Type", &[0; 5]), None);
    assert_eq!(text("TimeType", &[]), None);
    // Accepted by validation, refused by the decoder.
    assert_eq!(text("UTF8Type", &[0xc0, 0x80]), None);
}

#[test]
fn nested_types() {
    check(
        "FrozenType(ListType(Int32Type))",
        &[(&[0, 0, 0, 0], "00000000")],
    );
    check("VectorType(Int32Type , 1)", &[(&[0, 0, 0, 9], "00000009")]);
    check(
        "TupleType(UTF8Type,Int32Type,UTF8Type)",
        &[
            (&[], ""),
            (
                &[0, 0, 0, 3, b':', b'@', b'x', 0xff, 0xff, 0xff, 0xff],
                "\\:\\@x:@",
            ),
            (
                &[0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0, 1, b'z'],
                ":5:z",
            ),
        ],
    );
    assert_eq!(text("TupleType(UTF8Type)", &[0, 0, 0, 2, 0]), None);
}

#[test]
fn composites() {
    check(
        "CompositeType(Int32Type,UTF8Type)",
        &[
            (
                &[0, 4, 0, 0, 0, 1, 0, 0, 3, b'a', b':', b'!', 0],
                "1:a\\:!!",
            ),
            (&[0, 4, 0, 0, 0, 1, 1], "1:!"),
            (&[0, 4, 0, 0, 0, 1, 0xff, 9, 9], "1:_"),
        ],
    );
    check(
        "DynamicCompositeType(a=>Int32Type)",
        &[(
            &[
                0x80, b'a', 0, 4, 0, 0, 0, 1, 0, 0, 8, b'U', b'T', b'F', b'8', b'T', b'y', b'p',
                b'e', 0, 1, b'x', 0,
            ],
            "a@1:UTF8Type@x",
        )],
    );
    assert_eq!(
        text("DynamicCompositeType(a=>Int32Type)", &[0x80, b'b', 0, 0, 0]),
        None
    );
}

#[test]
fn description_falls_back_to_hexadecimal() {
    assert_eq!(CqlType::Int32.describe(&[0, 0, 0, 1]), "1");
    assert_eq!(CqlType::Int32.describe(&[0, 1]), "0x0001");
}
