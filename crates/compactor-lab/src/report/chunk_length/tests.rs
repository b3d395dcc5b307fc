use super::*;

/// A comparison that was made up: two variants, a warm-up and three repeats, one of which does not
/// count.
const EXAMPLE: &str = include_str!("../../../tests/data/chunk_length.json");

fn text(report: &ChunkLengthReport<'_>) -> String {
    ChunkLengthReport::document(std::slice::from_ref(report)).to_text()
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
fn figures_are_of_the_runs_that_count() {
    let outcome = example();
    let report = ChunkLengthReport::new("example", &outcome);
    let names: Vec<String> = report
        .variants
        .iter()
        .map(|v| v.record.variant.to_string())
        .collect();
    assert_eq!(names, ["lz4 4 KiB", "lz4 64 KiB"]);
    assert_eq!(report.baseline.unwrap().to_string(), "lz4 64 KiB");
    let short = &report.variants[0];
    assert_eq!((short.counted, short.runs), (2, 3));
    // 6000 and 6200 reads/s; the run that does not count has 1.
    let most = short.alone.figure(ReadFigure::ReadsPerS).unwrap();
    assert_eq!(
        (most.least, most.median, most.most),
        (6000.0, 6100.0, 6200.0)
    );
    // 8 KiB from disk for each of 6000, and of 6200.
    let disk = short.alone.figure(ReadFigure::DiskBytesPerRead).unwrap();
    assert!((disk.median - 8192.0).abs() < 1e-6, "{disk:?}");
    let ratio = short.alone.ratio(ReadFigure::ReadsPerS).unwrap();
    // 6000/4000 and 6200/4000.
    assert!(
        (ratio.ratio - 1.525).abs() < 1e-9 && ratio.paired,
        "{ratio:?}"
    );
    assert!(report.variants[1].alone.to_baseline.is_empty());
    assert_eq!(report.left_out.len(), 1);
    assert!(report.is_complete());
    assert!(
        report
            .caveats
            .iter()
            .any(|caveat| caveat.kind == "few_repeats")
    );
}

#[test]
fn published_figures_stand_beside_those_measured() {
    let outcome = example();
    let report = ChunkLengthReport::new("example", &outcome);
    let verdicts: Vec<(ReadFigure, Condition, Verdict)> = report
        .published
        .iter()
        .map(|c| (c.figure, c.condition, c.verdict))
        .collect();
    assert_eq!(
        verdicts,
        [
            (ReadFigure::ReadsPerS, Condition::Alone, Verdict::Agrees),
            (ReadFigure::PeakP99Ns, Condition::Alone, Verdict::Agrees),
            (ReadFigure::P99Ns, Condition::Alone, Verdict::Larger),
            (
                ReadFigure::ReadsPerS,
                Condition::Compacting,
                Verdict::NotShown
            ),
            (
                ReadFigure::PeakP99Ns,
                Condition::Compacting,
                Verdict::Smaller
            ),
            (
                ReadFigure::P99Ns,
                Condition::Compacting,
                Verdict::Contradicts
            ),
        ]
    );
    let mut without = outcome.clone();
    without.variants.pop();
    assert!(ChunkLengthReport::new("", &without).published.is_empty());
}

#[test]
fn a_difference_that_is_larger_is_explained() {
    let mut outcome = example();
    for run in &mut outcome.runs {
        if run.variant.chunk_length_bytes == Some(4096) {
            run.alone.peak.latency.achieved_per_s = 40_000.0;
        }
    }
    let report = ChunkLengthReport::new("", &outcome);
    assert_eq!(report.published[0].verdict, Verdict::Larger);
    // 250 us against 25 us, and 62,000 / 44,000.
    assert!(
        text(&report).contains("took 525 us more"),
        "{}",
        text(&report)
    );
}

/// A rate that was not held makes a queue, and its latencies are of that.
#[test]
fn latencies_of_a_rate_that_was_not_held_are_left_out() {
    let mut outcome = example();
    for run in &mut outcome.runs {
        if let Some(at_rate) = &mut run.alone.at_rate {
            at_rate.latency.achieved_per_s = 0.5 * at_rate.latency.intended_per_s;
        }
    }
    let report = ChunkLengthReport::new("", &outcome);
    let alone = &report.variants[0].alone;
    assert!(alone.figure(ReadFigure::P99Ns).is_none());
    assert!(alone.figure(ReadFigure::ReadsPerS).is_some());
}

#[test]
fn all_forms_show_the_same_figures() {
    let outcome = example();
    let report = ChunkLengthReport::new("a<b>\u{1b}", &outcome);
    let document = ChunkLengthReport::document(std::slice::from_ref(&report));
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
fn nothing_measured_is_shown_as_nothing() {
    let mut outcome = example();
    outcome.runs.clear();
    outcome.rate_per_s = None;
    let report = ChunkLengthReport::new("", &outcome);
    assert!(!report.is_complete());
    assert!(
        report
            .published
            .iter()
            .all(|c| c.verdict == Verdict::NotMeasured)
    );
    assert!(text(&report).contains("not measured"));
    ChunkLengthReport::document(&[report]).to_html();
}
