//! A random table, with the few values of each column that its mutations will use, so that they meet.

use super::plan::{Column, Compression, Dropped, Hex, Schema};
use super::types::Type;
use compactor_testkit::Random;

/// A table and its values.
#[derive(Debug, Clone)]
pub(super) struct Table {
    pub(super) schema: Schema,
    /// Serialized partition keys.
    pub(super) keys: Vec<Hex>,
    /// Values of each clustering column.
    pub(super) clusterings: Vec<Vec<Hex>>,
    pub(super) statics: Vec<Values>,
    pub(super) regulars: Vec<Values>,
    pub(super) shape: Shape,
}

/// Special features of a table.
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

/// A column's name and the possible values of its cells.
#[derive(Debug, Clone)]
pub(super) struct Values {
    pub(super) name: String,
    pub(super) kind: Kind,
    /// Class name of the type.
    class: String,
    /// Class name and possible values before the type got its last field.
    older: Option<(String, Kind)>,
}

#[derive(Debug, Clone)]
pub(super) enum Kind {
    Simple(Vec<Hex>),
    /// Paths, and the values that a cell of each can have.
    MultiCell(Vec<(Hex, Vec<Hex>)>),
    Counter,
    /// Paths of a map of counters, as super column families have.
    Counters(Vec<Hex>),
}

impl Table {
    pub(super) fn generate(rng: &mut Random) -> Table {
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
            // Headers of clusterings come in groups of 32.
            _ if rng.one_in(60) => 34,
            _ => *rng.pick(&[0, 1, 1, 1, 2, 2, 3, 4, 5]),
        };
        let mut clustering = Vec::new();
        let mut clusterings = Vec::new();
        for _ in 0..clustering_columns {
            let depth = if clustering_columns > 5 { 0 } else { 2 };
            let ty = Type::ordered(rng, depth);
            clustering.push(if rng.one_in(3) {
                ty.reversed()
            } else {
                ty.frozen()
            });
            let count = match shape {
                Shape::Wide => 12,
                // Enough for adjacent rows, several of which are found at a time.
                _ if clustering_columns == 1 && rng.one_in(3) => 80,
                _ if clustering_columns == 1 => 8,
                _ if clustering_columns > 5 => 1,
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
        if shape == Shape::Counter && rng.one_in(3) {
            statics.clear();
            regulars = vec![counter_map(rng)];
        }
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
                statics: describe(&statics),
                regular: describe(&regulars),
                dropped: Vec::new(),
                flags,
                bloom_filter_fp_chance: *rng.pick(&[0.01, 0.01, 0.1, 0.001]),
                compression: Compression::new(),
            },
            keys,
            clusterings,
            statics,
            regulars,
            shape,
        }
    }

    /// Whether partitions can be large enough for an index.
    pub(super) fn has_large_partitions(&self) -> bool {
        let longest = |values: &[Hex]| values.iter().map(|value| value.0.len()).max().unwrap_or(0);
        // Flags, times and lengths of a cell.
        let around = 20;
        let of_cells = |column: &Values| match &column.kind {
            Kind::Simple(values) => around + longest(values),
            Kind::MultiCell(items) => items
                .iter()
                .map(|(path, values)| around + path.0.len() + longest(values))
                .sum(),
            Kind::Counter | Kind::Counters(_) => 0,
        };
        let of_row = self.regulars.iter().chain(&self.statics).map(of_cells);
        let of_clustering = self.clusterings.iter().map(|pool| longest(pool));
        let row = around + of_row.chain(of_clustering).sum::<usize>();
        let rows: usize = self.clusterings.iter().map(Vec::len).product();
        self.regulars.len() > 20 || rows.saturating_mul(row) >= 4000
    }

    /// Whether a schema.cql can describe the table: not if it is compact, has a map of counters, or a `DateType`, since
    /// timestamp in CQL means `TimestampType`.
    pub(super) fn has_cql(&self) -> bool {
        let schema = &self.schema;
        let columns = schema.statics.iter().chain(&schema.regular);
        let mut classes = columns
            .map(|column| &column.class)
            .chain(schema.partition.iter().chain(&schema.clustering));
        let is_map = |column: &Values| matches!(column.kind, Kind::Counters(_));
        self.shape != Shape::Dense
            && !self.regulars.iter().any(is_map)
            && !classes.any(|class| class.contains(".DateType"))
    }

    /// Whether some user type has grown a field.
    pub(super) fn has_grown(&self) -> bool {
        let mut columns = self.statics.iter().chain(&self.regulars);
        columns.any(|column| column.older.is_some())
    }

    /// The table before its user types grew.
    pub(super) fn older(&self) -> Table {
        let mut older = self.clone();
        for column in older.statics.iter_mut().chain(&mut older.regulars) {
            if let Some((class, kind)) = column.older.take() {
                (column.class, column.kind) = (class, kind);
            }
        }
        older.schema.statics = describe(&older.statics);
        older.schema.regular = describe(&older.regulars);
        older
    }

    /// The schema after some columns were dropped, and some of these added again.
    ///
    /// A column that is not added again keeps what was written with later timestamps. Cassandra fails on that where it
    /// leaves no multi-cell or no static column in the table, so those are dropped for good; multi-cell user types it
    /// does not drop at all.
    pub(super) fn after_drops(&self, rng: &mut Random, moments: &[i64]) -> Schema {
        let mut schema = self.schema.clone();
        let mut remaining = Vec::new();
        for (is_static, columns) in [(true, &self.statics), (false, &self.regulars)] {
            for column in columns {
                let is_multi_cell = matches!(column.kind, Kind::MultiCell(_));
                let user_type = "org.apache.cassandra.db.marshal.UserType(";
                let is_user_type = column.class.starts_with(user_type);
                if (is_multi_cell && is_user_type) || !rng.one_in(3) {
                    remaining.push(column.name.clone());
                    continue;
                }
                let is_back = rng.one_in(3);
                if is_back {
                    remaining.push(column.name.clone());
                }
                let for_good = (is_static || is_multi_cell) && !is_back;
                schema.dropped.push(Dropped {
                    name: column.name.clone(),
                    class: column.class.clone(),
                    is_static,
                    dropped_at: if for_good {
                        i64::MAX
                    } else {
                        *rng.pick(moments)
                    },
                });
            }
        }
        let remains = |column: &Column| remaining.contains(&column.name);
        schema.statics.retain(remains);
        schema.regular.retain(remains);
        schema
    }
}

fn describe(values: &[Values]) -> Vec<Column> {
    let columns = values.iter().map(|values| Column {
        name: values.name.clone(),
        class: values.class.clone(),
    });
    columns.collect()
}

/// Options of a compressor, or none.
pub(super) fn compression(rng: &mut Random) -> Compression {
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
    // Most tables have less than 16 KiB.
    let kib = *rng.pick(&["1", "1", "4", "16", "64"]);
    options.insert("chunk_length_in_kb".to_owned(), kib.to_owned());
    if rng.one_in(4) {
        options.insert("min_compress_ratio".to_owned(), "1.1".to_owned());
    }
    options
}

/// Distinct values of a type, the empty one among them if the type allows it.
fn pool(rng: &mut Random, ty: &Type, count: u64) -> Vec<Hex> {
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

fn partition_keys(rng: &mut Random, shape: Shape) -> (Vec<String>, Vec<Hex>) {
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
        // The type's only value is empty, which a key cannot be.
        return partition_keys(rng, shape);
    }
    (parts.iter().map(Type::frozen).collect(), keys)
}

fn columns(rng: &mut Random, prefix: &str, count: u64, shape: Shape) -> Vec<Values> {
    let mut columns = Vec::new();
    for n in 0..count {
        // Columns are ordered by name, simple ones before multi-cell ones, whatever the order of their creation.
        let letter = *rng.pick(&["", "Z", "a", "m", "é", "_"]);
        let mut older = None;
        let (class, kind) = match shape {
            Shape::Counter => (Type::Native("CounterColumnType").class(), Kind::Counter),
            Shape::Wide if n == 0 => {
                let values = (0..3).map(|_| Hex(noise(rng))).collect();
                (Type::Native("BytesType").class(), Kind::Simple(values))
            }
            _ => {
                let is_multi_cell = shape != Shape::Dense && rng.one_in(3);
                let (ty, values): (_, fn(&mut Random, &Type) -> _) = if is_multi_cell {
                    (Type::multi_cell(rng), multi_cell)
                } else {
                    (Type::cell(rng, 2), simple)
                };
                if rng.one_in(3) {
                    older = ty.shorter().map(|ty| values(rng, &ty));
                }
                values(rng, &ty)
            }
        };
        let is_multi_cell = matches!(kind, Kind::MultiCell(_));
        let name = match letter {
            // A name whose first byte is not ASCII precedes the others. Cassandra takes a multi-cell column of such a
            // name for a simple one (`Columns.findFirstComplexIdx`), and its own compaction may fail.
            "é" if !is_multi_cell => format!("{letter}{prefix}{n}"),
            _ => format!("{prefix}{letter}{n}"),
        };
        columns.push(Values {
            name,
            kind,
            class,
            older,
        });
    }
    columns
}

/// The only column of a super column family of counters.
fn counter_map(rng: &mut Random) -> Values {
    let class = *rng.pick(&["UTF8Type", "LongType"]);
    let key = Type::Native(class);
    let counter = Type::Native("CounterColumnType");
    let kind = Kind::Counters(pool(rng, &key, 5));
    Values {
        name: String::new(),
        kind,
        class: Type::Map(Box::new(key), Box::new(counter)).class(),
        older: None,
    }
}

fn simple(rng: &mut Random, ty: &Type) -> (String, Kind) {
    let mut values = pool(rng, ty, 4);
    if *ty == Type::Native("BytesType") && rng.one_in(8) {
        // Longer than a short length and a chunk can hold.
        values.push(Hex(vec![0xab; 70_000]));
    }
    (ty.frozen(), Kind::Simple(values))
}

fn multi_cell(rng: &mut Random, ty: &Type) -> (String, Kind) {
    let items = match ty {
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
    (ty.class(), Kind::MultiCell(items))
}

/// Some KiB that do not compress.
fn noise(rng: &mut Random) -> Vec<u8> {
    let length = 1000 + rng.index(4000);
    (0..length).map(|_| rng.number().to_be_bytes()[0]).collect()
}
