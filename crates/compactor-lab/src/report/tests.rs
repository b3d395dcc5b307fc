use std::path::Path;
use std::process::Command;

use super::interference::{self, BUFFERED, IDLE, P99};
use super::*;
use crate::outcome::Outcome;
use compactor_testkit::{Need, skip};

mod fixture;

use fixture::{arms, edges, outcome, sweep};

const EXAMPLE: &str = include_str!("../../tests/data/outcome.json");

#[test]
fn figures_are_of_the_valid_runs() {
    let outcome: Outcome = serde_json::from_str(EXAMPLE).unwrap();
    let report = interference::report("example", &outcome, None);
    let comparison = &report.points[0].comparison;
    let arm = |name: &str| comparison.counted(name).unwrap();
    let direct = arm("direct/direct");
    assert_eq!((direct.counted, direct.runs), (2, 3));
    // Repeats 1 and 3; repeat 2 is invalid, 0 a warm-up.
    let p99 = direct.spread(P99).unwrap();
    assert_eq!((p99.least, p99.most), (425_461.0, 445_741.0));
    assert_eq!(p99.median, 435_601.0);
    let ratio = direct.ratio(P99, BUFFERED).unwrap();
    // 425461 / 1871561 and 445741 / 1842568.
    let expected = 0.227_330_f64.midpoint(0.241_913);
    assert!((ratio.ratio - expected).abs() < 1e-5, "{ratio:?}");
    assert!(ratio.paired && ratio.repeats == 2 && ratio.differs());
    assert!(arm("buffered/buffered").ratio(P99, BUFFERED).is_none());
    assert!(arm("idle").ratio(P99, IDLE).is_none());
    assert_eq!(comparison.left_out.len(), 1);
    assert_eq!(comparison.left_out[0].reasons[0].kind, "pages_left");
}

#[test]
fn the_picture_by_itself_is_well_formed() {
    let outcome: Outcome = serde_json::from_str(EXAMPLE).unwrap();
    let picture = interference::report("", &outcome, None).picture.unwrap();
    let document = roxmltree::Document::parse(&picture).unwrap();
    let root = document.root_element();
    assert!(
        root.attribute("aria-label")
            .unwrap()
            .contains("direct/direct: p99 of a second between")
    );
    assert_eq!(
        root.first_element_child().unwrap().tag_name().name(),
        "style"
    );
    let lines = root
        .children()
        .filter(|node| node.tag_name().name() == "polyline");
    // A line and its sample in the legend for each arm.
    assert_eq!(lines.count(), 6);
}

fn kinds(outcome: &Outcome) -> Vec<String> {
    let report = interference::report("", outcome, None);
    let points = report.points.iter();
    let caveats = points.flat_map(|point| &point.comparison.caveats);
    caveats.map(|caveat| caveat.kind.clone()).collect()
}

#[test]
fn numbers_have_caveats() {
    let three = arms(&["idle", "buffered/buffered", "direct/direct"]);
    // Direct is 10% slower than buffered in the invented figures.
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
        .find(|r| r.arm == three[2] && r.attempt.repeat == 2);
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
        if run.attempt.repeat == discard {
            run.attempt.invalid.push(Warning {
                kind: "failed".to_owned(),
                text: "gone".to_owned(),
            });
        }
    }
    assert!(kinds(&apart).contains(&"unpaired".to_owned()));

    let mut warned = sound;
    for run in &mut warned.points[0].runs {
        run.attempt
            .warnings
            .push(Warning::new("load", "something else was running"));
    }
    let report = interference::report("", &warned, None);
    let [caveat] = &report.points[0].comparison.caveats[..] else {
        panic!("once, and not for each run");
    };
    assert!(
        caveat.text.contains("and 12 more: something else"),
        "{}",
        caveat.text
    );
}

#[test]
fn all_forms_of_any_outcome() {
    for (name, outcome) in edges() {
        let reports = [interference::report(name, &outcome, None)];
        let text = Report::document(&reports).to_text();
        let markdown = Report::document(&reports).to_markdown();
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
    }
}

#[test]
fn text_shows_figures_with_their_caveats() {
    let outcome: Outcome = serde_json::from_str(EXAMPLE).unwrap();
    let text = Report::document(&[interference::report("a.json", &outcome, None)]).to_text();
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
        interference::report("a.json", &outcome, None),
        interference::report("b.json", &outcome, None),
    ];
    let both = Report::document(&both).to_text();
    assert!(both.starts_with("Side by side"), "{both}");
    assert_eq!(both.matches("Hot set 64 MiB, under").count(), 2);
}

const EIGHT: [&str; 8] = [
    "idle",
    "buffered/buffered",
    "buffered/trickle",
    "dontneed/dontneed",
    "dontcache/dontcache",
    "buffered/direct",
    "direct/buffered",
    "direct/direct",
];

fn parsed<'a>(name: &str, html: &'a str) -> roxmltree::Document<'a> {
    let options = roxmltree::ParsingOptions {
        allow_dtd: true,
        ..roxmltree::ParsingOptions::default()
    };
    roxmltree::Document::parse_with_options(html, options)
        .unwrap_or_else(|e| panic!("{name}: {e}\n{html}"))
}

/// Asserts that a page is well-formed and complete, and that each picture has a description.
fn check(name: &str, html: &str) {
    let document = parsed(name, html);
    let mut ids = std::collections::HashSet::new();
    let elements = || document.descendants().filter(|node| node.is_element());
    for node in elements() {
        if let Some(id) = node.attribute("id") {
            assert!(ids.insert(id.to_owned()), "{name}: {id} twice");
        }
        assert_ne!(node.tag_name().name(), "script", "{name}");
        for attribute in node.attributes() {
            let value = attribute.value();
            assert!(!attribute.name().starts_with("on"), "{name}: {value}");
            let outside = ["http:", "https:", "//", "file:"];
            let loads = ["src", "href"].contains(&attribute.name());
            assert!(
                !(loads && outside.iter().any(|o| value.starts_with(o))),
                "{name}"
            );
            assert!(
                !value.contains("NaN") && !value.contains("inf"),
                "{name}: {value}"
            );
        }
    }
    for svg in elements().filter(|node| node.tag_name().name() == "svg") {
        assert!(
            svg.attribute("aria-label")
                .is_some_and(|label| label.len() > 20),
            "{name}"
        );
    }
    for figure in elements().filter(|node| node.tag_name().name() == "figure") {
        let last = figure.last_element_child().unwrap();
        assert_eq!(last.tag_name().name(), "figcaption", "{name}");
    }
    assert!(!html.contains("url("), "{name}");
    assert!(!html.contains("@import"), "{name}");
}

#[test]
fn pages_are_well_formed_with_any_content() {
    for (name, outcome) in edges() {
        check(name, &html(&[interference::report(name, &outcome, None)]));
    }
    let both = [
        outcome(&arms(&EIGHT), 3),
        sweep(&arms(&EIGHT), 2, &[16, 64]),
    ];
    let reports = [
        interference::report("a.json", &both[0], None),
        interference::report("b.json", &both[1], None),
    ];
    check("two", &html(&reports));
}

#[test]
fn every_result_is_shown() {
    let all = sweep(&arms(&EIGHT), 3, &[16, 64, 128]);
    let page = html(&[interference::report("all.json", &all, None)]);
    let document = parsed("all", &page);
    let svgs = document
        .descendants()
        .filter(|n| n.tag_name().name() == "svg");
    // Sweep; at each size curves, two of bars, one for each arm.
    assert_eq!(svgs.count(), 1 + 3 * (1 + 2 + 8));
    let tables = document
        .descendants()
        .filter(|n| n.tag_name().name() == "table");
    assert_eq!(tables.count(), 3 * 4);
    assert!(page.contains("only 3 runs that count"));
    assert!(page.contains("vda is a virtual disk"));
}

/// Renders the pages in a headless browser, and checks its messages.
#[test]
fn a_browser_renders_the_page_without_errors() {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let runs = |name: &&str| Command::new(name).arg("--version").output().is_ok();
    let Some(browser) = names.into_iter().find(runs) else {
        skip(Need::Chromium, "chromium is not installed");
        return;
    };
    let temp = tempfile::TempDir::new().unwrap();
    let all = sweep(&arms(&EIGHT), 3, &[16, 64, 256]);
    let page = temp.path().join("page.html");
    std::fs::write(&page, html(&[interference::report("all.json", &all, None)])).unwrap();
    for (width, scheme) in [(1280, LIGHT), (1280, DARK), (420, LIGHT)] {
        let picture = temp.path().join(format!("{width}-{scheme}.png"));
        let (messages, dom) = look(browser, &page, &picture, width, scheme);
        assert!(!messages.contains("CONSOLE"), "{messages}");
        assert!(dom.contains("</svg>"), "{messages}");
        assert!(
            std::fs::metadata(&picture).unwrap().len() > 20_000,
            "{width}"
        );
    }
}

/// `prefers-color-scheme` as Blink counts it.
const DARK: u32 = 0;
const LIGHT: u32 = 1;

fn look(browser: &str, page: &Path, picture: &Path, width: u32, scheme: u32) -> (String, String) {
    let profile = picture.with_extension("profile");
    let output = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
        ])
        .args(["--hide-scrollbars", "--enable-logging=stderr", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("--window-size={width},4000"))
        .arg(format!("--blink-settings=preferredColorScheme={scheme}"))
        .arg(format!("--screenshot={}", picture.display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stderr), text(&output.stdout))
}

fn html(reports: &[Report]) -> String {
    Report::document(reports).to_html()
}

/// Relative luminance as WCAG defines it.
fn luminance(colour: &str) -> f64 {
    let channel = |at: usize| {
        let value = u8::from_str_radix(&colour[at..at + 2], 16).unwrap();
        let value = f64::from(value) / 255.0;
        if value <= 0.040_45 {
            value / 12.92
        } else {
            ((value + 0.055) / 1.055).powf(2.4)
        }
    };
    0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
}

fn contrast(a: &str, b: &str) -> f64 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

#[test]
fn every_colour_has_contrast_on_both_backgrounds() {
    assert!((contrast("#ffffff", "#000000") - 21.0).abs() < 1e-9);
    let style = include_str!("../../templates/report.css");
    let (light, dark) = style.split_once("prefers-color-scheme:dark").unwrap();
    for theme in [light, dark] {
        let colour = |name: &str| {
            let (_, rest) = theme.split_once(&format!("--{name}:")).unwrap();
            &rest[..7]
        };
        for name in [
            "a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7", "ink", "faint",
        ] {
            for behind in ["paper", "shade"] {
                let ratio = contrast(colour(name), colour(behind));
                assert!(ratio >= 4.5, "{name} on {behind}: {ratio}");
            }
        }
    }
}
