//! Files that Cassandra's offline tools leave.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use super::commands::text;
use super::node::Node;
use super::process::give_to_daemon;
use super::snapshot;
use super::tables::{KEYSPACE, Table};
use super::workflows::{Workflows, live};
use crate::files::data_files;

/// The table that CQLSSTableWriter writes, and sstableloader loads.
pub(crate) const LOADED: &str = "loaded";

/// The statement that creates it in a node.
pub(crate) fn loaded_table() -> String {
    format!(
        "CREATE TABLE {KEYSPACE}.{LOADED} (k int, c int, v text, m map<int, text>, s set<int>, PRIMARY KEY (k, c))"
    )
}

/// A tool that rewrites the SSTables of a table while the node is down.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tool {
    /// Name of the script.
    pub(crate) name: &'static str,
    class: &'static str,
    options: &'static [&'static str],
    takes: Takes,
}

#[derive(Debug, Clone, Copy)]
enum Takes {
    Table,
    OneFile,
}

const fn tool(
    name: &'static str,
    class: &'static str,
    options: &'static [&'static str],
    takes: Takes,
) -> Tool {
    Tool {
        name,
        class,
        options,
        takes,
    }
}

/// Tools that leave data as it is, in an order in which each finds something to do. sstablescrub is separate: that of
/// 5.0 loses rows, as `nodetool scrub` does.
pub(crate) const TOOLS: [Tool; 5] = [
    tool(
        "sstablelevelreset",
        "SSTableLevelResetter",
        &["--really-reset"],
        Takes::Table,
    ),
    tool(
        "sstableofflinerelevel",
        "SSTableOfflineRelevel",
        &[],
        Takes::Table,
    ),
    tool("sstableupgrade", "StandaloneUpgrader", &[], Takes::Table),
    tool(
        "sstablesplit",
        "StandaloneSplitter",
        &["--no-snapshot", "-s", "1"],
        Takes::OneFile,
    ),
    tool(
        "sstablerepairedset",
        "SSTableRepairedAtSetter",
        &["--really-set", "--is-repaired"],
        Takes::OneFile,
    ),
];

/// sstablescrub.
pub(crate) const SCRUB: Tool = tool("sstablescrub", "StandaloneScrubber", &[], Takes::Table);

impl Tool {
    /// Runs it on a table of a node that is down, or on its first SSTable.
    pub(crate) fn run(self, node: &Node, table: &str) -> Result<()> {
        let directory = node.table_directory(KEYSPACE, table)?;
        let file = live(&directory)?
            .first()
            .context("an SSTable")?
            .display()
            .to_string();
        let mut arguments = self.options.to_vec();
        match self.takes {
            Takes::Table => arguments.extend([KEYSPACE, table]),
            Takes::OneFile => arguments.push(&file),
        }
        node.tool(self.class, &arguments).map(drop)
    }
}

/// Writes SSTables with CQLSSTableWriter, unsorted and sorted, with the node's jars.
pub(crate) fn write_offline(node: &Node) -> Result<Vec<PathBuf>> {
    let mut written = Vec::new();
    for way in ["unsorted", "sorted"] {
        let place = node.place(&format!("offline/{way}/{KEYSPACE}/{LOADED}"))?;
        give_to_daemon(&node.place("offline")?)?;
        let (directory, table) = (place.display().to_string(), format!("{KEYSPACE}.{LOADED}"));
        let mut arguments = vec![&*directory, &*table, "3000"];
        arguments.extend((way == "sorted").then_some("sorted"));
        node.java("compactor.interop.daemon.OfflineWriter", &arguments)?;
        let found = data_files(&place)?;
        ensure!(!found.is_empty(), "CQLSSTableWriter wrote nothing ({way})");
        written.extend(found);
    }
    Ok(written)
}

impl Workflows<'_> {
    /// Runs our commands that must accept any SSTable, and returns the failures.
    pub(crate) fn examine(&self, sstables: &[PathBuf]) -> Vec<String> {
        let files: Vec<String> = sstables.iter().map(|data| text(data)).collect();
        let names: Vec<&str> = files.iter().map(String::as_str).collect();
        let mut failures = Vec::new();
        let mut note = |result: Result<()>| failures.extend(result.err().map(|e| format!("{e:#}")));
        for command in ["verify", "metadata"] {
            note(
                self.compactor
                    .run(&[&[command], &names[..]].concat())
                    .map(drop),
            );
        }
        let merged = tempfile::tempdir_in(self.scratch)
            .map_err(Into::into)
            .and_then(|output| self.compactor.merge(&names, output.path()));
        note(merged);
        failures
    }

    /// Takes a snapshot and examines all SSTables in it; returns their number, and the failures.
    pub(crate) fn examine_snapshot(
        &self,
        node: &mut Node,
        tables: &[&Table],
        tag: &str,
    ) -> Result<(usize, Vec<String>)> {
        snapshot::take(node, tag)?;
        let (mut count, mut failures) = (0, Vec::new());
        for table in tables {
            let sstables = data_files(&snapshot::directory(node, table.name, tag)?)?;
            if sstables.is_empty() {
                continue;
            }
            count += sstables.len();
            for failure in self.examine(&sstables) {
                failures.push(format!("{} after {tag}: {failure}", table.name));
            }
        }
        Ok((count, failures))
    }
}
