//! SSTables of a table: finding them with their schema, and the operations on them.
//!
//! Each operation is a builder: [`Table::merge`], [`Table::compact`], [`Table::upgrade`],
//! [`Table::split`], [`Table::scrub`]. They share [`Purging`], [`OutputForm`] and [`Resources`], and refuse
//! operations that might lose data before anything is written.

mod compact;
mod dry_run;
mod files;
mod live_directory;
mod merge;
mod node_command;
mod one_table;
mod output_directory;
mod output_form;
mod output_layout;
pub mod plan;
mod purging;
mod resources;
mod rewrite;
mod rewrite_record;
mod rows;
mod schema_file;
mod scrub;
mod snapshot_manifest;
mod strategy_choice;
mod strategy_warning;
mod strip_ttl;
mod verified;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use compactor_engine::input::parse_data_name;
use compactor_engine::job::refuse_duplicates;
use compactor_sstable::schema::Table as TableSchema;

use crate::{Error, Result};

use files::{FileKey, description_in, list, none_in};
pub(crate) use files::{is_same_directory, is_within, real_directory};
use one_table::{doubt_one_table, refuse_two_tables};
use schema_file::{
    FoundSchema, SCHEMA, choose_table, in_comment, read_schema_alongside, refuse_two_schemas,
};

pub(crate) use verified::{OutputCheck, Verified};

pub use compact::{Compact, OpenedCompaction};
pub use dry_run::DryRun;
pub use files::{data_files, find_sstables, roughly_uncompressed_bytes};
pub use merge::{Merge, Merged, OpenedMerge};
pub use node_command::{Levels, NextSteps, NodeCommand};
pub(crate) use output_directory::refuse_file;
pub use output_directory::{ExistingOutput, OutputClaim};
pub use output_form::{CHUNK_LENGTHS, Compression, DEFAULT_CHUNK_LENGTH, OutputForm};
pub use output_layout::{OutputLayout, TableName};
pub use plan::Planning;
pub use purging::Purging;
pub use resources::{MAX_THREADS, Resources};
pub use rewrite::{Failure, PlannedRewrite, RewriteOutcome, RewritePlan, Split, Unsplit, Upgrade};
pub use rows::{Column, Row, Rows};
pub use scrub::Scrub;
pub use strategy_choice::{Release, StrategyChoice};

/// The SSTables of one table, and its schema if known.
#[derive(Debug, Default)]
pub struct Table {
    pub(crate) sstables: Vec<PathBuf>,
    pub(crate) siblings: Vec<PathBuf>,
    /// Those of the SSTables, and of their targets where they are symbolic links.
    directories: Vec<PathBuf>,
    pub(crate) schema: Option<(PathBuf, TableSchema)>,
    /// A `schema.cql` that has the table in a comment only.
    commented_schema: Option<PathBuf>,
    notes: Vec<String>,
}

impl Table {
    /// Finds the SSTables of a table's or snapshot's directory, or the one whose `Data.db` is `path`, and
    /// the `schema.cql` alongside them.
    ///
    /// # Errors
    /// A path that does not exist, a directory without SSTables (one with `schema.cql` or `manifest.json` is accepted
    /// alongside others, as the part of a snapshot in one of several data directories), a file that is not a `Data.db`, a
    /// transaction log of a node, or a `schema.cql` that cannot be read.
    pub fn open(path: impl AsRef<Path>) -> Result<Table> {
        Table::open_all(&[path.as_ref().to_owned()], None)
    }

    /// As [`Table::open`], for several paths. With `schema`, that file describes the table, and perhaps
    /// others; a `schema.cql` alongside the SSTables is not read then.
    ///
    /// # Errors
    /// As [`Table::open`]; two schemas that differ; paths of two tables; a schema without the table.
    pub fn open_all(paths: &[PathBuf], schema: Option<&Path>) -> Result<Table> {
        let (mut table, directories) = find_files(paths)?;
        if let Some(path) = schema {
            let schema = choose_table(path, &table.sstables)?;
            table.schema = Some((path.to_owned(), schema));
            return Ok(table);
        }
        for directory in &directories {
            let path = directory.join(SCHEMA);
            match (read_schema_alongside(&path)?, &table.schema) {
                (FoundSchema::None, _) => {}
                (FoundSchema::InComment, _) => table.commented_schema = Some(path),
                (FoundSchema::Table(found), None) => table.schema = Some((path, *found)),
                (FoundSchema::Table(found), Some(first)) => {
                    refuse_two_schemas(first, &(path, *found))?;
                }
            }
        }
        Ok(table)
    }

    /// As [`Table::open_all`], but reads no schema.
    ///
    /// # Errors
    /// As [`Table::open`].
    pub fn open_without_schema(paths: &[PathBuf]) -> Result<Table> {
        Ok(find_files(paths)?.0)
    }

    /// The reason why a `schema.cql` next to the SSTables is not used, if there is no other.
    fn unread_schema(&self) -> Option<String> {
        let path = self.commented_schema.as_ref();
        path.filter(|_| self.schema.is_none())
            .map(|path| in_comment(path))
    }

    /// A table without SSTables so far.
    pub(crate) fn of_schema(schema: TableSchema) -> Table {
        Table {
            schema: Some((PathBuf::from("the schema"), schema)),
            ..Table::default()
        }
    }

    /// `Data.db` of each SSTable, ascending by id within a directory.
    pub fn sstables(&self) -> &[PathBuf] {
        &self.sstables
    }

    /// `Data.db` of SSTables in the directories of the named ones that are not named themselves. Where a
    /// named one is a symbolic link, its target's directory counts too.
    pub fn siblings(&self) -> &[PathBuf] {
        &self.siblings
    }

    /// The schema, if it is known.
    pub fn schema(&self) -> Option<&TableSchema> {
        self.schema.as_ref().map(|(_, schema)| schema)
    }

    /// Sentences on files that were left out, and why.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Keyspace and name, from the directories or the schema.
    pub fn name(&self) -> Option<TableName> {
        TableName::of(self)
    }

    /// Merges the SSTables into one, or several.
    pub fn merge(&self) -> Merge<'_> {
        Merge::new(self)
    }

    /// Compacts the SSTables by a strategy until it finds nothing more to do.
    pub fn compact(&self) -> Compact<'_> {
        Compact::new(self)
    }

    /// Plans the compactions that a node would start now, by any of Cassandra's strategies.
    pub fn plan(&self) -> Planning<'_> {
        Planning::new(self)
    }

    /// Rewrites each SSTable in another version or compression.
    pub fn upgrade(&self, form: OutputForm) -> Upgrade<'_> {
        Upgrade::new(self, form)
    }

    /// Splits each SSTable whose `Data.db` is larger than `bytes` on disk.
    pub fn split(&self, bytes: u64) -> Split<'_> {
        Split::new(self, bytes)
    }

    /// Salvages the readable data of each SSTable.
    pub fn scrub(&self) -> Scrub<'_> {
        Scrub::new(self)
    }

    /// Refuses SSTables that have appeared in the directories since the table was opened. Called once a
    /// run that purges has opened its inputs: from then on the run itself looks for new ones.
    fn refuse_new_sstables(&self) -> Result<()> {
        let found = self.sstables.iter().chain(&self.siblings);
        let real: BTreeSet<PathBuf> = found.filter_map(|path| path.canonicalize().ok()).collect();
        let directories: BTreeSet<&Path> = real.iter().filter_map(|path| path.parent()).collect();
        let there = directories.into_iter().flat_map(data_files);
        // Mostly none. By path first: a snapshot that is taken or removed meanwhile changes the number of links.
        let is_other = |path: &PathBuf| path.canonicalize().is_ok_and(|own| !real.contains(&own));
        let others: Vec<PathBuf> = there.filter(is_other).collect();
        let mut known = BTreeSet::new();
        if !others.is_empty() {
            known.extend(real.iter().filter_map(|path| FileKey::of(path)));
        }
        let is_new = |path: &&PathBuf| FileKey::of(path).is_some_and(|file| !known.contains(&file));
        match others.iter().find(is_new) {
            None => Ok(()),
            Some(new) => Err(Error::refused(format!(
                "{} has appeared next to the inputs since they were found, and may hold rows that a purged \
                 tombstone deletes. Merge a snapshot (`nodetool snapshot`), or stop the node first",
                new.display()
            ))),
        }
    }

    /// Keeps one of the SSTables that are the same file under several names, as those of snapshots and backups are: the
    /// one in the table's own directory, otherwise the first.
    fn leave_out_hard_links(&mut self) {
        let is_link_of_node =
            |path: &PathBuf| path.parent().and_then(table_directory_above).is_some();
        let (links, own): (Vec<PathBuf>, Vec<PathBuf>) = std::mem::take(&mut self.sstables)
            .into_iter()
            .partition(is_link_of_node);
        let mut known = BTreeMap::new();
        let mut left_out = Vec::new();
        for path in own.into_iter().chain(links) {
            match FileKey::of(&path).map(|file| known.entry(file)) {
                Some(Entry::Occupied(kept)) => left_out.push((path, PathBuf::clone(kept.get()))),
                Some(Entry::Vacant(entry)) => {
                    entry.insert(path.clone());
                    self.sstables.push(path);
                }
                // One that was removed meanwhile is reported when it is read.
                None => self.sstables.push(path),
            }
        }
        self.siblings
            .retain(|path| FileKey::of(path).is_none_or(|file| !known.contains_key(&file)));
        if let [(link, kept), ..] = &left_out[..] {
            self.notes.push(format!(
                "{} of the SSTables {} a hard link to one that is named as well, and read once, such as {} to {}",
                left_out.len(),
                if left_out.len() == 1 { "is" } else { "are each" },
                link.display(),
                kept.display()
            ));
        }
    }

    /// Uncompressed bytes of the SSTables, roughly.
    fn roughly_uncompressed_bytes(&self) -> u64 {
        let sstables = self.sstables.iter();
        sstables.map(|path| roughly_uncompressed_bytes(path)).sum()
    }

    /// Returns a note if these SSTables are a snapshot or backup and the table's directory has others, which are not
    /// among `overlapping` either: a purge does not look at them.
    fn outside_snapshot(&self, overlapping: &[PathBuf]) -> Option<String> {
        let real = |paths: &[PathBuf]| -> Vec<PathBuf> {
            let real = paths.iter().filter_map(|path| path.canonicalize().ok());
            real.collect()
        };
        let own = real(&self.sstables);
        let known = [own.clone(), real(overlapping)].concat();
        let tables: BTreeSet<&Path> = own
            .iter()
            .filter_map(|path| table_directory_above(path.parent()?))
            .collect();
        // Snapshots are hard links, unless somebody has copied them.
        let names: BTreeSet<_> = known.iter().filter_map(|path| path.file_name()).collect();
        let files: BTreeSet<_> = known.iter().filter_map(|path| FileKey::of(path)).collect();
        let is_outside = |path: &PathBuf| {
            !path.file_name().is_some_and(|name| names.contains(name))
                && !FileKey::of(path).is_some_and(|file| files.contains(&file))
        };
        let (table, count) = tables
            .into_iter()
            .map(|table| {
                (
                    table,
                    data_files(table).iter().filter(|p| is_outside(p)).count(),
                )
            })
            .find(|(_, count)| *count > 0)?;
        Some(format!(
            "the table's directory {} has {} neither in the snapshot nor named by --overlapping: if the output is to \
             join them, name them all by --overlapping",
            table.display(),
            match count {
                1 => "1 SSTable that is".to_owned(),
                count => format!("{count} SSTables that are"),
            }
        ))
    }
}

/// The SSTables, and the directories that they are in.
fn find_files(paths: &[PathBuf]) -> Result<(Table, Vec<PathBuf>)> {
    let mut table = Table::default();
    let mut directories = Vec::new();
    let mut described = Vec::new();
    for path in paths {
        let metadata = match fs::metadata(path) {
            Ok(metadata) => metadata,
            Err(e) if e.kind() == ErrorKind::NotFound => {
                return Err(Error::invalid(format!(
                    "{}: no such file or directory; name a table's or snapshot's directory, or \
                     Data.db files",
                    path.display()
                )));
            }
            Err(e) => return Err(Error::file("open", path)(e)),
        };
        if metadata.is_dir() {
            let mut found = list(path, &mut table.notes)?;
            if found.is_empty() {
                described.push(description_in(path).ok_or_else(|| none_in(path))?);
            }
            table.sstables.append(&mut found);
            directories.push(path.clone());
        } else {
            parse_data_name(path)?;
            table.sstables.push(path.clone());
            let directory = match path.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
                _ => PathBuf::from("."),
            };
            if !directories.contains(&directory) {
                directories.push(directory);
            }
        }
    }
    if table.sstables.is_empty()
        && let Some(first) = directories.first()
    {
        return Err(none_in(first));
    }
    let files: Vec<PathBuf> = [&table.sstables[..], &described].concat();
    refuse_two_tables(&files)?;
    // One that was removed meanwhile is reported when it is read.
    let named: Vec<PathBuf> = table
        .sstables
        .iter()
        .filter_map(|path| path.canonicalize().ok())
        .collect();
    refuse_duplicates(&named)?;
    // With broken links, which have no other path.
    let mut known: BTreeSet<PathBuf> = named.iter().chain(&table.sstables).cloned().collect();
    table.directories = with_link_targets(&directories, &named);
    for directory in &table.directories {
        let mut ignored = Vec::new();
        for path in list(directory, &mut ignored)? {
            let own = path.canonicalize().unwrap_or_else(|_| path.clone());
            if known.insert(own) {
                table.siblings.push(path);
            }
        }
    }
    table.leave_out_hard_links();
    Ok((table, directories))
}

/// The directories, and the real directories of files that were named through a symbolic link.
fn with_link_targets(directories: &[PathBuf], files: &[PathBuf]) -> Vec<PathBuf> {
    let mut known: BTreeSet<PathBuf> = directories
        .iter()
        .filter_map(|directory| directory.canonicalize().ok())
        .collect();
    let mut all = directories.to_vec();
    for parent in files.iter().filter_map(|file| file.parent()) {
        if known.insert(parent.to_owned()) {
            all.push(parent.to_owned());
        }
    }
    all
}

/// `TABLE` of `TABLE/snapshots/NAME` and `TABLE/backups` (`Directories`).
pub(crate) fn table_directory_above(directory: &Path) -> Option<&Path> {
    let parent = directory.parent()?;
    if directory.ends_with("backups") {
        return Some(parent);
    }
    parent
        .ends_with("snapshots")
        .then(|| parent.parent())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_appears_after_the_search_is_refused() {
        let temp = tempfile::tempdir().unwrap();
        fs::write(temp.path().join("nb-1-big-Data.db"), b"x").unwrap();
        fs::write(temp.path().join("nb-2-big-Data.db"), b"x").unwrap();
        let found = Table::open(temp.path().join("nb-1-big-Data.db")).unwrap();
        found.refuse_new_sstables().unwrap();
        fs::write(temp.path().join("nb-3-big-Data.db"), b"x").unwrap();
        let error = found.refuse_new_sstables().unwrap_err();
        assert!(error.to_string().contains("nb-3-big-Data.db"), "{error}");
    }

    #[test]
    fn secondary_indexes_are_left_alone_and_named() {
        let temp = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let path = temp.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, b"x").unwrap();
        };
        make("nb-1-big-Data.db");
        make(".by_a/nb-1-big-Data.db");
        make(".compactor-1-2-3/nb-2-big-Data.db");
        make(".other/file");
        let found = Table::open(temp.path()).unwrap();
        assert_eq!(found.sstables, [temp.path().join("nb-1-big-Data.db")]);
        let [note] = &found.notes[..] else {
            panic!("{:?}", found.notes);
        };
        assert!(note.contains("secondary index \"by_a\""), "{note}");
    }
}
