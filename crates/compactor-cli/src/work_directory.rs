//! Directory of a demonstration or an experiment: on a real disk, if there is one.

use std::path::{Path, PathBuf};

use compactor::Error;
use compactor_io::probe;
use serde::Serialize;

/// A directory and its file system.
#[derive(Clone, Debug, Serialize)]
pub struct WorkDirectory {
    /// The directory.
    pub directory: PathBuf,
    /// Type of the file system.
    pub file_system: Option<String>,
    /// Whether direct I/O works there.
    pub direct: bool,
    /// Reasons why direct I/O does not work there, or why other directories were not chosen.
    pub notes: Vec<String>,
}

impl WorkDirectory {
    /// Whether its file system is in memory.
    pub fn is_in_memory(&self) -> bool {
        matches!(
            self.file_system.as_deref(),
            Some("tmpfs" | "ramfs" | "devtmpfs")
        )
    }

    fn note_if_in_memory(&mut self) {
        if self.is_in_memory() {
            self.notes.push(format!(
                "{} is in memory: there is no disk to read from, and all that is there is in the \
                 page cache; name a directory on a disk with --directory",
                self.directory.display()
            ));
        }
    }

    /// The directory and its file system.
    pub fn describe(&self) -> String {
        match &self.file_system {
            Some(file_system) => format!("{} ({file_system})", self.directory.display()),
            None => self.directory.display().to_string(),
        }
    }
}

/// The directory asked for; otherwise the first of the usual ones that supports direct I/O; otherwise
/// the first that can be written to, one in memory last.
///
/// # Errors
/// If no directory can be used.
pub fn choose(asked: Option<&Path>) -> anyhow::Result<WorkDirectory> {
    if let Some(directory) = asked {
        let mut place = try_directory(directory).map_err(Error::invalid)?;
        place.note_if_in_memory();
        return Ok(place);
    }
    let mut usable: Vec<WorkDirectory> = Vec::new();
    let mut reasons = Vec::new();
    for directory in usual_directories() {
        match try_directory(&directory) {
            Ok(mut place) if place.direct => {
                place.notes = reasons;
                return Ok(place);
            }
            Ok(place) => {
                reasons.extend(
                    place
                        .notes
                        .iter()
                        .map(|note| format!("{}: {note}", directory.display())),
                );
                usable.push(place);
            }
            Err(reason) => reasons.push(reason),
        }
    }
    usable.sort_by_key(WorkDirectory::is_in_memory);
    match usable.into_iter().next() {
        Some(mut place) => {
            place.notes = reasons;
            place.note_if_in_memory();
            Ok(place)
        }
        None => Err(Error::invalid(format!(
            "no directory can be used ({}); name one on a disk with --directory",
            reasons.join("; ")
        ))
        .into()),
    }
}

fn usual_directories() -> Vec<PathBuf> {
    let mut directories = Vec::new();
    directories.extend(std::env::current_dir());
    directories.extend([std::env::temp_dir(), PathBuf::from("/var/tmp")]);
    let mut seen = Vec::new();
    directories.retain(|directory| {
        let is_new = !seen.contains(directory);
        seen.push(directory.clone());
        is_new
    });
    directories
}

/// Returns the facts about a writable directory, or why it is not writable.
fn try_directory(directory: &Path) -> Result<WorkDirectory, String> {
    let found = probe(directory).map_err(|e| e.to_string())?;
    if !found.writable.works() {
        return Err(format!(
            "{}: no file can be created in it: {}",
            directory.display(),
            why(&found.writable)
        ));
    }
    let direct = found.direct.works();
    let notes = if direct {
        Vec::new()
    } else {
        vec![format!(
            "{}: direct I/O does not work there: {}",
            directory.display(),
            why(&found.direct)
        )]
    };
    let file_system = found.mount.map(|mount| mount.file_system);
    Ok(WorkDirectory {
        directory: directory.to_owned(),
        file_system,
        direct,
        notes,
    })
}

fn why(support: &compactor_io::Support) -> String {
    use compactor_io::Support;
    match support {
        Support::Works => "it works".to_owned(),
        Support::Fails(reason) | Support::Unknown(reason) => reason.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_asked_for_is_used_or_refused() {
        let temp = tempfile::TempDir::new().unwrap();
        assert_eq!(choose(Some(temp.path())).unwrap().directory, temp.path());
        assert!(choose(Some(&temp.path().join("missing"))).is_err());
        let file = temp.path().join("file");
        std::fs::write(&file, b"").unwrap();
        assert!(choose(Some(&file)).is_err());
    }
}
