//! Values to bytes.

use std::net::IpAddr;

use super::{PathAndValue, Value};
use crate::types::big_int::minimal;
use crate::types::{CqlType, MarshalError, UserType};
use crate::vint;

impl Value {
    /// Appends the bytes of the value. Elements of sets and keys of maps are sorted; of equal ones the last
    /// is kept. Numbers of any length are written without redundant leading bytes, as clients write them: a partition
    /// key is found by its bytes.
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
            out.extend_from_slice(minimal(bytes))
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
            out.extend_from_slice(minimal(unscaled));
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
            // Nulls at the end too, as clients write them: `SELECT JSON` fails on a tuple that ends early.
            for (index, field) in types.iter().enumerate() {
                let value = fields.get(index).and_then(Option::as_ref);
                write_field(value, field, out)?;
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
