//! Interrupted swap: reads its note and its transaction log, and undoes or completes it.
//!
//! The note is `compactor-swap.json` alongside the record of the run. It remains after the swap, so that a repeated
//! swap is no error.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use compactor_engine::publish::{FileIdentity, TransactionFile};
use compactor_io::{remove_if_exists, sync_directory};
use compactor_sstable::Component;
use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::transaction_log::{self, Record, RecordKind, TransactionLog};
use serde::{Deserialize, Serialize};

use super::new_names::entries;
use super::update_time::update_time_ms;
use super::{Step, SwapReport, SwapState, SwappedOutput, remove_inputs};
use crate::run_record::{self, read_small, write_json};
use crate::table::is_same_directory;
use crate::{Error, Result};

/// Name of the note's file.
const FILE_NAME: &str = "compactor-swap.json";
/// Maximum length of a note or log: room for two hundred thousand SSTables.
const MAX_BYTES: u64 = 512 << 20;

/// Note of a planned or completed swap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Note {
    pub(super) table_directory: String,
    pub(super) inputs_directory: String,
    /// File name of the transaction log in the table's directory.
    pub(super) transaction_log: String,
    /// File name of the `Data.db` of each input.
    pub(super) inputs: Vec<String>,
    pub(super) outputs: Vec<NotedOutput>,
    /// CRC-32 of the record whose outputs they are.
    pub(super) record_crc: u32,
}

/// An output of a swap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NotedOutput {
    /// Its `Data.db`.
    pub(super) from: String,
    /// File name of its `Data.db` in the table's directory.
    pub(super) to: String,
    /// Its files.
    pub(super) files: Vec<NotedFile>,
}

/// A file of an output of a swap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NotedFile {
    /// Last part of its name, such as `Data.db`.
    pub(super) component: String,
    /// Length in bytes.
    pub(super) bytes: u64,
}

impl NotedOutput {
    /// Paths of its files next to this `Data.db`, and their lengths.
    fn files_beside(&self, data: &Path) -> Vec<(PathBuf, u64)> {
        let data = data.to_string_lossy();
        let prefix = data.trim_end_matches(Component::Data.file_suffix());
        let path = |file: &NotedFile| (format!("{prefix}{}", file.component).into(), file.bytes);
        self.files.iter().map(path).collect()
    }
}

impl Note {
    /// CRC-32 of the record of a directory.
    pub(super) fn crc_of_record(output: &Path) -> Result<u32> {
        let path = output.join(run_record::FILE_NAME);
        let bytes = fs::read(&path).map_err(Error::file("read", path))?;
        Ok(crc32fast::hash(&bytes))
    }

    pub(super) fn write(&self, output: &Path) -> Result<()> {
        write_json(output, FILE_NAME, self)
    }

    pub(super) fn remove(output: &Path) -> Result<()> {
        Ok(remove_if_exists(&output.join(FILE_NAME))?)
    }

    /// The note of a directory, if it has one.
    pub(super) fn read(output: &Path) -> Result<Option<Note>> {
        let path = output.join(FILE_NAME);
        let Some(bytes) = read_small(&path, MAX_BYTES)? else {
            return Ok(None);
        };
        let not_one = |why: String| Error::invalid(format!("{}: {why}", path.display()));
        let note: Note = serde_json::from_slice(&bytes)
            .map_err(|e| not_one(format!("not the note of a swap: {e}")))?;
        let is_name =
            |name: &str| !name.contains('/') && Descriptor::parse(Path::new(name)).is_ok();
        let log = &note.transaction_log;
        let outputs = note.outputs.iter().map(|output| output.to.as_str());
        let mut names = outputs.chain(note.inputs.iter().map(String::as_str));
        let mut files = note.outputs.iter().flat_map(|output| &output.files);
        if log.contains('/')
            || !transaction_log::is_file_name(log)
            || !names.all(is_name)
            || !files.all(|file| Component::from_file_suffix(&file.component).is_some())
        {
            return Err(not_one("not the note of a swap".to_owned()));
        }
        Ok(Some(note))
    }

    /// Returns true if it concerns this table's directory.
    pub(super) fn is_of(&self, table: &Path) -> bool {
        Path::new(&self.table_directory) == table
    }

    /// Returns true if the swap is complete: the outputs of the current record in `output` exist in the table's
    /// directory, and the inputs do not.
    pub(super) fn is_done(&self, output: &Path, table: &Path) -> bool {
        Note::crc_of_record(output).is_ok_and(|crc| crc == self.record_crc)
            && self.incomplete(table).is_none()
            && !self.inputs.iter().any(|name| table.join(name).exists())
    }

    /// Returns a file of an output that is missing or changed in the table's directory.
    fn incomplete(&self, table: &Path) -> Option<PathBuf> {
        let outputs = self.outputs.iter();
        let mut files = outputs.flat_map(|output| output.files_beside(&table.join(&output.to)));
        let is_there =
            |path: &Path, bytes| fs::metadata(path).is_ok_and(|found| found.len() == bytes);
        let missing = files.find(|(path, bytes)| !is_there(path, *bytes));
        missing.map(|(path, _)| path)
    }

    /// Removes the outputs from the run's directory, where they have the noted names and lengths: it may have been moved
    /// or copied since the swap. Returns a note for the operator if one remains.
    pub(super) fn remove_sources(&self, output: &Path, table: &Path) -> Option<String> {
        if is_same_directory(output, table) {
            return None;
        }
        let names = self.outputs.iter();
        let names =
            names.filter_map(|placed| Path::new(&placed.from).file_name().zip(Some(placed)));
        let files = names.flat_map(|(name, placed)| placed.files_beside(&output.join(name)));
        let is_noted = |path: &Path, bytes| {
            fs::symlink_metadata(path).is_ok_and(|found| found.is_file() && found.len() == bytes)
        };
        let mut errors = files
            .filter(|(path, bytes)| is_noted(path, *bytes))
            .filter_map(|(path, _)| remove_if_exists(&path).err());
        errors.next().map(|error| {
            format!("the run's own directory still holds the outputs: remove them ({error})")
        })
    }

    pub(super) fn report(&self, table: &Path, state: SwapState) -> SwapReport {
        let outputs = self.outputs.iter().map(|output| SwappedOutput {
            from: PathBuf::from(&output.from),
            to: table.join(&output.to),
        });
        SwapReport {
            table_directory: table.to_owned(),
            inputs_directory: PathBuf::from(&self.inputs_directory),
            inputs: self.inputs.clone(),
            outputs: outputs.collect(),
            state,
            notes: Vec::new(),
        }
    }
}

/// Interrupted swap with an existing transaction log.
#[derive(Debug)]
pub(super) struct Unfinished {
    pub(super) note: Note,
    log_path: PathBuf,
    log_bytes: Vec<u8>,
    pub(super) log: TransactionLog,
}

impl Unfinished {
    /// Finds the transaction log given in the note of `output`.
    pub(super) fn find(output: &Path, table: &Path) -> Result<Option<Unfinished>> {
        let Some(note) = Note::read(output)? else {
            return Ok(None);
        };
        let of_note = Path::new(&note.table_directory);
        let log_path = of_note.join(&note.transaction_log);
        let Some(bytes) = read_small(&log_path, MAX_BYTES)? else {
            return Ok(None);
        };
        if !note.is_of(table) {
            return Err(Error::refused(format!(
                "{}: a swap of this output into {} was cut off. Run that again first, or start the node \
                 that has this directory",
                log_path.display(),
                note.table_directory
            )));
        }
        let log = TransactionLog::parse(&bytes).map_err(|e| {
            Error::refused(format!(
                "{}: {e}. Start the node: it checks this log against the files, and logs what to do",
                log_path.display()
            ))
        })?;
        let unfinished = Unfinished {
            note,
            log_path,
            log_bytes: bytes,
            log,
        };
        unfinished.check_records()?;
        Ok(Some(unfinished))
    }

    /// Checks that the log matches the note.
    fn check_records(&self) -> Result<()> {
        let prefix = |name: &str| {
            name.trim_end_matches(Component::Data.file_suffix())
                .to_owned()
        };
        let outputs = self.note.outputs.iter().map(|output| prefix(&output.to));
        let outputs: BTreeSet<String> = outputs.collect();
        let inputs: BTreeSet<String> = self.note.inputs.iter().map(|name| prefix(name)).collect();
        for record in &self.log.records {
            let is_known = match record.kind {
                RecordKind::Add => outputs.contains(record.file_prefix()),
                RecordKind::Remove => inputs.contains(record.file_prefix()),
                RecordKind::Commit | RecordKind::Abort => true,
            };
            if !is_known {
                return Err(Error::refused(format!(
                    "{} names {}, which the note of the swap does not: start the node so that it cleans up",
                    self.log_path.display(),
                    record.file_prefix()
                )));
            }
        }
        Ok(())
    }

    /// Files of an SSTable that are in the table's directory.
    fn files_of(record: &Record, table: &[PathBuf]) -> Vec<PathBuf> {
        let is_of = |path: &&PathBuf| {
            let name = path.file_name().map(|name| name.to_string_lossy());
            name.is_some_and(|name| name.starts_with(record.file_prefix()))
        };
        table.iter().filter(is_of).cloned().collect()
    }

    /// Removes complete and partial outputs, and then the log.
    pub(super) fn undo(&self, table: &Path) -> Result<()> {
        TransactionFile::make_durable(&self.log_path, &self.log_bytes)?;
        let files = entries(table)?;
        for record in self.log.leftovers() {
            for path in Unfinished::files_of(record, &files) {
                remove_if_exists(&path)?;
            }
        }
        sync_directory(table)?;
        remove_if_exists(&self.log_path)?;
        Ok(sync_directory(table)?)
    }

    /// Removes inputs, and then the log.
    pub(super) fn finish(
        &self,
        table: &Path,
        reached: &mut dyn FnMut(Step) -> Result<()>,
    ) -> Result<()> {
        TransactionFile::make_durable(&self.log_path, &self.log_bytes)?;
        if let Some(missing) = self.note.incomplete(table) {
            return Err(Error::refused(format!(
                "{} is gone or has another length, though {} says that the outputs are in place: nothing is \
                 removed. Keep the node stopped. The inputs are in {}: move them back, move what is there of \
                 the outputs away, and remove that log",
                missing.display(),
                self.log_path.display(),
                self.note.inputs_directory
            )));
        }
        let kept = Path::new(&self.note.inputs_directory);
        let all = entries(table)?;
        let mut files = Vec::new();
        for record in self.log.leftovers() {
            let mut of_record = Vec::new();
            for path in Unfinished::files_of(record, &all) {
                let identity = FileIdentity::of(&path).map_err(Error::file("look up", &path))?;
                let name = path.file_name().unwrap_or_default();
                let copy = kept.join(name);
                if !FileIdentity::of(&copy).is_ok_and(|copy| copy.bytes == identity.bytes) {
                    return Err(Error::refused(format!(
                        "{} is not in {}: the swap that was cut off can only be finished by starting the \
                         node, which removes it",
                        path.display(),
                        kept.display()
                    )));
                }
                of_record.push((name.to_string_lossy().into_owned(), identity, path));
            }
            let named = of_record
                .iter()
                .map(|(name, file, _)| (name.as_str(), file));
            let seconds = |ms: i64| ms.div_euclid(1000);
            let now_ms = update_time_ms(named);
            if now_ms != 0 && seconds(now_ms) != seconds(record.update_time_ms) {
                return Err(Error::refused(format!(
                    "{}: files of {} have changed since the swap that was cut off. Restore them, or \
                     remove the log if the outputs are not wanted",
                    self.log_path.display(),
                    record.file_prefix()
                )));
            }
            files.extend(of_record.into_iter().map(|(_, file, path)| (file, path)));
        }
        remove_inputs(table, &self.log_path, files, reached)
    }
}
