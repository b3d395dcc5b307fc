//! Runs a fixed set of seeds of changed SSTables; `interop-lenience` runs any number.

use compactor_testkit::campaign;
use interop::lenience::Campaign;

#[test]
fn accepts_what_cassandra_accepts() {
    if !campaign::is_full() {
        return;
    }
    if interop::skip::without_cassandra() {
        return;
    }
    let campaign = Campaign {
        jobs: 2,
        keep: None,
    };
    // Of each format, with Cassandra 5 and 6.
    let seeds: Vec<u64> = [7, 14, 15, 22, 23, 30, 31, 38].into_iter().collect();
    let report = campaign.run(&seeds).expect("servers");
    println!("{report}");
    assert!(report.failures.is_empty(), "{:#?}", report.failures);
    // Changes that break everything, or nothing, would test nothing.
    assert!(
        report.sound * 4 > report.files && report.refused > 0,
        "{report}"
    );
    assert!(report.warned > 0 && report.compared * 2 > report.sound);
}
