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

/// Name of the file. Cassandra writes it into one of the snapshot's directories, from 6.0 on into each of them.
pub(super) const MANIFEST: &str = "manifest.json";

/// Far above any snapshot's: a file that is larger is something else, and is not read into memory.
const MAX_MANIFEST_BYTES: u64 = 64 << 20;

/// Names of missing SSTables in a message.
const MAX_NAMED: usize = 3;

#[derive(Deserialize)]
struct Manifest {
    files: Vec<String>,
    /// Before 4.1 there is none.
    created_at: Option<String>,
}

/// A snapshot, as its manifests describe it.
struct Snapshot {
    /// Directories with its manifest.
    directories: Vec<PathBuf>,
    /// Names of its `Data.db` in all data directories, in order; the table's own ones.
    listed: Vec<String>,
    created_at: Option<String>,
}

impl Snapshot {
    fn of(directory: PathBuf) -> std::result::Result<Snapshot, String> {
        let manifest = read(&directory.join(MANIFEST))?;
        // Those of secondary indexes are listed with their directory.
        let is_data = |name: &String| {
            !name.contains('/')
                && Descriptor::parse(Path::new(name))
                    .is_ok_and(|file| file.component == Some(Component::Data))
        };
        let mut listed: Vec<String> = manifest.files.into_iter().filter(is_data).collect();
        listed.sort();
        Ok(Snapshot {
            directories: vec![directory],
            listed,
            created_at: manifest.created_at,
        })
    }

    /// Whether the other one is the same snapshot in another data directory. Snapshots of other nodes may have equal
    /// lists, but were not taken in the same millisecond.
    fn is_also(&self, other: &Snapshot) -> bool {
        self.created_at.is_some()
            && self.created_at == other.created_at
            && self.listed == other.listed
    }

    /// Known files of this name in its directories.
    fn own(&self, name: &str, known: &BTreeMap<FileKey, &PathBuf>) -> BTreeSet<FileKey> {
        let directories = self.directories.iter();
        let files = directories.filter_map(|directory| FileKey::of(&directory.join(name)));
        files.filter(|file| known.contains_key(file)).collect()
    }
}

/// Refuses to purge if a snapshot's manifest in one of the directories lists a `Data.db` that is not among `known`: the
/// snapshot is only in part there, or also in other data directories. Returns a note on each manifest that cannot be
/// read, and on a snapshot without one.
///
/// SSTables of several nodes may have equal names. The files of a directory with another snapshot's manifest are of that
/// snapshot.
///
/// # Errors
/// A refusal that names the missing files.
pub(super) fn refuse_missing<'a>(
    directories: &[PathBuf],
    known: impl Iterator<Item = &'a PathBuf>,
) -> Result<Vec<String>> {
    let mut notes = Vec::new();
    let mut snapshots: Vec<Snapshot> = Vec::new();
    let mut is_described = false;
    for directory in directories {
        let path = directory.join(MANIFEST);
        if !exists(&path) {
            continue;
        }
        is_described = true;
        match Snapshot::of(directory.clone()) {
            Ok(snapshot) => match snapshots.iter_mut().find(|other| other.is_also(&snapshot)) {
                Some(same) => same.directories.extend(snapshot.directories),
                None => snapshots.push(snapshot),
            },
            Err(why) => notes.push(format!(
                "{}: {why}, so that whether SSTables of the snapshot are missing is not known",
                path.display()
            )),
        }
    }
    refuse_missing_of(&mut snapshots, directories, known)?;
    let mut in_snapshots = directories.iter().filter(|path| is_in_snapshots(path));
    if !is_described && let Some(snapshot) = in_snapshots.next() {
        notes.push(format!(
            "{}: no {MANIFEST}, which Cassandra writes into one of a snapshot's directories, or into each: if the table \
             has several data directories, name the snapshot's directory in each of them",
            snapshot.display()
        ));
    }
    Ok(notes)
}

/// Refuses the first snapshot that lists an SSTable that is not known. `directories` are those of the inputs.
fn refuse_missing_of<'a>(
    snapshots: &mut [Snapshot],
    directories: &[PathBuf],
    known: impl Iterator<Item = &'a PathBuf>,
) -> Result<()> {
    if snapshots.is_empty() {
        return Ok(());
    }
    let known: BTreeMap<FileKey, &PathBuf> = known
        .filter_map(|path| Some((FileKey::of(path)?, path)))
        .collect();
    let parents = known.values().filter_map(|path| path.parent());
    let parents: BTreeSet<&Path> = parents.collect();
    let is_overlapping = |path: &&Path| directories.iter().all(|directory| directory != path);
    for directory in parents.into_iter().filter(is_overlapping) {
        if let Ok(other) = Snapshot::of(directory.to_owned())
            && let Some(same) = snapshots
                .iter_mut()
                .find(|snapshot| snapshot.is_also(&other))
        {
            same.directories.extend(other.directories);
        }
    }
    // Those that may be of any of the snapshots.
    let mut others = known.clone();
    others.retain(|_, path| !exists(&path.with_file_name(MANIFEST)));
    let mut elsewhere = Vec::new();
    for snapshot in &*snapshots {
        // Two data directories may have SSTables of one name.
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        let mut names = Vec::new();
        for name in &snapshot.listed {
            let count = counts.entry(name).or_default();
            match snapshot.own(name, &known).into_iter().nth(*count) {
                Some(file) => drop(others.remove(&file)),
                None => names.push(name),
            }
            *count += 1;
        }
        elsewhere.push(names);
    }
    let mut counts: BTreeMap<&OsStr, usize> = BTreeMap::new();
    for name in others.values().filter_map(|path| path.file_name()) {
        *counts.entry(name).or_default() += 1;
    }
    for (snapshot, names) in snapshots.iter().zip(elsewhere) {
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
            return Err(refused(snapshot, &missing));
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

fn refused(snapshot: &Snapshot, missing: &[&str]) -> Error {
    let named = &missing[..missing.len().min(MAX_NAMED)];
    let more = match missing.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let listed = snapshot.listed.len();
    let path = snapshot.directories[0].join(MANIFEST);
    Error::refused(format!(
        "{}: {} of the snapshot's {listed} SSTables are neither inputs nor named by --overlapping, in this directory or \
         in one without the {MANIFEST} of another snapshot: {}{more}. They may hold rows that a purged tombstone deletes. If the \
         table has several data directories, add the snapshot's directory in each of them to the inputs, or name it \
         with --overlapping; if files were not copied, copy them. Otherwise use --no-purge",
        path.display(),
        missing.len(),
        named.join(", ")
    ))
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
