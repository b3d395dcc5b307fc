//! Plan of a swap, and the reasons to refuse it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use compactor_engine::publish::{
    FileIdentity, refuse_next_to_table, refuse_unfinished, with_real_ancestor,
};
use compactor_sstable::descriptor::{Descriptor, TMP_SUFFIX, TableDirectory};
use compactor_sstable::{Component, Version};
use rustix::fs::{Access, access};

use super::index_advice::index_advice;
use super::new_names::{entries, key_cache_advice, new_names, sorted_names, with_prefix};
use super::other_directories::other_directories;
use super::outputs::Source;
use super::place::{Owner, refuse_another};
use super::unfinished::{Note, NotedFile, NotedOutput};
use super::update_time::update_time_ms;
use super::version_advice::version_advice;
use super::{SwapReport, SwapRequest, SwapState, SwappedOutput, refuse_node};
use crate::run_record::{RecordedInput, RunRecord, descriptor_of};
use crate::table::{is_within, table_directory_above};
use crate::{Error, Result};

/// An SSTable that is replaced.
#[derive(Debug)]
pub(super) struct OldSstable {
    /// Prefix of its file names, up to and including the last `-`.
    pub(super) prefix: String,
    /// All of its files, those of indexes included.
    pub(super) files: Vec<OldFile>,
}

/// A file of an SSTable that is replaced.
#[derive(Debug)]
pub(super) struct OldFile {
    pub(super) name: String,
    pub(super) identity: FileIdentity,
}

/// An SSTable that takes the place of others.
#[derive(Debug)]
pub(super) struct NewSstable {
    pub(super) from: Source,
    pub(super) to: Descriptor,
}

/// Plan of a swap.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) table: PathBuf,
    pub(super) output: PathBuf,
    pub(super) inputs_to: PathBuf,
    pub(super) inputs: Vec<OldSstable>,
    pub(super) outputs: Vec<NewSstable>,
    /// Owner of the files that are replaced.
    pub(super) owner: Owner,
    /// Named in the name of the transaction log.
    pub(super) version: Version,
    notes: Vec<String>,
    record: RunRecord,
    /// The table's directories in other data directories.
    other_directories: BTreeSet<PathBuf>,
    /// `Data.db` files that the table's directories had.
    data_before: BTreeSet<PathBuf>,
    /// CRC-32 of the record that this follows.
    record_crc: u32,
}

/// The table's directory without symbolic links.
pub(super) fn table_directory(request: &SwapRequest) -> Result<PathBuf> {
    let named = &request.table_directory;
    let table = named.canonicalize().map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => Error::invalid(format!(
            "{}: no such directory; name the table's own directory",
            named.display()
        )),
        _ => Error::file("look up", named)(e),
    })?;
    if !table.is_dir() {
        return Err(Error::invalid(format!(
            "{}: not a directory; name the table's own directory",
            named.display()
        )));
    }
    if let Some(own) = table_directory_above(&table) {
        return Err(Error::invalid(format!(
            "{} is a snapshot or backup; name the table's own directory, {}",
            named.display(),
            own.display()
        )));
    }
    // Cassandra's reader of transaction logs takes no other paths.
    let is_plain = |path: &str| !path.contains(',') && !path.contains(char::is_control);
    if !table.to_str().is_some_and(is_plain) {
        return Err(Error::invalid(format!(
            "{}: a path with a comma, a control character or bytes that are not UTF-8 cannot be written \
             into a transaction log of Cassandra's",
            table.display()
        )));
    }
    Ok(table)
}

impl Plan {
    /// Checks all preconditions of a swap and creates its plan.
    pub(super) fn make(request: &SwapRequest, table: &Path) -> Result<Plan> {
        let record = RunRecord::read(&request.output)?.ok_or_else(|| {
            Error::invalid(format!(
                "{}: no {} here; name the directory that the run was given as --output",
                request.output.display(),
                crate::run_record::FILE_NAME
            ))
        })?;
        let mut notes: Vec<String> = refuse_node(table)?.into_iter().collect();
        refuse_unfinished(table)?;
        let others = other_directories(table, &record);
        let (files, of_others) = TableFiles::list_all(table, &others)?;
        let inputs = files.inputs(&record)?;
        files.refuse_unknown(&of_others, &record)?;
        let data_before = TableFiles::data_of(&files, &of_others);
        let names = sorted_names(&request.output)?;
        let sources = record.outputs.iter();
        let sources: Vec<Source> = sources
            .map(|output| Source::check(&request.output, &names, output))
            .collect::<Result<_>>()?;
        let descriptors = sources.iter().map(|source| source.descriptor.clone());
        let names = new_names(table, &others, &descriptors.collect::<Vec<_>>())?;
        let outputs: Vec<NewSstable> = sources
            .into_iter()
            .zip(names)
            .map(|(from, to)| NewSstable { from, to })
            .collect();
        let inputs_to = inputs_directory(request, table, &others, &inputs)?;
        // The note from which an interrupted swap continues is text.
        let sources = outputs.iter().map(|new| &new.from.descriptor.directory);
        let is_text = |path: &Path| path.to_str().is_some();
        if let Some(path) = sources.chain([&inputs_to]).find(|path| !is_text(path)) {
            return Err(Error::invalid(format!(
                "{}: a path with bytes that are not UTF-8 cannot be written into a swap's note; rename the directory",
                path.display()
            )));
        }
        refuse_read_only(table)?;
        refuse_read_only(
            inputs_to
                .ancestors()
                .find(|path| path.exists())
                .unwrap_or(table),
        )?;
        let data = table.join(record.inputs[0].file_name());
        let owner = fs::metadata(&data).map_err(Error::file("look up", &data))?;
        let owner = Owner::of(&owner);
        let us = rustix::process::geteuid();
        if !us.is_root() && us.as_raw() != owner.user {
            return Err(Error::refused(format!(
                "{} is owned by user {}, and the outputs must be too: run this as root or as that user",
                data.display(),
                owner.user
            )));
        }
        if !us.is_root() && !is_own_group(owner.group) {
            notes.push(format!(
                "the files in {} are of group {}, which this user is not in: the outputs get the user's own group",
                table.display(),
                owner.group
            ));
        }
        let version = match outputs.first() {
            Some(output) => output.to.version,
            None => descriptor_of(&data)?.version,
        };
        notes.extend(key_cache_advice(outputs.iter().map(|new| new.to.clone())));
        let replaced = inputs.iter().flat_map(|old| &old.files);
        notes.extend(index_advice(
            table,
            replaced.map(|file| file.name.as_str()),
            &record,
        )?);
        let tables = others.iter().map(PathBuf::as_path).chain([table]);
        let versions = outputs.iter().map(|new| new.to.version);
        notes.extend(version_advice(tables, versions));
        Ok(Plan {
            table: table.to_owned(),
            output: request.output.clone(),
            inputs_to,
            inputs,
            outputs,
            owner,
            version,
            notes,
            other_directories: others,
            data_before,
            record_crc: Note::crc_of_record(&request.output)?,
            record,
        })
    }

    /// Returns the files to remove from the table's directory.
    pub(super) fn old_files(&self) -> Vec<(FileIdentity, PathBuf)> {
        let files = self.inputs.iter().flat_map(|old| &old.files);
        files
            .map(|file| (file.identity, self.table.join(&file.name)))
            .collect()
    }

    /// Returns the note of this swap.
    pub(super) fn note(&self, log: &str) -> Note {
        let outputs = self.outputs.iter().map(|new| NotedOutput {
            from: new
                .from
                .descriptor
                .path(Component::Data)
                .to_string_lossy()
                .into_owned(),
            to: new.to.file_name(Component::Data),
            files: new
                .from
                .components
                .iter()
                .map(|(component, bytes)| NotedFile {
                    component: component.file_suffix().to_owned(),
                    bytes: *bytes,
                })
                .collect(),
        });
        Note {
            table_directory: self.table.to_string_lossy().into_owned(),
            inputs_directory: self.inputs_to.to_string_lossy().into_owned(),
            transaction_log: log.to_owned(),
            inputs: self.inputs.iter().map(OldSstable::data_name).collect(),
            outputs: outputs.collect(),
            record_crc: self.record_crc,
        }
    }

    /// Checks that the inputs and the rest of the table's directories are unchanged.
    pub(super) fn recheck(&self) -> Result<()> {
        let changed = |what: &Path| {
            Error::refused(format!(
                "{} has changed meanwhile: is the node running? Stop it, and run the same command again",
                what.display()
            ))
        };
        for (identity, path) in self.old_files() {
            let now = FileIdentity::of(&path).map_err(Error::file("look up", &path))?;
            if !now.is_same_file(&identity) {
                return Err(changed(&path));
            }
        }
        let (mut files, others) = TableFiles::list_all(&self.table, &self.other_directories)?;
        for new in &self.outputs {
            files.data.remove(&new.to.file_name(Component::Data));
        }
        let now = TableFiles::data_of(&files, &others);
        match now.difference(&self.data_before).next() {
            Some(new) => Err(changed(new)),
            None => files.refuse_unknown(&others, &self.record),
        }
    }

    pub(super) fn report(&self, state: SwapState) -> SwapReport {
        let outputs = self.outputs.iter().map(|new| SwappedOutput {
            from: new.from.descriptor.path(Component::Data),
            to: new.to.path(Component::Data),
        });
        SwapReport {
            table_directory: self.table.clone(),
            inputs_directory: self.inputs_to.clone(),
            inputs: self.inputs.iter().map(OldSstable::data_name).collect(),
            outputs: outputs.collect(),
            state,
            notes: self.notes.clone(),
        }
    }
}

impl OldSstable {
    /// File name of its `Data.db`.
    fn data_name(&self) -> String {
        format!("{}{}", self.prefix, Component::Data.file_suffix())
    }

    /// Returns the modification time of the newest of its files, as Cassandra computes it: milliseconds, without
    /// `Statistics.db` (`LogRecord.make`).
    pub(super) fn update_time_ms(&self) -> i64 {
        update_time_ms(self.files.iter().map(|f| (f.name.as_str(), &f.identity)))
    }
}

impl NewSstable {
    /// Prefix of its file names, up to and including the last `-`.
    pub(super) fn prefix(&self) -> String {
        format!("{}-", self.to.base_name())
    }
}

/// The files of a table's directory.
struct TableFiles<'a> {
    table: &'a Path,
    /// Ascending.
    names: Vec<String>,
    /// `Data.db` names.
    data: BTreeSet<String>,
}

impl<'a> TableFiles<'a> {
    /// Those of the table's directory, and of its directories in other data directories.
    fn list_all(
        table: &'a Path,
        others: &'a BTreeSet<PathBuf>,
    ) -> Result<(TableFiles<'a>, Vec<TableFiles<'a>>)> {
        let others = others.iter().map(|other| TableFiles::list(other));
        Ok((TableFiles::list(table)?, others.collect::<Result<_>>()?))
    }

    /// Paths of all `Data.db`.
    fn data_of(own: &TableFiles<'_>, others: &[TableFiles<'_>]) -> BTreeSet<PathBuf> {
        let paths = |files: &TableFiles<'_>| -> Vec<PathBuf> {
            let data = files.data.iter();
            data.map(|name| files.table.join(name)).collect()
        };
        let all = [own].into_iter().chain(others);
        all.flat_map(paths).collect()
    }

    fn list(table: &'a Path) -> Result<TableFiles<'a>> {
        let names = sorted_names(table)?;
        // Also of a version that is not known here.
        let suffix = format!("-{}", Component::Data.file_suffix());
        let data = names.iter().filter(|name| name.ends_with(&suffix));
        let data = data.cloned().collect();
        Ok(TableFiles { table, names, data })
    }

    /// The inputs of a run, with all their files.
    fn inputs(&self, record: &RunRecord) -> Result<Vec<OldSstable>> {
        if record.inputs.is_empty() {
            return Err(Error::invalid(
                "the run replaced no SSTable: there is nothing to swap",
            ));
        }
        let (mut missing, mut changed) = (Vec::new(), None);
        let mut inputs = Vec::with_capacity(record.inputs.len());
        for input in &record.inputs {
            match self.input(input)? {
                Found::Same(old) => inputs.push(old),
                Found::Missing => missing.push(input.file_name()),
                Found::Changed(why) => changed = changed.or(Some(why)),
            }
        }
        let command = &record.command;
        if let [first, ..] = missing[..] {
            return Err(Error::refused(format!(
                "{} of the run's {} input SSTables are not in {}, such as {first}: the node has compacted \
                 them since, or the run read SSTables of another directory. With the node stopped, {command} \
                 what is there now, and swap that; where a table has several data directories, {command} those of \
                 one (with merge and compact, name the others' as --overlapping)",
                missing.len(),
                record.inputs.len(),
                self.table.display()
            )));
        }
        match changed {
            Some(why) => Err(Error::refused(format!(
                "{why}. With the node stopped, {command} what is there now, and swap that"
            ))),
            None => Ok(inputs),
        }
    }

    fn input(&self, input: &RecordedInput) -> Result<Found> {
        let name = input.file_name();
        if !self.data.contains(name) {
            return Ok(Found::Missing);
        }
        let data = self.table.join(name);
        let descriptor = descriptor_of(&data)?;
        let look = |path: &Path| FileIdentity::of(path).map_err(Error::file("look up", path));
        if !input.data.is(&look(&data)?) {
            return Ok(Found::Changed(format!(
                "{} is not the file that the run read: it has another length or time",
                data.display()
            )));
        }
        let statistics = descriptor.path(Component::Statistics);
        if let Some(before) = &input.statistics
            && !before.is(&look(&statistics)?)
        {
            return Ok(Found::Changed(format!(
                "{} has been rewritten since the run read it: the repair state or the level of the SSTable \
                 has changed",
                statistics.display()
            )));
        }
        let prefix = format!("{}-", descriptor.base_name());
        let mut files = Vec::new();
        for name in with_prefix(&self.names, &prefix) {
            let path = self.table.join(name);
            let metadata = fs::symlink_metadata(&path).map_err(Error::file("look up", &path))?;
            if !metadata.is_file() {
                return Err(Error::refused(format!(
                    "{} is not a regular file",
                    path.display()
                )));
            }
            if !name.ends_with(TMP_SUFFIX) {
                files.push(OldFile {
                    name: name.clone(),
                    identity: FileIdentity::from(&metadata),
                });
            }
        }
        Ok(Found::Same(OldSstable { prefix, files }))
    }

    /// Whether an SSTable that the run read still exists, unchanged.
    fn has(&self, sstable: &RecordedInput) -> Result<bool> {
        if !self.data.contains(sstable.file_name()) {
            return Ok(false);
        }
        let data = self.table.join(sstable.file_name());
        let now = FileIdentity::of(&data).map_err(Error::file("look up", &data))?;
        Ok(sstable.data.is(&now))
    }

    /// Refuses SSTables that the run did not read, if it may have purged tombstones that shadow their data. `others` are
    /// those of the table's other directories.
    fn refuse_unknown(&self, others: &[TableFiles<'_>], record: &RunRecord) -> Result<()> {
        let all = || std::iter::once(self).chain(others);
        for sstable in &record.overlapping {
            let mut found = false;
            for files in all() {
                found = found || files.has(sstable)?;
            }
            if !found && record.overlapping_removed_data {
                let searched: Vec<_> = all().map(|files| files.table.to_string_lossy()).collect();
                return Err(Error::refused(format!(
                    "{} is no longer in {}: the run dropped data that this SSTable shadows, so it must stay \
                     in the table with the outputs. With the node stopped, merge what is there now, and swap that",
                    sstable.file_name(),
                    searched.join(" or ")
                )));
            }
        }
        if !record.may_have_purged {
            return Ok(());
        }
        for files in all() {
            let mut unknown = files.data.clone();
            for known in [&record.inputs, &record.overlapping, &record.untouched] {
                for sstable in known {
                    if files.has(sstable)? {
                        unknown.remove(sstable.file_name());
                    }
                }
            }
            if let Some(first) = unknown.first() {
                return Err(Error::refused(format!(
                    "{} has SSTables that the run did not see ({}), such as {first}: they may hold rows \
                     that only tombstones purged by the run delete. Import the outputs alongside the inputs \
                     with `nodetool import` on the running node; or merge what is there now, with the node \
                     stopped, and swap that",
                    files.table.display(),
                    unknown.len()
                )));
            }
        }
        Ok(())
    }
}

/// An input in the table's directory.
enum Found {
    /// The same file.
    Same(OldSstable),
    /// No file of that name.
    Missing,
    /// A different file, with the reason.
    Changed(String),
}

/// Whether files may be given to a group.
fn is_own_group(group: u32) -> bool {
    use rustix::process::{getegid, getgroups};
    let groups = getgroups().unwrap_or_default();
    getegid().as_raw() == group || groups.iter().any(|own| own.as_raw() == group)
}

/// Refuses a directory in which no files can be created.
fn refuse_read_only(directory: &Path) -> Result<()> {
    access(directory, Access::WRITE_OK | Access::EXEC_OK)
        .map_err(|e| Error::file("write to", directory)(e.into()))
}

/// Returns the directory that receives the inputs, which must have no other SSTables. `others` are the table's other
/// directories.
fn inputs_directory(
    request: &SwapRequest,
    table: &Path,
    others: &BTreeSet<PathBuf>,
    inputs: &[OldSstable],
) -> Result<PathBuf> {
    let named = &request.inputs_to;
    let refuse = |why: &str| {
        Err(Error::invalid(format!(
            "--inputs-to {}: {why}; name a directory that is empty, or that does not exist",
            named.display()
        )))
    };
    let absolute = std::path::absolute(named).map_err(Error::file("look up", named))?;
    let directory = with_real_ancestor(&absolute);
    if directory
        .components()
        .any(|part| part == std::path::Component::ParentDir)
    {
        return refuse("a path that goes back up from a directory that does not exist");
    }
    let output = request.output.canonicalize();
    let output = output.map_err(Error::file("look up", &request.output))?;
    if is_within(&directory, &output) {
        return refuse("this is in the run's own output directory");
    }
    if is_within(&directory, table) {
        return refuse("this is in the table's own directory, which the node reads");
    }
    let mut tables = others.iter().map(PathBuf::as_path).chain([table]);
    if tables.any(|table| is_of_node(&directory, table)) {
        return refuse("this is in the directories of a node's tables, which it reads");
    }
    refuse_next_to_table(&directory)?;
    if directory.exists() && !directory.is_dir() {
        return refuse("not a directory");
    }
    if directory.to_str().is_none() {
        return refuse("bytes that are not UTF-8");
    }
    for path in entries(&directory)? {
        let name = path.file_name().map(|name| name.to_string_lossy());
        let name = name.unwrap_or_default();
        let is_ours = inputs.iter().any(|old| name.starts_with(&old.prefix));
        if !is_ours && Descriptor::parse(&path).is_ok() {
            return Err(Error::refused(format!(
                "--inputs-to {} has other SSTables, such as {name}: name an empty directory, or remove what \
                 an earlier swap moved there, if the node does well without it",
                named.display()
            )));
        }
        // As when the inputs are moved there.
        let mut files = inputs.iter().flat_map(|old| &old.files);
        if let Some(input) = files.find(|file| file.name == name) {
            let there = FileIdentity::of(&path).map_err(Error::file("look up", &path))?;
            refuse_another(&input.identity, &there, &path)?;
        }
    }
    Ok(directory)
}

/// Whether a directory is one of tables, in the data directory that has the directory `table`.
fn is_of_node(directory: &Path, table: &Path) -> bool {
    let Some(data) = table.parent().and_then(Path::parent) else {
        return false;
    };
    let is_table =
        |path: &Path| TableDirectory::parse(path).is_some_and(|table| table.table_id.is_some());
    let mut below = directory
        .ancestors()
        .take_while(|path| path.starts_with(data));
    below.any(is_table) || is_table(table) && table.parent() == Some(directory)
}
