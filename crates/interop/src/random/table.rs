//! A random table, with the few values of each column that its mutations will use, so that they meet.

use super::plan::{Column, Compression, Hex, Schema};
use super::types::Type;
use crate::rng::Rng;

/// A table and its values.
#[derive(Debug, Clone)]
pub(super) struct Table {
    pub(super) schema: Schema,
    /// Serialized partition keys.
    pub(super) keys: Vec<Hex>,
    /// Of each clustering column.
    pub(super) clusterings: Vec<Vec<Hex>>,
    pub(super) statics: Vec<Values>,
    pub(super) regulars: Vec<Values>,
    pub(super) shape: Shape,
}

/// What makes a table special.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Plain,
    /// Every column is a counter.
    Counter,
    /// Compact storage: trailing clusterings may be absent.
    Dense,
    /// Rows as materialized views write them: shadowable deletions, liveness that is expired from the start.
    View,
    /// Partitions with many rows and large values, so that they get a promoted index.
    Wide,
}

/// A column's name and what its cells can hold.
#[derive(Debug, Clone)]
pub(super) struct Values {
    pub(super) name: String,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone)]
pub(super) enum Kind {
    Simple(Vec<Hex>),
    /// Paths, and the values that a cell of each can have.
    MultiCell(Vec<(Hex, Vec<Hex>)>),
    Counter,
}

impl Table {
    pub(super) fn generate(rng: &mut Rng) -> Table {
        let shape = match rng.below(20) {
            0..=2 => Shape::Counter,
            3 => Shape::Dense,
            4 | 5 => Shape::View,
            6 => Shape::Wide,
            _ => Shape::Plain,
        };
        let clustering_columns = match shape {
            Shape::Dense => 2 + rng.below(2),
            Shape::Wide => 1 + rng.below(3),
            _ => *rng.pick(&[0, 1, 1, 1, 2, 2, 3, 4, 5]),
        };
        let mut clustering = Vec::new();
        let mut clusterings = Vec::new();
        for _ in 0..clustering_columns {
            let ty = Type::ordered(rng, 2);
            clustering.push(if rng.one_in(3) {
                ty.reversed()
            } else {
                ty.frozen()
            });
            let count = match shape {
                Shape::Wide => 12,
                _ if clustering_columns == 1 => 8,
                _ => 4,
            };
            clusterings.push(pool(rng, &ty, count));
        }
        let (partition, keys) = partition_keys(rng, shape);
        let mut statics = Vec::new();
        let mut regulars = Vec::new();
        if clustering_columns > 0 && shape != Shape::Dense && rng.one_in(2) {
            let count = if rng.one_in(15) { 66 } else { 1 + rng.below(4) };
            statics = columns(rng, "s", count, shape);
        }
        let count = match rng.below(20) {
            _ if shape == Shape::Dense => 1,
            0 if shape != Shape::Counter => 0,
            1 => 64 + rng.below(70),
            _ => 1 + rng.below(6),
        };
        regulars.extend(columns(rng, "r", count, shape));
        let described = |values: &[(Values, String)]| {
            let columns = values.iter().map(|(values, class)| Column {
                name: values.name.clone(),
                class: class.clone(),
            });
            columns.collect()
        };
        let mut flags = vec!["COMPOUND".to_owned()];
        match shape {
            Shape::Counter => flags.push("COUNTER".to_owned()),
            Shape::Dense => flags.push("DENSE".to_owned()),
            _ => {}
        }
        Table {
            schema: Schema {
                partition,
                clustering,
                statics: described(&statics),
                regular: described(&regulars),
                dropped: Vec::new(),
                flags,
                bloom_filter_fp_chance: *rng.pick(&[0.01, 0.01, 0.1, 0.001]),
                compression: Compression::new(),
            },
            keys,
            clusterings,
            statics: statics.into_iter().map(|(values, _)| values).collect(),
            regulars: regulars.into_iter().map(|(values, _)| values).collect(),
            shape,
        }
    }
}

/// Options of a compressor, or none.
pub(super) fn compression(rng: &mut Rng) -> Compression {
    let mut options = Compression::new();
    let class = *rng.pick(&[
        "",
        "LZ4Compressor",
        "LZ4Compressor",
        "LZ4Compressor",
        "SnappyCompressor",
        "DeflateCompressor",
        "ZstdCompressor",
        "NoopCompressor",
    ]);
    if class.is_empty() {
        options.insert("enabled".to_owned(), "false".to_owned());
        return options;
    }
    options.insert("class".to_owned(), class.to_owned());
    let kib = *rng.pick(&["4", "16", "16", "64"]);
    options.insert("chunk_length_in_kb".to_owned(), kib.to_owned());
    if rng.one_in(4) {
        options.insert("min_compress_ratio".to_owned(), "1.1".to_owned());
    }
    options
}

/// Different values of a type, zero bytes among them where it takes them.
fn pool(rng: &mut Rng, ty: &Type, count: u64) -> Vec<Hex> {
    let mut values: Vec<Hex> = (0..1 + rng.below(count))
        .map(|_| Hex(ty.value(rng)))
        .collect();
    if ty.takes_empty() && rng.one_in(3) {
        values.push(Hex(Vec::new()));
    }
    values.sort();
    values.dedup();
    values
}

fn partition_keys(rng: &mut Rng, shape: Shape) -> (Vec<String>, Vec<Hex>) {
    let parts: Vec<Type> = (0..*rng.pick(&[1, 1, 1, 2, 3]))
        .map(|_| Type::ordered(rng, 1))
        .collect();
    let count = match rng.below(30) {
        _ if shape == Shape::Wide => 2,
        0 => 300,
        1..=5 => 30,
        _ => 1 + rng.below(6),
    };
    let mut keys: Vec<Hex> = (0..count)
        .map(|_| {
            if parts.len() == 1 {
                return Hex(parts[0].value(rng));
            }
            let mut key = Vec::new();
            for part in &parts {
                let value = part.value(rng);
                key.extend(u16::try_from(value.len()).unwrap_or(u16::MAX).to_be_bytes());
                key.extend(value);
                key.push(0);
            }
            Hex(key)
        })
        .filter(|key| !key.0.is_empty())
        .collect();
    keys.sort();
    keys.dedup();
    if keys.is_empty() {
        // Only the type's one value is empty, which a key cannot be.
        return partition_keys(rng, shape);
    }
    (parts.iter().map(Type::frozen).collect(), keys)
}

fn columns(rng: &mut Rng, prefix: &str, count: u64, shape: Shape) -> Vec<(Values, String)> {
    let mut columns: Vec<(Values, String)> = Vec::new();
    for n in 0..count {
        // Columns are ordered by name, simple ones before multi-cell ones, whatever the order of their creation.
        let letter = *rng.pick(&["", "Z", "a", "m", "é", "_"]);
        let name = format!("{prefix}{letter}{n}");
        let (kind, class) = match shape {
            Shape::Counter => (
                Kind::Counter,
                "org.apache.cassandra.db.marshal.CounterColumnType".to_owned(),
            ),
            Shape::Wide if n == 0 => {
                let values = (0..3).map(|_| Hex(noise(rng))).collect();
                (Kind::Simple(values), Type::Native("BytesType").class())
            }
            Shape::Dense => simple(rng),
            _ if rng.one_in(3) => multi_cell(rng),
            _ => simple(rng),
        };
        columns.push((Values { name, kind }, class));
    }
    columns
}

fn simple(rng: &mut Rng) -> (Kind, String) {
    let ty = Type::cell(rng, 2);
    let mut values = pool(rng, &ty, 4);
    if ty == Type::Native("BytesType") && rng.one_in(8) {
        // Beyond what a short length and a chunk can hold.
        values.push(Hex(vec![0xab; 70_000]));
    }
    (Kind::Simple(values), ty.frozen())
}

fn multi_cell(rng: &mut Rng) -> (Kind, String) {
    let ty = Type::multi_cell(rng);
    let items = match &ty {
        Type::List(inner) => {
            let paths = pool(rng, &Type::Native("TimeUUIDType"), 5);
            let paths = paths.into_iter().filter(|path| path.0.len() == 16);
            paths.map(|path| (path, pool(rng, inner, 3))).collect()
        }
        Type::Set(inner) => {
            let paths = pool(rng, inner, 5).into_iter();
            paths.map(|path| (path, vec![Hex(Vec::new())])).collect()
        }
        Type::Map(key, value) => {
            let paths = pool(rng, key, 5).into_iter();
            paths.map(|path| (path, pool(rng, value, 3))).collect()
        }
        Type::Udt(_, fields) => (0_u16..)
            .zip(fields)
            .map(|(n, (_, field))| (Hex(n.to_be_bytes().to_vec()), pool(rng, field, 3)))
            .collect(),
        Type::Native(_) | Type::Tuple(_) | Type::Vector(..) => Vec::new(),
    };
    (Kind::MultiCell(items), ty.class())
}

/// Some KiB that do not compress.
fn noise(rng: &mut Rng) -> Vec<u8> {
    let length = 1000 + rng.size(4000);
    (0..length).map(|_| rng.next().to_be_bytes()[0]).collect()
}
