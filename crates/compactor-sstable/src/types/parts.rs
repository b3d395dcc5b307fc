//! Types in a type, and what follows from them.

use crate::types::{CqlType, simple};

impl CqlType {
    /// Types in it: of elements, keys and values, fields or components. None for a dynamic composite, whose values
    /// name their types, and for an order by partitioner.
    #[must_use]
    pub fn parts(&self) -> Vec<&CqlType> {
        match self {
            CqlType::List { element, .. }
            | CqlType::Set { element, .. }
            | CqlType::Vector { element, .. } => vec![element],
            CqlType::Map { key, value, .. } => vec![key, value],
            CqlType::Tuple(types) | CqlType::Composite(types) => types.iter().collect(),
            CqlType::Udt(udt) => udt.fields.iter().map(|(_, field)| field).collect(),
            CqlType::Reversed(base) => vec![base],
            other => {
                debug_assert!(
                    simple::names(other).is_some()
                        || matches!(
                            other,
                            CqlType::DynamicComposite(_) | CqlType::PartitionerDefinedOrder { .. }
                        ),
                    "{other:?} has parts that are not known"
                );
                Vec::new()
            }
        }
    }

    /// Number of types in it, itself included.
    pub(crate) fn count(&self) -> usize {
        1 + self.parts().into_iter().map(CqlType::count).sum::<usize>()
    }

    /// Whether it has a user type without its keyspace, which only a schema has that names none. Written to a header,
    /// the name of the type would be read as the keyspace.
    pub fn lacks_keyspace(&self) -> bool {
        matches!(self, CqlType::Udt(udt) if udt.keyspace.is_empty())
            || self.parts().into_iter().any(CqlType::lacks_keyspace)
    }

    /// Whether values name the types of parts of them.
    pub(super) fn contains_dynamic_composite(&self) -> bool {
        matches!(self, CqlType::DynamicComposite(_))
            || (self.parts().into_iter()).any(CqlType::contains_dynamic_composite)
    }

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
            other => (other.parts().into_iter()).any(CqlType::has_several_encodings),
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
