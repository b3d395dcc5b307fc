//! Declarations of columns and fields, and statements that add or drop them.

use super::*;

/// Cassandra refuses each of them (`CreateTableStatement`, `CreateTypeStatement`).
#[test]
fn keys_and_fields_are_declared_once() {
    for (text, expected) in [
        (
            "CREATE TABLE t (k int, c int, PRIMARY KEY (k, c, c));",
            "not in the key yet",
        ),
        (
            "CREATE TABLE t (k int, PRIMARY KEY ((k, k)));",
            "not in the key yet",
        ),
        ("CREATE TABLE t (k int static PRIMARY KEY);", "not static"),
        (
            "CREATE TABLE t (k int PRIMARY KEY, v int, PRIMARY KEY (v));",
            "one PRIMARY KEY",
        ),
        (
            "CREATE TYPE u (a int, b int, a text);",
            "a field that does not exist yet, found 'a text",
        ),
    ] {
        let message = message(text);
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn what_exists_is_not_added_if_it_must_not_exist() {
    let table = only(
        "CREATE TYPE ks.u (a int); ALTER TYPE ks.u ADD IF NOT EXISTS a text;
         CREATE TABLE ks.t (k int PRIMARY KEY, v u);
         ALTER TABLE ks.t ADD IF NOT EXISTS v int, w int;",
    );
    let regular = table.columns_of(ColumnKind::Regular);
    assert_eq!(regular[0].cql_type, cql_type("Int32Type"));
    let udt = cql_type("UserType(ks,75,61:Int32Type)");
    assert_eq!(regular[1].cql_type, udt);
}

/// Cassandra quotes only reserved words (`ReservedKeywords`).
#[test]
fn a_dropped_column_may_have_the_name_of_a_keyword() {
    let table = only(
        "CREATE TABLE ks.t (k int PRIMARY KEY, compact int, storage int);
         ALTER TABLE ks.t DROP compact USING TIMESTAMP 5;",
    );
    let times = table.drop_times_micros();
    assert_eq!(times.into_iter().collect::<Vec<_>>(), [("compact", 5)]);
    assert_eq!(
        columns(&table, ColumnKind::Regular),
        pairs(&[("storage", "int")])
    );
}

/// Cassandra describes a table with compact storage in a comment, but not its indexes (`SchemaCQLHelper`).
#[test]
fn indexes_of_other_tables_are_skipped() {
    let table = only(
        "/* CREATE TABLE ks.compact (k int PRIMARY KEY, v int) WITH COMPACT STORAGE; */
         CREATE INDEX IF NOT EXISTS compact_v_idx ON ks.compact (v) USING 'legacy_local_table';
         CREATE TABLE ks.t (k int PRIMARY KEY, v int); CREATE INDEX t_v_idx ON ks.t (v);
         DROP INDEX ks.compact_v_idx;",
    );
    assert_eq!((table.name.as_str(), table.indexes), ("t", 1));
}

/// Also if its time is earlier: that is the record that Cassandra keeps (`TableMetadata.Builder.recordColumnDrop`).
#[test]
fn the_last_drop_of_a_column_counts() {
    let times = |drops: &str| {
        let text = format!("CREATE TABLE t (k int PRIMARY KEY, a text, b text); {drops}");
        let table = only(&text);
        let dropped = table.dropped_columns.iter();
        let dropped = dropped.map(|column| (column.name.clone(), column.dropped_at_micros));
        dropped.collect::<Vec<_>>()
    };
    let again = |first: &str, last: &str| {
        times(&format!(
            "ALTER TABLE t DROP b{first}; ALTER TABLE t ADD b text; ALTER TABLE t DROP b{last};"
        ))
    };
    let of_b = |time: Option<i64>| vec![("b".to_owned(), time)];
    let (early, late) = (" USING TIMESTAMP 10", " USING TIMESTAMP 30");
    assert_eq!(again(late, early), of_b(Some(10)));
    assert_eq!(again("", early), of_b(Some(10)));
    assert_eq!(again(late, ""), of_b(None));
    // Nothing is dropped by the second statement.
    let twice = times("ALTER TABLE t DROP b USING TIMESTAMP 30; ALTER TABLE t DROP IF EXISTS b;");
    assert_eq!(twice, of_b(Some(30)));
}

#[test]
fn options_of_a_view_are_altered() {
    let view = only(
        "CREATE MATERIALIZED VIEW v AS SELECT * FROM t WHERE k IS NOT NULL PRIMARY KEY (k) WITH gc_grace_seconds = 7;
         ALTER MATERIALIZED VIEW IF EXISTS v WITH gc_grace_seconds = 864000;",
    );
    assert_eq!(view.options.gc_grace_seconds, Some(864_000));
}

#[test]
fn the_order_of_the_last_clustering_columns_may_be_missing() {
    let table = only(
        "CREATE TABLE t (k int, c int, d int, PRIMARY KEY (k, c, d)) WITH CLUSTERING ORDER BY (c DESC)",
    );
    let clustering = table.columns_of(ColumnKind::Clustering);
    assert_eq!(clustering[0].cql_type, cql_type("ReversedType(Int32Type)"));
    assert_eq!(clustering[1].cql_type, cql_type("Int32Type"));
}
