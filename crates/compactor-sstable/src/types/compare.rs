//! Order of values: `AbstractType.compare`.
//!
//! Each order is total over all byte strings. Values that a type's serializer would refuse, on which
//! Cassandra throws or reads past the end, sort by their bytes, after empty and before well-formed values. So
//! a damaged value cannot make the order inconsistent.
//!
//! Null clusterings are not handled here: they sort before everything, also in a reversed column. An empty
//! value sorts first for most types, and hence last under `ReversedType`.
//!
//! Source: `compareCustom` of each class in `org.apache.cassandra.db.marshal`.

use std::cmp::Ordering;

use crate::partitioner::Partitioner;
use crate::types::CqlType;

mod composite;
mod fixed_width;
mod nested;
mod numeric;

impl CqlType {
    /// Compares two serialized values.
    ///
    /// Allocates nothing, except for decimals of more than 16 bytes that are almost equal, and for dynamic
    /// composites that contain type strings.
    #[inline]
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            // Counters are not comparable in Cassandra; duration cannot be a key.
            CqlType::Ascii
            | CqlType::Utf8
            | CqlType::Bytes
            | CqlType::Inet
            | CqlType::SimpleDate
            | CqlType::Time
            | CqlType::LegacyDate
            | CqlType::Duration
            | CqlType::CounterColumn => a.cmp(b),
            CqlType::Int32 => fixed_width::int32(a, b),
            CqlType::Long | CqlType::Timestamp => fixed_width::int64(a, b),
            CqlType::Uuid => fixed_width::uuid(a, b),
            CqlType::TimeUuid | CqlType::LegacyTimeUuid => fixed_width::time_uuid(a, b),
            CqlType::Reversed(base) => base.compare(b, a),
            CqlType::Byte => fixed_width::byte(a, b),
            CqlType::Short => fixed_width::signed_first_byte(a, b),
            CqlType::Boolean => fixed_width::boolean(a, b),
            CqlType::Float => fixed_width::float(a, b),
            CqlType::Double => fixed_width::double(a, b),
            CqlType::LexicalUuid => fixed_width::lexical_uuid(a, b),
            CqlType::Integer => numeric::varint(a, b),
            CqlType::Decimal => numeric::decimal(a, b),
            CqlType::Empty => Ordering::Equal,
            CqlType::List { element, .. } | CqlType::Set { element, .. } => {
                nested::collection([element.as_ref()], a, b)
            }
            CqlType::Map { key, value, .. } => {
                nested::collection([key.as_ref(), value.as_ref()], a, b)
            }
            CqlType::Tuple(types) => nested::tuple(types.iter(), a, b),
            CqlType::Udt(udt) => nested::tuple(udt.fields.iter().map(|(_, field)| field), a, b),
            CqlType::Vector { element, dimension } => nested::vector(element, *dimension, a, b),
            CqlType::Composite(types) => composite::composite(types, a, b),
            CqlType::DynamicComposite(aliases) => composite::dynamic_composite(aliases, a, b),
            CqlType::PartitionerDefinedOrder { partitioner, .. } => {
                partitioner_defined(partitioner, a, b)
            }
        }
    }
}

pub(crate) use composite::next_comparator;
pub(super) use fixed_width::{
    boolean, double, float, int32, int64, time_uuid, time_uuid_prefix, uuid,
};

/// Orders keys of another table by its partitioner: token, then bytes. Empty is the minimum.
///
/// Source: `PartitionerDefinedOrder`, `DecoratedKey.compareTo`.
fn partitioner_defined(class_name: &str, a: &[u8], b: &[u8]) -> Ordering {
    match Partitioner::from_class_name(class_name) {
        Ok(partitioner) => (partitioner.position(a), a).cmp(&(partitioner.position(b), b)),
        // Tables of other partitioners are refused before their rows are compared.
        Err(_) => a.cmp(b),
    }
}

/// Empty values sort first, then invalid ones by their bytes; `None` if both are valid.
#[inline]
fn by_validity(a: &[u8], b: &[u8], is_valid: impl Fn(&[u8]) -> bool) -> Option<Ordering> {
    let rank = |bytes: &[u8]| match (bytes.is_empty(), is_valid(bytes)) {
        (_, true) => 2u8,
        (true, false) => 0,
        (false, false) => 1,
    };
    match (rank(a), rank(b)) {
        (2, 2) => None,
        (rank_a, rank_b) => Some(rank_a.cmp(&rank_b).then_with(|| a.cmp(b))),
    }
}

#[cfg(test)]
mod tests;
