//! Cassandra's types: meaning, order and framing of values.
//!
//! | Module | Content |
//! |---|---|
//! | [`parse`] | parsing the type strings of serialization headers |
//! | [`display`] | types as written by Cassandra and in CQL |
//! | [`compare`] | order of values |
//! | [`clustering_order`] | the same for the merge loop, determined once per column |
//! | [`cell_path`] | order and type of cell paths and cells in a complex column |
//! | [`partition_key`] | the values in a partition key |
//! | [`validate`] | validation of values |
//! | [`value`] | values as Rust types |
//! | [`json`], [`text`] | values as printed by Cassandra, in JSON and as text |
//! | [`temporal`] | timestamps as printed by `sstabledump` |
//! | [`identifier`] | names as printed by CQL |
//!
//! Source: `org.apache.cassandra.db.marshal`.

use std::sync::Arc;

mod big_int;
pub mod cell_path;
pub mod clustering_order;
pub mod compare;
pub mod display;
pub(crate) mod elements;
pub mod identifier;
mod java_number;
pub mod json;
mod marshal_error;
pub mod parse;
pub mod partition_key;
mod parts;
mod scalar_text;
pub(crate) mod simple;
pub mod temporal;
pub mod text;
pub mod validate;
pub mod value;

pub use clustering_order::{ClusteringOrder, ValueOrder};
pub use marshal_error::MarshalError;
pub use value::Value;

/// A type as found in a serialization header (`AbstractType`).
///
/// Equality is structural. Types nested in a collection, tuple, UDT or vector are always frozen here, whether
/// or not the string specifies it: releases write `FrozenType` in different positions, and CQL allows nothing
/// else.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[expect(
    missing_docs,
    reason = "variants have the names of Cassandra's marshal classes"
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
    /// Whether the type is not frozen: each field is a separate cell.
    pub multi_cell: bool,
}

impl CqlType {
    /// Length of every non-empty value, if the type has a fixed one; other values are framed with a vint
    /// length.
    ///
    /// tinyint, smallint, date and time have constant width but are framed as variable.
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

    /// Whether its elements are separate cells: a complex column.
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

    /// Whether the cells of a column of this type are counter contexts: also those of a map, as super column
    /// families of counters have (`ColumnMetadata.isCounterColumn`).
    pub fn has_counter_cells(&self) -> bool {
        match self {
            CqlType::List {
                element: of,
                multi_cell: true,
            }
            | CqlType::Map {
                value: of,
                multi_cell: true,
                ..
            } => **of == CqlType::CounterColumn,
            other => *other == CqlType::CounterColumn,
        }
    }
}
