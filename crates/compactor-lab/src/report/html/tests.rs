use std::path::Path;
use std::process::Command;

use super::super::fixture::{arms, edges, outcome, sweep};
use super::*;

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

/// Well-formed, complete, and each picture tells in words what it shows.
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
        let labels = svg.attribute("aria-labelledby").unwrap();
        for id in labels.split(' ') {
            assert!(ids.contains(id), "{name}: {id}");
        }
    }
    for figure in elements().filter(|node| node.tag_name().name() == "figure") {
        let last = figure.last_element_child().unwrap();
        assert_eq!(last.tag_name().name(), "figcaption", "{name}");
    }
    assert!(!html.contains("url("), "{name}");
    assert!(!html.contains("@import"), "{name}");
}

#[test]
fn pages_are_well_formed_whatever_is_in_them() {
    for (name, outcome) in edges() {
        check(name, &render(&[Report::new(name, &outcome)]));
    }
    let both = [
        outcome(&arms(&EIGHT), 3),
        sweep(&arms(&EIGHT), 2, &[16, 64]),
    ];
    let reports = [
        Report::new("a.json", &both[0]),
        Report::new("b.json", &both[1]),
    ];
    check("two", &render(&reports));
}

#[test]
fn everything_is_shown_that_there_is() {
    let all = sweep(&arms(&EIGHT), 3, &[16, 64, 128]);
    let html = render(&[Report::new("all.json", &all)]);
    let document = parsed("all", &html);
    let svgs = document
        .descendants()
        .filter(|n| n.tag_name().name() == "svg");
    // Sweep in two widths; at each size curves in two widths, two of bars, one for each arm.
    assert_eq!(svgs.count(), 2 + 3 * (2 + 2 + 8));
    let tables = document
        .descendants()
        .filter(|n| n.tag_name().name() == "table");
    assert_eq!(tables.count(), 3 * 4);
    assert!(html.contains("only 3 runs that count"));
    assert!(html.contains("vda is a virtual disk"));
}

/// Renders in a browser, without a window, what people will look at.
#[test]
fn a_browser_shows_it_without_complaint() {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let runs = |name: &&str| Command::new(name).arg("--version").output().is_ok();
    let Some(browser) = names.into_iter().find(runs) else {
        eprintln!("SKIPPED: no chromium is installed, pages were only parsed");
        return;
    };
    let temp = tempfile::TempDir::new().unwrap();
    let all = sweep(&arms(&EIGHT), 3, &[16, 64, 256]);
    let page = temp.path().join("page.html");
    std::fs::write(&page, render(&[Report::new("all.json", &all)])).unwrap();
    for (width, scheme) in [(1280, LIGHT), (1280, DARK), (420, LIGHT)] {
        let picture = temp.path().join(format!("{width}-{scheme}.png"));
        let (complaints, dom) = look(browser, &page, &picture, width, scheme);
        assert!(!complaints.contains("CONSOLE"), "{complaints}");
        assert!(dom.contains("</svg>"), "{complaints}");
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
