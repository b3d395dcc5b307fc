//! Row, cell, range and partition deletions.

use super::{Scenario, T0};

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        row_deletions(),
        partition_deletions(),
        cell_deletions(),
        range_nested(),
        range_touching(),
        range_overlapping(),
        range_equal_timestamps(),
        range_prefix(),
        range_whole_partition(),
        range_over_rows(),
        boundary_purge(),
        range_between_inputs_single(),
        all_purged(),
        fully_expired_input(),
        purge_held_back(),
        gc_boundary(),
        no_purge(),
        deletions_only(),
    ]
}

const TABLE: &str = "CREATE TABLE $t (k int, c int, v text, w text, PRIMARY KEY (k, c))";

fn rows(k: i32, range: std::ops::Range<i32>, ts: i64) -> Vec<String> {
    range
        .map(|c| {
            format!(
                "INSERT INTO $t (k, c, v, w) VALUES ({k}, {c}, 'v{c}', 'w') USING TIMESTAMP {ts}"
            )
        })
        .collect()
}

fn row_deletions() -> Scenario {
    Scenario::new(
        "row_deletions",
        "row deletions older, equal and newer than the cells; rows written again",
    )
    .schema(TABLE)
    .input(|i| {
        i.all(rows(1, 0..8, 10));
    })
    .input(|i| {
        for c in 0..6 {
            i.cql(format!(
                "DELETE FROM $t USING TIMESTAMP {} WHERE k = 1 AND c = {c}",
                8 + c
            ));
        }
        i.cql("DELETE FROM $t USING TIMESTAMP 12 WHERE k = 1 AND c = 20");
    })
    .input(|i| {
        i.cql("UPDATE $t USING TIMESTAMP 13 SET v = 'again' WHERE k = 1 AND c = 3");
        i.cql("INSERT INTO $t (k, c, w) VALUES (1, 4, 'again') USING TIMESTAMP 12");
        i.at(T0 + 50)
            .cql("DELETE FROM $t USING TIMESTAMP 12 WHERE k = 1 AND c = 20");
    })
}

fn partition_deletions() -> Scenario {
    Scenario::new(
        "partition_deletions",
        "partition deletions over everything, in either input",
    )
    .schema("CREATE TABLE $t (k int, c int, v text, w text, s text static, PRIMARY KEY (k, c))")
    .input(|i| {
        for k in 0..6 {
            i.all(rows(k, 0..4, 10));
            i.cql(format!(
                "INSERT INTO $t (k, s) VALUES ({k}, 'static') USING TIMESTAMP 11"
            ));
        }
        i.cql("DELETE FROM $t USING TIMESTAMP 5 WHERE k = 5");
    })
    .input(|i| {
        i.cql("DELETE FROM $t USING TIMESTAMP 9 WHERE k = 0");
        i.cql("DELETE FROM $t USING TIMESTAMP 10 WHERE k = 1");
        i.cql("DELETE FROM $t USING TIMESTAMP 11 WHERE k = 2");
        i.cql("DELETE FROM $t USING TIMESTAMP 12 WHERE k = 3");
        i.cql("INSERT INTO $t (k, c, v) VALUES (3, 1, 'again') USING TIMESTAMP 13");
        i.at(T0 + 7)
            .cql("DELETE FROM $t USING TIMESTAMP 5 WHERE k = 5");
        i.cql("DELETE FROM $t USING TIMESTAMP 5 WHERE k = 99");
    })
}

fn cell_deletions() -> Scenario {
    Scenario::new(
        "cell_deletions",
        "single cells deleted, with ties of deletion times",
    )
    .schema(TABLE)
    .input(|i| {
        i.all(rows(1, 0..6, 10));
        i.cql("DELETE v FROM $t USING TIMESTAMP 20 WHERE k = 1 AND c = 5");
    })
    .input(|i| {
        i.at(T0 + 3);
        for c in 0..5 {
            i.cql(format!(
                "DELETE v FROM $t USING TIMESTAMP {} WHERE k = 1 AND c = {c}",
                8 + c
            ));
        }
        i.cql("DELETE v, w FROM $t USING TIMESTAMP 20 WHERE k = 1 AND c = 5");
    })
    .input(|i| {
        i.cql("UPDATE $t USING TIMESTAMP 12 SET v = 'back' WHERE k = 1 AND c = 4");
    })
}

fn delete(k: i32, from: &str, to: &str, ts: i64) -> String {
    let (sep, to) = if to.is_empty() {
        ("", String::new())
    } else {
        (" AND ", format!("c {to}"))
    };
    format!("DELETE FROM $t USING TIMESTAMP {ts} WHERE k = {k} AND c {from}{sep}{to}")
}

fn range_nested() -> Scenario {
    Scenario::new(
        "range_nested",
        "range tombstones inside each other, newer inside older and the reverse",
    )
    .schema(TABLE)
    .input(|i| {
        i.all(rows(1, 0..40, 10)).all(rows(2, 0..40, 10));
        i.cql(delete(1, ">= 0", "< 40", 9))
            .cql(delete(2, "> 15", "<= 20", 30));
    })
    .input(|i| {
        i.cql(delete(1, "> 5", "< 30", 12))
            .cql(delete(2, "> 5", "<= 30", 12));
    })
    .input(|i| {
        i.cql(delete(1, ">= 10", "<= 20", 15))
            .cql(delete(2, ">= 10", "< 25", 20));
        i.all(rows(1, 12..14, 16)).all(rows(2, 12..18, 21));
    })
}

fn range_touching() -> Scenario {
    Scenario::new(
        "range_touching",
        "inclusive and exclusive ends that meet, with and without a row at the seam",
    )
    .schema(TABLE)
    .input(|i| {
        for k in 0..8 {
            i.all(rows(k, 0..12, 10));
        }
        i.cql(delete(0, ">= 2", "< 5", 11))
            .cql(delete(1, ">= 2", "<= 5", 11))
            .cql(delete(2, "> 2", "< 5", 11));
        i.cql(delete(3, ">= 2", "<= 5", 11))
            .cql(delete(4, ">= 2", "< 5", 11))
            .cql(delete(5, ">= 2", "<= 5", 13));
        i.cql(delete(6, "<= 5", "", 11))
            .cql(delete(7, "< 5", "", 11));
    })
    .input(|i| {
        i.at(T0 + 1);
        i.cql(delete(0, ">= 5", "< 9", 12))
            .cql(delete(1, "> 5", "< 9", 12))
            .cql(delete(2, "> 5", "< 9", 12));
        i.cql(delete(3, ">= 5", "<= 9", 12))
            .cql(delete(4, ">= 5", "< 9", 11))
            .cql(delete(5, ">= 5", "<= 9", 12));
        i.cql(delete(6, "> 5", "", 11))
            .cql(delete(7, "> 5", "", 12));
    })
}

fn range_overlapping() -> Scenario {
    Scenario::new(
        "range_overlapping",
        "chains of overlapping ranges in four inputs",
    )
    .schema(TABLE)
    .input(|i| {
        i.all(rows(1, 0..60, 20));
        i.cql(delete(1, "> 0", "< 20", 15))
            .cql(delete(1, "> 40", "", 25));
    })
    .input(|i| {
        i.cql(delete(1, ">= 10", "<= 30", 21))
            .cql(delete(1, ">= 35", "< 45", 19));
    })
    .input(|i| {
        i.cql(delete(1, "> 25", "<= 50", 18))
            .cql(delete(1, "< 12", "", 22));
    })
    .input(|i| {
        i.cql(delete(1, ">= 28", "< 29", 30));
        i.all(rows(1, 5..50, 23));
    })
}

fn range_equal_timestamps() -> Scenario {
    Scenario::new(
        "range_equal_timestamps",
        "ranges of equal timestamp but other deletion time, and against a partition deletion",
    )
    .schema(TABLE)
    .input(|i| {
        i.all(rows(1, 0..20, 10)).cql(delete(1, "> 2", "< 10", 15));
        i.cql(delete(2, "> 2", "< 10", 15))
            .cql("DELETE FROM $t USING TIMESTAMP 15 WHERE k = 3");
    })
    .input(|i| {
        i.at(T0 + 100)
            .cql(delete(1, ">= 5", "<= 15", 15))
            .cql(delete(3, "> 2", "< 10", 15));
        i.at(T0).cql(delete(2, ">= 5", "<= 15", 15));
    })
    .input(|i| {
        i.at(T0)
            .cql(delete(1, ">= 12", "", 15))
            .cql(delete(3, "> 4", "< 6", 16));
    })
}

fn range_prefix() -> Scenario {
    let insert = |a: i32, b: i32, d: i32, ts: i32| {
        format!(
            "INSERT INTO $t (k, a, b, d, v) VALUES (1, {a}, 'b{b}', {d}, 'v') USING TIMESTAMP {ts}"
        )
    };
    Scenario::new("range_prefix", "bounds that are prefixes of a three-column clustering with mixed directions")
        .schema(
            "CREATE TABLE $t (k int, a int, b text, d int, v text, PRIMARY KEY (k, a, b, d)) \
             WITH CLUSTERING ORDER BY (a ASC, b DESC, d ASC)",
        )
        .input(|i| {
            for a in 0..4 {
                for b in 0..4 {
                    for d in 0..4 {
                        i.cql(insert(a, b, d, 10 + (a + b + d) % 3));
                    }
                }
            }
        })
        .input(|i| {
            i.cql("DELETE FROM $t USING TIMESTAMP 11 WHERE k = 1 AND a = 1");
            i.cql("DELETE FROM $t USING TIMESTAMP 11 WHERE k = 1 AND a = 2 AND b = 'b2'");
            i.cql("DELETE FROM $t USING TIMESTAMP 11 WHERE k = 1 AND a = 3 AND b >= 'b1' AND b < 'b3'");
            i.cql("DELETE FROM $t USING TIMESTAMP 12 WHERE k = 1 AND a = 0 AND b = 'b1' AND d > 0 AND d <= 2");
        })
        .input(|i| {
            i.cql("DELETE FROM $t USING TIMESTAMP 12 WHERE k = 1 AND a >= 1 AND a < 3");
            i.cql("DELETE FROM $t USING TIMESTAMP 10 WHERE k = 1 AND (a, b) > (1, 'b2') AND (a, b) <= (1, 'b3')");
            i.cql("DELETE FROM $t USING TIMESTAMP 13 WHERE k = 1 AND a = 1 AND b = 'b1' AND d = 1");
            i.cql(insert(1, 1, 2, 13));
            i.cql(insert(2, 2, 2, 12));
        })
}

fn range_whole_partition() -> Scenario {
    Scenario::new("range_whole_partition", "open-ended ranges: empty bounds at top and bottom")
        .schema("CREATE TABLE $t (k int, c int, v text, w text, PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY (c DESC)")
        .input(|i| {
            for k in 0..4 {
                i.all(rows(k, 0..6, 10));
            }
            i.cql(delete(0, "> 3", "", 11)).cql(delete(1, "< 3", "", 11)).cql(delete(2, ">= 3", "", 9));
        })
        .input(|i| {
            i.cql(delete(0, "<= 3", "", 11)).cql(delete(1, ">= 2", "", 12)).cql(delete(2, "< 3", "", 9));
            i.cql(delete(3, "< 100", "", 12));
        })
}

fn range_over_rows() -> Scenario {
    Scenario::new(
        "range_over_rows",
        "row deletions and liveness inside, below and above ranges",
    )
    .schema(TABLE)
    .input(|i| {
        i.all(rows(1, 0..10, 10)).cql(delete(1, ">= 2", "<= 7", 12));
    })
    .input(|i| {
        for c in 0..10 {
            i.cql(format!(
                "DELETE FROM $t USING TIMESTAMP {} WHERE k = 1 AND c = {c}",
                9 + c
            ));
        }
    })
    .input(|i| {
        i.cql("INSERT INTO $t (k, c) VALUES (1, 3) USING TIMESTAMP 13");
        i.cql("UPDATE $t USING TIMESTAMP 14 SET w = 'u' WHERE k = 1 AND c = 4");
        i.cql("INSERT INTO $t (k, c, v) VALUES (1, 5, 'shadowed') USING TIMESTAMP 12");
    })
}

fn boundary_purge() -> Scenario {
    Scenario::new(
        "boundary_purge",
        "boundaries of which one, the other or both sides are old enough to go",
    )
    .schema(TABLE)
    .input(|i| {
        for k in 0..4 {
            i.all(rows(k, 0..20, 10));
        }
        i.at(T0)
            .cql(delete(0, "> 2", "< 8", 11))
            .cql(delete(1, "> 2", "< 8", 12))
            .cql(delete(2, "> 2", "< 8", 11));
        i.at(T0 + 5000).cql(delete(3, "> 2", "< 8", 11));
    })
    .input(|i| {
        i.at(T0 + 5000)
            .cql(delete(0, ">= 6", "< 12", 12))
            .cql(delete(1, ">= 6", "< 12", 11));
        i.at(T0).cql(delete(2, ">= 6", "< 12", 12));
        i.at(T0 + 5000).cql(delete(3, ">= 6", "< 12", 12));
    })
    .input(|i| {
        i.at(T0)
            .cql(delete(0, "> 10", "< 15", 13))
            .cql(delete(3, "> 7", "< 10", 20));
    })
    .merge_at(T0 + 6000, 3000)
}

fn range_between_inputs_single() -> Scenario {
    Scenario::new(
        "range_single_source",
        "partitions with ranges that exist in one input only",
    )
    .schema(TABLE)
    .input(|i| {
        i.all(rows(1, 0..10, 10))
            .cql(delete(1, "> 2", "< 5", 9))
            .cql(delete(1, ">= 5", "<= 7", 11));
    })
    .input(|i| {
        i.all(rows(2, 0..10, 10))
            .cql(delete(2, "> 2", "< 5", 11))
            .cql(delete(2, ">= 5", "<= 7", 11));
    })
}

fn all_purged() -> Scenario {
    let mut scenario = Scenario::new("all_purged", "nothing is left: there must be no output")
        .schema(TABLE)
        .input(|i| {
            i.all(rows(1, 0..5, 10))
                .all(rows(2, 0..5, 10))
                .all(rows(3, 0..2, 10));
            i.cql("INSERT INTO $t (k, c, v) VALUES (4, 1, 'brief') USING TIMESTAMP 10 AND TTL 60");
        })
        .input(|i| {
            i.cql("DELETE FROM $t USING TIMESTAMP 20 WHERE k = 1")
                .cql(delete(2, ">= 0", "", 20));
            i.cql("DELETE FROM $t USING TIMESTAMP 20 WHERE k = 3 AND c = 0");
            i.cql("DELETE FROM $t USING TIMESTAMP 20 WHERE k = 3 AND c = 1");
        })
        .purge_all();
    scenario.empty = true;
    scenario
}

fn fully_expired_input() -> Scenario {
    Scenario::new(
        "fully_expired_input",
        "an input that is wholly expired may be dropped unread",
    )
    .schema(TABLE)
    .input(|i| {
        i.all((0..5).map(|c| {
            format!(
                "INSERT INTO $t (k, c, v) VALUES (1, {c}, 'brief') USING TIMESTAMP 10 AND TTL 60"
            )
        }));
    })
    .input(|i| {
        i.all(rows(1, 3..8, 20));
    })
    .merge_at(T0 + 5000, 1000)
}

fn purge_held_back() -> Scenario {
    Scenario::new(
        "purge_held_back",
        "an SSTable outside the merge holds back tombstones newer than its data",
    )
    .schema(TABLE)
    .input(|i| {
        for k in 0..4 {
            i.all(rows(k, 0..4, 10));
        }
    })
    .input(|i| {
        i.cql("DELETE FROM $t USING TIMESTAMP 40 WHERE k = 0")
            .cql(delete(1, ">= 0", "", 60));
        i.cql("DELETE FROM $t USING TIMESTAMP 60 WHERE k = 2 AND c = 1");
        i.cql("DELETE FROM $t USING TIMESTAMP 60 WHERE k = 3");
    })
    .input(|i| {
        i.all(rows(0, 0..2, 50))
            .all(rows(1, 0..2, 50))
            .all(rows(2, 1..2, 50));
    })
    .purge_all()
    .others(1)
}

fn gc_boundary() -> Scenario {
    Scenario::new(
        "gc_boundary",
        "deletion times just before, at and after gc_before: the comparison is strict",
    )
    .schema(TABLE)
    .input(|i| {
        i.all(rows(1, 0..10, 10))
            .all(rows(2, 0..3, 10))
            .all(rows(3, 0..3, 10))
            .all(rows(4, 0..3, 10));
    })
    .input(|i| {
        for (k, second) in [(2, 99), (3, 100), (4, 101)] {
            i.at(T0 + second);
            i.cql(format!("DELETE FROM $t USING TIMESTAMP 20 WHERE k = {k}"));
            i.cql(format!(
                "DELETE FROM $t USING TIMESTAMP 20 WHERE k = 1 AND c = {k}"
            ));
            i.cql(format!(
                "DELETE v FROM $t USING TIMESTAMP 20 WHERE k = 1 AND c = {}",
                k + 3
            ));
            i.cql(delete(
                5,
                &format!("> {}", k * 10),
                &format!("< {}", k * 10 + 5),
                20,
            ));
        }
    })
    .merge_at(T0 + 1000, 900)
}

fn no_purge() -> Scenario {
    Scenario::new(
        "no_purge",
        "purging off: every deletion stays, expired cells become tombstones",
    )
    .schema(TABLE)
    .input(|i| {
        i.all(rows(1, 0..5, 10)).all(rows(2, 0..5, 10));
        i.cql("INSERT INTO $t (k, c, v) VALUES (3, 1, 'brief') USING TIMESTAMP 10 AND TTL 60");
    })
    .input(|i| {
        i.cql("DELETE FROM $t USING TIMESTAMP 20 WHERE k = 1")
            .cql(delete(2, "> 1", "< 3", 20));
        i.cql("DELETE FROM $t USING TIMESTAMP 20 WHERE k = 2 AND c = 4");
    })
    .merge_at(T0 + 50_000_000, 0)
    .no_purge()
}

fn deletions_only() -> Scenario {
    Scenario::new(
        "deletions_only",
        "no live data at all, nothing old enough to purge",
    )
    .schema(TABLE)
    .input(|i| {
        i.cql("DELETE FROM $t USING TIMESTAMP 20 WHERE k = 1")
            .cql(delete(2, "> 1", "< 3", 20));
    })
    .input(|i| {
        i.cql("DELETE FROM $t USING TIMESTAMP 21 WHERE k = 3 AND c = 4")
            .cql(delete(2, ">= 2", "", 19));
        i.cql("DELETE v FROM $t USING TIMESTAMP 21 WHERE k = 4 AND c = 4");
    })
}
