//! `compactor verify` from the command line: its output and exit codes.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::support::{
    compactor, copy_files, data_files, flip_middle, generated, paths_in, stderr, stdout, words,
    words_and,
};

const TESTDATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../compactor-sstable/testdata");
const DAMAGED: Option<i32> = Some(3);

/// A copy of one SSTable, in a directory of its own.
struct Copy(tempfile::TempDir);

impl Copy {
    fn of(place: &str) -> Copy {
        let copy = Copy(tempfile::tempdir().unwrap());
        copy_files(&Path::new(TESTDATA).join(place), copy.directory());
        copy
    }

    fn directory(&self) -> &Path {
        self.0.path()
    }

    fn file(&self, suffix: &str) -> PathBuf {
        let mut paths = paths_in(self.directory()).into_iter();
        let file = paths.find(|path| path.to_str().unwrap().ends_with(suffix));
        file.unwrap()
    }

    fn edit(&self, suffix: &str, edit: impl FnOnce(&mut Vec<u8>)) {
        let path = self.file(suffix);
        let mut bytes = fs::read(&path).unwrap();
        edit(&mut bytes);
        fs::write(path, bytes).unwrap();
    }
}

fn verify(args: &[&dyn AsRef<OsStr>]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_compactor"));
    command
        .arg("verify")
        .args(args.iter().map(|arg| arg.as_ref()));
    command.output().unwrap()
}

#[test]
fn intact_sstables_end_with_ok() {
    let copy = Copy::of("oa-range_nested/inputs/1");
    let output = verify(&[&copy.directory()]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = stdout(&output);
    let line = text.lines().next().unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(
        line.starts_with(&format!("{}: OK: ", copy.file("-Data.db").display())),
        "{line}"
    );
    assert!(
        line.contains("75 rows") && line.contains("1 chunk (0 damaged)"),
        "{line}"
    );
}

#[test]
fn damage_is_named_with_file_offset_expected_and_found() {
    let copy = Copy::of("oa-range_nested/inputs/1");
    copy.edit("-Data.db", |bytes| bytes[100] ^= 1);
    let output = verify(&[&copy.file("-Data.db")]);
    assert_eq!(output.status.code(), DAMAGED, "{output:?}");
    let text = stdout(&output);
    let finding = text
        .lines()
        .find(|line| line.contains("chunk.crc"))
        .unwrap();
    let path = copy.file("-Data.db").display().to_string();
    for part in ["damage: ", &path, "at offset 0", "expected ", "found "] {
        assert!(finding.contains(part), "{part}: {finding}");
    }
    assert!(
        text.lines().last().unwrap().contains(": DAMAGED: "),
        "{text}"
    );
    // Nothing on stderr: the result on stdout is the message.
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
fn each_sstable_has_its_own_line_and_a_damaged_one_sets_the_exit_code() {
    let (good, bad) = (
        Copy::of("nb-statics/inputs/1"),
        Copy::of("oa-ttl_ties/inputs/1"),
    );
    fs::remove_file(bad.file("-Index.db")).unwrap();
    let output = verify(&[&good.directory(), &bad.directory()]);
    assert_eq!(output.status.code(), DAMAGED);
    let text = stdout(&output);
    assert_eq!(
        text.lines().filter(|line| line.contains(": OK: ")).count(),
        1,
        "{text}"
    );
    assert_eq!(
        text.lines()
            .filter(|line| line.contains(": DAMAGED: "))
            .count(),
        1,
        "{text}"
    );
    assert!(
        text.contains("Index.db: sstable: expected ") && text.contains("found no such file"),
        "{text}"
    );
}

/// An SSTable that is unreadable or of an unknown version does not affect the others.
#[test]
fn every_sstable_of_a_directory_is_verified() {
    let copy = Copy::of("oa-ttl_ties/inputs/1");
    let at = |name: &str| copy.directory().join(name);
    let data = copy.file("-Data.db");
    // Sorted before, between and after the good one.
    fs::copy(&data, at("ka-1-big-Data.db")).unwrap();
    fs::write(at("oa-8-big-Statistics.db"), "no Data.db beside it").unwrap();
    fs::copy(&data, at("zz-1-big-Data.db")).unwrap();
    let output = verify(&[&copy.directory()]);
    assert_eq!(output.status.code(), DAMAGED, "{output:?}");
    let (text, errors) = (stdout(&output), String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("oa-1-big-Data.db: OK: "), "{text}");
    assert!(text.contains("oa-8-big-Data.db: DAMAGED: "), "{text}");
    for unreadable in ["ka-1-big", "zz-1-big"] {
        assert!(errors.contains(unreadable), "{errors}");
    }

    fs::remove_file(at("oa-8-big-Statistics.db")).unwrap();
    let output = verify(&[&copy.directory(), &"--format", &"json"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["sstables"].as_array().unwrap().len(), 1);
    assert_eq!(document["unreadable"].as_array().unwrap().len(), 2);
}

/// Opening a FIFO would block, since it has no writer.
#[test]
fn a_component_that_is_not_a_regular_file_is_named() {
    let copy = Copy::of("oa-ttl_ties/inputs/1");
    let components = words(
        "-Data.db -Index.db -CompressionInfo.db -Statistics.db -Summary.db -Filter.db \
         -Digest.crc32 -TOC.txt",
    );
    let temp = tempfile::tempdir().unwrap();
    for (round, suffix) in components.into_iter().enumerate() {
        let path = copy.file(suffix);
        let kept = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        if round % 2 == 0 {
            let made = Command::new("mkfifo").arg(&path).status().unwrap();
            assert!(made.success());
        } else {
            fs::create_dir(&path).unwrap();
        }
        let data = copy.file("-Data.db");
        let out = temp.path().join("out");
        for args in [
            &[&"verify" as &dyn AsRef<OsStr>, &data][..],
            &[&"metadata", &data],
            &[&"merge", &data, &"--output", &out],
            &[&"scrub", &data, &"--output", &out, &"--dry-run"],
        ] {
            // `timeout` exits with 124 if the command blocks.
            let mut command = Command::new("timeout");
            command.arg("20").arg(env!("CARGO_BIN_EXE_compactor"));
            let output = command
                .args(args.iter().map(|a| a.as_ref()))
                .output()
                .unwrap();
            let is_read = match args[0].as_ref().to_str().unwrap() {
                "metadata" => {
                    !["-Data.db", "-Index.db", "-Digest.crc32", "-TOC.txt"].contains(&suffix)
                }
                // Does without most of them.
                "scrub" => false,
                _ => true,
            };
            let errors = String::from_utf8_lossy(&output.stderr);
            let what = args[0].as_ref().display();
            assert_ne!(output.status.code(), Some(124), "{what} {suffix}");
            if is_read {
                assert_ne!(output.status.code(), Some(0), "{what} {suffix}: {output:?}");
                assert!(
                    errors.contains("not a regular file"),
                    "{what} {suffix}: {errors}"
                );
                assert!(
                    errors.contains(path.to_str().unwrap()),
                    "{what} {suffix}: {errors}"
                );
            }
            assert!(!out.exists() || fs::read_dir(&out).unwrap().count() == 0);
        }
        match fs::remove_file(&path) {
            Ok(()) => {}
            Err(_) => fs::remove_dir(&path).unwrap(),
        }
        fs::write(&path, kept).unwrap();
    }
}

#[test]
fn names_that_are_not_utf8_are_printed_as_json() {
    use std::os::unix::ffi::OsStrExt;
    let copy = Copy::of("oa-ttl_ties/inputs/1");
    let directory = copy.directory().join(OsStr::from_bytes(b"caf\xe9"));
    fs::create_dir(&directory).unwrap();
    for entry in fs::read_dir(copy.directory()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            fs::rename(&path, directory.join(path.file_name().unwrap())).unwrap();
        }
    }
    fs::write(directory.join("oa-1-big-Filter.db"), b"").unwrap();
    for (command, code) in [("verify", DAMAGED), ("metadata", Some(0))] {
        let output = Command::new(env!("CARGO_BIN_EXE_compactor"))
            .args([OsStr::new(command), directory.as_os_str()])
            .args(["--format", "json"])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), code, "{output:?}");
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(document.to_string().contains("caf\u{fffd}"), "{document}");
    }
}

#[test]
fn a_merge_that_verifies_first_reports_damage_once() {
    let copy = Copy::of("oa-ttl_ties/inputs/1");
    let temp = tempfile::tempdir().unwrap();
    copy.edit("-Data.db", |bytes| bytes[20] ^= 1);
    let output = Command::new(env!("CARGO_BIN_EXE_compactor"))
        .arg("merge")
        .arg(copy.file("-Data.db"))
        .arg("--output")
        .arg(temp.path().join("out"))
        .arg("--verify")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), DAMAGED, "{output:?}");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("damage: "), "{errors}");
    assert!(!errors.contains("damage: damage"), "{errors}");
}

#[test]
fn json_is_one_document() {
    let copy = Copy::of("pa-incompressible_chunks/inputs/1");
    copy.edit("-Data.db", |bytes| bytes.truncate(20_000));
    let output = verify(&[&copy.directory(), &"--format", &"json"]);
    assert_eq!(output.status.code(), DAMAGED);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["damaged"], 1);
    let report = &document["sstables"][0];
    assert!(report["damages"].as_u64().unwrap() >= 2, "{report}");
    assert!(report["partitions"].as_u64().unwrap() > 5, "{report}");
    let first = &report["findings"][0];
    assert_eq!(first["component"], "Data.db");
    assert_eq!(first["offset"], 20_000);
}

#[test]
fn quick_and_max_findings() {
    let copy = Copy::of("oa-wide_uncompressed/inputs/2");
    // No checksum covers the index.
    copy.edit("-Index.db", |bytes| bytes[3] ^= 1);
    let output = verify(&[&copy.directory(), &"--quick"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(stdout(&output).contains("OK (quick)"));
    let output = verify(&[&copy.directory(), &"--max-findings", &"1"]);
    assert_eq!(output.status.code(), DAMAGED);
    let text = stdout(&output);
    assert_eq!(
        text.lines()
            .filter(|line| line.starts_with("damage: "))
            .count(),
        1,
        "{text}"
    );
    assert!(text.contains("more findings, not listed"), "{text}");
}

#[test]
fn components_without_data_are_damage() {
    let copy = Copy::of("oa-ttl_ties/inputs/1");
    fs::remove_file(copy.file("-Data.db")).unwrap();
    let output = verify(&[&copy.directory()]);
    assert_eq!(output.status.code(), DAMAGED, "{output:?}");
    assert!(
        stdout(&output).contains("expected a file Data.db"),
        "{output:?}"
    );
}

#[test]
fn wrong_usage() {
    let empty = tempfile::tempdir().unwrap();
    let copy = Copy::of("oa-ttl_ties/inputs/1");
    let index = copy.file("-Index.db");
    let nothing = copy.directory().join("oa-7-big-Data.db");
    for args in [
        &[&empty.path() as &dyn AsRef<OsStr>][..],
        &[&index],
        &[&nothing],
        &[&copy.0.path(), &"--read-io", &"psychic"],
        &[],
    ] {
        let output = verify(args);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(
            output.stdout.is_empty() && !output.stderr.is_empty(),
            "{output:?}"
        );
    }
}

#[test]
fn a_closed_stdout_is_not_an_error() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_compactor"))
        .arg("verify")
        .args(
            ["nb-range_nested/inputs/1", "oa-range_nested/inputs/1"]
                .map(|place| data_files(&Path::new(TESTDATA).join(place)).remove(0)),
        )
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
}

/// The address space is limited to a quarter of the length in the field: allocating that length would fail.
#[test]
fn absurd_lengths_are_not_allocated() {
    type Edit = fn(&mut Vec<u8>);
    let edits: [(&str, Edit); 5] = [
        // Count of samples, length of the summary.
        ("-Summary.db", |bytes| bytes[4..16].fill(0x7f)),
        // Words of the filter.
        ("-Filter.db", |bytes| bytes[4..8].fill(0x7f)),
        // Length of the first promoted index.
        ("-Index.db", |bytes| {
            bytes[7..12].copy_from_slice(&[0xf0, 0x7f, 0xff, 0xff, 0xff])
        }),
        // Parts of the statistics.
        ("-Statistics.db", |bytes| bytes[0..4].fill(0x7f)),
        // Length of the content and number of chunks.
        ("-CompressionInfo.db", |bytes| bytes[27..39].fill(0x7f)),
    ];
    for (suffix, edit) in edits {
        let copy = Copy::of("nb-range_nested/inputs/1");
        copy.edit(suffix, edit);
        let output = Command::new("sh")
            .args([
                "-c",
                "ulimit -v 1000000; exec \"$0\" verify --backend threads \"$1\"",
            ])
            .arg(env!("CARGO_BIN_EXE_compactor"))
            .arg(copy.directory())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), DAMAGED, "{suffix}: {output:?}");
    }
}

/// Damage is reported as by `verify`, at an offset in the file, not at a position in the uncompressed rows.
#[test]
fn damage_found_before_a_run_has_its_offset() {
    let temp = tempfile::TempDir::new().unwrap();
    let table = generated(temp.path(), &["--shape", "wide", "--size", "200KiB"]);
    flip_middle(&data_files(&table)[1]);
    let arguments = words_and(
        "merge --verify --output out --format json",
        &[table.to_str().unwrap()],
    );
    let out = compactor(temp.path(), &arguments);
    assert_eq!(out.status.code(), Some(3), "{}", stderr(&out));
    let report: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let damage = &report["error"]["damage"];
    assert!(damage["offset"].is_u64(), "{damage}");
    assert!(damage["position"].is_null(), "{damage}");
}

/// A damaged SSTable, and one that cannot be read, among others.
#[test]
fn results_are_the_same_for_any_number_of_threads() {
    let temp = tempfile::tempdir().unwrap();
    let table = generated(temp.path(), &words("--sstables 5 --size 20KiB"));
    let data = data_files(&table);
    flip_middle(&data[1]);
    let statistics = data[3]
        .to_str()
        .unwrap()
        .replace("-Data.db", "-Statistics.db");
    fs::remove_file(&statistics).unwrap();
    fs::create_dir(&statistics).unwrap();
    let verified = |threads: &str| {
        let output = verify(&[&"--threads", &threads, &"--format", &"json", &table]);
        assert_eq!(output.status.code(), DAMAGED, "{output:?}");
        let mut document: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
        for sstable in document["sstables"].as_array_mut().unwrap() {
            sstable["elapsed_s"] = 0.into();
        }
        (document, stderr(&output))
    };
    let expected = verified("1");
    assert_eq!(expected.0["damaged"], 1, "{expected:?}");
    for threads in ["2", "4", "1024"] {
        assert_eq!(verified(threads), expected, "{threads} threads");
    }
}
