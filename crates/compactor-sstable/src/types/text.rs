//! Values as text: `AbstractType.getString`, with which `sstabledump` prints partition keys and cell paths.
//!
//! Source: `TypeSerializer.toString` of each type and the overrides of `getString`.

use crate::hex::{hex, push_hex};
use crate::types::compare::next_comparator;
use crate::types::elements::{Component, Elements, Item, split_static_marker};
use crate::types::scalar_text::{leading, push_scalar};
use crate::types::{CqlType, MarshalError, temporal};

impl CqlType {
    /// Returns the value as text: blobs, collections, vectors and counters in hexadecimal digits, tuples and
    /// composites with `:` between their parts.
    ///
    /// # Errors
    /// Bytes that are not a valid value of this type; and numbers of more than 64 KiB, which Cassandra prints.
    pub fn to_text(&self, bytes: &[u8]) -> Result<String, MarshalError> {
        let mut out = String::new();
        push_text(self, bytes, &mut out)?;
        Ok(out)
    }

    /// As [`to_text`](CqlType::to_text), for messages: `0x` and hexadecimal digits if that fails.
    pub fn describe(&self, bytes: &[u8]) -> String {
        self.to_text(bytes).unwrap_or_else(|_| hexadecimal(bytes))
    }
}

pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    format!("0x{}", hex(bytes))
}

fn push_text(cql_type: &CqlType, bytes: &[u8], out: &mut String) -> Result<(), MarshalError> {
    match cql_type {
        CqlType::Bytes
        | CqlType::CounterColumn
        | CqlType::List { .. }
        | CqlType::Set { .. }
        | CqlType::Map { .. }
        | CqlType::Vector { .. }
        | CqlType::PartitionerDefinedOrder { .. } => push_hex(bytes, out),
        CqlType::Empty => {}
        CqlType::Tuple(types) => return push_tuple(types.iter(), bytes, out),
        CqlType::Udt(udt) => {
            return push_tuple(udt.fields.iter().map(|(_, field)| field), bytes, out);
        }
        CqlType::Composite(types) => return push_composite(types, bytes, out),
        CqlType::DynamicComposite(aliases) => return push_dynamic_composite(aliases, bytes, out),
        CqlType::Reversed(base) => return push_text(base, bytes, out),
        _ => {
            cql_type.validate(bytes)?;
            if !bytes.is_empty() {
                push_valid(cql_type, bytes, out)?;
            }
        }
    }
    Ok(())
}

/// Appends a value of a simple type that is valid and not empty.
fn push_valid(cql_type: &CqlType, bytes: &[u8], out: &mut String) -> Result<(), MarshalError> {
    match cql_type {
        CqlType::Ascii | CqlType::Utf8 => match std::str::from_utf8(bytes) {
            Ok(text) => out.push_str(text),
            // Cassandra's validation accepts more than its decoder.
            Err(_) => return Err(MarshalError::new("expected UTF-8, found other bytes")),
        },
        CqlType::Timestamp | CqlType::LegacyDate => {
            temporal::push_timestamp(i64::from_be_bytes(leading(bytes)?), 'T', out);
        }
        other => push_scalar(other, bytes, out)?,
    }
    Ok(())
}

/// `:` between fields, which is escaped in them, and `@` for null; ends with the value.
///
/// Source: `TupleType.getString`.
fn push_tuple<'t>(
    types: impl Iterator<Item = &'t CqlType>,
    bytes: &[u8],
    out: &mut String,
) -> Result<(), MarshalError> {
    let mut elements = Elements::new(bytes);
    for (index, field) in types.enumerate() {
        if elements.is_empty() {
            break;
        }
        if index > 0 {
            out.push(':');
        }
        match elements.next32() {
            Item::Null => out.push('@'),
            Item::Value(value) => {
                let text = field.to_text(value)?;
                out.push_str(&text.replace(':', "\\:").replace('@', "\\@"));
            }
            Item::Broken(_) | Item::End => return Err(MarshalError::new("a tuple ends early")),
        }
    }
    Ok(())
}

/// `:` between components; `:_` or `:!` after one that ends a range.
///
/// Source: `AbstractCompositeType.getString`.
fn push_composite(types: &[CqlType], bytes: &[u8], out: &mut String) -> Result<(), MarshalError> {
    let (_, components) = split_static_marker(bytes);
    let mut elements = Elements::new(components);
    let mut index = 0;
    while !elements.is_empty() {
        if index > 0 {
            out.push(':');
        }
        let component_type = types
            .get(index)
            .ok_or_else(|| MarshalError::new("more components than types"))?;
        if push_component(component_type, &mut elements, out)? != 0 {
            break;
        }
        index += 1;
    }
    Ok(())
}

/// As [`push_composite`], with `alias@` or `class@` before each value.
///
/// Source: `DynamicCompositeType.getAndAppendComparator`.
fn push_dynamic_composite(
    aliases: &[(u8, CqlType)],
    bytes: &[u8],
    out: &mut String,
) -> Result<(), MarshalError> {
    let mut elements = Elements::new(bytes);
    while !elements.is_empty() {
        if elements.rest().len() < bytes.len() {
            out.push(':');
        }
        let (name, cql_type) = next_comparator(aliases, &mut elements)
            .ok_or_else(|| MarshalError::new("a component of unknown type"))?;
        out.push_str(name);
        out.push('@');
        if push_component(&cql_type, &mut elements, out)? != 0 {
            break;
        }
    }
    Ok(())
}

/// Appends one component's value and returns its end-of-component byte.
fn push_component(
    cql_type: &CqlType,
    elements: &mut Elements<'_>,
    out: &mut String,
) -> Result<i8, MarshalError> {
    let Component::Value {
        value,
        end_of_component,
    } = elements.next_component()
    else {
        return Err(MarshalError::new("a component ends early"));
    };
    let text = cql_type.to_text(value)?.replace(':', "\\:");
    out.push_str(&text);
    // `AbstractCompositeType.escape`
    if text.ends_with(['\\', '!']) {
        out.push('!');
    }
    match end_of_component {
        0 => {}
        ..0 => out.push_str(":_"),
        _ => out.push_str(":!"),
    }
    Ok(end_of_component)
}

#[cfg(test)]
mod tests;
