//! Guard that removes created files unless all were created.

use std::fs;
use std::path::{Path, PathBuf};

use compactor_sstable::Component;
use compactor_sstable::descriptor::Descriptor;

use crate::{Error, Result};

/// Files and directories made so far.
#[derive(Debug)]
pub(super) struct Created {
    directory: PathBuf,
    /// Innermost last.
    directories: Vec<PathBuf>,
    files: Vec<PathBuf>,
}

impl Created {
    /// Makes a directory with all that are above it. It must be new, or empty.
    pub(super) fn directory(path: &Path) -> Result<Created> {
        let occupied = match compactor_io::read_dir(path) {
            Ok(mut entries) => entries.next().is_some(),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => false,
            Err(e) => return Err(Error::file("list", path)(e)),
        };
        if occupied {
            return Err(Error::invalid(format!(
                "{}: already exists and is not empty; choose another output directory, table or seed, or \
                 remove it",
                path.display()
            )));
        }
        let missing: Vec<PathBuf> = path
            .ancestors()
            .take_while(|p| !p.as_os_str().is_empty() && !p.exists())
            .map(Path::to_owned)
            .collect();
        let mut created = Created {
            directory: path.to_owned(),
            directories: Vec::new(),
            files: Vec::new(),
        };
        for directory in missing.into_iter().rev() {
            fs::create_dir(&directory).map_err(Error::file("create directory", &directory))?;
            created.directories.push(directory);
        }
        Ok(created)
    }

    /// Writes a file in the directory.
    pub(super) fn write(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.directory.join(name);
        self.files.push(path.clone());
        fs::write(&path, bytes).map_err(Error::file("write", path))
    }

    /// Remembers a published SSTable.
    pub(super) fn add_sstable(&mut self, descriptor: &Descriptor) {
        // `Data.db` is removed first: without it the other files are ignored.
        self.files
            .extend(Component::ALL.iter().rev().map(|c| descriptor.path(*c)));
        self.files.push(descriptor.path(Component::Data));
    }

    /// All is there.
    pub(super) fn keep(mut self) {
        self.files.clear();
        self.directories.clear();
    }
}

impl Drop for Created {
    fn drop(&mut self) {
        for path in self.files.iter().rev() {
            let _ = fs::remove_file(path);
        }
        for path in self.directories.iter().rev() {
            // Only if nothing else has come into it.
            let _ = fs::remove_dir(path);
        }
    }
}
