//! Values in JSON: `AbstractType.toJSONString`, with which `sstabledump` prints clusterings and cells.
//!
//! Where Cassandra throws, this returns an error; `sstabledump` then prints [`UNSUPPORTED`].
//!
//! Source: `toJSONString` of each class in `org.apache.cassandra.db.marshal`.

use crate::hex::push_hex;
use crate::types::elements::{Elements, Item};
use crate::types::scalar_text::{leading, push_scalar};
use crate::types::{CqlType, MarshalError, UserType};

/// Text that `sstabledump` prints, in quotes, for a value that it cannot convert.
pub const UNSUPPORTED: &str = "unsupported conversion to JSON";

type Rendered = Result<(), MarshalError>;

impl CqlType {
    /// Appends the value in JSON; leaves `out` unchanged on an error.
    ///
    /// The value is not validated: as in Cassandra, numbers are read from the first bytes, whatever follows.
    /// A counter therefore shows the first eight bytes of its context.
    ///
    /// # Errors
    /// Bytes that Cassandra fails to convert, among them an empty boolean, tinyint or counter; composites,
    /// for which Cassandra has no JSON; and numbers of more than 64 KiB, which Cassandra prints.
    pub fn to_json(&self, bytes: &[u8], out: &mut String) -> Rendered {
        let len = out.len();
        let rendered = push_json(self, bytes, out);
        if rendered.is_err() {
            out.truncate(len);
        }
        rendered
    }
}

fn push_json(cql_type: &CqlType, bytes: &[u8], out: &mut String) -> Rendered {
    match cql_type {
        CqlType::Boolean | CqlType::Byte | CqlType::CounterColumn => {
            return push_scalar(cql_type, bytes, out);
        }
        CqlType::Bytes => {
            out.push_str("\"0x");
            push_hex(bytes, out);
            out.push('"');
        }
        CqlType::Ascii => {
            if !bytes.is_ascii() {
                return Err(MarshalError::new("expected ASCII, found a byte above 127"));
            }
            push_quoted(&String::from_utf8_lossy(bytes), out);
        }
        CqlType::Utf8 => match std::str::from_utf8(bytes) {
            Ok(text) => push_quoted(text, out),
            Err(_) => return Err(MarshalError::new("expected UTF-8, found other bytes")),
        },
        CqlType::Time if bytes.is_empty() => out.push_str("\"null\""),
        CqlType::LegacyDate if bytes.is_empty() => {
            return Err(MarshalError::length("8 bytes", bytes));
        }
        CqlType::List { element, .. } | CqlType::Set { element, .. } => {
            return push_list(element, bytes, out);
        }
        CqlType::Map { key, value, .. } => return push_map(key, value, bytes, out),
        CqlType::Tuple(types) => return push_tuple(types, bytes, out),
        CqlType::Udt(udt) => return push_udt(udt, bytes, out),
        CqlType::Vector { element, dimension } => {
            return push_vector(element, *dimension, bytes, out);
        }
        CqlType::Reversed(base) => return push_json(base, bytes, out),
        CqlType::PartitionerDefinedOrder {
            key_type: Some(key_type),
            ..
        } => {
            return push_json(key_type, bytes, out);
        }
        CqlType::Composite(_)
        | CqlType::DynamicComposite(_)
        | CqlType::PartitionerDefinedOrder { .. } => {
            return Err(MarshalError::new(format!(
                "{} has no JSON",
                cql_type.class_name()
            )));
        }
        // The remaining types print an empty value as an empty string.
        CqlType::Empty => out.push_str("\"\""),
        _ if bytes.is_empty() => out.push_str("\"\""),
        CqlType::Float if !f32::from_be_bytes(leading(bytes)?).is_finite() => out.push_str("null"),
        CqlType::Double if !f64::from_be_bytes(leading(bytes)?).is_finite() => out.push_str("null"),
        CqlType::Short
        | CqlType::Int32
        | CqlType::Long
        | CqlType::Integer
        | CqlType::Decimal
        | CqlType::Float
        | CqlType::Double => return push_scalar(cql_type, bytes, out),
        _ => {
            out.push('"');
            push_scalar(cql_type, bytes, out)?;
            out.push('"');
        }
    }
    Ok(())
}

/// Appends `text` as a JSON string, including quotes.
///
/// Source: Jackson's `JsonStringEncoder.quoteAsString`, by way of `JsonUtils`.
pub fn push_quoted(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            '\0'..='\u{1f}' => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            _ => out.push(c),
        }
    }
    out.push('"');
}

fn count(elements: &mut Elements<'_>) -> Result<i32, MarshalError> {
    match elements.next_fixed(4) {
        Item::Value(raw) => Ok(i32::from_be_bytes(leading(raw)?)),
        _ => Err(MarshalError::new("expected the count of a collection")),
    }
}

fn element<'a>(elements: &mut Elements<'a>) -> Result<&'a [u8], MarshalError> {
    match elements.next32() {
        Item::Value(value) => Ok(value),
        Item::Null => Err(MarshalError::new("a null in a collection")),
        Item::Broken(_) | Item::End => Err(MarshalError::new("a collection ends early")),
    }
}

fn push_list(element_type: &CqlType, bytes: &[u8], out: &mut String) -> Rendered {
    let mut elements = Elements::new(bytes);
    let count = count(&mut elements)?;
    push_items(['[', ']'], 0..count, out, |_, out| {
        push_json(element_type, element(&mut elements)?, out)
    })
}

/// Appends items between brackets, with a comma between them.
fn push_items<T>(
    [opening, closing]: [char; 2],
    items: impl IntoIterator<Item = T>,
    out: &mut String,
    mut push: impl FnMut(T, &mut String) -> Rendered,
) -> Rendered {
    out.push(opening);
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        push(item, out)?;
    }
    out.push(closing);
    Ok(())
}

/// Maximum length of a key. Keys are quoted once more for each level of maps in keys of maps, which doubles
/// their backslashes: without a limit a small hostile value would exhaust memory.
const MAX_KEY_LEN: usize = 1 << 24;

fn push_map(key: &CqlType, value: &CqlType, bytes: &[u8], out: &mut String) -> Rendered {
    let mut elements = Elements::new(bytes);
    let count = count(&mut elements)?;
    push_items(['{', '}'], 0..count, out, |_, out| {
        let start = out.len();
        push_json(key, element(&mut elements)?, out)?;
        // A JSON key is a string, so other values are quoted.
        if !out[start..].starts_with('"') {
            if out.len() - start > MAX_KEY_LEN {
                return Err(MarshalError::new("a map key too long to quote"));
            }
            let json = out.split_off(start);
            push_quoted(&json, out);
        }
        out.push_str(": ");
        push_json(value, element(&mut elements)?, out)
    })
}

/// As in `CollectionSerializer.readValue`: a tuple that ends early cannot be converted.
fn push_tuple(types: &[CqlType], bytes: &[u8], out: &mut String) -> Rendered {
    let mut elements = Elements::new(bytes);
    push_items(['[', ']'], types, out, |field, out| {
        push_field(field, elements.next32(), "a tuple ends early", out)
    })
}

/// Appends a field of a tuple or UDT.
fn push_field(field: &CqlType, item: Item<'_>, broken: &str, out: &mut String) -> Rendered {
    match item {
        Item::Null => out.push_str("null"),
        Item::Value(value) => push_json(field, value, out)?,
        Item::Broken(_) | Item::End => return Err(MarshalError::new(broken)),
    }
    Ok(())
}

/// Source: `UserType.toJSONString`, `TupleType.unpack`.
fn push_udt(udt: &UserType, bytes: &[u8], out: &mut String) -> Rendered {
    let mut elements = Elements::new(bytes);
    push_items(['{', '}'], &udt.fields, out, |(name, field), out| {
        push_name(&String::from_utf8_lossy(name), out);
        out.push_str(": ");
        let item = if elements.is_empty() {
            Item::Null
        } else {
            elements.next32()
        };
        push_field(field, item, "a UDT ends early", out)
    })?;
    if !elements.is_empty() {
        return Err(MarshalError::new("bytes after the last field of a UDT"));
    }
    Ok(())
}

/// Appends the name of a field or a column. Names with capitals keep their CQL quotes, inside the JSON ones, for `INSERT
/// JSON`.
pub fn push_name(name: &str, out: &mut String) {
    if name == name.to_lowercase() {
        push_quoted(name, out);
    } else {
        push_quoted(&format!("\"{name}\""), out);
    }
}

/// Source: `VectorType.toJSONString`, which validates each element.
fn push_vector(element_type: &CqlType, dimension: u32, bytes: &[u8], out: &mut String) -> Rendered {
    let fixed_len = element_type.fixed_len();
    if fixed_len == Some(0) {
        return Err(MarshalError::new("a vector of elements without width"));
    }
    let mut elements = Elements::new(bytes);
    push_items(['[', ']'], 0..dimension, out, |_, out| {
        let Item::Value(value) = elements.next_of_vector(fixed_len) else {
            return Err(MarshalError::new("a vector ends early"));
        };
        element_type.validate(value)?;
        push_json(element_type, value, out)
    })?;
    if !elements.is_empty() {
        return Err(MarshalError::new(
            "bytes after the last element of a vector",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
