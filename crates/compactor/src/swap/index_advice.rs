//! Advice on the table's secondary indexes when SSTables are swapped.
//!
//! A table's SSTables carry the components of storage-attached and SASI indexes; outputs have none. A node
//! that starts builds what is missing (`StorageAttachedIndex.startInitialBuild`, `SASIIndex`). Older
//! indexes are tables of their own in hidden directories and are not built again
//! (`CassandraIndex.getInitializationTask`): they have all live rows, since a merge changes none, and
//! entries of purged ones, which reads find stale and remove (`CompositesSearcher`). Their entries have the TTLs of the
//! rows: if a merge removed those, the entries still expire. If a scrub lost rows, those had deleted entries of earlier
//! rows that are live again. `nodetool rebuild_index` repairs neither: it adds entries, and the existing ones win over them
//! (`SecondaryIndexManager.rebuildIndexesBlocking`).

use std::path::Path;

use compactor_sstable::descriptor::Descriptor;

use crate::Result;
use crate::run_record::RunRecord;
use crate::table::data_files;

use super::new_names::entries;

/// Returns advice on the indexes of a table whose SSTables with these files are replaced by the outputs of a run.
pub(super) fn index_advice<'a>(
    table: &Path,
    replaced: impl Iterator<Item = &'a str>,
    record: &RunRecord,
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
    if hidden.is_empty() {
        return Ok(advice);
    }
    let names = hidden.join(", ");
    let remedy = "Once the node is up, drop and create them (DROP INDEX, CREATE INDEX): `nodetool rebuild_index` keeps \
                the entries that are there";
    if record.ttl_removed {
        advice.push(format!(
            "the entries of secondary indexes ({names}) keep their TTL: queries by these indexes miss rows. {remedy}"
        ));
    }
    if record.rows_lost {
        advice.push(format!(
            "rows were lost or may be wrong, and rows that they had replaced are live again: the secondary indexes \
             ({names}) may have no entries for those. {remedy}"
        ));
    }
    if !record.ttl_removed && !record.rows_lost {
        advice.push(format!(
            "the SSTables of secondary indexes ({names}) stay as they are: they have every live row, and reads drop \
             their entries of purged rows"
        ));
    }
    Ok(advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_index_is_named() {
        let temp = tempfile::tempdir().unwrap();
        let mut record = RunRecord::default();
        let advice = |names: &[&str], record: &RunRecord| {
            index_advice(temp.path(), names.iter().copied(), record).unwrap()
        };
        assert!(advice(&["oa-1-big-Data.db", "oa-1-big-TOC.txt"], &record).is_empty());
        let storage_attached = ["oa-1-big-SAI+aa+ix+ColumnComplete.db"];
        assert!(advice(&storage_attached, &record)[0].contains("(SAI)"));
        assert!(advice(&["nb-1-big-SI_ix.db"], &record)[0].contains("SASI"));
        let hidden = temp.path().join(".by_a");
        std::fs::create_dir(&hidden).unwrap();
        assert!(advice(&[], &record).is_empty());
        std::fs::write(hidden.join("nb-1-big-Data.db"), "x").unwrap();
        let [stay] = &advice(&[], &record)[..] else {
            panic!()
        };
        assert!(stay.contains("(by_a) stay as they are"), "{stay}");
        (record.ttl_removed, record.rows_lost) = (true, true);
        let [ttl, lost] = &advice(&[], &record)[..] else {
            panic!()
        };
        assert!(
            ttl.contains("keep their TTL") && ttl.contains("DROP INDEX"),
            "{ttl}"
        );
        assert!(
            lost.contains("rows were lost") && lost.contains("DROP INDEX"),
            "{lost}"
        );
    }
}
