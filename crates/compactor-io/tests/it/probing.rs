//! The results of `probe` agree with opening and creating files.

use std::fs;

use compactor_io::{BackendKind, ReadMode, Support, WriteMode, WriterOptions, probe};
use compactor_testkit::io::io_on;
use compactor_testkit::machine::disk_directory;

/// A `doctor` that reports a mode other than the one used.
#[test]
fn files_get_the_choice_of_auto() {
    let disk = disk_directory();
    let shm = tempfile::TempDir::new_in("/dev/shm").ok();
    for directory in [Some(disk), shm].into_iter().flatten() {
        let directory = directory.path();
        let found = probe(directory).unwrap();
        // No file is left.
        assert_eq!(fs::read_dir(directory).unwrap().count(), 0);
        assert_eq!(found.writable, Support::Works);
        let io = io_on(BackendKind::Auto).unwrap();
        let path = directory.join("file");
        let writer = io
            .create(&path, WriteMode::Auto, WriterOptions::default())
            .unwrap();
        assert_eq!(writer.mode(), found.write.chosen, "{found:?}");
        assert_eq!(writer.backend(), found.backend.chosen);
        writer.finish().unwrap();
        assert_eq!(
            io.open(&path, ReadMode::Auto).unwrap().mode(),
            found.read.chosen
        );
        assert_eq!(
            io.open(&path, ReadMode::Direct).is_ok(),
            found.direct.works()
        );
        assert_eq!(found.alignment.is_some(), found.direct.works());
        assert_eq!(
            io.open(&path, ReadMode::DontCache).is_ok(),
            found.dontcache.works()
        );
        assert!(found.mount.is_some());
    }
}

/// A probe of a path that is not a directory.
#[test]
fn only_directories_are_probed() {
    let directory = disk_directory();
    let path = directory.path().join("file");
    fs::write(&path, "x").unwrap();
    assert!(
        probe(&path)
            .unwrap_err()
            .to_string()
            .contains("Not a directory")
    );
    assert!(probe(&directory.path().join("none")).is_err());
}
