use super::*;
use crate::outcome::{GeneratorRecord, HotSetRecord, Outcome};

fn compaction(arm: &str) -> CompactionRecord {
    let (read, write) = arm.split_once('/').unwrap();
    CompactionRecord {
        rounds: 1,
        elapsed_s: 20.0,
        input_bytes: 1 << 30,
        input_uncompressed_bytes: 2 << 30,
        data_file_bytes: 1 << 30,
        output_bytes: 1 << 30,
        stored_bytes_per_s: 5e7,
        uncompressed_bytes_per_s: 1e8,
        throughput_limit_bytes_per_s: None,
        read_mode: read.to_owned(),
        write_mode: Some(write.to_owned()),
        backend: "uring".to_owned(),
        fallbacks: Vec::new(),
        input_pages: 100_000,
        input_pages_before: Some(20_000),
        // The foreground load has brought back pages of the index.
        input_pages_after: Some(24_000),
        cold_pages: 70_000,
        cold_pages_before: Some(3000),
        cold_pages_after: Some(3100),
        output_pages: 50_000,
        output_pages_after: Some(0),
    }
}

fn reads() -> Latency {
    Latency {
        operations: 1000,
        intended_per_s: 100.0,
        achieved_per_s: 99.0,
        ..Latency::default()
    }
}

/// A valid run of an arm, and its circumstances.
fn valid_run(arm: &str, compaction: &CompactionRecord) -> (Run, Circumstances<'static>) {
    let example = include_str!("../../tests/data/outcome.json");
    let mut outcome: Outcome = serde_json::from_str(example).unwrap();
    let run = Run {
        arm: arm.parse().unwrap(),
        before: reads(),
        during: reads(),
        after: reads(),
        compaction: Some(compaction.clone()),
        hot_set: HotSetRecord {
            pages: 1000,
            resident_before: Some(1000),
            ..HotSetRecord::default()
        },
        generator: GeneratorRecord::default(),
        ..outcome.points[0].runs.remove(0)
    };
    let circumstances = Circumstances {
        failure: None,
        least_compaction: Duration::from_secs(10),
        first_error: None,
        pressure: 0.5,
        kept_cgroup: Some(true),
        not_dropped: None,
    };
    (run, circumstances)
}

fn kinds(
    arm: &str,
    compaction: &CompactionRecord,
    change: impl FnOnce(&mut Run, &mut Circumstances<'_>),
) -> String {
    let (mut run, mut circumstances) = valid_run(arm, compaction);
    change(&mut run, &mut circumstances);
    let found = judge(&run, &circumstances);
    let words: Vec<&str> = found.iter().map(|reason| reason.kind.as_str()).collect();
    words.join(" ")
}

#[test]
fn a_run_that_used_its_modes_is_valid() {
    for arm in ["buffered/buffered", "direct/direct", "dontneed/dontcache"] {
        assert_eq!(kinds(arm, &compaction(arm), |_, _| ()), "", "{arm}");
    }
    let mut cached = compaction("buffered/trickle");
    cached.output_pages_after = Some(50_000);
    cached.cold_pages_after = Some(70_000);
    assert_eq!(kinds("buffered/trickle", &cached, |_, _| ()), "");
}

#[test]
fn a_fallback_is_rejected() {
    let fell_back = compaction("dontneed/direct");
    assert_eq!(kinds("direct/direct", &fell_back, |_, _| ()), "fallback");
    let mut nothing = compaction("direct/direct");
    nothing.write_mode = None;
    assert_eq!(kinds("direct/direct", &nothing, |_, _| ()), "fallback");
}

#[test]
fn unexpected_resident_pages_are_rejected() {
    let mut left = compaction("direct/direct");
    left.output_pages_after = Some(1);
    assert_eq!(kinds("direct/direct", &left, |_, _| ()), "pages_left");
    left.write_mode = Some("dontneed".to_owned());
    assert_eq!(kinds("direct/dontneed", &left, |_, _| ()), "");
    left.output_pages_after = Some(501);
    assert_eq!(kinds("direct/dontneed", &left, |_, _| ()), "pages_left");
    let mut read = compaction("direct/direct");
    read.cold_pages_after = Some(4400);
    assert_eq!(kinds("direct/direct", &read, |_, _| ()), "");
    read.cold_pages_after = Some(4401);
    assert_eq!(kinds("direct/direct", &read, |_, _| ()), "pages_left");
}

#[test]
fn unreliable_runs_are_rejected() {
    let arm = "direct/direct";
    let mut short = compaction(arm);
    short.elapsed_s = 9.9;
    assert_eq!(kinds(arm, &short, |_, _| ()), "compaction_too_short");
    let good = compaction(arm);
    let late = "generator_late";
    let is = |change: &dyn Fn(&mut Run, &mut Circumstances<'_>)| kinds(arm, &good, change);
    assert_eq!(
        is(&|r, _| r.generator.wake_up_p99_during_ns = 21_000_000),
        late
    );
    assert_eq!(is(&|r, _| r.generator.is_unfinished = true), late);
    // A lower rate during a compaction is a result; without one it makes the run invalid.
    assert_eq!(is(&|r, _| r.during.achieved_per_s = 90.0), "");
    assert_eq!(is(&|r, _| r.before.achieved_per_s = 90.0), late);
    assert_eq!(is(&|_, c| c.first_error = Some("no row")), "reads_failed");
    assert_eq!(is(&|r, _| r.generator.rows_not_found = 30), "");
    let not_found = is(&|r, _| r.generator.rows_not_found = 31);
    assert_eq!(not_found, "reads_failed");
    assert_eq!(is(&|_, c| c.kept_cgroup = Some(false)), "memory_limit_lost");
    assert_eq!(is(&|_, c| c.failure = Some("no space")), "failed");
    let cold = is(&|r, _| r.hot_set.resident_before = Some(900));
    assert_eq!(cold, "hot_set_not_warm");
    // A hot set that does not fit in memory cannot be warm.
    let no_room = is(&|r, c| {
        r.hot_set.resident_before = Some(900);
        c.pressure = 2.0;
    });
    assert_eq!(no_room, "");
}

#[test]
fn runs_have_caveats() {
    let (mut run, mut circumstances) = valid_run("direct/direct", &compaction("direct/direct"));
    assert!(caveats(&run, &circumstances).is_empty());
    run.during.intended_per_s = 1000.0;
    run.during.achieved_per_s = 700.0;
    let pages = |resident| {
        Some(Pages {
            total: 1000,
            resident,
            ..Pages::default()
        })
    };
    circumstances.not_dropped = pages(10);
    let compaction = run.compaction.as_mut().unwrap();
    compaction.throughput_limit_bytes_per_s = Some(64 << 20);
    let found = |circumstances: &Circumstances<'_>| -> Vec<String> {
        let found = caveats(&run, circumstances).into_iter();
        found.map(|caveat| caveat.text).collect()
    };
    let texts = found(&circumstances);
    assert!(texts[0].starts_with("700 of 1000 reads/s"), "{texts:?}");
    assert!(
        texts[1].starts_with("the compaction took 47.7 MiB/s"),
        "{texts:?}"
    );
    circumstances.not_dropped = pages(11);
    let texts = found(&circumstances);
    assert!(texts[1].starts_with("11 of 1000 pages"), "{texts:?}");
}
