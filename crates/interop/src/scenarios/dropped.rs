//! Columns that were dropped, and types that have changed, since the inputs were written.

use super::{Input, Scenario};

pub(super) fn scenarios() -> Vec<Scenario> {
    [
        simple(),
        readded(),
        emptied(),
        complex(),
        complex_readded(),
        statics(),
        no_statics_left(),
        dying(),
        every_type(),
        counters(),
        one_input(),
        udt_grown(),
    ]
    .map(Scenario::hides_cells)
    .into()
}

fn simple() -> Scenario {
    Scenario::new(
        "dropped_simple",
        "cells up to the very microsecond of the drop go, later ones stay",
    )
    .schema("CREATE TABLE $t (k int, c int, a text, b text, d int, PRIMARY KEY (k, c))")
    .input(|i| {
        for (c, ts) in [(1, 9), (2, 10), (3, 11), (4, 12)] {
            i.cql(format!(
                "INSERT INTO $t (k, c, a, b, d) VALUES (1, {c}, 'a', 'b', {c}) USING TIMESTAMP {ts}"
            ));
        }
    })
    .input(|i| {
        i.cql("ALTER TABLE $t DROP b USING TIMESTAMP 10");
        i.cql("ALTER TABLE $t DROP d USING TIMESTAMP 11");
        for c in 2..7 {
            i.cql(format!(
                "INSERT INTO $t (k, c, a) VALUES (1, {c}, 'later') USING TIMESTAMP 13"
            ));
        }
    })
}

fn readded() -> Scenario {
    Scenario::new(
        "dropped_readded",
        "a column that is dropped twice and added again keeps what is newer than the last drop",
    )
    .schema("CREATE TABLE $t (k int, c int, a text, b text, PRIMARY KEY (k, c))")
    .input(|i| {
        rows(i, 0..4, "b", 10);
    })
    .input(|i| {
        i.cql("ALTER TABLE $t DROP b USING TIMESTAMP 10");
        i.cql("ALTER TABLE $t ADD b text");
        rows(i, 1..5, "b", 20);
        rows(i, 5..7, "b", 31);
    })
    .input(|i| {
        i.cql("ALTER TABLE $t DROP b USING TIMESTAMP 30");
        i.cql("ALTER TABLE $t ADD b text");
        rows(i, 2..4, "b", 31);
        rows(i, 4..5, "b", 29);
    })
}

fn rows(input: &mut Input, clusterings: std::ops::Range<i32>, column: &str, timestamp: i64) {
    for c in clusterings {
        input.cql(format!(
            "INSERT INTO $t (k, c, {column}) VALUES (1, {c}, 'at {timestamp}') USING TIMESTAMP {timestamp}"
        ));
    }
}

/// Rows without liveness, static rows and partitions that have nothing else.
fn emptied() -> Scenario {
    Scenario::new(
        "dropped_emptied",
        "rows and partitions that held nothing but a dropped column",
    )
    .schema("CREATE TABLE $t (k int, c int, a text, b text, s text static, r text static, PRIMARY KEY (k, c))")
    .input(|i| {
        for k in 0..4 {
            i.cql(format!("UPDATE $t USING TIMESTAMP 10 SET b = 'b' WHERE k = {k} AND c = 1"));
            i.cql(format!("UPDATE $t USING TIMESTAMP 10 SET s = 's' WHERE k = {k}"));
        }
        i.cql("UPDATE $t USING TIMESTAMP 10 SET r = 'r' WHERE k = 1");
        i.cql("INSERT INTO $t (k, c, b) VALUES (2, 2, 'alive') USING TIMESTAMP 10");
        i.cql("DELETE FROM $t USING TIMESTAMP 8 WHERE k = 3 AND c > 3 AND c < 9");
    })
    .input(|i| {
        i.cql("ALTER TABLE $t DROP b USING TIMESTAMP 10");
        i.cql("ALTER TABLE $t DROP s USING TIMESTAMP 10");
        i.cql("UPDATE $t USING TIMESTAMP 11 SET a = 'a' WHERE k = 1 AND c = 1");
        i.cql("UPDATE $t USING TIMESTAMP 11 SET a = 'a' WHERE k = 9 AND c = 1");
    })
}

fn complex() -> Scenario {
    Scenario::new(
        "dropped_complex",
        "collections go with their deletions, some of which are newer than the drop",
    )
    .schema("CREATE TABLE $t (k int, c int, a text, m map<int, text>, n set<int>, z list<int>, PRIMARY KEY (k, c))")
    .input(|i| {
        for (c, ts) in [(1, 9), (2, 10), (3, 11), (4, 12)] {
            i.cql(format!(
                "INSERT INTO $t (k, c, m, n, z) VALUES (1, {c}, {{1: 'x', 2: 'y'}}, {{1, 2}}, [1]) USING TIMESTAMP {ts}"
            ));
            i.cql(format!(
                "UPDATE $t USING TIMESTAMP {ts} SET n = n + {{7}} WHERE k = 2 AND c = {c}"
            ));
            i.cql(format!("DELETE m FROM $t USING TIMESTAMP {ts} WHERE k = 3 AND c = {c}"));
        }
    })
    .input(|i| {
        i.cql("ALTER TABLE $t DROP m USING TIMESTAMP 10");
        i.cql("ALTER TABLE $t DROP n USING TIMESTAMP 10");
        for c in 1..5 {
            i.cql(format!("INSERT INTO $t (k, c, a, z) VALUES (1, {c}, 'a', [2]) USING TIMESTAMP 20"));
        }
    })
}

fn complex_readded() -> Scenario {
    Scenario::new(
        "dropped_complex_readded",
        "cells of a collection older and newer than the drop in one row",
    )
    .schema("CREATE TABLE $t (k int, c int, a text, m map<int, text>, PRIMARY KEY (k, c))")
    .input(|i| {
        for c in 1..4 {
            i.cql(format!("UPDATE $t USING TIMESTAMP 10 SET m = m + {{1: 'old', 2: 'old'}} WHERE k = 1 AND c = {c}"));
        }
        i.cql("UPDATE $t USING TIMESTAMP 10 SET m = {5: 'old'} WHERE k = 1 AND c = 4");
    })
    .input(|i| {
        i.cql("ALTER TABLE $t DROP m USING TIMESTAMP 10");
        i.cql("ALTER TABLE $t ADD m map<int, text>");
        i.cql("UPDATE $t USING TIMESTAMP 11 SET m = m + {2: 'new', 3: 'new'} WHERE k = 1 AND c = 2");
        i.cql("UPDATE $t USING TIMESTAMP 11 SET m = {9: 'whole'} WHERE k = 1 AND c = 3");
        i.cql("UPDATE $t USING TIMESTAMP 12 SET m = {9: 'whole'} WHERE k = 1 AND c = 4");
    })
}

fn statics() -> Scenario {
    Scenario::new("dropped_statics", "static columns, simple and complex")
        .schema("CREATE TABLE $t (k int, c int, a text, s text static, m map<int, int> static, n set<int> static, PRIMARY KEY (k, c))")
        .input(|i| {
            for k in 0..4 {
                i.cql(format!("INSERT INTO $t (k, s, m, n) VALUES ({k}, 's', {{1: 1}}, {{1}}) USING TIMESTAMP {}", 9 + k));
            }
            i.cql("INSERT INTO $t (k, c, a) VALUES (1, 1, 'a') USING TIMESTAMP 10");
        })
        .input(|i| {
            i.cql("ALTER TABLE $t DROP s USING TIMESTAMP 10");
            i.cql("ALTER TABLE $t DROP m USING TIMESTAMP 11");
            i.cql("ALTER TABLE $t ADD m map<int, int> static");
            i.cql("UPDATE $t USING TIMESTAMP 12 SET m = m + {2: 2} WHERE k = 0");
            i.cql("UPDATE $t USING TIMESTAMP 12 SET n = n + {2} WHERE k = 3");
        })
}

fn no_statics_left() -> Scenario {
    Scenario::new(
        "dropped_all_statics",
        "the last static columns are dropped: even cells newer than the drop are dropped",
    )
    .schema("CREATE TABLE $t (k int, c int, a text, s text static, m map<int, int> static, PRIMARY KEY (k, c))")
    .input(|i| {
        for k in 0..5 {
            i.cql(format!("INSERT INTO $t (k, s, m) VALUES ({k}, 's', {{1: 1}}) USING TIMESTAMP {}", 9 + k));
        }
        i.cql("INSERT INTO $t (k, c, a) VALUES (1, 1, 'a') USING TIMESTAMP 10");
        i.cql("INSERT INTO $t (k, c, a) VALUES (3, 1, 'a') USING TIMESTAMP 10");
    })
    .input(|i| {
        i.cql("DELETE s FROM $t USING TIMESTAMP 13 WHERE k = 2");
        i.cql("INSERT INTO $t (k, c, a) VALUES (3, 2, 'a') USING TIMESTAMP 10");
    })
    .input(|i| {
        i.cql("ALTER TABLE $t DROP s USING TIMESTAMP 10");
        i.cql("ALTER TABLE $t DROP m USING TIMESTAMP 10");
        i.cql("INSERT INTO $t (k, c, a) VALUES (1, 2, 'a') USING TIMESTAMP 12");
    })
}

fn dying() -> Scenario {
    Scenario::new("dropped_dying", "tombstones and expiring cells of dropped columns")
        .schema("CREATE TABLE $t (k int, c int, a text, b text, m map<int, text>, n set<int>, PRIMARY KEY (k, c))")
        .input(|i| {
            i.cql("DELETE b FROM $t USING TIMESTAMP 10 WHERE k = 1 AND c = 1");
            i.cql("DELETE b FROM $t USING TIMESTAMP 11 WHERE k = 1 AND c = 2");
            i.cql("DELETE m[1] FROM $t USING TIMESTAMP 10 WHERE k = 1 AND c = 3");
            i.cql("UPDATE $t USING TIMESTAMP 10 AND TTL 500 SET b = 'expired' WHERE k = 1 AND c = 4");
            i.cql("UPDATE $t USING TIMESTAMP 10 AND TTL 5000 SET b = 'lives' WHERE k = 1 AND c = 5");
            i.cql("UPDATE $t USING TIMESTAMP 11 AND TTL 5000 SET b = 'lives' WHERE k = 1 AND c = 6");
            i.cql("INSERT INTO $t (k, c, b) VALUES (1, 7, 'b') USING TIMESTAMP 10 AND TTL 500");
        })
        .input(|i| {
            i.cql("ALTER TABLE $t DROP b USING TIMESTAMP 10");
            i.cql("ALTER TABLE $t DROP m USING TIMESTAMP 10");
            i.cql("INSERT INTO $t (k, c, a, n) VALUES (1, 9, 'a', {1}) USING TIMESTAMP 12");
        })
        .purge_all()
}

fn every_type() -> Scenario {
    Scenario::new(
        "dropped_types",
        "dropped columns whose types hold UDTs, which the schema has as tuples",
    )
    .schema("CREATE TYPE $ks.u (x int, y text)")
    .schema(
        "CREATE TABLE $t (k int, c int, keep text, \"Quoted \"\"col\" int, f frozen<u>, \
         l list<frozen<u>>, uu u, m map<text, frozen<list<frozen<u>>>>, t tuple<int, frozen<u>>, v vector<float, 2>, \
         zz set<int>, PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY (c DESC)",
    )
    .input(|i| {
        for c in 0..3 {
            i.cql(format!(
                "INSERT INTO $t (k, c, keep, \"Quoted \"\"col\", f, uu, m, t, v) VALUES (1, {c}, 'keep', 1, {{x: 1, y: 'y'}}, {{x: 4, y: 'u'}}, \
                 {{'k': [{{x: 2, y: 'z'}}]}}, (1, {{x: 3, y: ''}}), [1, 2]) USING TIMESTAMP {}",
                9 + c
            ));
        }
    })
    .input(|i| {
        for column in ["\"Quoted \"\"col\"", "f", "l", "m", "t", "v"] {
            i.cql(format!("ALTER TABLE $t DROP {column} USING TIMESTAMP 10"));
        }
        i.cql("INSERT INTO $t (k, c, keep) VALUES (1, 1, 'later') USING TIMESTAMP 12");
    })
}

fn counters() -> Scenario {
    Scenario::new("dropped_counters", "a dropped counter, and one that stays")
        .schema("CREATE TABLE $t (k int, c int, a counter, b counter, PRIMARY KEY (k, c))")
        .input(|i| {
            i.cql("UPDATE $t SET a = a + 1, b = b + 1 WHERE k = 1 AND c = 1");
            i.cql("UPDATE $t SET b = b + 1 WHERE k = 1 AND c = 2");
        })
        .input(|i| {
            i.cql("ALTER TABLE $t DROP b USING TIMESTAMP 4000000000000000");
            i.cql("UPDATE $t SET a = a + 1 WHERE k = 1 AND c = 1");
        })
}

fn one_input() -> Scenario {
    Scenario::new("dropped_one_input", "a single input, nothing to merge with")
        .schema("CREATE TABLE $t (k int, c int, a text, b text, m set<int>, n set<int>, PRIMARY KEY (k, c))")
        .input(|i| {
            for c in 0..5 {
                i.cql(format!("INSERT INTO $t (k, c, a, b, m) VALUES (1, {c}, 'a', 'b', {{1}}) USING TIMESTAMP {}", 8 + c));
                i.cql(format!("UPDATE $t USING TIMESTAMP 10 SET b = 'only' WHERE k = 2 AND c = {c}"));
            }
            i.cql("INSERT INTO $t (k, c, a) VALUES (3, 1, 'untouched') USING TIMESTAMP 1");
        })
        .after("ALTER TABLE $t DROP b USING TIMESTAMP 10")
        .after("ALTER TABLE $t DROP m USING TIMESTAMP 10")
}

fn udt_grown() -> Scenario {
    Scenario::new("udt_grown", "UDTs that have got a field between flushes")
        .schema("CREATE TYPE $ks.u (x int)")
        .schema("CREATE TABLE $t (k int, c int, f frozen<u>, u u, l list<frozen<u>>, PRIMARY KEY (k, c))")
        .input(|i| {
            i.cql("INSERT INTO $t (k, c, f, u) VALUES (1, 1, {x: 1}, {x: 1}) USING TIMESTAMP 10");
            i.cql("INSERT INTO $t (k, c, f, u) VALUES (1, 2, {x: 1}, {x: 1}) USING TIMESTAMP 10");
        })
        .input(|i| {
            i.cql("ALTER TYPE $ks.u ADD y text");
            i.cql("INSERT INTO $t (k, c, f) VALUES (1, 1, {x: 1, y: 'y'}) USING TIMESTAMP 11");
            i.cql("UPDATE $t USING TIMESTAMP 11 SET u.y = 'y' WHERE k = 1 AND c = 1");
        })
        .after("ALTER TYPE $ks.u ADD z text")
}
