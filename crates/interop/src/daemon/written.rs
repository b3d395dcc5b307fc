//! Rows of `SstableWriter`, imported into a node by the command that it returns, and read by a client.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Result, ensure};
use compactor::writer::RowTimes;
use compactor::{SstableWriter, Value};
use serde_json::json;

use super::node::Node;
use super::process::give_to_daemon;
use super::tables::KEYSPACE;
use super::workflows;

const PARTITIONS: i32 = 500;
const ROWS: i32 = 20;
const FIRST_TIMESTAMP_US: i64 = 1_700_000_000_000_000;

/// Writes rows, imports them, and compares them with those that a client reads.
///
/// # Errors
/// A refused import, or other rows.
pub(crate) fn round_trip(node: &mut Node, scratch: &Path) -> Result<()> {
    let create = format!(
        "CREATE TABLE {KEYSPACE}.written (id text, n int, v bigint, s text static, tags set<text>, \
         PRIMARY KEY (id, n)) WITH CLUSTERING ORDER BY (n DESC)"
    );
    let output = scratch.join("written");
    let mut writer = SstableWriter::new(&create)?.open(&output)?;
    let mut expected = Vec::new();
    // Out of order: the writer sorts.
    for n in 0..ROWS {
        for id in 0..PARTITIONS {
            let (key, v) = (format!("p{id}"), i64::from(id) << n);
            let timestamp_us = FIRST_TIMESTAMP_US + i64::from(n);
            let tags = Value::Set(vec!["b".into(), "a".into()]);
            let row = [
                ("id", key.clone().into()),
                ("n", n.into()),
                ("v", v.into()),
                ("s", format!("s{id}").into()),
                ("tags", tags),
            ];
            writer.add_row_with(row, RowTimes::at(timestamp_us))?;
            expected.push(vec![
                key,
                n.to_string(),
                v.to_string(),
                format!("s{id}"),
                timestamp_us.to_string(),
            ]);
        }
    }
    let written = writer.finish()?;
    node.client()?.run(&[create])?;
    give_to_daemon(&output)?;
    let data_files: Vec<_> = written
        .sstables
        .iter()
        .map(|s| s.data_path.clone())
        .collect();
    let import = written
        .next_steps
        .commands
        .iter()
        .find(|c| c.purpose == "import");
    let import = import.map_or(&[][..], |command| &command.argv);
    workflows::import(node, import, &data_files)?;
    let found = node.client()?.rows(&format!(
        "SELECT id, n, v, s, writetime(v) FROM {KEYSPACE}.written WHERE tags CONTAINS 'a' ALLOW FILTERING"
    ))?;
    // The client returns numbers as texts too.
    let found = serde_json::from_value::<Vec<Vec<String>>>(json!(found.rows))?;
    let (found, expected) = (BTreeSet::from_iter(found), BTreeSet::from_iter(expected));
    let other = expected.symmetric_difference(&found).next();
    ensure!(
        other.is_none(),
        "of {} rows a client reads {}; only written or only read: {other:?}",
        expected.len(),
        found.len()
    );
    let drop = format!("DROP TABLE {KEYSPACE}.written");
    node.client()?.run(&[drop])
}
