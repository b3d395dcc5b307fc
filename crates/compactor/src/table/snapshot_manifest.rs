//! `manifest.json` of a snapshot: lists its SSTables in all data directories of the table (`SnapshotManifest`).

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use compactor_sstable::Component;
use compactor_sstable::descriptor::Descriptor;
use serde::Deserialize;

use super::files::FileKey;
use crate::{Error, Result};

/// Name of the file. Cassandra writes it into one of the snapshot's directories.
pub(super) const MANIFEST: &str = "manifest.json";

/// Far above any snapshot's: a file that is larger is something else, and is not read into memory.
const MAX_MANIFEST_BYTES: u64 = 64 << 20;

/// Names of missing SSTables in a message.
const MAX_NAMED: usize = 3;

#[derive(Deserialize)]
struct Manifest {
    files: Vec<String>,
}

/// Refuses to purge if a snapshot's manifest in one of the directories lists a `Data.db` that is not among `known`: the
/// snapshot is only in part there, or also in other data directories. Returns a note on each manifest that cannot be
/// read, and on a snapshot without one.
///
/// SSTables of several nodes may have equal names. A snapshot has one manifest, so the files of a directory with
/// another one are of another snapshot.
///
/// # Errors
/// A refusal that names the missing files.
pub(super) fn refuse_missing<'a>(
    directories: &[PathBuf],
    known: impl Iterator<Item = &'a PathBuf>,
) -> Result<Vec<String>> {
    let mut notes = Vec::new();
    let mut manifests = Vec::new();
    let mut is_described = false;
    for path in directories.iter().map(|directory| directory.join(MANIFEST)) {
        if !exists(&path) {
            continue;
        }
        is_described = true;
        match data_files_of(&path) {
            Ok(listed) => manifests.push((path, listed)),
            Err(why) => notes.push(format!(
                "{}: {why}, so that whether SSTables of the snapshot are missing is not known",
                path.display()
            )),
        }
    }
    refuse_missing_of(&manifests, known)?;
    let mut snapshots = directories.iter().filter(|path| is_in_snapshots(path));
    if !is_described && let Some(snapshot) = snapshots.next() {
        notes.push(format!(
            "{}: no {MANIFEST}, which Cassandra writes into one of a snapshot's directories: if the table has several \
             data directories, name the snapshot's directory in each of them",
            snapshot.display()
        ));
    }
    Ok(notes)
}

/// Refuses the first manifest that lists an SSTable that is not known.
fn refuse_missing_of<'a>(
    manifests: &[(PathBuf, Vec<String>)],
    known: impl Iterator<Item = &'a PathBuf>,
) -> Result<()> {
    if manifests.is_empty() {
        return Ok(());
    }
    let known: BTreeMap<FileKey, &PathBuf> = known
        .filter_map(|path| Some((FileKey::of(path)?, path)))
        .collect();
    // Those that may be of any of the snapshots.
    let mut others = known.clone();
    others.retain(|_, path| !exists(&path.with_file_name(MANIFEST)));
    let mut elsewhere = Vec::new();
    for (manifest, listed) in manifests {
        let mut names = BTreeSet::new();
        let is_elsewhere = |name: &&String| {
            // Two data directories may have SSTables of one name.
            if !names.insert(String::clone(name)) {
                return true;
            }
            let file = FileKey::of(&manifest.with_file_name(name));
            let own = file.filter(|file| known.contains_key(file));
            own.map(|file| others.remove(&file)).is_none()
        };
        elsewhere.push(listed.iter().filter(is_elsewhere).collect::<Vec<_>>());
    }
    let mut counts: BTreeMap<&OsStr, usize> = BTreeMap::new();
    for name in others.values().filter_map(|path| path.file_name()) {
        *counts.entry(name).or_default() += 1;
    }
    for ((manifest, listed), names) in manifests.iter().zip(elsewhere) {
        let is_missing = |name: &&str| match counts.get_mut(OsStr::new(name)) {
            None | Some(0) => true,
            Some(count) => {
                *count -= 1;
                false
            }
        };
        let names = names.into_iter().map(String::as_str);
        let missing: Vec<&str> = names.filter(is_missing).collect();
        if !missing.is_empty() {
            return Err(refused(manifest, listed.len(), &missing));
        }
    }
    Ok(())
}

/// Whether there is an entry of this name, even one that cannot be looked up.
fn exists(path: &Path) -> bool {
    !fs::symlink_metadata(path).is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound)
}

/// Whether a directory is `TABLE/snapshots/NAME`.
fn is_in_snapshots(directory: &Path) -> bool {
    let real = directory.canonicalize().ok();
    real.is_some_and(|real| {
        real.parent()
            .is_some_and(|parent| parent.ends_with("snapshots"))
    })
}

fn refused(path: &Path, listed: usize, missing: &[&str]) -> Error {
    let named = &missing[..missing.len().min(MAX_NAMED)];
    let more = match missing.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Error::refused(format!(
        "{}: {} of the snapshot's {listed} SSTables are neither inputs nor named by --overlapping, in this directory or \
         in one without a {MANIFEST} of its own: {}{more}. They may hold rows that a purged tombstone deletes. If the \
         table has several data directories, add the snapshot's directory in each of them to the inputs, or name it \
         with --overlapping; if files were not copied, copy them. Otherwise use --no-purge",
        path.display(),
        missing.len(),
        named.join(", ")
    ))
}

/// Names of the table's own `Data.db` files in a manifest. Those of secondary indexes are listed with their directory.
fn data_files_of(path: &Path) -> std::result::Result<Vec<String>, String> {
    let is_data = |name: &String| {
        !name.contains('/')
            && Descriptor::parse(Path::new(name))
                .is_ok_and(|file| file.component == Some(Component::Data))
    };
    let manifest = read(path)?;
    Ok(manifest.files.into_iter().filter(is_data).collect())
}

fn read(path: &Path) -> std::result::Result<Manifest, String> {
    // A pipe that nobody writes to would be waited for.
    let metadata = fs::metadata(path).map_err(|e| format!("cannot be read ({e})"))?;
    if !metadata.is_file() || metadata.len() > MAX_MANIFEST_BYTES {
        return Err(format!(
            "is not a file of at most {MAX_MANIFEST_BYTES} bytes"
        ));
    }
    let bytes = fs::read(path).map_err(|e| format!("cannot be read ({e})"))?;
    serde_json::from_slice(&bytes).map_err(|e| format!("is not the manifest of a snapshot ({e})"))
}
