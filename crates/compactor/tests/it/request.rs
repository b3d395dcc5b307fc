//! The example of README.md, on tables whose deletions are long past Cassandra's default grace.

use std::fs;
use std::path::Path;

use compactor::generate::{Amount, GenerateOptions, Shape, generate};
use compactor::{ErrorKind, NoObserver, Resources, Table};
use compactor_io::IoOptions;

fn table(directory: &Path, gc_grace_seconds: u32) -> std::path::PathBuf {
    let mut options = GenerateOptions::new(Shape::Tombstones, directory);
    options.amount = Amount::Rows(2000);
    options.gc_grace_seconds = gc_grace_seconds;
    let report = generate(IoOptions::default(), options, &mut NoObserver).unwrap();
    report.table_directory
}

fn purged(snapshot: &Path, output: &Path) -> u64 {
    let table = Table::open(snapshot).unwrap();
    table.merge().complete().into(output).unwrap().purged()
}

#[test]
fn any_number_of_threads_is_accepted() {
    let temp = tempfile::tempdir().unwrap();
    let table = Table::open(table(&temp.path().join("in"), 864_000)).unwrap();
    for threads in [0, usize::MAX] {
        let mut resources = Resources::default();
        resources.threads = threads;
        let merge = table.merge().resources(resources);
        let output = temp.path().join(threads.to_string());
        assert_eq!(merge.into(output).unwrap().purged(), 0);
    }
}

#[test]
fn the_schema_decides_how_long_tombstones_live() {
    let temp = tempfile::tempdir().unwrap();
    let place = |name: &str| temp.path().join(name);
    let short = table(&place("short"), 864_000);
    assert!(purged(&short, &place("short-merged")) > 0);
    let long = table(&place("long"), 999_999_999);
    assert_eq!(purged(&long, &place("long-merged")), 0);
    // Without a schema gc_grace_seconds is unknown.
    fs::remove_file(short.join("schema.cql")).unwrap();
    let table = Table::open(&short).unwrap();
    let error = table.merge().complete().into(place("unknown-merged"));
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Refused);
    let kept = table.merge().into(place("kept-merged")).unwrap();
    assert_eq!(kept.purged(), 0);
}
