//! Directories of inputs and outputs, when links give files several names.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use compactor_testkit::machine::Mount;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{
    assert_done, assert_ends, compactor, data_files, generated, text, words, words_and,
};

const INPUTS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../compactor-sstable/testdata/oa-range_nested/inputs"
);

fn merge(directory: &Path, arguments: &[&str]) -> Output {
    compactor(directory, &words_and("merge", arguments))
}

/// Links the files of SSTables under other names in another directory; returns the paths of their `Data.db`.
fn link_all(
    from: &Path,
    to: &Path,
    link: impl Fn(&Path, &Path) -> std::io::Result<()>,
) -> Vec<PathBuf> {
    fs::create_dir_all(to).unwrap();
    let mut data = Vec::new();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if !entry.file_type().unwrap().is_file() {
            continue;
        }
        let name = to.join(entry.file_name());
        link(&entry.path(), &name).unwrap();
        if name.to_str().unwrap().ends_with("-Data.db") {
            data.push(name);
        }
    }
    data.sort();
    data
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::copy(from, to).map(drop)
}

/// Three SSTables in `name`.
fn table(directory: &Path, name: &str) -> Vec<PathBuf> {
    let table = directory.join(name);
    let numbers = ["1", "2", "3"];
    numbers
        .iter()
        .flat_map(|number| link_all(&Path::new(INPUTS).join(number), &table, copy))
        .collect()
}

fn assert_refused(out: &Output, why: &str) {
    assert_ends(out, 4, why);
}

#[test]
fn an_output_next_to_symbolic_links_to_its_inputs_is_refused() {
    let temp = TempDir::new().unwrap();
    let here = temp.path();
    table(here, "real");
    link_all(&here.join("real"), &here.join("sy"), |from, to| {
        symlink(from, to)
    });
    for output in ["sy", "real", "sy/../sy"] {
        let out = merge(here, &["sy", "--output", output]);
        assert_refused(&out, "is where the inputs are");
    }
    symlink("sy", here.join("other")).unwrap();
    let out = merge(here, &["sy", "--output", "other"]);
    assert_refused(&out, "is where the inputs are");
    let out = merge(here, &["sy", "--output", "out"]);
    assert_done(&out);
}

/// As in a container that has the node's directory twice. The SSTables there would be replaced.
#[test]
fn an_output_in_a_second_mount_of_the_inputs_is_refused() {
    let temp = TempDir::new().unwrap();
    let here = temp.path();
    let table_directory = "ks/t-1c6a0d30a2a011ef8f7a0b1c2d3e4f50";
    let data = table(here, table_directory);
    let snapshot = here.join(table_directory).join("snapshots/before");
    link_all(&here.join(table_directory), &snapshot, copy);
    let Some(mount) = Mount::bind(here) else {
        return;
    };
    let output = mount.path().join(table_directory);
    let output = output.to_str().unwrap();
    for (input, why) in [
        (&data[0], "is where the inputs are"),
        (&snapshot, "is the table's own directory"),
    ] {
        let input = input.to_str().unwrap();
        let arguments = [input, "--flat", "--replace-output", "--output", output];
        assert_refused(&merge(here, &arguments), why);
    }
    table(here, "t");
    let options = "t --gc-grace-seconds 0 --flat --replace-output --overlapping";
    let arguments = words_and(options, &[table_directory, "--output", output]);
    assert_refused(&merge(here, &arguments), "named as overlapping");
    assert!(data.iter().all(|path| path.exists()));
}

/// A directory that is a mount point cannot be exchanged, also if it is of the same file system as its parent.
#[test]
fn an_output_that_cannot_be_replaced_is_refused_before_the_merge() {
    let temp = TempDir::new().unwrap();
    let here = temp.path();
    table(here, "in");
    assert_done(&merge(here, &["in", "--flat", "--output", "out"]));
    let before = data_files(&here.join("out"));
    let Some(mount) = Mount::bind(&here.join("out")) else {
        return;
    };
    let output = mount.path().to_str().unwrap();
    let again = ["in", "--flat", "--replace-output", "--output", output];
    assert_refused(&merge(here, &again), "cannot be replaced in one step");
    assert_eq!(data_files(&here.join("out")), before);
}

/// The inputs would count as moved, and then be removed.
#[test]
fn inputs_are_not_moved_to_a_second_mount_of_their_table() {
    let temp = TempDir::new().unwrap();
    let here = temp.path();
    let table_directory = "ks/t-1c6a0d30a2a011ef8f7a0b1c2d3e4f50";
    let data = table(here, table_directory);
    let Some(mount) = Mount::bind(here) else {
        return;
    };
    let out = merge(here, &[table_directory, "--output", "out"]);
    assert_done(&out);
    for (directory, why) in [
        (table_directory, "in the table's own directory"),
        ("out/ks/t/inputs", "in the run's own output directory"),
    ] {
        let inputs_to = mount.path().join(directory);
        let options = words_and("swap out --inputs-to", &[inputs_to.to_str().unwrap()]);
        let arguments = words_and("--into", &[table_directory]);
        let out = compactor(here, &[options, arguments].concat());
        assert_ends(&out, 2, why);
    }
    assert!(data.iter().all(|path| path.exists()));
}

/// Creating the directories of such a path would end in the directory of the inputs.
#[test]
fn an_output_with_dotdot_after_a_missing_directory_is_refused() {
    let temp = TempDir::new().unwrap();
    let here = temp.path();
    table(here, "real");
    for output in [
        "real/new/..",
        "real/new/../",
        "none/../real",
        "real/new/./../sub",
    ] {
        let out = merge(here, &["real", "--output", output]);
        assert_refused(&out, "without `..`");
    }
    assert!(!here.join("real/new").exists());
    fs::create_dir(here.join("real/old")).unwrap();
    let out = merge(here, &["real", "--output", "real/old/.."]);
    assert_refused(&out, "is where the inputs are");
    let out = merge(here, &["real", "--output", "real/../out"]);
    assert_done(&out);
}

/// JSON cannot contain paths that are not UTF-8; a report must not fail for them after the work is done.
#[test]
fn names_that_are_not_utf8_are_reported_as_json() {
    let temp = TempDir::new().unwrap();
    let here = temp.path();
    table(here, "plain");
    let odd = OsStr::from_bytes(b"odd-\xff");
    fs::rename(here.join("plain"), here.join(odd)).unwrap();
    let made = OsStr::from_bytes(b"made-\xff");
    for (arguments, directory) in [
        ("doctor --format json", odd),
        ("generate --format json --rows 5 --output", made),
        ("scrub --format json --output scrubbed", odd),
        ("merge --format json --output merged", odd),
    ] {
        let out = Command::new(env!("CARGO_BIN_EXE_compactor"))
            .args(words(arguments))
            .arg(directory)
            .current_dir(here)
            .output()
            .unwrap();
        assert!(out.status.success(), "{arguments:?}: {}", text(&out.stderr));
        let json: Result<serde_json::Value, _> = serde_json::from_slice(&out.stdout);
        assert!(json.is_ok(), "{arguments:?}: {}", text(&out.stdout));
    }
}

#[test]
fn an_output_next_to_hard_links_of_its_inputs_is_refused() {
    let temp = TempDir::new().unwrap();
    let here = temp.path();
    table(here, "real");
    link_all(&here.join("real"), &here.join("live"), |from, to| {
        fs::hard_link(from, to)
    });
    let out = merge(here, &["real", "--output", "live"]);
    assert_refused(&out, "under another name");
    // A copy of an input is another file: it may be replaced, but not kept.
    table(here, "copies");
    let out = merge(here, &["real", "--output", "copies"]);
    assert_refused(&out, "holds SSTables already");
    let out = merge(here, &["real", "--output", "copies", "--replace-output"]);
    assert_done(&out);
}

#[test]
fn sstables_next_to_the_target_of_a_symbolic_link_belong_to_the_table() {
    let temp = TempDir::new().unwrap();
    let here = temp.path();
    let data = table(here, "real");
    let linked = link_all(&here.join("real"), &here.join("sy"), |from, to| {
        // Not the third.
        if from.to_str().unwrap().contains("-3-big-") {
            Ok(())
        } else {
            symlink(from, to)
        }
    });
    let (first, second) = (linked[0].to_str().unwrap(), linked[1].to_str().unwrap());
    let out = merge(here, &[first, second, "--output", "out", "--complete"]);
    assert_refused(&out, "in the same directory");
    let out = merge(here, &["sy", "--output", "out", "--complete"]);
    assert_refused(&out, "in the same directory");

    symlink(&data[2], here.join("sy").join(data[2].file_name().unwrap())).unwrap();
    for component in fs::read_dir(here.join("real")).unwrap() {
        let component = component.unwrap().path();
        let _ = symlink(
            &component,
            here.join("sy").join(component.file_name().unwrap()),
        );
    }
    let complete = ["--complete", "--gc-grace-seconds=864000"];
    let out = merge(here, &[&["sy", "--output", "out"], &complete[..]].concat());
    assert_done(&out);
}

#[test]
fn a_complete_snapshot_is_not_the_complete_table() {
    const TABLE: &str = "ks/t-1c6a0d30a2a011ef8f7a0b1c2d3e4f50";
    let temp = TempDir::new().unwrap();
    let here = temp.path();
    table(here, TABLE);
    let table = here.join(TABLE);
    for (number, place) in ["snapshots/before", "backups"].iter().enumerate() {
        let snapshot = table.join(place);
        link_all(&table, &snapshot, |from, to| fs::hard_link(from, to));
        let output = format!("out{number}");
        let arguments = words_and(
            "--complete --gc-grace-seconds=864000 --format json",
            &[snapshot.to_str().unwrap(), "--output", &output],
        );
        let out = merge(here, &arguments);
        assert_done(&out);
        assert!(
            !text(&out.stdout).contains("neither in the snapshot"),
            "{place}"
        );
    }
    flush(&table, "-9-");
    for place in ["snapshots/before", "backups"] {
        let snapshot = table.join(place);
        let arguments = words_and(
            "--output later --replace-output --complete --gc-grace-seconds=864000",
            &[snapshot.to_str().unwrap()],
        );
        let out = merge(here, &arguments);
        if place == "backups" {
            assert_ends(&out, 4, "while incremental backups were enabled");
            continue;
        }
        assert_done(&out);
        let printed = text(&out.stdout);
        assert!(
            printed.contains("has 1 SSTable that is neither in the snapshot"),
            "{place}: {printed}"
        );
    }
    flush(&table, "-10-");
    for (others, is_noted) in [("oa-9-big-Data.db", true), ("", false)] {
        let (snapshot, others) = (table.join("snapshots/before"), table.join(others));
        let arguments = words_and(
            "--output later --replace-output --gc-grace-seconds=864000 --overlapping",
            &[others.to_str().unwrap(), snapshot.to_str().unwrap()],
        );
        let out = merge(here, &arguments);
        assert_done(&out);
        let printed = text(&out.stdout);
        let note = "has 1 SSTable that is neither in the snapshot nor named";
        assert_eq!(printed.contains(note), is_noted, "{printed}");
    }
}

/// An SSTable that the table got after its snapshot was taken.
fn flush(table: &Path, id: &str) {
    for entry in fs::read_dir(Path::new(INPUTS).join("1")).unwrap() {
        let entry = entry.unwrap().path();
        let name = entry.file_name().unwrap().to_str().unwrap();
        fs::copy(&entry, table.join(name.replacen("-1-", id, 1))).unwrap();
    }
}

/// A symbolic link to a `Data.db` without its other components is not reported as damage.
#[test]
fn a_lone_link_to_a_data_file_is_no_damage() {
    let temp = TempDir::new().unwrap();
    let here = temp.path().canonicalize().unwrap();
    let data = table(&here, "real");
    fs::create_dir(here.join("sy")).unwrap();
    let link = here.join("sy").join(data[0].file_name().unwrap());
    symlink(&data[0], &link).unwrap();
    for command in ["merge", "scrub", "verify", "metadata", "dump"] {
        let writes = matches!(command, "merge" | "scrub");
        let out = Command::new(env!("CARGO_BIN_EXE_compactor"))
            .args([command, link.to_str().unwrap()])
            .args(writes.then_some("--output=out"))
            .current_dir(&here)
            .output()
            .unwrap();
        let stderr = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{command}: {stderr}");
        assert!(stderr.contains("is a symbolic link to"), "{stderr}");
        assert!(stderr.contains(data[0].to_str().unwrap()), "{stderr}");
        assert!(!here.join("out").exists());
    }

    // It is, if the other files are missing next to the link's target too.
    fs::remove_file(here.join("real/oa-1-big-Index.db")).unwrap();
    let out = merge(&here, &[link.to_str().unwrap(), "--output", "out"]);
    assert_eq!(out.status.code(), Some(3), "{}", text(&out.stderr));
}

#[test]
fn hard_links_to_an_sstable_are_read_once() {
    let temp = TempDir::new().unwrap();
    let here = temp.path();
    table(here, "t");
    link_all(
        &here.join("t"),
        &here.join("t/snapshots/before"),
        |from, to| fs::hard_link(from, to),
    );
    let inputs = [
        "t",
        "t/snapshots/before",
        "--output",
        "out",
        "--format",
        "json",
    ];
    let out = merge(here, &inputs);
    assert_done(&out);
    let message = "3 of the SSTables are each a hard link to one that is named as well";
    assert!(text(&out.stderr).contains(message), "{}", text(&out.stderr));
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(report["inputs"].as_array().unwrap().len(), 3, "{report}");

    // Skipped links are named, and are not taken for SSTables that appeared during the merge.
    let link = |name: &str, ids: [&str; 2]| {
        fs::create_dir_all(here.join("t/snapshots").join(name)).unwrap();
        for entry in fs::read_dir(here.join("t")).unwrap() {
            let path = entry.unwrap().path();
            let file = path.file_name().unwrap().to_str().unwrap();
            if ids.iter().any(|id| file.starts_with(&format!("oa-{id}-"))) {
                fs::hard_link(&path, here.join("t/snapshots").join(name).join(file)).unwrap();
            }
        }
    };
    link("a", ["1", "2"]);
    link("b", ["2", "3"]);
    for (output, inputs, count) in [
        ("1", "t/snapshots/a t/snapshots/b --complete", 3),
        (
            "2",
            "t/oa-1-big-Data.db --overlapping t/snapshots/before --overlapping t",
            1,
        ),
        ("3", "t/snapshots/a --overlapping t", 2),
        ("4", "t/oa-1-big-Data.db t/snapshots/before --complete", 3),
    ] {
        let options = "--gc-grace-seconds 0 --format json --output";
        let arguments = format!("{inputs} {options} {output}");
        let out = merge(here, &words(&arguments));
        assert_done(&out);
        let report: Value = serde_json::from_slice(&out.stdout).unwrap();
        assert_eq!(
            report["inputs"].as_array().unwrap().len(),
            count,
            "{report}"
        );
    }
}

/// Inputs in a snapshot do not overlap their own hard links in the table's directory.
#[test]
fn hard_links_do_not_keep_tombstones() {
    let temp = TempDir::new().unwrap();
    let here = temp.path();
    let data = generated(here, &["--shape", "tombstones", "--size", "200KiB"]);
    let part = here.join("part");
    for data in &data_files(&data)[..2] {
        for entry in fs::read_dir(data.parent().unwrap()).unwrap() {
            let path = entry.unwrap().path();
            let (name, own) = (path.file_name().unwrap(), data.file_name().unwrap());
            let prefix = own.to_str().unwrap().trim_end_matches("Data.db");
            if name.to_str().unwrap().starts_with(prefix) {
                fs::create_dir_all(&part).unwrap();
                fs::hard_link(&path, part.join(name)).unwrap();
            }
        }
    }
    let third = data_files(&data)[2].clone();
    let purged = |output: &str, overlapping: &Path| {
        let options = "part --gc-grace-seconds 0 --format json --overlapping";
        let paths = [overlapping.to_str().unwrap(), "--output", output];
        let out = merge(here, &words_and(options, &paths));
        assert_done(&out);
        let report: Value = serde_json::from_slice(&out.stdout).unwrap();
        report["purged"]["total"].as_u64().unwrap()
    };
    let by_file = purged("1", &third);
    assert!(by_file > 0);
    assert_eq!(purged("2", &data), by_file);
}

#[test]
fn a_directory_and_a_pipe_are_no_data_files() {
    let temp = TempDir::new().unwrap();
    let here = temp.path();
    fs::create_dir_all(here.join("d/oa-1-big-Data.db")).unwrap();
    fs::create_dir(here.join("p")).unwrap();
    let pipe = here.join("p/oa-1-big-Data.db");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    for directory in ["d", "p"] {
        for arguments in [
            &["merge", directory, "--output", "out"][..],
            &["dump", directory],
        ] {
            assert_ends(&compactor(here, arguments), 2, "not a regular file");
        }
    }
}

#[test]
fn a_data_file_alone_needs_its_other_files() {
    let temp = TempDir::new().unwrap();
    let here = temp.path();
    let data = table(here, "t");
    for entry in fs::read_dir(here.join("t")).unwrap() {
        let path = entry.unwrap().path();
        if path.to_str().unwrap().contains("oa-1-") && path != data[0] {
            fs::remove_file(path).unwrap();
        }
    }
    let out = merge(here, &["t", "--output", "out"]);
    assert_ends(&out, 3, "take all files of the SSTable");
}

#[test]
fn all_commands_report_a_dangling_link_as_a_missing_component() {
    let temp = TempDir::new().unwrap();
    let here = temp.path();
    let data = table(here, "t");
    let data = data[0].to_str().unwrap();
    for component in ["Statistics.db", "CompressionInfo.db", "Index.db"] {
        let path = here.join("t").join(format!("oa-1-big-{component}"));
        let elsewhere = here.join(component);
        fs::rename(&path, &elsewhere).unwrap();
        symlink("nowhere", &path).unwrap();
        for arguments in [
            &["metadata", data][..],
            &["verify", data],
            &["merge", data, "--output", "out"],
        ] {
            let out = compactor(here, arguments);
            let (stdout, stderr) = (text(&out.stdout), text(&out.stderr));
            assert_eq!(out.status.code(), Some(3), "{arguments:?}: {stderr}");
            assert!(
                stdout.contains(component) || stderr.contains(component),
                "{arguments:?}: {stdout}{stderr}"
            );
        }
        fs::remove_file(&path).unwrap();
        fs::rename(&elsewhere, &path).unwrap();
    }
    symlink("nowhere", here.join("t/oa-9-big-Data.db")).unwrap();
    let out = merge(
        here,
        &["t", "--output", "out", "--complete", "--gc-before", "0"],
    );
    assert_ends(&out, 1, "open t/oa-9-big-Data.db: ");
}
