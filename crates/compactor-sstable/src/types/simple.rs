//! Names of the types without parameters.

use crate::types::CqlType;

/// Type, its class without package, and its name in CQL, empty if it has none. Of types with one name in CQL, the
/// first is meant.
static TYPES: [(CqlType, &str, &str); 24] = [
    (CqlType::Ascii, "AsciiType", "ascii"),
    (CqlType::Utf8, "UTF8Type", "text"),
    (CqlType::Bytes, "BytesType", "blob"),
    (CqlType::Boolean, "BooleanType", "boolean"),
    (CqlType::Byte, "ByteType", "tinyint"),
    (CqlType::Short, "ShortType", "smallint"),
    (CqlType::Int32, "Int32Type", "int"),
    (CqlType::Long, "LongType", "bigint"),
    (CqlType::Float, "FloatType", "float"),
    (CqlType::Double, "DoubleType", "double"),
    (CqlType::Timestamp, "TimestampType", "timestamp"),
    // `DateType.asCQL3Type` is timestamp as well.
    (CqlType::LegacyDate, "DateType", "timestamp"),
    (CqlType::SimpleDate, "SimpleDateType", "date"),
    (CqlType::Time, "TimeType", "time"),
    (CqlType::Uuid, "UUIDType", "uuid"),
    (CqlType::TimeUuid, "TimeUUIDType", "timeuuid"),
    (CqlType::LegacyTimeUuid, "LegacyTimeUUIDType", "timeuuid"),
    (CqlType::LexicalUuid, "LexicalUUIDType", ""),
    (CqlType::Integer, "IntegerType", "varint"),
    (CqlType::Decimal, "DecimalType", "decimal"),
    (CqlType::Inet, "InetAddressType", "inet"),
    (CqlType::Duration, "DurationType", "duration"),
    (CqlType::CounterColumn, "CounterColumnType", "counter"),
    (CqlType::Empty, "EmptyType", "empty"),
];

/// Returns the type with this class.
pub(super) fn of_class(class: &str) -> Option<CqlType> {
    let found = TYPES.iter().find(|(_, name, _)| *name == class);
    found.map(|(cql_type, ..)| cql_type.clone())
}

/// Returns the type with this name in CQL.
pub(crate) fn of_cql_name(name: &str) -> Option<CqlType> {
    let name = if name == "varchar" { "text" } else { name };
    let found = TYPES.iter().find(|(.., cql_name)| *cql_name == name);
    found.map(|(cql_type, ..)| cql_type.clone())
}

/// Returns class and name in CQL of a type without parameters.
pub(super) fn names(cql_type: &CqlType) -> Option<(&'static str, &'static str)> {
    let found = TYPES.iter().find(|(simple, ..)| simple == cql_type);
    found.map(|(_, class, cql_name)| (*class, *cql_name))
}
