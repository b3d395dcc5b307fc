//! The ways in which README.md brings an output back into a node.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::commands::Compactor;
use super::node::Node;
use super::process::give_to_daemon;
use super::snapshot;
use super::tables::{KEYSPACE, Table};

/// What the workflows share.
pub(crate) struct Workflows<'a> {
    pub(crate) compactor: &'a Compactor,
    /// Where outputs go, outside of the node's home.
    pub(crate) scratch: &'a Path,
}

impl Workflows<'_> {
    /// Merges a snapshot and imports the output; its inputs stay in the table.
    pub(crate) fn import_beside(&self, node: &mut Node, table: &Table, tag: &str) -> Result<()> {
        let output = self.output("beside", table);
        let input = snapshot::directory(node, table, tag)?;
        let outputs =
            self.compactor
                .rewrite("merge", &input, &output, &["--complete", "--verify"])?;
        snapshot::import(node, table, &outputs, "beside")
    }

    /// Truncates the table and imports the major compaction of a snapshot.
    pub(crate) fn replace_by_major(&self, node: &mut Node, table: &Table, tag: &str) -> Result<()> {
        let output = self.output("major", table);
        let input = snapshot::directory(node, table, tag)?;
        let outputs =
            self.compactor
                .rewrite("compact", &input, &output, &["--complete", "--major"])?;
        truncate(node, table)?;
        snapshot::import(node, table, &outputs, "major")
    }

    /// Truncates the table and imports what a strategy leaves of a snapshot: its outputs, and the SSTables that stay.
    pub(crate) fn replace_by_strategy(
        &self,
        node: &mut Node,
        table: &Table,
        tag: &str,
    ) -> Result<()> {
        let output = self.output("strategy", table);
        let input = snapshot::directory(node, table, tag)?;
        let (input, place) = (input.display().to_string(), output.display().to_string());
        let ran = self.compactor.run(&[
            "compact",
            &input,
            "--output",
            &place,
            "--complete",
            "--strategy",
            "SizeTieredCompactionStrategy",
            "--min-threshold",
            "2",
            "--max-threshold",
            "3",
            "--format",
            "json",
            "--progress",
            "none",
        ])?;
        let report: Value = serde_json::from_str(&ran.stdout)?;
        let kept = report["kept"].as_array().context("SSTables that stay")?;
        let mut sstables = snapshot::data_files(&output)?;
        for path in kept {
            sstables.push(PathBuf::from(path.as_str().context("a path")?));
        }
        truncate(node, table)?;
        snapshot::import(node, table, &sstables, "strategy")
    }

    /// Puts the merge of everything that a stopped node has of a table in its place.
    pub(crate) fn swap(&self, node: &Node, table: &Table) -> Result<()> {
        let output = self.output("swap", table);
        let directory = node.table_directory(KEYSPACE, table.name)?;
        let inputs = live(&directory)?;
        let mut arguments = vec!["merge".to_owned()];
        arguments.extend(inputs.iter().map(|data| data.display().to_string()));
        arguments.extend(["--output".to_owned(), output.display().to_string()]);
        arguments.extend(["--complete", "--verify", "--progress", "none"].map(str::to_owned));
        if inputs.is_empty() {
            return Ok(());
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        self.compactor.run(&arguments)?;
        let away = self.output("swapped", table);
        fs::create_dir_all(&away)?;
        for data in &inputs {
            for component in snapshot::components(data)? {
                let name = component.file_name().context("a file name")?;
                fs::copy(&component, away.join(name))?;
                fs::remove_file(&component)?;
            }
        }
        snapshot::copy(&snapshot::data_files(&output)?, &directory)?;
        give_to_daemon(&directory)
    }

    fn output(&self, workflow: &str, table: &Table) -> PathBuf {
        self.scratch.join(workflow).join(table.name)
    }
}

/// Data.db of the SSTables that a table has now.
pub(crate) fn live(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = snapshot::data_files(directory)?;
    found.retain(|data| data.parent() == Some(directory));
    Ok(found)
}

fn truncate(node: &mut Node, table: &Table) -> Result<()> {
    let statement = format!("TRUNCATE {}", table.cql_name());
    node.client()?.run(&[statement])?;
    let left = live(&node.table_directory(KEYSPACE, table.name)?)?;
    ensure!(left.is_empty(), "TRUNCATE left {} SSTables", left.len());
    Ok(())
}
