//! Values as Rust types, and their bytes.
//!
//! Source: `TypeSerializer.serialize` and `deserialize` of each class in `org.apache.cassandra.serializers`.

use std::net::IpAddr;

mod read;
mod write;

/// A value of a CQL type.
///
/// [`From`] converts Rust values. Collections of a column that is not frozen have the same form.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// Empty value: valid for most types, and different from null.
    Empty,
    /// `ascii`, `text`.
    Text(String),
    /// `blob`, and types without a CQL name.
    Blob(Vec<u8>),
    /// `boolean`.
    Boolean(bool),
    /// `tinyint`.
    TinyInt(i8),
    /// `smallint`.
    SmallInt(i16),
    /// `int`.
    Int(i32),
    /// `bigint`.
    BigInt(i64),
    /// `float`.
    Float(f32),
    /// `double`.
    Double(f64),
    /// `varint`: two's complement, big endian, at least a byte, such as those of `i64::to_be_bytes`.
    VarInt(Vec<u8>),
    /// `decimal`: unscaled × 10^-scale.
    Decimal {
        /// As in [`Value::VarInt`].
        unscaled: Vec<u8>,
        /// Number of decimal digits after the point.
        scale: i32,
    },
    /// `timestamp`: milliseconds since 1970.
    Timestamp(i64),
    /// `date`: days since 1970.
    Date(i32),
    /// `time`: nanoseconds since midnight.
    Time(i64),
    /// `duration`; the three have one sign.
    Duration {
        /// Months.
        months: i32,
        /// Days.
        days: i32,
        /// Nanoseconds.
        nanoseconds: i64,
    },
    /// `uuid`, `timeuuid`.
    Uuid([u8; 16]),
    /// `inet`. An IPv6 address has 16 bytes, also an IPv4-mapped one, which CQL literals and Java clients
    /// write as IPv4: see [`IpAddr::to_canonical`].
    Inet(IpAddr),
    /// `list<T>`.
    List(Vec<Value>),
    /// `set<T>`, ascending when read.
    Set(Vec<Value>),
    /// `map<K, V>`, ascending by key when read.
    Map(Vec<(Value, Value)>),
    /// `tuple<...>`; fields that are missing at the end are null.
    Tuple(Vec<Option<Value>>),
    /// A user-defined type: names and values of its fields.
    Udt(Vec<(String, Option<Value>)>),
    /// `vector<T, n>`.
    Vector(Vec<Value>),
}

/// Path and value of a cell of a complex column, as stored.
pub type PathAndValue = (Vec<u8>, Vec<u8>);

macro_rules! from {
    ($($rust:ty => $variant:ident),* $(,)?) => {$(
        impl From<$rust> for Value {
            fn from(value: $rust) -> Value {
                Value::$variant(value.into())
            }
        }
    )*};
}

from! {
    &str => Text, String => Text, &[u8] => Blob, Vec<u8> => Blob, bool => Boolean, i8 => TinyInt, i16 => SmallInt,
    i32 => Int, i64 => BigInt, f32 => Float, f64 => Double, IpAddr => Inet,
}

impl Value {
    /// Name of the variant in CQL terms.
    fn name(&self) -> &'static str {
        match self {
            Value::Empty => "an empty value",
            Value::Text(_) => "text",
            Value::Blob(_) => "blob",
            Value::Boolean(_) => "boolean",
            Value::TinyInt(_) => "tinyint",
            Value::SmallInt(_) => "smallint",
            Value::Int(_) => "int",
            Value::BigInt(_) => "bigint",
            Value::Float(_) => "float",
            Value::Double(_) => "double",
            Value::VarInt(_) => "varint",
            Value::Decimal { .. } => "decimal",
            Value::Timestamp(_) => "timestamp",
            Value::Date(_) => "date",
            Value::Time(_) => "time",
            Value::Duration { .. } => "duration",
            Value::Uuid(_) => "uuid",
            Value::Inet(_) => "inet",
            Value::List(_) => "list",
            Value::Set(_) => "set",
            Value::Map(_) => "map",
            Value::Tuple(_) => "tuple",
            Value::Udt(_) => "user-defined type",
            Value::Vector(_) => "vector",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::types::{CqlType, UserType};

    fn bytes(value: &Value, cql_type: &CqlType) -> Vec<u8> {
        let mut out = Vec::new();
        value.write(cql_type, &mut out).unwrap();
        out
    }

    #[test]
    fn values_are_read_as_they_were_written() {
        let text = Arc::new(CqlType::Utf8);
        let int = Arc::new(CqlType::Int32);
        let set = CqlType::Set {
            element: Arc::clone(&int),
            multi_cell: false,
        };
        let map = CqlType::Map {
            key: Arc::clone(&text),
            value: Arc::new(set.clone()),
            multi_cell: false,
        };
        let udt = CqlType::Udt(Arc::new(UserType {
            keyspace: "ks".to_owned(),
            name: b"address".to_vec(),
            fields: vec![
                (b"street".to_vec(), CqlType::Utf8),
                (b"number".to_vec(), CqlType::Int32),
            ],
            multi_cell: false,
        }));
        let vector = |element: &Arc<CqlType>, dimension| CqlType::Vector {
            element: Arc::clone(element),
            dimension,
        };
        let address = |number| {
            Value::Udt(vec![
                ("street".to_owned(), Some("a".into())),
                ("number".to_owned(), number),
            ])
        };
        for (cql_type, value) in [
            (CqlType::Utf8, Value::from("ü")),
            (CqlType::Bytes, Value::from(&[0u8, 255][..])),
            (CqlType::Boolean, Value::from(true)),
            (CqlType::Byte, Value::from(-1i8)),
            (CqlType::Short, Value::from(-2i16)),
            (CqlType::Int32, Value::from(i32::MIN)),
            (CqlType::Long, Value::from(i64::MAX)),
            (CqlType::Float, Value::from(1.5f32)),
            (CqlType::Double, Value::from(-0.0f64)),
            (CqlType::Integer, Value::VarInt(vec![0, 255])),
            (
                CqlType::Decimal,
                Value::Decimal {
                    unscaled: vec![5],
                    scale: -3,
                },
            ),
            (CqlType::Timestamp, Value::Timestamp(-1)),
            (CqlType::SimpleDate, Value::Date(-1)),
            (CqlType::Time, Value::Time(86_399_999_999_999)),
            (
                CqlType::Duration,
                Value::Duration {
                    months: -1,
                    days: -200,
                    nanoseconds: i64::MIN,
                },
            ),
            (CqlType::Uuid, Value::Uuid([7; 16])),
            (CqlType::Inet, Value::Inet([127, 0, 0, 1].into())),
            (CqlType::Inet, Value::Inet([1u16; 8].into())),
            (CqlType::Int32, Value::Empty),
            (set.clone(), Value::Set(vec![(-1).into(), 5.into()])),
            (
                map,
                Value::Map(vec![
                    ("a".into(), Value::Set(Vec::new())),
                    ("b".into(), Value::Set(vec![1.into()])),
                ]),
            ),
            (
                CqlType::Tuple([CqlType::Int32, CqlType::Utf8].into()),
                Value::Tuple(vec![None, Some("x".into())]),
            ),
            (udt.clone(), address(Some(3.into()))),
            (udt.clone(), address(None)),
            (vector(&int, 2), Value::Vector(vec![1.into(), 2.into()])),
            (vector(&text, 2), Value::Vector(vec!["".into(), "b".into()])),
            (CqlType::Reversed(Arc::clone(&int)), 9.into()),
        ] {
            let bytes = bytes(&value, &cql_type);
            assert_eq!(Value::read(&cql_type, &bytes).unwrap(), value);
        }
        // Days since 1970 are those that Cassandra prints.
        assert_eq!(
            CqlType::SimpleDate
                .to_text(&bytes(&Value::Date(1), &CqlType::SimpleDate))
                .unwrap(),
            "1970-01-02"
        );
        // A tuple of fewer fields has nulls at its end.
        let tuple = CqlType::Tuple([CqlType::Int32, CqlType::Utf8].into());
        let short = bytes(&Value::Tuple(vec![Some(1.into())]), &tuple);
        assert_eq!(short, [0, 0, 0, 4, 0, 0, 0, 1, 255, 255, 255, 255]);
        let unordered = Value::Set(vec![5.into(), (-1).into(), 5.into()]);
        let read = Value::read(&set, &bytes(&unordered, &set)).unwrap();
        assert_eq!(read, Value::Set(vec![(-1).into(), 5.into()]));
    }

    /// Clients write the shortest form, and a node looks for a partition by the bytes of its key.
    #[test]
    fn numbers_are_written_without_redundant_bytes() {
        for (number, shortest) in [
            (5i64, vec![5u8]),
            (-1, vec![0xff]),
            (0, vec![0]),
            (128, vec![0, 128]),
            (-129, vec![0xff, 0x7f]),
        ] {
            let padded = number.to_be_bytes().to_vec();
            let varint = Value::VarInt(padded.clone());
            assert_eq!(bytes(&varint, &CqlType::Integer), shortest);
            let decimal = Value::Decimal {
                unscaled: padded,
                scale: 1,
            };
            assert_eq!(bytes(&decimal, &CqlType::Decimal)[4..], shortest);
        }
    }

    #[test]
    fn other_types_and_impossible_values_are_refused() {
        for (cql_type, value, why) in [
            (CqlType::Int32, Value::from("x"), "expected int, found text"),
            (CqlType::Long, Value::from(1), "expected bigint, found int"),
            (CqlType::Time, Value::Time(-1), ""),
            (CqlType::Ascii, Value::from("ü"), "ASCII"),
            (CqlType::TimeUuid, Value::Uuid([0x40; 16]), "version 1"),
            (CqlType::CounterColumn, Value::from(1i64), "counters"),
            (CqlType::Byte, Value::Empty, "1 byte"),
            (CqlType::Integer, Value::VarInt(Vec::new()), "no bytes"),
            (
                CqlType::Decimal,
                Value::Decimal {
                    unscaled: Vec::new(),
                    scale: 1,
                },
                "no bytes",
            ),
            (
                CqlType::Duration,
                Value::Duration {
                    months: 1,
                    days: -1,
                    nanoseconds: 0,
                },
                "one sign",
            ),
            (
                CqlType::Tuple([CqlType::Int32].into()),
                Value::Tuple(vec![None, None]),
                "tuple",
            ),
        ] {
            let Err(error) = value.write(&cql_type, &mut Vec::new()) else {
                assert_eq!(why, "", "{value:?}");
                continue;
            };
            assert!(error.to_string().contains(why), "{error}");
        }
        assert!(Value::read(&CqlType::Int32, &[1]).is_err());
        assert!(Value::read(&CqlType::CounterColumn, &[0, 0]).is_err());
    }

    #[test]
    fn fields_are_set_once() {
        let udt = CqlType::Udt(Arc::new(UserType {
            keyspace: "ks".to_owned(),
            name: b"point".to_vec(),
            fields: vec![(b"x".to_vec(), CqlType::Int32)],
            multi_cell: false,
        }));
        let field = |name: &str| (name.to_owned(), Some(Value::Int(1)));
        let error = |fields| {
            let error = Value::Udt(fields).write(&udt, &mut Vec::new()).unwrap_err();
            error.to_string()
        };
        assert_eq!(
            error(vec![field("x"), field("x")]),
            "field x of point is set twice"
        );
        assert_eq!(error(vec![field("y")]), "point has no field y");
    }

    #[test]
    fn text_that_is_not_utf8_is_not_altered() {
        // Cassandra's validation accepts both.
        for bytes in [&[0xc0, 0x80][..], &[0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80]] {
            let error = Value::read(&CqlType::Utf8, bytes).unwrap_err();
            assert_eq!(error.to_string(), "expected UTF-8, found other bytes");
        }
    }
}
