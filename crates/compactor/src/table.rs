//! SSTables of a table: finding them with their schema, and the operations on them.
//!
//! Each operation is a builder: [`Table::merge`], [`Table::compact`], [`Table::upgrade`],
//! [`Table::split`], [`Table::scrub`]. They share [`Purging`], [`OutputForm`] and [`Resources`], and refuse
//! operations that might lose data before anything is written.

mod compact;
mod live_directory;
mod merge;
mod node_command;
mod output_directory;
mod output_form;
mod output_layout;
mod purging;
mod resources;
mod rewrite;
mod rows;
mod scrub;
mod strategy_warning;
mod verified;

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use compactor_engine::input::parse_data_name;
use compactor_engine::publish::{is_harmless_log, is_run_directory};
use compactor_sstable::Component;
use compactor_sstable::compression::info::CompressionInfo;
use compactor_sstable::descriptor::{Descriptor, NameError, TableDirectory};
use compactor_sstable::schema::{Schema, Table as TableSchema};
use compactor_sstable::transaction_log;

use crate::error::{Error, Result};

pub use compact::{Compact, OpenedCompaction};
pub use merge::{Merge, Merged, OpenedMerge};
pub use node_command::{NextSteps, NodeCommand};
pub use output_directory::{ExistingOutput, OutputClaim};
pub use output_form::{Compression, DEFAULT_CHUNK_LENGTH, OutputForm};
pub use output_layout::{OutputLayout, TableName};
pub use purging::Purging;
pub use resources::Resources;
pub use rewrite::{Failure, PlannedRewrite, RewriteOutcome, Split, Unsplit, Upgrade};
pub use rows::{Column, Row, Rows};
pub use scrub::{Scrub, ScrubOutcome};

/// The SSTables of one table, and its schema as far as it is known.
#[derive(Debug, Default)]
pub struct Table {
    pub(crate) sstables: Vec<PathBuf>,
    pub(crate) siblings: Vec<PathBuf>,
    pub(crate) schema: Option<(PathBuf, TableSchema)>,
    notes: Vec<String>,
}

impl Table {
    /// Finds the SSTables of a table's or snapshot's directory, or the one whose `Data.db` is `path`, and
    /// the `schema.cql` alongside them.
    ///
    /// # Errors
    /// A path that does not exist, a directory without SSTables, a file that is not a `Data.db`, a
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
            let Some(found) = read_schema_alongside(&directory.join("schema.cql"))? else {
                continue;
            };
            match &table.schema {
                None => table.schema = Some(found),
                Some(first) => refuse_two_schemas(first, &found)?,
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

    /// Rewrites each SSTable in another version or compression.
    pub fn upgrade(&self, form: OutputForm) -> Upgrade<'_> {
        Upgrade::new(self, form)
    }

    /// Splits each SSTable whose `Data.db` is larger than `bytes` on disk.
    pub fn split(&self, bytes: u64) -> Split<'_> {
        Split::new(self, bytes)
    }

    /// Salvages what can be read of each SSTable.
    pub fn scrub(&self) -> Scrub<'_> {
        Scrub::new(self)
    }

    /// Refuses SSTables that have appeared in the directories since the table was opened. Called once a
    /// run that purges has opened its inputs: from then on the run itself looks for new ones.
    fn refuse_new_sstables(&self) -> Result<()> {
        let found = self.sstables.iter().chain(&self.siblings);
        let known: BTreeSet<PathBuf> = found.filter_map(|path| path.canonicalize().ok()).collect();
        let directories: BTreeSet<&Path> = known.iter().filter_map(|path| path.parent()).collect();
        let mut there = directories.into_iter().flat_map(data_files);
        let is_new = |path: &PathBuf| path.canonicalize().is_ok_and(|own| !known.contains(&own));
        match there.find(is_new) {
            None => Ok(()),
            Some(new) => Err(Error::refused(format!(
                "{} has appeared beside the inputs since they were found, and may hold rows that purged \
                 tombstones shadow. Merge a snapshot (`nodetool snapshot`), or stop the node first",
                new.display()
            ))),
        }
    }

    /// Uncompressed bytes of the SSTables, roughly.
    fn roughly_uncompressed_bytes(&self) -> u64 {
        let sstables = self.sstables.iter();
        sstables.map(|path| roughly_uncompressed_bytes(path)).sum()
    }

    /// Returns a note if these SSTables are a snapshot or backup and the table's directory has others:
    /// only the snapshot is complete.
    fn outside_snapshot(&self) -> Option<String> {
        let own: Vec<PathBuf> = self
            .sstables
            .iter()
            .filter_map(|path| path.canonicalize().ok())
            .collect();
        let tables: BTreeSet<&Path> = own
            .iter()
            .filter_map(|path| table_directory_above(path.parent()?))
            .collect();
        // Snapshots are hard links, unless somebody has copied them.
        let identity = |path: &Path| fs::metadata(path).ok().map(|m| (m.dev(), m.ino()));
        let names: BTreeSet<_> = own.iter().filter_map(|path| path.file_name()).collect();
        let files: BTreeSet<_> = own.iter().filter_map(|path| identity(path)).collect();
        let is_outside = |path: &PathBuf| {
            !path.file_name().is_some_and(|name| names.contains(name))
                && !identity(path).is_some_and(|file| files.contains(&file))
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
            "--complete vouches for the snapshot only, but the \
             directory of the table, {}, holds {} not in it: if the output is to join them, name them with --overlapping \
             instead",
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
                return Err(none_in(path));
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
    refuse_two_tables(&table.sstables)?;
    let named: Vec<PathBuf> = table
        .sstables
        .iter()
        .filter_map(|path| path.canonicalize().ok())
        .collect();
    let mut known: BTreeSet<PathBuf> = named.iter().cloned().collect();
    for directory in with_link_targets(&directories, &named) {
        let mut ignored = Vec::new();
        for path in list(&directory, &mut ignored)? {
            let own = path.canonicalize().unwrap_or_else(|_| path.clone());
            if known.insert(own) {
                table.siblings.push(path);
            }
        }
    }
    Ok((table, directories))
}

/// The directories, and those that files are really in that were named through a symbolic link.
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

/// `Data.db` files of a directory, as far as it can be read, in no order; whatever else is there.
pub fn data_files(directory: &Path) -> Vec<PathBuf> {
    let entries = compactor_io::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| {
            Descriptor::parse(path).is_ok_and(|file| file.component == Some(Component::Data))
        })
        .collect()
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

/// Refuses SSTables in directories of different tables. Files that were copied elsewhere do not name their
/// table; their columns and key are compared later.
///
/// # Errors
/// Names two that are of different tables.
fn refuse_two_tables(sstables: &[PathBuf]) -> Result<()> {
    let mut first: Option<(&PathBuf, TableDirectory)> = None;
    for path in sstables {
        let directory = path
            .canonicalize()
            .ok()
            .and_then(|p| p.parent().map(Path::to_owned));
        let Some(table) = directory.and_then(|d| TableDirectory::parse(&d)) else {
            continue;
        };
        if table.table_id.is_none() {
            // Any directory in another looks like a table's of old.
            continue;
        }
        let of_one = |a: &TableDirectory, b: &TableDirectory| {
            (&a.keyspace, &a.table, &a.table_id, &a.index)
                == (&b.keyspace, &b.table, &b.table_id, &b.index)
        };
        match &first {
            None => first = Some((path, table)),
            Some((_, known)) if of_one(known, &table) => {}
            Some((other, known)) => {
                return Err(Error::invalid(format!(
                    "inputs are not of one table: {} is of {}.{} and {} of {}.{}",
                    other.display(),
                    known.keyspace,
                    known.table,
                    path.display(),
                    table.keyspace,
                    table.table
                )));
            }
        }
    }
    Ok(())
}

/// Why these may be of two tables although nothing contradicts it: they lie in several directories,
/// some of which do not say what table they are of.
fn doubt_one_table(sstables: &[PathBuf]) -> Option<String> {
    let directory = |path: &PathBuf| Some(path.canonicalize().ok()?.parent()?.to_owned());
    let directories: BTreeSet<PathBuf> = sstables.iter().filter_map(directory).collect();
    let is_named = |d: &PathBuf| TableDirectory::parse(d).is_some_and(|t| t.table_id.is_some());
    let bare = directories.iter().find(|d| !is_named(d))?;
    let other = directories.iter().find(|d| *d != bare)?;
    Some(format!(
        "{} and {} are taken for one table's: their types agree, but not both are named \
         KEYSPACE/TABLE-ID. Make sure that they are",
        bare.display(),
        other.display()
    ))
}

/// A node that is compacting here, or was cut off, has left a `*_txn_*.log`: some SSTables may be half
/// written or already replaced (`LogFile`). So has a run of this program that was killed while it put
/// several outputs in place. A log by which nothing is to be deleted does no harm.
pub(crate) fn refuse_transaction_log(path: &Path) -> Result<()> {
    let name = path.file_name().map(|n| n.to_string_lossy());
    if !name.is_some_and(|n| transaction_log::is_file_name(&n)) {
        return Ok(());
    }
    if is_harmless_log(path)? {
        return Ok(());
    }
    Err(Error::refused(format!(
        "{}: a transaction of a Cassandra node, or of a run of this program that was killed, is under \
         way here or was cut off: some SSTables in this directory may be half written or already \
         replaced. Merge a snapshot, or start and stop the node so that it cleans up; what this program \
         left goes when it next writes into this directory",
        path.display()
    )))
}

/// The name of the index whose SSTables this directory in a table's holds: it begins with a dot.
fn secondary_index(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    // What a run of this program is writing.
    if is_run_directory(name) {
        return None;
    }
    let index = name.strip_prefix('.')?;
    (!data_files(path).is_empty()).then(|| index.to_owned())
}

/// No SSTable is in `directory`. Names one below it that has some: `merge` writes to `OUTPUT/KEYSPACE/TABLE`.
pub(crate) fn none_in(directory: &Path) -> Error {
    let advice = match first_below(directory, 2) {
        Some(below) => format!("{} has some", below.display()),
        None => "name a table's or snapshot's own directory".to_owned(),
    };
    Error::invalid(format!(
        "{}: no SSTables here (files named <version>-<id>-big-Data.db or -bti-Data.db); {advice}",
        directory.display()
    ))
}

/// The first directory with SSTables, by name, at most `levels` below. A directory that cannot be listed
/// counts as empty.
fn first_below(directory: &Path, levels: u32) -> Option<PathBuf> {
    let mut below: Vec<PathBuf> = compactor_io::read_dir(directory)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_dir())
        .collect();
    below.sort_unstable();
    below.into_iter().find_map(|path| {
        if list(&path, &mut Vec::new()).is_ok_and(|found| !found.is_empty()) {
            return Some(path);
        }
        (levels > 1).then(|| first_below(&path, levels - 1))?
    })
}

/// `Data.db` files of one directory, ascending by id.
fn list(directory: &Path, notes: &mut Vec<String>) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut others = Vec::new();
    for entry in compactor_io::read_dir(directory).map_err(Error::file("list", directory))? {
        let path = entry.map_err(Error::file("list", directory))?.path();
        refuse_transaction_log(&path)?;
        if let Some(index) = secondary_index(&path) {
            notes.push(format!(
                "left alone: secondary index {index:?} in {}; Cassandra rebuilds it when it loads the \
                 output",
                path.display()
            ));
            continue;
        }
        match Descriptor::parse(&path) {
            Ok(file) if file.component == Some(Component::Data) => {
                found.push((file.descriptor.id, path));
            }
            Ok(file) if file.component.is_some() => others.push(file.descriptor),
            Ok(_) | Err(NameError::NotAnSstable(_)) => {}
            Err(temporary @ NameError::Temporary(_)) => {
                notes.push(format!("left alone: {temporary}"));
            }
            Err(other) => {
                let is_data = path
                    .file_name()
                    .is_some_and(|n| n.to_string_lossy().ends_with(Component::Data.file_suffix()));
                if is_data {
                    return Err(compactor_sstable::Error::from(other).into());
                }
                notes.push(format!("left alone: {other}"));
            }
        }
    }
    for descriptor in others {
        let data = descriptor.path(Component::Data);
        if !data.try_exists().map_err(Error::file("look up", &data))? {
            // Going on without it would be to lose it, and to purge what still shadows its rows.
            return Err(compactor_sstable::Error::corrupt(
                "sstable",
                0,
                "a file Data.db beside the other components of this SSTable",
                "no such file",
            )
            .with_file(&data, Component::Data)
            .into());
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

/// Uncompressed length of a `Data.db`, as far as it is to be had without opening the SSTable: for the
/// total of a progress.
pub fn roughly_uncompressed_bytes(data_path: &Path) -> u64 {
    let stored = fs::metadata(data_path).map_or(0, |metadata| metadata.len());
    let uncompressed = || {
        let descriptor = Descriptor::parse(data_path).ok()?.descriptor;
        let info = fs::read(descriptor.path(Component::CompressionInfo)).ok()?;
        let info = CompressionInfo::parse(&info, descriptor.version, stored).ok()?;
        Some(info.data_len)
    };
    uncompressed().unwrap_or(stored)
}

fn read_schema_alongside(path: &Path) -> Result<Option<(PathBuf, TableSchema)>> {
    if matches!(fs::metadata(path), Err(e) if e.kind() == ErrorKind::NotFound) {
        return Ok(None);
    }
    let schema = read_schema(path)?;
    if schema.tables.is_empty() && is_omitted(path)? {
        return Ok(None);
    }
    let table = schema.only_table().map_err(|e| not_a_schema(path, e))?;
    Ok(Some((path.to_owned(), table.clone())))
}

/// Cassandra describes a table that CQL cannot make, one of the time of Thrift, in a comment, and says so
/// (`TableMetadata.toCqlString`): that is no schema.
fn is_omitted(path: &Path) -> Result<bool> {
    let text = fs::read(path).map_err(Error::file("read", path))?;
    let says = b"omitted because it has constructs not compatible with CQL";
    Ok(text.windows(says.len()).any(|window| window == says))
}

/// Far above any table's: a file that is larger is something else, and is not read into memory.
const MAX_SCHEMA_BYTES: u64 = 64 << 20;

fn read_schema(path: &Path) -> Result<Schema> {
    // A pipe that nobody writes to would be waited for.
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(e) if e.kind() == ErrorKind::NotFound => {
            return Err(not_a_schema(path, "no such file"));
        }
        Err(e) => return Err(Error::file("read", path)(e)),
    };
    if !metadata.is_file() {
        return Err(not_a_schema(path, "it is not a file"));
    }
    if metadata.len() > MAX_SCHEMA_BYTES {
        let why = format!(
            "it has {} bytes, more than the {MAX_SCHEMA_BYTES} that any schema has",
            metadata.len()
        );
        return Err(not_a_schema(path, why));
    }
    let bytes = fs::read(path).map_err(Error::file("read", path))?;
    let text = String::from_utf8(bytes).map_err(|e| not_a_schema(path, e.utf8_error()))?;
    Schema::parse(&text).map_err(|e| not_a_schema(path, e))
}

fn not_a_schema(path: &Path, why: impl std::fmt::Display) -> Error {
    Error::invalid(format!(
        "{}: {why}; give the table's schema with --schema, as `schema.cql` of a snapshot has it",
        path.display()
    ))
}

/// Columns and drops decide what is left of the data: there must be no doubt of them.
fn refuse_two_schemas(
    first: &(PathBuf, TableSchema),
    other: &(PathBuf, TableSchema),
) -> Result<()> {
    let same = (&first.1.columns, &first.1.dropped_columns, &first.1.options)
        == (&other.1.columns, &other.1.dropped_columns, &other.1.options);
    if same {
        return Ok(());
    }
    Err(Error::refused(format!(
        "{} and {} differ; say with --schema which of them is the table's schema now",
        first.0.display(),
        other.0.display()
    )))
}

/// The table of a schema that the SSTables are of, by the name of their directory where there are
/// several.
fn choose_table(path: &Path, sstables: &[PathBuf]) -> Result<TableSchema> {
    let schema = read_schema(path)?;
    if let [only] = &schema.tables[..] {
        return Ok(only.clone());
    }
    let directory = sstables
        .iter()
        .filter_map(|sstable| TableDirectory::parse(sstable.canonicalize().ok()?.parent()?))
        .find(|directory| directory.table_id.is_some());
    let of_directory = directory.and_then(|d| schema.table(&d.keyspace, &d.table).cloned());
    match of_directory {
        Some(table) => Ok(table),
        None => {
            schema.only_table().map_err(|e| not_a_schema(path, e))?;
            Err(not_a_schema(path, "no table of the SSTables' directory"))
        }
    }
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
