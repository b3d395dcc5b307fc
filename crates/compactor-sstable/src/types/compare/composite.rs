//! Order of composites and dynamic composites.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::types::CqlType;
use crate::types::elements::{Component, Elements, Item, component_type, split_static_marker};

/// Empty first, a static prefix before others; for each component the value, then the signed end-of-component
/// byte; a shorter composite before its extensions.
///
/// Source: `AbstractCompositeType.compareCustom`.
pub(super) fn composite(types: &[CqlType], a: &[u8], b: &[u8]) -> Ordering {
    if a.is_empty() || b.is_empty() {
        return a.len().min(1).cmp(&b.len().min(1));
    }
    let ((static_a, a), (static_b, b)) = (split_static_marker(a), split_static_marker(b));
    if static_a != static_b {
        return static_b.cmp(&static_a);
    }
    let (mut a, mut b) = (Elements::new(a), Elements::new(b));
    let mut index = 0;
    loop {
        let order = match (a.next_component(), b.next_component()) {
            (
                Component::Value {
                    value: a,
                    end_of_component: end_a,
                },
                Component::Value {
                    value: b,
                    end_of_component: end_b,
                },
            ) => component_type(types, index)
                .compare(a, b)
                .then(end_a.cmp(&end_b)),
            (Component::Broken(a), Component::Broken(b)) => return a.cmp(b),
            (Component::End, Component::End) => return Ordering::Equal,
            (a, b) => a.cmp(&b),
        };
        if order != Ordering::Equal {
            return order;
        }
        index += 1;
    }
}

/// As [`composite`], but each component names its type; components of different types are compared by the
/// names of their classes.
///
/// Source: `DynamicCompositeType.getComparator`.
///
/// Differs from Cassandra: types of one class with different parameters are compared by their full strings,
/// whereas Cassandra uses the order of the left one.
pub(super) fn dynamic_composite(aliases: &[(u8, CqlType)], a: &[u8], b: &[u8]) -> Ordering {
    if a.is_empty() || b.is_empty() {
        return a.len().min(1).cmp(&b.len().min(1));
    }
    let (mut a, mut b) = (Elements::new(a), Elements::new(b));
    loop {
        let order = match (
            TypedComponent::next(aliases, &mut a),
            TypedComponent::next(aliases, &mut b),
        ) {
            (TypedComponent::Value(a), TypedComponent::Value(b)) => a.compare(&b),
            (TypedComponent::Broken(a), TypedComponent::Broken(b)) => return a.cmp(b),
            (TypedComponent::End, TypedComponent::End) => return Ordering::Equal,
            (a, b) => a.rank().cmp(&b.rank()),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

enum TypedComponent<'a, 't> {
    End,
    Broken(&'a [u8]),
    Value(TypedValue<'a, 't>),
}

struct TypedValue<'a, 't> {
    cql_type: Cow<'t, CqlType>,
    value: &'a [u8],
    end_of_component: i8,
}

impl<'a, 't> TypedComponent<'a, 't> {
    fn next(aliases: &'t [(u8, CqlType)], elements: &mut Elements<'a>) -> TypedComponent<'a, 't> {
        if elements.is_empty() {
            return TypedComponent::End;
        }
        let whole = elements.rest();
        let taken = next_comparator(aliases, elements).and_then(|(_, cql_type)| {
            match elements.next_component() {
                Component::Value {
                    value,
                    end_of_component,
                } => Some(TypedValue {
                    cql_type,
                    value,
                    end_of_component,
                }),
                _ => None,
            }
        });
        match taken {
            Some(value) => TypedComponent::Value(value),
            None => TypedComponent::Broken(whole),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            TypedComponent::End => 0,
            TypedComponent::Broken(_) => 1,
            TypedComponent::Value(_) => 2,
        }
    }
}

impl TypedValue<'_, '_> {
    fn compare(&self, other: &TypedValue<'_, '_>) -> Ordering {
        self.compare_types(other)
            .then_with(|| self.cql_type.compare(self.value, other.value))
            .then(self.end_of_component.cmp(&other.end_of_component))
    }

    fn compare_types(&self, other: &TypedValue<'_, '_>) -> Ordering {
        if self.cql_type == other.cql_type {
            return Ordering::Equal;
        }
        let unwrapped = match (self.cql_type.as_ref(), other.cql_type.as_ref()) {
            (CqlType::Reversed(a), CqlType::Reversed(b)) => (a.class_name(), b.class_name()),
            (a, b) => (a.class_name(), b.class_name()),
        };
        unwrapped.0.cmp(unwrapped.1).then_with(|| {
            self.cql_type
                .class_string()
                .cmp(&other.cql_type.class_string())
        })
    }
}

/// Reads the comparator part of a component: `u16` with the high bit set and an alias in the low byte, or the
/// length of a type string that follows. Returns the alias or the string, and the type; `None` if it is unknown.
pub(crate) fn next_comparator<'a, 't>(
    aliases: &'t [(u8, CqlType)],
    elements: &mut Elements<'a>,
) -> Option<(&'a str, Cow<'t, CqlType>)> {
    let Item::Value(header) = elements.next_fixed(2) else {
        return None;
    };
    let (high, low) = header.split_at_checked(1)?;
    if high[0] & 0x80 != 0 {
        let index = aliases
            .binary_search_by_key(&low, |(alias, _)| std::slice::from_ref(alias))
            .ok()?;
        return Some((
            std::str::from_utf8(low).ok()?,
            Cow::Borrowed(&aliases[index].1),
        ));
    }
    let len = u16::from_be_bytes(<[u8; 2]>::try_from(header).ok()?);
    let Item::Value(name) = elements.next_fixed(usize::from(len)) else {
        return None;
    };
    let name = std::str::from_utf8(name).ok()?;
    let parsed = CqlType::parse(name).ok()?;
    // Otherwise values could name types whose values name types: unbounded recursion.
    (!parsed.contains_dynamic_composite()).then_some((name, Cow::Owned(parsed)))
}
