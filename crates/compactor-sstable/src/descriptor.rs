//! File names and directories.
//!
//! ```text
//! file       <version>-<id>-<format>-<component>, such as nb-1-big-Data.db
//! directory  <keyspace>/<table>-<32 hex digits>[/backups|/snapshots/<tag>][/.<index>]
//! ```
//!
//! Keyspace and table come from the directory, never from the file name.
//!
//! Source: `Descriptor`, `Directories`.

use std::path::{Path, PathBuf};

use crate::component::Component;
use crate::error::Error;
use crate::sstable_id::{InvalidSstableId, SstableId};
use crate::transaction_log;
use crate::version::{Format, UnknownVersion, Version};

/// Suffix of a component's name while it is being written (`Descriptor.TMP_EXT`).
pub const TMP_SUFFIX: &str = ".tmp";

/// Tokens in the names of files that Cassandra before 3.0 was writing (`Descriptor.LEGACY_TMP_REGEX` of 3.11,
/// which deletes them when it starts).
const TMP_PREFIXES: [&str; 2] = ["tmp", "tmplink"];

/// Directory, version and id of an SSTable, which determine its file names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Descriptor {
    /// Directory of its files.
    pub directory: PathBuf,
    /// Version, which implies the format.
    pub version: Version,
    /// Id, unique in the directory.
    pub id: SstableId,
}

/// A parsed file name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SstableFile {
    /// The SSTable.
    pub descriptor: Descriptor,
    /// Component; `None` for those unknown to this project, such as secondary indexes.
    pub component: Option<Component>,
    /// Last token of the name, as found.
    pub suffix: String,
}

impl Descriptor {
    /// Creates a descriptor of files in `directory`.
    pub fn new(directory: impl Into<PathBuf>, version: Version, id: SstableId) -> Descriptor {
        Descriptor {
            directory: directory.into(),
            version,
            id,
        }
    }

    /// Parses the path of any component.
    ///
    /// # Errors
    /// [`NameError`] with the part of the name that is not understood.
    pub fn parse(path: &Path) -> Result<SstableFile, NameError> {
        let not_one = || NameError::NotAnSstable(path.to_owned());
        let unreadable = |reason: String| NameError::Unreadable(path.to_owned(), reason);
        let name = path
            .file_name()
            .and_then(|n| n.to_str())
            .ok_or_else(not_one)?;
        let tokens: Vec<&str> = name.split('-').collect();
        // `(tmp-|tmplink-)<version>-...` in 2.2, `<keyspace>-<table>-(tmp-|tmplink-)...` before.
        let is_temporary = |at: usize| tokens.get(at).is_some_and(|t| TMP_PREFIXES.contains(t));
        if tokens.len() >= 5 && (is_temporary(0) || (tokens.len() == 6 && is_temporary(2))) {
            return Err(NameError::Temporary(path.to_owned()));
        }
        let [version, id, format, suffix] = tokens[..] else {
            // `<keyspace>-<table>-<version>-<generation>-<component>` before 2.2.
            return Err(match tokens.len() {
                // The time-UUID in its name has dashes too.
                _ if transaction_log::is_file_name(name) => not_one(),
                5 | 6 => unreadable(format!(
                    "named as before Cassandra 3.0 (version {:?}); upgrade it with sstableupgrade of \
                     Cassandra 3.x first",
                    tokens[tokens.len() - 3]
                )),
                _ => not_one(),
            });
        };
        if version.is_empty() || !version.bytes().all(|b| b.is_ascii_lowercase()) {
            return Err(not_one());
        }
        if suffix.is_empty() || suffix.ends_with(TMP_SUFFIX) {
            return Err(not_one());
        }
        let format = match format {
            "big" => Format::Big,
            "bti" => Format::Bti,
            other => {
                let reason = format!("unknown SSTable format {other:?}; known are big and bti");
                return Err(unreadable(reason));
            }
        };
        let version: Version = version
            .parse()
            .map_err(|error: UnknownVersion| unreadable(error.to_string()))?;
        if version.format() != format {
            let reason = format!("version {version} is not of format {}", format.name());
            return Err(unreadable(reason));
        }
        let id = id
            .parse()
            .map_err(|error: InvalidSstableId| unreadable(error.to_string()))?;
        Ok(SstableFile {
            descriptor: Descriptor {
                directory: path.parent().map(Path::to_owned).unwrap_or_default(),
                version,
                id,
            },
            component: Component::from_file_suffix(suffix),
            suffix: suffix.to_owned(),
        })
    }

    /// Format of the index files.
    pub fn format(&self) -> Format {
        self.version.format()
    }

    /// Common prefix of the names of all its files, without the last `-`.
    pub fn base_name(&self) -> String {
        format!("{}-{}-{}", self.version, self.id, self.format().name())
    }

    /// File name of a component.
    pub fn file_name(&self, component: Component) -> String {
        self.file_name_of(component.file_suffix())
    }

    /// File name with this last token, for components that [`Component`] does not list.
    pub fn file_name_of(&self, suffix: &str) -> String {
        format!("{}-{suffix}", self.base_name())
    }

    /// Path of a component.
    pub fn path(&self, component: Component) -> PathBuf {
        self.directory.join(self.file_name(component))
    }
}

/// A file name that is not that of an SSTable readable by this project.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// Not the name of an SSTable.
    #[error("{0}: not the name of an SSTable (<version>-<id>-<format>-<component>)")]
    NotAnSstable(PathBuf),
    /// A file that Cassandra before 3.0 had not finished writing, or kept open by a second name.
    #[error(
        "{0}: a temporary file of Cassandra (tmp- or tmplink-), which no release reads; its data is in \
         other SSTables or in the commit log"
    )]
    Temporary(PathBuf),
    /// A name of a version or form that this project does not read, and the reason.
    #[error("{0}: {1}")]
    Unreadable(PathBuf, String),
}

impl From<NameError> for Error {
    fn from(error: NameError) -> Error {
        Error::unsupported(error.to_string())
    }
}

/// Kind of a table's directory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DirectoryKind {
    /// Directory of the live SSTables of a node.
    Live,
    /// Incremental backups.
    Backups,
    /// A snapshot.
    Snapshot {
        /// Tag of the snapshot.
        tag: String,
    },
}

/// A parsed table directory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TableDirectory {
    /// Keyspace name.
    pub keyspace: String,
    /// Table name.
    pub table: String,
    /// Table id as 32 hex digits; missing only in directories made before Cassandra 2.1.
    pub table_id: Option<String>,
    /// Live, backups or a snapshot.
    pub kind: DirectoryKind,
    /// Secondary index whose hidden table is stored here.
    pub index: Option<String>,
}

impl TableDirectory {
    /// Parses a directory, which need not exist. `None` if it is not laid out as a table's.
    ///
    /// A directory without a table id is accepted only if it directly contains the files, so that an
    /// arbitrary directory named `snapshots` is not taken for a table's.
    pub fn parse(directory: &Path) -> Option<TableDirectory> {
        let mut names: Vec<&str> = Vec::new();
        for part in directory.components() {
            match part {
                std::path::Component::Normal(name) => names.push(name.to_str()?),
                std::path::Component::ParentDir => return None,
                _ => {}
            }
        }
        let index = match names.last()?.strip_prefix('.') {
            Some(index) if !index.is_empty() && index.bytes().all(is_index_byte) => {
                names.pop();
                Some(index.to_owned())
            }
            Some(_) => return None,
            None => None,
        };
        let kind = match names[..] {
            [.., _, _, "snapshots", tag] => {
                let tag = tag.to_owned();
                names.truncate(names.len() - 2);
                DirectoryKind::Snapshot { tag }
            }
            [.., _, _, "backups"] => {
                names.truncate(names.len() - 1);
                DirectoryKind::Backups
            }
            _ => DirectoryKind::Live,
        };
        let [.., keyspace, table] = names[..] else {
            return None;
        };
        let (table, table_id) = match table.split_once('-') {
            Some((name, id)) if is_table_id(id) => (name, Some(id.to_owned())),
            Some(_) => return None,
            None => (table, None),
        };
        if !is_name(keyspace) || !is_name(table) {
            return None;
        }
        Some(TableDirectory {
            keyspace: keyspace.to_owned(),
            table: table.to_owned(),
            table_id,
            kind,
            index,
        })
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

fn is_index_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

fn is_table_id(id: &str) -> bool {
    id.len() == 32
        && id
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for (name, version, component) in [
            ("nb-1-big-Data.db", Version::Nb, Component::Data),
            (
                "oa-17-big-CompressionInfo.db",
                Version::Oa,
                Component::CompressionInfo,
            ),
            ("nb-1-big-Digest.crc32", Version::Nb, Component::Digest),
            ("nb-1-big-TOC.txt", Version::Nb, Component::Toc),
            (
                "da-3g7k_098r_4iud828utjt3hwnh1v-bti-Rows.db",
                Version::Da,
                Component::Rows,
            ),
        ] {
            let path = Path::new("/d/ks/t").join(name);
            let file = Descriptor::parse(&path).unwrap();
            assert_eq!(file.descriptor.version, version);
            assert_eq!(file.component, Some(component));
            assert_eq!(file.descriptor.path(component), path);
            assert_eq!(file.descriptor.directory, Path::new("/d/ks/t"));
        }
    }

    #[test]
    fn index_components_are_named_but_not_known() {
        let file = Descriptor::parse(Path::new("oa-1-big-SAI+ba+idx+Meta.db")).unwrap();
        assert_eq!(file.component, None);
        assert_eq!(file.suffix, "SAI+ba+idx+Meta.db");
        assert_eq!(
            file.descriptor.file_name_of(&file.suffix),
            "oa-1-big-SAI+ba+idx+Meta.db"
        );
    }

    #[test]
    fn refusals_name_the_reason() {
        for (name, reason) in [
            ("Data.db", "not the name of an SSTable"),
            ("manifest.json", "not the name of an SSTable"),
            ("NB-1-big-Data.db", "not the name of an SSTable"),
            ("nb-1-big-Data.db.tmp", "not the name of an SSTable"),
            (
                "nb_txn_flush_afcd3020-ec43-11f1-8a63-8da729eadec7.log",
                "not the name of an SSTable",
            ),
            (
                "ks-cf-jb-1-Data.db",
                "before Cassandra 3.0 (version \"jb\")",
            ),
            ("ks-cf-tmp-ic-1-Data.db", "a temporary file of Cassandra"),
            (
                "ks-cf-tmplink-ka-1-Data.db",
                "a temporary file of Cassandra",
            ),
            ("tmp-la-1-big-Data.db", "a temporary file of Cassandra"),
            ("tmp-oa-1-big-Data.db", "a temporary file of Cassandra"),
            ("tmplink-oa-1-big-Index.db", "a temporary file of Cassandra"),
            ("la-1-big-Data.db", "unknown SSTable version \"la\""),
            ("zz-1-big-Data.db", "unknown SSTable version \"zz\""),
            ("nb-1-xyz-Data.db", "unknown SSTable format \"xyz\""),
            ("nb-1-bti-Data.db", "version nb is not of format bti"),
            ("nb-x!-big-Data.db", "invalid SSTable id \"x!\""),
        ] {
            let error = Descriptor::parse(Path::new(name)).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
            assert!(error.contains(name), "{error}");
        }
    }

    #[test]
    fn directories() {
        let id = "0123456789abcdef0123456789abcdef";
        let parse = |text: String| TableDirectory::parse(Path::new(&text));
        let live = parse(format!("/var/data/ks/t_1-{id}")).unwrap();
        assert_eq!((live.keyspace.as_str(), live.table.as_str()), ("ks", "t_1"));
        assert_eq!(live.table_id.as_deref(), Some(id));
        assert_eq!((live.kind, live.index), (DirectoryKind::Live, None));

        let index = parse(format!("/var/data/ks/t-{id}/snapshots/a b/.by_v-1")).unwrap();
        assert_eq!(
            index.kind,
            DirectoryKind::Snapshot {
                tag: "a b".to_owned()
            }
        );
        assert_eq!(index.index.as_deref(), Some("by_v-1"));
        assert_eq!(
            parse(format!("ks/t-{id}/backups")).unwrap().kind,
            DirectoryKind::Backups
        );

        let legacy = parse("/var/data/ks/t".to_owned()).unwrap();
        assert_eq!((legacy.table.as_str(), legacy.table_id), ("t", None));
        for none in ["/", "/x", "ks/t-0123", "k s/t", "/a/../ks/t", "ks/t-/."] {
            assert_eq!(parse(none.to_owned()), None, "{none}");
        }
    }
}
