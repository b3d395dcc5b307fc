//! Where below the output directory outputs go: where `nodetool import` looks for them.
//!
//! Since 5.0 a node takes keyspace and table from the path of a file, and passes over one whose directory is
//! not `.../<keyspace>/<table>`, without an error. It ignores hidden directories, files that belong to no
//! SSTable, and completed transactions.
//!
//! Source: `SSTableImporter.importNewSSTables`, `Descriptor.fromFileWithComponent` (4.1, 5.0, 6.0).

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use compactor_engine::publish::Replaceable;
use compactor_sstable::Component;
use compactor_sstable::descriptor::{DirectoryKind, TableDirectory};
use compactor_sstable::schema::Table as TableSchema;
use serde::Serialize;

use super::files::{is_same_directory, real_directory};
use super::node_command::quoted;
use super::output_directory::{self, ExistingOutput, OutputClaim};
use super::{Table, data_files};
use crate::MergeRequest;
use crate::run_record::{OutputFile, RunRecord};
use crate::table_directories::table_directory_of;
use crate::{Error, Result};

/// Keyspace and name of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TableName {
    /// Keyspace.
    pub keyspace: String,
    /// Table.
    pub table: String,
}

impl TableName {
    /// The table that SSTables are of: by the directories that they are in, of which one is named
    /// `<keyspace>/<table>-<id>`, snapshots and backups in it included; else by their schema.
    pub fn of(table: &Table) -> Option<TableName> {
        let sstables = table.sstables.iter();
        let mut directories: Vec<PathBuf> = sstables.filter_map(real_directory).collect();
        directories.dedup();
        let of_directory = directories
            .iter()
            .filter_map(|directory| TableDirectory::parse(directory))
            .find(|table| table.table_id.is_some() && table.index.is_none())
            .map(|table| (table.keyspace, table.table));
        let of_schema = || {
            let (_, table) = table.schema.as_ref()?;
            Some((table.keyspace.clone()?, table.name.clone()))
        };
        let (keyspace, table) = of_directory.or_else(of_schema)?;
        TableName::checked(keyspace, table)
    }

    /// The table of a schema that names its keyspace.
    pub fn of_schema(schema: &TableSchema) -> Option<TableName> {
        let keyspace = schema.keyspace.clone()?;
        TableName::checked(keyspace, schema.name.clone())
    }

    /// Names that are safe as names of directories: a schema may have any.
    fn checked(keyspace: String, table: String) -> Option<TableName> {
        let is_name = |name: &str| {
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        };
        (is_name(&keyspace) && is_name(&table)).then_some(TableName { keyspace, table })
    }

    /// Whether this directory is named as a node wants it for the table.
    pub fn is_directory(&self, directory: &Path) -> bool {
        std::path::absolute(directory)
            .is_ok_and(|own| own.ends_with(Path::new(&self.keyspace).join(&self.table)))
    }
}

/// A directory that was named for outputs, and where in it they go.
#[derive(Clone, Debug)]
pub struct OutputLayout {
    top: PathBuf,
    directory: PathBuf,
    table: Option<TableName>,
    /// The table's own directory in a node, if that is where all inputs are.
    inputs_in: Option<PathBuf>,
}

impl OutputLayout {
    /// `<top>/<keyspace>/<table>` where these are known; the directory itself where they are not, where it is
    /// named so already, or if `flat` asks for it.
    pub fn new(top: impl Into<PathBuf>, table: Option<TableName>, flat: bool) -> OutputLayout {
        let top = top.into();
        let directory = match &table {
            Some(table) if !flat && !table.is_directory(&top) => {
                top.join(&table.keyspace).join(&table.table)
            }
            _ => top.clone(),
        };
        OutputLayout {
            top,
            directory,
            table,
            inputs_in: None,
        }
    }

    /// Returns a warning if the directory of the inputs is named after a table other than the schema's.
    pub(super) fn other_table_than_schema(&self, table: &Table) -> Option<String> {
        let of_schema = TableName::of_schema(table.schema()?)?;
        let of_directory = self.table.as_ref().filter(|name| **name != of_schema)?;
        Some(format!(
            "the directory of the inputs is named after table {}.{}, and the schema is of {}.{}: a node imports an \
             output only from a directory named after its table",
            of_directory.keyspace, of_directory.table, of_schema.keyspace, of_schema.table
        ))
    }

    /// Returns a warning if the inputs are in a directory of a node, and the outputs will have another owner, so that the
    /// node cannot import them. Outputs of root get the owner of the inputs, and a node of root may import any.
    pub(super) fn other_owner_than_inputs(&self, table: &Table) -> Option<String> {
        let us = rustix::process::geteuid();
        if us.is_root() {
            return None;
        }
        let directory = table_directory_of(table.sstables.first()?)?;
        let owner = std::fs::metadata(&directory).ok()?.uid();
        if [0, us.as_raw()].contains(&owner) {
            return None;
        }
        let output = std::path::absolute(&self.directory).ok()?;
        Some(format!(
            "the outputs will belong to user {}, and {} belongs to user {owner}: a node of that user does not import them \
             (`Insufficient permissions`). As root, `chown -R {owner} {}` first",
            us.as_raw(),
            directory.display(),
            quoted(&output.to_string_lossy())
        ))
    }

    /// Layout of outputs of these SSTables.
    pub fn of(table: &Table, top: impl Into<PathBuf>, flat: bool) -> OutputLayout {
        OutputLayout {
            inputs_in: live_directory_of(&table.sstables),
            ..OutputLayout::new(top, TableName::of(table), flat)
        }
    }

    /// Directory of the outputs.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The directory that was named.
    pub fn top(&self) -> &Path {
        &self.top
    }

    /// The table that the outputs are of, if it is known.
    pub fn table(&self) -> Option<&TableName> {
        self.table.as_ref()
    }

    /// The table's own directory in a node, if that is where all inputs are: outputs can take their place
    /// there.
    pub fn inputs_in(&self) -> Option<&Path> {
        self.inputs_in.as_deref()
    }

    /// Refuses a directory in which outputs of these SSTables must not be.
    ///
    /// # Errors
    /// A directory of the inputs or of their table, or one that holds SSTables.
    pub fn check(&self, table: &Table) -> Result<()> {
        output_directory::check(&self.top, table)?;
        if self.top == self.directory {
            return Ok(());
        }
        output_directory::check(&self.directory, table)?;
        // A node never scans the parent of the table's directory, except if it holds SSTables itself.
        if let Some(there) = data_files(&self.top).into_iter().min() {
            return Err(Error::refused(format!(
                "{} holds SSTables already ({}), and the output would go into {}: choose a directory without \
                 SSTables, or use --flat",
                self.top.display(),
                there.file_name().unwrap_or_default().to_string_lossy(),
                self.directory.display()
            )));
        }
        Ok(())
    }

    /// Claims the directory for a request to write there before anything else is done, so that a run that
    /// cannot have it ends at its start. A dry run is refused as well, and changes nothing.
    ///
    /// # Errors
    /// As [`OutputClaim::take`]; or what is to be replaced are SSTables that the request needs.
    pub fn claim(&self, request: &mut MergeRequest, dry_run: bool) -> Result<()> {
        let (directory, existing) = (&request.output_directory, request.existing_output);
        let lies_there = |path: &&PathBuf| {
            real_directory(path).is_some_and(|own| is_same_directory(&own, directory))
        };
        let mut needed = request.inputs.iter().chain(request.scope.named());
        if existing == ExistingOutput::Replace
            && let Some(needed) = needed.find(lies_there)
        {
            return Err(Error::refused(format!(
                "{} holds {}, which is an input or named as overlapping: it cannot be replaced. Choose \
                 another directory",
                directory.display(),
                needed.display()
            )));
        }
        let outputs = self.outputs_of_earlier_run();
        let replaceable = Replaceable {
            inputs: &request.inputs,
            table: request.table.as_ref(),
            outputs: &outputs,
        };
        if dry_run {
            OutputClaim::check(directory, existing, replaceable)?
        } else {
            request.claim = Some(OutputClaim::take(directory, existing, replaceable)?);
        }
        Ok(())
    }

    /// `Data.db` files that an earlier run recorded as its outputs here, and that still have the recorded
    /// length.
    fn outputs_of_earlier_run(&self) -> Vec<PathBuf> {
        let Ok(Some(record)) = RunRecord::read(&self.directory) else {
            return Vec::new();
        };
        let is_data = |file: &&OutputFile| file.component == Component::Data.file_suffix();
        let recorded = record.outputs.iter().filter_map(|output| {
            let path = self.directory.join(&output.data_file);
            let bytes = output.files.iter().find(is_data)?.file.bytes;
            let is_there = std::fs::metadata(&path).is_ok_and(|there| there.len() == bytes);
            is_there.then_some(path)
        });
        recorded.collect()
    }
}

/// The directory `<table>-<id>` that these SSTables are in, if it is one for all.
fn live_directory_of(sstables: &[PathBuf]) -> Option<PathBuf> {
    let first = real_directory(sstables.first()?)?;
    let table = TableDirectory::parse(&first)?;
    let is_live =
        table.table_id.is_some() && table.kind == DirectoryKind::Live && table.index.is_none();
    let is_there = |path| real_directory(path).as_ref() == Some(&first);
    (is_live && sstables.iter().all(is_there)).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name() -> Option<TableName> {
        Some(TableName {
            keyspace: "ks".to_owned(),
            table: "t_1".to_owned(),
        })
    }

    #[test]
    fn outputs_go_where_a_node_imports_from() {
        for (top, table, flat, expected) in [
            ("/scratch/out", name(), false, "/scratch/out/ks/t_1"),
            ("/scratch/out", name(), true, "/scratch/out"),
            ("/scratch/out", None, false, "/scratch/out"),
            ("/scratch/ks/t_1", name(), false, "/scratch/ks/t_1"),
            ("/scratch/ks/t_1/", name(), false, "/scratch/ks/t_1/"),
            ("/scratch/xks/t_1", name(), false, "/scratch/xks/t_1/ks/t_1"),
            ("/scratch/ks", name(), false, "/scratch/ks/ks/t_1"),
            ("ks/t_1", name(), false, "ks/t_1"),
        ] {
            let layout = OutputLayout::new(top, table, flat);
            assert_eq!(layout.directory(), Path::new(expected), "{top}");
            assert_eq!(layout.top(), Path::new(top));
        }
    }

    /// A schema is a text that anybody may have written.
    #[test]
    fn names_that_lead_elsewhere_are_not_taken() {
        use compactor_sstable::schema::Schema;
        for (name, expected) in [
            ("ks.t_1", name()),
            ("\"ks\".\"../../t\"", None),
            ("t_1", None),
        ] {
            let text = format!("CREATE TABLE {name} (k int PRIMARY KEY);");
            let Ok(schema) = Schema::parse(&text) else {
                assert_eq!(expected, None, "{name}");
                continue;
            };
            let table = schema.only_table().unwrap().clone();
            let table = Table {
                schema: Some((PathBuf::from("schema.cql"), table)),
                ..Table::default()
            };
            assert_eq!(TableName::of(&table), expected, "{name}");
        }
    }
}
