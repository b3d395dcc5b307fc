//! Order of a clustering column, determined once per table instead of in each comparison.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::types::{CqlType, compare};

/// Comparison of values of a type, without traversing the type.
///
/// Agrees with [`CqlType::compare`] on every pair of byte strings.
#[derive(Clone, Debug)]
pub enum ValueOrder {
    /// Unsigned bytes, a shorter value before its extensions.
    Bytes,
    /// int.
    Int32,
    /// bigint, timestamp.
    Int64,
    /// boolean.
    Boolean,
    /// float.
    Float,
    /// double.
    Double,
    /// uuid.
    Uuid,
    /// timeuuid.
    TimeUuid,
    /// Any other type.
    General(Arc<CqlType>),
}

impl ValueOrder {
    /// Returns the order of `cql_type`; see [`ClusteringOrder`] for one that may be reversed.
    pub fn of(cql_type: &CqlType) -> ValueOrder {
        match cql_type {
            CqlType::Ascii
            | CqlType::Utf8
            | CqlType::Bytes
            | CqlType::Inet
            | CqlType::SimpleDate
            | CqlType::Time
            | CqlType::LegacyDate
            | CqlType::Duration
            | CqlType::CounterColumn => ValueOrder::Bytes,
            CqlType::Int32 => ValueOrder::Int32,
            CqlType::Long | CqlType::Timestamp => ValueOrder::Int64,
            CqlType::Boolean => ValueOrder::Boolean,
            CqlType::Float => ValueOrder::Float,
            CqlType::Double => ValueOrder::Double,
            CqlType::Uuid => ValueOrder::Uuid,
            CqlType::TimeUuid | CqlType::LegacyTimeUuid => ValueOrder::TimeUuid,
            other => ValueOrder::General(Arc::new(other.clone())),
        }
    }

    /// Compares two serialized values.
    #[inline]
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            ValueOrder::Bytes => a.cmp(b),
            ValueOrder::Int32 => compare::int32(a, b),
            ValueOrder::Int64 => compare::int64(a, b),
            ValueOrder::Boolean => compare::boolean(a, b),
            ValueOrder::Float => compare::float(a, b),
            ValueOrder::Double => compare::double(a, b),
            ValueOrder::Uuid => compare::uuid(a, b),
            ValueOrder::TimeUuid => compare::time_uuid(a, b),
            ValueOrder::General(cql_type) => cql_type.compare(a, b),
        }
    }

    /// See [`ClusteringOrder::prefix`].
    #[inline]
    fn prefix(&self, value: &[u8]) -> Option<u64> {
        const SIGN: u64 = 1 << 63;
        match self {
            ValueOrder::Bytes => Some(first_bytes(value)),
            ValueOrder::Int32 => {
                let value = <[u8; 4]>::try_from(value).ok()?;
                Some((u64::from(u32::from_be_bytes(value)) << 32) ^ SIGN)
            }
            ValueOrder::Int64 => {
                let value = <[u8; 8]>::try_from(value).ok()?;
                Some(u64::from_be_bytes(value) ^ SIGN)
            }
            ValueOrder::TimeUuid => compare::time_uuid_prefix(value),
            _ => None,
        }
    }
}

/// The first eight bytes, big-endian, padded with zeros.
#[inline]
fn first_bytes(value: &[u8]) -> u64 {
    match value.first_chunk() {
        Some(first) => u64::from_be_bytes(*first),
        None => {
            let mut padded = [0; 8];
            padded[..value.len()].copy_from_slice(value);
            u64::from_be_bytes(padded)
        }
    }
}

/// Order of one clustering column: [`ValueOrder`] and its direction.
///
/// Nulls are handled by the caller: they sort before every value, reversed or not.
#[derive(Clone, Debug)]
pub struct ClusteringOrder {
    order: ValueOrder,
    reversed: bool,
}

impl ClusteringOrder {
    /// Returns the order of a clustering column of this type; `ReversedType` (nested or not) is unwrapped.
    pub fn of(mut cql_type: &CqlType) -> ClusteringOrder {
        let mut reversed = false;
        while let CqlType::Reversed(base) = cql_type {
            reversed = !reversed;
            cql_type = base;
        }
        ClusteringOrder {
            order: ValueOrder::of(cql_type),
            reversed,
        }
    }

    /// Compares two serialized values; neither may be null.
    #[inline]
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        if self.reversed {
            self.order.compare(b, a)
        } else {
            self.order.compare(a, b)
        }
    }

    /// Returns a number that sorts as the value does: if the numbers of two values differ, the values are in
    /// the order of the numbers. If they are equal or one is missing, [`ClusteringOrder::compare`] decides.
    #[inline]
    pub fn prefix(&self, value: &[u8]) -> Option<u64> {
        let prefix = self.order.prefix(value)?;
        Some(if self.reversed { !prefix } else { prefix })
    }

    /// Whether prefixes of values in either order can be compared.
    pub fn same_prefixes(&self, other: &ClusteringOrder) -> bool {
        self.reversed == other.reversed
            && std::mem::discriminant(&self.order) == std::mem::discriminant(&other.order)
    }

    /// Whether the column is descending.
    pub fn is_reversed(&self) -> bool {
        self.reversed
    }
}
