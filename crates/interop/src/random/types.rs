//! Types by Cassandra's class names, and edge-case values of them.

use compactor_sstable::vint;

use super::plan::digits;
use compactor_testkit::Random;

const PACKAGE: &str = "org.apache.cassandra.db.marshal.";

/// A type, without regard to freezing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Type {
    Native(&'static str),
    List(Box<Type>),
    Set(Box<Type>),
    Map(Box<Type>, Box<Type>),
    Tuple(Vec<Type>),
    /// Name, and fields by name.
    Udt(String, Vec<(String, Type)>),
    Vector(Box<Type>, usize),
}

/// Every native type but counters and durations, which have no order.
const ORDERED: [&str; 20] = [
    "AsciiType",
    "BooleanType",
    "ByteType",
    "BytesType",
    "DecimalType",
    "DoubleType",
    "FloatType",
    "InetAddressType",
    "Int32Type",
    "IntegerType",
    "LexicalUUIDType",
    "LongType",
    "ShortType",
    "SimpleDateType",
    "TimeType",
    "TimeUUIDType",
    "TimestampType",
    "UTF8Type",
    "UUIDType",
    "DateType",
];

/// Types whose values all have one length, which a vector then leaves out.
const FIXED: [&str; 10] = [
    "BooleanType",
    "DateType",
    "DoubleType",
    "FloatType",
    "Int32Type",
    "LexicalUUIDType",
    "LongType",
    "TimeUUIDType",
    "TimestampType",
    "UUIDType",
];

/// Types without an empty value.
const NEVER_EMPTY: [&str; 6] = [
    "ByteType",
    "DateType",
    "DurationType",
    "ShortType",
    "SimpleDateType",
    "TimeType",
];

impl Type {
    /// A type that a clustering or a set may have.
    pub(super) fn ordered(rng: &mut Random, depth: u32) -> Type {
        Self::any(rng, depth, true)
    }

    /// A type that a cell may have.
    pub(super) fn cell(rng: &mut Random, depth: u32) -> Type {
        Self::any(rng, depth, false)
    }

    fn any(rng: &mut Random, depth: u32, ordered: bool) -> Type {
        if depth == 0 || !rng.one_in(3) {
            if !ordered && rng.one_in(20) {
                return Type::Native("DurationType");
            }
            return Type::Native(ORDERED[rng.index(ORDERED.len())]);
        }
        let mut inner = |ordered| Box::new(Self::any(rng, depth - 1, ordered));
        let (first, second) = (inner(true), inner(ordered));
        match rng.below(6) {
            0 => Type::List(second),
            1 => Type::Set(first),
            2 => Type::Map(first, second),
            3 => Type::Tuple(vec![*second, *first]),
            4 => Type::udt(rng, vec![*first, *second]),
            _ => Type::Vector(second, rng.index(4) + 1),
        }
    }

    /// A multi-cell type: a collection or a user type.
    pub(super) fn multi_cell(rng: &mut Random) -> Type {
        match rng.below(4) {
            0 => Type::List(Box::new(Self::cell(rng, 1))),
            1 => Type::Set(Box::new(Self::ordered(rng, 1))),
            2 => Type::Map(
                Box::new(Self::ordered(rng, 1)),
                Box::new(Self::cell(rng, 1)),
            ),
            _ => {
                let fields = (0..=rng.index(4)).map(|_| Self::cell(rng, 1)).collect();
                Type::udt(rng, fields)
            }
        }
    }

    fn udt(rng: &mut Random, fields: Vec<Type>) -> Type {
        let named = ["a", "b", "c", "d", "e"].iter().zip(fields);
        let fields = named
            .map(|(name, field)| ((*name).to_owned(), field))
            .collect();
        // A keyspace has only one type of a name.
        Type::Udt(format!("u{:x}", rng.number()), fields)
    }

    /// The class name, multi-cell if the type can be.
    pub(super) fn class(&self) -> String {
        match self {
            Type::Native(name) => format!("{PACKAGE}{name}"),
            Type::List(inner) => format!("{PACKAGE}ListType({})", inner.frozen()),
            Type::Set(inner) => format!("{PACKAGE}SetType({})", inner.frozen()),
            Type::Map(key, value) => {
                format!("{PACKAGE}MapType({},{})", key.frozen(), value.frozen())
            }
            Type::Tuple(parts) => {
                let parts: Vec<String> = parts.iter().map(Type::frozen).collect();
                format!("{PACKAGE}TupleType({})", parts.join(","))
            }
            Type::Udt(name, fields) => {
                let fields = fields.iter();
                let fields = fields
                    .map(|(name, field)| format!("{}:{}", digits(name.as_bytes()), field.frozen()));
                let fields: Vec<String> = fields.collect();
                format!(
                    "{PACKAGE}UserType(interop_random,{},{})",
                    digits(name.as_bytes()),
                    fields.join(",")
                )
            }
            Type::Vector(inner, dimension) => {
                format!("{PACKAGE}VectorType({},{dimension})", inner.frozen())
            }
        }
    }

    /// The class name, frozen if the type can be.
    pub(super) fn frozen(&self) -> String {
        match self {
            Type::List(_) | Type::Set(_) | Type::Map(..) | Type::Udt(..) => {
                format!("{PACKAGE}FrozenType({})", self.class())
            }
            _ => self.class(),
        }
    }

    /// A user type as it was before its last field was added.
    pub(super) fn shorter(&self) -> Option<Type> {
        match self {
            Type::Udt(name, fields) if fields.len() > 1 => {
                let fields = fields[..fields.len() - 1].to_vec();
                Some(Type::Udt(name.clone(), fields))
            }
            _ => None,
        }
    }

    /// Class name of the same type in descending order.
    pub(super) fn reversed(&self) -> String {
        format!("{PACKAGE}ReversedType({})", self.frozen())
    }

    /// Whether the type has an empty value.
    pub(super) fn takes_empty(&self) -> bool {
        match self {
            Type::Native(name) => !NEVER_EMPTY.contains(name),
            Type::Tuple(_) => true,
            _ => false,
        }
    }

    /// A serialized value. No two of them compare equal and have different bytes: which of such values Cassandra keeps
    /// depends on the ids of its inputs, which differ from those of ours.
    pub(super) fn value(&self, rng: &mut Random) -> Vec<u8> {
        match self {
            Type::Native(name) => native(name, rng),
            Type::List(inner) | Type::Set(inner) => {
                let count = rng.index(4);
                collection(count, (0..count).map(|_| inner.value(rng)).collect())
            }
            Type::Map(key, value) => {
                let count = rng.index(3);
                let items = (0..count).flat_map(|_| [key.value(rng), value.value(rng)]);
                collection(count, items.collect())
            }
            Type::Tuple(parts) => tuple(parts.iter(), rng),
            Type::Udt(_, fields) => tuple(fields.iter().map(|(_, field)| field), rng),
            Type::Vector(inner, dimension) => {
                let mut bytes = Vec::new();
                for _ in 0..*dimension {
                    let item = inner.value(rng);
                    if !inner.is_fixed() {
                        vint::write_unsigned(&mut bytes, item.len() as u64);
                    }
                    bytes.extend(item);
                }
                bytes
            }
        }
    }

    fn is_fixed(&self) -> bool {
        match self {
            Type::Native(name) => FIXED.contains(name),
            Type::Vector(inner, _) => inner.is_fixed(),
            _ => false,
        }
    }
}

fn collection(count: usize, items: Vec<Vec<u8>>) -> Vec<u8> {
    let mut bytes = length(count);
    for item in items {
        bytes.extend(length(item.len()));
        bytes.extend(item);
    }
    bytes
}

/// All components are spelled out: a tuple that ends early equals one that ends in nulls.
fn tuple<'a>(parts: impl Iterator<Item = &'a Type>, rng: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in parts {
        if rng.one_in(5) {
            bytes.extend((-1_i32).to_be_bytes());
        } else {
            let value = part.value(rng);
            bytes.extend(length(value.len()));
            bytes.extend(value);
        }
    }
    bytes
}

fn length(length: usize) -> Vec<u8> {
    i32::try_from(length)
        .unwrap_or(i32::MAX)
        .to_be_bytes()
        .to_vec()
}

fn native(name: &str, rng: &mut Random) -> Vec<u8> {
    let small = rng.below(7).cast_signed() - 3;
    let wide = *rng.pick(&[
        i64::MIN,
        i64::from(i32::MIN),
        -129,
        -1,
        0,
        1,
        127,
        128,
        65_536,
        i64::from(i32::MAX),
        i64::MAX,
    ]);
    let number = if rng.one_in(2) { small } else { wide };
    match name {
        "AsciiType" => rng
            .pick(&["", "a", "A", "aa", "ab", "b", "~", " "])
            .as_bytes()
            .to_vec(),
        "UTF8Type" => rng
            .pick(&["", "a", "aa", "ab", "b", "é", "\u{10348}", "\u{ffff}"])
            .as_bytes()
            .to_vec(),
        "BytesType" => bytes(rng),
        "BooleanType" => vec![u8::from(rng.one_in(2))],
        "ByteType" => number.to_be_bytes()[7..].to_vec(),
        "ShortType" => number.to_be_bytes()[6..].to_vec(),
        "Int32Type" | "SimpleDateType" => number.to_be_bytes()[4..].to_vec(),
        "LongType" | "TimestampType" | "DateType" => number.to_be_bytes().to_vec(),
        "TimeType" => number.rem_euclid(86_400_000_000_000).to_be_bytes().to_vec(),
        "IntegerType" => varint(number),
        "DecimalType" => decimal(number, rng),
        "DoubleType" => rng
            .pick(&[
                f64::NAN,
                f64::INFINITY,
                f64::NEG_INFINITY,
                0.0,
                -0.0,
                1.5,
                -2.5,
                f64::MIN_POSITIVE,
            ])
            .to_be_bytes()
            .to_vec(),
        "FloatType" => rng
            .pick(&[
                f32::NAN,
                f32::INFINITY,
                f32::NEG_INFINITY,
                0.0,
                -0.0,
                1.5,
                -2.5,
                f32::MAX,
            ])
            .to_be_bytes()
            .to_vec(),
        "InetAddressType" => match rng.below(4) {
            0 => vec![10, 0, 0, 1],
            1 => vec![255; 4],
            2 => vec![0; 16],
            _ => {
                let mut mapped = vec![0; 16];
                mapped[10..12].fill(0xff);
                mapped[12..].copy_from_slice(&[10, 0, 0, 1]);
                mapped
            }
        },
        "TimeUUIDType" => uuid(rng, 1),
        "UUIDType" | "LexicalUUIDType" => {
            let version = *rng.pick(&[1, 1, 3, 4, 4, 7]);
            uuid(rng, version)
        }
        "DurationType" => {
            let mut bytes = Vec::new();
            let sign = if rng.one_in(2) { 1 } else { -1 };
            for _ in 0..3 {
                vint::write_signed(&mut bytes, sign * rng.below(3).cast_signed() * 30);
            }
            bytes
        }
        _ => Vec::new(),
    }
}

fn bytes(rng: &mut Random) -> Vec<u8> {
    let edges: [&[u8]; 7] = [&[], &[0], &[0, 0], &[0x7f], &[0x80], &[0xff], &[0xff, 0xff]];
    rng.pick(&edges).to_vec()
}

/// Big-endian two's complement without spare leading bytes.
fn varint(number: i64) -> Vec<u8> {
    let bytes = number.to_be_bytes();
    let spare = |at: usize| {
        let next_is_negative = bytes[at + 1] & 0x80 != 0;
        (bytes[at] == 0 && !next_is_negative) || (bytes[at] == 0xff && next_is_negative)
    };
    let mut at = 0;
    while at < 7 && spare(at) {
        at += 1;
    }
    bytes[at..].to_vec()
}

/// Scale and unscaled value, without trailing zeroes: 1.50 equals 1.5.
fn decimal(number: i64, rng: &mut Random) -> Vec<u8> {
    let mut unscaled = number;
    while unscaled != 0 && unscaled % 10 == 0 {
        unscaled /= 10;
    }
    let scale: i32 = if unscaled == 0 {
        0
    } else {
        *rng.pick(&[-2, 0, 1, 5])
    };
    let mut bytes = scale.to_be_bytes().to_vec();
    bytes.extend(varint(unscaled));
    bytes
}

fn uuid(rng: &mut Random, version: u8) -> Vec<u8> {
    let mut bytes = vec![0; 16];
    for at in [0, 3, 4, 7] {
        bytes[at] = *rng.pick(&[0, 1, 0x7f, 0x80, 0xff]);
    }
    bytes[6] = version << 4 | u8::from(rng.one_in(2));
    bytes[8] = 0x80 | u8::from(rng.one_in(2));
    bytes[15] = *rng.pick(&[0, 1, 0x7f, 0x80, 0xff]);
    bytes
}
