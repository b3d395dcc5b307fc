//! What makes several outputs appear all or none.
//!
//! One output appears by one rename, that of its `Data.db`. Several cannot. So a transaction log as
//! Cassandra writes them lies in the output directory while they are moved: until it says COMMIT,
//! Cassandra and this program take them for half written, and whoever finds the log without its
//! writer deletes them: a node when it starts, this program when it next writes there.
//!
//! Source: `LogTransaction`, `LogFile.removeUnfinishedLeftovers`.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use compactor_io::{remove_if_exists, sync_directory};
use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::transaction_log::{self, Record, TransactionLog};
use compactor_sstable::{Component, Version};

use crate::error::{Error, Result};
use crate::output_id::new_time_uuid;

/// In the staging directory: the name of the log.
pub(crate) const NAME_OF_LOG: &str = "transaction";

/// A log without a COMMIT so far.
#[derive(Debug)]
pub struct Publication {
    log: PathBuf,
    file: File,
}

impl Publication {
    /// Says that these outputs, each with a number of components, are about to be moved to `target`.
    /// That is durable when this returns.
    ///
    /// # Errors
    /// A failed file operation. No log is left then.
    pub fn begin<'a>(
        staging: &Path,
        target: &Path,
        outputs: impl IntoIterator<Item = (&'a Descriptor, usize)>,
    ) -> Result<Publication> {
        let directory = target
            .canonicalize()
            .map_err(Error::file("look up", target))?;
        let (mut lines, mut version) = (String::new(), Version::Nb);
        for (descriptor, components) in outputs {
            let data = descriptor.file_name(Component::Data);
            let prefix = data.strip_suffix(Component::Data.file_suffix());
            let path = directory.join(prefix.unwrap_or(&data));
            lines += &Record::add(&path.to_string_lossy(), components).line();
            version = descriptor.version;
        }
        let (ticks, lsb) = new_time_uuid();
        let name = transaction_log::file_name(version, ticks, lsb);
        // The name first: a log that nobody knows of would stay.
        let note = staging.join(NAME_OF_LOG);
        fs::write(&note, &name).map_err(Error::file("write", &note))?;
        sync_file(&note)?;
        sync_directory(staging)?;

        let log = target.join(name);
        let file = File::create_new(&log).map_err(Error::file("create", &log))?;
        let mut publication = Publication { log, file };
        let written = publication
            .append(&lines)
            .and_then(|()| Ok(sync_directory(target)?));
        if let Err(error) = written {
            publication.abandon();
            return Err(error);
        }
        Ok(publication)
    }

    /// Everything has been moved, and that is durable: from here on the outputs stay. The log has done
    /// its work.
    ///
    /// # Errors
    /// A failed write: what has been moved must be taken back, and then [`Publication::abandon`]ed.
    pub fn commit(&mut self) -> Result<()> {
        self.append(&Record::commit().line())?;
        // A log that stays says that there is nothing to delete.
        let _ = fs::remove_file(&self.log);
        Ok(())
    }

    /// Removes the log, when nothing is left of what has been moved.
    pub fn abandon(&self) {
        let _ = fs::remove_file(&self.log);
    }

    fn append(&mut self, lines: &str) -> Result<()> {
        self.file
            .write_all(lines.as_bytes())
            .and_then(|()| self.file.sync_all())
            .map_err(Error::file("write", &self.log))
    }
}

fn sync_file(path: &Path) -> Result<()> {
    File::open(path)
        .and_then(|file| file.sync_all())
        .map_err(Error::file("sync", path))
}

/// Deletes what a killed run had moved from `staging` to `target` if it had not come to COMMIT, and
/// its log.
///
/// # Errors
/// A failed file operation, or a damaged log.
pub fn undo_unfinished(staging: &Path, target: &Path) -> Result<()> {
    let note = staging.join(NAME_OF_LOG);
    let name = match fs::read_to_string(&note) {
        Ok(name) => name,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(Error::file("read", note)(e)),
    };
    // Cut off while the name was written: there is no log yet.
    if !transaction_log::is_file_name(&name) || name.contains('/') {
        return Ok(());
    }
    let path = target.join(name);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(Error::file("read", path)(e)),
    };
    let log = TransactionLog::parse(&bytes).map_err(|error| {
        Error::InvalidInput(format!(
            "{}: {error}. A run that was killed left this log: remove it, and the SSTables that it names",
            path.display()
        ))
    })?;
    for record in log.leftovers() {
        let data = format!("{}{}", record.file_prefix(), Component::Data.file_suffix());
        let Ok(file) = Descriptor::parse(&target.join(data)) else {
            continue;
        };
        // Without its `Data.db` the rest is nothing, whenever this is cut off.
        remove_if_exists(&file.descriptor.path(Component::Data))?;
        for component in Component::ALL {
            remove_if_exists(&file.descriptor.path(component))?;
        }
    }
    sync_directory(target)?;
    remove_if_exists(&path)?;
    Ok(sync_directory(target)?)
}
