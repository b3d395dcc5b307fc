//! Byte-comparable encodings: their unsigned byte order is the order of the encoded values.
//!
//! ```text
//! sequence  := (40 source | 3E)* terminator          40 before a component, 3E for a null one
//! key       := 40 token 40 escaped-raw-key 38
//! prefix    := (40 source | 3E null | 3F empty | 41 empty in a reversed column)* end
//! end       := 38 row | 18 static row | 20 bound before its prefix | 60 bound after it
//! escaped   := bytes, a run of k zeros as 00 FE^(k-1) FF; then 00, or FE right after a run of zeros
//! ```
//!
//! Each source is weakly prefix-free: if one is a prefix of another, the next byte of the longer one is
//! greater than every separator.
//!
//! As in Cassandra, the order differs from [`CqlType::compare`] in a few cases: NaNs of different bits, an
//! empty and a null element in tuples (here equal), and values that the type's own validation refuses. A trie
//! with such keys cannot be written if the order of neighbours differs.
//!
//! Source: `ByteSource`, `ByteComparable` (version OSS50), `AbstractType.asComparableBytes`,
//! `ClusteringComparator.ByteComparableClustering`, `DecoratedKey`.

use crate::data::clustering::{Kind, Prefix};
use crate::error::{Error, Result};
use crate::partitioner::{KeyHash, Partitioner};
use crate::types::CqlType;

mod decimal;
mod fixed_width;
mod integer;
mod nested;

pub use integer::variable_length_integer;

const NEXT_COMPONENT: u8 = 0x40;
const NEXT_COMPONENT_NULL: u8 = 0x3e;
const NEXT_COMPONENT_EMPTY: u8 = 0x3f;
const NEXT_COMPONENT_EMPTY_REVERSED: u8 = 0x41;
const TERMINATOR: u8 = 0x38;
const LT_NEXT_COMPONENT: u8 = 0x20;
const GT_NEXT_COMPONENT: u8 = 0x60;
const EXCLUDED: u8 = 0x18;
const ESCAPE: u8 = 0x00;
const ESCAPED_0_CONT: u8 = 0xfe;
const ESCAPED_0_DONE: u8 = 0xff;

/// Appends the encoding of the partition key with this hash: its token, by which partitions are ordered first, and the
/// key.
pub fn append_key(hash: &KeyHash, key: &[u8], out: &mut Vec<u8>) {
    out.push(NEXT_COMPONENT);
    match hash.partitioner {
        Partitioner::Murmur3 => {
            out.extend_from_slice(&((hash.token as u64) ^ (1 << 63)).to_be_bytes());
        }
        Partitioner::Random => {
            let (bytes, start) = hash.random_token_bytes();
            integer::append(bytes.get(start..).unwrap_or_default(), out);
        }
        Partitioner::ByteOrdered => append_escaped(key, out),
    }
    out.push(NEXT_COMPONENT);
    append_escaped(key, out);
    out.push(TERMINATOR);
}

/// Appends the encoding of a clustering or bound of a table whose clustering columns have `types`.
///
/// # Errors
/// A value that is not valid for its type, or a type without an order.
pub fn append_prefix(types: &[CqlType], prefix: Prefix<'_>, out: &mut Vec<u8>) -> Result<()> {
    for (cql_type, value) in types.iter().zip(prefix.values()) {
        match value {
            None => out.push(NEXT_COMPONENT_NULL),
            Some(value) => {
                let empty = match cql_type {
                    CqlType::Reversed(_) => NEXT_COMPONENT_EMPTY_REVERSED,
                    _ => NEXT_COMPONENT_EMPTY,
                };
                append_component(cql_type, value, empty, out)?;
            }
        }
    }
    out.push(match prefix.kind {
        Kind::ExclEndBound | Kind::InclStartBound | Kind::ExclEndInclStartBoundary => {
            LT_NEXT_COMPONENT
        }
        Kind::StaticClustering => EXCLUDED,
        Kind::Clustering => TERMINATOR,
        Kind::InclEndExclStartBoundary | Kind::InclEndBound | Kind::ExclStartBound => {
            GT_NEXT_COMPONENT
        }
    });
    Ok(())
}

/// Appends the encoding of a value. Returns false, with nothing appended, if Cassandra has no encoding for
/// it: an empty value of most types. The enclosing sequence then encodes its absence.
///
/// # Errors
/// A value that is not valid for the type, or a type without an order.
pub fn append_value(cql_type: &CqlType, value: &[u8], out: &mut Vec<u8>) -> Result<bool> {
    let has_bytes = match cql_type {
        CqlType::Ascii | CqlType::Utf8 | CqlType::Bytes | CqlType::Inet | CqlType::Duration => {
            append_escaped(value, out);
            return Ok(true);
        }
        // Only the base type determines whether an empty value has an encoding.
        CqlType::Reversed(base) => {
            let start = out.len();
            let has_bytes = append_value(base, value, out)?;
            for byte in out.iter_mut().skip(start) {
                *byte ^= 0xff;
            }
            return Ok(has_bytes);
        }
        CqlType::Empty => false,
        // Cassandra encodes even an empty value of this type.
        CqlType::DynamicComposite(_) => true,
        _ => !value.is_empty(),
    };
    if !has_bytes {
        return Ok(false);
    }
    match cql_type {
        CqlType::Byte => fixed_width::signed::<1>(value, "tinyint", out)?,
        CqlType::Short => fixed_width::signed::<2>(value, "smallint", out)?,
        CqlType::Int32 => fixed_width::signed::<4>(value, "int", out)?,
        CqlType::Timestamp => fixed_width::signed::<8>(value, "timestamp", out)?,
        CqlType::Long => {
            let raw = fixed_width::exactly::<8>(value, "bigint")?;
            variable_length_integer(i64::from_be_bytes(raw), out);
        }
        CqlType::Boolean => {
            let [raw] = fixed_width::exactly::<1>(value, "boolean")?;
            out.push(u8::from(raw != 0));
        }
        CqlType::Float => fixed_width::float::<4>(value, "float", out)?,
        CqlType::Double => fixed_width::float::<8>(value, "double", out)?,
        CqlType::LegacyDate => fixed_width::unsigned::<8>(value, "date", out)?,
        CqlType::SimpleDate => fixed_width::unsigned::<4>(value, "date", out)?,
        CqlType::Time => fixed_width::unsigned::<8>(value, "time", out)?,
        CqlType::Uuid => fixed_width::uuid(value, out)?,
        CqlType::TimeUuid | CqlType::LegacyTimeUuid => fixed_width::time_uuid(value, out)?,
        CqlType::LexicalUuid => fixed_width::lexical_uuid(value, out)?,
        CqlType::Integer => integer::append(value, out),
        CqlType::Decimal => decimal::append(value, out)?,
        CqlType::List { .. } | CqlType::Set { .. } | CqlType::Map { .. } => {
            nested::collection(&cql_type.parts(), value, out)?;
        }
        CqlType::Tuple(_) | CqlType::Udt(_) => nested::tuple(&cql_type.parts(), value, out)?,
        CqlType::Vector { element, dimension } => {
            nested::vector(element, *dimension, value, out)?;
        }
        CqlType::Composite(types) => nested::composite(types, value, out)?,
        CqlType::DynamicComposite(aliases) => nested::dynamic_composite(aliases, value, out)?,
        CqlType::PartitionerDefinedOrder { partitioner, .. } => {
            let hash = Partitioner::from_class_name(partitioner)?.hash_key(value);
            append_key(&hash, value, out);
        }
        other => {
            return Err(Error::unsupported(format!(
                "a clustering of type {}, which has no order",
                other.class_string()
            )));
        }
    }
    Ok(true)
}

/// Appends a component of a sequence, or `absent` if it has no encoding.
fn append_component(cql_type: &CqlType, value: &[u8], absent: u8, out: &mut Vec<u8>) -> Result<()> {
    let at = out.len();
    out.push(NEXT_COMPONENT);
    if !append_value(cql_type, value, out)? {
        out.truncate(at);
        out.push(absent);
    }
    Ok(())
}

/// Appends bytes in escaped form.
fn append_escaped(bytes: &[u8], out: &mut Vec<u8>) {
    let mut rest = bytes;
    while let Some(zero) = rest.iter().position(|byte| *byte == 0) {
        let (head, tail) = rest.split_at(zero);
        out.extend_from_slice(head);
        let run = tail.iter().take_while(|byte| **byte == 0).count();
        out.push(ESCAPE);
        out.extend(std::iter::repeat_n(ESCAPED_0_CONT, run - 1));
        rest = &tail[run..];
        if rest.is_empty() {
            out.push(ESCAPED_0_CONT);
            return;
        }
        out.push(ESCAPED_0_DONE);
    }
    out.extend_from_slice(rest);
    out.push(ESCAPE);
}

#[cfg(test)]
mod tests;
