//! Swaps killed after each step, in the table directory of a real node: which SSTables the node considers live, and
//! which files are left after its startup cleanup.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use compactor::merge::run_merges;
use compactor::run_record::Recorder;
use compactor::swap::{Step, SwapRequest, swap};
use compactor::{InputCheck, Io, MergeJob, MergeRequest, NoObserver};
use compactor_io::IoOptions;
use compactor_sstable::transaction_log;
use interop::{Cassandra, Mode, Table};

use crate::support::servers;

/// Environment variables that name the directory of the output, the table's, and the step after which the child kills
/// itself.
const CHILD: &str = "COMPACTOR_TEST_SWAP_IN";
const CHILD_TABLE: &str = "COMPACTOR_TEST_SWAP_TABLE";
const KILLED_AFTER: &str = "COMPACTOR_TEST_SWAP_KILLED_AFTER";

fn request(place: &Path, directory: &Path) -> SwapRequest {
    SwapRequest {
        output: place.join("out"),
        table_directory: directory.to_owned(),
        inputs_to: place.join("inputs"),
    }
}

/// Not a test by itself: the process that the other test starts and that kills itself.
#[test]
fn child() {
    let Some(place) = std::env::var_os(CHILD) else {
        return;
    };
    let directory = PathBuf::from(std::env::var_os(CHILD_TABLE).expect("a table"));
    let after = std::env::var(KILLED_AFTER).expect("a step");
    let after: usize = after.parse().expect("a number");
    let mut steps = 0;
    let request = request(Path::new(&place), &directory);
    swap(&request, &mut |_| {
        if steps == after {
            let us = rustix::process::getpid();
            let _ = rustix::process::kill_process(us, rustix::process::Signal::KILL);
        }
        steps += 1;
        Ok(())
    })
    .expect("the swap is done");
}

#[test]
fn a_node_undoes_or_finishes_a_killed_swap() {
    for cassandra in servers([Mode::Oa, Mode::Ea]) {
        run(&mut cassandra.for_the_last_time()).expect("the case runs");
    }
}

/// File names of `Data.db`.
fn data_names(directory: &Path) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with("-Data.db") {
            names.insert(name);
        }
    }
    Ok(names)
}

/// Copies the files of `from` into the table's directory, which has none then, and merges the first two.
fn set_up(from: &Path, directory: &Path) -> Result<tempfile::TempDir> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_file() {
            fs::remove_file(path)?;
        }
    }
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.path().is_file() {
            fs::copy(entry.path(), directory.join(entry.file_name()))?;
        }
    }
    let place = tempfile::tempdir()?;
    let inputs = data_names(directory)?.into_iter().take(2);
    let inputs: Vec<PathBuf> = inputs.map(|name| directory.join(name)).collect();
    let output = place.path().join("out");
    let request = MergeRequest::new(inputs, &output);
    let recorder = Recorder::new("merge", &request)?;
    let jobs = MergeJob::open_groups(Io::new(IoOptions::default())?, request)?;
    let check = InputCheck::AllComponents;
    run_merges(jobs, check, Some(&recorder), &mut NoObserver)?;
    Ok(place)
}

/// SSTables of the table according to the node.
fn live(cassandra: &mut Cassandra, table: &Table) -> Result<BTreeSet<String>> {
    let (_, live) = cassandra.live(table)?;
    let names = live.iter().map(|base| {
        base.file_name()
            .map(|name| format!("{}-Data.db", name.to_string_lossy()))
    });
    names.collect::<Option<_>>().context("names")
}

fn run(cassandra: &mut Cassandra) -> Result<()> {
    let table = Table::new("swaps", "t");
    cassandra.cql(&[
        "CREATE KEYSPACE IF NOT EXISTS swaps WITH replication = \
         {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE swaps.t (k int PRIMARY KEY, v text)",
    ])?;
    let flushed = tempfile::tempdir()?;
    for generation in 1..=3 {
        cassandra.cql(&[
            "INSERT INTO swaps.t (k, v) VALUES (1, 'a')",
            &format!("INSERT INTO swaps.t (k, v) VALUES ({generation}0, 'b')"),
        ])?;
        cassandra.flush(&table, flushed.path(), generation)?;
    }
    let (directory, _) = cassandra.live(&table)?;

    let place = set_up(flushed.path(), &directory)?;
    let old = data_names(&directory)?;
    let mut steps = Vec::new();
    swap(&request(place.path(), &directory), &mut |step| {
        steps.push(step);
        Ok(())
    })?;
    let new = data_names(&directory)?;
    ensure!(
        old.len() == 3 && new.len() == 2 && old != new,
        "{old:?} {new:?}"
    );
    let committed = steps.iter().position(|step| *step == Step::Committed);
    let committed = committed.context("a COMMIT")?;

    for after in 0..steps.len() {
        // Of the steps that remove files, only the first and the last are tried.
        if after > committed + 1 && steps.get(after + 1) == Some(&Step::FileRemoved) {
            continue;
        }
        let expected = if after >= committed { &new } else { &old };
        let place = set_up(flushed.path(), &directory)?;
        let output = place.path().join("out");
        let written = data_names(&output)?.into_iter();
        let written: BTreeMap<String, Vec<u8>> = written
            .map(|name| Ok((name.clone(), fs::read(output.join(name))?)))
            .collect::<Result<_>>()?;
        let status = Command::new(std::env::current_exe()?)
            .args(["--exact", "swap::child"])
            .env(CHILD, place.path())
            .env(CHILD_TABLE, &directory)
            .env(KILLED_AFTER, after.to_string())
            .output()?
            .status;
        ensure!(status.signal() == Some(9), "{after}: {status}");
        ensure!(live(cassandra, &table)? == *expected, "{after}: before");
        cassandra.remove_leftovers(&table)?;
        ensure!(live(cassandra, &table)? == *expected, "{after}: after");
        ensure!(data_names(&directory)? == *expected, "{after}: files");
        let mut names = fs::read_dir(&directory)?.flatten().map(|e| e.file_name());
        ensure!(
            !names.any(|name| transaction_log::is_file_name(&name.to_string_lossy())),
            "{after}: a log is left"
        );
        swap(&request(place.path(), &directory), &mut |_| Ok(()))?;
        ensure!(live(cassandra, &table)? == new, "{after}: swapped");
        for name in new.difference(&old) {
            let placed = fs::read(directory.join(name))?;
            ensure!(written.get(name) == Some(&placed), "{after}: {name}");
        }
    }
    Ok(())
}
