//! Finds processes that have the SSTables of a directory open, as a running node has.

use std::collections::HashMap;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use compactor_sstable::descriptor::Descriptor;
use rustix::io::Errno;

use crate::{Error, Result};

/// Processes that use a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Users {
    /// Processes with an SSTable of the directory open or mapped, except for this one.
    pub processes: Vec<User>,
    /// Processes that look like a Cassandra node by their command line, and whose open files this user may not
    /// inspect.
    pub hidden_nodes: Vec<User>,
    /// Number of other processes whose open files this user may not inspect.
    pub hidden: usize,
    /// Whether this user cannot see the processes of others, as `/proc` is mounted with `hidepid`.
    pub hides_others: bool,
}

/// A process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Process id.
    pub pid: u32,
    /// Its name, such as `java`.
    pub name: String,
    /// A file of the directory that it has open; `None` if its open files may not be inspected.
    pub file: Option<PathBuf>,
}

impl std::fmt::Display for User {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "process {} ({})", self.pid, self.name)
    }
}

impl Users {
    /// Finds the processes in `/proc` that use a directory. A file belongs to it if it was opened in it, as the
    /// process itself sees it: a process that reads a snapshot, a hard link to the same file, is not a user.
    /// Processes of other machines and containers are not found.
    ///
    /// # Errors
    /// A directory that cannot be looked up, a `/proc` that is not mounted or cannot be listed, or a process whose
    /// open files cannot be listed for another reason than a lack of permission.
    pub fn of(directory: &Path) -> Result<Users> {
        Users::among(Path::new("/proc"), directory)
    }

    fn among(proc: &Path, directory: &Path) -> Result<Users> {
        let metadata = fs::metadata(directory).map_err(Error::file("look up", directory))?;
        let directory = (metadata.dev(), metadata.ino());
        let is_there = |process: &str| {
            let path = proc.join(process);
            fs::metadata(&path).map_err(Error::file("look up", path))
        };
        is_there("self")?;
        let mut users = Users {
            hides_others: fs::read(proc.join("1/cmdline")).is_err(),
            ..Users::default()
        };
        for entry in compactor_io::read_dir(proc).map_err(Error::file("list", proc))? {
            let entry = entry.map_err(Error::file("list", proc))?;
            let pid = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok());
            let Some(pid) = pid.filter(|pid| *pid != std::process::id()) else {
                continue;
            };
            if !is_this_program(&entry.path()) {
                users.add(pid, &entry.path(), directory)?;
            }
        }
        Ok(users)
    }

    fn add(&mut self, pid: u32, process: &Path, directory: (u64, u64)) -> Result<()> {
        let user = |file| User {
            pid,
            name: name_of(process).unwrap_or_else(|| "?".to_owned()),
            file,
        };
        match sstable_open_in(process, directory) {
            Ok(None) => {}
            Ok(Some(file)) => self.processes.push(user(Some(file))),
            Err(e) if e.kind() == ErrorKind::PermissionDenied => {
                let command = fs::read(process.join("cmdline")).unwrap_or_default();
                let command = String::from_utf8_lossy(&command).to_lowercase();
                // Another run of this program names the node's directories as well.
                let is_like_ours = || name_of(process) == name_of(Path::new("/proc/self"));
                if ["cassandra", "scylla"]
                    .iter()
                    .any(|name| command.contains(name))
                    && !is_like_ours()
                {
                    self.hidden_nodes.push(user(None));
                } else if !command.is_empty() {
                    // Threads of the kernel and processes that have ended have no command line.
                    self.hidden += 1;
                }
            }
            Err(e) if has_ended(&e) => {}
            // Such as too many open files: the process may be a node.
            Err(e) => return Err(Error::file("inspect the open files of", process)(e)),
        }
        Ok(())
    }
}

/// Whether an error means that the process, or a file that it had open, is gone.
fn has_ended(error: &std::io::Error) -> bool {
    error.kind() == ErrorKind::NotFound || error.raw_os_error() == Some(Errno::SRCH.raw_os_error())
}

/// The name of a process as the kernel has it.
fn name_of(process: &Path) -> Option<String> {
    let name = fs::read_to_string(process.join("comm")).ok()?;
    Some(name.trim_end().to_owned())
}

/// Whether the process is another run of this program, which only reads these files. A process that is about to end
/// has its files open for a moment longer than its program: it is then identified by its name.
fn is_this_program(process: &Path) -> bool {
    let program = |process: &Path| {
        let metadata = fs::metadata(process.join("exe")).ok()?;
        Some((metadata.dev(), metadata.ino()))
    };
    let own = program(Path::new("/proc/self"));
    match program(process) {
        Some(other) => own == Some(other),
        None => name_of(process).is_some_and(|name| name_of(Path::new("/proc/self")) == Some(name)),
    }
}

/// A file of an SSTable in this directory that the process has open or mapped.
fn sstable_open_in(process: &Path, directory: (u64, u64)) -> std::io::Result<Option<PathBuf>> {
    let mut parents: HashMap<PathBuf, bool> = HashMap::new();
    let mut is_in = |file: &Path| {
        let Some(parent) = file.parent() else {
            return false;
        };
        if let Some(known) = parents.get(parent) {
            return *known;
        }
        // As the process sees it, which may have another root.
        let seen = parent.strip_prefix("/").unwrap_or(parent);
        let metadata = fs::metadata(process.join("root").join(seen));
        let found = metadata.is_ok_and(|metadata| (metadata.dev(), metadata.ino()) == directory);
        parents.insert(parent.to_owned(), found);
        found
    };
    for entry in compactor_io::read_dir(process.join("fd"))? {
        let target = match fs::read_link(entry?.path()) {
            Ok(target) => target,
            // Where it is not permitted, it is not for the mapped files either.
            Err(e) if has_ended(&e) || e.kind() == ErrorKind::PermissionDenied => continue,
            Err(e) => return Err(e),
        };
        if let Some(file) = sstable_file(&target).filter(|file| is_in(file)) {
            return Ok(Some(file));
        }
    }
    let maps = fs::read(process.join("maps"))?;
    for line in String::from_utf8_lossy(&maps).lines() {
        // address, rights, offset, device, inode, path.
        let Some(at) = line.find('/') else { continue };
        if let Some(file) = sstable_file(Path::new(&line[at..])).filter(|file| is_in(file)) {
            return Ok(Some(file));
        }
    }
    Ok(None)
}

/// The path, if it is that of a file of an SSTable; without what the kernel appends to those that are
/// removed.
fn sstable_file(path: &Path) -> Option<PathBuf> {
    let text = path.to_str()?;
    let path = Path::new(text.strip_suffix(" (deleted)").unwrap_or(text));
    (path.is_absolute() && Descriptor::parse(path).is_ok()).then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::process::{Child, Command, Stdio};

    /// Holds a file open as its standard input.
    struct Holder(Child);

    impl Holder {
        fn of(path: &Path) -> Holder {
            let file = File::open(path).unwrap();
            let child = Command::new("sleep")
                .arg("600")
                .stdin(Stdio::from(file))
                .spawn()
                .unwrap();
            Holder(child)
        }
    }

    impl Drop for Holder {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn processes_are_found_by_the_directory_of_their_open_sstables() {
        let temp = tempfile::tempdir().unwrap();
        let (live, snapshot) = (temp.path().join("t"), temp.path().join("t/snapshots/s"));
        fs::create_dir_all(&snapshot).unwrap();
        let data = live.join("nb-1-big-Data.db");
        fs::write(&data, "x").unwrap();
        fs::write(live.join("notes"), "x").unwrap();
        fs::hard_link(&data, snapshot.join("nb-1-big-Data.db")).unwrap();
        let ours = File::open(&data).unwrap();

        let _reader = Holder::of(&snapshot.join("nb-1-big-Data.db"));
        let _other = Holder::of(&live.join("notes"));
        assert_eq!(Users::of(&live).unwrap().processes, []);
        let node = Holder::of(&data);
        let users = Users::of(&live).unwrap().processes;
        assert_eq!(users.len(), 1, "{users:?}");
        assert_eq!(
            (users[0].pid, users[0].name.as_str()),
            (node.0.id(), "sleep")
        );
        assert_eq!(
            users[0].file.as_deref(),
            Some(&*data.canonicalize().unwrap())
        );

        // A node may still read removed files.
        fs::remove_file(&data).unwrap();
        assert_eq!(Users::of(&live).unwrap().processes.len(), 1);
        drop(node);
        assert_eq!(Users::of(&live).unwrap().processes, []);
        // Such as a `/proc` that is not mounted.
        assert!(Users::among(temp.path(), &live).is_err());
        // One that shows only the processes of this user.
        fs::create_dir(temp.path().join("self")).unwrap();
        assert!(Users::among(temp.path(), &live).unwrap().hides_others);
        assert!(!Users::of(&live).unwrap().hides_others);
        drop(ours);
    }

    /// A process that has ended, and one that may be a node.
    #[test]
    fn a_process_whose_open_files_cannot_be_listed_is_an_error() {
        let temp = tempfile::tempdir().unwrap();
        let proc = temp.path();
        fs::create_dir(proc.join("self")).unwrap();
        fs::create_dir(proc.join("42")).unwrap();
        assert_eq!(Users::among(proc, proc).unwrap().processes, []);
        fs::write(proc.join("42/fd"), "").unwrap();
        let error = Users::among(proc, proc).unwrap_err().to_string();
        assert!(error.contains("42: Not a directory"), "{error}");
    }
}
