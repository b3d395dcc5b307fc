//! What makes several outputs appear all or none.
//!
//! One output appears by one rename, that of its `Data.db`. Several cannot. So a transaction log as
//! Cassandra writes them lies in the output directory while they are moved: until it says COMMIT,
//! Cassandra and this program take them for half written, and whoever finds the log without its
//! writer deletes them: a node when it starts, this program when it next writes there.
//!
//! Source: `LogTransaction`, `LogFile.removeUnfinishedLeftovers`.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use compactor_io::{remove_if_exists, sync_directory};
use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::transaction_log::{self, Record, TransactionLog};
use compactor_sstable::{Component, Version};

use crate::error::{Error, Result};
use crate::publish::output_id::new_time_uuid;
use crate::publish::transaction_file::TransactionFile;

/// In the staging directory: the name of the log, and in each line behind it the inode and the name of a
/// file that is moved. What has another inode is not ours to delete.
pub(crate) const NOTE: &str = "transaction";

/// Longest log or note that is read: room for a hundred thousand SSTables.
const MAX_LEN: u64 = 64 << 20;

/// One output: where it was written, its names, and its components.
pub(crate) type Moved<'a> = (&'a Path, &'a Descriptor, &'a [Component]);

/// A log without a COMMIT so far.
#[derive(Debug)]
pub(crate) struct Publication {
    log: TransactionFile,
}

impl Publication {
    /// Says that these outputs are about to be moved to `target`. That is durable when this returns.
    ///
    /// # Errors
    /// A failed file operation. No log is left then.
    pub(crate) fn begin<'a>(
        staging: &Path,
        target: &Path,
        outputs: impl IntoIterator<Item = Moved<'a>>,
    ) -> Result<Publication> {
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
                let metadata = fs::metadata(&path).map_err(Error::file("look up", path))?;
                let _ = writeln!(files, "{} {name}", metadata.ino());
            }
            version = descriptor.version;
        }
        let (ticks, lsb) = new_time_uuid();
        let name = transaction_log::file_name(version, ticks, lsb);
        // The note first: a log that nobody knows of would stay.
        let note = staging.join(NOTE);
        fs::write(&note, format!("{name}\n{files}")).map_err(Error::file("write", &note))?;
        sync_file(&note)?;
        sync_directory(staging)?;

        let log = TransactionFile::create(target, &name, &records, |_| Ok(()))?;
        Ok(Publication { log })
    }

    /// Everything has been moved, and that is durable: from here on the outputs stay. The log has done
    /// its work; false if it could not be removed, which the next run does if it finds the note.
    ///
    /// # Errors
    /// A failed write: what has been moved must be taken back, and then [`Publication::abandon`]ed, unless
    /// it [is in doubt](Self::is_in_doubt).
    pub(crate) fn commit(&mut self) -> Result<bool> {
        self.log.append(&Record::commit().line())?;
        // A log that stays says that there is nothing to delete.
        Ok(self.log.remove())
    }

    /// True if the COMMIT may be on disk, though it could not be synced: what has been moved must stay, and
    /// the log with it.
    pub(crate) fn is_in_doubt(&self) -> bool {
        self.log.is_in_doubt()
    }

    /// Removes the log, when nothing is left of what has been moved.
    pub(crate) fn abandon(&self) {
        self.log.remove();
    }
}

fn sync_file(path: &Path) -> Result<()> {
    File::open(path)
        .and_then(|file| file.sync_all())
        .map_err(Error::file("sync", path))
}

/// A small regular file; `None` if there is none.
fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    match fs::symlink_metadata(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(Error::file("look up", path)(e)),
        Ok(metadata) if !metadata.is_file() || metadata.len() > MAX_LEN => return Ok(None),
        Ok(_) => {}
    }
    match fs::read(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        read => read.map(Some).map_err(Error::file("read", path)),
    }
}

/// Deletes what a killed run had moved from `staging` to `target` if it had not come to COMMIT, and
/// its log.
///
/// # Errors
/// A failed file operation, or a damaged log.
pub(crate) fn undo_unfinished(staging: &Path, target: &Path) -> Result<()> {
    let note = read(&staging.join(NOTE))?.unwrap_or_default();
    let note = String::from_utf8_lossy(&note);
    let mut lines = note.lines();
    let name = lines.next().unwrap_or_default();
    // Cut off while the note was written: there is no log yet.
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
        let files: Vec<(u64, &str)> = lines
            .filter_map(|line| line.split_once(' '))
            .filter_map(|(inode, name)| Some((inode.parse().ok()?, name)))
            .collect();
        // Without its `Data.db` the rest is nothing, whenever this is cut off.
        for is_data in [true, false] {
            for (inode, name) in &files {
                if name.ends_with(Component::Data.file_suffix()) == is_data {
                    remove_if_ours(&target.join(name), *inode)?;
                }
            }
        }
    }
    sync_directory(target)?;
    remove_if_exists(&path)?;
    Ok(sync_directory(target)?)
}

fn remove_if_ours(path: &Path, inode: u64) -> Result<()> {
    let is_component = Descriptor::parse(path).is_ok_and(|file| file.component.is_some());
    let is_ours = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata.ino() == inode,
        Err(e) if e.kind() == ErrorKind::NotFound => false,
        Err(e) => return Err(Error::file("look up", path)(e)),
    };
    if is_component && is_ours {
        remove_if_exists(path)?;
    }
    Ok(())
}

/// True if a transaction's log does not ask for anything to be deleted: it is at its end, and has
/// removed nothing.
///
/// # Errors
/// The system's.
pub fn is_harmless_log(path: &Path) -> Result<bool> {
    let Some(bytes) = read(path)? else {
        // Its transaction has just ended; or it is no file.
        let exists = path.try_exists().map_err(Error::file("look up", path))?;
        return Ok(!exists);
    };
    let log = TransactionLog::parse(&bytes);
    Ok(log.is_ok_and(|log| log.is_committed() && log.leftovers().next().is_none()))
}

/// Refuses a directory with a log that asks for something to be deleted: whoever acts on it might delete
/// what is put here now.
///
/// # Errors
/// [`Error::Refused`] naming the log; or a directory that cannot be listed.
pub fn refuse_unfinished(target: &Path) -> Result<()> {
    for entry in compactor_io::read_dir(target).map_err(Error::file("list", target))? {
        let entry = entry.map_err(Error::file("list", target))?;
        let name = entry.file_name();
        if transaction_log::is_file_name(&name.to_string_lossy())
            && !is_harmless_log(&entry.path())?
        {
            return Err(Error::Refused(format!(
                "{}: a transaction is under way here, or was cut off, and a node that starts here may \
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

    /// A run that was killed when it had moved both files of an output, or is about to say so.
    fn begun(target: &Path) -> (PathBuf, Publication) {
        let staging = target.join(".compactor-1-1");
        fs::create_dir(&staging).unwrap();
        let descriptor = Descriptor::new("", Version::Oa, "7".parse::<SstableId>().unwrap());
        for component in COMPONENTS {
            fs::write(staging.join(descriptor.file_name(component)), "x").unwrap();
        }
        let outputs = [(&*staging, &descriptor, &COMPONENTS[..])];
        let publication = Publication::begin(&staging, target, outputs).unwrap();
        for component in COMPONENTS {
            let name = descriptor.file_name(component);
            fs::rename(staging.join(&name), target.join(&name)).unwrap();
        }
        (staging, publication)
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
    fn what_was_moved_goes_unless_it_was_committed() {
        let temp = tempfile::tempdir().unwrap();
        let (staging, publication) = begun(temp.path());
        let log = publication.log.path().to_owned();
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
        let (staging, mut publication) = begun(temp.path());
        let log = publication.log.path().to_owned();
        publication.log.append(&Record::commit().line()).unwrap();
        assert!(is_harmless_log(&log).unwrap());
        undo_unfinished(&staging, temp.path()).unwrap();
        assert_eq!((sstables(temp.path()), log.exists()), (2, false));
    }

    /// Somebody has put other files under these names since.
    #[test]
    fn what_is_not_ours_stays() {
        let temp = tempfile::tempdir().unwrap();
        let (staging, _publication) = begun(temp.path());
        // The new inode exists before the old one is free to be used again.
        let theirs = temp.path().join("theirs");
        fs::write(&theirs, "y").unwrap();
        fs::rename(&theirs, temp.path().join("oa-7-big-Data.db")).unwrap();
        undo_unfinished(&staging, temp.path()).unwrap();
        assert_eq!(sstables(temp.path()), 1);
    }

    #[test]
    fn notes_that_say_nothing_are_passed_over() {
        let temp = tempfile::tempdir().unwrap();
        let staging = temp.path().join("staging");
        fs::create_dir_all(staging.join(NOTE)).unwrap();
        undo_unfinished(&staging, temp.path()).unwrap();
        fs::remove_dir(staging.join(NOTE)).unwrap();
        for text in [
            &b"\xff\xfe"[..],
            b"",
            b"../oa_txn_compaction_x.log\n1 oa-7-big-Data.db",
            b"b.log",
        ] {
            fs::write(staging.join(NOTE), text).unwrap();
            undo_unfinished(&staging, temp.path()).unwrap();
        }
    }
}
