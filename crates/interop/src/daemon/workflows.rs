//! The workflows of `crates/compactor-cli/docs/operating.md` that bring an output back into a node.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::commands::{Compactor, text};
use super::node::Node;
use super::snapshot;
use super::tables::{KEYSPACE, Stored, Table};
use crate::files::{self, data_files};

/// Longest time to build a view.
const BUILD: Duration = Duration::from_secs(120);

/// Longest time to delete files.
const DELETION: Duration = Duration::from_secs(60);

/// Strategies that produce several outputs, whatever the table's own strategy is.
const STRATEGIES: [&[&str]; 5] = [
    &[
        "size-tiered",
        "--min-threshold",
        "2",
        "--max-threshold",
        "3",
    ],
    &["leveled", "--sstable-size", "1MiB"],
    &["time-window", "--min-threshold", "2"],
    &[
        "unified",
        "--scaling-parameters",
        "T2",
        "--strategy-option",
        "min_sstable_size=0B",
    ],
    &["level-count", "--strategy-option", "level_count=2"],
];

/// Options to compact a table by a strategy. The table's name decides on the strategy, so that each strategy gets some
/// tables.
fn by_strategy(name: &str) -> Vec<&'static str> {
    let sum: usize = name.bytes().map(usize::from).sum();
    let strategy = STRATEGIES[sum % STRATEGIES.len()];
    [&["--complete", "--strategy"], strategy].concat()
}

/// Context that the workflows share.
#[derive(Clone, Copy)]
pub(crate) struct Workflows<'a> {
    pub(crate) compactor: &'a Compactor,
    /// Directory of outputs, outside of the node's home, that the node can read.
    pub(crate) scratch: &'a Path,
}

/// Command that rewrites a stopped node's SSTables before they are swapped.
#[derive(Debug, Clone, Copy)]
pub(crate) enum By {
    Merge,
    Strategy,
    /// Each SSTable on its own, in another compression.
    Upgrade,
}

/// Outputs of one of our commands, from its JSON report.
struct Outputs {
    report: Value,
    data_files: Vec<PathBuf>,
}

impl Workflows<'_> {
    /// Merges a snapshot and imports the output; its inputs stay in the table.
    pub(crate) fn import_alongside(
        &self,
        node: &mut Node,
        table: &Table,
        tag: &str,
        stage: &str,
    ) -> Result<()> {
        let input = snapshot::directory(node, table.name, tag)?;
        let output = self.output(stage, table.name);
        let outputs = self.rewrite("merge", &input, &output, &["--complete", "--verify"])?;
        import_as_printed(node, &outputs)
    }

    /// Truncates the table and imports the major compaction of a snapshot.
    pub(crate) fn replace_by_major(&self, node: &mut Node, table: &Table, tag: &str) -> Result<()> {
        let input = snapshot::directory(node, table.name, tag)?;
        // The node's own compaction may have left nothing.
        if data_files(&input)?.is_empty() {
            return truncate(node, table);
        }
        let output = self.output("major", table.name);
        let outputs = self.rewrite("compact", &input, &output, &["--complete", "--major"])?;
        truncate(node, table)?;
        import_as_printed(node, &outputs)?;
        recreate_views(node, table)
    }

    /// Truncates the table and imports the result of a strategy for a snapshot: its outputs, and the SSTables that
    /// stay.
    pub(crate) fn replace_by_strategy(
        &self,
        node: &mut Node,
        table: &Table,
        tag: &str,
    ) -> Result<()> {
        let input = snapshot::directory(node, table.name, tag)?;
        let output = self.output("strategy", table.name);
        let outputs = self.rewrite("compact", &input, &output, &by_strategy(table.name))?;
        let kept: Vec<PathBuf> = serde_json::from_value(outputs.report["untouched"].clone())?;
        truncate(node, table)?;
        import_as_printed(node, &outputs)?;
        snapshot::import(node, table, &kept, "kept")?;
        recreate_views(node, table)
    }

    /// Records the node's DESCRIBE TABLE, which has the table's views too: no file of an SSTable contains it.
    pub(crate) fn describe(&self, node: &mut Node, table: &Table) -> Result<()> {
        let query = format!("DESCRIBE TABLE {} WITH INTERNALS", table.cql_name());
        let described = node.client()?.rows(&query)?;
        let mut columns = described.columns.iter();
        let column = columns.position(|name| name == "create_statement");
        let column = column.context("no column create_statement")?;
        let statements = described.rows.iter().filter_map(|row| row[column].as_str());
        let file = self.schema(table.name);
        fs::create_dir_all(file.parent().context("a directory")?)?;
        Ok(fs::write(
            file,
            statements.collect::<Vec<_>>().join("\n\n"),
        )?)
    }

    fn schema(&self, table: &str) -> PathBuf {
        self.scratch.join("schema").join(format!("{table}.cql"))
    }

    /// Rewrites everything that a stopped node has of a table or view, and swaps the outputs for their inputs.
    pub(crate) fn swap(&self, node: &Node, stored: Stored<'_>, by: By) -> Result<()> {
        let directory = node.table_directory(KEYSPACE, stored.name)?;
        let before = live(&directory)?;
        if before.is_empty() {
            return Ok(());
        }
        let (stage, command, options) = match by {
            By::Merge => ("swap-merge", "merge", vec!["--complete", "--verify"]),
            By::Strategy => ("swap-strategy", "compact", by_strategy(stored.name)),
            By::Upgrade => (
                "swap-upgrade",
                "upgrade",
                vec!["--compression", "lz4", "--chunk-length", "4KiB", "--verify"],
            ),
        };
        let output = self.output(stage, stored.name);
        let schema = self
            .schema(stored.base.unwrap_or(stored.name))
            .display()
            .to_string();
        let options = [&options[..], &["--schema", &schema]].concat();
        let outputs = self.rewrite(command, &directory, &output, &options)?;
        if outputs.data_files.is_empty() {
            return Ok(());
        }
        let away = self.output(&format!("{stage}-inputs"), stored.name);
        let indexes = index_files(&directory)?;
        let swapped = self.compactor.run(&[
            "swap",
            &text(&output),
            "--into",
            &text(&directory),
            "--inputs-to",
            &text(&away),
            "--format",
            "json",
        ])?;
        let report: Value = serde_json::from_str(&swapped)?;
        let count = |list: &str| report[list].as_array().map_or(0, Vec::len);
        let after = live(&directory)?;
        ensure!(
            count("inputs") == data_files(&away)?.len()
                && count("outputs") == outputs.data_files.len()
                && after.len() + count("inputs") == before.len() + count("outputs"),
            "{} SSTables, then {}: {}",
            before.len(),
            after.len(),
            swapped
        );
        ensure!(
            index_files(&directory)? == indexes,
            "SSTables of indexes have changed"
        );
        // The node must own the files that it will later compact and delete.
        let owner = fs::metadata(&directory)?.uid();
        for data in &after {
            for name in files::components(data)? {
                let component = files::component(data, &name);
                let found = fs::metadata(&component)?.uid();
                ensure!(found == owner, "{} belongs to {found}", component.display());
            }
        }
        Ok(())
    }

    /// Runs one of our commands that rewrite; its outputs must be sound.
    fn rewrite(
        &self,
        command: &str,
        input: &Path,
        output: &Path,
        options: &[&str],
    ) -> Result<Outputs> {
        let options = [options, &["--format", "json"]].concat();
        let rewritten = self
            .compactor
            .rewrite(command, &[&text(input)], output, &options)?;
        Ok(Outputs {
            report: serde_json::from_str(&rewritten.stdout)?,
            data_files: rewritten.data_files,
        })
    }

    fn output(&self, workflow: &str, name: &str) -> PathBuf {
        self.scratch.join(format!("import-{workflow}")).join(name)
    }
}

/// Runs exactly the command that our run printed for the import; the node must take every output.
fn import_as_printed(node: &mut Node, outputs: &Outputs) -> Result<()> {
    if outputs.data_files.is_empty() {
        return Ok(());
    }
    let commands = outputs.report["commands"].as_array();
    let import = commands
        .into_iter()
        .flatten()
        .find(|command| command["purpose"] == "import");
    let argv = import.context("no command to import")?["argv"].clone();
    let argv: Vec<String> = serde_json::from_value(argv)?;
    self::import(node, &argv, &outputs.data_files)
}

/// Runs an import, which must take every SSTable.
pub(crate) fn import(node: &mut Node, argv: &[String], data_files: &[PathBuf]) -> Result<()> {
    let words: Vec<&str> = argv.iter().map(String::as_str).collect();
    let ["nodetool", arguments @ ..] = &words[..] else {
        bail!("not a command of nodetool: {words:?}")
    };
    let printed = node.nodetool(arguments)?;
    for data in data_files {
        ensure!(
            !data.exists(),
            "nodetool import left {}: {printed}",
            data.display()
        );
    }
    Ok(())
}

/// Files of old secondary indexes, which have directories of their own in the table's.
fn index_files(directory: &Path) -> Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() && name.starts_with('.') {
            for entry in fs::read_dir(&path)? {
                found.insert(entry?.path());
            }
        }
    }
    Ok(found)
}

/// Data.db of the SSTables that a table has now.
pub(crate) fn live(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = data_files(directory)?;
    found.retain(|data| data.parent() == Some(directory));
    Ok(found)
}

/// Drops and creates a table's materialized views, as the guide describes.
///
/// ColumnFamilyStore.truncateBlocking truncates the views too, and SSTableImporter writes nothing to them. The build that
/// truncation starts (ViewManager.build) returns at once, since system.built_views still has the view.
fn recreate_views(node: &mut Node, table: &Table) -> Result<()> {
    for (view, create) in &table.views {
        let query = format!("SELECT * FROM {KEYSPACE}.{view}");
        let count = node.client()?.rows(&query)?.rows.len();
        ensure!(
            count == 0,
            "{view} has {count} rows after TRUNCATE and import: operating.md states that it is empty"
        );
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
    // Files are deleted a little later than their rows.
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
