//! Union of the inputs' headers, and the mapping of each input's columns to it.
//!
//! The columns of the output are the union of the inputs' columns. If inputs have different types for a
//! column or clustering, the newest input's is taken, provided that values have the same serialization.
//!
//! Source: `SerializationHeader.make`.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use compactor_sstable::data::clustering::ClusteringComparator;
use compactor_sstable::data::layout::{
    ColumnLayout, Layout, TimestampDeltas, check_column_order, column_order,
};
use compactor_sstable::data::stated_extremes::StatedExtremes;
use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::schema::agreement::{
    are_alike, are_keys_alike, has_more_fields, has_order_of, is_more_general,
};
use compactor_sstable::schema::{Column, ColumnKind, Table};
use compactor_sstable::statistics::HeaderType;
use compactor_sstable::statistics::header::{EncodingStats, HeaderColumn, SerializationHeader};
use compactor_sstable::types::CqlType;
use compactor_sstable::{Component, Error as FormatError, Version};

use crate::error::{Error, Result};
use crate::input::by_kind::ByKind;

/// An input of the union.
#[derive(Clone, Copy, Debug)]
pub struct HeaderSource<'a> {
    /// Its name, for messages.
    pub descriptor: &'a Descriptor,
    /// Its header.
    pub header: &'a SerializationHeader,
}

impl HeaderSource<'_> {
    /// Path of its `Statistics.db`.
    pub fn path(&self) -> PathBuf {
        self.descriptor.path(Component::Statistics)
    }
}

/// Index of each column of an input in the output header.
pub type ColumnMap = ByKind<u32>;

/// Returns the decoding layout of an SSTable.
///
/// # Errors
/// Corruption if columns are not in header order; unsupported types.
pub fn layout_of(header: &SerializationHeader, version: Version) -> Result<Layout, FormatError> {
    let columns = |columns: &[HeaderColumn]| -> Result<Vec<ColumnLayout>, FormatError> {
        let columns = columns
            .iter()
            .map(|c| ColumnLayout::new(c.name.clone(), c.column_type.cql_type.clone()))
            .collect::<Result<Vec<_>, _>>()?;
        check_column_order(&columns)?;
        Ok(columns)
    };
    let clustering: Vec<_> = header
        .clustering_types
        .iter()
        .map(|t| t.cql_type.clone())
        .collect();
    Ok(Layout {
        version,
        min_timestamp: header.encoding_stats.min_timestamp,
        timestamp_deltas: TimestampDeltas::ANY,
        stated: StatedExtremes::ANY,
        min_local_deletion_time: header.encoding_stats.min_local_deletion_time,
        min_ttl: header.encoding_stats.min_ttl,
        clustering: ClusteringComparator::new(&clustering)?,
        static_columns: columns(&header.static_columns)?,
        regular_columns: columns(&header.regular_columns)?,
    })
}

/// Builds the output header. `sources` are ordered newest first.
///
/// # Errors
/// Refused if the inputs cannot belong to one table: different partition keys or numbers of clustering
/// columns, or a column that is static in one and regular in another, simple in one and complex in another,
/// or has differently framed values.
pub fn union(
    sources: &[HeaderSource<'_>],
    encoding_stats: EncodingStats,
) -> Result<SerializationHeader> {
    let Some(newest) = sources.first() else {
        return Err(Error::InvalidInput("no SSTables to merge".to_owned()));
    };
    let mut key_type = &newest.header.key_type;
    let mut clustering_types: Vec<_> = newest.header.clustering_types.iter().collect();
    for source in sources {
        same_table(newest, source)?;
        key_type = newer_type(key_type, &source.header.key_type);
        let of_source = source.header.clustering_types.iter();
        for (known, of_source) in clustering_types.iter_mut().zip(of_source) {
            *known = newer_type(known, of_source);
        }
    }
    Ok(SerializationHeader {
        encoding_stats,
        key_type: key_type.clone(),
        clustering_types: clustering_types.into_iter().cloned().collect(),
        static_columns: union_columns(sources, |h| &h.static_columns)?,
        regular_columns: union_columns(sources, |h| &h.regular_columns)?,
    })
}

/// The type that is more general, otherwise the first: an SSTable with an old type may be the newest one, such as the
/// output of a merge, and by that type values that differ only in a new field would be the same.
fn newer_type<'a>(known: &'a HeaderType, other: &'a HeaderType) -> &'a HeaderType {
    if is_more_general(&other.cql_type, &known.cql_type) {
        other
    } else {
        known
    }
}

/// Validates a source against the table's schema.
///
/// # Errors
/// Invalid input, naming the first disagreement between schema and header.
pub fn check_schema(table: &Table, source: &HeaderSource<'_>) -> Result<()> {
    table.check_header(source.header).map_err(|disagreement| {
        let name = match &table.keyspace {
            Some(keyspace) => format!("{keyspace}.{}", table.name),
            None => table.name.clone(),
        };
        let dropped = if disagreement.is_unknown_column() {
            ". If it was dropped, take the schema from `DESCRIBE TABLE ... WITH INTERNALS` or from the \
             schema.cql of a snapshot: DESCRIBE TABLE without it omits dropped columns"
        } else {
            ""
        };
        Error::InvalidInput(format!(
            "{} is not of table {name} as the schema has it: {disagreement}. Pass the current \
             schema.cql of this table by --schema{dropped}",
            source.path().display()
        ))
    })
}

/// Sets the types of a header's columns to those in the current schema, or to those they had when they were
/// dropped, as a compacting node does. A dropped column keeps its type if its values would otherwise be
/// decoded differently, and what is ordered by its type keeps one that has another order. So does what has user types
/// where the schema does not name their keyspace.
pub fn types_of_schema(table: &Table, header: &mut SerializationHeader) {
    type IsOrderedAs = fn(&CqlType, &CqlType) -> bool;
    let set = |header_type: &mut HeaderType, cql_type: &Option<CqlType>, is_like: IsOrderedAs| {
        if let Some(cql_type) = cql_type
            && header_type.cql_type != *cql_type
            && is_like(cql_type, &header_type.cql_type)
            // The schema may be older than the SSTable.
            && !has_more_fields(&header_type.cql_type, cql_type)
            && !cql_type.lacks_keyspace()
        {
            *header_type = HeaderType::new(cql_type.clone());
        }
    };
    if table.view_of.is_some() || table.compact_storage {
        return;
    }
    set(&mut header.key_type, &table.partition_key_type(), |_, _| {
        true
    });
    let clustering = table.columns_of(ColumnKind::Clustering);
    for (header_type, column) in header.clustering_types.iter_mut().zip(clustering) {
        set(header_type, &column.cql_type, has_order_of);
    }
    let dropped: HashMap<&[u8], &CqlType> = table
        .dropped_columns
        .iter()
        .filter_map(|column| Some((column.name.as_bytes(), column.cql_type.as_ref()?)))
        .collect();
    for (kind, columns) in [
        (ColumnKind::Static, &mut header.static_columns),
        (ColumnKind::Regular, &mut header.regular_columns),
    ] {
        let declared: HashMap<&[u8], &Column> = table
            .columns
            .iter()
            .filter(|column| column.kind == kind)
            .map(|column| (column.name.as_bytes(), column))
            .collect();
        for column in columns {
            if let Some(declared) = declared.get(&column.name[..]) {
                set(
                    &mut column.column_type,
                    &declared.cql_type,
                    have_paths_alike,
                );
            } else if let Some(dropped) = dropped.get(&column.name[..])
                && dropped.is_multi_cell() == column.column_type.cql_type.is_multi_cell()
                && dropped.fixed_len() == column.column_type.cql_type.fixed_len()
            {
                let dropped = Some((*dropped).clone());
                set(&mut column.column_type, &dropped, have_paths_alike);
            }
        }
    }
}

/// Maps an input's columns to the output's.
///
/// # Errors
/// Internal if the output is not a union that includes the input.
pub fn column_map(input: &Layout, output: &Layout) -> Result<ColumnMap> {
    let map = |input: &[ColumnLayout], output: &[ColumnLayout]| -> Result<Vec<u32>> {
        let indexes: HashMap<&[u8], u32> = output
            .iter()
            .map(|column| &column.name[..])
            .zip(0..)
            .collect();
        let columns = input
            .iter()
            .map(|column| indexes.get(&column.name[..]).copied());
        let map: Option<Vec<u32>> = columns.collect();
        map.ok_or_else(|| Error::internal("a column is not in the union"))
    };
    Ok(ColumnMap {
        static_columns: map(&input.static_columns, &output.static_columns)?,
        regular_columns: map(&input.regular_columns, &output.regular_columns)?,
    })
}

fn same_table(newest: &HeaderSource<'_>, source: &HeaderSource<'_>) -> Result<()> {
    let differ = |what: &str, a: String, b: String| {
        Err(Error::InvalidInput(format!(
            "these SSTables are not of one table: {what} is {a} in {} and {b} in {}",
            newest.path().display(),
            source.path().display()
        )))
    };
    let (a, b) = (newest.header, source.header);
    if !are_keys_alike(&a.key_type.cql_type, &b.key_type.cql_type) {
        let (a, b) = distinct_names(&a.key_type.cql_type, &b.key_type.cql_type);
        return differ("the partition key type", a, b);
    }
    if a.clustering_types.len() != b.clustering_types.len() {
        return differ(
            "the number of clustering columns",
            a.clustering_types.len().to_string(),
            b.clustering_types.len().to_string(),
        );
    }
    for (index, (x, y)) in a
        .clustering_types
        .iter()
        .zip(&b.clustering_types)
        .enumerate()
    {
        let (x, y) = (&x.cql_type, &y.cql_type);
        if !are_alike(x, y) {
            let (a, b) = distinct_names(x, y);
            return differ(
                &format!("the type of clustering column {}", index + 1),
                a,
                b,
            );
        }
    }
    for (statics, regulars) in [(newest, source), (source, newest)] {
        for column in &statics.header.static_columns {
            if regulars
                .header
                .regular_columns
                .iter()
                .any(|c| c.name == column.name)
            {
                return differ(
                    &format!("column {:?}", String::from_utf8_lossy(&column.name)),
                    "static".to_owned(),
                    "regular".to_owned(),
                );
            }
        }
    }
    Ok(())
}

fn union_columns(
    sources: &[HeaderSource<'_>],
    columns: impl Fn(&SerializationHeader) -> &Vec<HeaderColumn>,
) -> Result<Vec<HeaderColumn>> {
    let mut union = BTreeMap::new();
    let mut is_complex: BTreeMap<Vec<u8>, bool> = BTreeMap::new();
    let mut before = None;
    for source in sources {
        let columns = columns(source.header);
        // Of thousands of SSTables, nearly all have the columns of the one before.
        if before.replace(columns) == Some(columns) {
            continue;
        }
        for column in columns {
            let layout = column_layout(column, source)?;
            let complex = *is_complex
                .entry(column.name.clone())
                .or_insert(layout.is_complex);
            let key = column_order(complex, column.name.clone());
            let Some((newest, of_newest)) = union.get_mut(&key) else {
                union.insert(key, (column.clone(), source));
                continue;
            };
            let known = column_layout(newest, of_newest)?;
            if known.is_complex != layout.is_complex
                || known.is_counter != layout.is_counter
                || (!known.is_complex && known.fixed_len != layout.fixed_len)
                || !have_paths_alike(&known.cql_type, &layout.cql_type)
            {
                let (a, b) = distinct_names(&known.cql_type, &layout.cql_type);
                return Err(Error::InvalidInput(format!(
                    "column {:?} is {a} in {} but {b} in {}, whose values are stored or ordered \
                     differently; bring them to one type with the node that owns them first",
                    String::from_utf8_lossy(&column.name),
                    of_newest.path().display(),
                    source.path().display()
                )));
            }
            if is_more_general(&layout.cql_type, &known.cql_type) {
                newest.column_type = column.column_type.clone();
                *of_newest = source;
            }
        }
    }
    Ok(union.into_values().map(|(column, _)| column).collect())
}

/// Names of two types in CQL, or of their classes if these are the same in CQL.
fn distinct_names(a: &CqlType, b: &CqlType) -> (String, String) {
    let names = (a.cql_name(), b.cql_name());
    if names.0 != names.1 {
        names
    } else {
        (a.class_string(), b.class_string())
    }
}

/// Whether cells of complex columns are in the same order.
fn have_paths_alike(a: &CqlType, b: &CqlType) -> bool {
    let paths = a.path_type().zip(b.path_type());
    paths.is_none_or(|(a, b)| are_alike(a, b))
}

fn column_layout(column: &HeaderColumn, source: &HeaderSource<'_>) -> Result<ColumnLayout> {
    ColumnLayout::new(column.name.clone(), column.column_type.cql_type.clone())
        .map_err(Error::format(source.descriptor, Component::Statistics))
}

#[cfg(test)]
mod tests {
    use compactor_sstable::Version;
    use compactor_sstable::schema::Schema;
    use compactor_sstable::sstable_id::SstableId;

    use super::*;

    /// Returns the types of the partition key, the clustering column and a regular column of the union, newest first.
    fn union_of(types: &[[&str; 3]]) -> Result<[String; 3]> {
        let header_type = |text: &str| HeaderType::new(CqlType::parse(text).unwrap());
        let headers = types
            .iter()
            .map(|[key, clustering, regular]| SerializationHeader {
                encoding_stats: EncodingStats::default(),
                key_type: header_type(key),
                clustering_types: vec![header_type(clustering)],
                static_columns: Vec::new(),
                regular_columns: vec![HeaderColumn {
                    name: b"v".to_vec(),
                    column_type: header_type(regular),
                }],
            });
        let headers: Vec<_> = headers.collect();
        let descriptor = Descriptor::new("table", Version::Oa, SstableId::Sequence(1));
        let sources = headers.iter().map(|header| HeaderSource {
            descriptor: &descriptor,
            header,
        });
        let union = union(&sources.collect::<Vec<_>>(), EncodingStats::default())?;
        let name = |header_type: &HeaderType| {
            let name = header_type.cql_type.class_string();
            name.replace("org.apache.cassandra.db.marshal.", "")
        };
        Ok([
            name(&union.key_type),
            name(&union.clustering_types[0]),
            name(&union.regular_columns[0].column_type),
        ])
    }

    /// The newest SSTable may be the output of a merge of old ones.
    #[test]
    fn the_more_general_type_is_kept() {
        let old = "FrozenType(UserType(ks,75,61:Int32Type))";
        let new = "FrozenType(UserType(ks,75,61:Int32Type,62:Int32Type))";
        let (old_set, new_set) = (format!("SetType({old})"), format!("SetType({new})"));
        for order in [[0, 1], [1, 0]] {
            let types = [[old, old, &old_set], [new, new, &new_set]];
            let union = union_of(&order.map(|index| types[index])).unwrap();
            assert_eq!(union, [new, new, &new_set]);
            let types = [["AsciiType"; 3], ["BytesType", "UTF8Type", "BytesType"]];
            let union = union_of(&order.map(|index| types[index])).unwrap();
            assert_eq!(union, types[1]);
            // A column that was dropped and added again.
            for (old, new) in [
                ("TupleType(Int32Type,UTF8Type)", "BytesType"),
                ("FrozenType(ListType(Int32Type))", "BytesType"),
                ("TupleType(Int32Type)", "TupleType(IntegerType)"),
                (
                    "MapType(Int32Type,TupleType(Int32Type))",
                    "MapType(Int32Type,BytesType)",
                ),
            ] {
                let types = [
                    ["Int32Type", "Int32Type", old],
                    ["Int32Type", "Int32Type", new],
                ];
                let union = union_of(&order.map(|index| types[index])).unwrap();
                assert_eq!(union, types[1]);
            }
        }
    }

    #[test]
    fn types_of_the_schema_are_set_unless_the_keyspace_of_a_user_type_would_be_lost() {
        let with_regular = |regular: &str| SerializationHeader {
            encoding_stats: EncodingStats::default(),
            key_type: HeaderType::new(CqlType::Int32),
            clustering_types: Vec::new(),
            static_columns: Vec::new(),
            regular_columns: vec![HeaderColumn {
                name: b"v".to_vec(),
                column_type: HeaderType::new(CqlType::parse(regular).unwrap()),
            }],
        };
        let old = "FrozenType(UserType(ks,75,61:AsciiType))";
        let new = "FrozenType(UserType(ks,75,61:UTF8Type))";
        for (schema, sstable, expected) in [
            (
                "CREATE TYPE ks.u (a text); CREATE TABLE ks.t (k int PRIMARY KEY, v frozen<u>)",
                old,
                new,
            ),
            (
                "CREATE TYPE u (a text); CREATE TABLE t (k int PRIMARY KEY, v frozen<u>)",
                old,
                old,
            ),
            (
                "CREATE TABLE t (k int PRIMARY KEY, v blob)",
                "TupleType(Int32Type,Int32Type)",
                "BytesType",
            ),
        ] {
            let schema = Schema::parse(schema).unwrap();
            let table = schema.only_table().unwrap();
            let mut header = with_regular(sstable);
            table.check_header(&header).unwrap();
            types_of_schema(table, &mut header);
            assert_eq!(header, with_regular(expected));
        }
    }

    #[test]
    fn other_orders_of_clusterings_and_cells_are_refused() {
        let sound = ["Int32Type", "TimeUUIDType", "SetType(UTF8Type)"];
        union_of(&[
            sound,
            ["Int32Type", "LegacyTimeUUIDType", "SetType(AsciiType)"],
        ])
        .unwrap();
        for [key, clustering, regular] in [
            ["LongType", "TimeUUIDType", "SetType(UTF8Type)"],
            ["Int32Type", "LexicalUUIDType", "SetType(UTF8Type)"],
            ["Int32Type", "TimeUUIDType", "SetType(Int32Type)"],
        ] {
            union_of(&[sound, [key, clustering, regular]]).unwrap_err();
        }
        let of_key = |key| [key, "TimeUUIDType", "SetType(UTF8Type)"];
        union_of(&[of_key("DateType"), of_key("TimestampType")]).unwrap();
        let dates = ["Int32Type", "Int32Type", "MapType(DateType,Int32Type)"];
        let times = ["Int32Type", "Int32Type", "MapType(TimestampType,Int32Type)"];
        union_of(&[dates, times]).unwrap_err();
    }
}
