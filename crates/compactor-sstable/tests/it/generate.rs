//! Types by proptest; values of a type from a seed, biased to edge cases and to collisions.

use std::sync::Arc;

use compactor_sstable::types::{CqlType, UserType};
use compactor_sstable::vint;
use proptest::prelude::*;

/// Types without parameters.
pub const SIMPLE: [CqlType; 24] = [
    CqlType::Ascii,
    CqlType::Utf8,
    CqlType::Bytes,
    CqlType::Boolean,
    CqlType::Byte,
    CqlType::Short,
    CqlType::Int32,
    CqlType::Long,
    CqlType::Float,
    CqlType::Double,
    CqlType::Timestamp,
    CqlType::LegacyDate,
    CqlType::SimpleDate,
    CqlType::Time,
    CqlType::Uuid,
    CqlType::TimeUuid,
    CqlType::LegacyTimeUuid,
    CqlType::LexicalUuid,
    CqlType::Integer,
    CqlType::Decimal,
    CqlType::Inet,
    CqlType::Duration,
    CqlType::CounterColumn,
    CqlType::Empty,
];

/// Any type; nested types are frozen, as in the types that the parser returns.
pub fn any_type() -> impl Strategy<Value = CqlType> {
    let simple = proptest::sample::select(&SIMPLE[..]);
    let frozen = simple.prop_recursive(3, 24, 4, |inner| {
        let types = || proptest::collection::vec(inner.clone(), 1..4);
        prop_oneof![
            (inner.clone(), 0..2).prop_map(|(element, _)| list(element, false)),
            inner.clone().prop_map(|element| set(element, false)),
            (inner.clone(), inner.clone()).prop_map(|(key, value)| map(key, value, false)),
            types().prop_map(|types| CqlType::Tuple(types.into())),
            types().prop_map(|types| udt(types, false)),
            (inner.clone(), 1..4u32).prop_map(|(element, dimension)| CqlType::Vector {
                element: Arc::new(element),
                dimension,
            }),
        ]
    });
    let types = || proptest::collection::vec(frozen.clone(), 1..4);
    prop_oneof![
        4 => frozen.clone(),
        1 => frozen.clone().prop_map(|element| list(element, true)),
        1 => frozen.clone().prop_map(|element| set(element, true)),
        1 => (frozen.clone(), frozen.clone()).prop_map(|(key, value)| map(key, value, true)),
        1 => types().prop_map(|types| udt(types, true)),
        1 => frozen.clone().prop_map(|base| CqlType::Reversed(Arc::new(base))),
        1 => types().prop_map(|types| CqlType::Composite(types.into())),
        1 => types().prop_map(|types| {
            let aliases = types.into_iter().enumerate();
            CqlType::DynamicComposite(aliases.map(|(i, t)| (b'a' + i as u8, t)).collect())
        }),
    ]
}

fn list(element: CqlType, multi_cell: bool) -> CqlType {
    CqlType::List {
        element: Arc::new(element),
        multi_cell,
    }
}

fn set(element: CqlType, multi_cell: bool) -> CqlType {
    CqlType::Set {
        element: Arc::new(element),
        multi_cell,
    }
}

fn map(key: CqlType, value: CqlType, multi_cell: bool) -> CqlType {
    CqlType::Map {
        key: Arc::new(key),
        value: Arc::new(value),
        multi_cell,
    }
}

fn udt(types: Vec<CqlType>, multi_cell: bool) -> CqlType {
    let names = ["a", "Field \"2\"", "ünï"];
    let fields = types
        .into_iter()
        .enumerate()
        .map(|(i, t)| (names[i % 3].as_bytes().to_vec(), t));
    CqlType::Udt(Arc::new(UserType {
        keyspace: "ks".to_owned(),
        name: b"Udt".to_vec(),
        fields: fields.collect(),
        multi_cell,
    }))
}

/// A small generator, so that a value is a function of a seed that proptest can shrink.
#[derive(Clone, Debug)]
pub struct Random(compactor_testkit::Random);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(compactor_testkit::Random::new(seed))
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        *self.0.pick(from)
    }

    fn integer(&mut self) -> i64 {
        match self.below(3) {
            0 => self.pick(&[0, 1, -1, i64::MIN, i64::MAX, 0x80, -0x80, 255, 256, -256]),
            1 => self.below(7) as i64 - 3,
            _ => self.0.number() as i64,
        }
    }

    fn bytes(&mut self, max_len: u64) -> Vec<u8> {
        (0..self.below(max_len + 1))
            .map(|_| self.pick(&[0, 1, 0x7f, 0x80, 0xff, b'a']))
            .collect()
    }

    fn text(&mut self) -> String {
        (0..self.below(4))
            .map(|_| self.pick(&['a', 'b', ':', '"', '\\', '\n', '\u{1}']))
            .collect()
    }
}

/// A value that Cassandra's serializer of this type would accept.
pub fn value(cql_type: &CqlType, random: &mut Random) -> Vec<u8> {
    let integer = random.integer();
    match cql_type {
        CqlType::Ascii => random.text().into_bytes(),
        CqlType::Utf8 => format!("{}{}", random.text(), random.pick(&["", "é", "😀"])).into_bytes(),
        CqlType::Bytes => random.bytes(4),
        // At least one byte: inside tuples an empty one is encoded like null.
        CqlType::Integer => [vec![random.0.number() as u8], random.bytes(19)].concat(),
        CqlType::Boolean => vec![random.below(3) as u8],
        CqlType::Byte => vec![integer as u8],
        CqlType::Short => (integer as i16).to_be_bytes().to_vec(),
        CqlType::Int32 | CqlType::SimpleDate => (integer as i32).to_be_bytes().to_vec(),
        CqlType::Long | CqlType::Timestamp | CqlType::LegacyDate => integer.to_be_bytes().to_vec(),
        CqlType::Time => (integer.rem_euclid(86_400_000_000_000))
            .to_be_bytes()
            .to_vec(),
        CqlType::Float => {
            let special = [
                0.0,
                -0.0,
                1.0,
                f32::NAN,
                -f32::NAN,
                f32::INFINITY,
                f32::NEG_INFINITY,
            ];
            match random.below(2) {
                0 => random.pick(&special).to_be_bytes().to_vec(),
                _ => (integer as u32).to_be_bytes().to_vec(),
            }
        }
        CqlType::Double => {
            let special = [
                0.0,
                -0.0,
                1.0,
                f64::NAN,
                -f64::NAN,
                f64::INFINITY,
                f64::NEG_INFINITY,
            ];
            match random.below(2) {
                0 => random.pick(&special).to_be_bytes().to_vec(),
                _ => integer.to_be_bytes().to_vec(),
            }
        }
        CqlType::Uuid | CqlType::LexicalUuid | CqlType::TimeUuid | CqlType::LegacyTimeUuid => {
            let mut raw = [integer.to_be_bytes(), random.integer().to_be_bytes()].concat();
            if !matches!(cql_type, CqlType::LexicalUuid | CqlType::Uuid) || random.below(2) == 0 {
                raw[6] = 0x10 | (raw[6] & 0xf);
            }
            raw
        }
        CqlType::Decimal => {
            let scale = match random.below(8) {
                0 => random.pick(&[i32::MIN, i32::MAX]),
                _ => random.below(9) as i32 - 4,
            };
            let unscaled = match random.below(3) {
                0 => [vec![1], random.bytes(24)].concat(),
                1 => random
                    .pick(&[0i64, 1, 10, 100, 1000, -10, -100])
                    .to_be_bytes()
                    .to_vec(),
                _ => vec![integer as u8],
            };
            [scale.to_be_bytes().to_vec(), unscaled].concat()
        }
        CqlType::Inet => vec![integer as u8; random.pick(&[4, 16])],
        CqlType::Duration => {
            let mut out = Vec::new();
            let sign = random.pick(&[1i64, -1]);
            for bound in [i32::MAX as u64, 40, 1 << 40] {
                vint::write_signed(&mut out, sign * random.below(bound) as i64);
            }
            out
        }
        CqlType::CounterColumn => [vec![0, 0], vec![integer as u8; 32]].concat(),
        CqlType::Empty => Vec::new(),
        CqlType::List { element, .. } | CqlType::Set { element, .. } => {
            collection(&[element], random)
        }
        CqlType::Map { key, value, .. } => collection(&[key, value], random),
        CqlType::Tuple(types) => tuple(types.iter(), random),
        CqlType::Udt(udt) => tuple(udt.fields.iter().map(|(_, field)| field), random),
        CqlType::Vector { element, dimension } => (0..*dimension)
            .flat_map(|_| {
                let bytes = value(element, random);
                let mut out = Vec::new();
                if element.fixed_len().is_none() {
                    vint::write_unsigned(&mut out, bytes.len() as u64);
                }
                out.extend(bytes);
                out
            })
            .collect(),
        CqlType::Reversed(base) => value(base, random),
        CqlType::Composite(types) => {
            let count = random.below(types.len() as u64 + 1) as usize;
            types[..count]
                .iter()
                .flat_map(|part| component(part, random))
                .collect()
        }
        CqlType::DynamicComposite(aliases) => (0..random.below(3))
            .flat_map(|_| {
                let (alias, part) = &aliases[random.below(aliases.len() as u64) as usize];
                [vec![0x80, *alias], component(part, random)].concat()
            })
            .collect(),
        other => panic!("no values of {other:?}"),
    }
}

fn component(cql_type: &CqlType, random: &mut Random) -> Vec<u8> {
    let bytes = value(cql_type, random);
    [(bytes.len() as u16).to_be_bytes().to_vec(), bytes, vec![0]].concat()
}

fn collection(types: &[&CqlType], random: &mut Random) -> Vec<u8> {
    let count = random.below(3) as u32;
    let mut out = count.to_be_bytes().to_vec();
    for _ in 0..count {
        for part in types {
            let bytes = value(part, random);
            out.extend((bytes.len() as u32).to_be_bytes());
            out.extend(bytes);
        }
    }
    out
}

fn tuple<'t>(types: impl Iterator<Item = &'t CqlType>, random: &mut Random) -> Vec<u8> {
    let mut out = Vec::new();
    for field in types {
        match random.below(8) {
            0 => break,
            1 => out.extend([0xff; 4]),
            _ => {
                let bytes = value(field, random);
                out.extend((bytes.len() as u32).to_be_bytes());
                out.extend(bytes);
            }
        }
    }
    out
}

/// Returns the value of `seed`, sometimes empty, damaged or replaced, depending on `damage`.
///
/// Values of one seed with different damage are similar, which would reveal an inconsistent order.
pub fn value_or_damage(cql_type: &CqlType, seed: u64, damage: u64) -> Vec<u8> {
    let mut bytes = value(cql_type, &mut Random::new(seed));
    let mut random = Random::new(damage);
    match random.below(9) {
        0 => Vec::new(),
        1 => random.bytes(24),
        2 => {
            bytes.truncate(random.below(bytes.len() as u64 + 1) as usize);
            bytes
        }
        3 if !bytes.is_empty() => {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] ^= random.pick(&[1, 0x80, 0xff]);
            bytes
        }
        4 => {
            bytes.extend(random.bytes(3));
            bytes
        }
        // The length of a null, if it overwrites one.
        5 if bytes.len() >= 4 => {
            let at = 4 * random.below(bytes.len() as u64 / 4) as usize;
            bytes[at..at + 4].fill(0xff);
            bytes
        }
        _ => bytes,
    }
}
