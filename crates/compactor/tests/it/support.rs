//! SSTables for the tests of the library.

pub mod damage;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Contents of files by name.
pub type Files = BTreeMap<String, Vec<u8>>;

/// Files of a directory without subdirectories.
pub fn files(directory: &Path) -> Files {
    std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read(&path).unwrap())
        })
        .collect()
}

/// Every `Data.db` of the BIG format below a directory, sorted.
pub fn find_sstables(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut paths: Vec<PathBuf> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            found.append(&mut find_sstables(&path));
        } else if path.to_string_lossy().ends_with("-big-Data.db") {
            found.push(path);
        }
    }
    found
}

/// SSTables written by Cassandra that are in the repository.
pub fn testdata() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../compactor-sstable/testdata");
    let found = find_sstables(&directory);
    assert!(!found.is_empty(), "no SSTables in {}", directory.display());
    found
}

/// Those below `COMPACTOR_GOLDEN_DIR`, if it names a directory.
pub fn golden() -> Vec<PathBuf> {
    match std::env::var_os("COMPACTOR_GOLDEN_DIR").filter(|dir| !dir.is_empty()) {
        Some(directory) => find_sstables(Path::new(&directory)),
        None => Vec::new(),
    }
}

/// Path of an SSTable in the repository, such as `oa-wide_uncompressed/inputs/1`.
pub fn sstable(place: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../compactor-sstable/testdata")
        .join(place);
    let mut found = find_sstables(&directory);
    assert_eq!(found.len(), 1, "{}", directory.display());
    found.remove(0)
}
