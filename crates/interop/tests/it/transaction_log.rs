//! Transaction logs, which make several outputs visible atomically: a node reads them as its own.

use std::fs;
use std::path::Path;

use anyhow::Result;
use compactor_sstable::Component;
use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::transaction_log::{self, Record};
use interop::{Cassandra, Mode, Table, files};

use crate::support::servers;

#[test]
fn uncommitted_outputs_are_removed_when_a_node_starts() {
    for cassandra in servers([Mode::Oa, Mode::Ea]) {
        run(&mut cassandra.for_the_last_time()).expect("the case runs");
    }
}

fn run(cassandra: &mut Cassandra) -> Result<()> {
    let table = Table::new("transactions", "t");
    cassandra.cql(&[
        "CREATE KEYSPACE IF NOT EXISTS transactions WITH replication = \
         {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE transactions.t (k int PRIMARY KEY, v text)",
    ])?;
    let place = tempfile::tempdir()?;
    let (directory, _) = cassandra.live(&table)?;
    let mut flushed = Vec::new();
    for generation in 1..=3 {
        cassandra.cql(&["INSERT INTO transactions.t (k, v) VALUES (1, 'a')"])?;
        flushed.push(cassandra.flush(&table, place.path(), generation)?);
    }
    let [stays, first, second] = &flushed[..] else {
        unreachable!("three were flushed");
    };
    let version = Descriptor::parse(first)?.descriptor.version;
    let log = directory.join(transaction_log::file_name(
        version,
        139_000_000_000_000_000,
        -7,
    ));
    let add = |data: &Path| -> Result<String> {
        let path = directory.join(data.file_name().unwrap_or_default());
        let path = path
            .to_string_lossy()
            .replace(Component::Data.file_suffix(), "");
        Ok(Record::add(&path, 8).line())
    };
    let added = add(first)? + &add(second)?;
    let commit = Record::commit().line();

    // Logs truncated before and within the COMMIT record, and complete.
    for (what, lines, left) in [
        ("no commit", added.clone(), 1),
        (
            "half a commit",
            added.clone() + &commit[..commit.len() - 5],
            1,
        ),
        ("committed", added.clone() + &commit, 3),
    ] {
        for data in [stays, first, second] {
            files::copy(data, &directory)?;
        }
        fs::write(&log, lines)?;
        let (_, live) = cassandra.live(&table)?;
        assert_eq!(live.len(), left, "{what}, before: {live:?}");
        cassandra.remove_leftovers(&table)?;
        let (_, live) = cassandra.live(&table)?;
        assert_eq!(live.len(), left, "{what}, after: {live:?}");
        assert!(!log.exists(), "{what}");
        assert_eq!(
            directory
                .join(first.file_name().unwrap_or_default())
                .exists(),
            left == 3,
            "{what}"
        );
        for entry in fs::read_dir(&directory)? {
            let path = entry?.path();
            if path.is_file() {
                fs::remove_file(path)?;
            }
        }
    }
    Ok(())
}
