//! Rows of `SstableWriter`, imported into a node by the command that it returns, and read by a client.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Result, ensure};
use compactor::writer::RowTimes;
use compactor::{SstableWriter, Value};

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
    let result = written_and_read(node, scratch);
    let drop = format!("DROP TABLE IF EXISTS {KEYSPACE}.written");
    node.client()?.run(&[drop])?;
    result
}

fn written_and_read(node: &mut Node, scratch: &Path) -> Result<()> {
    let create = format!(
        "CREATE TABLE {KEYSPACE}.written (id text, n int, v bigint, s text static, tags set<text>, \
         PRIMARY KEY (id, n)) WITH CLUSTERING ORDER BY (n DESC)"
    );
    let output = scratch.join("written");
    let mut writer = SstableWriter::new(&create)?.open(&output)?;
    let mut expected = BTreeSet::new();
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
            expected.insert(vec![
                key,
                n.to_string(),
                v.to_string(),
                format!("s{id}"),
                timestamp_us.to_string(),
                r#"["a","b"]"#.to_owned(),
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
        "SELECT id, n, v, s, writetime(v), tags FROM {KEYSPACE}.written"
    ))?;
    let rows = found.rows.len();
    let found = found
        .rows
        .iter()
        .map(|row| row.iter().map(as_text).collect());
    let found: BTreeSet<Vec<String>> = found.collect();
    let other = expected.symmetric_difference(&found).next();
    ensure!(
        other.is_none() && rows == expected.len(),
        "of {} rows a client reads {rows}; only written or only read: {other:?}",
        expected.len()
    );
    Ok(())
}

/// The client returns numbers as texts too.
fn as_text(value: &serde_json::Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}
