//! The ways in which README.md brings an output back into a node.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::commands::Compactor;
use super::node::Node;
use super::process::give_to_daemon;
use super::snapshot;
use super::tables::{KEYSPACE, Table};

/// What building a view takes at most.
const BUILD: Duration = Duration::from_secs(120);

/// What deleting files takes at most.
const DELETION: Duration = Duration::from_secs(60);

/// What the workflows share.
pub(crate) struct Workflows<'a> {
    pub(crate) compactor: &'a Compactor,
    /// Where outputs go, outside of the node's home.
    pub(crate) scratch: &'a Path,
}

impl Workflows<'_> {
    /// Merges a snapshot and imports the output; its inputs stay in the table.
    pub(crate) fn import_beside(
        &self,
        node: &mut Node,
        table: &Table,
        tag: &str,
        stage: &str,
    ) -> Result<()> {
        let output = self.output(stage, table);
        let input = snapshot::directory(node, table, tag)?;
        let outputs =
            self.compactor
                .rewrite("merge", &input, &output, &["--complete", "--verify"])?;
        snapshot::import(node, table, &outputs, stage)
    }

    /// Truncates the table and imports the major compaction of a snapshot.
    pub(crate) fn replace_by_major(&self, node: &mut Node, table: &Table, tag: &str) -> Result<()> {
        let output = self.output("major", table);
        let input = snapshot::directory(node, table, tag)?;
        let mut outputs = Vec::new();
        // The node's own compaction may have left nothing.
        if !snapshot::data_files(&input)?.is_empty() {
            let options = ["--complete", "--major"];
            outputs = self
                .compactor
                .rewrite("compact", &input, &output, &options)?;
        }
        truncate(node, table)?;
        snapshot::import(node, table, &outputs, "major")?;
        make_views_again(node, table)
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
        let kept = report["untouched"]
            .as_array()
            .context("untouched SSTables")?;
        let mut sstables = snapshot::data_files(&output)?;
        for path in kept {
            sstables.push(PathBuf::from(path.as_str().context("a path")?));
        }
        truncate(node, table)?;
        snapshot::import(node, table, &sstables, "strategy")?;
        make_views_again(node, table)
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

/// Truncation empties a table's views as well, and an import fills none: they have to be made again.
fn make_views_again(node: &mut Node, table: &Table) -> Result<()> {
    for (view, create) in &table.views {
        let drop = format!("DROP MATERIALIZED VIEW {KEYSPACE}.{view}");
        node.client()?.run(&[drop, table.fill(create)])?;
        let begin = Instant::now();
        while !is_built(node, view)? {
            ensure!(
                begin.elapsed() < BUILD,
                "{view} is not built after {BUILD:?}"
            );
            std::thread::sleep(Duration::from_millis(200));
        }
    }
    Ok(())
}

fn is_built(node: &mut Node, view: &str) -> Result<bool> {
    let query = format!(
        "SELECT * FROM system.built_views WHERE keyspace_name = '{KEYSPACE}' AND view_name = '{view}'"
    );
    Ok(!node.client()?.rows(&query)?.rows.is_empty())
}

fn truncate(node: &mut Node, table: &Table) -> Result<()> {
    let statement = format!("TRUNCATE {}", table.cql_name());
    node.client()?.run(&[statement])?;
    let directory = node.table_directory(KEYSPACE, table.name)?;
    // Files go a little later than their rows.
    let begin = Instant::now();
    while !live(&directory)?.is_empty() {
        ensure!(
            begin.elapsed() < DELETION,
            "TRUNCATE left {:?}",
            live(&directory)?
        );
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}
