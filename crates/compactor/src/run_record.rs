//! Record of the inputs and outputs of a run, stored as `compactor-run.json` alongside the outputs.
//!
//! [`swap`](crate::swap) reads it to put exactly these outputs into the place of exactly these inputs. It is written
//! before the outputs of a merge or compaction are published, so that there are none without it. A record whose run did
//! not finish lists outputs that do not exist or are other files of the same name, and is ignored. Runs that publish the
//! outputs of each SSTable on their own write it at their end.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use compactor_engine::input::ComponentList;
use compactor_engine::publish::{
    FileIdentity, InputAtOpen, InputsAtOpen, OutputClaim, RUN_RECORD, TMP_SUFFIX,
};
use compactor_io::{remove_if_exists, rename, sync_directory};
use compactor_sstable::Component;
use compactor_sstable::descriptor::{Descriptor, TableDirectory};
use serde::{Deserialize, Serialize};

use crate::MergeRequest;
use crate::{Error, Result};
use crate::{Scope, TombstoneOption};

/// Name of the record's file.
pub const FILE_NAME: &str = RUN_RECORD;
/// Version of the format.
const FORMAT: u32 = 2;
/// Maximum length of a record: room for two hundred thousand SSTables that were rewritten one by one.
const MAX_BYTES: u64 = 512 << 20;

/// Inputs and outputs of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(Default))]
#[non_exhaustive]
pub struct RunRecord {
    /// Version of this format.
    pub format: u32,
    /// Version of the program.
    pub compactor: String,
    /// `merge`, `compact`, `upgrade`, `split` or `scrub`.
    pub command: String,
    /// When it was written, milliseconds since 1970; 0 if that is not known.
    #[serde(default)]
    pub written_at_ms: i64,
    /// True if tombstones or expired data may have been purged because the inputs and `overlapping` were declared to
    /// be all SSTables of the table.
    pub may_have_purged: bool,
    /// True if data shadowed by `overlapping` was removed: these SSTables must stay in the table with the outputs.
    pub overlapping_removed_data: bool,
    /// True if cells and rows lost their TTL.
    #[serde(default)]
    pub ttl_removed: bool,
    /// True if rows of damaged SSTables were lost, or may be wrong.
    #[serde(default)]
    pub rows_lost: bool,
    /// SSTables of the table besides the inputs, as declared.
    pub overlapping: Vec<RecordedInput>,
    /// SSTables that were considered and stay unchanged.
    pub untouched: Vec<RecordedInput>,
    /// SSTables that the outputs replace.
    pub inputs: Vec<RecordedInput>,
    /// SSTables that were written; none if all data was purged.
    pub outputs: Vec<RecordedOutput>,
}

/// An SSTable as it was before it was opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RecordedInput {
    /// Absolute path of its `Data.db` as given. Bytes that are not UTF-8 are replaced.
    pub data_path: String,
    /// Identity of `Data.db`.
    pub data: RecordedFile,
    /// Identity of `Statistics.db`.
    pub statistics: Option<RecordedFile>,
}

/// Identity of a file, to distinguish it from another of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RecordedFile {
    /// Length in bytes.
    pub bytes: u64,
    /// Last modification, nanoseconds since 1970.
    pub modified_ns: i64,
}

/// An output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RecordedOutput {
    /// File name of its `Data.db`, in the record's directory.
    pub data_file: String,
    /// CRC-32 of `Data.db` as `Digest.crc32` has it.
    pub digest: Option<String>,
    /// Its files.
    pub files: Vec<OutputFile>,
}

/// A file of an output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OutputFile {
    /// Last part of its name, such as `Data.db`.
    pub component: String,
    /// Its identity.
    pub file: RecordedFile,
}

impl RecordedFile {
    /// Returns true if a file is this one, or a copy that kept the time of its last change, as `cp -p` and `rsync -t`
    /// make them.
    pub fn is(&self, file: &FileIdentity) -> bool {
        (self.bytes, self.modified_ns) == (file.bytes, file.modified_ns)
    }
}

impl From<&FileIdentity> for RecordedFile {
    fn from(file: &FileIdentity) -> RecordedFile {
        RecordedFile {
            bytes: file.bytes,
            modified_ns: file.modified_ns,
        }
    }
}

impl RecordedInput {
    /// File name of its `Data.db`.
    pub fn file_name(&self) -> &str {
        self.data_path.rsplit('/').next().unwrap_or_default()
    }
}

impl From<&InputAtOpen> for RecordedInput {
    fn from(input: &InputAtOpen) -> RecordedInput {
        let absolute = std::path::absolute(&input.data_path);
        let data_path = absolute.as_ref().unwrap_or(&input.data_path);
        RecordedInput {
            data_path: data_path.to_string_lossy().into_owned(),
            data: RecordedFile::from(&input.data),
            statistics: input.statistics.as_ref().map(RecordedFile::from),
        }
    }
}

impl RecordedOutput {
    fn of(data_path: &Path) -> Result<RecordedOutput> {
        let descriptor = descriptor_of(data_path)?;
        let present = ComponentList::known(&descriptor)?.present;
        let digest = if present.iter().any(|(c, _)| *c == Component::Digest) {
            let path = descriptor.path(Component::Digest);
            let text = fs::read_to_string(&path).map_err(Error::file("read", path))?;
            Some(text.trim().to_owned())
        } else {
            None
        };
        let files = present.into_iter().map(|(component, _)| {
            let path = descriptor.path(component);
            let file = FileIdentity::of(&path).map_err(Error::file("look up", path))?;
            Ok(OutputFile {
                component: component.file_suffix().to_owned(),
                file: RecordedFile::from(&file),
            })
        });
        Ok(RecordedOutput {
            data_file: descriptor.file_name(Component::Data),
            digest,
            files: files.collect::<Result<_>>()?,
        })
    }
}

/// The SSTable that a file belongs to, by its name.
pub(crate) fn descriptor_of(path: &Path) -> Result<Descriptor> {
    let file = Descriptor::parse(path).map_err(compactor_sstable::Error::from)?;
    Ok(file.descriptor)
}

/// Writes the record of a run when its outputs are complete.
#[derive(Clone, Debug)]
pub struct Recorder {
    command: &'static str,
    may_have_purged: bool,
    overlapping_removed_data: bool,
    ttl_removed: bool,
    rows_lost: bool,
    overlapping: Vec<RecordedInput>,
}

impl Recorder {
    /// Creates the recorder of a run of `command` with `request`, before it begins.
    ///
    /// # Errors
    /// An SSTable that is named as overlapping cannot be looked up.
    pub fn new(command: &'static str, request: &MergeRequest) -> Result<Recorder> {
        let provides = request.overlapping_tombstones != TombstoneOption::None;
        let overlapping = InputsAtOpen::look(request.scope.named(), false)?;
        Ok(Recorder {
            command,
            may_have_purged: request.may_purge(),
            overlapping_removed_data: provides && matches!(request.scope, Scope::Overlapping(_)),
            ttl_removed: request.strip_ttl,
            rows_lost: false,
            overlapping: overlapping
                .inputs()
                .iter()
                .map(RecordedInput::from)
                .collect(),
        })
    }

    /// Creates the recorder of a run that rewrites each SSTable on its own, whatever else the table has, and purges
    /// nothing.
    pub(crate) fn of_rewrites(command: &'static str, ttl_removed: bool) -> Recorder {
        Recorder {
            command,
            may_have_purged: false,
            overlapping_removed_data: false,
            ttl_removed,
            rows_lost: false,
            overlapping: Vec::new(),
        }
    }

    /// The same of a run by which rows were lost, or not.
    pub(crate) fn with_rows_lost(self, rows_lost: bool) -> Recorder {
        Recorder { rows_lost, ..self }
    }

    /// Writes the record where outputs are published. It is durable when this returns.
    ///
    /// `outputs` are the `Data.db` of the outputs where they are now; `replaced` specifies which inputs they
    /// replace, and `untouched` which stay.
    pub(crate) fn write(
        &self,
        claim: &OutputClaim,
        outputs: &[PathBuf],
        inputs: &[InputAtOpen],
        replaced: &dyn Fn(&Path) -> bool,
        untouched: &[PathBuf],
    ) -> Result<WrittenRecord> {
        let directory = claim.directory();
        let outputs = outputs
            .iter()
            .map(|data_path| RecordedOutput::of(data_path));
        let untouched: BTreeSet<&PathBuf> = untouched.iter().collect();
        let those = |wanted: &dyn Fn(&PathBuf) -> bool| {
            let wanted = inputs.iter().filter(|input| wanted(&input.data_path));
            wanted.map(RecordedInput::from).collect()
        };
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        let since_1970 = since_1970.unwrap_or_default();
        let record = RunRecord {
            format: FORMAT,
            compactor: env!("CARGO_PKG_VERSION").to_owned(),
            command: self.command.to_owned(),
            written_at_ms: i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX),
            may_have_purged: self.may_have_purged,
            overlapping_removed_data: self.overlapping_removed_data,
            ttl_removed: self.ttl_removed,
            rows_lost: self.rows_lost,
            overlapping: self.overlapping.clone(),
            untouched: those(&|path| untouched.contains(path)),
            inputs: those(&|path| replaced(path)),
            outputs: outputs.collect::<Result<_>>()?,
        };
        let path = directory.join(FILE_NAME);
        let previous = read_small(&path, MAX_BYTES).ok().flatten();
        let written = WrittenRecord { path, previous };
        match write_json(directory, FILE_NAME, &record) {
            Ok(()) => Ok(written),
            Err(error) => {
                written.undo();
                Err(error)
            }
        }
    }
}

/// A record whose outputs are not published yet.
#[derive(Debug)]
#[must_use]
pub(crate) struct WrittenRecord {
    path: PathBuf,
    previous: Option<Vec<u8>>,
}

impl WrittenRecord {
    /// Restores the previous record, since the outputs were not published.
    pub(crate) fn undo(self) {
        let _ = fs::remove_file(tmp_path(&self.path));
        // If restoring fails, the record lists outputs that do not exist, which is harmless.
        let _ = match self.previous {
            Some(previous) => fs::write(&self.path, previous),
            None => fs::remove_file(&self.path),
        };
    }
}

/// Creates a directory and its missing parents, durably.
pub(crate) fn make_directory(directory: &Path) -> Result<()> {
    let missing: Vec<&Path> = directory
        .ancestors()
        .take_while(|ancestor| !ancestor.exists())
        .collect();
    fs::create_dir_all(directory).map_err(Error::file("create directory", directory))?;
    for made in missing {
        sync_directory(made.parent().unwrap_or(Path::new("")))?;
    }
    Ok(())
}

/// Path of a JSON file while it is written.
fn tmp_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(TMP_SUFFIX);
    name.into()
}

/// Writes a JSON file durably and atomically, replacing an existing one.
pub(crate) fn write_json(directory: &Path, name: &str, value: &impl Serialize) -> Result<()> {
    let path = directory.join(name);
    let tmp = tmp_path(&path);
    let mut json = serde_json::to_vec_pretty(value)
        .map_err(|e| Error::file("write", &path)(std::io::Error::other(e)))?;
    json.push(b'\n');
    let written = File::create(&tmp).and_then(|mut file| {
        file.write_all(&json)?;
        file.sync_all()
    });
    let written = written.map_err(Error::file("write", &tmp));
    if let Err(error) = written.and_then(|()| Ok(rename(&tmp, &path)?)) {
        let _ = remove_if_exists(&tmp);
        return Err(error);
    }
    Ok(sync_directory(directory)?)
}

/// Reads a regular file of at most `max` bytes; `None` if there is none.
pub(crate) fn read_small(path: &Path, max: u64) -> Result<Option<Vec<u8>>> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(Error::file("look up", path)(e)),
    };
    if !metadata.is_file() || metadata.len() > max {
        return Err(Error::invalid(format!(
            "{}: not a regular file of at most {max} bytes",
            path.display()
        )));
    }
    fs::read(path).map(Some).map_err(Error::file("read", path))
}

impl RunRecord {
    /// Removes the record of a directory, if it has one, since another run writes there.
    pub(crate) fn remove(directory: &Path) -> Result<()> {
        remove_if_exists(&directory.join(FILE_NAME))?;
        Ok(sync_directory(directory)?)
    }

    /// Whether its inputs may be of the table that has this directory: both directories do not name different tables.
    pub(crate) fn may_be_of(&self, table: &Path) -> bool {
        let id_of = |directory: &Path| TableDirectory::parse(directory)?.table_id;
        let of_inputs = self.inputs.first().and_then(|input| {
            let directory = Path::new(&input.data_path).parent()?;
            id_of(directory)
        });
        of_inputs.is_none_or(|id| id_of(table).is_none_or(|own| own == id))
    }

    /// Reads the record of a directory; `None` if there is none.
    ///
    /// # Errors
    /// A file that cannot be read, that is no record, or one of a later format.
    pub fn read(directory: &Path) -> Result<Option<RunRecord>> {
        let path = directory.join(FILE_NAME);
        let Some(bytes) = read_small(&path, MAX_BYTES)? else {
            return Ok(None);
        };
        let record = RunRecord::parse(&bytes)
            .map_err(|why| Error::invalid(format!("{}: {why}", path.display())))?;
        Ok(Some(record))
    }

    fn parse(bytes: &[u8]) -> Result<RunRecord, String> {
        #[derive(Deserialize)]
        struct OfFormat {
            format: u32,
        }
        let of: OfFormat =
            serde_json::from_slice(bytes).map_err(|e| format!("no record of a run: {e}"))?;
        if of.format != FORMAT {
            return Err(format!(
                "a record of format {}, which another version of this program wrote; this one reads \
                 format {FORMAT}",
                of.format
            ));
        }
        let record: RunRecord =
            serde_json::from_slice(bytes).map_err(|e| format!("no record of a run: {e}"))?;
        for output in &record.outputs {
            let name = &output.data_file;
            if name.contains('/') || !is_data(Path::new(name)) {
                return Err(format!("{name:?} is no output of a run"));
            }
            let is_known = |file: &OutputFile| Component::from_file_suffix(&file.component);
            if output.files.iter().any(|file| is_known(file).is_none()) {
                return Err(format!(
                    "{:?} has a file that no output has",
                    output.data_file
                ));
            }
        }
        for known in [&record.inputs, &record.overlapping, &record.untouched] {
            let mut names = known.iter().map(RecordedInput::file_name);
            if let Some(name) = names.find(|name| !is_data(Path::new(name))) {
                return Err(format!("{name:?} is no input of a run"));
            }
        }
        Ok(record)
    }
}

fn is_data(path: &Path) -> bool {
    Descriptor::parse(path).is_ok_and(|file| file.component == Some(Component::Data))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(data_file: &str, input: &str, component: &str) -> String {
        format!(
            r#"{{"format": 2, "compactor": "1", "command": "merge", "may_have_purged": true,
                "overlapping_removed_data": false, "overlapping": [], "untouched": [],
                "inputs": [{{"data_path": "{input}", "statistics": null,
                    "data": {{"bytes": 3, "modified_ns": 4}}}}],
                "outputs": [{{"data_file": "{data_file}", "digest": "7",
                    "files": [{{"component": "{component}", "file": {{"bytes": 1, "modified_ns": 4}}}}]}}],
                "later": 1}}"#
        )
    }

    #[test]
    fn a_record_names_only_sstables_in_its_directory() {
        let parse = |text: &str| RunRecord::parse(text.as_bytes());
        let good = ("nb-3-big-Data.db", "/d/ks/t/nb-1-big-Data.db", "Data.db");
        let read = parse(&record(good.0, good.1, good.2)).unwrap();
        assert_eq!(read.inputs[0].file_name(), "nb-1-big-Data.db");
        assert!(read.may_have_purged);
        for (output, input, component) in [
            ("/ks/t/nb-3-big-Data.db", good.1, good.2),
            ("../nb-3-big-Data.db", good.1, good.2),
            ("t/nb-3-big-Data.db", good.1, good.2),
            ("nb-3-big-Index.db", good.1, good.2),
            ("passwd", good.1, good.2),
            (good.0, "/d/ks/t/passwd", good.2),
            (good.0, "", good.2),
            (good.0, good.1, "../Data.db"),
        ] {
            let text = record(output, input, component);
            parse(&text).unwrap_err();
        }
        let later = record(good.0, good.1, good.2).replace("\"format\": 2", "\"format\": 3");
        assert!(parse(&later).unwrap_err().contains("another version"));
        for text in ["", "{}", "[1]", "{\"format\": 2}", "\u{0}"] {
            parse(text).unwrap_err();
        }
    }

    #[test]
    fn a_file_is_known_by_its_length_and_time() {
        let recorded = RecordedFile {
            bytes: 3,
            modified_ns: 4,
        };
        let file = |inode, bytes, modified_ns| FileIdentity {
            device: 1,
            inode,
            bytes,
            modified_ns,
        };
        assert!(recorded.is(&file(1, 3, 4)));
        assert!(recorded.is(&file(9, 3, 4)), "a copy");
        assert!(!recorded.is(&file(1, 3, 5)), "written to in place");
        assert!(!recorded.is(&file(1, 4, 4)));
    }
}
