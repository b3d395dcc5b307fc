//! Order of frozen collections, tuples, UDTs and vectors.

use std::cmp::Ordering;

use crate::types::CqlType;
use crate::types::elements::{Elements, Item};

/// Lists and sets (one type) and maps (key, value): empty first, then element by element, then by number of
/// elements.
///
/// Source: `CollectionType.compareListOrSet`, `MapType.compareMaps`.
pub(super) fn collection<const N: usize>(types: [&CqlType; N], a: &[u8], b: &[u8]) -> Ordering {
    if a.is_empty() || b.is_empty() {
        return a.len().min(1).cmp(&b.len().min(1));
    }
    let (mut a, mut b) = (Collection::new(a, N), Collection::new(b, N));
    let mut index = 0;
    loop {
        let pair = (a.next(), b.next());
        if let Some(order) = step(types[index % N], pair) {
            return order;
        }
        index += 1;
    }
}

/// Compares a pair; `None` to continue.
fn step(cql_type: &CqlType, pair: (Item<'_>, Item<'_>)) -> Option<Ordering> {
    let order = match pair {
        (Item::Value(a), Item::Value(b)) => cql_type.compare(a, b),
        (Item::End, Item::End) => return Some(Ordering::Equal),
        (Item::Broken(a), Item::Broken(b)) => return Some(a.cmp(b)),
        (a, b) => a.cmp(&b),
    };
    (order != Ordering::Equal).then_some(order)
}

struct Collection<'a> {
    elements: Elements<'a>,
    /// Number of remaining values; `None` without a valid count.
    left: Option<u64>,
}

impl<'a> Collection<'a> {
    fn new(bytes: &'a [u8], values_per_element: usize) -> Collection<'a> {
        let mut elements = Elements::new(bytes);
        let left = elements
            .count32()
            .map(|count| u64::from(count) * values_per_element as u64);
        Collection { elements, left }
    }

    fn next(&mut self) -> Item<'a> {
        match self.left {
            None => Item::Broken(self.elements.rest()),
            // Cassandra ignores bytes after the last element.
            Some(0) => Item::End,
            Some(left) => {
                self.left = Some(left - 1);
                self.elements.next32()
            }
        }
    }
}

/// Tuples and frozen UDTs: empty first; a null, or a missing field at the end, before any value.
///
/// Source: `TupleType.compareCustom`.
pub(super) fn tuple<'t>(types: impl Iterator<Item = &'t CqlType>, a: &[u8], b: &[u8]) -> Ordering {
    if a.is_empty() || b.is_empty() {
        return a.len().min(1).cmp(&b.len().min(1));
    }
    let (mut a, mut b) = (Elements::new(a), Elements::new(b));
    for field in types {
        if a.is_empty() && b.is_empty() {
            return Ordering::Equal;
        }
        let order = match (next_field(&mut a), next_field(&mut b)) {
            (Item::Value(a), Item::Value(b)) => field.compare(a, b),
            (Item::Broken(a), Item::Broken(b)) => return a.cmp(b),
            (a, b) => field_rank(&a).cmp(&field_rank(&b)),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
    // Additional fields beyond the declared ones, unless all are null, make a value greater.
    extra_fields(a).cmp(extra_fields(b))
}

fn next_field<'a>(elements: &mut Elements<'a>) -> Item<'a> {
    if elements.is_empty() {
        Item::Null
    } else {
        elements.next32()
    }
}

fn field_rank(item: &Item<'_>) -> u8 {
    match item {
        Item::End | Item::Null => 0,
        Item::Broken(_) => 1,
        Item::Value(_) => 2,
    }
}

fn extra_fields(mut elements: Elements<'_>) -> &[u8] {
    let rest = elements.rest();
    while !elements.is_empty() {
        if elements.next32() != Item::Null {
            return rest;
        }
    }
    &[]
}

/// Vectors: element by element.
///
/// Source: `VectorType.FixedLengthSerializer.compareCustom`, `VariableLengthSerializer`.
pub(super) fn vector(element: &CqlType, dimension: u32, a: &[u8], b: &[u8]) -> Ordering {
    let fixed_len = element.fixed_len();
    if fixed_len == Some(0) {
        return Ordering::Equal;
    }
    // The only fixed-length type in byte order: Cassandra compares the vector's bytes as a whole.
    if matches!(element, CqlType::LegacyDate) {
        return a.cmp(b);
    }
    let (mut a, mut b) = (Elements::new(a), Elements::new(b));
    for _ in 0..dimension {
        let pair = (a.next_of_vector(fixed_len), b.next_of_vector(fixed_len));
        if let Some(order) = step(element, pair) {
            return order;
        }
    }
    Ordering::Equal
}
