//! Numbers of columns and headers that differ between inputs.

use super::{Scenario, list};

pub(super) fn scenarios() -> Vec<Scenario> {
    let mut every: Vec<Scenario> = [63, 64, 65, 130].into_iter().map(column_count).collect();
    every.extend([
        statics(),
        static_only(),
        static_many(),
        column_added(),
        column_dropped(),
        columns_disjoint(),
        complex_added(),
    ]);
    every
}

/// Below 64 columns a subset is a bitmap, from 64 on a list of the present or of the missing ones.
fn column_count(count: usize) -> Scenario {
    let columns = list((0..count).map(|n| {
        let kind = ["int", "text", "tinyint", "map<int, int>"][n % 4];
        format!("c{n:03} {kind}")
    }));
    let value = |n: usize| match n % 4 {
        0 => format!("{n}"),
        1 => format!("'text {n}'"),
        2 => format!("{}", n % 100),
        _ => format!("{{{n}: 1}}"),
    };
    let insert = |c: usize, ts: usize, wanted: &dyn Fn(usize) -> bool| {
        let chosen: Vec<usize> = (0..count).filter(|n| wanted(*n)).collect();
        let names: String = chosen.iter().map(|n| format!(", c{n:03}")).collect();
        let values: String = chosen.iter().map(|n| format!(", {}", value(*n))).collect();
        format!("INSERT INTO $t (k, r{names}) VALUES (1, {c}{values}) USING TIMESTAMP {ts}")
    };
    Scenario::new(
        format!("columns_{count}"),
        "full, nearly full, half, sparse and single column rows",
    )
    .schema(format!(
        "CREATE TABLE $t (k int, r int, {columns}, PRIMARY KEY (k, r))"
    ))
    .input(|i| {
        i.cql(insert(0, 10, &|_| true));
        i.cql(insert(1, 10, &|n| n != 5));
        i.cql(insert(2, 10, &|n| n % 2 == 0));
        i.cql(insert(3, 10, &|n| n % 2 == 1));
        i.cql(insert(4, 10, &|n| n % 16 == 3));
        i.cql(insert(5, 10, &|n| n == count - 1));
        i.cql(insert(6, 10, &|_| false));
        i.cql(insert(7, 10, &|n| n < count / 2));
        i.cql(insert(8, 10, &|n| n <= count / 2));
        i.cql(insert(9, 10, &|n| n + 1 < count));
    })
    .input(|i| {
        i.cql(insert(1, 11, &|n| n == 5));
        i.cql(insert(2, 11, &|n| n % 2 == 1));
        i.cql(insert(4, 11, &|n| n % 16 == 5));
        i.cql(insert(5, 11, &|n| n == 0));
        i.cql(insert(7, 9, &|n| n >= count / 3));
        i.cql(insert(10, 9, &|n| n % 7 == 0));
        i.cql("DELETE FROM $t USING TIMESTAMP 9 WHERE k = 1 AND r = 3");
    })
}

fn statics() -> Scenario {
    Scenario::new("statics", "static rows with rows, deleted, overwritten and expiring")
        .schema("CREATE TABLE $t (k int, c int, s1 text static, s2 int static, s3 text static, v int, PRIMARY KEY (k, c))")
        .input(|i| {
            for k in 0..6 {
                i.cql(format!("INSERT INTO $t (k, s1, s2) VALUES ({k}, 's{k}', {k}) USING TIMESTAMP 10"));
                i.cql(format!("INSERT INTO $t (k, c, v) VALUES ({k}, 1, 1) USING TIMESTAMP 10"));
            }
        })
        .input(|i| {
            i.cql("DELETE s1 FROM $t USING TIMESTAMP 11 WHERE k = 0");
            i.cql("DELETE s1, s2 FROM $t USING TIMESTAMP 11 WHERE k = 1");
            i.cql("UPDATE $t USING TIMESTAMP 11 AND TTL 500 SET s3 = 'expired' WHERE k = 2");
            i.cql("UPDATE $t USING TIMESTAMP 11 AND TTL 5000 SET s1 = 'lives' WHERE k = 3");
            i.cql("DELETE FROM $t USING TIMESTAMP 11 WHERE k = 4");
            i.cql("UPDATE $t USING TIMESTAMP 9 SET s1 = 'older', s3 = 'new' WHERE k = 5");
        })
}

fn static_only() -> Scenario {
    Scenario::new(
        "static_only",
        "partitions that are only a static row, and static columns never written",
    )
    .schema("CREATE TABLE $t (k int, c int, s text static, v int, PRIMARY KEY (k, c))")
    .input(|i| {
        i.cql("INSERT INTO $t (k, s) VALUES (1, 'only') USING TIMESTAMP 10");
        i.cql("INSERT INTO $t (k, s) VALUES (2, 'gone') USING TIMESTAMP 10");
        i.cql("INSERT INTO $t (k, c, v) VALUES (3, 1, 1) USING TIMESTAMP 10");
    })
    .input(|i| {
        i.cql("INSERT INTO $t (k, c, v) VALUES (4, 1, 1) USING TIMESTAMP 10");
        i.cql("DELETE s FROM $t USING TIMESTAMP 11 WHERE k = 2");
        i.cql("INSERT INTO $t (k, c, v) VALUES (3, 2, 2) USING TIMESTAMP 10");
    })
}

fn static_many() -> Scenario {
    let columns = list((0..70).map(|n| format!("s{n:02} int static")));
    Scenario::new(
        "static_many",
        "more than 64 static columns, and an empty static row among them",
    )
    .schema(format!(
        "CREATE TABLE $t (k int, c int, {columns}, v int, PRIMARY KEY (k, c))"
    ))
    .input(|i| {
        i.cql("INSERT INTO $t (k, s00, s33, s69) VALUES (1, 1, 2, 3) USING TIMESTAMP 10");
        i.cql("INSERT INTO $t (k, c, v) VALUES (2, 1, 1) USING TIMESTAMP 10");
    })
    .input(|i| {
        let names = list((0..70).map(|n| format!("s{n:02}")));
        let values = list((0..70).map(|n| n.to_string()));
        i.cql(format!(
            "INSERT INTO $t (k, {names}) VALUES (3, {values}) USING TIMESTAMP 10"
        ));
        i.cql("DELETE s33 FROM $t USING TIMESTAMP 11 WHERE k = 1");
    })
}

fn column_added() -> Scenario {
    Scenario::new(
        "column_added",
        "ALTER TABLE ADD between flushes: headers differ",
    )
    .schema("CREATE TABLE $t (k int, c int, m text, PRIMARY KEY (k, c))")
    .input(|i| {
        i.all(
            (0..5).map(|c| {
                format!("INSERT INTO $t (k, c, m) VALUES (1, {c}, 'm') USING TIMESTAMP 10")
            }),
        );
    })
    .input(|i| {
        i.cql("ALTER TABLE $t ADD (a int, z int, s text static)");
        i.all((2..8).map(|c| {
            format!(
                "INSERT INTO $t (k, c, a, z, s) VALUES (1, {c}, {c}, {c}, 's') USING TIMESTAMP 11"
            )
        }));
        i.cql("INSERT INTO $t (k, c, m) VALUES (2, 1, 'later') USING TIMESTAMP 12");
    })
    .input(|i| {
        i.cql("ALTER TABLE $t ADD n map<int, int>");
        i.cql("INSERT INTO $t (k, c, n, m) VALUES (1, 3, {1: 1}, 'third') USING TIMESTAMP 13");
    })
}

// Cassandra 6.0-alpha2 fails with a NullPointerException in Row.Merger when the last complex column was dropped and its
// cells are kept, hence the second one.
fn column_dropped() -> Scenario {
    Scenario::new("column_dropped", "a dropped column whose cells are newer than the drop: they stay")
        .schema("CREATE TABLE $t (k int, c int, a text, b text, d map<int, int>, e set<int>, PRIMARY KEY (k, c))")
        .input(|i| {
            i.all((0..5).map(|c| {
                format!("INSERT INTO $t (k, c, a, b, d) VALUES (1, {c}, 'a', 'b', {{1: {c}}}) USING TIMESTAMP 10")
            }));
        })
        .input(|i| {
            i.cql("ALTER TABLE $t DROP b USING TIMESTAMP 1");
            i.cql("ALTER TABLE $t DROP d USING TIMESTAMP 1");
            i.all((3..8).map(|c| format!("INSERT INTO $t (k, c, a) VALUES (1, {c}, 'new') USING TIMESTAMP 11")));
        })
}

fn columns_disjoint() -> Scenario {
    Scenario::new(
        "columns_disjoint",
        "inputs that wrote different columns of one table",
    )
    .schema("CREATE TABLE $t (k int, c int, a text, b text, d int, e set<int>, PRIMARY KEY (k, c))")
    .input(|i| {
        i.all(
            (0..5).map(|c| {
                format!("UPDATE $t USING TIMESTAMP 10 SET b = 'b' WHERE k = 1 AND c = {c}")
            }),
        );
    })
    .input(|i| {
        i.all((0..5).map(|c| {
            format!(
                "UPDATE $t USING TIMESTAMP 10 SET a = 'a', e = e + {{1}} WHERE k = 1 AND c = {c}"
            )
        }));
    })
    .input(|i| {
        i.all(
            (2..7)
                .map(|c| format!("UPDATE $t USING TIMESTAMP 9 SET d = 1 WHERE k = 1 AND c = {c}")),
        );
    })
}

fn complex_added() -> Scenario {
    Scenario::new("complex_added", "one input without, one with complex columns; deletion bases far apart")
        .schema("CREATE TABLE $t (k int, c int, v int, m map<int, int>, PRIMARY KEY (k, c))")
        .input(|i| {
            i.all((0..5).map(|c| format!("INSERT INTO $t (k, c, v) VALUES (1, {c}, {c}) USING TIMESTAMP 1600000000000000")));
        })
        .input(|i| {
            i.all((0..5).map(|c| format!("INSERT INTO $t (k, c, m) VALUES (1, {c}, {{1: 2}}) USING TIMESTAMP 1700000000000000")));
        })
}
