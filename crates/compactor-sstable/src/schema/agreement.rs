//! Agreement between an SSTable and a table's schema.
//!
//! A header keeps the types of the time it was written. Since then a UDT may have got additional fields and,
//! in old releases, a column may have got another type that reads the same bytes.
//!
//! Source: `SerializationHeader.Component.toHeader`, `AbstractType.isSerializationCompatibleWith`.

use std::collections::HashMap;

use crate::schema::{ColumnKind, DroppedColumn, Table};
use crate::statistics::header::{HeaderColumn, SerializationHeader};
use crate::types::CqlType;

/// Disagreement between schema and SSTable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{subject} is {schema} in the schema but {sstable} in the SSTable")]
pub struct Disagreement {
    /// Subject, such as a column or the partition key.
    pub subject: String,
    /// Value in the schema.
    pub schema: String,
    /// Value in the SSTable's header.
    pub sstable: String,
}

/// Value in the schema for a column that it does not have.
const UNKNOWN_COLUMN: &str = "neither a column of that kind nor a dropped one";

impl Disagreement {
    /// Whether the SSTable has a column that the schema does not: it may have been dropped.
    pub fn is_unknown_column(&self) -> bool {
        self.schema == UNKNOWN_COLUMN
    }
}

impl Table {
    /// Checks that an SSTable with this header can belong to this table: same key, each column exists or was
    /// dropped, and types that read the same bytes.
    ///
    /// Views are not checked, and for a table with compact storage only the partition key is: it has columns
    /// that CQL does not show.
    ///
    /// # Errors
    /// The first disagreement.
    pub fn check_header(&self, header: &SerializationHeader) -> Result<(), Disagreement> {
        if self.view_of.is_some() {
            return Ok(());
        }
        let check = |subject: String, schema: &CqlType, sstable: &CqlType, same: Same| {
            if agree(schema, sstable, same) {
                return Ok(());
            }
            disagree(subject, schema.cql_name(), sstable.cql_name())
        };
        if let Some(key) = self.partition_key_type() {
            let found = &header.key_type.cql_type;
            check("the partition key".to_owned(), &key, found, Same::Values)?;
        }
        if self.compact_storage {
            return Ok(());
        }
        let clustering = self.columns_of(ColumnKind::Clustering);
        if clustering.len() != header.clustering_types.len() {
            let (declared, found) = (clustering.len(), header.clustering_types.len());
            let subject = "the number of clustering columns";
            return disagree(subject, declared.to_string(), found.to_string());
        }
        for (column, found) in clustering.iter().zip(&header.clustering_types) {
            if let Some(declared) = &column.cql_type {
                let subject = format!("clustering column {:?}", column.name);
                check(subject, declared, &found.cql_type, Same::OrderOrDates)?;
            }
        }
        let dropped: HashMap<&[u8], &DroppedColumn> = self
            .dropped_columns
            .iter()
            .map(|dropped| (dropped.name.as_bytes(), dropped))
            .collect();
        for (kind, column_of_kind, found) in [
            (
                ColumnKind::Static,
                "a static column",
                &header.static_columns,
            ),
            (
                ColumnKind::Regular,
                "a regular column",
                &header.regular_columns,
            ),
        ] {
            let declared: HashMap<&[u8], _> = self
                .columns
                .iter()
                .filter(|column| column.kind == kind)
                .map(|column| (column.name.as_bytes(), column))
                .collect();
            for found in found {
                let found_type = &found.column_type.cql_type;
                match declared.get(&found.name[..]) {
                    Some(column) => match &column.cql_type {
                        Some(cql_type) => {
                            check(subject(found), cql_type, found_type, Same::Values)?;
                        }
                        None if column.is_multi_cell == found_type.is_multi_cell() => {}
                        None => {
                            let declared = frozen_or_not(column.is_multi_cell);
                            return disagree(subject(found), declared, found_type.cql_name());
                        }
                    },
                    // Any type is accepted: the cells are read with the header's.
                    None if dropped.contains_key(&found.name[..]) => {}
                    None => return disagree(subject(found), UNKNOWN_COLUMN, column_of_kind),
                }
            }
        }
        Ok(())
    }
}

fn disagree(
    subject: impl Into<String>,
    schema: impl Into<String>,
    sstable: impl Into<String>,
) -> Result<(), Disagreement> {
    Err(Disagreement {
        subject: subject.into(),
        schema: schema.into(),
        sstable: sstable.into(),
    })
}

fn subject(column: &HeaderColumn) -> String {
    format!("column {:?}", String::from_utf8_lossy(&column.name))
}

fn frozen_or_not(is_multi_cell: bool) -> &'static str {
    if is_multi_cell {
        "not frozen"
    } else {
        "frozen"
    }
}

/// Whether both types have the same order and serialization, except that one may have fields that the other does not
/// have yet, or be text where the other is blob.
pub fn are_alike(a: &CqlType, b: &CqlType) -> bool {
    has_order_of(a, b) || has_order_of(b, a)
}

/// Whether keys of both types have the same serialization; of their order that of tokens decides.
pub fn are_keys_alike(a: &CqlType, b: &CqlType) -> bool {
    agree(a, b, Same::OrderOrDates) || agree(b, a, Same::OrderOrDates)
}

/// Whether values of `a` may have fields that those of `b` do not have yet: it is the newer one. A type that only has
/// more parts is not, such as the tuple of a column that is blob since it was dropped and added again.
pub fn has_more_fields(a: &CqlType, b: &CqlType) -> bool {
    a.count() > b.count() && agree(a, b, Same::Values)
}

/// Whether `a` has all values of `b`, and others: more fields, or any bytes where `b` has text.
pub fn is_more_general(a: &CqlType, b: &CqlType) -> bool {
    let reads = |a, b| agree(a, b, Same::Values);
    has_more_fields(a, b) || (reads(a, b) && !reads(b, a))
}

/// Whether clusterings, or cells of a complex column, that were written as `sstable` are in the order of `schema`.
pub fn has_order_of(schema: &CqlType, sstable: &CqlType) -> bool {
    agree(schema, sstable, Same::Order)
}

/// Required agreement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Same {
    /// Values are read the same.
    Values,
    /// The same, and ordered the same, except for times before 1970: a schema in CQL names `TimestampType` and
    /// `DateType` alike, which order them differently.
    OrderOrDates,
    /// Values are read and ordered the same.
    Order,
}

/// Whether values written as `sstable` are read, and if required ordered, as those of `schema`.
fn agree(schema: &CqlType, sstable: &CqlType, same: Same) -> bool {
    schema.fixed_len() == sstable.fixed_len() && parts_agree(schema, sstable, same)
}

/// The same for a part of a value, which is stored with its length.
///
/// Source: `AbstractType.isSerializationCompatibleWith`, `TupleType.isValueCompatibleWithInternal`.
fn parts_agree(schema: &CqlType, sstable: &CqlType, same: Same) -> bool {
    use CqlType::{
        Ascii, Bytes, Composite, Int32, Integer, LegacyDate, LegacyTimeUuid, LexicalUuid, List,
        Long, Map, Reversed, Set, SimpleDate, Time, TimeUuid, Timestamp, Tuple, Udt, Utf8, Uuid,
        Vector,
    };
    let all_agree = |agree: fn(&CqlType, &CqlType, Same) -> bool| {
        let pairs = schema.parts().into_iter().zip(sstable.parts());
        // A complex column's cells are ordered by their paths: the elements of a set, the keys of a map.
        let is_path = |part| {
            let has_paths = matches!(schema, Set { .. } | Map { .. });
            part == 0 && has_paths && schema.is_multi_cell()
        };
        let mut pairs = pairs.zip(0..);
        pairs.all(|((a, b), part)| {
            let same = match same {
                Same::Values if is_path(part) => Same::OrderOrDates,
                _ if schema.is_multi_cell() && !is_path(part) => Same::Values,
                same => same,
            };
            agree(a, b, same)
        })
    };
    match (schema, sstable) {
        // One tuple may have fields that the other does not have yet: a schema may be as old as its snapshot.
        (Reversed(_), Reversed(_)) | (Tuple(_), Tuple(_)) => all_agree(parts_agree),
        // The same holds for UDTs.
        (List { .. }, List { .. })
        | (Set { .. }, Set { .. })
        | (Map { .. }, Map { .. })
        | (Udt(_), Udt(_)) => {
            schema.is_multi_cell() == sstable.is_multi_cell() && all_agree(parts_agree)
        }
        // A column that was dropped has tuples where it had frozen UDTs (`AbstractType.expandUserTypes`).
        (Tuple(_), Udt(udt)) | (Udt(udt), Tuple(_)) => !udt.multi_cell && all_agree(parts_agree),
        // A vector has no lengths of elements that have a fixed one.
        (Vector { dimension: m, .. }, Vector { dimension: n, .. }) => m == n && all_agree(agree),
        (Composite(a), Composite(b)) => a.len() == b.len() && all_agree(agree),
        (a, b) if a == b => true,
        (a, b) if a.is_multi_cell() || b.is_multi_cell() => false,
        (Utf8, Ascii) | (Bytes, Utf8 | Ascii) => true,
        (TimeUuid, LegacyTimeUuid) | (LegacyTimeUuid, TimeUuid) => true,
        (Timestamp, LegacyDate) | (LegacyDate, Timestamp) => same != Same::Order,
        _ if same != Same::Values => false,
        (Uuid, TimeUuid | LegacyTimeUuid | LexicalUuid)
        | (Long, Timestamp | LegacyDate)
        | (Timestamp | LegacyDate, Long)
        | (Integer, Int32 | Long)
        | (SimpleDate, Int32)
        | (Time, Long)
        | (Bytes, _) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Schema;
    use crate::statistics::HeaderType;
    use crate::statistics::header::EncodingStats;

    fn table(text: &str) -> Table {
        Schema::parse(text).unwrap().only_table().unwrap().clone()
    }

    fn header(
        key: &str,
        clustering: &[&str],
        statics: &[(&str, &str)],
        regular: &[(&str, &str)],
    ) -> SerializationHeader {
        let header_type = |text: &str| HeaderType::new(CqlType::parse(text).unwrap());
        let columns = |columns: &[(&str, &str)]| -> Vec<HeaderColumn> {
            columns
                .iter()
                .map(|(name, text)| HeaderColumn {
                    name: name.as_bytes().to_vec(),
                    column_type: header_type(text),
                })
                .collect()
        };
        SerializationHeader {
            encoding_stats: EncodingStats::default(),
            key_type: header_type(key),
            clustering_types: clustering.iter().map(|text| header_type(text)).collect(),
            static_columns: columns(statics),
            regular_columns: columns(regular),
        }
    }

    const TABLE: &str = "CREATE TYPE ks.u (a int, b text);
        CREATE TABLE ks.t (k int, c text, s int static, gone blob, v text, w u, x frozen<u>, b blob,
            PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY (c DESC);
        ALTER TABLE ks.t DROP gone USING TIMESTAMP 5;";

    fn check(
        key: &str,
        clustering: &[&str],
        statics: &[(&str, &str)],
        regular: &[(&str, &str)],
    ) -> Result<(), String> {
        table(TABLE)
            .check_header(&header(key, clustering, statics, regular))
            .map_err(|e| e.to_string())
    }

    const DESC: &[&str] = &["ReversedType(UTF8Type)"];

    #[test]
    fn what_has_changed_since_may_differ() {
        let grown = "UserType(ks,75,61:Int32Type,62:AsciiType,63:Int32Type)";
        let small = "FrozenType(UserType(ks,75,61:Int32Type))";
        let found = check(
            "Int32Type",
            DESC,
            &[("s", "Int32Type")],
            &[
                ("b", "DecimalType"),
                // A dropped column may have any type.
                ("gone", "Int32Type"),
                ("v", "AsciiType"),
                ("x", small),
                ("w", grown),
            ],
        );
        assert_eq!(found, Ok(()));
        assert_eq!(check("Int32Type", DESC, &[], &[]), Ok(()));
    }

    #[test]
    fn contradictions_name_what_and_both_sides() {
        for (key, clustering, statics, regular, expected) in [
            (
                "LongType",
                DESC,
                &[][..],
                &[][..],
                "the partition key is int in the schema but bigint",
            ),
            (
                "Int32Type",
                &[],
                &[],
                &[],
                "number of clustering columns is 1 in the schema but 0",
            ),
            (
                "Int32Type",
                &["UTF8Type"],
                &[],
                &[],
                "clustering column \"c\" is",
            ),
            (
                "Int32Type",
                DESC,
                &[("s", "FloatType")],
                &[],
                "column \"s\" is int in the schema but float",
            ),
            (
                "Int32Type",
                DESC,
                &[],
                &[("s", "Int32Type")],
                "column \"s\" is neither",
            ),
            (
                "Int32Type",
                DESC,
                &[],
                &[("new", "Int32Type")],
                "column \"new\" is neither",
            ),
            (
                "Int32Type",
                DESC,
                &[],
                &[("v", "BytesType")],
                "column \"v\" is text in the schema but blob",
            ),
            (
                "Int32Type",
                DESC,
                &[],
                &[("b", "Int32Type")],
                "column \"b\" is blob in the schema but int",
            ),
            (
                "Int32Type",
                DESC,
                &[],
                &[("w", "FrozenType(UserType(ks,75,61:Int32Type))")],
                "column \"w\"",
            ),
            (
                "Int32Type",
                DESC,
                &[],
                &[("x", "UserType(ks,75,61:Int32Type)")],
                "column \"x\"",
            ),
        ] {
            let found = check(key, clustering, statics, regular).unwrap_err();
            assert!(found.contains(expected), "{found}");
        }
    }

    #[test]
    fn types_that_the_text_forgot_and_columns_that_it_hides() {
        let forgotten = table("CREATE TABLE t (k int PRIMARY KEY, v \"Outer\")");
        let with = |text| header("Int32Type", &[], &[], &[("v", text)]);
        let udt = "UserType(ks,75,61:Int32Type)";
        assert!(forgotten.check_header(&with(udt)).is_ok());
        let frozen = format!("FrozenType({udt})");
        assert!(forgotten.check_header(&with(&frozen)).is_err());

        let compact = table("CREATE TABLE t (k int PRIMARY KEY, v int) WITH COMPACT STORAGE");
        let dense = header("Int32Type", &["UTF8Type"], &[("v", "Int32Type")], &[]);
        assert!(compact.check_header(&dense).is_ok());
        let other = header("UTF8Type", &[], &[], &[]);
        assert!(compact.check_header(&other).is_err());

        let view = table(
            "CREATE MATERIALIZED VIEW v AS SELECT * FROM t WHERE k IS NOT NULL PRIMARY KEY (k)",
        );
        assert!(view.check_header(&other).is_ok());
    }

    /// Cassandra accepts such a type for a column that was dropped.
    #[test]
    fn parts_of_another_length_are_read_but_cells_are_not() {
        let parse = |text: &str| CqlType::parse(text).unwrap();
        for (schema, sstable, are_read) in [
            ("TupleType(IntegerType)", "TupleType(Int32Type)", true),
            ("TupleType(BytesType)", "TupleType(BooleanType)", true),
            ("ListType(IntegerType)", "ListType(Int32Type)", true),
            (
                "FrozenType(ListType(TupleType(IntegerType)))",
                "FrozenType(ListType(TupleType(LongType)))",
                true,
            ),
            ("TupleType(Int32Type)", "TupleType(IntegerType)", false),
            ("IntegerType", "Int32Type", false),
            ("BytesType", "BooleanType", false),
            (
                "ReversedType(IntegerType)",
                "ReversedType(Int32Type)",
                false,
            ),
            (
                "CompositeType(BytesType)",
                "CompositeType(Int32Type)",
                false,
            ),
            // The order of paths is another one.
            (
                "SetType(TupleType(IntegerType))",
                "SetType(TupleType(Int32Type))",
                false,
            ),
            (
                "VectorType(IntegerType , 2)",
                "VectorType(Int32Type , 2)",
                false,
            ),
        ] {
            let found = agree(&parse(schema), &parse(sstable), Same::Values);
            assert_eq!(found, are_read, "{schema}");
        }
    }

    #[test]
    fn blob_is_more_general_than_types_of_more_parts() {
        let parse = |text: &str| CqlType::parse(text).unwrap();
        for (general, special) in [
            ("BytesType", "TupleType(Int32Type,UTF8Type)"),
            ("BytesType", "FrozenType(ListType(Int32Type))"),
            ("BytesType", "VectorType(UTF8Type , 2)"),
            (
                "ListType(BytesType)",
                "ListType(FrozenType(ListType(Int32Type)))",
            ),
            ("TupleType(Int32Type,Int32Type)", "TupleType(Int32Type)"),
            ("TupleType(BytesType)", "TupleType(TupleType(Int32Type))"),
        ] {
            let (general, special) = (parse(general), parse(special));
            assert!(is_more_general(&general, &special), "{general:?}");
            assert!(!is_more_general(&special, &general), "{special:?}");
            assert!(!has_more_fields(&special, &general), "{special:?}");
        }
    }

    /// CQL has one name for both, and only one of them has times before 1970 first.
    #[test]
    fn dates_are_timestamps_in_another_order() {
        let parse = |text: &str| CqlType::parse(text).unwrap();
        let table =
            table("CREATE TABLE ks.t (k int, c timestamp, s set<timestamp>, PRIMARY KEY (k, c));");
        let old = header(
            "Int32Type",
            &["DateType"],
            &[],
            &[("s", "SetType(DateType)")],
        );
        assert_eq!(table.check_header(&old), Ok(()));
        for (schema, sstable, is_same) in [
            ("TimestampType", "DateType", false),
            (
                "ReversedType(DateType)",
                "ReversedType(TimestampType)",
                false,
            ),
            ("SetType(TimestampType)", "SetType(DateType)", false),
            ("ListType(TimestampType)", "ListType(DateType)", true),
            (
                "MapType(TimestampType,Int32Type)",
                "MapType(DateType,Int32Type)",
                false,
            ),
            (
                "MapType(Int32Type,TimestampType)",
                "MapType(Int32Type,DateType)",
                true,
            ),
            ("UTF8Type", "AsciiType", true),
            (
                "SetType(TupleType(Int32Type))",
                "SetType(FrozenType(UserType(ks,75,61:Int32Type)))",
                true,
            ),
        ] {
            assert_eq!(
                has_order_of(&parse(schema), &parse(sstable)),
                is_same,
                "{schema}"
            );
        }
    }
}
