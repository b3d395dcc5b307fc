//! The order of one clustering column, decided once per table instead of once per comparison.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::types::{CqlType, compare};

/// How to compare values of a type, without walking the type.
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
    /// The order of `cql_type`; see [`ClusteringOrder`] for one that may be reversed.
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
}

/// Order of one clustering column: [`ValueOrder`] and its direction.
///
/// Nulls are the caller's: they sort before every value, reversed or not.
#[derive(Clone, Debug)]
pub struct ClusteringOrder {
    order: ValueOrder,
    reversed: bool,
}

impl ClusteringOrder {
    /// The order of a clustering column of this type; `ReversedType` (nested or not) is unwrapped.
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

    /// Compares two serialized values; neither is null.
    #[inline]
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        if self.reversed {
            self.order.compare(b, a)
        } else {
            self.order.compare(a, b)
        }
    }

    /// True for a descending column.
    pub fn is_reversed(&self) -> bool {
        self.reversed
    }
}
