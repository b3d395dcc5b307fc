//! Merges with `--schema`, and with a `schema.cql` next to the inputs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::{assert_done, assert_ends, compactor, generated, json, words, words_and};

/// Two SSTables of `(key bigint PRIMARY KEY, value blob)` and their schema.cql.
struct Table {
    temp: tempfile::TempDir,
    directory: PathBuf,
    schema: String,
}

impl Table {
    fn generate() -> Table {
        let temp = tempfile::tempdir().unwrap();
        let directory = generated(temp.path(), &words("--rows 200 --sstables 2"));
        let schema = fs::read_to_string(directory.join("schema.cql")).unwrap();
        Table {
            temp,
            directory,
            schema,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.temp.path().join(name)
    }

    fn merge(&self, more: &[&str]) -> Output {
        let _ = fs::remove_dir_all(self.path("out"));
        let mut args = words_and("merge --complete --output out --format json", more);
        args.push(self.directory.to_str().unwrap());
        compactor(self.temp.path(), &args)
    }

    fn with_schema(&self, text: &str) -> Output {
        let path = self.path("other.cql");
        fs::write(&path, text).unwrap();
        self.merge(&["--schema", path.to_str().unwrap()])
    }
}

/// The names between `(` and the end of the columns, without the key.
fn columns(schema: &str) -> Vec<String> {
    let table = compactor_sstable::schema::Schema::parse(schema).unwrap();
    let columns = &table.only_table().unwrap().columns;
    columns[1..].iter().map(|c| c.name.clone()).collect()
}

#[test]
fn a_schema_that_is_a_link_to_nothing_is_refused() {
    let table = Table::generate();
    let schema = table.directory.join("schema.cql");
    fs::remove_file(&schema).unwrap();
    std::os::unix::fs::symlink("nothing", &schema).unwrap();
    assert_ends(&table.merge(&[]), 2, "schema.cql: no such file");
}

#[test]
fn a_schema_of_another_table_than_the_directory_s_is_a_warning() {
    let table = Table::generate();
    let warnings = |output: &Output| json(output)["warnings"].to_string();
    let of_another = table.schema.replacen("generated.kv", "generated.other", 1);
    assert_ne!(of_another, table.schema);
    let warned = warnings(&table.with_schema(&of_another));
    assert!(
        warned.contains("table generated.kv, and the schema is of generated.other"),
        "{warned}"
    );
    let warned = warnings(&table.merge(&[]));
    assert!(!warned.contains("is named after table"), "{warned}");
}

#[test]
fn dropped_columns_are_purged() {
    let table = Table::generate();
    let before = json(&table.merge(&[]));
    assert_eq!(before["purged"]["of_dropped_columns"], 0);
    let parsed = compactor_sstable::schema::Schema::parse(&table.schema).unwrap();
    let parsed = parsed.only_table().unwrap();
    let name = format!("{}.{}", parsed.keyspace.as_ref().unwrap(), parsed.name);
    let mut dropping = table.schema.clone();
    for column in columns(&table.schema) {
        let drop = format!(
            "ALTER TABLE {name} DROP {column} USING TIMESTAMP {};\n",
            i64::MAX
        );
        dropping.push_str(&drop);
    }
    let after = json(&table.with_schema(&dropping));
    assert_eq!(after["rows_read"], before["rows_read"]);
    let dropped = after["purged"]["of_dropped_columns"].as_u64().unwrap();
    assert!(dropped >= after["rows_read"].as_u64().unwrap(), "{after}");
    let bytes = |report: &serde_json::Value| report["output_uncompressed_bytes"].as_u64().unwrap();
    assert!(bytes(&after) * 2 < bytes(&before), "{after}");

    let timeless = dropping.replace(&format!(" USING TIMESTAMP {}", i64::MAX), "");
    let refused = table.with_schema(&timeless);
    assert_eq!(refused.status.code(), Some(4), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("USING TIMESTAMP"));
}

#[test]
fn a_schema_of_another_table_is_refused() {
    let table = Table::generate();
    for (schema, expected) in [
        (
            "CREATE TABLE ks.t (\"other\" inet PRIMARY KEY) WITH gc_grace_seconds = 7".to_owned(),
            "is not of table ks.t as the schema has it: the partition key is inet in the schema",
        ),
        (
            format!("{}\nCREATE TABLE x (k int PRIMARY KEY", table.schema),
            "(line ",
        ),
        ("-- nothing".to_owned(), "one CREATE TABLE"),
    ] {
        let output = table.with_schema(&schema);
        assert_ends(&output, 2, expected);
        assert!(!table.path("out").exists());
    }
}

/// From a text with many tables, as printed by `DESCRIBE SCHEMA`, the table of the inputs' directory is
/// used; with `--schema`, an unreadable schema.cql is ignored.
#[test]
fn one_table_of_many() {
    let table = Table::generate();
    fs::write(table.directory.join("schema.cql"), "CREATE TABLE (").unwrap();
    let broken = table.merge(&[]);
    assert_eq!(broken.status.code(), Some(2), "{broken:?}");
    let many = format!(
        "CREATE TABLE other.one (k int PRIMARY KEY);\n{}",
        table.schema
    );
    json(&table.with_schema(&many));
    fs::write(table.directory.join("schema.cql"), many).unwrap();
    json(&table.merge(&[]));
    // The directory of a file counts, also if only the file or a link to it is named.
    let arguments = |output| {
        let line = "merge oa-1-big-Data.db --schema schema.cql --format json --no-purge --output";
        [words(line), vec![output]].concat()
    };
    json(&compactor(&table.directory, &arguments("../named")));
    let links = table.path("links/other-05a9c7e45d291272abc5f3bdacee24cf");
    fs::create_dir_all(&links).unwrap();
    for file in fs::read_dir(&table.directory).unwrap() {
        let file = file.unwrap();
        std::os::unix::fs::symlink(file.path(), links.join(file.file_name())).unwrap();
    }
    json(&compactor(&links, &arguments("../linked")));

    let without =
        "CREATE TABLE other.one (k int PRIMARY KEY); CREATE TABLE other.two (k int PRIMARY KEY);";
    assert_ends(
        &table.with_schema(without),
        2,
        "it does not describe generated.kv",
    );
}

/// In a directory that is not named after a table, the first table is used if the others are its views.
#[test]
fn a_table_with_its_views() {
    let mut table = Table::generate();
    let view = "CREATE MATERIALIZED VIEW generated.by_value AS SELECT * FROM generated.kv \
         WHERE key IS NOT NULL AND value IS NOT NULL PRIMARY KEY (value, key);";
    let with_view = format!("{}\n{view}", table.schema);
    let flat = table.path("flat");
    fs::rename(&table.directory, &flat).unwrap();
    table.directory = flat;
    json(&table.with_schema(&with_view));
    // SSTables of a view cannot be distinguished from those of its base table.
    let of_view = format!("{view}\n{}", table.schema);
    assert_ends(&table.with_schema(&of_view), 2, "KEYSPACE/TABLE-ID");
}

#[test]
fn differing_schemas_are_refused() {
    let table = Table::generate();
    let copy = table.path("copy");
    fs::create_dir(&copy).unwrap();
    let mut moved = 0;
    for entry in fs::read_dir(&table.directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if is_of_second(&name) {
            fs::rename(&path, copy.join(name)).unwrap();
            moved += 1;
        }
    }
    assert!(moved > 0);
    fs::write(copy.join("schema.cql"), &table.schema).unwrap();
    let both = |more: &[&str]| {
        let mut args = vec![copy.to_str().unwrap()];
        args.extend(more);
        table.merge(&args)
    };
    json(&both(&[]));
    let column = &columns(&table.schema)[0];
    let changed = table.schema.replacen(column, "renamed", 1);
    fs::write(copy.join("schema.cql"), changed).unwrap();
    let refused = both(&[]);
    assert_eq!(refused.status.code(), Some(4), "{refused:?}");
    let right: &Path = &table.directory.join("schema.cql");
    json(&both(&["--schema", right.to_str().unwrap()]));
}

fn is_of_second(name: &str) -> bool {
    name.split('-').nth(1) == Some("2")
}

/// Opening a pipe without a writer would block.
#[test]
fn a_schema_that_is_a_pipe_is_refused() {
    let table = Table::generate();
    let pipe = table.path("pipe.cql");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let merged = Command::new("timeout")
        .args(["20", env!("CARGO_BIN_EXE_compactor"), "merge", "--schema"])
        .arg(&pipe)
        .arg("--output")
        .arg(table.path("out"))
        .arg(&table.directory)
        .output()
        .unwrap();
    assert_ends(&merged, 2, "it is not a file");
}

/// Tombstones are purged only if the table's gc_grace_seconds is known.
#[test]
fn an_unknown_grace_is_not_guessed() {
    let table = Table::generate();
    let schema = table.directory.join("schema.cql");
    let silent = table.path("silent.cql");
    let columns = table.schema.split(" WITH ").next().unwrap();
    fs::write(&silent, format!("{columns};")).unwrap();
    let moved = table.path("t.cql");
    fs::rename(&schema, &moved).unwrap();
    let (silent, moved) = (silent.to_str().unwrap(), moved.to_str().unwrap());
    let directory = table.directory.to_str().unwrap();
    let first = table.directory.join("oa-1-big-Data.db");
    let first = first.to_str().unwrap();
    let (scratch, out) = (table.path("scratch"), table.path("scratch/out"));
    fs::create_dir(&scratch).unwrap();
    let run = |arguments: &[&str], more: &[&str]| {
        let output = ["--output", out.to_str().unwrap()];
        compactor(&scratch, &[arguments, &output, more].concat())
    };
    for arguments in [
        &["merge", directory, "--complete"][..],
        &["merge", first, "--overlapping", directory],
        &["compact", directory, "--major", "--complete"],
    ] {
        for more in [
            &[][..],
            &["--dry-run"],
            &["--schema", silent],
            &["--schema", silent, "--dry-run"],
        ] {
            let refused = run(arguments, more);
            let stderr = String::from_utf8_lossy(&refused.stderr);
            assert_eq!(
                refused.status.code(),
                Some(4),
                "{arguments:?} {more:?}: {stderr}"
            );
            assert!(stderr.contains("DESCRIBE TABLE"), "{stderr}");
            assert!(stderr.contains("--gc-grace-seconds"), "{stderr}");
            assert!(!out.exists());
        }
        for more in [
            &["--schema", moved][..],
            &["--gc-grace-seconds", "864000"],
            &["--gc-before", "0"],
            &["--no-purge"],
        ] {
            let done = run(arguments, &[more, &["--dry-run"]].concat());
            assert!(done.status.success(), "{arguments:?} {more:?}: {done:?}");
        }
    }
    // Nothing is purged.
    for arguments in [
        &["merge", directory][..],
        &["compact", directory, "--major"],
    ] {
        let done = run(arguments, &[]);
        assert_done(&done);
        fs::remove_dir_all(&out).unwrap();
    }
}

#[test]
fn a_missing_schema_is_wrong_usage() {
    let table = Table::generate();
    let missing = table.merge(&["--schema", "/nix"]);
    assert_ends(&missing, 2, "/nix: no such file");
}

/// As in a snapshot's schema.cql and the output of DESCRIBE (`CompactTableMetadata`).
#[test]
fn a_compact_storage_table_that_is_described_in_a_comment_only() {
    let table = Table::generate();
    let comment = format!(
        "/*\nWarning: Table generated.kv omitted because it has constructs not compatible with CQL (was created via \
         legacy API).\nApproximate structure, for reference:\n(this should not be used to reproduce this schema)\n\n{}\n*/\n\
         CREATE INDEX IF NOT EXISTS kv_value_idx ON generated.kv (value) USING 'legacy_local_table';",
        table.schema.replacen("*/", "", 1)
    );
    fs::write(table.directory.join("schema.cql"), &comment).unwrap();
    let in_comment = "schema.cql describes a COMPACT STORAGE table in a comment only";
    let refused = table.merge(&[]);
    assert_ends(&refused, 4, in_comment);
    assert_ends(&refused, 4, "give --gc-grace-seconds");
    json(&table.merge(&["--gc-grace-seconds", "7"]));
    json(&table.merge(&["--no-purge"]));
    let beside_another = table.schema.replacen("generated.kv", "generated.other", 1);
    // The rules of another table of the keyspace are not those of this one.
    for text in [comment.clone(), comment + &beside_another] {
        let named = table.with_schema(&text);
        assert_ends(
            &named,
            2,
            "other.cql describes a COMPACT STORAGE table in a comment only",
        );
        assert_ends(&named, 2, "leave out --schema");
    }

    let directory = table.directory.to_str().unwrap();
    for line in ["compact --output out --dry-run", "plan"] {
        let run = |more: &[&str]| {
            let args = [words_and(line, &[directory]), more.to_vec()].concat();
            compactor(table.temp.path(), &args)
        };
        let refused = run(&["--min-threshold", "2"]);
        assert_ends(&refused, 4, in_comment);
        assert_ends(&refused, 4, "Say --strategy");
        assert_done(&run(&["--strategy", "leveled"]));
    }
    let major = words_and("compact --major --output out --dry-run", &[directory]);
    assert_done(&compactor(table.temp.path(), &major));
}

/// A daemon in the POSIX locale writes `?` for non-ASCII characters of names, and users cannot edit a snapshot's files.
#[test]
fn rewrites_accept_another_schema_than_the_one_next_to_the_inputs() {
    let table = Table::generate();
    fs::write(table.path("good.cql"), &table.schema).unwrap();
    let run = |line: &str, more: &[&str]| {
        let _ = fs::remove_dir_all(table.path("out"));
        let line = format!("{line} --output out {}", table.directory.display());
        compactor(table.temp.path(), &words_and(&line, more))
    };
    let lines = ["upgrade --compression zstd", "split --size 1MiB", "scrub"];
    fs::write(table.directory.join("schema.cql"), "CREATE TABLE ?").unwrap();
    for line in lines {
        assert_ends(&run(line, &[]), 2, "give the table's schema with --schema");
        assert_done(&run(line, &["--schema", "good.cql"]));
    }
    let named_otherwise = table.schema.replace("value ", "\"?\" ");
    assert_ne!(named_otherwise, table.schema);
    fs::write(table.directory.join("schema.cql"), named_otherwise).unwrap();
    // Nothing is so large that it would be split.
    for line in [lines[0], lines[2]] {
        let refused = "Pass the current schema.cql of this table by --schema";
        assert_ends(&run(line, &[]), 2, refused);
        assert_done(&run(line, &["--schema", "good.cql"]));
    }
}
