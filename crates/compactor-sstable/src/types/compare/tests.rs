use std::cmp::Ordering;

use crate::types::CqlType;

fn parse(text: &str) -> CqlType {
    CqlType::parse(text).unwrap()
}

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

/// Values in ascending order; those in one inner list are equal.
fn ascending(text: &str, groups: &[&[&str]]) {
    let cql_type = parse(text);
    let reversed = parse(&format!("ReversedType({text})"));
    for (i, left) in groups.iter().enumerate() {
        for (j, right) in groups.iter().enumerate() {
            for a in *left {
                for b in *right {
                    let (x, y) = (hex(a), hex(b));
                    assert_eq!(
                        cql_type.compare(&x, &y),
                        i.cmp(&j),
                        "{text}: {a} against {b}"
                    );
                    assert_eq!(
                        reversed.compare(&x, &y),
                        j.cmp(&i),
                        "reversed {text}: {a}, {b}"
                    );
                }
            }
        }
    }
}

#[test]
fn byte_order() {
    for text in [
        "AsciiType",
        "UTF8Type",
        "BytesType",
        "InetAddressType",
        "SimpleDateType",
        "TimeType",
        "DateType",
        "DurationType",
    ] {
        ascending(
            text,
            &[&[""], &["00"], &["0000"], &["7f"], &["80"], &["ff"]],
        );
    }
}

#[test]
fn integers_of_fixed_width() {
    ascending("ByteType", &[&[""], &["80"], &["ff"], &["00"], &["7f"]]);
    ascending(
        "ShortType",
        &[&[""], &["8000"], &["ffff"], &["0000"], &["0001"], &["7fff"]],
    );
    ascending(
        "Int32Type",
        &[
            &[""],
            &["80000000"],
            &["ffffffff"],
            &["00000000"],
            &["7fffffff"],
        ],
    );
    for text in ["LongType", "TimestampType"] {
        ascending(
            text,
            &[
                &[""],
                &["8000000000000000"],
                &["ffffffffffffffff"],
                &["0000000000000000"],
                &["0000000000000001"],
                &["0000000100000000"],
                &["7fffffffffffffff"],
            ],
        );
    }
}

#[test]
fn empty_is_last_under_reversed() {
    let reversed = parse("ReversedType(Int32Type)");
    assert_eq!(reversed.compare(&[], &[0, 0, 0, 1]), Ordering::Greater);
    assert_eq!(reversed.compare(&[], &[]), Ordering::Equal);
}

#[test]
fn booleans_and_floats() {
    ascending("BooleanType", &[&[""], &["00"], &["01", "ff", "02"]]);
    // -inf, -1, -0.0, 0.0, 1, inf, NaN of both signs and any payload.
    ascending(
        "FloatType",
        &[
            &[""],
            &["ff800000"],
            &["bf800000"],
            &["80000000"],
            &["00000000"],
            &["3f800000"],
            &["7f800000"],
            &["7fc00000", "ffc00000", "7f800001", "ffffffff"],
        ],
    );
    ascending(
        "DoubleType",
        &[
            &[""],
            &["fff0000000000000"],
            &["bff0000000000000"],
            &["8000000000000000"],
            &["0000000000000000"],
            &["0000000000000001"],
            &["3ff0000000000000"],
            &["7ff0000000000000"],
            &["7ff8000000000000", "fff8000000000001"],
        ],
    );
}

#[test]
fn uuid_by_version_then_time_or_bits() {
    ascending(
        "UUIDType",
        &[
            &[""],
            // Version 1: time high, middle, low; then the low half unsigned.
            &["ffffffff ffff 1000 0000000000000000"],
            &["00000000 0000 1001 0000000000000000"],
            &["00000001 0000 1001 0000000000000000"],
            &["00000001 0000 1001 7f00000000000000"],
            &["00000001 0000 1001 8000000000000000"],
            // Version 4: unsigned.
            &["00000000 0000 4000 0000000000000000"],
            &["80000000 0000 4000 0000000000000000"],
            &["80000000 0000 4000 ffffffffffffffff"],
            &["00000000 0000 f000 0000000000000000"],
        ],
    );
}

#[test]
fn timeuuid_low_half_is_signed_by_byte() {
    for text in ["TimeUUIDType", "LegacyTimeUUIDType"] {
        ascending(
            text,
            &[
                &[""],
                &["ffffffff ffff 1000 7f7f7f7f7f7f7f7f"],
                &["00000000 0000 1001 8080808080808080"],
                &["00000000 0000 1001 8000000000000080"],
                &["00000000 0000 1001 8000000000000000"],
                &["00000000 0000 1001 ff00000000000000"],
                &["00000000 0000 1001 0080000000000000"],
                &["00000000 0000 1001 0000000000000000"],
                &["00000000 0000 1001 007f000000000000"],
                &["00000000 0001 1001 8080808080808080"],
                &["00000001 0001 1001 8080808080808080"],
            ],
        );
    }
}

#[test]
fn lexical_uuid_halves_are_signed() {
    ascending(
        "LexicalUUIDType",
        &[
            &[""],
            &["8000000000000000 0000000000000000"],
            &["0000000000000000 8000000000000000"],
            &["0000000000000000 0000000000000000"],
            &["7000000000000000 0000000000000000"],
        ],
    );
}

#[test]
fn varint_ignores_padding() {
    ascending(
        "IntegerType",
        &[
            &[""],
            &["ff7fff"],
            &["8000", "ff8000"],
            &["80", "ff80", "ffff80"],
            &["ff", "ffff"],
            &["00", "0000"],
            &["01", "0001", "000001"],
            &["7f"],
            &["0080", "000080"],
            &["00ff"],
            &["0100"],
            &["7fffff"],
        ],
    );
}

#[test]
fn decimal_is_numeric_whatever_the_scale() {
    ascending(
        "DecimalType",
        &[
            &[""],
            // Malformed: no unscaled value.
            &["00"],
            &["00000000"],
            // -1e2147483648, -10, -1, -0.5
            &["80000000 ff"],
            &["00000000 f6", "ffffffff ff"],
            &["00000000 ff", "00000001 f6"],
            &["00000001 fb"],
            &["00000000 00", "7fffffff 00", "80000000 0000"],
            // 1e-2147483647, 0.001, 1.0 = 1.00, 1.0000001
            &["7fffffff 01"],
            &["00000003 01"],
            &[
                "00000000 01",
                "00000001 0a",
                "00000002 64",
                "00000002 000064",
            ],
            &["00000007 00989681"],
            &["00000000 02"],
            &["80000000 01"],
        ],
    );
}

#[test]
fn long_decimals_are_exact() {
    // 10^40 as 1 with scale -40, as 10^40, and as 10^60 with scale 20; then one more in the last digit.
    let ten_to_the = |power: usize, plus: u8| {
        let mut digits = vec![0u8; 40];
        digits[39] = 1;
        for _ in 0..power {
            let mut carry = 0u16;
            for byte in digits.iter_mut().rev() {
                let product = u16::from(*byte) * 10 + carry;
                *byte = product as u8;
                carry = product >> 8;
            }
        }
        digits[39] += plus;
        digits
    };
    let value = |scale: i32, unscaled: &[u8]| [&scale.to_be_bytes(), unscaled].concat();
    let equal = [
        value(-40, &[1]),
        value(0, &ten_to_the(40, 0)),
        value(20, &ten_to_the(60, 0)),
    ];
    let greater = [value(0, &ten_to_the(40, 1)), value(20, &ten_to_the(60, 1))];
    for a in &equal {
        for b in &equal {
            assert_eq!(CqlType::Decimal.compare(a, b), Ordering::Equal);
        }
        for b in &greater {
            assert_eq!(CqlType::Decimal.compare(a, b), Ordering::Less);
            assert_eq!(CqlType::Decimal.compare(b, a), Ordering::Greater);
        }
    }
    assert_eq!(
        CqlType::Decimal.compare(&greater[0], &greater[1]),
        Ordering::Greater
    );
}

/// A scale of two billion must not lead to the computation of 10 to the two billionth.
#[test]
fn hostile_scales_take_no_time() {
    let long = [vec![0x7f, 0xff, 0xff, 0xff], vec![0x5a; 60_000]].concat();
    let short = hex("80000000 01");
    assert_eq!(CqlType::Decimal.compare(&long, &short), Ordering::Less);
    assert_eq!(CqlType::Decimal.compare(&short, &long), Ordering::Greater);
    assert_eq!(CqlType::Decimal.compare(&long, &long), Ordering::Equal);
}

#[test]
fn frozen_collections() {
    for text in [
        "FrozenType(ListType(Int32Type))",
        "FrozenType(SetType(Int32Type))",
    ] {
        ascending(
            text,
            &[
                &[""],
                &["00000000"],
                &["00000001 00000000"],
                // Negative before positive, not by bytes; shorter before its extension.
                &["00000001 00000004ffffffff"],
                &["00000001 0000000400000001"],
                &["00000002 0000000400000001 00000004ffffffff"],
                &["00000001 0000000400000002"],
            ],
        );
    }
    ascending(
        "FrozenType(MapType(Int32Type,UTF8Type))",
        &[
            &[""],
            &["00000000"],
            &["00000001 00000004ffffffff 00000001 7a"],
            &["00000001 0000000400000001 00000001 61"],
            &["00000002 0000000400000001 00000001 61 0000000400000002 00000000"],
            &["00000001 0000000400000001 00000001 62"],
        ],
    );
}

#[test]
fn tuples_treat_missing_as_null() {
    for text in [
        "TupleType(Int32Type,UTF8Type,Int32Type)",
        "FrozenType(UserType(ks,75,61:Int32Type,62:UTF8Type,63:Int32Type))",
    ] {
        ascending(
            text,
            &[
                &[""],
                &["ffffffff", "ffffffff ffffffff ffffffff"],
                &["ffffffff 00000000"],
                &["00000004ffffffff"],
                &[
                    "0000000400000001",
                    "0000000400000001 ffffffff",
                    "0000000400000001 ffffffff ffffffff",
                ],
                &["0000000400000001 ffffffff 0000000400000000"],
                &["0000000400000001 00000001 61"],
            ],
        );
    }
}

#[test]
fn vectors() {
    ascending(
        "VectorType(Int32Type , 2)",
        &[
            &[""],
            &["80000000 7fffffff"],
            &["00000001 ffffffff"],
            &["00000001 00000000"],
        ],
    );
    ascending(
        "VectorType(UTF8Type , 2)",
        &[
            &["00 00"],
            &["00 0161"],
            &["0161 00"],
            &["0161 0162"],
            &["026161 00"],
            &["0162 00"],
        ],
    );
    // A type of no width must not be traversed two billion times.
    assert_eq!(
        parse("VectorType(EmptyType , 2147483647)").compare(&[1], &[2]),
        Ordering::Equal
    );
}

#[test]
fn composites() {
    ascending(
        "CompositeType(Int32Type,UTF8Type)",
        &[
            &[""],
            &["ffff 0004ffffffff 00"],
            &["0004ffffffff ff"],
            &["0004ffffffff 00"],
            &["0004ffffffff 00 0001 61 00"],
            &["0004ffffffff 00 0001 61 01"],
            &["0004ffffffff 01"],
            &["0004 00000001 00"],
        ],
    );
}

#[test]
fn dynamic_composites_compare_classes_first() {
    // a => Int32Type, b => UTF8Type; the last one contains LongType as text.
    let long = "4c6f6e6754797065";
    ascending(
        "DynamicCompositeType(a=>Int32Type,b=>UTF8Type,r=>ReversedType(Int32Type))",
        &[
            &[""],
            &["8061 0004ffffffff ff"],
            &["8061 0004ffffffff 00"],
            &["8061 0004ffffffff 01"],
            &[
                "8061 000400000001 00",
                "0009 496e74333254797065 000400000001 00",
            ],
            &["8061 000400000001 00 8062 0001 61 00"],
            &["8061 000400000002 00"],
            &[&format!("0008 {long} 0008 0000000000000001 00")],
            &["8072 000400000002 00"],
            &["8072 000400000001 00"],
            &["8062 0001 61 00"],
        ],
    );
}

/// A component must not name a dynamic composite, which would recurse as deeply as the value is long.
#[test]
fn dynamic_composites_do_not_nest_by_name() {
    let mut value = vec![0x80, b'a', 0, 0, 0];
    for _ in 0..2000 {
        let name = b"DynamicCompositeType(a=>Int32Type)";
        let mut outer = vec![0, name.len() as u8];
        outer.extend_from_slice(name);
        outer.extend_from_slice(&(value.len() as u16).to_be_bytes());
        outer.extend_from_slice(&value);
        outer.push(0);
        value = outer;
        if value.len() > 65_000 {
            break;
        }
    }
    let cql_type = parse("DynamicCompositeType(a=>Int32Type)");
    assert_eq!(cql_type.compare(&value, &value.clone()), Ordering::Equal);
}

#[test]
fn malformed_values_sort_between_empty_and_valid() {
    ascending(
        "UUIDType",
        &[
            &[""],
            &["00"],
            &["ff"],
            &["00000000000000000000000000000000"],
        ],
    );
    ascending(
        "FloatType",
        &[&[""], &["00"], &["ffffffffff"], &["ff800000"]],
    );
    ascending(
        "FrozenType(ListType(Int32Type))",
        // No count, negative count, then a count without its elements.
        &[
            &[""],
            &["00000000"],
            &["00"],
            &["ffffffff"],
            &["00000001 00000000"],
        ],
    );
}

/// "key255" has the minimum token but not the minimum bytes.
#[test]
fn keys_of_an_index_are_in_token_order() {
    ascending(
        "PartitionerDefinedOrder(org.apache.cassandra.dht.Murmur3Partitioner)",
        &[&[""], &["6b6579323535"], &["00000001"], &["80ff"]],
    );
}
