//! The SSTables in a directory, and files by which it must not be read.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use compactor_engine::publish::{is_harmless_log, is_run_directory};
use compactor_sstable::Component;
use compactor_sstable::compression::info::CompressionInfo;
use compactor_sstable::descriptor::{Descriptor, NameError};
use compactor_sstable::transaction_log;

use super::schema_file::SCHEMA;
use super::snapshot_manifest::MANIFEST;
use crate::{Error, Result};

/// The directory that a file is in, without symbolic links; `None` if it cannot be looked up.
pub(crate) fn real_directory(path: impl AsRef<Path>) -> Option<PathBuf> {
    Some(path.as_ref().canonicalize().ok()?.parent()?.to_owned())
}

/// Whether two paths lead to the same directory, which may be mounted at both.
pub(crate) fn is_same_directory(one: &Path, other: &Path) -> bool {
    let inode = |path: &Path| {
        let found = fs::metadata(path).ok()?;
        Some((found.dev(), found.ino()))
    };
    inode(one).is_some_and(|one| inode(other) == Some(one))
}

/// Whether a directory, which need not exist, is another one or below it, under any path.
pub(crate) fn is_within(directory: &Path, other: &Path) -> bool {
    directory
        .ancestors()
        .any(|above| is_same_directory(above, other))
}

/// A file under any of its names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum FileKey {
    /// Device and inode of a file with several hard links.
    Linked(u64, u64),
    /// The only name of a file, without symbolic links. Inodes of such files are not compared: some network file systems
    /// assign the same number twice.
    Path(PathBuf),
}

impl FileKey {
    /// `None` if the file cannot be looked up.
    pub(super) fn of(path: &Path) -> Option<FileKey> {
        let found = fs::metadata(path).ok()?;
        match found.nlink() {
            0 | 1 => path.canonicalize().ok().map(FileKey::Path),
            _ => Some(FileKey::Linked(found.dev(), found.ino())),
        }
    }
}

/// `Data.db` files of a directory, in any order; entries that cannot be read are left out.
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

/// Lists the `Data.db` paths of all SSTables with any component in these directories, including those whose `Data.db`
/// is missing and names that only [`verify`](crate::verify::verify) can judge; files are taken as they are named. As
/// for a merge, a snapshot's directory may have only `schema.cql` or `manifest.json` if another input has SSTables.
///
/// # Errors
/// A directory cannot be listed, is in use by a node, or has no SSTables.
pub fn find_sstables(inputs: &[impl AsRef<Path>]) -> Result<Vec<PathBuf>> {
    let mut found = BTreeSet::new();
    let mut without = None;
    for input in inputs.iter().map(AsRef::as_ref) {
        if !input.is_dir() {
            found.insert(input.to_owned());
            continue;
        }
        let more = sstables_in(input)?;
        if more.is_empty() {
            description_in(input).ok_or_else(|| none_in(input))?;
            without = without.or(Some(input));
        }
        found.extend(more);
    }
    match without {
        Some(directory) if found.is_empty() => Err(none_in(directory)),
        _ => Ok(found.into_iter().collect()),
    }
}

fn sstables_in(directory: &Path) -> Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    for entry in compactor_io::read_dir(directory).map_err(Error::file("list", directory))? {
        let path = entry.map_err(Error::file("list", directory))?.path();
        refuse_transaction_log(&path)?;
        match Descriptor::parse(&path) {
            Ok(file) if file.component.is_some() => {
                found.insert(file.descriptor.path(Component::Data));
            }
            Ok(_) | Err(NameError::NotAnSstable(_) | NameError::Temporary(_)) => {}
            Err(_) if is_named_as_data(&path) => {
                found.insert(path);
            }
            Err(_) => {}
        }
    }
    Ok(found)
}

/// Whether a file is a `Data.db` by the end of its name, of whatever version.
fn is_named_as_data(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    name.ends_with(Component::Data.file_suffix().as_bytes())
}

/// A node that is compacting here, or was interrupted, has left a `*_txn_*.log`: some SSTables may be half
/// written or already replaced (`LogFile`). So has a run of this program that was killed while it put
/// several outputs in place. A log by which nothing is to be deleted does no harm.
fn refuse_transaction_log(path: &Path) -> Result<()> {
    let name = path.file_name().map(|n| n.to_string_lossy());
    if !name.is_some_and(|n| transaction_log::is_file_name(&n)) {
        return Ok(());
    }
    if is_harmless_log(path)? {
        return Ok(());
    }
    Err(Error::refused(format!(
        "{}: transaction log of a Cassandra node, or of a run of this program, that is in progress or was \
         interrupted: some SSTables in this directory may be half written or already replaced. Merge a \
         snapshot instead, or start and stop the node so that it cleans up. If a run of this program was \
         killed, run the same command again",
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

/// The file in a snapshot's directory that describes the snapshot. Of a table with several data directories, such a
/// directory may have no SSTable.
pub(super) fn description_in(directory: &Path) -> Option<PathBuf> {
    let names = [SCHEMA, MANIFEST];
    let mut files = names.iter().map(|name| directory.join(name));
    files.find(|path| path.is_file())
}

/// No SSTable is in `directory`. Names one below it that has some: `merge` writes to `OUTPUT/KEYSPACE/TABLE`.
pub(super) fn none_in(directory: &Path) -> Error {
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
pub(super) fn list(directory: &Path, notes: &mut Vec<String>) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut others = Vec::new();
    for entry in compactor_io::read_dir(directory).map_err(Error::file("list", directory))? {
        let path = entry.map_err(Error::file("list", directory))?.path();
        refuse_transaction_log(&path)?;
        if let Some(index) = secondary_index(&path) {
            notes.push(format!(
                "left alone: secondary index {index:?} in {}, which the node maintains itself",
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
            Err(other) if is_named_as_data(&path) => {
                return Err(compactor_sstable::Error::from(other).into());
            }
            Err(other) => notes.push(format!("left alone: {other}")),
        }
    }
    for descriptor in others {
        let data = descriptor.path(Component::Data);
        if !data.try_exists().map_err(Error::file("look up", &data))? {
            // Going on without it would be to lose it, and to purge what still shadows its rows.
            return Err(compactor_sstable::Error::corrupt(
                "sstable",
                0,
                "a file Data.db with the other components of this SSTable",
                "no such file",
            )
            .with_file(&data, Component::Data)
            .into());
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

/// Estimate of the uncompressed length of a `Data.db`, without opening the SSTable; for progress totals.
pub fn roughly_uncompressed_bytes(data_path: &Path) -> u64 {
    let stored = fs::metadata(data_path).map_or(0, |metadata| metadata.len());
    let uncompressed = || {
        let descriptor = Descriptor::parse(data_path).ok()?.descriptor;
        let info = descriptor.path(Component::CompressionInfo);
        // Reading a pipe might block forever.
        let info = fs::metadata(&info)
            .ok()?
            .is_file()
            .then(|| fs::read(info))?;
        let info = info.ok()?;
        let info = CompressionInfo::parse(&info, descriptor.version, stored).ok()?;
        Some(info.data_len)
    };
    uncompressed().unwrap_or(stored)
}
