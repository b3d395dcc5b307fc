//! Outputs of a run in its output directory, with a check that they are unchanged.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use compactor_engine::publish::FileIdentity;
use compactor_io::{Io, IoOptions};
use compactor_sstable::Component;
use compactor_sstable::descriptor::{Descriptor, TMP_SUFFIX, TableDirectory};

use super::new_names::{entries, with_prefix};
use crate::run_record::{FILE_NAME, RecordedOutput, RunRecord, descriptor_of};
use crate::{Error, Result};
use compactor_check::verify::{VerifyOptions, verify};
use compactor_engine::merge::NoObserver;

/// The directory of a run's record: the one that is named, where `upgrade`, `split` and `scrub` write, or below it
/// `KEYSPACE/TABLE` of the table's directory, where `merge` and `compact` write. If both have one of the table, that of
/// the later run.
///
/// # Errors
/// No directory has a record, or several do and the table is unknown from the directory's name.
pub(super) fn directory_of_record(named: &Path, table: &Path) -> Result<PathBuf> {
    if named.metadata().is_ok_and(|found| !found.is_dir()) {
        return Err(Error::invalid(format!(
            "{}: not a directory; name the directory that the run was given as --output",
            named.display()
        )));
    }
    let of = TableDirectory::parse(table).filter(|of| of.table_id.is_some());
    let below = of.map(|of| named.join(of.keyspace).join(of.table));
    let mut latest = None;
    for directory in [Some(named.to_owned()), below].into_iter().flatten() {
        if let Some(record) = RunRecord::read(&directory)? {
            let rank = (record.may_be_of(table), record.written_at_ms, directory);
            latest = latest.max(Some(rank));
        }
    }
    if let Some((_, _, directory)) = latest {
        return Ok(directory);
    }
    let has_record = |directory: &Path| {
        let record = directory.join(FILE_NAME);
        record.try_exists().map_err(Error::file("look up", &record))
    };
    let mut found = Vec::new();
    for keyspace in entries(named)?.iter().filter(|path| path.is_dir()) {
        for directory in entries(keyspace)?.into_iter().filter(|path| path.is_dir()) {
            if has_record(&directory)? {
                found.push(directory);
            }
        }
    }
    found.sort();
    match &found[..] {
        [] => Err(Error::invalid(format!(
            "{}: no {FILE_NAME} here, nor in KEYSPACE/TABLE below it; name the directory that the run was given as \
             --output. A run that had nothing to do, or that was killed, leaves nothing to swap",
            named.display()
        ))),
        [one] => Ok(one.clone()),
        [one, other, ..] => Err(Error::invalid(format!(
            "{} has outputs of several tables: name one of them, such as {} or {}",
            named.display(),
            one.display(),
            other.display()
        ))),
    }
}

/// Output in the run's output directory.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) descriptor: Descriptor,
    /// Its components and their lengths, `Data.db` last, since an SSTable without it is ignored.
    pub(super) components: Vec<(Component, u64)>,
}

impl Source {
    /// Checks an output against the record. Where files were copied since, or written to, their times have
    /// changed: then all of it is verified. `names` are those in the directory, ascending.
    pub(super) fn check(
        directory: &Path,
        names: &[String],
        output: &RecordedOutput,
    ) -> Result<Source> {
        let data = directory.join(&output.data_file);
        let mut source = Source {
            descriptor: descriptor_of(&data)?,
            components: Vec::with_capacity(output.files.len()),
        };
        let mut is_as_written = true;
        for recorded in &output.files {
            let Some(component) = Component::from_file_suffix(&recorded.component) else {
                continue;
            };
            let path = source.descriptor.path(component);
            let metadata = match fs::symlink_metadata(&path) {
                Ok(metadata) => metadata,
                Err(e) if e.kind() == ErrorKind::NotFound => {
                    return Err(other(&path, "is not there"));
                }
                Err(e) => return Err(Error::file("look up", path)(e)),
            };
            let bytes = recorded.file.bytes;
            if !metadata.is_file() || metadata.len() != bytes {
                return Err(other(&path, &format!("does not have {bytes} bytes")));
            }
            is_as_written &= recorded.file.is(&FileIdentity::from(&metadata));
            if component == Component::Digest {
                let digest = fs::read_to_string(&path).map_err(Error::file("read", &path))?;
                if output.digest.as_deref() != Some(digest.trim()) {
                    return Err(other(&path, "holds another digest"));
                }
            }
            source.components.push((component, bytes));
        }
        source
            .components
            .sort_by_key(|(component, _)| *component == Component::Data);
        source.refuse_other_files(names)?;
        if !is_as_written {
            let io = Io::new(IoOptions::default())?;
            let report = verify(&io, &data, &VerifyOptions::default(), &mut NoObserver)?;
            if let Some(finding) = report.findings.first().filter(|_| report.damages > 0) {
                let what = format!("was changed, and is damaged: {}", finding.statement());
                return Err(other(&data, &what));
            }
        }
        Ok(source)
    }

    /// Refuses files that are not in the record, since the SSTable would be placed without them.
    fn refuse_other_files(&self, names: &[String]) -> Result<()> {
        let prefix = format!("{}-", self.descriptor.base_name());
        let is_recorded = |name: &str| {
            let mut known = self.components.iter();
            known.any(|(component, _)| self.descriptor.file_name(*component) == name)
        };
        for name in with_prefix(names, &prefix) {
            if !name.ends_with(TMP_SUFFIX) && !is_recorded(name) {
                let path = self.descriptor.directory.join(name);
                return Err(other(&path, "is not in the record of the run"));
            }
        }
        match self.components.last() {
            Some((Component::Data, _)) => Ok(()),
            _ => Err(other(
                &self.descriptor.path(Component::Data),
                "is not in the record of the run",
            )),
        }
    }
}

fn other(path: &Path, what: &str) -> Error {
    Error::refused(format!(
        "{} {what}: this is not what the run wrote. Run it again into another directory",
        path.display()
    ))
}
