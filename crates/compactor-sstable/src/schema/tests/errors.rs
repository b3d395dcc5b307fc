//! Texts that are refused, cut off, or very long.

use super::*;

#[test]
fn errors_name_line_and_column() {
    assert_eq!(
        message("CREATE TABLE t (\n  k int PRIMARY KEY,\n  v map<int text>\n)"),
        "corrupt schema.cql at offset 50: expected ',', found 'text>' (line 3, column 13)"
    );
    for (text, expected) in [
        ("CREATE TABLE t (k int)", "PRIMARY KEY"),
        (
            "CREATE TABLE t (k int, PRIMARY KEY (z))",
            "a column of the table, found 'z))'",
        ),
        ("CREATE TABLE t (k int PRIMARY KEY", "')'"),
        (
            "CREATE TABLE t (k lisst<int> PRIMARY KEY)",
            "frozen, list, set, map, tuple or vector",
        ),
        ("CREATE TABLE t (k vector<int, 0> PRIMARY KEY)", "dimension"),
        (
            "CREATE TABLE t (k 'com.example.T' PRIMARY KEY)",
            "com.example.T",
        ),
        (
            "CREATE TABLE t (k int PRIMARY KEY) WITH gc_grace_seconds = -1",
            "option's range",
        ),
        (
            "CREATE TABLE t (k int PRIMARY KEY) WITH bloom_filter_fp_chance = 0",
            "option's range",
        ),
        ("CREATE TABLE t (k int PRIMARY KEY) WITH ID = 12", "a UUID"),
        (
            "CREATE TABLE t (k int PRIMARY KEY) WITH compression = 5",
            "map of compression options",
        ),
        (
            "CREATE TABLE t (k int PRIMARY KEY) WITH compression = {'class':'L','chunk_length_in_kb':'3'}",
            "power of two",
        ),
        (
            "CREATE TABLE t (k int, c int, d int, PRIMARY KEY (k, c, d)) WITH CLUSTERING ORDER BY (d DESC)",
            "the clustering columns in the order of the key",
        ),
        (
            "CREATE TABLE t (k int PRIMARY KEY) WITH CLUSTERING ORDER BY (k DESC)",
            "the clustering columns in the order of the key",
        ),
        ("CREATE TABLE t (k int PRIMARY KEY) WITH x", "'='"),
        ("CREATE TABLE t (k int PRIMARY KEY) AND", "';'"),
        ("ALTER TABLE t DROP a", "a table that the text creates"),
        (
            "CREATE TABLE t (k int PRIMARY KEY); ALTER TABLE t ADD k int",
            "not exist yet",
        ),
        (
            "CREATE TABLE t (k int PRIMARY KEY); ALTER TABLE t DROP a USING TIMESTAMP x",
            "timestamp",
        ),
        (
            "CREATE TABLE t (k int PRIMARY KEY); ALTER TABLE t DROP k USING TIMESTAMP 1",
            "not of the primary key",
        ),
        (
            "CREATE TABLE t (k int PRIMARY KEY, k text)",
            "not exist yet",
        ),
        (
            "CREATE TABLE t (k int PRIMARY KEY); CREATE TABLE t (k int PRIMARY KEY)",
            "a table that does not exist yet",
        ),
        ("CREATE MATERIALIZED VIEW v AS SELECT 1;", "FROM"),
        (
            "CREATE MATERIALIZED VIEW v AS SELECT * FROM t;",
            "PRIMARY KEY",
        ),
        ("{", "a statement"),
    ] {
        let found = message(text);
        assert!(found.contains(expected), "{text}: {found}");
    }
}

/// Forty types, each of which contains the previous one twice: 2^40 types if expanded.
#[test]
fn types_of_types_do_not_explode() {
    let mut text = "CREATE TYPE t0 (a int, b int);".to_owned();
    for i in 1..40 {
        let inner = i - 1;
        text.push_str(&format!(
            "CREATE TYPE t{i} (a frozen<t{inner}>, b frozen<t{inner}>);"
        ));
    }
    text.push_str("CREATE TABLE t (k frozen<t39> PRIMARY KEY);");
    assert!(message(&text).contains("more than 100000 types"));
    let endless = "CREATE TYPE a (x frozen<a>); CREATE TABLE t (k frozen<a> PRIMARY KEY);";
    assert!(message(endless).contains("nested deeper"));
    let deep = format!("CREATE TABLE t (k {}", "frozen<list<".repeat(100_000));
    assert!(message(&deep).contains("nested at most"));
}

/// No truncation of a real text makes the parser panic or hang.
#[test]
fn truncated_texts_are_errors_or_less() {
    for text in [
        include_str!("../testdata/every_clause.cql"),
        include_str!("../testdata/dropped_columns.cql"),
        include_str!("../testdata/indexes.cql"),
        include_str!("../testdata/view.cql"),
        include_str!("../testdata/masks_and_constraints.cql"),
    ] {
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            let _ = Schema::parse(&text[..end]);
        }
    }
}

/// Each of these would take minutes instead of seconds if names were searched for from the start every time.
#[test]
fn long_texts_are_parsed() {
    const MANY: usize = 20_000;
    let each = |text: fn(usize) -> String| (0..MANY).map(text).collect::<String>();
    let texts = [
        format!(
            "CREATE TABLE t (k int PRIMARY KEY{});{}{}{}",
            each(|n| format!(", c{n} list<int>")),
            each(|n| format!("ALTER TABLE t RENAME c{n} TO d{n};")),
            each(|n| format!("ALTER TABLE t DROP d{n} USING TIMESTAMP {n};")),
            each(|n| format!("ALTER TABLE t ADD d{n} list<int>;")),
        ),
        format!(
            "CREATE TABLE t (k int, c int{}, PRIMARY KEY (k, c{})) WITH CLUSTERING ORDER BY (c DESC{});",
            each(|n| format!(", c{n} int")),
            each(|n| format!(", c{n}")),
            each(|n| format!(", c{n} DESC")),
        ),
        format!(
            "{}{}CREATE TABLE t (k frozen<t0> PRIMARY KEY{});{}",
            each(|n| format!("CREATE TYPE t{n} (x int);")),
            each(|n| format!("ALTER TYPE t0 ADD f{n} int; ALTER TYPE t0 RENAME f{n} TO g{n};")),
            each(|n| format!(", c{n} t{n}, d{n} t0")),
            each(|n| format!("DROP TYPE t{n};")),
        ),
        format!(
            "CREATE TABLE t (k int PRIMARY KEY);{}{}{}",
            each(|n| format!("CREATE INDEX i{n} ON t (k);")),
            each(|n| format!("CREATE TABLE t{n} (k int PRIMARY KEY);")),
            each(|n| format!("DROP INDEX i{n}; DROP TABLE t{n};")),
        ),
    ];
    for text in &texts {
        parse(text);
    }
    let table = only(&texts[0]);
    assert_eq!(
        (table.columns.len(), table.dropped_columns.len()),
        (MANY + 1, MANY)
    );
}
