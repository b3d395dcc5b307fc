//! Abnormal ends of a command: signals, resource limits, closed pipes.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output};

use compactor_testkit::machine::{disk_directory, has_strace};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::at_work::AtWork;
use crate::support::{assert_done, compactor, data_files, flip, generated, names_in, words};

const COMPACTOR: &str = env!("CARGO_BIN_EXE_compactor");

/// Starts a demo and waits until it is running. `hangup`: option of `env` that sets the disposition of SIGHUP, since
/// the tests may have inherited another.
fn demo_at_work(hangup: &str, directory: &Path) -> AtWork {
    let mut command = Command::new("env");
    command.arg(format!("{hangup}=HUP"));
    command.args([COMPACTOR, "demo", "--size", "64MiB"]);
    AtWork::since(command.current_dir(directory), "generating")
}

/// Runs a shell script, in which COMPACTOR is the command; returns its output, and stderr as text.
fn shell(directory: &TempDir, script: &str) -> (Output, String) {
    let output = Command::new("sh")
        .args(["-c", &script.replace("COMPACTOR", COMPACTOR)])
        .current_dir(directory.path())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, stderr)
}

#[test]
fn an_interrupted_demo_exits_with_130_and_leaves_nothing() {
    for name in ["INT", "TERM", "HUP"] {
        let directory = disk_directory();
        let mut demo = demo_at_work("--default-signal", directory.path());
        demo.signal(name);
        if name == "HUP" {
            // One after the other, as sent by the shell and the kernel.
            demo.signal(name);
        }
        let rest = demo.ends_with(130);
        assert!(rest.contains("interrupted"), "{rest}");
        assert_eq!(names_in(directory.path()), [""; 0], "{name}");
    }
}

#[test]
fn a_demo_under_nohup_ignores_sighup() {
    let directory = disk_directory();
    let mut demo = demo_at_work("--ignore-signal", directory.path());
    demo.signal("HUP");
    demo.ends_with(0);
}

#[test]
fn files_of_a_killed_demo_are_removed_by_the_next() {
    let directory = disk_directory();
    let mut demo = demo_at_work("--default-signal", directory.path());
    demo.child.kill().unwrap();
    assert_eq!(demo.child.wait().unwrap().signal(), Some(9));
    assert_eq!(names_in(directory.path()).len(), 1);
    let next = compactor(directory.path(), &["demo", "--size", "1MiB"]);
    assert_done(&next);
    assert_eq!(names_in(directory.path()), [""; 0]);
}

#[test]
fn interrupted_commands_report_their_progress_once() {
    let directory = disk_directory();
    let (made, reported) = shell(&directory, "COMPACTOR generate --output data --size 24MiB");
    assert!(made.status.success(), "{reported}");
    for (command, done) in [
        ("upgrade --sstable-version nb --concurrent 1", "upgraded"),
        ("split --size 1MiB", "split"),
        ("scrub --threads 1", "scrubbed"),
    ] {
        let script = format!(
            "COMPACTOR {command} data/generated/kv-* --output new --format json & \
             while [ ! -d new ]; do sleep 0.01; done; kill -s TERM $!; wait $!"
        );
        let (output, stderr) = shell(&directory, &script);
        assert_eq!(output.status.code(), Some(130), "{stderr}");
        let reported: Vec<&str> = stderr
            .lines()
            .filter(|l| l.contains("compactor:"))
            .collect();
        let expected = format!("compactor: interrupted; 0 of 3 SSTables {done}");
        assert_eq!(reported, [expected], "{stderr}");
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(json["interrupted"], true, "{json}");
        assert_eq!(json["failed"].as_array().unwrap().len(), 0, "{json}");
        let _ = fs::remove_dir_all(directory.path().join("new"));
    }
}

#[test]
fn an_interrupted_dump_exits_with_130() {
    let directory = disk_directory();
    let (made, stderr) = shell(
        &directory,
        "COMPACTOR generate --output data --size 4MiB --shape wide",
    );
    assert!(made.status.success(), "{stderr}");
    for (options, times) in [("", 50), ("--enumerate-keys", 50), ("--key none", 2000)] {
        // The pipe is not read before the signal, so that the dump blocks; without output, many inputs keep it busy.
        let script = format!(
            "mkfifo pipe; \
             COMPACTOR dump {options} $(yes data/generated/wide-*/*-Data.db | head -n {times}) > pipe & \
             exec 3< pipe; sleep 0.3; kill -s TERM $!; cat <&3 > /dev/null & wait $!; wait %1; \
             code=$?; rm pipe; exit $code"
        );
        let (output, stderr) = shell(&directory, &script);
        assert_eq!(output.status.code(), Some(130), "{options}: {stderr}");
        assert!(
            stderr.contains("compactor: interrupted\n"),
            "{options}: {stderr}"
        );
    }
}

#[test]
fn an_output_directory_that_cannot_be_made_is_named_with_the_reason() {
    let directory = disk_directory();
    let (made, stderr) = shell(
        &directory,
        "COMPACTOR generate --output data --size 1MiB && ln -s nowhere link",
    );
    assert!(made.status.success(), "{stderr}");
    for (output, reason) in [
        ("/proc/out", "No such file or directory"),
        ("link", "File exists"),
        ("link/below", "File exists"),
    ] {
        let (merge, stderr) = shell(
            &directory,
            &format!("COMPACTOR merge data/generated/kv-* --flat --output {output}"),
        );
        assert_eq!(merge.status.code(), Some(1), "{output}: {stderr}");
        let reported = format!("create directory {output}: {reason}");
        assert!(stderr.contains(&reported), "{output}: {stderr}");
    }
}

/// If two programs write into one directory, the later one replaces nothing. The foreign file appears
/// after the directory was listed: when the output's own Data.db is being written.
#[test]
fn a_file_that_appears_at_the_output_path_is_kept() {
    let directory = disk_directory();
    let script = "COMPACTOR generate --output data --size 1MiB >/dev/null 2>&1 || exit 9; \
         COMPACTOR merge data/generated/kv-* --flat --output new --throughput 1MiB & \
         while kill -0 $! && ! ls new/.compactor-*/*/oa-4-big-Data.db >/dev/null 2>&1; do sleep 0.01; done; \
         echo foreign > new/oa-4-big-Filter.db; wait $!";
    let (output, stderr) = shell(&directory, script);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("oa-4-big-Filter.db"), "{stderr}");
    assert!(stderr.contains("Nothing was replaced"), "{stderr}");
    let new = directory.path().join("new");
    assert_eq!(names_in(&new), ["oa-4-big-Filter.db"]);
    let foreign = std::fs::read(new.join("oa-4-big-Filter.db")).unwrap();
    assert_eq!(foreign, b"foreign\n");
}

/// A write beyond `ulimit -f` raises SIGXFSZ, which by default kills the process.
#[test]
fn exceeding_the_file_size_limit_is_an_ordinary_error() {
    let directory = disk_directory();
    let generate = ["generate", "--output", "data", "--size", "4MiB"];
    let made = compactor(directory.path(), &generate);
    assert_done(&made);
    for arguments in [
        "demo --size 12MiB",
        "generate --output small --size 4MiB",
        "merge data/generated/kv-* --output small --read-io buffered --write-io buffered",
        "merge data/generated/kv-* --output small --backend uring",
        "merge data/generated/kv-* --output small --backend threads --write-io trickle",
        "merge data/generated/kv-* --output small --backend threads --write-io direct",
    ] {
        // In units of 512 or 1024 bytes, depending on the shell.
        let mut script = format!("ulimit -f 1000; exec {COMPACTOR} {arguments}");
        if arguments.ends_with("direct") {
            // Direct I/O cannot write up to an unaligned limit.
            script = format!("exec prlimit --fsize=1000001 {COMPACTOR} {arguments}");
        }
        let (output, stderr) = shell(&directory, &script);
        assert_eq!(output.status.code(), Some(1), "{arguments}: {stderr}");
        if stderr.contains("io_uring does not work here") {
            continue;
        }
        assert!(stderr.contains("ulimit -f"), "{arguments}: {stderr}");
        assert!(
            stderr.contains("Nothing was left behind") && !stderr.contains("room"),
            "{arguments}: {stderr}"
        );
        assert_eq!(names_in(directory.path()), ["data"], "{arguments}");
    }
}

/// A failed write is not reported as an unreadable SSTable.
#[test]
fn exceeding_the_file_size_limit_does_not_advise_no_purge() {
    let directory = disk_directory();
    let script = format!(
        "{COMPACTOR} generate --output data --size 4MiB >/dev/null 2>&1 || exit 9; ulimit -f 1000; \
         exec {COMPACTOR} compact data/generated/kv-* --output small --complete --min-threshold 2"
    );
    let (output, stderr) = shell(&directory, &script);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("Nothing was left behind"), "{stderr}");
    assert!(!stderr.contains("--no-purge"), "{stderr}");
}

/// Four small SSTables are compacted, and then four that are too large.
#[test]
fn published_outputs_are_reported_with_the_failure() {
    let directory = disk_directory();
    let [large, small] = [("large", "300KiB"), ("small", "30KiB")].map(|(name, size)| {
        let place = directory.path().join(name);
        std::fs::create_dir(&place).unwrap();
        let options = format!("--sstables 4 --compression none --size {size}");
        generated(&place, &words(&options))
    });
    for name in names_in(&small) {
        let other_id = name.replacen('-', "-1", 1);
        std::fs::rename(small.join(&name), large.join(other_id)).unwrap();
    }
    let script = format!(
        "ulimit -f 600; exec {COMPACTOR} compact large/data/generated/kv-* --flat --output out \
         --strategy-option min_sstable_size=0"
    );
    let (output, stderr) = shell(&directory, &script);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("Complete outputs are in place"), "{stderr}");
    assert_eq!(
        data_files(&directory.path().join("out")).len(),
        1,
        "{stderr}"
    );
}

/// Outputs stay in place if the report cannot be printed.
#[test]
fn an_unprintable_report_states_that_the_outputs_are_in_place() {
    let directory = disk_directory();
    let data = "data/generated/kv-*";
    for (arguments, reported) in [
        (
            "generate --output data --rows 10".to_owned(),
            "the 3 outputs are in place: data/generated/kv-",
        ),
        (
            format!("merge {data} --output merged"),
            "the output is in place: merged/generated/kv/oa-",
        ),
        (
            format!("scrub {data} --output scrubbed"),
            "the 3 outputs are in place: scrubbed/oa-",
        ),
        ("--help".to_owned(), "write to stdout: No space left"),
    ] {
        let script = format!("exec {COMPACTOR} {arguments} >/dev/full");
        let (output, stderr) = shell(&directory, &script);
        assert_eq!(output.status.code(), Some(1), "{arguments}: {stderr}");
        assert!(stderr.contains(reported), "{arguments}: {stderr}");
    }
}

/// Staging directories are removed even if no descriptor is left to list them.
#[test]
fn a_failure_at_the_descriptor_limit_leaves_nothing() {
    let directory = disk_directory();
    let made = compactor(
        directory.path(),
        &words("generate --output data --rows 100"),
    );
    assert_done(&made);
    let (mut failed, mut done) = (0, 0);
    for limit in (5..30).chain(10..16).chain(10..16) {
        let script = format!(
            "ulimit -n {limit}; exec {COMPACTOR} merge data/generated/kv-*/*-[12]-big-Data.db --output merged"
        );
        let (output, stderr) = shell(&directory, &script);
        if output.status.success() {
            let hidden = |name: &String| name.starts_with('.');
            let merged = directory.path().join("merged/generated/kv");
            assert!(!names_in(&merged).iter().any(hidden));
            std::fs::remove_dir_all(directory.path().join("merged")).unwrap();
            done += 1;
        } else {
            assert_eq!(names_in(directory.path()), ["data"], "{limit}: {stderr}");
            failed += 1;
        }
    }
    // Limits below ten always fail.
    assert!(failed >= 5 && done > 0, "{failed} failed, {done} done");
}

/// `2>&1 | head` closes stderr as well.
#[test]
fn closed_stdout_and_stderr_are_not_an_error() {
    let directory = disk_directory();
    for (arguments, code) in [
        ("demo --size 1MiB", 0),
        ("doctor", 0),
        ("guide operating", 0),
        ("generate --output data --rows 10", 0),
        ("merge data/generated/kv-* --output merged", 0),
        ("verify data/generated/kv-*", 0),
        ("metadata data/generated/kv-*", 0),
        ("dump data/generated/kv-* -k nothing", 1),
        ("--help", 0),
        ("merge nowhere --output x", 2),
        ("merge --threads 0 nowhere --output x", 2),
    ] {
        // The reader exits before anything is written.
        let script = format!("(sleep 0.1; {COMPACTOR} {arguments}; echo $? > code) 2>&1 | true");
        let (ran, _) = shell(&directory, &script);
        assert!(ran.status.success(), "{arguments}");
        let found = std::fs::read_to_string(directory.path().join("code")).unwrap();
        assert_eq!(found.trim(), code.to_string(), "{arguments}");
    }
}

/// With `--format json` a failure is reported as JSON on stdout.
#[test]
fn failures_are_json_if_json_is_requested() {
    let directory = disk_directory();
    let run = |arguments: &str| {
        let script = format!("exec {COMPACTOR} {arguments}");
        let (output, stderr) = shell(&directory, &script);
        (output.status.code().unwrap(), output.stdout, stderr)
    };
    assert_eq!(run("generate --output data --rows 200").0, 0);
    let error = |arguments: &str| {
        let (code, stdout, stderr) = run(&format!("{arguments} --format json"));
        let mut document: serde_json::Value = serde_json::from_slice(&stdout).unwrap();
        let error = document["error"].take();
        assert_eq!(error["exit_code"], code, "{arguments}: {error}");
        let message = error["message"].as_str().unwrap();
        assert!(stderr.contains(message), "{arguments}: {stderr}");
        for line in error["advice"].as_array().unwrap() {
            assert!(stderr.contains(line.as_str().unwrap()), "{error}");
        }
        let (_, silent, again) = run(arguments);
        assert!(silent.is_empty(), "{arguments}");
        assert_eq!(again, stderr, "{arguments}");
        error
    };

    for arguments in [
        "merge nowhere --output merged",
        "compact nowhere --output merged",
        "split nowhere --output merged --size 1MiB",
        "upgrade nowhere --output merged --compression none",
        "scrub nowhere --output merged",
        "verify nowhere",
        "metadata nowhere",
        "generate --output data --rows 200",
        "bench nowhere",
        "lab interference nowhere",
        "lab chunk-length nowhere",
        "lab fio --directory nowhere",
        "lab report nowhere",
        "doctor nowhere",
        "demo --directory nowhere",
    ] {
        let error = error(arguments);
        assert!(error["damage"].is_null(), "{arguments}: {error}");
    }
    assert_eq!(run("dump nowhere").1, b"");

    // `--format json` may come after the argument that cannot be parsed.
    for (arguments, message) in [
        ("merge --threads none --output out --format json", "'none'"),
        ("merge --format=json in", "--output"),
        ("merge --no-such-option --format json", "--no-such-option"),
        ("verify --format json", "required"),
    ] {
        let (code, stdout, stderr) = run(arguments);
        assert_eq!(code, 2, "{arguments}");
        let document: serde_json::Value = serde_json::from_slice(&stdout).unwrap();
        let error = &document["error"];
        assert_eq!(
            (&error["exit_code"], &error["kind"]),
            (&2.into(), &"usage".into())
        );
        let reported = error["message"].as_str().unwrap();
        assert!(
            reported.contains(message) && stderr.contains(reported),
            "{error}\n{stderr}"
        );
    }
    for arguments in ["merge in", "merge in -- --format json", "no-such-command"] {
        let (code, stdout, _) = run(arguments);
        assert_eq!((code, &stdout[..]), (2, &b""[..]), "{arguments}");
    }
    for arguments in ["--help --format json", "merge --help --format json"] {
        let (code, stdout, _) = run(arguments);
        assert!(code == 0 && stdout.starts_with(b"Merge"), "{arguments}");
    }

    let table = directory.path().join("data/generated");
    let table = std::fs::read_dir(table).unwrap().next().unwrap();
    let data = table.unwrap().path().join("oa-1-big-Data.db");
    flip(&data, 100);
    let error = error("merge data/generated/kv-* --output merged");
    assert_eq!(error["kind"], "corrupt");
    assert_eq!(error["advice"].as_array().unwrap().len(), 1, "{error}");
    let path = error["path"].as_str().unwrap();
    assert!(path.ends_with("/oa-1-big-Data.db"), "{error}");
    let damage = &error["damage"];
    assert_eq!(damage["structure"], "chunk.crc");
    // Offset of the chunk in the file.
    assert_eq!(damage["offset"], 0, "{error}");
    assert!(damage["position"].is_null(), "{error}");
    for field in ["expected", "found"] {
        assert!(
            error["message"]
                .as_str()
                .unwrap()
                .contains(damage[field].as_str().unwrap())
        );
    }
}

/// A throttled merge waits for seconds before each block; an interrupt must end the wait.
#[test]
fn an_interrupt_ends_a_throttled_merge_at_once() {
    let directory = disk_directory();
    let (made, reported) = shell(
        &directory,
        "COMPACTOR generate --output data --size 16MiB --compression none",
    );
    assert!(made.status.success(), "{reported}");
    for command in [
        "merge data/generated/kv-*",
        "merge data/generated/kv-* --outputs 2",
        "compact data/generated/kv-* --major",
    ] {
        let script = format!(
            "COMPACTOR {command} --output new --throughput 1MiB/s & \
             sleep 2.5; kill -s INT $!; wait $!"
        );
        let (output, stderr) = shell(&directory, &script);
        assert_eq!(output.status.code(), Some(130), "{command}: {stderr}");
        assert!(!stderr.contains("did not end"), "{command}: {stderr}");
        assert!(stderr.contains("interrupted"), "{command}: {stderr}");
        assert_eq!(names_in(directory.path()), ["data"], "{command}");
    }
}

/// Even if publishing takes long.
#[test]
fn an_interrupted_compaction_publishes_what_is_complete() {
    if !has_strace() {
        return;
    }
    let directory = disk_directory();
    let (made, reported) = shell(
        &directory,
        "COMPACTOR generate --output data --sstables 8 --size 1MiB --compression none",
    );
    assert!(made.status.success(), "{reported}");
    let (output, stderr) = shell(
        &directory,
        "strace -f --seccomp-bpf -qq -o /dev/null -e trace=rename \
            --inject=rename:delay_enter=300ms:when=1+ \
            COMPACTOR compact data/generated/kv-* --output new --flat --max-threshold 4 \
            --concurrent-compactors 1 --throughput 1MiB/s & \
         sleep 6; kill -s INT $(cat /proc/$!/task/$!/children); wait $!",
    );
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    assert!(
        stderr.contains("interrupted; the SSTables compacted before that are in place"),
        "{stderr}"
    );
    assert!(
        directory.path().join("new/oa-9-big-Data.db").exists(),
        "{stderr}"
    );
}

/// Even if removing the inputs takes long.
#[test]
fn a_swap_that_is_interrupted_after_its_commit_is_completed() {
    if !has_strace() {
        return;
    }
    let directory = disk_directory();
    let (made, stderr) = shell(
        &directory,
        "COMPACTOR generate --output data --size 1MiB && \
         COMPACTOR merge data/generated/kv-* --complete --output new",
    );
    assert!(made.status.success(), "{stderr}");
    let (swapped, stderr) = shell(
        &directory,
        "strace -f --seccomp-bpf -qq -o /dev/null -e trace=unlink \
            --inject=unlink:delay_enter=200ms \
            COMPACTOR swap new --into data/generated/kv-* --inputs-to inputs & \
         until grep -qs COMMIT data/generated/kv-*/*_txn_*.log; do sleep 0.05; done; \
         kill -s INT $(cat /proc/$!/task/$!/children); wait $!",
    );
    assert_eq!(swapped.status.code(), Some(0), "{stderr}");
    let tables = names_in(&directory.path().join("data/generated"));
    let table = directory.path().join("data/generated").join(&tables[0]);
    assert_eq!(data_files(&table), [table.join("oa-4-big-Data.db")]);
}
