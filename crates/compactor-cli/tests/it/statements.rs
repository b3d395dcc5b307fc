//! Consistency of messages and reports across commands.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use compactor_sstable::Version;
use compactor_sstable::compression::info::CompressionInfo;
use compactor_sstable::statistics::Statistics;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{
    assert_done, assert_ends, assert_prints, compactor, copy_files, data_files, flip, generated,
    stderr, stdout, words, words_and,
};

/// The document that a command printed, however it ended.
fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A generated table, and its directory.
fn table(shape: &str, sstables: &str, options: &[&str]) -> (TempDir, String) {
    let temp = tempfile::tempdir().unwrap();
    let shape = words_and("--rows 3000 --shape", &[shape, "--sstables", sstables]);
    let table = generated(temp.path(), &[&shape, options].concat());
    let table = table.to_str().unwrap().to_owned();
    (temp, table)
}

fn component(data: &Path, name: &str) -> PathBuf {
    let data = data.to_str().unwrap();
    PathBuf::from(format!("{}{name}", data.strip_suffix("Data.db").unwrap()))
}

/// A damaged chunk is named by its own offset in Data.db, whichever part of the program finds it.
#[test]
fn a_damaged_chunk_has_one_offset() {
    for compression in ["lz4", "none"] {
        let (temp, table) = table("kv", "1", &["--compression", compression]);
        let data = data_files(Path::new(&table)).remove(0);
        let len = fs::metadata(&data).unwrap().len();
        let chunk = match compression {
            "none" => 65_536,
            _ => {
                let bytes = fs::read(component(&data, "CompressionInfo.db")).unwrap();
                let info = CompressionInfo::parse(&bytes, Version::Oa, len).unwrap();
                info.chunk(3).unwrap().offset
            }
        };
        flip(&data, usize::try_from(chunk).unwrap() + 20);
        let data = data.to_str().unwrap();

        let verified = document(&compactor(
            temp.path(),
            &["verify", data, "--format", "json"],
        ));
        let finding = &verified["sstables"][0]["findings"][0];
        assert_eq!(finding["structure"], "chunk.crc", "{finding}");
        assert_eq!(finding["offset"], chunk, "{compression}: {finding}");

        let merge = ["merge", data, "--output", "out", "--format", "json"];
        let merged = document(&compactor(temp.path(), &merge));
        let damage = &merged["error"]["damage"];
        assert_eq!(damage["structure"], "chunk.crc", "{merged}");
        assert_eq!(damage["offset"], chunk, "{compression}: {merged}");

        let out = compactor(temp.path(), &["dump", data]);
        let place = format!("chunk.crc at offset {chunk}");
        assert!(stderr(&out).contains(&place), "{}", stderr(&out));

        let scrub = ["scrub", data, "--dry-run", "--format", "json"];
        let scrubbed = document(&compactor(temp.path(), &scrub));
        let reason = scrubbed["sstables"][0]["losses"][0]["reason"].as_str();
        let expected = format!("the chunk at offset {chunk} of Data.db is damaged");
        assert_eq!(reason, Some(expected.as_str()), "{scrubbed}");
    }
}

/// Keys that scrub prints are those that `dump -k` takes, of every type of key.
#[test]
fn lost_keys_can_be_looked_up() {
    for shape in ["kv", "wide", "timeseries"] {
        let (temp, table) = table(shape, "1", &[]);
        let data = data_files(Path::new(&table)).remove(0);
        let sound = temp.path().join("sound");
        copy_files(Path::new(&table), &sound);
        flip(&data, 3000);
        let sound = sound.join(data.file_name().unwrap());
        let data = data.to_str().unwrap();
        let text = stdout(&compactor(temp.path(), &["scrub", data, "--dry-run"]));
        let lines: Vec<&str> = text.lines().filter(|l| l.starts_with("lost: ")).collect();
        assert!(!lines.is_empty(), "{shape}: {text}");
        for line in lines {
            let key = line.split(", partition ").nth(1).unwrap();
            let key = key.split(" token ").next().unwrap().trim_matches('\'');
            let dump = [
                "dump",
                sound.to_str().unwrap(),
                "-k",
                key,
                "--enumerate-keys",
            ];
            let dumped = compactor(temp.path(), &dump);
            assert!(
                dumped.status.success(),
                "{shape} {key}: {}",
                stderr(&dumped)
            );
            assert_eq!(stdout(&dumped).lines().count(), 1, "{shape} {key}");
        }
        // The bytes in hexadecimal digits name a key as well.
        let scrub = ["scrub", data, "--dry-run", "--format", "json"];
        let scrubbed = document(&compactor(temp.path(), &scrub));
        let loss = &scrubbed["sstables"][0]["losses"][0];
        let hex = format!("0x{}", loss["partition_key"].as_str().unwrap());
        let sound = sound.to_str().unwrap();
        let by = |key: &str| {
            let out = compactor(temp.path(), &["dump", sound, "-k", key]);
            assert!(out.status.success(), "{shape} {key}: {}", stderr(&out));
            stdout(&out)
        };
        assert_eq!(by(&hex), by(loss["key"].as_str().unwrap()), "{shape}");
    }
}

/// Advice on damage fits the damaged file.
#[test]
fn advice_fits_the_damaged_file() {
    for (name, at, expected) in [
        ("Data.db", 100, "`compactor scrub` writes what can be read"),
        (
            "Index.db",
            3,
            "`compactor scrub` makes the other files anew",
        ),
        ("Statistics.db", 3, "take it from a snapshot or a backup"),
        (
            "CompressionInfo.db",
            15,
            "take it from a snapshot or a backup",
        ),
    ] {
        let (temp, table) = table("kv", "1", &["--compression", "lz4"]);
        let data = data_files(Path::new(&table)).remove(0);
        flip(&component(&data, name), at);
        let data = data.to_str().unwrap();
        let out = compactor(temp.path(), &["merge", data, "--output", "out"]);
        let message = stderr(&out);
        assert_eq!(out.status.code(), Some(3), "{name}: {message}");
        let advice: Vec<&str> = message
            .lines()
            .filter(|l| l.contains("`compactor "))
            .collect();
        assert!(
            advice.iter().any(|l| l.contains(expected)),
            "{name}: {message}"
        );
        // The advice works.
        let scrub = compactor(temp.path(), &["scrub", data, "--output", "mended"]);
        let is_salvaged = scrub.status.success() || stdout(&scrub).contains("SALVAGED IN PART");
        assert_eq!(
            is_salvaged,
            expected.contains("scrub"),
            "{name}: {}",
            stderr(&scrub)
        );
        if expected.contains("anew") {
            assert_prints(&scrub, "NOTHING LOST");
        }
    }
}

/// A dry run of a merge that purges nothing does not list what it would purge.
#[test]
fn a_dry_run_does_not_contradict_itself_about_purging() {
    let (temp, table) = table("wide", "2", &[]);
    let merge = ["merge", table.as_str(), "--output", "out", "--dry-run"];
    let text = stdout(&compactor(temp.path(), &merge));
    assert!(text.contains("every tombstone is kept"), "{text}");
    assert!(text.contains("  purging     nothing"), "{text}");
    let report = document(&compactor(
        temp.path(),
        &[&merge[..], &["--format", "json"]].concat(),
    ));
    assert!(report["gc_before_s"].is_null(), "{report}");
    let complete = [&merge[..], &["--complete"]].concat();
    let text = stdout(&compactor(temp.path(), &complete));
    assert!(text.contains("purging     deletions before"), "{text}");
    assert!(!text.contains("tombstone is kept"), "{text}");
    let compact = words_and("compact --output out --dry-run --major", &[table.as_str()]);
    let text = stdout(&compactor(temp.path(), &compact));
    assert!(text.contains("every tombstone is kept"), "{text}");
}

/// Temporary files of old releases are skipped, whatever version they name.
#[test]
fn temporary_files_are_skipped() {
    let (temp, table) = table("kv", "2", &[]);
    let directory = Path::new(&table);
    for name in ["tmp-oa-9-big-Data.db", "tmplink-la-9-big-Index.db"] {
        fs::write(directory.join(name), b"half").unwrap();
    }
    let out = compactor(temp.path(), &["merge", &table, "--output", "out"]);
    assert_done(&out);
    assert_prints(&out, "merged 2 SSTables");
    let notes = stderr(&out);
    for name in ["tmp-oa-9-big-Data.db", "tmplink-la-9-big-Index.db"] {
        let line = notes.lines().find(|line| line.contains(name)).unwrap();
        assert!(line.contains("a temporary file of Cassandra"), "{line}");
    }
    let verified = compactor(temp.path(), &["verify", &table]);
    assert_done(&verified);
}

/// Numbers have units, and one thing is not in the plural.
#[test]
fn counts_in_summaries_have_units() {
    let (temp, table) = table("wide", "3", &["--deletions", "0.2"]);
    let files = data_files(Path::new(&table));
    let named = [
        "merge",
        files[0].to_str().unwrap(),
        files[1].to_str().unwrap(),
    ];
    let complete = [&named[..], &["--output", "out", "--complete"]].concat();
    let out = compactor(temp.path(), &complete);
    assert_eq!(out.status.code(), Some(4));
    let message = stderr(&out);
    assert!(
        message.contains("Data.db is in the same directory"),
        "{message}"
    );
    assert!(!message.contains(" 0 more"), "{message}");
    let complete = [&named[..2], &["--output", "out", "--complete"]].concat();
    let out = compactor(temp.path(), &complete);
    assert!(
        stderr(&out).contains("and 1 more are in the same"),
        "{}",
        stderr(&out)
    );

    let purge = words("--complete --gc-before 4000000000 --now=2000000000");
    let merge = [&["merge", &table, "--output", "merged"], &purge[..]].concat();
    let text = stdout(&compactor(temp.path(), &merge));
    let purged = text.lines().find(|l| l.contains("purged")).unwrap();
    assert!(purged.contains(" tombstones ("), "{purged}");
    let major = [
        &["compact", table.as_str(), "--output", "major", "--major"][..],
        &purge,
    ]
    .concat();
    let text = stdout(&compactor(temp.path(), &major));
    let purged = text.lines().find(|l| l.contains("purged")).unwrap();
    assert!(purged.ends_with(" tombstones"), "{purged}");

    // A single SSTable has nothing to be compacted with.
    let alone = ["compact", files[0].to_str().unwrap(), "--output", "alone"];
    let text = stdout(&compactor(temp.path(), &alone));
    assert!(text.contains("1 SSTable stays as it is"), "{text}");
    let verified = stdout(&compactor(
        temp.path(),
        &["verify", files[0].to_str().unwrap()],
    ));
    assert!(
        verified.contains("OK: 0 places damaged, 0 notes; "),
        "{verified}"
    );
}

/// A dry run and a run report an unsupported SSTable alike.
#[test]
fn a_dry_run_refuses_what_the_run_refuses() {
    for partitioner in ["LocalPartitioner", "ReversedLongLocalPartitioner"] {
        let (temp, table) = table("kv", "4", &[]);
        for data in data_files(Path::new(&table)) {
            let path = component(&data, "Statistics.db");
            let mut bytes = fs::read(&path).unwrap();
            let mut statistics = Statistics::parse(&bytes, Version::Oa).unwrap();
            statistics.validation.partitioner = format!("org.apache.cassandra.dht.{partitioner}");
            bytes.clear();
            statistics.write(&mut bytes, Version::Oa).unwrap();
            fs::write(&path, bytes).unwrap();
        }
        for options in [&[][..], &["--major"]] {
            let compact = [&["compact", table.as_str(), "--output", "out"][..], options].concat();
            let ran = compactor(temp.path(), &compact);
            let planned = compactor(temp.path(), &[&compact[..], &["--dry-run"]].concat());
            assert_eq!(ran.status.code(), Some(2), "{}", stderr(&ran));
            assert_eq!(planned.status.code(), Some(2), "{}", stderr(&planned));
            for message in [stderr(&ran), stderr(&planned)] {
                assert!(message.contains(partitioner), "{message}");
            }
            let as_json = [&compact[..], &["--dry-run", "--format", "json"]].concat();
            let planned = document(&compactor(temp.path(), &as_json));
            assert_eq!(planned["failed"].as_array().unwrap().len(), 4, "{planned}");
        }
    }
}

/// A major compaction into one SSTable contradicts these strategies.
#[test]
fn strategies_that_separate_sstables_are_named() {
    let (temp, table) = table("timeseries", "2", &[]);
    let schema = Path::new(&table).join("schema.cql");
    let cql = fs::read_to_string(&schema).unwrap();
    let with = |class: &str| {
        let begin = cql.find("compaction = {").unwrap();
        let end = begin + cql[begin..].find('}').unwrap() + 1;
        let mut changed = cql.clone();
        changed.replace_range(begin..end, &format!("compaction = {{'class': '{class}'}}"));
        changed
    };
    for (class, expected) in [
        (
            "org.apache.cassandra.db.compaction.TimeWindowCompactionStrategy",
            Some("time windows"),
        ),
        ("LeveledCompactionStrategy", Some("level 0")),
        ("UnifiedCompactionStrategy", Some("shards")),
        ("SizeTieredCompactionStrategy", None),
    ] {
        fs::write(&schema, with(class)).unwrap();
        for command in [&["merge"][..], &["compact", "--major"]] {
            let dry = [command, &[table.as_str(), "--output", "out", "--dry-run"]].concat();
            let out = compactor(temp.path(), &dry);
            assert_done(&out);
            let warned = stderr(&out);
            let warning = warned.lines().find(|line| line.starts_with("warning: "));
            assert_eq!(warning.is_some(), expected.is_some(), "{class}: {warned}");
            let run = [
                command,
                &[table.as_str(), "--output", "out", "--format", "json"],
            ]
            .concat();
            let report = document(&compactor(temp.path(), &run));
            let warnings = report["warnings"].to_string();
            assert_eq!(warnings.contains(class), expected.is_some(), "{warnings}");
            if let Some(expected) = expected {
                assert!(warning.unwrap().contains(expected), "{class}: {warned}");
            }
            fs::remove_dir_all(temp.path().join("out")).unwrap();
        }
        if class == "LeveledCompactionStrategy" {
            let split = words_and(
                "merge --output out --max-sstable-size 160MB --dry-run",
                &[&table],
            );
            let out = compactor(temp.path(), &split);
            assert!(
                out.status.success() && !stderr(&out).contains("level 0"),
                "{}",
                stderr(&out)
            );
        }
    }
}

/// Sizes and rates may be given in decimal units.
#[test]
fn decimal_units_are_accepted() {
    let (temp, table) = table("kv", "2", &[]);
    let merge = words_and(
        "merge --output out --memory 64MB --throughput 50MB/s",
        &[&table],
    );
    let out = compactor(temp.path(), &merge);
    assert_done(&out);
    let wrong = words_and("merge --output other --throughput 50MB/min", &[&table]);
    let out = compactor(temp.path(), &wrong);
    assert_ends(&out, 2, "50MB/s");
}
