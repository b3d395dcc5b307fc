//! SSTable ids of outputs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use compactor_io::lock;

use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::sstable_id::SstableId;

use crate::error::{Error, Result};
use crate::input::existing::list_if_exists;

/// Value on Linux, for every architecture. `EPERM`, which maps to the same `ErrorKind`, does not concern the
/// right to list a directory.
const EACCES: i32 = 13;

/// Returns the output's id: one after those of the inputs (given by their `Data.db`), of the SSTables in the
/// directory, and of these other SSTables of the table.
///
/// # Errors
/// A directory that cannot be listed, or no id is left.
pub fn next_id(
    output_directory: &Path,
    inputs: &[PathBuf],
    others: &[PathBuf],
) -> Result<SstableId> {
    let id_of = |path: &PathBuf| Some(Descriptor::parse(path).ok()?.descriptor.id);
    let mut taken: Vec<SstableId> = inputs.iter().filter_map(id_of).collect();
    if taken.iter().any(|id| matches!(id, SstableId::Uuid { .. })) {
        return new_uuid_id();
    }
    taken.extend(ids_in(output_directory)?);
    taken.extend(others.iter().filter_map(id_of));
    // SSTables next to the inputs, or in the table of which the inputs are a snapshot, must not be
    // overwritten when the output is moved there. There may be tens of thousands of them, so each directory
    // is listed once.
    let mut directories: BTreeSet<PathBuf> = BTreeSet::new();
    for data in inputs {
        let data = data.canonicalize().map_err(Error::file("open", data))?;
        let parents = data.ancestors().skip(1).take(3);
        directories.extend(parents.map(Path::to_owned));
    }
    for directory in &directories {
        match ids_in(directory) {
            // Parent directories may be unreadable for a user who may read the directory itself.
            Err(Error::File { cause, .. }) if cause.raw_os_error() == Some(EACCES) => {}
            ids => taken.extend(ids?),
        }
    }
    SstableId::next_sequence(taken).ok_or_else(no_id_left)
}

fn no_id_left() -> Error {
    Error::invalid("no SSTable id is left")
}

fn ids_in(directory: &Path) -> Result<Vec<SstableId>> {
    let mut ids = Vec::new();
    for entry in list_if_exists(directory)? {
        if let Ok(file) = Descriptor::parse(&entry?.path()) {
            ids.push(file.descriptor.id);
        }
    }
    Ok(ids)
}

/// Returns an id made of a new UUID.
///
/// # Errors
/// A clock set later than the year 6181.
pub fn new_uuid_id() -> Result<SstableId> {
    let (ticks, lsb) = new_time_uuid();
    SstableId::from_uuid_parts(ticks, lsb)
        .map_err(|e| Error::Internal(format!("make an SSTable id: {e}")))
}

/// Returns a version-1 UUID of the current time, as ticks and lower half. Node and sequence are random, which
/// RFC 4122 permits.
pub fn new_time_uuid() -> (i64, i64) {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let ticks = SstableId::ticks_from_unix(now.as_secs() as i64, now.subsec_nanos());
    // Each new `RandomState` has random keys from the system.
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    // Variant bits 10, and the multicast bit, which distinguishes a random node from a hardware address.
    let lsb = (hasher.finish() & 0x3fff_ffff_ffff_ffff) | 0x8000_0100_0000_0000;
    (ticks, lsb as i64)
}

/// Ids for the outputs of merges into one directory, which share them. Each id is returned once.
#[derive(Clone, Debug)]
pub struct OutputIds {
    /// `None` if no id is left.
    next: Arc<Mutex<Option<SstableId>>>,
}

impl OutputIds {
    /// This id and those after it; after a UUID new UUIDs.
    pub fn starting_at(first: SstableId) -> OutputIds {
        OutputIds {
            next: Arc::new(Mutex::new(Some(first))),
        }
    }

    /// Returns the next id.
    ///
    /// # Errors
    /// No id is left.
    pub fn take(&self) -> Result<SstableId> {
        let mut next = lock(&self.next);
        let id = next.ok_or_else(no_id_left)?;
        *next = match id {
            SstableId::Uuid { .. } => Some(new_uuid_id()?),
            sequence => sequence.next(),
        };
        Ok(id)
    }
}
