use compactor_simulate::{Setup, simulate};
use compactor_strategy::options::Options;
use compactor_strategy::{CompactionParams, release::Release};

use super::*;

fn run(class: &str, value: Option<f64>) -> Run {
    let strategy = CompactionParams::from_options(class, &Options::new(), Release::V6_0);
    let mut setup = Setup::new(strategy.unwrap());
    setup.duration_s = 20_000;
    Run {
        name: format!("{class} <&>"),
        value,
        outcome: simulate(&setup).unwrap(),
    }
}

fn runs() -> Vec<Run> {
    vec![
        run("SizeTieredCompactionStrategy", Some(1.0)),
        run("LeveledCompactionStrategy", Some(2.0)),
    ]
}

#[test]
fn pages_are_well_formed_and_have_all_charts() {
    let page = document(&runs(), Some("fanout_size"), Facts::new()).to_html();
    let options = roxmltree::ParsingOptions {
        allow_dtd: true,
        ..roxmltree::ParsingOptions::default()
    };
    let parsed = roxmltree::Document::parse_with_options(&page, options).unwrap();
    let count = |name: &str| {
        let nodes = parsed.descendants();
        nodes.filter(|node| node.tag_name().name() == name).count()
    };
    // Six over time and four by value; two tables of all, and the levels of each.
    assert_eq!((count("svg"), count("table")), (10, 4));
    assert!(!page.contains("NaN") && !page.contains("inf,"));
}

#[test]
fn text_fits_a_terminal() {
    let text = document(&runs(), None, Facts::new()).to_text();
    let widest = text.lines().map(|line| line.chars().count()).max();
    assert!(widest.unwrap() <= 120, "{text}");
    assert!(text.contains("LeveledCompactionStrategy"), "{text}");
}
