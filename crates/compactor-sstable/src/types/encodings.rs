//! Types with values that compare equal but differ in their bytes.

use crate::types::CqlType;

impl CqlType {
    /// Whether values that compare equal may differ in their bytes: decimals of different scales (1.5 and
    /// 1.50), varints with redundant leading bytes, tuples and UDTs that omit trailing nulls, and types that
    /// contain these.
    ///
    /// False for float, double and boolean, for which only NaNs with different bits and trues other than 1
    /// compare equal.
    pub fn has_several_encodings(&self) -> bool {
        match self {
            CqlType::Integer
            | CqlType::Decimal
            | CqlType::Tuple(_)
            | CqlType::Udt(_)
            | CqlType::DynamicComposite(_) => true,
            CqlType::List { element, .. }
            | CqlType::Set { element, .. }
            | CqlType::Vector { element, .. } => element.has_several_encodings(),
            CqlType::Map { key, value, .. } => {
                key.has_several_encodings() || value.has_several_encodings()
            }
            CqlType::Reversed(base) => base.has_several_encodings(),
            CqlType::Composite(types) => types.iter().any(CqlType::has_several_encodings),
            CqlType::Ascii
            | CqlType::Utf8
            | CqlType::Bytes
            | CqlType::Boolean
            | CqlType::Byte
            | CqlType::Short
            | CqlType::Int32
            | CqlType::Long
            | CqlType::Float
            | CqlType::Double
            | CqlType::Timestamp
            | CqlType::LegacyDate
            | CqlType::SimpleDate
            | CqlType::Time
            | CqlType::Uuid
            | CqlType::TimeUuid
            | CqlType::LegacyTimeUuid
            | CqlType::LexicalUuid
            | CqlType::Inet
            | CqlType::Duration
            | CqlType::CounterColumn
            | CqlType::Empty
            | CqlType::PartitionerDefinedOrder { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_types_with_equal_values_of_other_bytes() {
        for (text, expected) in [
            ("DecimalType", true),
            ("ReversedType(IntegerType)", true),
            ("FrozenType(ListType(DecimalType))", true),
            ("MapType(Int32Type,IntegerType)", true),
            ("TupleType(Int32Type)", true),
            ("UTF8Type", false),
            ("ReversedType(DoubleType)", false),
            ("FrozenType(SetType(LongType))", false),
            ("ListType(Int32Type)", false),
        ] {
            let parsed = CqlType::parse(text).unwrap();
            assert_eq!(parsed.has_several_encodings(), expected, "{text}");
        }
    }
}
