//! Cassandra's types: what a value's bytes mean, how they compare and how they are framed.
//!
//! | Module | Answers |
//! |---|---|
//! | [`parse`] | which type a string of a serialization header names |
//! | [`display`] | how Cassandra writes a type, and how people do |
//! | [`compare`] | which of two values sorts first |
//! | [`clustering_order`] | the same for the merge loop, decided once per column |
//! | [`cell_path`] | order and type of cell paths and cells in a complex column |
//! | [`partition_key`] | the values in a partition key |
//! | [`validate`] | whether bytes are a value at all |
//! | [`value`] | a value as a Rust type |
//! | [`json`], [`text`] | how Cassandra prints a value, in JSON and elsewhere |
//! | [`temporal`] | how `sstabledump` prints timestamps |
//! | [`identifier`] | how CQL prints a name |
//!
//! Source: `org.apache.cassandra.db.marshal`.

use std::sync::Arc;

mod big_int;
pub mod cell_path;
pub mod clustering_order;
pub mod compare;
pub mod display;
mod elements;
mod encodings;
pub mod identifier;
mod java_number;
pub mod json;
mod marshal_error;
pub mod parse;
pub mod partition_key;
pub mod temporal;
pub mod text;
pub mod validate;
pub mod value;

pub use clustering_order::{ClusteringOrder, ValueOrder};
pub use marshal_error::MarshalError;
pub use value::Value;

/// A type as found in a serialization header (`AbstractType`).
///
/// Equality is structural. Whatever is nested in a collection, tuple, UDT or vector is frozen here,
/// whether or not the string said so: releases differ in where they write `FrozenType`, and CQL
/// allows nothing else.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[expect(
    missing_docs,
    reason = "variants bear the names of Cassandra's marshal classes"
)]
pub enum CqlType {
    Ascii,
    Utf8,
    Bytes,
    Boolean,
    Byte,
    Short,
    Int32,
    Long,
    Float,
    Double,
    Timestamp,
    /// Legacy `DateType` (a timestamp of 8 bytes).
    LegacyDate,
    SimpleDate,
    Time,
    Uuid,
    TimeUuid,
    LegacyTimeUuid,
    LexicalUuid,
    Integer,
    Decimal,
    Inet,
    Duration,
    CounterColumn,
    Empty,
    List {
        element: Arc<CqlType>,
        multi_cell: bool,
    },
    Set {
        element: Arc<CqlType>,
        multi_cell: bool,
    },
    Map {
        key: Arc<CqlType>,
        value: Arc<CqlType>,
        multi_cell: bool,
    },
    /// Always frozen.
    Tuple(Arc<[CqlType]>),
    Udt(Arc<UserType>),
    Vector {
        element: Arc<CqlType>,
        dimension: u32,
    },
    Reversed(Arc<CqlType>),
    Composite(Arc<[CqlType]>),
    /// Alias and type of each declared component, ordered by alias.
    DynamicComposite(Arc<[(u8, CqlType)]>),
    /// Clustering type of index tables: keys in the order of the partitioner.
    PartitionerDefinedOrder {
        /// Class name of the partitioner.
        partitioner: String,
        /// Type of the indexed table's key, written since 5.0.
        key_type: Option<Arc<CqlType>>,
    },
}

/// A user-defined type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UserType {
    /// Keyspace that declares it.
    pub keyspace: String,
    /// Its name, raw bytes (UTF-8 in practice).
    pub name: Vec<u8>,
    /// Field names and types, in declaration order.
    pub fields: Vec<(Vec<u8>, CqlType)>,
    /// True when not frozen: each field is a cell of its own.
    pub multi_cell: bool,
}

impl CqlType {
    /// Length of every non-empty value, where the type has one; others are framed with a vint
    /// length.
    ///
    /// tinyint, smallint, date and time have constant width and are nevertheless framed as variable.
    ///
    /// Source: `AbstractType.valueLengthIfFixed`.
    pub fn fixed_len(&self) -> Option<usize> {
        match self {
            CqlType::Empty => Some(0),
            CqlType::Boolean => Some(1),
            CqlType::Int32 | CqlType::Float => Some(4),
            CqlType::Long | CqlType::Double | CqlType::Timestamp | CqlType::LegacyDate => Some(8),
            CqlType::Uuid | CqlType::TimeUuid | CqlType::LegacyTimeUuid | CqlType::LexicalUuid => {
                Some(16)
            }
            CqlType::Vector { element, dimension } => {
                element.fixed_len()?.checked_mul(*dimension as usize)
            }
            CqlType::Reversed(base) => base.fixed_len(),
            _ => None,
        }
    }

    /// True for a type whose elements are cells of their own: a complex column.
    ///
    /// Source: `AbstractType.isMultiCell`.
    pub fn is_multi_cell(&self) -> bool {
        match self {
            CqlType::List { multi_cell, .. }
            | CqlType::Set { multi_cell, .. }
            | CqlType::Map { multi_cell, .. } => *multi_cell,
            CqlType::Udt(udt) => udt.multi_cell,
            _ => false,
        }
    }
}
