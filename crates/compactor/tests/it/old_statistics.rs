//! Statistics of SSTables before 4.0, which no checksum covers: a merge and a verification refuse those that the data
//! contradicts, except for what writers of that time left out.

use std::path::{Path, PathBuf};

use compactor::merge::run_merge;
use compactor::verify::{VerifyOptions, VerifyReport, verify};
use compactor::writer::RowTimes;
use compactor::{
    Compression, ErrorKind, InputCheck, MergeJob, MergeRequest, NoObserver, OutputForm, Scope,
    SstableWriter,
};
use compactor_io::{Io, IoOptions};
use compactor_sstable::Version;
use compactor_sstable::statistics::Statistics;
use tempfile::TempDir;

use crate::support::damage::copy_as_old;
use crate::support::find_sstables;

const NOW_S: i64 = 2_000_000_000;

type Edit = fn(&mut Statistics);

/// Live rows, some of which have no cells.
fn written(directory: &Path) -> PathBuf {
    let mut form = OutputForm::default();
    form.version = Some(Version::Nb);
    form.compression = Some(Compression::None);
    let schema = "CREATE TABLE ks.t (k int, c int, a text, PRIMARY KEY (k, c));";
    let options = SstableWriter::new(schema).unwrap().flat(true).form(form);
    let mut writer = options.open(directory).unwrap();
    for number in 0..40 {
        let mut row = vec![("k", (number / 5).into()), ("c", number.into())];
        if number % 2 == 0 {
            row.push(("a", "x".into()));
        }
        writer
            .add_row_with(row, RowTimes::at(1_000 + i64::from(number)))
            .unwrap();
    }
    writer.finish().unwrap();
    find_sstables(directory).remove(0)
}

/// An old copy, and what both commands say of it.
struct Judged {
    verified: VerifyReport,
    /// Rows of the output.
    merged: Result<u64, compactor::Error>,
}

fn judge(version: Version, edit: Edit) -> Judged {
    let temp = TempDir::new().unwrap();
    let at = |name: &str| temp.path().join(name);
    let data = copy_as_old(&written(&at("new")), &at("old"), version, edit);
    let io = Io::new(IoOptions::default()).unwrap();
    let verified = verify(&io, &data, &VerifyOptions::default(), &mut NoObserver).unwrap();
    let mut request = MergeRequest::new(vec![data], at("merged"));
    request.scope = Scope::Complete;
    request.gc_before_s = Some(NOW_S);
    request.now_s = NOW_S;
    let merged = MergeJob::open(io, request)
        .and_then(|job| run_merge(job, InputCheck::AllComponents, &mut NoObserver))
        .map(|report| report.rows_written);
    Judged { verified, merged }
}

#[test]
fn that_the_data_contradicts_are_refused() {
    let edits: [(&str, Edit); 6] = [
        // Every timestamp is one second earlier or later.
        ("stats.min_timestamp", |s| {
            s.header.encoding_stats.min_timestamp -= 1_000_000;
        }),
        ("stats.max_timestamp", |s| {
            s.header.encoding_stats.min_timestamp += 1_000_000;
        }),
        ("stats.max_timestamp", |s| s.stats.max_timestamp -= 1),
        ("stats.total_rows", |s| s.stats.total_rows -= 1),
        ("stats.compression_ratio", |s| {
            s.stats.compression_ratio = 0.5
        }),
        ("stats.partition_sizes", |s| {
            let mut sizes = s.stats.partition_sizes.empty_like();
            (0..s.stats.partition_sizes.count()).for_each(|_| sizes.add(7));
            s.stats.partition_sizes = sizes;
        }),
    ];
    for version in [Version::Ma, Version::Mc, Version::Me] {
        for (field, edit) in edits {
            let Judged { verified, merged } = judge(version, edit);
            let error = merged.expect_err(field);
            assert_eq!(
                error.kind(),
                ErrorKind::Corrupt,
                "{version} {field}: {error}"
            );
            assert!(verified.stops_merge, "{version} {field}: {verified:#?}");
            let mut findings = verified.findings.iter();
            assert!(findings.any(|f| f.structure == field), "{verified:#?}");
        }
    }
}

#[test]
fn that_writers_left_out_are_accepted() {
    let edits: [Edit; 3] = [
        |_| {},
        // ScyllaDB.
        |s| s.stats.compression_ratio = f64::NAN,
        // A scrub that gave up a partition.
        |s| s.stats.total_rows += 3,
    ];
    for version in [Version::Ma, Version::Mc, Version::Me] {
        for edit in edits {
            let Judged { verified, merged } = judge(version, edit);
            assert!(!verified.is_damaged(), "{version}: {verified:#?}");
            assert_eq!(merged.unwrap(), 40, "{version}");
        }
    }
}

/// 3.0.0 leaves live rows without cells out of the greatest local deletion time, so that such an SSTable seems to have
/// expired.
#[test]
fn an_sstable_of_3_0_0_is_not_dropped_unread() {
    let judged = judge(Version::Ma, |s| {
        s.stats.min_local_deletion_time = 1;
        s.stats.max_local_deletion_time = 2;
    });
    assert_eq!(judged.merged.unwrap(), 40);
}
