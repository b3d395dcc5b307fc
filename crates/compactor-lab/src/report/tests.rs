use super::fixture::{arms, edges, outcome};
use super::*;
use crate::outcome::Warning;

const EXAMPLE: &str = include_str!("../../tests/data/outcome.json");

#[test]
fn figures_are_of_the_runs_that_count() {
    let outcome: Outcome = serde_json::from_str(EXAMPLE).unwrap();
    let report = Report::new("example", &outcome);
    let point = &report.points[0];
    let arm = |text: &str| {
        let arm: Arm = text.parse().unwrap();
        point.arms.iter().find(|a| a.arm == arm).unwrap()
    };
    let direct = arm("direct/direct");
    assert_eq!((direct.counted, direct.runs), (2, 3));
    // Repeats 1 and 3; repeat 2 is invalid, 0 a warm-up.
    let p99 = direct.figure(Figure::P99Ns).unwrap();
    assert_eq!((p99.least, p99.most), (425_461.0, 445_741.0));
    assert_eq!(p99.median, 435_601.0);
    let ratio = ratio_of(&direct.to_buffered, Figure::P99Ns).unwrap();
    // 425461 / 1871561 and 445741 / 1842568.
    assert!(
        (ratio.ratio - (0.227_330 + 0.241_913) / 2.0).abs() < 1e-5,
        "{ratio:?}"
    );
    assert!(ratio.paired && ratio.repeats == 2 && ratio.differs());
    assert!(arm("buffered/buffered").to_buffered.is_empty());
    assert!(arm("idle").to_idle.is_empty());
    assert_eq!(point.left_out.len(), 1);
    assert_eq!(point.left_out[0].reasons[0].kind, "pages_left");
}

fn kinds(outcome: &Outcome) -> Vec<String> {
    let report = Report::new("", outcome);
    let doubts = report.points.iter().flat_map(|point| &point.doubts);
    doubts.map(|doubt| doubt.kind.clone()).collect()
}

#[test]
fn numbers_say_why_not_to_believe_them() {
    let three = arms(&["idle", "buffered/buffered", "direct/direct"]);
    // Direct is 10% slower than buffered on the made-up machine.
    let mut sound = outcome(&three, 5);
    for run in &mut sound.points[0].runs {
        if let Some(compaction) = &mut run.compaction {
            compaction.uncompressed_bytes_per_s = 1e8;
        }
    }
    assert_eq!(kinds(&sound), Vec::<String>::new());

    assert_eq!(kinds(&outcome(&three, 3)), ["few_repeats"]);

    let mut slow = sound.clone();
    let run = slow.points[0]
        .runs
        .iter_mut()
        .find(|r| r.arm == three[2] && r.repeat == 2);
    run.unwrap().during.p99_ns *= 30;
    assert_eq!(kinds(&slow), ["outlier"]);

    let mut uneven = sound.clone();
    for run in uneven.points[0]
        .runs
        .iter_mut()
        .filter(|run| run.arm == three[2])
    {
        run.compaction.as_mut().unwrap().uncompressed_bytes_per_s = 5e7;
    }
    assert_eq!(kinds(&uneven), ["unequal_rates"]);

    let mut roomy = sound.clone();
    for run in &mut roomy.points[0].runs {
        run.hot_set.evicted = Some(0);
    }
    assert_eq!(kinds(&roomy), ["nothing_evicted"]);

    let mut evicted = sound.clone();
    for run in &mut evicted.points[0].runs {
        run.hot_set.evicted = Some(run.hot_set.pages / 50);
    }
    assert_eq!(kinds(&evicted), ["evicted_by_others"]);

    // A repeat of one arm only, and one of the others only.
    let mut apart = outcome(&three, 2);
    for run in &mut apart.points[0].runs {
        let discard = if run.arm == three[2] { 1 } else { 2 };
        if run.repeat == discard {
            run.invalid.push(Invalid {
                kind: "failed".to_owned(),
                text: "gone".to_owned(),
            });
        }
    }
    assert!(kinds(&apart).contains(&"unpaired".to_owned()));

    let mut told = sound;
    for run in &mut told.points[0].runs {
        run.warnings
            .push(Warning::new("load", "something else was running"));
    }
    let report = Report::new("", &told);
    let [doubt] = &report.points[0].doubts[..] else {
        panic!("once, and not for each run");
    };
    assert!(
        doubt.text.contains("and 12 more: something else"),
        "{}",
        doubt.text
    );
}

#[test]
fn all_forms_of_any_outcome() {
    for (name, outcome) in edges() {
        let reports = [Report::new(name, &outcome)];
        let text = text::render(&reports);
        let markdown = markdown::render(&reports);
        for text in [&text, &markdown] {
            assert!(
                !text.contains("NaN") && !text.contains("inf "),
                "{name}: {text}"
            );
        }
        assert!(!text.contains(['\u{1b}', '\u{1}']), "{name}");
        let markup = markdown.replace("\\<", "").contains('<');
        assert!(!markup, "{name}: {markdown}");
        serde_json::to_string(&reports[0]).unwrap();
        for point in &reports[0].points {
            for table in tables::of_point(point) {
                for row in &table.rows {
                    assert_eq!(row.len(), table.columns.len(), "{name}: {row:?}");
                }
            }
        }
    }
}

#[test]
fn text_shows_figures_with_their_doubts() {
    let outcome: Outcome = serde_json::from_str(EXAMPLE).unwrap();
    let text = text::render(&[Report::new("a.json", &outcome)]);
    let line = |start: &str| {
        let mut lines = text
            .lines()
            .filter(|line| line.trim_start().starts_with(start));
        lines
            .next()
            .unwrap_or_else(|| panic!("{start}: {text}"))
            .to_owned()
    };
    let cells = line("direct/direct");
    let cells: Vec<&str> = cells.split_whitespace().collect();
    assert_eq!(
        cells[..5],
        ["direct/direct", "2", "of", "3", "0.0895"],
        "{text}"
    );
    assert!(line("direct/direct repeat 2").contains("1,204 pages of the output"));
    assert!(line("! vda is a virtual disk").contains("the host may cache"));
    assert!(
        text.contains("Hot set 64 MiB, under a limit of 256 MiB"),
        "{text}"
    );
    // With another machine's: one table of both, then each alone.
    let both = [
        Report::new("a.json", &outcome),
        Report::new("b.json", &outcome),
    ];
    let both = text::render(&both);
    assert!(both.starts_with("Side by side"), "{both}");
    assert_eq!(both.matches("Hot set 64 MiB, under").count(), 2);
}
