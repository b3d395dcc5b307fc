//! Invalid option values, in every command.

use compactor_testkit::machine::Mount;
use tempfile::TempDir;

use crate::support::{assert_done, assert_ends, compactor, names_in, words};

const DATA: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../compactor-sstable/testdata/oa-range_nested/inputs/1/oa-1-big-Data.db"
);

/// Command, option, value, part of the message.
type Case<'a> = (&'a [&'a str], &'a str, &'a str, &'a str);

#[test]
fn numbers_out_of_range_are_refused_with_the_range() {
    let temp = TempDir::new().unwrap();
    let merge: &[&str] = &["merge", DATA, "--output", "out"];
    let generate: &[&str] = &["generate", "--output", "out", "--rows", "1"];
    let series: &[&str] = &["generate", "--output", "out", "--shape", "timeseries"];
    let by_size: &[&str] = &["generate", "--output", "out"];
    let (dump, metadata): (&[&str], &[&str]) = (&["dump", DATA], &["metadata", DATA]);
    let demo: &[&str] = &["demo"];
    let cases: [Case<'_>; 47] = [
        (merge, "--threads", "0", "1 to 1024"),
        (merge, "--threads", "1025", "1 to 1024"),
        (merge, "--threads", "20000", "1 to 1024"),
        (merge, "--threads", "-1", "1 to 1024"),
        (merge, "--memory", "0", "1MiB to 1TiB"),
        (merge, "--memory", "-1", "1MiB to 1TiB"),
        (merge, "--memory", "-1MiB", "1MiB to 1TiB"),
        (merge, "--memory", "99999999999GiB", "1MiB to 1TiB"),
        (merge, "--memory", "8000000TiB", "1MiB to 1TiB"),
        (merge, "--readahead", "0", "4KiB to 1GiB"),
        (merge, "--readahead", "2GiB", "4KiB to 1GiB"),
        (merge, "--chunk-length", "0", "1KiB to 64MiB"),
        (merge, "--chunk-length", "-16KiB", "is not a size"),
        (merge, "--gc-grace-seconds", "-1", "0 to 2147483647"),
        (merge, "--gc-grace-seconds", "2147483648", "0 to 2147483647"),
        (merge, "--now", "-1", "0 to 4294967293"),
        (merge, "--now", "-9223372036854775808", "0 to 4294967293"),
        (merge, "--now", "9223372036854775807", "milliseconds"),
        (merge, "--now", "9223372036854775808", "0 to 4294967293"),
        (merge, "--gc-before", "1735689600000", "milliseconds"),
        (merge, "--gc-before", "-9223372036854775809", "at most"),
        (dump, "--now", "-1", "0 to 4294967293"),
        (dump, "--now", "1735689600000", "milliseconds"),
        (metadata, "--now", "-1", "0 to 4294967293"),
        (metadata, "--gc-grace-seconds", "-1", "0 to 2147483647"),
        (
            metadata,
            "--gc-grace-seconds",
            "4294967295",
            "0 to 2147483647",
        ),
        (demo, "--size", "0", "1MiB to 1TiB"),
        (demo, "--size", "99999999999GiB", "1MiB to 1TiB"),
        (generate, "--threads", "0", "1 to 1024"),
        (generate, "--threads", "20000", "1 to 1024"),
        (generate, "--sstables", "0", "1 to 10000"),
        (generate, "--sstables", "-3", "1 to 10000"),
        (generate, "--seed", "-1", "0 to 18446744073709551615"),
        (generate, "--overlap", "-0.5", "0 to 1"),
        (generate, "--overlap", "NaN", "0 to 1"),
        (generate, "--compressibility", "inf", "0 to 1"),
        (generate, "--value-length", "0", "1 to 16777216"),
        (generate, "--rows-per-partition", "0", "1 to 2147483647"),
        (
            generate,
            "--gc-grace-seconds",
            "4294967295",
            "0 to 2147483647",
        ),
        (
            generate,
            "--first-timestamp",
            "-1",
            "0 to 9223372036854775807",
        ),
        (generate, "--chunk-length", "99999999999GiB", "is too large"),
        (by_size, "--rows", "0", "1 to 1000000000000"),
        (by_size, "--size", "0", "1B to 16TiB"),
        (by_size, "--size", "99999999TiB", "1B to 16TiB"),
        (series, "--ttl", "0", "1s to 7300d"),
        (series, "--ttl", "-1d", "1s to 7300d"),
        (series, "--expired", "2", "0 to 1"),
    ];
    for (command, option, value, message) in cases {
        let mut arguments = command.to_vec();
        arguments.extend([option, value]);
        let output = compactor(temp.path(), &arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains(message), "{arguments:?}: {stderr}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
    // Refused before anything was created.
    assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 0);
}

#[test]
fn an_output_that_is_a_file_or_below_one_is_wrong_usage() {
    let temp = TempDir::new().unwrap();
    std::fs::write(temp.path().join("file"), "").unwrap();
    let commands: [&[&str]; 9] = [
        &["merge", DATA],
        &["merge", DATA, "--dry-run"],
        &["compact", DATA],
        &["upgrade", DATA, "--sstable-version", "pa"],
        &["upgrade", DATA, "--sstable-version", "pa", "--dry-run"],
        &["split", DATA, "--size", "1KiB"],
        &["scrub", DATA],
        &["scrub", DATA, "--dry-run"],
        &["generate", "--rows", "1"],
    ];
    for command in commands {
        for output in ["file", "file/below"] {
            let mut arguments = command.to_vec();
            arguments.extend(["--output", output]);
            let ended = compactor(temp.path(), &arguments);
            assert_ends(&ended, 2, "file is not a directory; name a directory");
        }
    }
    let table = temp.path().join("ks/t-0123456789abcdef0123456789abcdef");
    std::fs::create_dir_all(&table).unwrap();
    let into = table.to_str().unwrap();
    let arguments = ["swap", "file", "--into", into, "--inputs-to", "inputs"];
    assert_ends(
        &compactor(temp.path(), &arguments),
        2,
        "file: not a directory",
    );
}

/// `--now` minus the grace period may be before 1970; then no tombstone is old enough to purge.
#[test]
fn numbers_at_the_ends_of_their_ranges_are_accepted() {
    let temp = TempDir::new().unwrap();
    for (number, options) in [
        &["--gc-before", "-5"][..],
        &["--gc-before", "-9223372036854775808"],
        &["--now", "0", "--gc-grace-seconds", "2147483647"],
        &["--now", "4294967293", "--gc-grace-seconds", "0"],
        &["--no-purge", "--threads", "1024"],
        &words("--no-purge --threads 1 --memory 1MiB --readahead 4KiB"),
        &["--no-purge", "--memory", "1TiB", "--readahead", "1GiB"],
    ]
    .into_iter()
    .enumerate()
    {
        let directory = number.to_string();
        let mut arguments = vec!["merge", DATA, "--output", &directory, "--complete"];
        arguments.extend(options);
        let output = compactor(temp.path(), &arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{options:?}: {stderr}");
    }
}

/// A script repeats what has failed, and not what is not supported.
#[test]
fn an_io_mode_that_the_file_system_does_not_support_is_wrong_usage() {
    let Some(mount) = Mount::tmpfs(16 << 20) else {
        return;
    };
    let directory = mount.directory.path();
    let made = compactor(directory, &words("generate --output data --rows 100"));
    assert_done(&made);
    let table = names_in(&directory.join("data/generated")).remove(0);
    let table = format!("data/generated/{table}");
    for command in ["merge", "compact --major", "split --size 1KiB", "scrub"] {
        for mode in [
            "--read-io direct",
            "--write-io direct",
            "--write-io dontcache",
        ] {
            let line = format!("{command} {table} --output new {mode} --backend threads");
            let refused = compactor(directory, &words(&line));
            let stderr = String::from_utf8_lossy(&refused.stderr);
            assert_eq!(refused.status.code(), Some(2), "{line}: {stderr}");
            assert!(stderr.contains("mode auto"), "{line}: {stderr}");
            assert!(!directory.join("new").exists(), "{line}");
        }
    }
}

#[test]
fn uring_with_dontcache_is_wrong_usage_before_anything_is_opened() {
    let temp = TempDir::new().unwrap();
    // The file does not exist, but is not looked up.
    let merge = ["merge", "nowhere", "--output", "out"];
    let generate = ["generate", "--output", "out"];
    for (command, option) in [
        (&merge[..], "--read-io"),
        (&merge, "--write-io"),
        (&generate, "--write-io"),
        (&["verify", "nowhere"], "--read-io"),
    ] {
        let mut arguments = command.to_vec();
        arguments.extend(["--backend", "uring", option, "dontcache"]);
        let output = compactor(temp.path(), &arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        let message = format!("{option}: dontcache does not go with --backend uring");
        assert!(stderr.contains(&message), "{arguments:?}: {stderr}");
    }
    assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 0);
}

#[test]
fn the_version_has_commit_and_target() {
    let temp = TempDir::new().unwrap();
    let out = compactor(temp.path(), &["--version"]);
    let text = String::from_utf8(out.stdout).unwrap();
    let version = concat!("compactor ", env!("CARGO_PKG_VERSION"), " (");
    let (commit, target) = text
        .trim_end()
        .strip_prefix(version)
        .and_then(|rest| rest.strip_suffix(')')?.split_once(", "))
        .unwrap_or_else(|| panic!("{text}"));
    // The commit is unknown if built without a repository, as from a source tarball.
    let is_commit = commit.len() >= 9 && commit.chars().all(|c| c.is_ascii_hexdigit());
    assert!(is_commit || commit == "unknown commit", "{text}");
    assert!(target.contains("linux"), "{text}");
}
