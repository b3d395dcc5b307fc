//! Advice on the table's secondary indexes when SSTables are swapped.
//!
//! A table's SSTables carry the components of storage-attached and SASI indexes; outputs have none. A node
//! that starts builds what is missing (`StorageAttachedIndex.startInitialBuild`, `SASIIndex`). Older
//! indexes are tables of their own in hidden directories and are not built again
//! (`CassandraIndex.getInitializationTask`): they have all live rows, since a merge changes none, and
//! entries of purged ones, which reads find stale and remove (`CompositesSearcher`). Their entries have the TTLs of the
//! rows: if a merge removed those, the entries still expire.

use std::path::Path;

use compactor_sstable::descriptor::Descriptor;

use crate::Result;
use crate::table::data_files;

use super::new_names::entries;

/// Returns advice on the indexes of a table whose SSTables with these files are replaced. `ttl_removed`: by SSTables
/// whose rows lost their TTL.
pub(super) fn index_advice<'a>(
    table: &Path,
    replaced: impl Iterator<Item = &'a str>,
    ttl_removed: bool,
) -> Result<Vec<String>> {
    let (mut storage_attached, mut sasi) = (false, false);
    for name in replaced {
        if let Ok(file) = Descriptor::parse(Path::new(name)) {
            storage_attached |= file.suffix.starts_with("SAI");
            sasi |= file.suffix.starts_with("SI_");
        }
    }
    let mut advice = Vec::new();
    if storage_attached {
        advice.push(
            "the inputs had components of storage-attached indexes (SAI), the outputs have none: the node \
             builds them when it starts, and queries that need them fail until it has"
                .to_owned(),
        );
    }
    if sasi {
        advice.push(
            "the inputs had components of SASI indexes, the outputs have none: the node builds them when \
             it starts, and queries that need them may miss rows until it has"
                .to_owned(),
        );
    }
    let mut hidden: Vec<String> = entries(table)?
        .into_iter()
        .filter_map(|path| {
            let name = path.file_name()?.to_str()?.strip_prefix('.')?.to_owned();
            (!data_files(&path).is_empty()).then_some(name)
        })
        .collect();
    hidden.sort();
    if let [first, ..] = &hidden[..] {
        let rebuild = "nodetool rebuild_index KEYSPACE TABLE";
        let names = hidden.join(", ");
        advice.push(if ttl_removed {
            format!(
                "the entries of secondary indexes ({names}) keep their TTL: queries by these indexes miss rows \
                 until they are rebuilt. Once the node is up: {rebuild} {}",
                hidden.join(" ")
            )
        } else {
            format!(
                "the SSTables of secondary indexes ({names}) stay as they are: they have every live row, and \
                 reads drop their entries of purged rows. To be rid of those at once: {rebuild} {first}"
            )
        });
    }
    Ok(advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_index_is_named() {
        let temp = tempfile::tempdir().unwrap();
        let advice =
            |names: &[&str]| index_advice(temp.path(), names.iter().copied(), false).unwrap();
        assert!(advice(&["oa-1-big-Data.db", "oa-1-big-TOC.txt"]).is_empty());
        assert!(advice(&["oa-1-big-SAI+aa+ix+ColumnComplete.db"])[0].contains("(SAI)"));
        assert!(advice(&["nb-1-big-SI_ix.db"])[0].contains("SASI"));
        let hidden = temp.path().join(".by_a");
        std::fs::create_dir(&hidden).unwrap();
        assert!(advice(&[]).is_empty());
        std::fs::write(hidden.join("nb-1-big-Data.db"), "x").unwrap();
        assert!(advice(&[])[0].ends_with("rebuild_index KEYSPACE TABLE by_a"));
        let advice = index_advice(temp.path(), [].into_iter(), true).unwrap();
        assert!(advice[0].contains("miss rows"), "{advice:?}");
    }
}
