//! Validation of values, as in `TypeSerializer.validate`, which checks the writes of clients.
//!
//! Differs from Cassandra if its validation accepts values on which its readers fail: a collection with a
//! negative count and a decimal without unscaled bytes are refused here.

use crate::data::counter;
use crate::types::compare::next_comparator;
use crate::types::elements::{Component, Elements, Item, split_static_marker};
use crate::types::{CqlType, MarshalError};
use crate::vint;

mod utf8;

type Valid = Result<(), MarshalError>;

impl CqlType {
    /// Validates a serialized value of this type. For a cell of a complex column, use its
    /// [`cell_type`](CqlType::cell_type).
    ///
    /// For counters this validates the structure of the counter context (`CounterContext.validateContext`).
    ///
    /// # Errors
    /// A description without the value itself.
    pub fn validate(&self, bytes: &[u8]) -> Valid {
        match self {
            CqlType::Bytes | CqlType::Integer => Ok(()),
            CqlType::Ascii => {
                if bytes.is_ascii() {
                    Ok(())
                } else {
                    Err(MarshalError::new("expected ASCII, found a byte above 127"))
                }
            }
            CqlType::Utf8 => {
                if utf8::is_valid(bytes) {
                    Ok(())
                } else {
                    Err(MarshalError::new("expected UTF-8, found other bytes"))
                }
            }
            CqlType::Boolean if bytes.len() <= 1 => Ok(()),
            CqlType::Boolean => Err(MarshalError::length("0 or 1 byte", bytes)),
            CqlType::Byte => width(bytes, 1),
            CqlType::Short => width(bytes, 2),
            CqlType::SimpleDate => width(bytes, 4),
            CqlType::Time => width(bytes, 8),
            CqlType::Int32 | CqlType::Float => empty_or_width(bytes, 4),
            CqlType::Long | CqlType::Double | CqlType::Timestamp | CqlType::LegacyDate => {
                empty_or_width(bytes, 8)
            }
            CqlType::Uuid | CqlType::LegacyTimeUuid | CqlType::LexicalUuid => {
                empty_or_width(bytes, 16)
            }
            CqlType::TimeUuid => {
                empty_or_width(bytes, 16)?;
                timeuuid_version(self, bytes)
            }
            CqlType::Decimal if bytes.is_empty() || bytes.len() > 4 => Ok(()),
            CqlType::Decimal => Err(MarshalError::length("0 or at least 5 bytes", bytes)),
            CqlType::Inet if matches!(bytes.len(), 0 | 4 | 16) => Ok(()),
            CqlType::Inet => Err(MarshalError::length("0, 4 or 16 bytes", bytes)),
            CqlType::Duration => duration(bytes).map(|_| ()),
            CqlType::CounterColumn => match counter::Context::parse(bytes) {
                Ok(_) => Ok(()),
                Err(_) => Err(MarshalError::length(
                    "a counter context of whole shards",
                    bytes,
                )),
            },
            CqlType::Empty if bytes.is_empty() => Ok(()),
            CqlType::Empty => Err(MarshalError::length("no bytes", bytes)),
            CqlType::List { element, .. } => collection("list", &[element.as_ref()], bytes),
            CqlType::Set { element, .. } => collection("set", &[element.as_ref()], bytes),
            CqlType::Map { key, value, .. } => {
                collection("map", &[key.as_ref(), value.as_ref()], bytes)
            }
            CqlType::Tuple(types) => tuple(types.iter(), bytes),
            CqlType::Udt(udt) => tuple(udt.fields.iter().map(|(_, field)| field), bytes),
            CqlType::Vector { element, dimension } => vector(element, *dimension, bytes),
            CqlType::Reversed(base) => base.validate(bytes),
            CqlType::Composite(types) => composite(types, bytes),
            CqlType::DynamicComposite(aliases) => dynamic_composite(aliases, bytes),
            CqlType::PartitionerDefinedOrder { .. } => Ok(()),
        }
    }
}

fn width(bytes: &[u8], len: usize) -> Valid {
    if bytes.len() == len {
        Ok(())
    } else {
        Err(MarshalError::length(&format!("{len} bytes"), bytes))
    }
}

fn empty_or_width(bytes: &[u8], len: usize) -> Valid {
    if bytes.is_empty() || bytes.len() == len {
        Ok(())
    } else {
        Err(MarshalError::length(&format!("0 or {len} bytes"), bytes))
    }
}

/// Checks that a timeuuid that is not empty is of version 1; other UUID types may have any version.
pub(super) fn timeuuid_version(cql_type: &CqlType, bytes: &[u8]) -> Valid {
    match bytes.get(6).map(|byte| byte >> 4) {
        Some(version) if version != 1 && *cql_type == CqlType::TimeUuid => Err(MarshalError::new(
            format!("expected a UUID of version 1, found version {version}"),
        )),
        _ => Ok(()),
    }
}

/// Months, days and nanoseconds, three zig-zag vints of one sign.
///
/// Source: `DurationSerializer`.
pub(super) fn duration(bytes: &[u8]) -> Result<(i32, i32, i64), MarshalError> {
    let mut pos = 0;
    let mut next = || {
        vint::read_unsigned(bytes, &mut pos)
            .map(vint::decode_zigzag)
            .ok_or_else(|| MarshalError::length("three vints", bytes))
    };
    let (months, days, nanos) = (next()?, next()?, next()?);
    let int = |value: i64, name: &str| {
        i32::try_from(value)
            .map_err(|_| MarshalError::new(format!("expected {name} of 32 bits, found {value}")))
    };
    let (months, days) = (int(months, "months")?, int(days, "days")?);
    let all_positive = months >= 0 && days >= 0 && nanos >= 0;
    let all_negative = months <= 0 && days <= 0 && nanos <= 0;
    if all_positive || all_negative {
        Ok((months, days, nanos))
    } else {
        Err(MarshalError::new(format!(
            "expected months, days and nanoseconds of one sign, found {months}, {days}, {nanos}"
        )))
    }
}

fn collection(kind: &str, types: &[&CqlType], bytes: &[u8]) -> Valid {
    let mut elements = Elements::new(bytes);
    let Some(count) = elements.count32() else {
        return Err(MarshalError::new(format!("expected the count of a {kind}")));
    };
    for index in 0..count {
        for part in types {
            match elements.next32() {
                Item::Value(value) => {
                    part.validate(value)
                        .map_err(|e| e.within(format_args!("element {index} of a {kind}")))?;
                }
                Item::Null => {
                    return Err(MarshalError::new(format!(
                        "element {index} of a {kind} is null"
                    )));
                }
                Item::Broken(_) | Item::End => {
                    return Err(MarshalError::new(format!(
                        "expected {count} elements of a {kind}, found {index}"
                    )));
                }
            }
        }
    }
    nothing_left(&elements, kind)
}

/// Fields may be missing at the end, if `ALTER TYPE` has added some.
fn tuple<'t>(types: impl Iterator<Item = &'t CqlType>, bytes: &[u8]) -> Valid {
    let mut elements = Elements::new(bytes);
    for (index, field) in types.enumerate() {
        if elements.is_empty() {
            return Ok(());
        }
        match elements.next32() {
            Item::Null => {}
            Item::Value(value) => {
                field
                    .validate(value)
                    .map_err(|e| e.within(format_args!("field {index}")))?;
            }
            Item::Broken(_) | Item::End => {
                return Err(MarshalError::new(format!("field {index} ends early")));
            }
        }
    }
    nothing_left(&elements, "tuple or UDT")
}

fn vector(element: &CqlType, dimension: u32, bytes: &[u8]) -> Valid {
    if bytes.is_empty() {
        return Err(MarshalError::new("expected a vector, found no bytes"));
    }
    let fixed_len = element.fixed_len();
    let mut elements = Elements::new(bytes);
    // Elements of no width would be traversed as often as the dimension specifies.
    let count = if fixed_len == Some(0) { 0 } else { dimension };
    for index in 0..count {
        match elements.next_of_vector(fixed_len) {
            Item::Value(value) => {
                element
                    .validate(value)
                    .map_err(|e| e.within(format_args!("element {index} of a vector")))?;
            }
            _ => {
                return Err(MarshalError::new(format!(
                    "expected {dimension} elements of a vector, found {index}"
                )));
            }
        }
    }
    nothing_left(&elements, "vector")
}

/// Source: `AbstractCompositeType.validate`.
fn composite(types: &[CqlType], bytes: &[u8]) -> Valid {
    let (_, components) = split_static_marker(bytes);
    let mut elements = Elements::new(components);
    let mut index = 0;
    while !elements.is_empty() {
        let Some(component_type) = types.get(index) else {
            return Err(MarshalError::new(format!(
                "expected at most {} components",
                types.len()
            )));
        };
        component(component_type, &mut elements)
            .map_err(|e| e.within(format_args!("component {index}")))?;
        index += 1;
    }
    Ok(())
}

fn dynamic_composite(aliases: &[(u8, CqlType)], bytes: &[u8]) -> Valid {
    let mut elements = Elements::new(bytes);
    let mut index = 0;
    while !elements.is_empty() {
        let (_, cql_type) = next_comparator(aliases, &mut elements)
            .ok_or_else(|| MarshalError::new(format!("component {index} is of an unknown type")))?;
        component(&cql_type, &mut elements)
            .map_err(|e| e.within(format_args!("component {index}")))?;
        index += 1;
    }
    Ok(())
}

fn component(component_type: &CqlType, elements: &mut Elements<'_>) -> Valid {
    let Component::Value {
        value,
        end_of_component,
    } = elements.next_component()
    else {
        return Err(MarshalError::new("ends early"));
    };
    component_type.validate(value)?;
    if end_of_component != 0 && !elements.is_empty() {
        return Err(MarshalError::new(
            "bytes follow, although it is marked as the last",
        ));
    }
    Ok(())
}

fn nothing_left(elements: &Elements<'_>, kind: &str) -> Valid {
    if elements.is_empty() {
        Ok(())
    } else {
        Err(MarshalError::new(format!(
            "{} bytes after the end of a {kind}",
            elements.rest().len()
        )))
    }
}

#[cfg(test)]
mod tests;
