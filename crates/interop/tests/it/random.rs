//! A fixed set of seeds; `interop-random` runs as many others as asked.

use interop::random::{self, Campaign};

#[test]
fn seeds() {
    if interop::skip::without_cassandra() {
        return;
    }
    let campaign = Campaign {
        jobs: 2,
        keep: None,
        minimise: false,
    };
    let plans = (1..=70).map(random::plan).collect();
    let report = campaign.run(plans).expect("servers");
    println!("{report:?}");
    assert!(report.failed.is_empty(), "seeds {:?} differ", report.failed);
    // A generator whose mutations cancel each other out would pass anything.
    assert!(report.outputs * 10 > report.done * 7, "few outputs");
}
