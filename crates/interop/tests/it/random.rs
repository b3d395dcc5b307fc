//! A fixed set of seeds, and minimised plans that once failed; `interop-random` runs any number of seeds.

use std::path::Path;

use compactor_testkit::campaign;
use interop::random::{self, Campaign, Plan};

#[test]
fn seeds() {
    if interop::skip::without_cassandra() {
        return;
    }
    let campaign = Campaign::of(2);
    let plans = (1..=campaign::cases(72) as u64).map(random::plan);
    let report = campaign.run(plans.collect()).expect("servers");
    println!("{report:?}");
    assert!(report.failed.is_empty(), "seeds {:?} differ", report.failed);
    // A generator whose mutations cancel each other out would test nothing.
    assert!(report.outputs * 10 > report.done * 7, "few outputs");
    // In a small sample they may be rarer.
    let one_in = if report.done < 18 { 10 } else { 4 };
    assert!(
        report.divided * one_in > report.done,
        "few plans with several outputs"
    );
}

/// Plans minimised by `interop-random --minimise`. They do not change with the generator.
#[test]
fn plans_that_differed_once() {
    if interop::skip::without_cassandra() {
        return;
    }
    let campaign = Campaign::of(1);
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plans");
    let mut paths: Vec<_> = std::fs::read_dir(directory)
        .expect("plans")
        .map(|entry| entry.expect("a plan").path())
        .collect();
    paths.sort();
    let plans: Vec<Plan> = campaign::some_of(paths)
        .iter()
        .map(|path| std::fs::read_to_string(path).expect("a plan"))
        .map(|text| serde_json::from_str(&text).expect("a plan"))
        .collect();
    assert!(!plans.is_empty());
    let report = campaign.run(plans).expect("servers");
    println!("{report:?}");
    assert!(report.failed.is_empty(), "{:?} differ", report.failed);
}
