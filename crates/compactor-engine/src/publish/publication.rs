//! Transaction that makes several outputs appear all or none.
//!
//! One output appears with a single rename, that of its `Data.db`; several cannot. So a transaction log in
//! Cassandra's format is in the output directory while they are moved. Until it contains COMMIT, Cassandra
//! and this program regard them as incomplete, and the log is enough to delete them if its writer is gone: a
//! node does so when it starts, this program when it next writes there.
//!
//! Source: `LogTransaction`, `LogFile.removeUnfinishedLeftovers`.

use std::fmt::Write as _;
use std::fs::{self, File, Metadata};
use std::path::Path;

use compactor_io::{DirectoryEntry, remove_if_exists, sync_directory};
use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::transaction_log::{self, Record, TransactionLog};
use compactor_sstable::{Component, Version};

use crate::error::{Error, Result};
use crate::input::existing::{if_exists, list};
use crate::publish::file_identity::FileIdentity;
use crate::publish::output_id::new_time_uuid;
use crate::publish::transaction_file::TransactionFile;

/// File in the staging directory: the name of the log, followed by a line with identity and name for each file
/// to be moved. Another file of that name was put there by another program and is not deleted.
pub(crate) const NOTE: &str = "transaction";

/// Maximum length of a log or note: enough for a hundred thousand SSTables.
const MAX_LEN: u64 = 64 << 20;

/// An output: staging directory, descriptor and components.
pub(crate) type Moved<'a> = (&'a Path, &'a Descriptor, &'a [Component]);

/// Creates the log of the move of these outputs to `target`, and a note of it in `staging`. Returns the log, still
/// empty, and the lines with which it [begins](TransactionFile::begin).
///
/// # Errors
/// A failed file operation. There is no log then.
pub(crate) fn create_log<'a>(
    staging: &Path,
    target: &Path,
    outputs: impl IntoIterator<Item = Moved<'a>>,
) -> Result<(TransactionFile, String)> {
    let directory = target
        .canonicalize()
        .map_err(Error::file("look up", target))?;
    let (mut records, mut files, mut version) = (String::new(), String::new(), Version::Nb);
    for (written_in, descriptor, components) in outputs {
        let data = descriptor.file_name(Component::Data);
        let prefix = data.strip_suffix(Component::Data.file_suffix());
        let path = directory.join(prefix.unwrap_or(&data));
        records += &Record::add(&path.to_string_lossy(), components.len()).line();
        for component in components {
            let name = descriptor.file_name(*component);
            let path = written_in.join(&name);
            let file = FileIdentity::of(&path).map_err(Error::file("look up", path))?;
            let _ = writeln!(files, "{} {name}", noted(&file));
        }
        version = descriptor.version;
    }
    let (ticks, lsb) = new_time_uuid();
    let name = transaction_log::file_name(version, ticks, lsb);
    // The note is written first: a log without a note would never be removed.
    let note = staging.join(NOTE);
    fs::write(&note, format!("{name}\n{files}")).map_err(Error::file("write", &note))?;
    sync_file(&note)?;
    sync_directory(staging)?;

    Ok((TransactionFile::create(target, &name)?, records))
}

fn noted(file: &FileIdentity) -> String {
    let FileIdentity {
        device,
        inode,
        bytes,
        modified_ns,
    } = file;
    format!("{device} {inode} {bytes} {modified_ns}")
}

/// Reads a line of a note: a file and its name.
fn read_noted(line: &str) -> Option<(FileIdentity, &str)> {
    let mut fields = line.splitn(5, ' ');
    let mut number = || fields.next();
    let file = FileIdentity {
        device: number()?.parse().ok()?,
        inode: number()?.parse().ok()?,
        bytes: number()?.parse().ok()?,
        modified_ns: number()?.parse().ok()?,
    };
    Some((file, fields.next()?))
}

pub(crate) fn sync_file(path: &Path) -> Result<()> {
    File::open(path)
        .and_then(|file| file.sync_all())
        .map_err(Error::file("sync", path))
}

/// Reads a small regular file; `None` if there is none of this name.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    let metadata = metadata_of(path)?;
    if metadata.is_some_and(|metadata| metadata.is_file() && metadata.len() <= MAX_LEN) {
        if_exists(fs::read(path)).map_err(Error::file("read", path))
    } else {
        Ok(None)
    }
}

/// Metadata of the file itself, also if it is a symbolic link; `None` if it does not exist.
pub(crate) fn metadata_of(path: &Path) -> Result<Option<Metadata>> {
    if_exists(fs::symlink_metadata(path)).map_err(Error::file("look up", path))
}

/// Deletes the files that a killed run had moved from `staging` to `target` if it had not committed, and its
/// log.
///
/// # Errors
/// A failed file operation, or a damaged log.
pub(crate) fn undo_unfinished(staging: &Path, target: &Path) -> Result<()> {
    let note = read(&staging.join(NOTE))?.unwrap_or_default();
    let note = String::from_utf8_lossy(&note);
    let mut lines = note.lines();
    let name = lines.next().unwrap_or_default();
    // Interrupted while the note was written: there is no log yet.
    if !name.contains("_txn_compaction_")
        || !transaction_log::is_file_name(name)
        || name.contains('/')
    {
        return Ok(());
    }
    let path = target.join(name);
    let Some(bytes) = read(&path)? else {
        return Ok(());
    };
    let log = TransactionLog::parse(&bytes).map_err(|error| {
        Error::InvalidInput(format!(
            "{}: {error}. A run that was killed left this log: remove it, and the SSTables that it names",
            path.display()
        ))
    })?;
    TransactionFile::make_durable(&path, &bytes)?;
    if !log.is_committed() {
        let files: Vec<(FileIdentity, &str)> = lines.filter_map(read_noted).collect();
        // `Data.db` is deleted first: the other components are useless without it, even if this is
        // interrupted.
        for is_data in [true, false] {
            for (file, name) in &files {
                if name.ends_with(Component::Data.file_suffix()) == is_data {
                    remove_if_ours(&target.join(name), file)?;
                }
            }
        }
    }
    sync_directory(target)?;
    remove_if_exists(&path)?;
    Ok(sync_directory(target)?)
}

fn remove_if_ours(path: &Path, file: &FileIdentity) -> Result<()> {
    let is_component = Descriptor::parse(path).is_ok_and(|file| file.component.is_some());
    let is_ours =
        metadata_of(path)?.is_some_and(|found| FileIdentity::from(&found).is_same_file(file));
    if is_component && is_ours {
        remove_if_exists(path)?;
    }
    Ok(())
}

/// Whether a transaction log requires nothing to be deleted: it is complete and lists no files to be removed.
///
/// # Errors
/// A failed system call.
pub fn is_harmless_log(path: &Path) -> Result<bool> {
    let Some(bytes) = read(path)? else {
        // Its transaction has just ended; or it is not a regular file.
        let exists = path.try_exists().map_err(Error::file("look up", path))?;
        return Ok(!exists);
    };
    let log = TransactionLog::parse(&bytes);
    Ok(log.is_ok_and(|log| log.is_committed() && log.leftovers().next().is_none()))
}

/// Whether this is a transaction log that is not harmless.
pub(crate) fn is_unfinished_log(entry: &DirectoryEntry) -> Result<bool> {
    let name = entry.file_name();
    Ok(transaction_log::is_file_name(&name.to_string_lossy()) && !is_harmless_log(&entry.path())?)
}

/// Refuses a directory with a log that requires files to be deleted: the cleanup might delete files that are
/// put there now.
///
/// # Errors
/// [`Error::Refused`] naming the log, or a directory that cannot be listed.
pub fn refuse_unfinished(target: &Path) -> Result<()> {
    for entry in list(target)? {
        let entry = entry?;
        if is_unfinished_log(&entry)? {
            return Err(Error::Refused(format!(
                "{}: a transaction is in progress here, or was interrupted, and a node that starts here may \
                 delete what is written now. Choose another directory, or start and stop the node so that \
                 it cleans up",
                entry.path().display()
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use compactor_sstable::sstable_id::SstableId;

    const COMPONENTS: [Component; 2] = [Component::Toc, Component::Data];

    /// A run that was killed after it had moved both files of an output, before or while committing.
    fn begun(target: &Path) -> (PathBuf, TransactionFile) {
        let staging = target.join(".compactor-1-1");
        fs::create_dir(&staging).unwrap();
        let descriptor = Descriptor::new("", Version::Oa, "7".parse::<SstableId>().unwrap());
        for component in COMPONENTS {
            fs::write(staging.join(descriptor.file_name(component)), "x").unwrap();
        }
        let outputs = [(&*staging, &descriptor, &COMPONENTS[..])];
        let (mut log, records) = create_log(&staging, target, outputs).unwrap();
        log.begin(&records, |_| Ok(())).unwrap();
        for component in COMPONENTS {
            let name = descriptor.file_name(component);
            fs::rename(staging.join(&name), target.join(&name)).unwrap();
        }
        (staging, log)
    }

    fn sstables(target: &Path) -> usize {
        let names = fs::read_dir(target)
            .unwrap()
            .map(|e| e.unwrap().file_name());
        names
            .filter(|n| n.to_string_lossy().starts_with("oa-7"))
            .count()
    }

    #[test]
    fn moved_files_are_removed_unless_committed() {
        let temp = tempfile::tempdir().unwrap();
        let (staging, log) = begun(temp.path());
        let log = log.path().to_owned();
        assert!(!is_harmless_log(&log).unwrap());
        assert!(matches!(
            refuse_unfinished(temp.path()),
            Err(Error::Refused(_))
        ));
        undo_unfinished(&staging, temp.path()).unwrap();
        assert_eq!((sstables(temp.path()), log.exists()), (0, false));
        refuse_unfinished(temp.path()).unwrap();
        undo_unfinished(&staging, temp.path()).unwrap();

        fs::remove_dir_all(&staging).unwrap();
        let (staging, mut log) = begun(temp.path());
        log.append(&Record::commit().line()).unwrap();
        let log = log.path().to_owned();
        assert!(is_harmless_log(&log).unwrap());
        undo_unfinished(&staging, temp.path()).unwrap();
        assert_eq!((sstables(temp.path()), log.exists()), (2, false));
    }

    /// Another program has put other files under these names.
    #[test]
    fn files_of_other_programs_are_kept() {
        let temp = tempfile::tempdir().unwrap();
        let (staging, _log) = begun(temp.path());
        // The new inode is allocated before the old one can be reused.
        let theirs = temp.path().join("theirs");
        fs::write(&theirs, "theirs").unwrap();
        fs::rename(&theirs, temp.path().join("oa-7-big-Data.db")).unwrap();
        undo_unfinished(&staging, temp.path()).unwrap();
        assert_eq!(sstables(temp.path()), 1);
    }

    /// As after a remount of sshfs.
    #[test]
    fn moved_files_with_other_inode_numbers_are_removed() {
        let temp = tempfile::tempdir().unwrap();
        let (staging, log) = begun(temp.path());
        for component in COMPONENTS {
            let path = temp
                .path()
                .join(format!("oa-7-big-{}", component.file_suffix()));
            let modified = fs::metadata(&path).unwrap().modified().unwrap();
            let copy = temp.path().join("copy");
            fs::copy(&path, &copy).unwrap();
            let file = File::options().append(true).open(&copy).unwrap();
            file.set_modified(modified).unwrap();
            fs::rename(&copy, &path).unwrap();
        }
        undo_unfinished(&staging, temp.path()).unwrap();
        assert_eq!((sstables(temp.path()), log.path().exists()), (0, false));
    }

    #[test]
    fn incomplete_notes_are_ignored() {
        let temp = tempfile::tempdir().unwrap();
        let staging = temp.path().join("staging");
        fs::create_dir_all(staging.join(NOTE)).unwrap();
        undo_unfinished(&staging, temp.path()).unwrap();
        fs::remove_dir(staging.join(NOTE)).unwrap();
        for text in [
            &b"\xff\xfe"[..],
            b"",
            b"../oa_txn_compaction_x.log\n1 1 1 1 oa-7-big-Data.db",
            b"b.log",
        ] {
            fs::write(staging.join(NOTE), text).unwrap();
            undo_unfinished(&staging, temp.path()).unwrap();
        }
    }
}
