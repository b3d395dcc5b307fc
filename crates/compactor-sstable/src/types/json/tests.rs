use super::*;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .bytes()
        .filter_map(|c| char::from(c).to_digit(16))
        .map(|d| d as u8)
        .collect();
    digits
        .chunks_exact(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

fn json(text: &str, bytes: &[u8]) -> Option<String> {
    let mut out = "before ".to_owned();
    let rendered = CqlType::parse(text).unwrap().to_json(bytes, &mut out);
    assert!(
        out.starts_with("before ") && (rendered.is_ok() || out == "before "),
        "{out}"
    );
    rendered.ok().map(|()| out["before ".len()..].to_owned())
}

fn check(text: &str, cases: &[(&str, &str)]) {
    for (bytes, expected) in cases {
        assert_eq!(
            json(text, &hex(bytes)).as_deref(),
            Some(*expected),
            "{text}: {bytes}"
        );
    }
}

#[test]
fn numbers() {
    check("ByteType", &[("ff", "-1"), ("7f", "127")]);
    check("ShortType", &[("8000", "-32768"), ("", "\"\"")]);
    check(
        "Int32Type",
        &[("00000007", "7"), ("", "\"\""), ("ffffffff", "-1")],
    );
    check(
        "LongType",
        &[("7fffffffffffffff", "9223372036854775807"), ("", "\"\"")],
    );
    check(
        "IntegerType",
        &[("0100", "256"), ("ff", "-1"), ("", "\"\"")],
    );
    check(
        "DecimalType",
        &[
            ("00000002 04d2", "12.34"),
            ("fffffffe 01", "1E+2"),
            ("", "\"\""),
        ],
    );
    check(
        "FloatType",
        &[
            ("3dcccccd", "0.1"),
            ("7fc00000", "null"),
            ("ff800000", "null"),
        ],
    );
    check(
        "DoubleType",
        &[
            ("3ff8000000000000", "1.5"),
            ("7ff0000000000000", "null"),
            ("", "\"\""),
        ],
    );
    check("BooleanType", &[("00", "false"), ("02", "true")]);
    // The first eight bytes of a context with one global shard header.
    check(
        "CounterColumnType",
        &[("0001 8000 00000000 aabbcc", "422212465065984")],
    );
}

#[test]
fn values_that_cassandra_cannot_convert() {
    for (text, bytes) in [
        ("BooleanType", ""),
        ("ByteType", ""),
        ("CounterColumnType", ""),
        ("DateType", ""),
        ("ShortType", "00"),
        ("Int32Type", "000000"),
        ("DecimalType", "00000001"),
        ("UUIDType", "00"),
        ("InetAddressType", "010203"),
        ("AsciiType", "80"),
        ("UTF8Type", "ff"),
        ("TimeType", "ffffffffffffffff"),
        ("DurationType", "0000"),
        ("FrozenType(ListType(Int32Type))", ""),
        ("FrozenType(ListType(Int32Type))", "00000001"),
        ("FrozenType(ListType(Int32Type))", "00000001ffffffff"),
        ("FrozenType(ListType(Int32Type))", "7fffffff"),
        ("TupleType(Int32Type)", ""),
        (
            "FrozenType(UserType(k,75,61:Int32Type))",
            "00000004000000010000",
        ),
        ("VectorType(Int32Type , 2)", "00000001"),
        ("VectorType(EmptyType , 2147483647)", ""),
        ("CompositeType(Int32Type)", "00040000000100"),
    ] {
        assert_eq!(json(text, &hex(bytes)), None, "{text}: {bytes}");
    }
}

#[test]
fn strings_are_escaped_as_jackson_does() {
    assert_eq!(
        json(
            "UTF8Type",
            "a\"b\\c/\u{8}\t\n\u{c}\r\u{1}\u{1f}\u{7f}é😀".as_bytes()
        )
        .unwrap(),
        "\"a\\\"b\\\\c/\\b\\t\\n\\f\\r\\u0001\\u001F\u{7f}é😀\""
    );
    check("BytesType", &[("", "\"0x\""), ("00ff", "\"0x00ff\"")]);
    check("EmptyType", &[("", "\"\"")]);
}

#[test]
fn times_and_addresses() {
    check(
        "TimestampType",
        &[
            ("0000000000000000", "\"1970-01-01 00:00:00.000Z\""),
            ("", "\"\""),
        ],
    );
    check(
        "DateType",
        &[("0000000000000001", "\"1970-01-01 00:00:00.001Z\"")],
    );
    check(
        "SimpleDateType",
        &[("80000001", "\"1970-01-02\""), ("", "\"\"")],
    );
    check(
        "TimeType",
        &[
            ("0000000000000001", "\"00:00:00.000000001\""),
            ("", "\"null\""),
        ],
    );
    check(
        "DurationType",
        &[("02 04 06", "\"1mo2d3ns\""), ("00 00 00", "\"\"")],
    );
    check(
        "UUIDType",
        &[(
            "00112233445566778899aabbccddeeff",
            "\"00112233-4455-6677-8899-aabbccddeeff\"",
        )],
    );
    check(
        "InetAddressType",
        &[
            ("7f000001", "\"127.0.0.1\""),
            (
                "20010db8000000000000000000000001",
                "\"2001:db8:0:0:0:0:0:1\"",
            ),
            ("00000000000000000000ffff7f000001", "\"127.0.0.1\""),
            ("", "\"\""),
        ],
    );
}

#[test]
fn collections() {
    let two = "00000002 0000000400000001 0000000400000002";
    check(
        "FrozenType(ListType(Int32Type))",
        &[(two, "[1, 2]"), ("00000000", "[]")],
    );
    check(
        "ReversedType(FrozenType(SetType(Int32Type)))",
        &[(two, "[1, 2]")],
    );
    // Keys that are not JSON strings are quoted.
    check(
        "FrozenType(MapType(Int32Type,Int32Type))",
        &[
            ("00000001 0000000400000001 0000000400000002", "{\"1\": 2}"),
            ("00000000", "{}"),
        ],
    );
    check(
        "FrozenType(MapType(UTF8Type,Int32Type))",
        &[("00000001 0000000161 0000000400000002", "{\"a\": 2}")],
    );
    check(
        "FrozenType(MapType(TupleType(UTF8Type),Int32Type))",
        &[(
            "00000001 00000005 0000000161 0000000400000002",
            "{\"[\\\"a\\\"]\": 2}",
        )],
    );
}

#[test]
fn tuples_udts_and_vectors() {
    check(
        "TupleType(Int32Type,UTF8Type)",
        &[
            ("0000000400000001 0000000161", "[1, \"a\"]"),
            ("0000000400000001 ffffffff", "[1, null]"),
        ],
    );
    check(
        "FrozenType(UserType(k,75,61:Int32Type,4142:UTF8Type))",
        &[
            (
                "0000000400000001 0000000161",
                "{\"a\": 1, \"\\\"AB\\\"\": \"a\"}",
            ),
            ("0000000400000001", "{\"a\": 1, \"\\\"AB\\\"\": null}"),
            ("", "{\"a\": null, \"\\\"AB\\\"\": null}"),
        ],
    );
    check(
        "VectorType(FloatType , 2)",
        &[("3f80000040000000", "[1.0, 2.0]")],
    );
    check("VectorType(UTF8Type , 2)", &[("0161 00", "[\"a\", \"\"]")]);
}

/// Sixty maps in keys of maps: 2^60 backslashes without a limit.
#[test]
fn keys_of_keys_of_keys_do_not_explode() {
    let depth = 60;
    let text = format!(
        "{}UTF8Type{}",
        "FrozenType(MapType(".repeat(depth / 2),
        ",UTF8Type))".repeat(depth / 2)
    );
    let mut value = b"k".to_vec();
    for _ in 0..depth / 2 {
        let mut outer = vec![0, 0, 0, 1];
        outer.extend_from_slice(&(value.len() as u32).to_be_bytes());
        outer.extend_from_slice(&value);
        outer.extend_from_slice(&[0, 0, 0, 0]);
        value = outer;
    }
    assert_eq!(json(&text, &value), None);
}
