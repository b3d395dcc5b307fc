//! Contents of the output directory: SSTables of a single run, in the layout for `nodetool import`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use compactor_testkit::{Need, skip};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::nobody::Nobody;
use crate::support::{
    assert_done, assert_ends, assert_prints, compactor, copy_files, flip_middle, generated, json,
    stderr, text, words_and,
};

fn assert_refused(out: &Output, why: &str) {
    assert_ends(out, 4, why);
}

/// A generated table of a few SSTables; each seed makes another.
fn table(directory: &Path, name: &str, seed: &str) -> PathBuf {
    let made = words_and(
        "generate --rows 2000 --format json --output",
        &[name, "--seed", seed],
    );
    let report = json(&compactor(directory, &made));
    directory.join(report["table_directory"].as_str().unwrap())
}

/// Every file below a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path))
        } else {
            found.push(path)
        }
    }
    found.sort();
    found
}

fn data_files_below(directory: &Path) -> Vec<PathBuf> {
    let mut found = files(directory);
    found.retain(|path| path.to_str().unwrap().ends_with("-Data.db"));
    found
}

#[test]
fn yesterdays_output_is_refused_or_replaced() {
    let temp = TempDir::new().unwrap();
    let here = temp.path();
    let (first, second) = (table(here, "day1", "1"), table(here, "day2", "2"));
    let (first, second) = (first.to_str().unwrap(), second.to_str().unwrap());
    for command in [&["merge"][..], &["compact", "--major"]] {
        let run = |input: &str, more: &[&str]| {
            let arguments = [command, &[input, "--output", "out"], more].concat();
            compactor(here, &arguments)
        };
        assert_done(&run(first, &[]));
        let yesterday = files(&here.join("out"));
        let [old] = &data_files_below(&here.join("out"))[..] else {
            panic!("{yesterday:?}");
        };
        let old = fs::read(old).unwrap();
        for input in [first, second] {
            assert_refused(&run(input, &[]), "--replace-output");
            assert_refused(&run(input, &["--dry-run"]), "--replace-output");
        }
        assert_eq!(files(&here.join("out")), yesterday);
        // A dry run replaces nothing.
        assert_done(&run(second, &["--dry-run", "--replace-output"]));
        assert_eq!(files(&here.join("out")), yesterday);

        // Left by a run that was killed while it wrote its record.
        let unfinished =
            data_files_below(&here.join("out"))[0].with_file_name("compactor-run.json.tmp");
        fs::write(&unfinished, "{").unwrap();
        assert_done(&run(second, &["--replace-output"]));
        assert!(!unfinished.exists());
        let [new] = &data_files_below(&here.join("out"))[..] else {
            panic!("{:?}", files(&here.join("out")));
        };
        assert_ne!(fs::read(new).unwrap(), old);
        let verified = compactor(here, &["verify", new.parent().unwrap().to_str().unwrap()]);
        assert_done(&verified);
        fs::remove_dir_all(here.join("out")).unwrap();
    }
    assert_eq!(fs::read_dir(here).unwrap().count(), 2, "{:?}", files(here));
}

/// A run without outputs removes the previous outputs too.
#[test]
fn a_run_without_outputs_replaces_too() {
    let temp = TempDir::new().unwrap();
    let here = temp.path();
    let first = table(here, "day1", "1");
    let merged = ["merge", first.to_str().unwrap(), "--output", "out"];
    assert_done(&compactor(here, &merged));
    // One SSTable: there is nothing to compact.
    let [one] = &data_files_below(&here.join("out"))[..] else {
        panic!();
    };
    let apart = here.join("apart");
    copy_files(one.parent().unwrap(), &apart);
    let compacted = ["compact", "apart", "--output", "out", "--replace-output"];
    assert_done(&compactor(here, &compacted));
    assert!(data_files_below(&here.join("out")).len() <= 1);
    let nothing = words_and(
        "compact apart",
        &["--output", one.parent().unwrap().to_str().unwrap()],
    );
    let nothing = [&nothing[..], &["--replace-output"]].concat();
    let out = compactor(here, &nothing);
    assert_prints(&out, "were removed: this run has no output");
    assert!(data_files_below(&here.join("out")).is_empty());
}

#[test]
fn an_incomplete_compaction_replaces_nothing() {
    let temp = TempDir::new().unwrap();
    let here = temp.path();
    let first = table(here, "day1", "1");
    let first = first.to_str().unwrap();
    assert_done(&compactor(here, &["merge", first, "--output", "out"]));
    let before = files(&here.join("out"));
    flip_middle(&data_files_below(Path::new(first))[0]);
    let options =
        "compact --strategy-option min_threshold=2 --strategy-option max_threshold=2 --output";
    let compact = |output: &str, more: &[&str]| {
        let arguments = words_and(options, &[&[output, first][..], more].concat());
        compactor(here, &arguments)
    };
    let out = compact("out", &["--replace-output"]);
    assert_eq!(out.status.code(), Some(3), "{}", text(&out.stderr));
    assert_prints(
        &out,
        "are still there, since not everything could be compacted",
    );
    assert_eq!(files(&here.join("out")), before);
    // If that is certain from the start, nothing is merged.
    let statistics = Path::new(first).join("oa-1-big-Statistics.db");
    fs::rename(&statistics, here.join("away")).unwrap();
    let out = compact("out", &["--replace-output", "--format", "json"]);
    assert_eq!(out.status.code(), Some(3), "{}", text(&out.stderr));
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(
        (&report["compactions"], &report["rounds"]),
        (&0.into(), &0.into()),
        "{report}"
    );
    assert_eq!(files(&here.join("out")), before);
    fs::rename(here.join("away"), &statistics).unwrap();
    // In another directory the finished outputs are kept.
    let out = compact("new", &[]);
    assert_eq!(out.status.code(), Some(3), "{}", text(&out.stderr));
    assert!(!data_files_below(&here.join("new")).is_empty());
}

#[test]
fn each_command_refuses_a_directory_of_other_sstables() {
    let temp = TempDir::new().unwrap();
    let here = temp.path();
    let (own, other) = (table(here, "own", "1"), table(here, "other", "2"));
    let own = own.to_str().unwrap();
    let snapshot = other.join("snapshots/before");
    fs::create_dir_all(&snapshot).unwrap();
    for file in fs::read_dir(&other).unwrap() {
        let file = file.unwrap().path();
        if file.is_file() {
            fs::hard_link(&file, snapshot.join(file.file_name().unwrap())).unwrap();
        }
    }
    let backups = other.join("backups");
    fs::create_dir(&backups).unwrap();
    let before = files(&other);
    for directory in [&other, &snapshot, &backups] {
        for command in [
            &["merge"][..],
            &["merge", "--replace-output"],
            &["compact", "--major"],
            &["compact", "--replace-output"],
            &["upgrade", "--sstable-version", "oa"],
            &["split", "--size", "1KiB"],
            &["scrub"],
        ] {
            let rest = [own, "--output", directory.to_str().unwrap()];
            let out = compactor(here, &[command, &rest].concat());
            assert_refused(&out, "hoose");
        }
    }
    assert_eq!(files(&other), before);
}

/// The first run is throttled; the second must not wait for it.
#[test]
fn a_second_run_into_the_same_directory_is_refused_at_once() {
    let temp = TempDir::new().unwrap();
    let here = temp.path();
    let table = generated(here, &["--size", "6MiB"]);
    let mut first = Command::new(env!("CARGO_BIN_EXE_compactor"))
        .args(["merge", table.to_str().unwrap(), "--output", "out"])
        .args(["--throughput", "1MiB", "--progress", "none"])
        .current_dir(here)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let is_at_work = || {
        let inside = |path: PathBuf| fs::read_dir(path).into_iter().flatten().flatten();
        let own = |name: &str| name.starts_with(".compactor-");
        let places = [here.join("out")].into_iter().chain(
            inside(here.join("out"))
                .flat_map(|entry| inside(entry.path()))
                .map(|entry| entry.path()),
        );
        places
            .flat_map(inside)
            .any(|entry| entry.file_name().to_str().is_some_and(own))
    };
    while !is_at_work() {
        assert!(first.try_wait().unwrap().is_none(), "it has ended");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    for more in [
        &["merge"][..],
        &["compact", "--major"],
        &["merge", "--verify"],
    ] {
        let rest = [table.to_str().unwrap(), "--output", "out"];
        let out = compactor(here, &[more, &rest].concat());
        assert_refused(&out, "another run");
        assert!(first.try_wait().unwrap().is_none(), "it waited");
    }
    first.kill().unwrap();
    first.wait().unwrap();
    // The next run removes the files it left.
    let again = ["merge", table.to_str().unwrap(), "--output", "out"];
    assert_done(&compactor(here, &again));
    assert_eq!(data_files_below(&here.join("out")).len(), 1);
    let left = files(&here.join("out"));
    let is_hidden = |path: &PathBuf| {
        let path = path.strip_prefix(here).unwrap();
        path.to_str().unwrap().contains("/.")
    };
    assert!(!left.iter().any(is_hidden), "{left:?}");
}

#[test]
fn foreign_files_are_kept() {
    let temp = TempDir::new().unwrap();
    let here = temp.path();
    let own = table(here, "own", "1");
    for name in [".compactor-notes", ".compactor-1-2-3"] {
        fs::create_dir_all(here.join("out").join(name)).unwrap();
        fs::write(here.join("out").join(name).join("mine"), "x").unwrap();
    }
    let merge = ["merge", own.to_str().unwrap(), "--output", "out"];
    assert_done(&compactor(here, &merge));
    for name in [".compactor-notes", ".compactor-1-2-3"] {
        assert!(here.join("out").join(name).join("mine").exists(), "{name}");
    }
}

#[test]
fn outputs_have_the_import_layout_and_the_commands_mention_it() {
    let temp = TempDir::new().unwrap();
    let here = temp.path().canonicalize().unwrap();
    let own = table(&here, "own", "1");
    let own = own.to_str().unwrap();
    let odd = "it's a directory";
    for command in [&["merge"][..], &["compact", "--major"]] {
        for (output, flat, directory) in [
            ("out", false, "out/generated/kv"),
            ("flat", true, "flat"),
            ("x/generated/kv", false, "x/generated/kv"),
            (odd, false, "it's a directory/generated/kv"),
        ] {
            let run = |more: &[&str]| {
                let flat: &[&str] = if flat { &["--flat"] } else { &[] };
                let rest = [own, "--output", output];
                compactor(&here, &[command, &rest, flat, more].concat())
            };
            let report = json(&run(&["--format", "json"]));
            let path = Path::new(report["outputs"][0]["data_path"].as_str().unwrap());
            assert_eq!(path.parent().unwrap(), Path::new(directory));
            assert!(here.join(path).exists());
            let absolute = here.join(directory);
            let commands = &report["commands"];
            let asked_for = here.join(output);
            let swap = serde_json::json!({"purpose": "swap", "argv": ["compactor", "swap", asked_for,
                "--into", own, "--inputs-to", format!("{}-inputs", asked_for.display())]});
            if flat {
                assert_eq!(*commands, serde_json::json!([swap]))
            } else {
                assert_eq!(
                    *commands,
                    serde_json::json!([
                        swap,
                        {"purpose": "import", "argv": ["nodetool", "import", "--keep-repaired",
                            "--extended-verify", "generated", "kv", absolute]},
                        {"purpose": "verify",
                            "argv": ["sstableverify", "-f", "-e", "generated", "kv"]},
                    ])
                )
            }
            let again = run(&["--replace-output"]);
            assert_done(&again);
            let printed = text(&again.stdout);
            assert_eq!(printed.contains("nodetool import"), !flat, "{printed}");
            assert!(
                printed.contains("node stopped:\n  compactor swap "),
                "{printed}"
            );
            if output == odd {
                assert!(
                    printed.contains("'\\''s a directory/generated/kv'\n"),
                    "{printed}"
                );
            }
            let nested = fs::read_dir(here.join(directory)).unwrap();
            assert!(nested.flatten().all(|entry| entry.path().is_file()));
        }
        for output in ["out", "flat", "x", odd] {
            fs::remove_dir_all(here.join(output)).unwrap();
        }
    }
}

/// Without a table directory or a schema; and with a schema alone.
#[test]
fn an_unknown_table_is_not_guessed() {
    let temp = TempDir::new().unwrap();
    let here = temp.path();
    let own = table(here, "own", "1");
    let apart = here.join("apart");
    copy_files(&own, &apart);
    let merge = |output: &str| {
        let merge = ["merge", "apart", "--output", output, "--format", "json"];
        let report = json(&compactor(here, &merge));
        let path = report["outputs"][0]["data_path"].as_str().unwrap();
        Path::new(path).parent().unwrap().to_owned()
    };
    assert_eq!(merge("known"), Path::new("known/generated/kv"));
    fs::remove_file(apart.join("schema.cql")).unwrap();
    assert_eq!(merge("unknown"), Path::new("unknown"));
    let out = compactor(here, &["merge", "apart", "--output", "again"]);
    assert_prints(&out, "--schema");
}

/// A node reads a table directory without an id, if there is one, instead of its own.
#[test]
fn a_nodes_data_directory_is_no_output_directory() {
    let temp = TempDir::new().unwrap();
    let here = temp.path();
    let own = table(here, "data", "1");
    for command in [&["merge"][..], &["compact", "--major"]] {
        let rest = [own.to_str().unwrap(), "--output", "data"];
        let out = compactor(here, &[command, &rest].concat());
        assert_refused(&out, "instead of its own");
    }
    assert!(!here.join("data/generated/kv").exists());
}

/// Needs root, as tests in a container have.
#[test]
fn outputs_written_by_root_belong_to_the_owner_of_the_inputs() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
    let temp = TempDir::new().unwrap();
    let here = temp.path();
    if fs::metadata(here).unwrap().uid() != 0 {
        skip(Need::Root, "only root can change the owner of files");
        return;
    }
    let own = table(here, "own", "1");
    for file in files(&own) {
        chown(&file, Some(1234), Some(5678)).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    }
    chown(&own, Some(1234), Some(5678)).unwrap();
    fs::set_permissions(&own, fs::Permissions::from_mode(0o750)).unwrap();
    let of = |path: &Path| {
        let metadata = fs::metadata(path).unwrap();
        (metadata.uid(), metadata.gid(), metadata.mode() & 0o777)
    };
    for command in [
        &["merge"][..],
        &["compact", "--major"],
        &["upgrade", "--sstable-version", "nb"],
        &["split", "--size", "20KiB"],
        &["scrub"],
    ] {
        let rest = [own.to_str().unwrap(), "--output", "out"];
        assert_done(&compactor(here, &[command, &rest].concat()));
        let written = data_files_below(&here.join("out"));
        assert!(!written.is_empty());
        for data in &written {
            assert_eq!(
                of(data.parent().unwrap()),
                (1234, 5678, 0o750),
                "{command:?}"
            );
        }
        // The record of the run is not the node's.
        let of_sstables = |file: &PathBuf| !file.ends_with("compactor-run.json");
        for file in files(&here.join("out")).into_iter().filter(of_sstables) {
            assert_eq!(of(&file), (1234, 5678, 0o640), "{}", file.display());
        }
        assert_eq!(of(&here.join("out")), (1234, 5678, 0o750), "{command:?}");
        fs::remove_dir_all(here.join("out")).unwrap();
    }
}

/// A node imports only files that its user may move.
#[test]
fn outputs_of_another_user_than_the_nodes_are_a_warning() {
    let temp = TempDir::new().unwrap();
    let here = temp.path();
    let Some(nobody) = Nobody::in_directory(here) else {
        return;
    };
    let own = table(here, "own", "1");
    let own = own.to_str().unwrap();
    let of_root = ["merge", own, "--output", "of-root"];
    assert!(!stderr(&nobody.run(&[&of_root[..], &["--dry-run"]].concat())).contains("chown"));
    std::os::unix::fs::chown(own, Some(1234), None).unwrap();
    for command in [&["compact", "--major", "--dry-run"][..], &["merge"]] {
        let line = [command, &[own, "--output", "out"]].concat();
        let chown = format!("chown -R 1234 {}/out/generated/kv", here.display());
        assert_ends(&nobody.run(&line), 0, &chown);
    }
    // Root changes the owner of the outputs, and copies are not in a node's directory.
    assert!(!stderr(&compactor(here, &of_root)).contains("chown"));
    copy_files(Path::new(own), &here.join("copy"));
    let of_copy = nobody.run(&["merge", "copy", "--output", "of-copy"]);
    assert_done(&of_copy);
    assert!(!stderr(&of_copy).contains("chown"));
}

/// A mistyped output directory does not destroy another table.
#[test]
fn only_sstables_of_the_same_table_are_replaced() {
    let temp = TempDir::new().unwrap();
    let here = temp.path();
    let kv = table(here, "kv", "1");
    let made = [
        "generate", "--output", "wide", "--shape", "wide", "--rows", "2000",
    ];
    assert_done(&compactor(here, &made));
    let copied = |from: &Path, to: &str| {
        fs::create_dir_all(here.join(to)).unwrap();
        for file in files(from) {
            fs::copy(&file, here.join(to).join(file.file_name().unwrap())).unwrap();
        }
    };
    copied(&here.join("wide"), "foreign");
    copied(&kv, "same");
    copied(&kv, "broken");
    fs::write(here.join("broken/oa-2-big-Statistics.db"), "x").unwrap();
    let own = kv.to_str().unwrap();
    for (output, name) in [
        ("foreign", "oa-1-big-Data.db"),
        ("broken", "oa-2-big-Data.db"),
    ] {
        let before = files(&here.join(output));
        for more in [&["--dry-run"][..], &[]] {
            let merge = words_and("merge --flat --replace-output", &[own, "--output", output]);
            let refused = compactor(here, &[&merge, more].concat());
            assert_refused(&refused, &format!("{output}/{name} would be replaced"));
            assert_refused(&refused, "Choose another directory");
            assert_eq!(files(&here.join(output)), before);
        }
    }
    let replace = |input: &str, output: &str| {
        let merge = words_and(
            "merge --flat --replace-output",
            &[input, "--output", output],
        );
        compactor(here, &merge)
    };
    assert_done(&replace(own, "same"));
    // Written by a run, but of another table.
    let before = files(&here.join("same"));
    let refused = replace("foreign", "same");
    assert_refused(&refused, "not of the table of the inputs");
    assert_eq!(files(&here.join("same")), before);
    // Written by a run, whatever became of it.
    for file in files(&here.join("same")) {
        if file.to_str().unwrap().ends_with("-Statistics.db") {
            fs::write(file, "x").unwrap();
        }
    }
    assert_done(&replace(own, "same"));
}
