//! Values and timestamps at the edges, and rows that are only liveness or have none.

use super::{Scenario, T0};
use crate::view_row::ViewRow;

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        empty_values(),
        extreme_timestamps(),
        liveness_only(),
        updates_without_liveness(),
        value_ties(),
        view_rows(),
        view_rows_purged(),
        strict_liveness(
            "strict_liveness",
            "k int PRIMARY KEY, v int, w int, m map<int, int>",
        )
        .purge_all(),
        strict_liveness(
            "strict_liveness_kept",
            "k int PRIMARY KEY, v int, w int, m map<int, int>",
        ),
        strict_liveness(
            "strict_liveness_of_another_view",
            "k int, v int, w int, m map<int, int>, PRIMARY KEY (k, v)",
        )
        .purge_all(),
        null_clusterings(),
        decimal_spellings(),
    ]
}

fn empty_values() -> Scenario {
    let insert = |c: &str, what: &str, ts: u32| {
        format!(
            "INSERT INTO $t (k, c, t, b, n, u, d, v, x) VALUES (1, {c}, '', 0x, blob_as_int(0x), blob_as_uuid(0x), \
             blob_as_decimal(0x), blob_as_varint(0x), '{what}') USING TIMESTAMP {ts}"
        )
    };
    Scenario::new("empty_values", "zero-length values of every kind of type, as clustering and as cells")
        .schema(
            "CREATE TABLE $t (k int, c int, t text, b blob, n int, u uuid, d decimal, v varint, x text, PRIMARY KEY (k, c))",
        )
        .input(|i| {
            i.cql(insert("blob_as_int(0x)", "first", 5)).cql(insert("1", "first", 5)).cql(insert("-1", "first", 7));
        })
        .input(|i| {
            i.cql(insert("blob_as_int(0x)", "second", 6)).cql(insert("2", "second", 6)).cql(insert("-1", "second", 6));
            i.cql("INSERT INTO $t (k, c, t, n, d) VALUES (1, 1, 'x', 1, 1.5) USING TIMESTAMP 5");
        })
}

fn extreme_timestamps() -> Scenario {
    let cells = [
        (1, "-9223372036854775807"),
        (2, "-1"),
        (3, "0"),
        (4, "1442880000000000"),
        (5, "1700000000000000"),
        (6, "9223372036854775807"),
    ];
    Scenario::new(
        "extreme_timestamps",
        "deltas that wrap, negative timestamps, the largest timestamp",
    )
    .schema("CREATE TABLE $t (k int, c int, a text, b text, PRIMARY KEY (k, c))")
    .input(|i| {
        i.all(cells.iter().map(|(c, ts)| {
            format!("INSERT INTO $t (k, c, a, b) VALUES (1, {c}, 'a', 'b') USING TIMESTAMP {ts}")
        }));
    })
    .input(|i| {
        i.all(cells.iter().map(|(c, ts)| {
            format!(
                "INSERT INTO $t (k, c, a) VALUES (1, {}, 'z') USING TIMESTAMP {ts}",
                7 - c
            )
        }));
        i.cql("DELETE FROM $t USING TIMESTAMP -5 WHERE k = 1 AND c = 1");
    })
}

fn liveness_only() -> Scenario {
    Scenario::new(
        "liveness_only",
        "rows that are nothing but a primary key, expiring ones too",
    )
    .schema("CREATE TABLE $t (k int, c int, v text, PRIMARY KEY (k, c))")
    .input(|i| {
        for c in 0..6 {
            i.cql(format!(
                "INSERT INTO $t (k, c) VALUES (1, {c}) USING TIMESTAMP 10"
            ));
        }
        i.cql("INSERT INTO $t (k, c) VALUES (1, 10) USING TIMESTAMP 10 AND TTL 5000");
    })
    .input(|i| {
        i.cql("INSERT INTO $t (k, c) VALUES (1, 0) USING TIMESTAMP 10 AND TTL 5000");
        i.cql("INSERT INTO $t (k, c) VALUES (1, 1) USING TIMESTAMP 9 AND TTL 5000");
        i.cql("INSERT INTO $t (k, c) VALUES (1, 2) USING TIMESTAMP 11 AND TTL 500");
        i.cql("INSERT INTO $t (k, c) VALUES (1, 10) USING TIMESTAMP 10 AND TTL 6000");
        i.at(T0 + 10)
            .cql("INSERT INTO $t (k, c) VALUES (1, 10) USING TIMESTAMP 10 AND TTL 5990");
    })
}

fn updates_without_liveness() -> Scenario {
    Scenario::new(
        "updates_without_liveness",
        "UPDATE writes cells without row liveness",
    )
    .schema("CREATE TABLE $t (k int, c int, a text, b text, PRIMARY KEY (k, c))")
    .input(|i| {
        i.cql("UPDATE $t USING TIMESTAMP 10 SET a = 'x' WHERE k = 1 AND c = 1");
        i.cql("UPDATE $t USING TIMESTAMP 10 SET a = 'x', b = 'y' WHERE k = 1 AND c = 2");
        i.cql("INSERT INTO $t (k, c, a) VALUES (1, 3, 'i') USING TIMESTAMP 10");
    })
    .input(|i| {
        i.cql("UPDATE $t USING TIMESTAMP 11 SET b = 'z' WHERE k = 1 AND c = 1");
        i.cql("UPDATE $t USING TIMESTAMP 9 SET b = 'older' WHERE k = 1 AND c = 2");
        i.cql("UPDATE $t USING TIMESTAMP 11 SET a = null WHERE k = 1 AND c = 3");
    })
}

fn value_ties() -> Scenario {
    Scenario::new(
        "value_ties",
        "equal timestamps: larger bytes win, a tombstone beats data, expiring beats live",
    )
    .schema("CREATE TABLE $t (k int, c int, v blob, PRIMARY KEY (k, c))")
    .input(|i| {
        for (c, v) in ["0x61", "0x7a", "0x00ff", "0x", "0xff"].iter().enumerate() {
            i.cql(format!(
                "INSERT INTO $t (k, c, v) VALUES (1, {c}, {v}) USING TIMESTAMP 10"
            ));
        }
        i.cql("INSERT INTO $t (k, c, v) VALUES (1, 10, 0x01) USING TIMESTAMP 10 AND TTL 5000");
        i.cql("DELETE v FROM $t USING TIMESTAMP 10 WHERE k = 1 AND c = 11");
        i.cql("INSERT INTO $t (k, c, v) VALUES (1, 12, 0x05) USING TIMESTAMP 10 AND TTL 5000");
        i.cql("INSERT INTO $t (k, c, v) VALUES (1, 13, 0x01) USING TIMESTAMP 10 AND TTL 5000");
        i.cql("INSERT INTO $t (k, c, v) VALUES (1, 14, 0x01) USING TIMESTAMP 10");
    })
    .input(|i| {
        for (c, v) in ["0x7a", "0x61", "0xff", "0x00", "0x7f"].iter().enumerate() {
            i.cql(format!(
                "INSERT INTO $t (k, c, v) VALUES (1, {c}, {v}) USING TIMESTAMP 10"
            ));
        }
        i.cql("INSERT INTO $t (k, c, v) VALUES (1, 10, 0x02) USING TIMESTAMP 10");
        i.cql("INSERT INTO $t (k, c, v) VALUES (1, 11, 0x02) USING TIMESTAMP 10 AND TTL 5000");
        i.at(T0 + 10)
            .cql("INSERT INTO $t (k, c, v) VALUES (1, 12, 0x04) USING TIMESTAMP 10 AND TTL 4990");
        i.at(T0 + 20)
            .cql("INSERT INTO $t (k, c, v) VALUES (1, 13, 0x02) USING TIMESTAMP 10 AND TTL 4981");
        i.cql("DELETE v FROM $t USING TIMESTAMP 10 WHERE k = 1 AND c = 14");
    })
}

fn views(scenario: Scenario) -> Scenario {
    scenario
        .schema("CREATE TABLE $t (k int, c int, v text, PRIMARY KEY (k, c))")
        .input(|i| {
            for c in 0..8 {
                i.cql(format!(
                    "INSERT INTO $t (k, c, v) VALUES (1, {c}, 'v') USING TIMESTAMP 10"
                ));
            }
            i.view(ViewRow::Shadowable, 2, 1, 10);
            i.view(ViewRow::Expired, 2, 2, 10);
        })
        .input(|i| {
            i.view(ViewRow::Shadowable, 1, 0, 9)
                .view(ViewRow::Shadowable, 1, 1, 10);
            i.view(ViewRow::Shadowable, 1, 2, 11)
                .view(ViewRow::Expired, 1, 3, 9);
            i.view(ViewRow::Expired, 1, 4, 10)
                .view(ViewRow::Expired, 1, 5, 11);
            i.cql("INSERT INTO $t (k, c, v) VALUES (2, 1, 'lifts it') USING TIMESTAMP 11");
            i.cql("INSERT INTO $t (k, c, v) VALUES (2, 2, 'lives') USING TIMESTAMP 10");
        })
        .input(|i| {
            i.cql("INSERT INTO $t (k, c) VALUES (1, 2) USING TIMESTAMP 12");
            // Not at the time of a shadowable one: of equal deletions the first read stays, and Cassandra's order of
            // inputs is that of a hash set.
            i.cql("DELETE FROM $t USING TIMESTAMP 8 WHERE k = 1 AND c = 2");
            i.cql("DELETE FROM $t USING TIMESTAMP 9 WHERE k = 1 AND c = 1");
            i.cql("DELETE FROM $t USING TIMESTAMP 13 WHERE k = 1 AND c = 7");
            i.cql("INSERT INTO $t (k, c) VALUES (1, 7) USING TIMESTAMP 14");
            i.view(ViewRow::Shadowable, 1, 6, 12)
                .view(ViewRow::Expired, 1, 6, 12);
        })
}

fn view_rows() -> Scenario {
    views(Scenario::new(
        "view_rows",
        "shadowable deletions and expired liveness, as views write them",
    ))
}

fn view_rows_purged() -> Scenario {
    views(Scenario::new(
        "view_rows_purged",
        "the same, old enough to be purged",
    ))
    .purge_all()
}

/// Entries of a view, as its base table's updates leave them. If `v` is no key column of that table, a row is dropped with
/// its liveness.
fn strict_liveness(name: &str, base: &str) -> Scenario {
    let mut scenario = Scenario::new(
        name,
        "rows of views whose liveness expired, was purged, or never existed",
    )
    .schema("CREATE TABLE $t (v int, k int, w int, m map<int, int>, PRIMARY KEY (v, k))")
    .input(|i| {
        for k in 1..5 {
            i.cql(format!(
                "INSERT INTO $t (v, k, w, m) VALUES (1, {k}, 70, {{1: 1}}) USING TIMESTAMP 10"
            ));
        }
        i.cql("INSERT INTO $t (v, k, w) VALUES (2, 1, 1) USING TIMESTAMP 10 AND TTL 10");
        i.cql("UPDATE $t USING TIMESTAMP 11 SET w = 5 WHERE v = 2 AND k = 1");
        i.cql("UPDATE $t USING TIMESTAMP 10 SET w = 5 WHERE v = 3 AND k = 1");
        i.cql("UPDATE $t USING TIMESTAMP 10 SET w = 5 WHERE v = 3 AND k = 2");
        i.cql("DELETE m FROM $t USING TIMESTAMP 10 WHERE v = 3 AND k = 2");
        i.cql("UPDATE $t USING TIMESTAMP 10 AND TTL 5 SET w = 5 WHERE v = 3 AND k = 3");
        i.cql("UPDATE $t USING TIMESTAMP 10 SET m[1] = 5 WHERE v = 3 AND k = 3");
    })
    .input(|i| {
        // The base rows moved to another v.
        i.view(ViewRow::Expired, 1, 1, 10);
        i.view(ViewRow::Expired, 1, 2, 20);
        i.cql("DELETE w FROM $t USING TIMESTAMP 11 WHERE v = 1 AND k = 3");
        i.cql("DELETE FROM $t USING TIMESTAMP 11 WHERE v = 1 AND k = 4");
        i.cql("UPDATE $t USING TIMESTAMP 12 SET w = 6 WHERE v = 1 AND k = 4");
        i.cql("UPDATE $t USING TIMESTAMP 12 SET w = 6 WHERE v = 1 AND k = 2");
    });
    scenario.after = vec![
        format!("CREATE TABLE $ks.base ({base})"),
        "CREATE MATERIALIZED VIEW $ks.mv AS SELECT * FROM $ks.base WHERE v IS NOT NULL AND k IS NOT NULL \
         PRIMARY KEY (v, k)"
            .to_owned(),
    ];
    scenario.view = Some("mv");
    scenario
}

fn null_clusterings() -> Scenario {
    Scenario::new("null_clusterings", "compact tables leave trailing clusterings null, which is not empty")
        .schema("CREATE TABLE $t (k int, a text, b text, v int, PRIMARY KEY (k, a, b)) WITH COMPACT STORAGE")
        .input(|i| {
            i.cql("INSERT INTO $t (k, a, v) VALUES (1, 'a', 1) USING TIMESTAMP 10");
            i.cql("INSERT INTO $t (k, a, b, v) VALUES (1, 'a', '', 2) USING TIMESTAMP 10");
            i.cql("INSERT INTO $t (k, a, b, v) VALUES (1, 'a', 'b', 3) USING TIMESTAMP 10");
        })
        .input(|i| {
            i.cql("INSERT INTO $t (k, a, v) VALUES (1, 'a', 4) USING TIMESTAMP 11");
            i.cql("INSERT INTO $t (k, a, v) VALUES (1, 'b', 5) USING TIMESTAMP 11");
            i.cql("DELETE FROM $t USING TIMESTAMP 11 WHERE k = 1 AND a = 'a' AND b = ''");
        })
}

fn decimal_spellings() -> Scenario {
    Scenario::new(
        "decimal_spellings",
        "1.5 and 1.50 are one clustering and one element, whose bytes either input may supply",
    )
    .schema("CREATE TABLE $t (k int, c decimal, v int, m map<decimal, int>, PRIMARY KEY (k, c))")
    .input(|i| {
        for (n, c) in ["1.5", "2", "-3.0", "0.0"].iter().enumerate() {
            i.cql(format!(
                "INSERT INTO $t (k, c, v, m) VALUES (1, {c}, {n}, {{{c}: 1}}) USING TIMESTAMP 10"
            ));
        }
    })
    .input(|i| {
        for (n, c) in ["1.50", "2.000", "-3", "0"].iter().enumerate() {
            i.cql(format!(
                "INSERT INTO $t (k, c, v) VALUES (1, {c}, {}) USING TIMESTAMP 10",
                n + 1
            ));
            i.cql(format!(
                "UPDATE $t USING TIMESTAMP 11 SET m[{c}] = 2 WHERE k = 1 AND c = {c}"
            ));
        }
        i.cql("DELETE FROM $t USING TIMESTAMP 9 WHERE k = 1 AND c > 1.5 AND c <= 2.00");
    })
}
