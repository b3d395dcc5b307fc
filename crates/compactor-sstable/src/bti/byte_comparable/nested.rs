//! Encoding of values that contain values: sequences of their encodings.

use std::borrow::Cow;

use crate::byte_reader::ByteReader;
use crate::error::{Error, Result};
use crate::types::CqlType;
use crate::types::compare::next_comparator;
use crate::types::elements::{Elements, split_static_marker};

use super::{NEXT_COMPONENT, NEXT_COMPONENT_NULL, TERMINATOR, append_component, append_escaped};

/// `REVERSED_TYPE` of `DynamicCompositeType`.
const REVERSED_TYPE: &[u8] = b"ReversedType";

/// Expectation after the last element.
const END: &str = "the end of the value";

/// `i32 length | bytes`; a negative length is null.
fn element32<'a>(reader: &mut ByteReader<'a>, name: &'static str) -> Result<Option<&'a [u8]>> {
    let len = reader.i32(name)?;
    match usize::try_from(len) {
        Ok(len) => reader.bytes(len, name).map(Some),
        Err(_) => Ok(None),
    }
}

fn append_element(cql_type: &CqlType, value: Option<&[u8]>, out: &mut Vec<u8>) -> Result<()> {
    match value {
        None => {
            out.push(NEXT_COMPONENT_NULL);
            Ok(())
        }
        Some(value) => append_component(cql_type, value, NEXT_COMPONENT_NULL, out),
    }
}

/// Appends a frozen list, set or map, whose elements have these types in turn.
pub(super) fn collection(types: &[&CqlType], value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let mut reader = ByteReader::new(value);
    let count = reader.i32_count(4 * types.len(), "collection.count")?;
    for _ in 0..count {
        for cql_type in types {
            let element = element32(&mut reader, "collection.element")?;
            append_element(cql_type, element, out)?;
        }
    }
    reader.expect_end("collection", END)?;
    out.push(TERMINATOR);
    Ok(())
}

/// Appends a tuple or frozen UDT, without trailing nulls.
pub(super) fn tuple(types: &[&CqlType], value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let mut reader = ByteReader::new(value);
    let mut end = out.len();
    for cql_type in types {
        if reader.is_empty() {
            break;
        }
        let field = element32(&mut reader, "tuple.field")?;
        append_element(cql_type, field, out)?;
        if field.is_some() {
            end = out.len();
        }
    }
    reader.expect_end("tuple", END)?;
    out.truncate(end);
    out.push(TERMINATOR);
    Ok(())
}

/// Appends a vector of exactly `dimension` elements.
pub(super) fn vector(
    element: &CqlType,
    dimension: u32,
    value: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    let mut reader = ByteReader::new(value);
    for _ in 0..dimension {
        let bytes = match element.fixed_len() {
            Some(len) => reader.bytes(len, "vector.element")?,
            None => reader.bytes_v("vector.element")?,
        };
        append_component(element, bytes, NEXT_COMPONENT_NULL, out)?;
        if element.fixed_len() == Some(0) {
            // Elements of no width: their number is determined by the dimension, and writing a byte for each
            // would take too many.
            break;
        }
    }
    reader.expect_end("vector", END)?;
    out.push(TERMINATOR);
    Ok(())
}

/// Appends a composite, which begins with null if it is static, otherwise with a source without bytes. Static
/// ones begin with `FFFF`.
pub(super) fn composite(types: &[CqlType], value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let (is_static, rest) = split_static_marker(value);
    out.push(if is_static {
        NEXT_COMPONENT_NULL
    } else {
        NEXT_COMPONENT
    });
    let mut reader = ByteReader::new(rest);
    for cql_type in types {
        if reader.is_empty() {
            break;
        }
        let component = reader.bytes16("composite.component")?;
        append_component(cql_type, component, NEXT_COMPONENT_NULL, out)?;
        append_end_of_component(&mut reader, out)?;
    }
    reader.expect_end("composite", "no more components than the type has")?;
    out.push(TERMINATOR);
    Ok(())
}

fn append_end_of_component(reader: &mut ByteReader<'_>, out: &mut Vec<u8>) -> Result<()> {
    let at = reader.offset();
    let end = reader.u8("composite.end_of_component")?;
    if end != 0 && !reader.is_empty() {
        return Err(Error::corrupt(
            "composite.end_of_component",
            at,
            "00 except for the last component",
            format!("{end:02x}"),
        ));
    }
    // A signed byte.
    out.extend_from_slice(&[NEXT_COMPONENT, end ^ 0x80]);
    Ok(())
}

/// Appends a dynamic composite, each component preceded by the names of its type. It is never static.
pub(super) fn dynamic_composite(
    aliases: &[(u8, CqlType)],
    value: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    out.push(NEXT_COMPONENT);
    let mut reader = ByteReader::new(value);
    while !reader.is_empty() {
        let cql_type = comparator(aliases, &mut reader)?;
        let mut class = cql_type.as_ref();
        if let CqlType::Reversed(base) = class {
            out.push(NEXT_COMPONENT);
            append_escaped(REVERSED_TYPE, out);
            class = base;
        }
        let class_string = class.class_string();
        // Without its parameters.
        let full_name = class_string.split('(').next().unwrap_or_default();
        let simple_name = full_name.rsplit('.').next().unwrap_or_default();
        for name in [simple_name, full_name] {
            out.push(NEXT_COMPONENT);
            append_escaped(name.as_bytes(), out);
        }
        let component = reader.bytes16("dynamic_composite.component")?;
        append_component(&cql_type, component, NEXT_COMPONENT_NULL, out)?;
        append_end_of_component(&mut reader, out)?;
    }
    out.push(TERMINATOR);
    Ok(())
}

/// Reads the type of a component: an alias or a type string.
fn comparator<'t>(
    aliases: &'t [(u8, CqlType)],
    reader: &mut ByteReader<'_>,
) -> Result<Cow<'t, CqlType>> {
    const NAME: &str = "dynamic_composite.comparator";
    let rest = reader.clone().bytes(reader.remaining(), NAME)?;
    let mut elements = Elements::new(rest);
    let Some((_, cql_type)) = next_comparator(aliases, &mut elements) else {
        let found = format!("{:02x?}", &rest[..rest.len().min(64)]);
        return Err(reader.corrupt(
            NAME,
            "an alias or a type string without dynamic parts",
            found,
        ));
    };
    reader.bytes(rest.len() - elements.rest().len(), NAME)?;
    Ok(cql_type)
}
