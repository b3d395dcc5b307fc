//! TTLs, live and expired.

use super::{Scenario, T0};
use crate::cassandra::Mode;

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        ttl_live(),
        ttl_expired(),
        ttl_purged(),
        ttl_edges(),
        default_ttl(),
        per_cell(),
        ttl_ties(),
        ttl_far_future(),
    ]
}

fn mixed(scenario: Scenario) -> Scenario {
    scenario
        .schema("CREATE TABLE $t (k int, c int, v text, w text, s text static, PRIMARY KEY (k, c))")
        .input(|i| {
            for c in 0..10 {
                i.cql(format!("INSERT INTO $t (k, c, v, w) VALUES (1, {c}, 'v', 'w') USING TIMESTAMP 10 AND TTL {}", 100 * (c + 1)));
            }
            i.cql("INSERT INTO $t (k, s) VALUES (1, 'static') USING TIMESTAMP 10 AND TTL 300");
            i.cql("INSERT INTO $t (k, c, v) VALUES (2, 1, 'v') USING TIMESTAMP 10 AND TTL 100");
        })
        .input(|i| {
            i.at(T0 + 50);
            for c in 0..10 {
                i.cql(format!("UPDATE $t USING TIMESTAMP {} AND TTL {} SET v = 'x' WHERE k = 1 AND c = {c}", 9 + c % 3, 200 * (c + 1)));
            }
            i.cql("INSERT INTO $t (k, c, w) VALUES (1, 20, 'stays') USING TIMESTAMP 10");
        })
}

fn ttl_live() -> Scenario {
    mixed(Scenario::new("ttl_live", "nothing has expired yet")).merge_at(T0 + 60, 0)
}

fn ttl_expired() -> Scenario {
    mixed(Scenario::new(
        "ttl_expired",
        "expired but within gc_grace: cells turn into tombstones, liveness stays",
    ))
    .merge_at(T0 + 1000, 5000)
}

fn ttl_purged() -> Scenario {
    mixed(Scenario::new(
        "ttl_purged",
        "expired at different distances from gc_before",
    ))
    .merge_at(T0 + 1500, 600)
}

fn ttl_edges() -> Scenario {
    Scenario::new(
        "ttl_edges",
        "expiration one second before, at and after now and gc_before",
    )
    .schema("CREATE TABLE $t (k int, c int, v text, PRIMARY KEY (k, c))")
    .input(|i| {
        for (c, ttl) in [99, 100, 101, 499, 500, 501, 599, 600, 601]
            .iter()
            .enumerate()
        {
            i.cql(format!(
                "INSERT INTO $t (k, c, v) VALUES (1, {c}, 'v') USING TIMESTAMP 10 AND TTL {ttl}"
            ));
            i.cql(format!(
                "UPDATE $t USING TIMESTAMP 10 AND TTL {ttl} SET v = 'u' WHERE k = 2 AND c = {c}"
            ));
        }
    })
    .input(|i| {
        i.cql("INSERT INTO $t (k, c, v) VALUES (3, 1, 'v') USING TIMESTAMP 10");
    })
    .merge_at(T0 + 600, 500)
}

fn default_ttl() -> Scenario {
    Scenario::new("default_ttl", "default_time_to_live, overridden with TTL 0 and another TTL")
        .schema("CREATE TABLE $t (k int, c int, v text, PRIMARY KEY (k, c)) WITH default_time_to_live = 3600")
        .input(|i| {
            i.all((0..6).map(|c| format!("INSERT INTO $t (k, c, v) VALUES (1, {c}, 'v') USING TIMESTAMP 10")));
            i.cql("INSERT INTO $t (k, c, v) VALUES (1, 7, 'for ever') USING TIMESTAMP 10 AND TTL 0");
        })
        .input(|i| {
            i.at(T0 + 500);
            i.all((3..9).map(|c| format!("INSERT INTO $t (k, c, v) VALUES (1, {c}, 'w') USING TIMESTAMP 11 AND TTL {}", 100 * c)));
        })
}

fn per_cell() -> Scenario {
    Scenario::new(
        "ttl_per_cell",
        "each cell of a row with its own timestamp and TTL",
    )
    .schema("CREATE TABLE $t (k int, c int, a text, b text, d text, e text, PRIMARY KEY (k, c))")
    .input(|i| {
        for c in 0..4 {
            i.cql(format!(
                "INSERT INTO $t (k, c) VALUES (1, {c}) USING TIMESTAMP 10 AND TTL 700"
            ));
            i.cql(format!(
                "UPDATE $t USING TIMESTAMP 11 AND TTL 500 SET a = 'a' WHERE k = 1 AND c = {c}"
            ));
            i.cql(format!(
                "UPDATE $t USING TIMESTAMP 12 SET b = 'b' WHERE k = 1 AND c = {c}"
            ));
            i.cql(format!(
                "UPDATE $t USING TIMESTAMP 10 AND TTL 700 SET d = 'row' WHERE k = 1 AND c = {c}"
            ));
        }
    })
    .input(|i| {
        i.cql("UPDATE $t USING TIMESTAMP 13 AND TTL 9000 SET a = 'long' WHERE k = 1 AND c = 0");
        i.cql("UPDATE $t USING TIMESTAMP 13 SET d = null WHERE k = 1 AND c = 1");
        i.cql("INSERT INTO $t (k, c, e) VALUES (1, 2, 'e') USING TIMESTAMP 10 AND TTL 650");
        i.cql("INSERT INTO $t (k, c, e) VALUES (1, 3, 'e') USING TIMESTAMP 10");
    })
    .merge_at(T0 + 600, 300)
}

fn ttl_ties() -> Scenario {
    Scenario::new(
        "ttl_ties",
        "equal timestamps: tombstone, expiring and live meet; later expiry, then lower TTL",
    )
    .schema("CREATE TABLE $t (k int, c int, v text, PRIMARY KEY (k, c))")
    .input(|i| {
        i.cql("UPDATE $t USING TIMESTAMP 10 AND TTL 1000 SET v = 'a' WHERE k = 1 AND c = 1");
        i.cql("UPDATE $t USING TIMESTAMP 10 AND TTL 1000 SET v = 'a' WHERE k = 1 AND c = 2");
        i.cql("UPDATE $t USING TIMESTAMP 10 AND TTL 1000 SET v = 'same' WHERE k = 1 AND c = 3");
        i.cql("UPDATE $t USING TIMESTAMP 10 AND TTL 5 SET v = 'expired' WHERE k = 1 AND c = 4");
        i.cql("INSERT INTO $t (k, c) VALUES (2, 1) USING TIMESTAMP 10 AND TTL 1000");
        i.cql("INSERT INTO $t (k, c) VALUES (2, 2) USING TIMESTAMP 10 AND TTL 1000");
        i.cql("INSERT INTO $t (k, c) VALUES (2, 3) USING TIMESTAMP 10 AND TTL 5");
    })
    .input(|i| {
        i.cql("DELETE v FROM $t USING TIMESTAMP 10 WHERE k = 1 AND c = 1");
        i.cql("UPDATE $t USING TIMESTAMP 10 AND TTL 2000 SET v = 'a' WHERE k = 1 AND c = 2");
        i.at(T0 + 10)
            .cql("UPDATE $t USING TIMESTAMP 10 AND TTL 990 SET v = 'same' WHERE k = 1 AND c = 3");
        i.cql("UPDATE $t USING TIMESTAMP 10 SET v = 'live' WHERE k = 1 AND c = 4");
        i.cql("INSERT INTO $t (k, c) VALUES (2, 1) USING TIMESTAMP 10");
        i.cql("INSERT INTO $t (k, c) VALUES (2, 2) USING TIMESTAMP 10 AND TTL 990");
        i.cql("INSERT INTO $t (k, c) VALUES (2, 3) USING TIMESTAMP 10");
    })
    .merge_at(T0 + 500, 100)
}

fn ttl_far_future() -> Scenario {
    let mut scenario = Scenario::new(
        "ttl_far_future",
        "the longest TTL: deletion times beyond 2^31",
    )
    .schema("CREATE TABLE $t (k int, c int, v text, PRIMARY KEY (k, c))")
    .input(|i| {
        i.all((0..4).map(|c| {
            format!(
                "INSERT INTO $t (k, c, v) VALUES (1, {c}, 'v') USING TIMESTAMP 10 AND TTL 630720000"
            )
        }));
    })
    .input(|i| {
        i.cql("INSERT INTO $t (k, c, v) VALUES (1, 1, 'w') USING TIMESTAMP 11 AND TTL 100");
        i.cql("DELETE FROM $t USING TIMESTAMP 11 WHERE k = 1 AND c = 2");
    });
    // nb cannot hold such a time, and Cassandra refuses the statement in that mode.
    scenario.modes = vec![Mode::Oa, Mode::Pa, Mode::Ea];
    scenario
}
