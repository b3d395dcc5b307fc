//! Values from their bytes.

use std::net::IpAddr;

use super::Value;
use crate::types::elements::{Elements, Item};
use crate::types::{CqlType, MarshalError, validate};

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
