//! Unsigned bytes of encodings compare as the encoded values.

use std::cmp::Ordering;

use compactor_sstable::bti::byte_comparable::{append_prefix, append_value};
use compactor_sstable::byte_reader::ByteReader;
use compactor_sstable::data::clustering::{ClusteringComparator, Kind, Prefix};
use compactor_sstable::types::CqlType;
use proptest::prelude::*;

use crate::generate::{Random, SIMPLE, any_type, value};

/// Types of clustering columns. Excluded are those for which Cassandra's two orders differ: counters, which
/// have none; floats inside other types, which may contain NaN; empty values inside tuples, which are encoded
/// like nulls; and components that name a type of their own.
fn clustering_type() -> impl Strategy<Value = CqlType> {
    let simple = proptest::sample::select(&SIMPLE[..]);
    let any = prop_oneof![simple, any_type()];
    any.prop_filter("types with one order", |cql_type| {
        is_ordered(cql_type, true)
    })
    .prop_flat_map(|cql_type| match cql_type {
        CqlType::Reversed(base) => Just(CqlType::Reversed(base)).boxed(),
        cql_type => {
            let reversed = CqlType::Reversed(cql_type.clone().into());
            prop_oneof![Just(cql_type), Just(reversed)].boxed()
        }
    })
}

fn is_ordered(cql_type: &CqlType, is_outermost: bool) -> bool {
    match cql_type {
        CqlType::CounterColumn | CqlType::DynamicComposite(_) => false,
        CqlType::Float | CqlType::Double | CqlType::Empty => is_outermost,
        CqlType::List { element, .. }
        | CqlType::Set { element, .. }
        | CqlType::Vector { element, .. } => is_ordered(element, false),
        CqlType::Map { key, value, .. } => is_ordered(key, false) && is_ordered(value, false),
        CqlType::Composite(types) => types.iter().all(|inner| is_ordered(inner, false)),
        CqlType::Tuple(types) => types.iter().all(is_ordered_field),
        CqlType::Udt(udt) => udt.fields.iter().all(|(_, field)| is_ordered_field(field)),
        CqlType::Reversed(base) => is_outermost && is_ordered(base, true),
        _ => true,
    }
}

/// A tuple without fields has no bytes, and inside another is encoded like null.
fn is_ordered_field(cql_type: &CqlType) -> bool {
    !matches!(cql_type, CqlType::Tuple(_) | CqlType::Udt(_)) && is_ordered(cql_type, false)
}

fn is_nan(cql_type: &CqlType, value: &[u8]) -> bool {
    match cql_type {
        CqlType::Reversed(base) => is_nan(base, value),
        CqlType::Float => value
            .try_into()
            .is_ok_and(|raw| f32::from_be_bytes(raw).is_nan()),
        CqlType::Double => value
            .try_into()
            .is_ok_and(|raw| f64::from_be_bytes(raw).is_nan()),
        _ => false,
    }
}

/// A clustering or a bound, serialized.
fn prefix(types: &[CqlType], comparator: &ClusteringComparator, seed: u64, like: u64) -> Vec<u8> {
    let (mut random, mut shared) = (Random::new(seed), Random::new(like));
    let kinds = [
        Kind::Clustering,
        Kind::Clustering,
        Kind::ExclEndBound,
        Kind::InclStartBound,
        Kind::ExclEndInclStartBoundary,
        Kind::InclEndExclStartBoundary,
        Kind::InclEndBound,
        Kind::ExclStartBound,
    ];
    let kind = kinds[random.below(8) as usize];
    let count = match kind {
        Kind::Clustering => types.len(),
        _ => random.below(types.len() as u64 + 1) as usize,
    };
    let values: Vec<Option<Vec<u8>>> = types[..count]
        .iter()
        .map(|cql_type| {
            let alike = value(cql_type, &mut shared);
            let bytes = match random.below(8) {
                0 => return None,
                1 => Vec::new(),
                2..=4 => alike,
                _ => value(cql_type, &mut random),
            };
            Some(if is_nan(cql_type, &bytes) {
                Vec::new()
            } else {
                bytes
            })
        })
        .collect();
    let mut out = Vec::new();
    comparator.write_prefix(&mut out, kind, values.iter().map(|value| value.as_deref()));
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6000, ..ProptestConfig::default() })]

    #[test]
    fn prefixes(
        types in proptest::collection::vec(clustering_type(), 1..4),
        seeds in any::<[u64; 2]>(),
        like in any::<u64>(),
    ) {
        let comparator = ClusteringComparator::new(&types).unwrap();
        let forms = seeds.map(|seed| {
            let serialized = prefix(&types, &comparator, seed, like);
            let mut spans = Vec::new();
            let mut reader = ByteReader::new(&serialized);
            let kind = comparator.read_prefix(&mut reader, &mut spans).unwrap();
            let mut out = Vec::new();
            let parsed = Prefix { kind, base: &serialized, spans: &spans };
            let encoded = append_prefix(&types, parsed, &mut out);
            (serialized, kind, spans, encoded.map(|()| out))
        });
        let [(base_a, kind_a, spans_a, a), (base_b, kind_b, spans_b, b)] = &forms;
        let order = comparator.compare(
            Prefix { kind: *kind_a, base: base_a, spans: spans_a },
            Prefix { kind: *kind_b, base: base_b, spans: spans_b },
        );
        let (Ok(a), Ok(b)) = (a, b) else {
            return Err(TestCaseError::fail(format!("no form: {:?} {:?}", a, b)));
        };
        prop_assert_eq!(a.cmp(b), order, "{:02x?} {:02x?}", a, b);
        // None is a prefix of another; otherwise separators could not distinguish them.
        prop_assert!(order == Ordering::Equal || !(a.starts_with(b) || b.starts_with(a)));
    }

    /// Also for bytes that are not a valid value: an error, not a panic.
    #[test]
    fn any_bytes_of_any_type(cql_type in any_type(), bytes in any::<Vec<u8>>()) {
        let mut out = Vec::new();
        let _ = append_value(&cql_type, &bytes, &mut out);
        let mut prefixed = [0, 0, 0, 2].to_vec();
        prefixed.extend_from_slice(&bytes);
        let _ = append_value(&cql_type, &prefixed, &mut out);
    }
}
