//! SSTables that Cassandra wrote verify clean: those in the repository, and all below
//! `COMPACTOR_GOLDEN_DIR`.

use crate::support;

use std::path::PathBuf;

use crate::support::damage::Copy;
use compactor::table::find_sstables;
use compactor::verify::{VerifyOptions, verify};
use compactor::{ErrorKind, NoObserver, Observer};
use compactor_io::{BackendKind, Io, IoOptions, ReadMode, residency};
use compactor_testkit::io::skip_unsupported;

fn io(backend: BackendKind) -> Io {
    Io::new(IoOptions {
        backend,
        ..IoOptions::default()
    })
    .unwrap()
}

#[test]
fn sstables_of_cassandra_are_clean() {
    let io = io(BackendKind::Threads);
    let mut failures = Vec::new();
    for path in support::testdata().into_iter().chain(support::golden()) {
        let report = verify(&io, &path, &VerifyOptions::default(), &mut NoObserver).unwrap();
        assert!(
            report.content_complete && report.partitions > 0,
            "{report:#?}"
        );
        failures.extend(report.findings.iter().map(ToString::to_string));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Findings and counts are the same in every mode and backend, and a direct verification leaves no page of
/// any component in the page cache.
#[test]
fn every_read_mode_finds_the_same() {
    let copy = Copy::of(&support::sstable("pa-incompressible_chunks/inputs/1"));
    copy.flip(compactor_sstable::Component::Data, 9000, 2);
    let mut seen = Vec::new();
    for backend in [BackendKind::Threads, BackendKind::Auto] {
        let io = io(backend);
        // The first verification evicts pages left by copying.
        for mode in [
            ReadMode::DontNeed,
            ReadMode::Direct,
            ReadMode::Auto,
            ReadMode::Buffered,
        ] {
            let mut options = VerifyOptions::default();
            options.read_mode = mode;
            let report = match verify(&io, &copy.data(), &options, &mut NoObserver) {
                Ok(report) => report,
                Err(error) if mode == ReadMode::Direct => {
                    skip_unsupported(&error.to_string());
                    continue;
                }
                Err(error) => panic!("{mode}: {error}"),
            };
            if mode == ReadMode::Direct {
                assert_eq!(report.read_mode, "direct");
                for component in copy.components() {
                    let pages = residency(&copy.path(component)).unwrap().pages_resident;
                    assert_eq!(pages, Some(0), "{component}");
                }
            }
            let findings: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
            seen.push((
                findings,
                report.rows,
                report.partitions_skipped,
                report.chunks_damaged,
            ));
        }
    }
    assert!(!seen[0].0.is_empty());
    assert!(seen.iter().all(|one| *one == seen[0]), "{seen:#?}");
}

#[test]
fn quick_reads_no_rows() {
    let mut options = VerifyOptions::default();
    options.quick = true;
    let io = io(BackendKind::Threads);
    for path in support::testdata() {
        let report = verify(&io, &path, &options, &mut NoObserver).unwrap();
        assert!(report.findings.is_empty(), "{report:#?}");
        assert!(report.quick && !report.content_complete && report.rows == 0);
        assert!(report.chunks > 0 && report.bytes > 0 && report.uncompressed_bytes > 0);
    }
}

#[test]
fn a_report_is_plain_json() {
    let copy = Copy::of(&support::sstable("nb-range_nested/inputs/1"));
    copy.flip(compactor_sstable::Component::Index, 3, 0);
    let options = VerifyOptions::default();
    let report = verify(
        &io(BackendKind::Threads),
        &copy.data(),
        &options,
        &mut NoObserver,
    )
    .unwrap();
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["rows"], report.rows);
    let index = report
        .findings
        .iter()
        .position(|f| f.structure == "index.key")
        .unwrap();
    let finding = &json["findings"][index];
    assert_eq!(finding["component"], "Index.db");
    assert_eq!(finding["severity"], "damage");
    assert!(finding["expected"].is_string() && finding["found"].is_string());
    let text = report.findings[index].to_string();
    let path = copy.path(compactor_sstable::Component::Index);
    assert!(
        text.contains(&path.display().to_string()) && text.contains("offset"),
        "{text}"
    );
}

#[test]
fn a_file_that_is_not_an_sstable_is_an_error_not_a_finding() {
    let io = io(BackendKind::Threads);
    let kind = |path: PathBuf| {
        verify(&io, &path, &VerifyOptions::default(), &mut NoObserver)
            .unwrap_err()
            .kind()
    };
    let copy = Copy::of(&support::sstable("nb-range_nested/inputs/1"));
    assert_eq!(
        kind(copy.directory().join("nb-99-big-Data.db")),
        ErrorKind::Io
    );
    assert_eq!(
        kind(copy.directory().join("Data.db")),
        ErrorKind::Unsupported
    );
    assert_eq!(
        kind(copy.directory().join("nb-1-big-Index.db")),
        ErrorKind::InvalidInput
    );
    assert_eq!(
        kind(copy.directory().join("lb-1-big-Data.db")),
        ErrorKind::Unsupported
    );
}

#[test]
fn components_without_data_are_noticed() {
    let copy = Copy::of(&support::sstable("nb-range_nested/inputs/1"));
    assert_eq!(find_sstables(&[copy.directory()]).unwrap(), [copy.data()]);
    copy.remove(compactor_sstable::Component::Data);
    assert_eq!(find_sstables(&[copy.directory()]).unwrap(), [copy.data()]);
}

#[test]
fn an_observer_can_stop_it() {
    struct Stop;
    impl Observer for Stop {
        fn is_cancelled(&self) -> bool {
            true
        }
        fn progress(&mut self, _read_bytes: u64, _rows: u64, _partitions: u64) {}
    }
    for quick in [false, true] {
        let mut options = VerifyOptions::default();
        options.quick = quick;
        let path = support::sstable("nb-range_nested/inputs/1");
        let error = verify(&io(BackendKind::Threads), &path, &options, &mut Stop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled);
    }
}

/// A sparse file may contain an almost endless number of entries of missing partitions.
#[test]
fn an_endless_index_can_be_stopped() {
    struct StopSoon(std::cell::Cell<u32>);
    impl Observer for StopSoon {
        fn is_cancelled(&self) -> bool {
            self.0.set(self.0.get() + 1);
            self.0.get() > 1000
        }
        fn progress(&mut self, _read_bytes: u64, _rows: u64, _partitions: u64) {}
    }
    let copy = Copy::of(&support::sstable("nb-range_nested/inputs/1"));
    let index = copy.path(compactor_sstable::Component::Index);
    let index = std::fs::File::options().write(true).open(index).unwrap();
    index.set_len(2 << 30).unwrap();
    let mut observer = StopSoon(std::cell::Cell::new(0));
    let options = VerifyOptions::default();
    let verified = verify(
        &io(BackendKind::Threads),
        &copy.data(),
        &options,
        &mut observer,
    );
    assert_eq!(verified.unwrap_err().kind(), ErrorKind::Cancelled);
}
