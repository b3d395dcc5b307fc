//! Small but complete comparisons of fan-outs.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use compactor::ErrorKind;
use compactor_lab::fan_out::{ArmRun, FanOutOptions, FanOutOutcome, Figures, compare};
use compactor_lab::outcome::End;
use compactor_lab::report::{Report, fan_out};
use tempfile::TempDir;

use crate::is_empty;

/// Relative error that a simulation of so little data may have.
const MARGIN: f64 = 0.05;

fn small(directory: &Path) -> FanOutOptions {
    FanOutOptions {
        dataset_bytes: 10 << 20,
        flush_bytes: 640 << 10,
        ..FanOutOptions::quick(directory)
    }
}

fn is_near(measured: f64, expected: f64) -> bool {
    (measured / expected - 1.0).abs() <= MARGIN
}

#[test]
fn the_simulator_predicts_what_is_written() {
    // On tmpfs, if there is one: nothing depends on the disk.
    let directory = tempfile::tempdir_in("/dev/shm")
        .or_else(|_| TempDir::new())
        .unwrap();
    let options = small(directory.path());
    let outcome = compare(&options, &AtomicBool::new(false)).unwrap();
    assert!(is_empty(directory.path()));
    assert_eq!(
        (&outcome.header.end, outcome.runs.len()),
        (&End::Complete, 4)
    );
    let flushes = &outcome.flushes;
    let flushed = flushes.data_bytes_per_flush();
    assert!(
        (flushed / options.flush_bytes as f64 - 1.0).abs() < 0.04,
        "{flushed}"
    );
    assert_eq!(flushes.flushes, options.flushes());
    for run in &outcome.runs {
        is_sound(run, &outcome);
    }
    let [m10, m4, _, count] = &outcome.runs[..] else {
        panic!("{:?}", outcome.runs);
    };
    assert!(m4.measured.levels > m10.measured.levels);
    assert!(count.formula.is_none() && m10.formula.is_some());
    is_shown(&outcome);
}

fn is_sound(run: &ArmRun, outcome: &FanOutOutcome) {
    let (measured, simulated) = (&run.measured, &run.simulated);
    let text = format!("{}: {measured:?}\n{simulated:?}", run.name);
    assert_eq!(run.damaged_sstables, 0, "{text}");
    assert_eq!(run.verified_sstables, measured.sstables, "{text}");
    assert_eq!(measured.flushed_bytes, outcome.flushes.data_bytes as f64);
    assert!(
        is_near(measured.written_bytes(), simulated.written_bytes()),
        "{text}"
    );
    let by_level: f64 = measured
        .by_level
        .iter()
        .map(|level| level.written_bytes)
        .sum();
    assert_eq!(by_level, measured.written_bytes(), "{text}");
    assert!(
        run.all_components_bytes as f64 > measured.compacted_bytes,
        "{text}"
    );
    // The rows of 40 of the 88 hours have expired, and the merges have dropped most of them.
    assert!(run.purged > 0, "{text}");
    let live = outcome.options.dataset_bytes as f64;
    assert!(
        measured.dataset_bytes > live && measured.dataset_bytes < 1.6 * live,
        "{text}"
    );
    let reads = |figures: &Figures| figures.sstables_per_point_read;
    assert!(
        reads(measured) >= 1.0 && measured.sstables_per_range_read >= reads(measured),
        "{text}"
    );
    assert!(
        (reads(measured) / reads(simulated) - 1.0).abs() < 0.15,
        "{text}"
    );
}

fn is_shown(outcome: &FanOutOutcome) {
    let report = fan_out::report("small", outcome);
    assert!(report.is_sound);
    let document = Report::document(&[report]);
    let text = document.to_text();
    let saved = serde_json::to_string(outcome).unwrap();
    let again = fan_out::report("small", &serde_json::from_str(&saved).unwrap());
    assert_eq!(Report::document(&[again]).to_text(), text);
    for word in [
        "m=10, 1 MiB",
        "m=4, 6 MiB",
        "level count",
        "28.0",
        "-36.3%",
        "has no figures",
    ] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let page = document.to_html();
    roxmltree::Document::parse(page.trim_start_matches("<!DOCTYPE html>")).unwrap();
    assert!(page.contains("<svg") && page.contains("simulated"));
}

#[test]
fn invalid_options_are_refused_by_name() {
    let directory = TempDir::new().unwrap();
    let refused = |change: fn(&mut FanOutOptions)| {
        let mut options = small(directory.path());
        change(&mut options);
        let error = compare(&options, &AtomicBool::new(false)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        error.to_string()
    };
    assert!(refused(|o| o.dataset_bytes = 1 << 20).contains("--dataset"));
    assert!(refused(|o| o.flush_bytes = 1000).contains("--flush-size"));
    assert!(refused(|o| o.duration_s = 3600).contains("--duration"));
    assert!(refused(|o| o.ttl_s = 60).contains("--ttl"));
    assert!(refused(|o| o.sstable_mib = 0).contains("--sstable-size"));
    assert!(is_empty(directory.path()));
}

#[test]
fn a_cancelled_comparison_leaves_nothing() {
    let directory = TempDir::new().unwrap();
    let stopped = AtomicBool::new(true);
    let error = compare(&small(directory.path()), &stopped).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert!(is_empty(directory.path()));
}
