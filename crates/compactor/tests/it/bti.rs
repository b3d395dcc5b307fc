//! SSTables of the BTI format through merge, verify, dump and metadata, and every kind of damage.

use std::path::{Path, PathBuf};

use crate::support::damage::Copy;
use crate::support::sstable;
use compactor::dump::{DumpOptions, dump, dump_keys};
use compactor::merge::{open_merge, run_merge};
use compactor::verify::{VerifyOptions, verify};
use compactor::{ErrorKind, InputCheck, MergeRequest, NoObserver, OutputCompression, Scope};
use compactor_io::{BackendKind, Io, IoOptions, ReadMode};
use compactor_sstable::sstable_id::SstableId;
use compactor_sstable::{Component, Format, Version};
use compactor_testkit::campaign;

/// SSTables of Cassandra with rows, statics, range tombstones, deletions of partitions.
const SOURCES: [&str; 5] = [
    "nb-range_nested/inputs/1",
    "nb-statics/inputs/1",
    "oa-wide_uncompressed/inputs/2",
    "pa-range_nested/compacted",
    "pa-complex_ties/inputs/1",
];

fn options() -> IoOptions {
    IoOptions {
        backend: BackendKind::Threads,
        ..IoOptions::default()
    }
}

fn request(inputs: &[PathBuf], output: &Path) -> MergeRequest {
    let mut request = MergeRequest::new(inputs.to_vec(), output);
    request.scope = Scope::Complete;
    request.read_mode = ReadMode::Buffered;
    request.threads = 1;
    // Many blocks even in small partitions.
    request.column_index_size = Some(64);
    request
}

/// Merges, and returns the path of the output's `Data.db`.
fn run(request: MergeRequest) -> compactor::Result<PathBuf> {
    let job = open_merge(options(), request)?;
    let report = run_merge(job, InputCheck::AllComponents, &mut NoObserver)?;
    Ok(report.outputs.into_iter().next().unwrap().data_path)
}

/// `source` rewritten in `version`.
fn rewrite(source: &Path, version: Version, output: &Path) -> PathBuf {
    let mut request = request(&[source.to_owned()], output);
    request.version = Some(version);
    run(request).unwrap()
}

fn damages(data: &Path) -> Vec<String> {
    let mut options = VerifyOptions::default();
    options.read_mode = ReadMode::Buffered;
    let io = Io::new(self::options()).unwrap();
    let report = verify(&io, data, &options, &mut NoObserver).unwrap();
    report.findings.iter().map(ToString::to_string).collect()
}

/// Messages of a merge of damaged inputs: the error, or the warnings if it continues without a component.
fn merge_messages(copy: &Copy) -> String {
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("y");
    let merged = open_merge(options(), request(&[copy.data()], &output))
        .and_then(|job| run_merge(job, InputCheck::AllComponents, &mut NoObserver));
    match merged {
        Ok(report) => report.warnings.join("\n"),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
            assert!(
                !output.exists() || std::fs::read_dir(&output).unwrap().next().is_none(),
                "{error}"
            );
            error.to_string()
        }
    }
}

fn lines(data: &Path) -> String {
    let io = Io::new(options()).unwrap();
    let mut out = Vec::new();
    dump(&io, data, &DumpOptions::new(0), &NoObserver, &mut out).unwrap();
    // Positions differ with the header of partitions between versions.
    let text = String::from_utf8(out).unwrap();
    let parts = text.split("\"position\":");
    parts
        .map(|part| part.trim_start_matches(|c: char| c.is_ascii_digit()))
        .collect()
}

fn keys(data: &Path) -> String {
    let io = Io::new(options()).unwrap();
    let mut out = Vec::new();
    dump_keys(&io, data, &DumpOptions::new(0), &NoObserver, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn rows_survive_a_round_trip_between_formats() {
    let mut row_indexes = 0;
    for place in SOURCES {
        let directory = tempfile::tempdir().unwrap();
        let source = sstable(place);
        let big = rewrite(&source, Version::Oa, &directory.path().join("big"));
        let there = rewrite(&source, Version::Da, &directory.path().join("there"));
        let back = rewrite(&there, Version::Oa, &directory.path().join("back"));
        let newer = rewrite(&back, Version::Ea, &directory.path().join("newer"));
        assert_eq!(damages(&there), Vec::<String>::new(), "{place}");
        assert_eq!(damages(&newer), Vec::<String>::new(), "{place}");
        assert_eq!(lines(&there), lines(&big), "{place}");
        assert_eq!(keys(&there), keys(&big), "{place}");
        let (big, back) = (Copy::of(&big), Copy::of(&back));
        let (there, newer) = (Copy::of(&there), Copy::of(&newer));
        for component in [Component::Data, Component::Index, Component::Filter] {
            assert_eq!(
                big.read(component),
                back.read(component),
                "{place} {component}"
            );
        }
        for component in [
            Component::Partitions,
            Component::Rows,
            Component::Statistics,
        ] {
            assert_eq!(
                there.read(component),
                newer.read(component),
                "{place} {component}"
            );
        }
        for absent in [Component::Index, Component::Summary] {
            assert!(!there.path(absent).exists(), "{place} {absent}");
        }
        row_indexes += usize::from(!there.read(Component::Rows).is_empty());
    }
    assert!(row_indexes > 1, "{row_indexes} with a Rows.db");
}

#[test]
fn formats_mixed_and_chosen() {
    let directory = tempfile::tempdir().unwrap();
    let output = |name: &str| directory.path().join(name);
    let big = sstable("oa-range_nested/inputs/1");
    let other = sstable("oa-range_nested/inputs/2");
    let bti = rewrite(&other, Version::Ea, &output("bti"));
    let expected = run(request(&[big.clone(), other], &output("expected"))).unwrap();
    let cases = [
        // The newest input is of this format, and the newest release that wrote one is 6.0.
        (None, "ea"),
        (Some(Format::Big), "pa"),
        (Some(Format::Bti), "ea"),
    ];
    for (format, version) in cases {
        let mut request = request(&[big.clone(), bti.clone()], &output(&format!("{format:?}")));
        request.format = format;
        let data = run(request).unwrap();
        let name = data.file_name().unwrap().to_str().unwrap();
        assert!(name.starts_with(version), "{name}");
        assert_eq!(damages(&data), Vec::<String>::new());
        assert_eq!(lines(&data), lines(&expected));
    }
    let mut alone = request(&[big], &output("alone"));
    alone.format = Some(Format::Bti);
    let data = run(alone).unwrap();
    assert!(
        data.to_str().unwrap().contains("/da-"),
        "{}",
        data.display()
    );
}

/// Such bytes are never read, so they are a note and not damage.
#[test]
fn bytes_after_the_last_row_index_are_a_note() {
    let directory = tempfile::tempdir().unwrap();
    let place = sstable("pa-range_nested/compacted");
    let data = rewrite(&place, Version::Ea, &directory.path().join("x"));
    let copy = Copy::of(&data);
    let end = copy.read(Component::Rows).len();
    assert!(end > 0);
    copy.edit(Component::Rows, |bytes| bytes.extend([0; 10]));
    let found = damages(&copy.data());
    assert_eq!(found.len(), 1, "{found:?}");
    let merge_messages = format!("Rows.db: row_index.end at offset {end}");
    assert!(found[0].starts_with("note: "), "{found:?}");
    assert!(found[0].contains(&merge_messages), "{found:?}");
    run(request(&[copy.data()], &directory.path().join("y"))).unwrap();
}

/// By a verification, and by a merge that validates its inputs.
#[test]
fn a_flipped_bit_is_found() {
    let mut missed = Vec::new();
    let mut tried = 0;
    for place in ["pa-range_nested/compacted", "oa-wide_uncompressed/inputs/2"] {
        let directory = tempfile::tempdir().unwrap();
        let data = rewrite(&sstable(place), Version::Ea, &directory.path().join("x"));
        let copy = Copy::of(&data);
        for component in [Component::Partitions, Component::Rows, Component::Filter] {
            let intact = copy.read(component);
            // An odd step, so that every bit of a byte is flipped.
            let stride = ((8 * intact.len() / 60).max(1) * campaign::stride()) | 1;
            for bit in (0..8 * intact.len()).step_by(stride) {
                let (at, bit) = (bit / 8, (bit % 8) as u8);
                copy.flip(component, at, bit);
                tried += 1;
                let what = format!("{place} {component} byte {at}, bit {bit}");
                if damages(&copy.data()).is_empty() {
                    missed.push(format!("verify: {what}"));
                }
                // A wrong position may be reported as damage of the other file.
                let (merge_messages, files) = (merge_messages(&copy), [component, Component::Rows]);
                if !files
                    .iter()
                    .any(|file| merge_messages.contains(file.file_suffix()))
                {
                    missed.push(format!("merge: {what}: {merge_messages}"));
                }
                copy.write(component, &intact);
            }
        }
    }
    assert!(
        missed.is_empty(),
        "{} of {tried} missed\n{}",
        missed.len(),
        missed.join("\n")
    );
}

#[test]
fn missing_swapped_and_truncated_files() {
    let directory = tempfile::tempdir().unwrap();
    let make = |place: &str, name: &str| {
        let data = rewrite(&sstable(place), Version::Ea, &directory.path().join(name));
        Copy::of(&data)
    };
    let other = make("pa-range_nested/compacted", "other");
    for component in [Component::Partitions, Component::Rows] {
        let name = format!("{component:?}");
        let copy = make("oa-wide_uncompressed/inputs/2", &name);
        let intact = copy.read(component);
        // A wrong position may be reported as damage of the other file.
        let files = [component, Component::Rows].map(Component::file_suffix);
        let check = |what: &str| {
            let text = merge_messages(&copy);
            assert!(
                files.iter().any(|file| text.contains(file)),
                "{what}: {text}"
            );
            assert!(!damages(&copy.data()).is_empty(), "{what}");
        };
        copy.write(component, &other.read(component));
        check("swapped");
        for len in [0, 1, 23, intact.len() / 2, intact.len() - 1] {
            copy.write(component, &intact[..len]);
            check("cut");
        }
        copy.write(component, &[&intact[..], &[0; 40]].concat());
        if component == Component::Partitions {
            check("longer");
        }
        copy.remove(component);
        check("missing");
        copy.write(component, &intact);
        assert_eq!(damages(&copy.data()), Vec::<String>::new());
    }
}

/// A fully expired input is dropped unread; only its tries are validated.
#[test]
fn dropped_unread() {
    let directory = tempfile::tempdir().unwrap();
    let data = rewrite(
        &sstable("oa-ttl_ties/inputs/1"),
        Version::Ea,
        &directory.path().join("x"),
    );
    let copy = Copy::of(&data);
    let run = || {
        let output = tempfile::tempdir().unwrap();
        let mut request = request(&[copy.data()], &output.path().join("y"));
        request.now_s = 4_000_000_000;
        request.gc_before_s = Some(4_000_000_000);
        let job = open_merge(options(), request).unwrap();
        assert_eq!(job.fully_expired().len(), 1);
        run_merge(job, InputCheck::AllComponents, &mut NoObserver)
    };
    assert!(run().unwrap().outputs.is_empty());
    // The footer's last key.
    let at = copy.read(Component::Partitions).len() - 25;
    copy.flip(Component::Partitions, at, 0);
    assert_eq!(run().unwrap_err().kind(), ErrorKind::Corrupt);
}

/// The newest input determines the format of the output, even if it is dropped unread.
#[test]
fn an_input_dropped_unread_determines_the_format() {
    let directory = tempfile::tempdir().unwrap();
    let source = sstable("pa-range_nested/inputs/1");
    let mut newest = request(std::slice::from_ref(&source), &directory.path().join("x"));
    newest.version = Some(Version::Ea);
    newest.ids = Some(compactor_engine::publish::OutputIds::starting_at(
        SstableId::Sequence(9),
    ));
    newest.bloom_filter_fp_chance = Some(0.25);
    newest.compression = OutputCompression::None;
    let newest = Copy::of(&run(newest).unwrap());
    newest.edit_statistics(|s| {
        s.stats.min_timestamp -= 1;
        s.stats.max_timestamp = s.stats.min_timestamp;
        s.stats.max_local_deletion_time = s.stats.min_local_deletion_time;
    });
    let mut merge = request(&[source, newest.data()], &directory.path().join("y"));
    let expected = open_merge(options(), merge.clone()).unwrap();
    merge.gc_before_s = Some(
        expected.inputs()[0]
            .statistics
            .stats
            .min_local_deletion_time
            + 1,
    );
    let job = open_merge(options(), merge).unwrap();
    assert_eq!(job.fully_expired().len(), 1);
    assert_eq!(job.inputs().len(), 1);
    let (expected, found) = (expected.settings(), job.settings());
    assert_eq!(expected.descriptor, found.descriptor);
    assert_eq!(found.descriptor.version, Version::Ea);
    assert_eq!(found.compression, None);
    assert_eq!(found.bloom_filter_fp_chance, 0.25);
    assert_eq!(found.column_index_size, expected.column_index_size);
    // Its timestamps do not affect the encoding header.
    assert_ne!(found.header, expected.header);
}

/// Files written by 6.0-alpha2 and 5.0.5 are intact, and both tries are unchanged by a merge of each alone.
#[test]
fn files_of_cassandra() {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../compactor-sstable/testdata/bti");
    let tables = [
        ("text", "ea"),
        ("deep", "ea"),
        ("reversed", "ea"),
        ("inet_uuid_time", "ea"),
        ("decimal_double", "ea"),
        ("keys", "ea"),
        ("release5", "da"),
    ];
    for (table, version) in tables {
        let directory = tempfile::tempdir().unwrap();
        for entry in std::fs::read_dir(testdata.join(table)).unwrap() {
            let from = entry.unwrap().path();
            let name = from.file_name().unwrap().to_str().unwrap();
            let to = directory.path().join(format!("{version}-1-bti-{name}"));
            std::fs::copy(&from, to).unwrap();
        }
        let data = directory.path().join(format!("{version}-1-bti-Data.db"));
        // Not all components are kept in the repository.
        let found: Vec<String> = damages(&data)
            .into_iter()
            .filter(|finding| finding.starts_with("damage"))
            .collect();
        assert_eq!(found, Vec::<String>::new(), "{table}");
        let mut request = request(std::slice::from_ref(&data), &directory.path().join("out"));
        // The setting of the Cassandra node that wrote them.
        request.column_index_size = Some(1024);
        let merged = run(request).unwrap();
        let name = merged.file_name().unwrap().to_str().unwrap();
        assert!(name.starts_with(version), "{name}");
        let (before, after) = (Copy::of(&data), Copy::of(&merged));
        for component in [Component::Partitions, Component::Rows] {
            let is_same = before.read(component) == after.read(component);
            // CQLSSTableWriter, which wrote this one, counts times from another base than a
            // compaction: its rows are longer.
            assert_eq!(is_same, table != "release5", "{table} {component}");
        }
        assert_eq!(lines(&data), lines(&merged), "{table}");
    }
}
