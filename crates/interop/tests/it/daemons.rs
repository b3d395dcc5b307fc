//! Real daemons: a fixed part of what `interop-daemons` runs, in full campaigns only, since it takes minutes.

use compactor_testkit::campaign;
use interop::daemon::{Campaign, Kind, Part, skip};

/// Runs the newest 5.0 with default settings and with the BTI format, and 6.0, each on some of the tables.
#[test]
fn daemons() {
    if !campaign::is_full() || skip::without_daemons() {
        return;
    }
    let common = [
        "kv",
        "wide",
        "deletions",
        "ttl",
        "collections",
        "uncompressed",
        "MixedCase",
        "chunk_end",
    ];
    let parts: [(&str, &[&str]); 3] = [
        ("5.0.9-da", &["statics", "counters"]),
        (
            "5.0.9",
            &["all_types", "counters", "sai", "base", "dropped", "deflate"],
        ),
        (
            "6.0-alpha2",
            &["dictionary", "zstd", "masked", "lcs", "secondary", "gone"],
        ),
    ];
    let mut failures = Vec::new();
    for (name, more) in parts {
        let kind: Kind = name.parse().expect("a daemon of that name");
        let tables = common.iter().chain(more).map(|name| (*name).to_owned());
        let campaign = Campaign {
            kind,
            tables: tables.collect(),
            part: Part::Short,
        };
        let outcome = campaign.run().expect("a daemon");
        println!("{kind}: {outcome}");
        assert_eq!(outcome.tables, common.len() + more.len());
        failures.extend(outcome.failures);
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
