//! Advice on outputs of a version that the node may not support.
//!
//! A node does not start with SSTables of later versions than its release and `storage_compatibility_mode` write
//! (`StartupChecks.checkSSTablesFormat`, `Version.isCompatible`), whatever table they are of.

use std::path::{Path, PathBuf};

use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::{Format, Version};

use crate::table::data_files;

/// Keyspaces of which every node has SSTables, and writes new ones again and again.
const SYSTEM: [&str; 2] = ["system", "system_schema"];

/// Returns advice if all SSTables in the table's directories, and in the system tables next to them, are of earlier versions
/// than some output.
pub(super) fn version_advice<'a>(
    tables: impl Iterator<Item = &'a Path>,
    outputs: impl Iterator<Item = Version>,
) -> Option<String> {
    let output = outputs.max_by_key(|version| generation(*version))?;
    let files = tables.flat_map(|table| {
        let data = table.parent().and_then(Path::parent);
        let system = data.into_iter().flat_map(system_tables);
        let directories = system.chain([table.to_owned()]);
        directories.flat_map(|directory| data_files(&directory))
    });
    let versions = files.filter_map(|data| Some(Descriptor::parse(&data).ok()?.descriptor.version));
    let written = versions.max_by_key(|version| generation(*version))?;
    if generation(output) <= generation(written) {
        return None;
    }
    let of_default_mode = match output {
        Version::Oa => ". Cassandra 5.0 in its default mode, CASSANDRA_4, is one of these",
        _ => "",
    };
    Some(format!(
        "the outputs are of version {output}, and the latest version in the node's directories is {written}: a release or \
         storage_compatibility_mode that does not support {output} does not start with them (`Detected unreadable \
         sstables`){of_default_mode}"
    ))
}

/// Directories of system tables in a data directory.
fn system_tables(data: &Path) -> impl Iterator<Item = PathBuf> {
    let keyspaces = SYSTEM.map(|keyspace| data.join(keyspace));
    let tables = keyspaces.into_iter().flat_map(compactor_io::read_dir);
    tables.flatten().flatten().map(|entry| entry.path())
}

/// Orders versions of both formats by the release that introduced their first letter, by which a node decides.
fn generation(version: Version) -> u8 {
    let letter = version
        .name()
        .as_bytes()
        .first()
        .copied()
        .unwrap_or_default();
    match version.format() {
        Format::Big => letter.saturating_sub(b'm'),
        // `da` came with `oa`.
        Format::Bti => letter.saturating_sub(b'd') + (b'o' - b'm'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_later_than_all_that_the_node_has_are_named() {
        let temp = tempfile::tempdir().unwrap();
        let table = temp.path().join("ks/t");
        let local = temp
            .path()
            .join("system/local-7ad54392bcdd35a684174e047860b377");
        for directory in [&table, &local] {
            std::fs::create_dir_all(directory).unwrap();
        }
        let advice = |version| version_advice([&*table].into_iter(), [version].into_iter());
        let make = |directory: &Path, name| std::fs::write(directory.join(name), "").unwrap();
        assert_eq!(advice(Version::Oa), None, "nothing to compare with");
        make(&table, "me-1-big-Data.db");
        assert!(advice(Version::Nb).is_some());
        make(&local, "nb-1-big-Data.db");
        assert_eq!(advice(Version::Nb), None);
        let text = advice(Version::Oa).unwrap();
        assert!(
            text.contains("version oa, and the latest version in the node's directories is nb"),
            "{text}"
        );
        assert!(text.contains("CASSANDRA_4"), "{text}");
        assert!(!advice(Version::Da).unwrap().contains("CASSANDRA_4"));
        make(&local, "da-2-bti-Data.db");
        assert_eq!(advice(Version::Oa), None);
        assert!(advice(Version::Pa).is_some());
    }
}
