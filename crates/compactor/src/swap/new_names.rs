//! Names for outputs that no other SSTable of the table has, had, or will get.
//!
//! A starting node continues from the greatest id in the table's directories and their backups
//! (`Directories.getUIDGenerator`, `SequenceBasedSSTableId`); UUID ids are unique. Ids of snapshots are left alone
//! too, so that nothing is overwritten when one is restored.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use compactor_engine::publish::new_uuid_id;
use compactor_sstable::Format;
use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::sstable_id::SstableId;

use crate::{Error, Result};

/// Returns the new descriptor of each output: its own id if it is after all of the table's, otherwise the next free
/// one. `others` are the table's directories in other data directories: a node gives no two of a table's SSTables the
/// same id, since key caches, manifests of snapshots, and backups name them without their directory.
pub(super) fn new_names(
    table: &Path,
    others: &BTreeSet<PathBuf>,
    outputs: &[Descriptor],
) -> Result<Vec<Descriptor>> {
    let mut taken = BTreeSet::new();
    for directory in others.iter().map(PathBuf::as_path).chain([table]) {
        add_ids_of_table(directory, &mut taken)?;
    }
    let mut names = Vec::with_capacity(outputs.len());
    for output in outputs {
        let id = match output.id {
            SstableId::Uuid { .. } if taken.contains(&output.id) => new_uuid_id()?,
            SstableId::Uuid { .. } => output.id,
            SstableId::Sequence(_) => {
                let next = SstableId::next_sequence(taken.iter().copied())
                    .ok_or_else(|| Error::invalid("no SSTable id is left"))?;
                output.id.max(next)
            }
        };
        taken.insert(id);
        names.push(Descriptor::new(table, output.version, id));
    }
    Ok(names)
}

/// Returns advice on a saved key cache, which has positions in SSTables by their ids alone (`CacheService`): also in
/// SSTables that are no longer there, such as what a compaction had written that was stopped with the node
/// (`SSTableRewriter` opens it early), or whatever was there before a snapshot was restored. A node that takes such an
/// id itself has loaded the cache before.
pub(super) fn key_cache_advice(outputs: impl IntoIterator<Item = Descriptor>) -> Option<String> {
    let is_cached = |output: Descriptor| {
        output.format() == Format::Big && matches!(output.id, SstableId::Sequence(_))
    };
    outputs.into_iter().any(is_cached).then(|| {
        "remove KeyCache-* from the node's saved_caches directory before it starts: a saved key cache may have positions \
         in earlier SSTables with the ids of the outputs, and the node would read wrong rows there"
            .to_owned()
    })
}

/// Adds the ids in a table's directory, its backups and its snapshots.
fn add_ids_of_table(table: &Path, ids: &mut BTreeSet<SstableId>) -> Result<()> {
    add_ids(table, ids)?;
    add_ids(&table.join("backups"), ids)?;
    let snapshots = table.join("snapshots");
    for snapshot in entries(&snapshots)? {
        if snapshot.is_dir() {
            add_ids(&snapshot, ids)?;
        }
    }
    Ok(())
}

fn add_ids(directory: &Path, ids: &mut BTreeSet<SstableId>) -> Result<()> {
    let files = entries(directory)?;
    let parsed = files.iter().filter_map(|path| Descriptor::parse(path).ok());
    ids.extend(parsed.map(|file| file.descriptor.id));
    Ok(())
}

/// Returns the paths in a directory; none if it does not exist.
pub(super) fn entries(directory: &Path) -> Result<Vec<PathBuf>> {
    let list = || Error::file("list", directory);
    let entries = match compactor_io::read_dir(directory) {
        Ok(entries) => entries,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(list()(e)),
    };
    entries
        .map(|entry| entry.map(|entry| entry.path()).map_err(list()))
        .collect()
}

/// Returns the file names in a directory, ascending, without those that are not UTF-8; none if it does not exist.
pub(super) fn sorted_names(directory: &Path) -> Result<Vec<String>> {
    let paths = entries(directory)?;
    let names = paths.iter().filter_map(|path| path.file_name()?.to_str());
    let mut names: Vec<String> = names.map(str::to_owned).collect();
    names.sort();
    Ok(names)
}

/// Those of ascending names that begin with `prefix`: a table has tens of thousands of files.
pub(super) fn with_prefix<'a>(names: &'a [String], prefix: &str) -> &'a [String] {
    let from = names.partition_point(|name| name.as_str() < prefix);
    let found = &names[from..];
    &found[..found.partition_point(|name| name.starts_with(prefix))]
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use compactor_sstable::Version;

    #[test]
    fn sequence_ids_follow_all_ids_of_the_table() {
        let (temp, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let others = BTreeSet::from([other.path().to_owned()]);
        let output = |id: &str| Descriptor::new("out", Version::Nb, id.parse().unwrap());
        let names = |outputs: &[Descriptor]| -> Vec<String> {
            let names = new_names(temp.path(), &others, outputs).unwrap();
            names.iter().map(Descriptor::base_name).collect()
        };
        let make = |name: &str| {
            let path = temp.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        };
        make("nb-3-big-Data.db");
        assert_eq!(names(&[output("4")]), ["nb-4-big"]);
        assert_eq!(
            names(&[output("9"), output("9")]),
            ["nb-9-big", "nb-10-big"]
        );
        assert_eq!(names(&[output("2"), output("3")]), ["nb-4-big", "nb-5-big"]);
        make("oa-4-big-TOC.txt");
        assert_eq!(names(&[output("4")]), ["nb-5-big"]);
        make("backups/nb-6-big-Data.db");
        make("snapshots/before/nb-8-big-Data.db");
        make(".by_a/nb-70-big-Data.db");
        assert_eq!(
            names(&[output("4"), output("5")]),
            ["nb-9-big", "nb-10-big"]
        );
        fs::create_dir(other.path().join("backups")).unwrap();
        fs::write(other.path().join("backups/oa-9-big-Data.db"), "x").unwrap();
        assert_eq!(names(&[output("4")]), ["nb-10-big"]);
    }

    #[test]
    fn names_are_found_by_their_prefix() {
        let names = ["nb-1-a", "nb-10-a", "nb-2-a", "nb-2-b", "oa-2-a"].map(str::to_owned);
        for (prefix, expected) in [
            ("nb-2-", &names[2..4]),
            ("nb-1-", &names[..1]),
            ("nb-3-", &[]),
            ("pa-", &[]),
            ("", &names[..]),
        ] {
            assert_eq!(with_prefix(&names, prefix), expected, "{prefix}");
        }
    }

    #[test]
    fn a_key_cache_knows_only_sequence_ids_that_are_used_again() {
        let advice = |version, id: &str| {
            key_cache_advice([Descriptor::new("t", version, id.parse().unwrap())])
        };
        assert!(advice(Version::Nb, "4").unwrap().contains("KeyCache-*"));
        assert_eq!(advice(Version::Nb, "3g7k_098r_4iud828utjt3hwnh1v"), None);
        assert_eq!(advice(Version::Da, "4"), None, "tries have no key cache");
    }

    #[test]
    fn uuid_ids_are_kept_unless_taken() {
        let temp = tempfile::tempdir().unwrap();
        let id: SstableId = "3g7k_098r_4iud828utjt3hwnh1v".parse().unwrap();
        let output = Descriptor::new("out", Version::Nb, id);
        let of = |names: Vec<Descriptor>| names[0].id;
        let free = new_names(temp.path(), &BTreeSet::new(), std::slice::from_ref(&output)).unwrap();
        assert_eq!(of(free), id);
        fs::write(temp.path().join(format!("nb-{id}-big-Data.db")), "x").unwrap();
        let other = of(new_names(temp.path(), &BTreeSet::new(), &[output]).unwrap());
        assert!(other != id && matches!(other, SstableId::Uuid { .. }));
    }
}
