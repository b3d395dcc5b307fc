mod declarations;
mod errors;

use super::*;

fn parse(text: &str) -> Schema {
    Schema::parse(text).unwrap()
}

fn only(text: &str) -> Table {
    parse(text).only_table().unwrap().clone()
}

fn message(text: &str) -> String {
    Schema::parse(text).unwrap_err().to_string()
}

fn cql_type(text: &str) -> Option<CqlType> {
    Some(CqlType::parse(text).unwrap())
}

/// Name and type of each column of a kind.
fn columns(table: &Table, kind: ColumnKind) -> Vec<(String, String)> {
    table
        .columns_of(kind)
        .into_iter()
        .map(|c| {
            (
                c.name.clone(),
                c.cql_type
                    .as_ref()
                    .map_or("?".to_owned(), CqlType::cql_name),
            )
        })
        .collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected
        .iter()
        .map(|(name, cql)| ((*name).to_owned(), (*cql).to_owned()))
        .collect()
}

#[test]
fn every_clause_that_cassandra_writes() {
    let table = only(include_str!("testdata/every_clause.cql"));
    assert_eq!(table.keyspace.as_deref(), Some("ks"));
    assert_eq!(table.name, "Mixed_Case");
    let id = 0x1b255f4d_ef25_40a6_0000_000000000005_u128;
    assert_eq!(table.id, Some(id.to_be_bytes()));
    assert_eq!(
        columns(&table, ColumnKind::PartitionKey),
        pairs(&[("k1", "text"), ("k2", "frozen<inner_t>")])
    );
    assert_eq!(
        columns(&table, ColumnKind::Clustering),
        pairs(&[("c1", "timeuuid"), ("C 2", "decimal")])
    );
    // Header order: multi-cell columns last.
    assert_eq!(
        columns(&table, ColumnKind::Static),
        pairs(&[
            ("s", "frozen<map<text, frozen<list<int>>>>"),
            ("st", "set<text>")
        ])
    );
    assert_eq!(
        columns(&table, ColumnKind::Regular),
        pairs(&[
            ("d", "duration"),
            ("e", "vector<float, 3>"),
            ("select", "blob"),
            ("t", "frozen<tuple<int, text, frozen<inner_t>>>"),
            ("v", "inner_t"),
            // Cassandra omitted the creation of "Outer".
            ("w", "?"),
        ])
    );
    assert!(
        table
            .columns
            .iter()
            .any(|c| c.name == "w" && c.is_multi_cell)
    );

    let options = &table.options;
    assert_eq!(options.gc_grace_seconds, Some(3600));
    assert_eq!(options.bloom_filter_fp_chance, Some(0.001));
    assert_eq!(options.min_index_interval, Some(64));
    let literal = |name: &str| match &options.all[name] {
        OptionValue::Literal(text) => text.clone(),
        other => panic!("{name}: {other:?}"),
    };
    assert_eq!(options.default_time_to_live, Some(60));
    assert_eq!(literal("max_index_interval"), "2048");
    assert_eq!(literal("crc_check_chance"), "1.0");
    let compression = options.compression.as_ref().unwrap();
    assert!(compression.enabled);
    assert_eq!(
        compression.class.as_deref(),
        Some("org.apache.cassandra.io.compress.ZstdCompressor")
    );
    assert_eq!(compression.chunk_length, Some(65536));
    assert_eq!(compression.min_compress_ratio, Some(1.1));
    assert_eq!(compression.all["compression_level"], "5");
    assert_eq!(
        options.compaction.as_ref().unwrap()["sstable_size_in_mb"],
        "10"
    );
    assert_eq!(
        options.all["comment"],
        OptionValue::Text("it's; -- not /* a */ comment".to_owned())
    );
    assert_eq!(options.all["extensions"], OptionValue::Map(BTreeMap::new()));
    assert_eq!(options.all["cdc"], OptionValue::Literal("false".to_owned()));
    assert_eq!(options.all.len(), 22);
}

/// Types must be equal to those that Cassandra writes to headers.
#[test]
fn types_equal_those_of_headers() {
    let table = only(include_str!("testdata/every_clause.cql"));
    let inner = "UserType(ks,696e6e65725f74,61:Int32Type,62:FrozenType(SetType(UTF8Type)))";
    assert_eq!(
        table.partition_key_type(),
        cql_type(&format!("CompositeType(UTF8Type,FrozenType({inner}))"))
    );
    assert_eq!(
        table.clustering_types(),
        Some(vec![
            CqlType::parse("ReversedType(TimeUUIDType)").unwrap(),
            CqlType::parse("DecimalType").unwrap(),
        ])
    );
    let regular = table.columns_of(ColumnKind::Regular);
    assert_eq!(
        regular[3].cql_type,
        cql_type(&format!("TupleType(Int32Type,UTF8Type,{inner})"))
    );
    assert_eq!(regular[4].cql_type, cql_type(inner));
}

#[test]
fn dropped_columns_keep_their_time_and_may_come_back() {
    let table = only(include_str!("testdata/dropped_columns.cql"));
    assert_eq!(
        columns(&table, ColumnKind::Regular),
        pairs(&[("a", "text")])
    );
    assert_eq!(
        columns(&table, ColumnKind::Static),
        pairs(&[("d", "set<int>")])
    );
    let dropped = |name: &str, text: &str, is_static, micros| DroppedColumn {
        name: name.to_owned(),
        cql_type: cql_type(text),
        is_static,
        dropped_at_micros: Some(micros),
    };
    assert_eq!(
        table.dropped_columns,
        [
            dropped(
                "b",
                "MapType(Int32Type,TupleType(Int32Type,SetType(UTF8Type)))",
                false,
                1_700_000_000_000_001
            ),
            dropped("d", "SetType(Int32Type)", true, 1_700_000_000_000_002),
            dropped("e", "Int32Type", false, 1_700_000_000_000_003),
        ]
    );
    assert_eq!(table.drop_times_micros()["d"], 1_700_000_000_000_002);
}

#[test]
fn views_are_strict_if_their_key_has_a_column_of_its_own() {
    let base = "CREATE TABLE ks.t (k int, c int, v int, w int, PRIMARY KEY (k, c));";
    let view = |name: &str, key: &str| {
        format!(
            "CREATE MATERIALIZED VIEW ks.{name} AS SELECT * FROM ks.t WHERE k IS NOT NULL PRIMARY KEY ({key});"
        )
    };
    let views = view("a", "(v), k, c") + &view("b", "(c, k)") + &view("d", "x, k, c");
    let strict = |text: &str, name: &str| {
        let schema = Schema::parse(text).unwrap();
        schema.table("ks", name).unwrap().strict_liveness
    };
    for text in [format!("{base}{views}"), format!("{views}{base}")] {
        assert_eq!(strict(&text, "t"), Some(false));
        assert_eq!(strict(&text, "a"), Some(true));
        assert_eq!(strict(&text, "b"), Some(false));
        assert_eq!(strict(&text, "d"), None, "no column of the table");
    }
    assert_eq!(strict(&views, "a"), None, "the table is unknown");
}

/// `DESCRIBE TABLE` prints a table with its views, and may follow the description of one of them.
#[test]
fn a_view_may_be_described_twice() {
    let base = "CREATE TABLE ks.t (k int PRIMARY KEY, v int);";
    let view = |key: &str, options: &str| {
        format!(
            "CREATE MATERIALIZED VIEW ks.a AS SELECT * FROM ks.t WHERE k IS NOT NULL PRIMARY KEY ({key}) WITH {options};"
        )
    };
    let first = view("v, k", "gc_grace_seconds = 5");
    let schema = Schema::parse(&format!("{first}{base}{first}")).unwrap();
    assert_eq!(schema.tables.len(), 2);
    assert_eq!(schema.only_table().unwrap().name, "a");
    for other in [
        view("k, v", "gc_grace_seconds = 5"),
        view("v, k", "gc_grace_seconds = 6"),
        "CREATE TABLE ks.a (v int, k int, PRIMARY KEY (v, k));".to_owned(),
    ] {
        let found = message(&format!("{first}{base}{other}"));
        assert!(found.contains("does not exist yet"), "{found}");
    }
}

#[test]
fn tables_of_transactions() {
    let with = |options: &str| {
        only(&format!(
            "CREATE TABLE t (k int PRIMARY KEY) WITH gc_grace_seconds = 1{options};"
        ))
        .is_transactional()
    };
    assert!(!with(""));
    assert!(!with(
        " AND transactional_mode = 'off' AND transactional_migration_from = 'none'"
    ));
    assert!(with(" AND transactional_mode = 'full'"));
    assert!(with(
        " AND transactional_mode = 'off' AND transactional_migration_from = 'mixed_reads'"
    ));
}

#[test]
fn indexes_are_counted() {
    let table = only(include_str!("testdata/indexes.cql"));
    assert_eq!(table.indexes, 3);
    assert_eq!(table.partition_key_type(), Some(CqlType::Int32));
    let unnamed = only("CREATE TABLE t (k int PRIMARY KEY, v int); CREATE INDEX ON t (v);");
    assert_eq!(unnamed.indexes, 1);
}

#[test]
fn views_have_options_but_no_types() {
    let view = only(include_str!("testdata/view.cql"));
    assert_eq!(
        (view.name.as_str(), view.view_of.as_deref()),
        ("mv", Some("plain"))
    );
    assert_eq!(view.options.gc_grace_seconds, Some(77));
    assert!(view.columns.is_empty() && view.id.is_some());
    assert_eq!(
        (view.partition_key_type(), view.clustering_types()),
        (None, None)
    );
}

#[test]
fn options_of_the_compaction_strategy() {
    let with = |options: &str| {
        only(&format!(
            "CREATE TABLE t (k int PRIMARY KEY) WITH compaction = {{'class': 'X'{options}}}"
        ))
    };
    let purges = with(", 'only_purge_repaired_tombstones': 'True'");
    assert!(purges.only_purge_repaired_tombstones());
    assert_eq!(purges.compaction_option("class"), Some("X"));
    assert!(!with("").only_purge_repaired_tombstones());
    assert!(!only("CREATE TABLE t (k int PRIMARY KEY)").only_purge_repaired_tombstones());
}

#[test]
fn uncompressed_counters() {
    let table = only(include_str!("testdata/counter_uncompressed.cql"));
    assert!(!table.options.compression.as_ref().unwrap().enabled);
    assert_eq!(
        columns(&table, ColumnKind::Regular),
        pairs(&[("v", "counter")])
    );
}

#[test]
fn masks_and_constraints_are_passed_over() {
    let table = only(include_str!("testdata/masks_and_constraints.cql"));
    assert_eq!(
        columns(&table, ColumnKind::Regular),
        pairs(&[("a", "int"), ("b", "text"), ("c", "int")])
    );
    let table = only(
        "CREATE TABLE ks.t (k int PRIMARY KEY, a date MASKED WITH DEFAULT, b int MASKED WITH DEFAULT);
         ALTER TABLE ks.t ADD c text MASKED WITH DEFAULT;",
    );
    assert_eq!(
        columns(&table, ColumnKind::Regular),
        pairs(&[("a", "date"), ("b", "int"), ("c", "text")])
    );
    for key in [
        "k int CHECK k > 0 AND k < 10 PRIMARY KEY",
        "k int MASKED WITH system.mask_default() CHECK k > 0 PRIMARY KEY",
        "k int MASKED WITH DEFAULT PRIMARY KEY",
    ] {
        let table = only(&format!("CREATE TABLE ks.t ({key}, v int);"));
        let columns = columns(&table, ColumnKind::PartitionKey);
        assert_eq!(columns, pairs(&[("k", "int")]), "{key}");
    }
}

#[test]
fn an_id_and_compact_storage_are_not_altered() {
    let id = "1b255f4d-ef25-40a6-0000-000000000010";
    let other = "2b255f4d-ef25-40a6-0000-000000000010";
    let table = only(&format!(
        "CREATE TABLE ks.t (k int PRIMARY KEY, v int) WITH ID = {id};
         ALTER TABLE ks.t WITH ID = {other} AND COMPACT STORAGE AND gc_grace_seconds = 7;"
    ));
    let created = only(&format!(
        "CREATE TABLE ks.t (k int PRIMARY KEY, v int) WITH ID = {id};"
    ));
    assert_eq!(table.id, created.id);
    assert!(!table.compact_storage);
    assert_eq!(table.options.gc_grace_seconds, Some(7));
}

/// Output of `DESCRIBE TABLE`, with an index and a view after the table, and with comments and labels of 6.0
/// (`DescribeStatement`, `IndexMetadata.appendCqlTo`, `ViewMetadata.appendCqlTo`, `SchemaDescriptionsUtil`).
const AFTER_A_TABLE: &str = "\n\nCREATE INDEX by_k2 ON ks.\"Mixed\" (k2);\n\n\
    CREATE INDEX by_v ON ks.\"Mixed\" (values(v));\n\n\
    CREATE CUSTOM INDEX by_t ON ks.\"Mixed\" (t) USING 'StorageAttachedIndex' WITH OPTIONS = \
    {'similarity_function': 'cosine'};\n\n\
    CREATE MATERIALIZED VIEW ks.by_t_view AS\n    SELECT *\n    FROM ks.\"Mixed\"\n    \
    WHERE t IS NOT NULL AND k1 IS NOT NULL AND k2 IS NOT NULL AND c IS NOT NULL AND s = 'a;b'\n    \
    PRIMARY KEY (t, k1, k2, c)\n WITH CLUSTERING ORDER BY (k1 ASC, k2 ASC, c DESC)\n    \
    AND additional_write_policy = '99p'\n    AND caching = {'keys': 'ALL', 'rows_per_partition': 'NONE'}\n    \
    AND extensions = {'x': 0xcafe}\n    AND speculative_retry = '99p';\n\
    COMMENT ON TABLE ks.Mixed IS 'it''s; commented';\n\
    SECURITY LABEL ON COLUMN ks.Mixed.k1 IS 'secret';\n";

/// Printed by these releases for their tables (`TableMetadata.toCqlString`).
#[test]
fn described_tables() {
    for (release, text, internals) in [
        (
            "4.1.10",
            include_str!("testdata/describe-4.1.10.cql"),
            include_str!("testdata/describe-4.1.10-internals.cql"),
        ),
        (
            "5.0.9",
            include_str!("testdata/describe-5.0.9.cql"),
            include_str!("testdata/describe-5.0.9-internals.cql"),
        ),
        (
            "6.0-alpha2",
            include_str!("testdata/describe-6.0-alpha2.cql"),
            include_str!("testdata/describe-6.0-alpha2-internals.cql"),
        ),
    ] {
        let type_before =
            "CREATE TYPE ks.address (\n    street text,\n    zip frozen<list<int>>\n);\n\n";
        let table = only(&format!("{type_before}{text}{AFTER_A_TABLE}"));
        assert_eq!(
            (&table.name[..], &table.view_of),
            ("Mixed", &None),
            "{release}"
        );
        assert_eq!(table.keyspace.as_deref(), Some("ks"));
        assert_eq!(table.indexes, 3, "{release}");
        assert_eq!(
            columns(&table, ColumnKind::PartitionKey),
            pairs(&[("k1", "int"), ("k2", "text")])
        );
        assert_eq!(columns(&table, ColumnKind::Static), pairs(&[("s", "int")]));
        let regular = columns(&table, ColumnKind::Regular);
        let has = |name: &str, cql: &str| regular.contains(&(name.to_owned(), cql.to_owned()));
        assert!(
            has("gone", "blob") && has("v", "map<text, frozen<list<int>>>"),
            "{regular:?}"
        );
        assert!(has("t", "frozen<tuple<int, text>>"), "{regular:?}");
        if release != "4.1.10" {
            assert!(
                has("vec", "vector<float, 3>") && has("mail", "text"),
                "{regular:?}"
            );
        }
        if release == "6.0-alpha2" {
            assert!(has("n", "int") && has("Full", "text"), "{regular:?}");
        }
        assert_eq!(table.options.gc_grace_seconds, Some(864_000));
        let class = table.compaction_option("class").unwrap();
        assert!(class.ends_with("LeveledCompactionStrategy"), "{class}");
        assert!(table.dropped_columns.is_empty());

        // With internals there are an id and dropped columns.
        let with_internals = only(&format!("{internals}{AFTER_A_TABLE}"));
        assert!(with_internals.id.is_some());
        let [dropped] = &with_internals.dropped_columns[..] else {
            panic!("{release}: {:?}", with_internals.dropped_columns);
        };
        assert_eq!(dropped.name, "gone");
        assert_eq!(dropped.dropped_at_micros, Some(1_700_000_000_000_000));
        let left = columns(&with_internals, ColumnKind::Regular);
        let expected: Vec<_> = regular.iter().filter(|(name, _)| name != "gone").collect();
        assert_eq!(left.iter().collect::<Vec<_>>(), expected, "{release}");
    }
}

/// Texts written by 3.x and 4.0, printed by `DESCRIBE`, and typed by users.
#[test]
fn texts_of_other_writers() {
    let table = only(
        "CREATE KEYSPACE k1 WITH replication = {'class': 'NetworkTopologyStrategy', 'dc1': 3};\n\
         USE k1;\n\
         -- later types first\n\
         CREATE TABLE t (a int, \"B\" Text static, c List<Frozen<addr>>, d 'org.apache.cassandra.db.marshal.DateType',\n\
           \tPRIMARY KEY (a, d),\n) WITH COMPACT STORAGE AND ID = 5b925f90a4c011ef8b250123456789ab\n\
           AND CLUSTERING ORDER BY (d desc) AND gc_grace_seconds=1 // none\n\
           AND compression = {'sstable_compression': 'LZ4Compressor', 'chunk_length_kb': '64'}\n\
           AND speculative_retry = '99PERCENTILE' AND x = -1.5e3;\n\
         CREATE TYPE addr (street text, n int);\n\
         ALTER TYPE addr ADD zip blob; ALTER TYPE addr RENAME n TO number;\n\
         ALTER TABLE k1.t ADD (e int, f varint static);\n\
         ALTER TABLE t WITH gc_grace_seconds = 2 AND compaction = {'class': 'X'};\n\
         ALTER TABLE t RENAME a TO key; ALTER TABLE t DROP COMPACT STORAGE; ALTER TABLE t DROP (e);\n\
         CREATE FUNCTION f (x int) RETURNS NULL ON NULL INPUT RETURNS int LANGUAGE java AS $$ return x; $$;\n\
         INSERT INTO t (key) VALUES (1);\n",
    );
    assert_eq!(table.keyspace.as_deref(), Some("k1"));
    assert!(table.compact_storage);
    assert_eq!(
        table.id,
        Some(0x5b925f90_a4c0_11ef_8b25_0123456789ab_u128.to_be_bytes())
    );
    assert_eq!(
        columns(&table, ColumnKind::PartitionKey),
        pairs(&[("key", "int")])
    );
    assert_eq!(
        table.clustering_types(),
        Some(vec![CqlType::Reversed(CqlType::LegacyDate.into())])
    );
    assert_eq!(
        columns(&table, ColumnKind::Static),
        pairs(&[("B", "text"), ("f", "varint")])
    );
    let addr = "FrozenType(UserType(k1,61646472,737472656574:UTF8Type,6e756d626572:Int32Type,\
                7a6970:BytesType))";
    assert_eq!(
        table.columns_of(ColumnKind::Regular)[0].cql_type,
        cql_type(&format!("ListType({addr})"))
    );
    assert_eq!(table.dropped_columns.len(), 1);
    assert_eq!(table.dropped_columns[0].dropped_at_micros, None);
    assert!(table.drop_times_micros().is_empty());
    assert_eq!(table.options.gc_grace_seconds, Some(2));
    let compression = table.options.compression.unwrap();
    assert_eq!(
        (compression.enabled, compression.chunk_length),
        (true, Some(65536))
    );
    assert_eq!(
        table.options.all["x"],
        OptionValue::Literal("-1.5e3".to_owned())
    );
}

#[test]
fn several_tables_are_distinguished() {
    let schema = parse(
        "CREATE TYPE a.t (x int); CREATE TYPE b.t (x text);\n\
         CREATE TABLE a.one (k frozen<t> PRIMARY KEY); CREATE TABLE b.one (k frozen<t> PRIMARY KEY);\n\
         CREATE TABLE b.two (k int PRIMARY KEY); DROP TABLE IF EXISTS b.two;",
    );
    assert_eq!(schema.tables.len(), 2);
    let key = |keyspace| schema.table(keyspace, "one").unwrap().partition_key_type();
    assert_eq!(
        key("a"),
        cql_type("FrozenType(UserType(a,74,78:Int32Type))")
    );
    assert_eq!(key("b"), cql_type("FrozenType(UserType(b,74,78:UTF8Type))"));
    assert!(schema.table("b", "two").is_none());
    assert_eq!(
        schema.only_table().unwrap_err().to_string(),
        "corrupt schema.cql at offset 0: expected one CREATE TABLE, found one, one"
    );
    assert!(parse("-- nothing").only_table().is_err());
}
