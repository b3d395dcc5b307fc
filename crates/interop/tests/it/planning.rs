//! The tasks that our strategies select by those that Cassandra's select.
//!
//! `COMPACTOR_PLANNED_TABLES` sets the number of random tables per strategy and release.

use compactor_strategy::release::Release;
use interop::planning::{Compared, Strategy, compare};
use interop::{Cassandra, Mode, Options, Release as Server};

use crate::support::has_five;

/// Random tables of a test run.
const TABLES: u64 = 60;

fn servers() -> Vec<(Release, Cassandra)> {
    if !has_five() {
        return Vec::new();
    }
    let start = |release, server| {
        let options = Options {
            release: Some(server),
            ..Options::default()
        };
        let cassandra = Cassandra::start(Mode::Oa, &options).expect("Cassandra starts");
        (release, cassandra)
    };
    vec![
        start(Release::V5_0, Server::Five),
        start(Release::V6_0, Server::Six),
    ]
}

fn tables() -> u64 {
    let named = std::env::var("COMPACTOR_PLANNED_TABLES").ok();
    named.map_or(TABLES, |text| text.parse().expect("a number of tables"))
}

/// Compares with both releases, and returns what the comparisons came across.
fn compare_all(strategy: Strategy) -> Vec<Compared> {
    let compare_with = |(release, mut cassandra): (Release, Cassandra)| {
        let compared = compare(&mut cassandra, strategy, release, 0..tables());
        let compared = compared.unwrap_or_else(|error| panic!("{error:#}"));
        println!("{strategy:?}, {release:?}: {compared:?}");
        compared
    };
    servers().into_iter().map(compare_with).collect()
}

#[test]
fn size_tiered() {
    for compared in compare_all(Strategy::SizeTiered) {
        assert!(compared.tasks > 300 && compared.idle > 300 && compared.tombstones > 10);
    }
}

#[test]
fn leveled() {
    for compared in compare_all(Strategy::Leveled) {
        assert!(compared.tasks > 300 && compared.idle > 100 && compared.tombstones > 10);
        assert!(compared.level_only > 10);
    }
}

#[test]
fn time_window() {
    for compared in compare_all(Strategy::TimeWindow) {
        assert!(compared.tasks > 300 && compared.idle > 100 && compared.tombstones > 10);
        assert!(compared.expired > 10);
    }
}

#[test]
fn unified() {
    for compared in compare_all(Strategy::Unified) {
        assert!(compared.tasks > 300 && compared.idle > 100 && compared.expired > 10);
    }
}
