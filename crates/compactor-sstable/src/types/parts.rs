//! Types in a type, and what follows from them.

use std::sync::Arc;

use crate::types::{CqlType, UserType, simple};

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

    /// The type with its user type frozen, where that is not in another type but a reversed or composite one; `None`
    /// if there is none, or it is frozen.
    pub(crate) fn with_frozen_user_types(&self) -> Option<CqlType> {
        match self {
            CqlType::Udt(udt) if udt.multi_cell => Some(CqlType::Udt(Arc::new(UserType {
                multi_cell: false,
                ..UserType::clone(udt)
            }))),
            CqlType::Reversed(base) => {
                let base = base.with_frozen_user_types()?;
                Some(CqlType::Reversed(Arc::new(base)))
            }
            CqlType::Composite(types) => {
                let frozen = types.iter().map(CqlType::with_frozen_user_types);
                let frozen: Vec<_> = frozen.collect();
                frozen.iter().any(Option::is_some).then(|| {
                    let pairs = frozen.into_iter().zip(types.iter());
                    let types = pairs.map(|(frozen, written)| frozen.unwrap_or(written.clone()));
                    CqlType::Composite(types.collect())
                })
            }
            _ => None,
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
    fn user_types_are_frozen_that_are_in_no_other_type() {
        for (text, expected) in [
            ("UserType(ks,75,61:Int32Type)", true),
            ("ReversedType(UserType(ks,75,61:Int32Type))", true),
            (
                "CompositeType(Int32Type,UserType(ks,75,61:Int32Type))",
                true,
            ),
            ("FrozenType(UserType(ks,75,61:Int32Type))", false),
            ("ListType(UserType(ks,75,61:Int32Type))", false),
            ("SetType(Int32Type)", false),
            ("CompositeType(Int32Type,UTF8Type)", false),
        ] {
            let frozen = text.replace(
                "UserType(ks,75,61:Int32Type)",
                "FrozenType(UserType(ks,75,61:Int32Type))",
            );
            let found = CqlType::parse(text).unwrap().with_frozen_user_types();
            let frozen = expected.then(|| CqlType::parse(&frozen).unwrap());
            assert_eq!(found, frozen, "{text}");
        }
    }

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
