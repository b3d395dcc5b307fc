use super::*;

/// An invented comparison: two variants, a warm-up and three repeats, one of which is invalid.
const EXAMPLE: &str = include_str!("../../../tests/data/chunk_length.json");

fn text(report: &Report) -> String {
    Report::document(std::slice::from_ref(report)).to_text()
}

fn example() -> ChunkLengthOutcome {
    serde_json::from_str(EXAMPLE).unwrap()
}

#[test]
fn a_document_is_read_back_as_it_was_written() {
    let outcome = example();
    let text = serde_json::to_string(&outcome).unwrap();
    let back: ChunkLengthOutcome = serde_json::from_str(&text).unwrap();
    assert_eq!(back, outcome);
}

#[test]
fn figures_are_of_the_valid_runs() {
    let outcome = example();
    let comparison = compare_with(&outcome, BASELINE, baseline(&outcome));
    let names: Vec<&str> = comparison.arms.iter().map(|arm| arm.arm.as_str()).collect();
    assert_eq!(names, ["lz4 4 KiB", "lz4 64 KiB"]);
    assert_eq!(comparison.baseline(BASELINE), Some("lz4 64 KiB"));
    let [short, long] = &comparison.arms[..] else {
        panic!("{comparison:?}");
    };
    assert_eq!((short.counted, short.runs), (2, 3));
    // 6000 and 6200 reads/s; the invalid run has 1.
    let most = short.spread(READS_PER_S).unwrap();
    assert_eq!(
        (most.least, most.median, most.most),
        (6000.0, 6100.0, 6200.0)
    );
    // 8 KiB from disk for each of 6000, and of 6200.
    let disk = short.median(DISK_PER_READ).unwrap();
    assert!((disk - 8192.0).abs() < 1e-6, "{disk:?}");
    let ratio = short.ratio(READS_PER_S, BASELINE).unwrap();
    // 6000/4000 and 6200/4000.
    assert!(
        (ratio.ratio - 1.525).abs() < 1e-9 && ratio.paired,
        "{ratio:?}"
    );
    assert!(long.ratio(READS_PER_S, BASELINE).is_none());
    assert_eq!(comparison.left_out.len(), 1);
    assert!(comparison.arms.iter().all(|arm| arm.counted > 0));
    let mut caveats = comparison.caveats.iter();
    assert!(caveats.any(|caveat| caveat.kind == "few_repeats"));
}

#[test]
fn published_figures_are_compared_with_those_measured() {
    let outcome = example();
    let published = published::compare(&outcome);
    let verdicts: Vec<(Figure, Verdict)> =
        published.iter().map(|p| (p.figure, p.verdict)).collect();
    assert_eq!(
        verdicts,
        [
            (READS_PER_S, Verdict::Agrees),
            (PEAK_P99, Verdict::Agrees),
            (P99, Verdict::Larger),
            (READS_PER_S.under(COMPACTING), Verdict::NotShown),
            (PEAK_P99.under(COMPACTING), Verdict::Smaller),
            (P99.under(COMPACTING), Verdict::Contradicts),
        ]
    );
    let mut without = outcome.clone();
    without.variants.pop();
    assert!(published::compare(&without).is_empty());
}

#[test]
fn a_larger_difference_is_explained() {
    let mut outcome = example();
    for run in &mut outcome.runs {
        if run.variant.chunk_length_bytes == Some(4096) {
            run.alone.peak.latency.achieved_per_s = 40_000.0;
        }
    }
    assert_eq!(published::compare(&outcome)[0].verdict, Verdict::Larger);
    let report = report("", &outcome);
    // 250 us against 25 us, and 62,000 / 44,000.
    assert!(
        text(&report).contains("took 525 us more"),
        "{}",
        text(&report)
    );
}

/// A rate that was not sustained causes a queue, which the latencies include.
#[test]
fn latencies_of_an_unsustained_rate_are_omitted() {
    let mut outcome = example();
    for run in &mut outcome.runs {
        if let Some(at_rate) = &mut run.alone.at_rate {
            at_rate.latency.achieved_per_s = 0.5 * at_rate.latency.intended_per_s;
        }
    }
    let report = report("", &outcome);
    let short = &report.points[0].comparison.arms[0];
    assert!(short.spread(P99).is_none());
    assert!(short.spread(READS_PER_S).is_some());
}

#[test]
fn all_forms_show_the_same_figures() {
    let outcome = example();
    let report = report("a<b>\u{1b}", &outcome);
    let document = Report::document(std::slice::from_ref(&report));
    let text = document.to_text();
    assert!(!text.contains('\u{1b}'), "{text}");
    let page = document.to_html();
    let options = roxmltree::ParsingOptions {
        allow_dtd: true,
        ..roxmltree::ParsingOptions::default()
    };
    let parsed = roxmltree::Document::parse_with_options(&page, options).unwrap();
    let count = |name| {
        parsed
            .descendants()
            .filter(|n| n.tag_name().name() == name)
            .count()
    };
    // Reads alone and during a compaction, what is stored, ratios, published, left out; four pictures.
    assert_eq!((count("table"), count("svg"), count("script")), (6, 4, 0));
    assert!(!page.contains("NaN") && !page.contains("http://localhost"));
    for form in [text, document.to_markdown(), page] {
        for words in [
            "6,100",
            "62,000 / 44,000",
            "agrees in direction and rough size",
            "8 KiB from disk",
            "vda is a virtual disk",
            "no difference shown",
        ] {
            assert!(form.contains(words), "{words}: {form}");
        }
    }
}

#[test]
fn missing_measurements_are_shown_as_missing() {
    let mut outcome = example();
    outcome.runs.clear();
    outcome.rate_per_s = None;
    let report = report("", &outcome);
    assert!(!report.is_sound);
    let published = published::compare(&outcome);
    assert!(published.iter().all(|p| p.verdict == Verdict::NotMeasured));
    assert!(text(&report).contains("not measured"));
    Report::document(&[report]).to_html();
}
