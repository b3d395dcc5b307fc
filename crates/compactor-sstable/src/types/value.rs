//! Values as Rust types, and their bytes.
//!
//! Source: `TypeSerializer.serialize` and `deserialize` of each class in `org.apache.cassandra.serializers`.

use std::net::IpAddr;

use crate::types::elements::{Elements, Item};
use crate::types::{CqlType, MarshalError, UserType, validate};
use crate::vint;

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
    /// `varint`: two's complement, big endian, at least a byte.
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
    /// Reads a value.
    ///
    /// # Errors
    /// Bytes that are not a value of the type, as [`CqlType::validate`]; or a counter context, which
    /// holds more than a value.
    pub fn read(cql_type: &CqlType, bytes: &[u8]) -> Result<Value, MarshalError> {
        cql_type.validate(bytes)?;
        read_valid(cql_type, bytes)
    }

    /// Appends the bytes of the value. Elements of sets and keys of maps are sorted; of equal ones the last
    /// is kept.
    ///
    /// # Errors
    /// A value that is not of the type. `out` is left in any state then.
    pub fn write(&self, cql_type: &CqlType, out: &mut Vec<u8>) -> Result<(), MarshalError> {
        let start = out.len();
        write_parts(self, cql_type, out)?;
        // Ranges and characters are validated as in bytes from other sources.
        cql_type.validate(out.get(start..).unwrap_or_default())
    }

    /// Paths and values of the cells of a column that is not frozen, ascending and unique by path. Elements
    /// of a list get the paths that `list_path` returns, which must ascend.
    ///
    /// # Errors
    /// A value that is not of the type, or a type without cells of its own.
    pub fn cells(
        &self,
        cql_type: &CqlType,
        mut list_path: impl FnMut() -> [u8; 16],
    ) -> Result<Vec<PathAndValue>, MarshalError> {
        let mut cells = Vec::new();
        let mut add = |path: Vec<u8>, value: Option<&Value>, of: &CqlType| {
            let mut bytes = Vec::new();
            if let Some(value) = value {
                value.write(of, &mut bytes)?;
            }
            cells.push((path, bytes));
            Ok::<(), MarshalError>(())
        };
        match (cql_type, self) {
            (CqlType::List { element, .. }, Value::List(values)) => {
                for value in values {
                    add(list_path().to_vec(), Some(value), element)?;
                }
            }
            (CqlType::Set { element, .. }, Value::Set(values)) => {
                let paths = sorted_elements(element, values.iter().map(|value| (value, None)))?;
                for (path, _) in paths {
                    add(path, None, &CqlType::Empty)?;
                }
            }
            (CqlType::Map { key, value, .. }, Value::Map(pairs)) => {
                let pairs = pairs.iter().map(|(key, value)| (key, Some(value)));
                for (path, element) in sorted_elements(key, pairs)? {
                    add(path, element, value)?;
                }
            }
            (CqlType::Udt(udt), Value::Udt(fields)) => {
                refuse_wrong_fields(udt, fields)?;
                for (index, (name, field)) in (0i16..).zip(&udt.fields) {
                    let given = fields.iter().find(|(own, _)| own.as_bytes() == name);
                    if let Some((_, Some(value))) = given {
                        add(index.to_be_bytes().to_vec(), Some(value), field)?;
                    }
                }
            }
            (cql_type, value) => return Err(other_type(cql_type, value)),
        }
        Ok(cells)
    }

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

/// The bytes have been validated, so that no part of them is missing.
fn read_valid(cql_type: &CqlType, bytes: &[u8]) -> Result<Value, MarshalError> {
    Ok(match cql_type {
        CqlType::Reversed(base) => return read_valid(base, bytes),
        CqlType::Ascii | CqlType::Utf8 => match std::str::from_utf8(bytes) {
            Ok(text) => Value::Text(text.to_owned()),
            // Cassandra's validation accepts more than its decoder.
            Err(_) => return Err(MarshalError::new("expected UTF-8, found other bytes")),
        },
        CqlType::Bytes
        | CqlType::Composite(_)
        | CqlType::DynamicComposite(_)
        | CqlType::PartitionerDefinedOrder { .. } => Value::Blob(bytes.to_vec()),
        CqlType::CounterColumn => {
            return Err(MarshalError::new("a counter context has no single value"));
        }
        _ if bytes.is_empty() => Value::Empty,
        CqlType::Empty => Value::Empty,
        CqlType::Boolean => Value::Boolean(bytes != [0]),
        CqlType::Byte => Value::TinyInt(i8::from_be_bytes(whole(bytes)?)),
        CqlType::Short => Value::SmallInt(i16::from_be_bytes(whole(bytes)?)),
        CqlType::Int32 => Value::Int(i32::from_be_bytes(whole(bytes)?)),
        CqlType::Long => Value::BigInt(i64::from_be_bytes(whole(bytes)?)),
        CqlType::Float => Value::Float(f32::from_be_bytes(whole(bytes)?)),
        CqlType::Double => Value::Double(f64::from_be_bytes(whole(bytes)?)),
        CqlType::Integer => Value::VarInt(bytes.to_vec()),
        CqlType::Decimal => {
            let (scale, unscaled) = bytes.split_at_checked(4).unwrap_or((&[], bytes));
            Value::Decimal {
                unscaled: unscaled.to_vec(),
                scale: i32::from_be_bytes(whole(scale)?),
            }
        }
        CqlType::Timestamp | CqlType::LegacyDate => {
            Value::Timestamp(i64::from_be_bytes(whole(bytes)?))
        }
        CqlType::SimpleDate => Value::Date(days(u32::from_be_bytes(whole(bytes)?))),
        CqlType::Time => Value::Time(i64::from_be_bytes(whole(bytes)?)),
        CqlType::Duration => {
            let (months, days, nanoseconds) = validate::duration(bytes)?;
            Value::Duration {
                months,
                days,
                nanoseconds,
            }
        }
        CqlType::Uuid | CqlType::TimeUuid | CqlType::LegacyTimeUuid | CqlType::LexicalUuid => {
            Value::Uuid(whole(bytes)?)
        }
        CqlType::Inet => match <[u8; 4]>::try_from(bytes) {
            Ok(v4) => Value::Inet(IpAddr::from(v4)),
            Err(_) => Value::Inet(IpAddr::from(whole::<16>(bytes)?)),
        },
        CqlType::List { element, .. } => Value::List(read_elements(element, bytes)?),
        CqlType::Set { element, .. } => Value::Set(read_elements(element, bytes)?),
        CqlType::Map { key, value, .. } => {
            let mut elements = Elements::new(bytes);
            let count = elements.count32().unwrap_or_default();
            let mut next = |part: &CqlType| read_valid(part, present(elements.next32())?);
            let pairs = (0..count).map(|_| Ok((next(key)?, next(value)?)));
            Value::Map(pairs.collect::<Result<_, MarshalError>>()?)
        }
        CqlType::Tuple(types) => Value::Tuple(read_fields(types.iter(), bytes)?),
        CqlType::Udt(udt) => {
            let names = udt.fields.iter();
            let names = names.map(|(name, _)| String::from_utf8_lossy(name).into_owned());
            let fields = read_fields(udt.fields.iter().map(|(_, field)| field), bytes)?;
            Value::Udt(names.zip(fields).collect())
        }
        CqlType::Vector { element, dimension } => {
            let fixed_len = element.fixed_len();
            let mut elements = Elements::new(bytes);
            let mut next = |_| read_valid(element, present(elements.next_of_vector(fixed_len))?);
            Value::Vector((0..*dimension).map(&mut next).collect::<Result<_, _>>()?)
        }
    })
}

fn whole<const N: usize>(bytes: &[u8]) -> Result<[u8; N], MarshalError> {
    <[u8; N]>::try_from(bytes).map_err(|_| MarshalError::length(&format!("{N} bytes"), bytes))
}

fn present(item: Item<'_>) -> Result<&[u8], MarshalError> {
    match item {
        Item::Value(bytes) => Ok(bytes),
        Item::Null | Item::Broken(_) | Item::End => Err(MarshalError::new("an element is missing")),
    }
}

fn read_elements(element: &CqlType, bytes: &[u8]) -> Result<Vec<Value>, MarshalError> {
    let mut elements = Elements::new(bytes);
    let count = elements.count32().unwrap_or_default();
    (0..count)
        .map(|_| read_valid(element, present(elements.next32())?))
        .collect()
}

fn read_fields<'t>(
    types: impl Iterator<Item = &'t CqlType>,
    bytes: &[u8],
) -> Result<Vec<Option<Value>>, MarshalError> {
    let mut elements = Elements::new(bytes);
    types
        .map(|field| {
            if elements.is_empty() {
                Ok(None)
            } else {
                match elements.next32() {
                    Item::Value(bytes) => read_valid(field, bytes).map(Some),
                    _ => Ok(None),
                }
            }
        })
        .collect()
}

/// `date` counts days from -2^31 in an unsigned int.
fn days(raw: u32) -> i32 {
    (raw ^ (1 << 31)) as i32
}

fn write_parts(value: &Value, cql_type: &CqlType, out: &mut Vec<u8>) -> Result<(), MarshalError> {
    match (cql_type, value) {
        (CqlType::Reversed(base), value) => return write_parts(value, base, out),
        (CqlType::Ascii | CqlType::Utf8, Value::Text(text)) => {
            out.extend_from_slice(text.as_bytes())
        }
        (
            CqlType::Bytes
            | CqlType::Composite(_)
            | CqlType::DynamicComposite(_)
            | CqlType::PartitionerDefinedOrder { .. },
            Value::Blob(bytes),
        ) => out.extend_from_slice(bytes),
        (CqlType::CounterColumn, _) => {
            return Err(MarshalError::new(
                "counters cannot be written: their shards belong to nodes",
            ));
        }
        (_, Value::Empty) => {}
        (CqlType::Integer, Value::VarInt(bytes)) if !bytes.is_empty() => {
            out.extend_from_slice(bytes)
        }
        (
            CqlType::Decimal,
            Value::Decimal {
                unscaled: bytes, ..
            },
        )
        | (CqlType::Integer, Value::VarInt(bytes))
            if bytes.is_empty() =>
        {
            return Err(MarshalError::new("a number of no bytes"));
        }
        (CqlType::Boolean, Value::Boolean(value)) => out.push(u8::from(*value)),
        (CqlType::Byte, Value::TinyInt(value)) => out.extend_from_slice(&value.to_be_bytes()),
        (CqlType::Short, Value::SmallInt(value)) => out.extend_from_slice(&value.to_be_bytes()),
        (CqlType::Int32, Value::Int(value)) => out.extend_from_slice(&value.to_be_bytes()),
        (CqlType::Long, Value::BigInt(value))
        | (CqlType::Timestamp | CqlType::LegacyDate, Value::Timestamp(value))
        | (CqlType::Time, Value::Time(value)) => out.extend_from_slice(&value.to_be_bytes()),
        (CqlType::Float, Value::Float(value)) => out.extend_from_slice(&value.to_be_bytes()),
        (CqlType::Double, Value::Double(value)) => out.extend_from_slice(&value.to_be_bytes()),
        (CqlType::Decimal, Value::Decimal { unscaled, scale }) => {
            out.extend_from_slice(&scale.to_be_bytes());
            out.extend_from_slice(unscaled);
        }
        (CqlType::SimpleDate, Value::Date(days)) => {
            out.extend_from_slice(&(*days as u32 ^ (1 << 31)).to_be_bytes());
        }
        (
            CqlType::Duration,
            Value::Duration {
                months,
                days,
                nanoseconds,
            },
        ) => {
            vint::write_signed(out, i64::from(*months));
            vint::write_signed(out, i64::from(*days));
            vint::write_signed(out, *nanoseconds);
        }
        (
            CqlType::Uuid | CqlType::TimeUuid | CqlType::LegacyTimeUuid | CqlType::LexicalUuid,
            Value::Uuid(bytes),
        ) => out.extend_from_slice(bytes),
        (CqlType::Inet, Value::Inet(IpAddr::V4(address))) => {
            out.extend_from_slice(&address.octets());
        }
        (CqlType::Inet, Value::Inet(IpAddr::V6(address))) => {
            out.extend_from_slice(&address.octets());
        }
        (CqlType::List { element, .. }, Value::List(values)) => {
            write_count(values.len(), out)?;
            for value in values {
                write_with_length(value, element, out)?;
            }
        }
        (CqlType::Set { element, .. }, Value::Set(values)) => {
            let pairs = values.iter().map(|value| (value, None));
            let sorted = sorted_elements(element, pairs)?;
            write_count(sorted.len(), out)?;
            for (bytes, _) in sorted {
                write_bytes(&bytes, out)?;
            }
        }
        (
            CqlType::Map {
                key, value: values, ..
            },
            Value::Map(pairs),
        ) => {
            let sorted = sorted_elements(key, pairs.iter().map(|(key, value)| (key, Some(value))))?;
            write_count(sorted.len(), out)?;
            for (bytes, value) in sorted {
                write_bytes(&bytes, out)?;
                if let Some(value) = value {
                    write_with_length(value, values, out)?;
                }
            }
        }
        (CqlType::Tuple(types), Value::Tuple(fields)) if fields.len() <= types.len() => {
            for (field, value) in types.iter().zip(fields) {
                write_field(value.as_ref(), field, out)?;
            }
        }
        (CqlType::Udt(udt), Value::Udt(fields)) => {
            refuse_wrong_fields(udt, fields)?;
            for (own, field) in &udt.fields {
                let given = fields.iter().find(|(name, _)| name.as_bytes() == own);
                let value = given.and_then(|(_, value)| value.as_ref());
                write_field(value, field, out)?;
            }
        }
        (CqlType::Vector { element, dimension }, Value::Vector(values))
            if values.len() == *dimension as usize =>
        {
            for value in values {
                match element.fixed_len() {
                    Some(_) => write_parts(value, element, out)?,
                    None => {
                        let mut bytes = Vec::new();
                        write_parts(value, element, &mut bytes)?;
                        vint::write_unsigned(out, bytes.len() as u64);
                        out.extend_from_slice(&bytes);
                    }
                }
            }
        }
        (CqlType::Vector { dimension, .. }, Value::Vector(values)) => {
            return Err(MarshalError::new(format!(
                "expected {dimension} elements of a vector, found {}",
                values.len()
            )));
        }
        (cql_type, value) => return Err(other_type(cql_type, value)),
    }
    Ok(())
}

#[cold]
fn other_type(cql_type: &CqlType, value: &Value) -> MarshalError {
    MarshalError::new(format!(
        "expected {}, found {}",
        cql_type.cql_name(),
        value.name()
    ))
}

/// Refuses fields that the type does not have, or that are set twice.
fn refuse_wrong_fields(
    udt: &UserType,
    fields: &[(String, Option<Value>)],
) -> Result<(), MarshalError> {
    let of = || String::from_utf8_lossy(&udt.name);
    for (index, (name, _)) in fields.iter().enumerate() {
        if !udt.fields.iter().any(|(own, _)| own == name.as_bytes()) {
            return Err(MarshalError::new(format!("{} has no field {name}", of())));
        }
        if fields[..index].iter().any(|(before, _)| before == name) {
            return Err(MarshalError::new(format!(
                "field {name} of {} is set twice",
                of()
            )));
        }
    }
    Ok(())
}

/// Bytes of an element or key, and the value that belongs to a key.
type Element<'v> = (Vec<u8>, Option<&'v Value>);

/// Bytes of elements or keys, ascending and unique, with the values that belong to them.
fn sorted_elements<'v>(
    element: &CqlType,
    values: impl Iterator<Item = (&'v Value, Option<&'v Value>)>,
) -> Result<Vec<Element<'v>>, MarshalError> {
    let mut sorted = Vec::new();
    for (value, other) in values {
        let mut bytes = Vec::new();
        value.write(element, &mut bytes)?;
        sorted.push((bytes, other));
    }
    // A stable sort, so that equal ones keep their order.
    sorted.sort_by(|(a, _), (b, _)| element.compare(a, b));
    let mut unique: Vec<Element<'_>> = Vec::with_capacity(sorted.len());
    for next in sorted {
        match unique.last_mut() {
            Some(last) if element.compare(&last.0, &next.0).is_eq() => *last = next,
            _ => unique.push(next),
        }
    }
    Ok(unique)
}

fn write_count(count: usize, out: &mut Vec<u8>) -> Result<(), MarshalError> {
    let count = i32::try_from(count).map_err(|_| MarshalError::new("too many elements"))?;
    out.extend_from_slice(&count.to_be_bytes());
    Ok(())
}

fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), MarshalError> {
    write_count(bytes.len(), out)?;
    out.extend_from_slice(bytes);
    Ok(())
}

fn write_with_length(
    value: &Value,
    cql_type: &CqlType,
    out: &mut Vec<u8>,
) -> Result<(), MarshalError> {
    let mut bytes = Vec::new();
    write_parts(value, cql_type, &mut bytes)?;
    write_bytes(&bytes, out)
}

/// A field of a tuple: -1 for null.
fn write_field(
    value: Option<&Value>,
    cql_type: &CqlType,
    out: &mut Vec<u8>,
) -> Result<(), MarshalError> {
    match value {
        None => {
            out.extend_from_slice(&(-1i32).to_be_bytes());
            Ok(())
        }
        Some(value) => write_with_length(value, cql_type, out),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

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
        let unordered = Value::Set(vec![5.into(), (-1).into(), 5.into()]);
        let read = Value::read(&set, &bytes(&unordered, &set)).unwrap();
        assert_eq!(read, Value::Set(vec![(-1).into(), 5.into()]));
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
