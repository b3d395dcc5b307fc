//! Numbers of columns and headers that differ between inputs.

use super::{Scenario, list, text};

pub(super) fn scenarios() -> Vec<Scenario> {
    let mut every: Vec<Scenario> = [63, 64, 65, 130].into_iter().map(column_count).collect();
    every.push(static_many());
    every.extend(text::scenarios(COLUMNS));
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

const COLUMNS: &str = r#"
statics: static rows with rows, deleted, overwritten and expiring
CREATE TABLE $t (k int, c int, s1 text static, s2 int static, s3 text static, v int, PRIMARY KEY (k, c))
input
for k in 0..6:
    INSERT INTO $t (k, s1, s2) VALUES ($k, 's$k', $k) USING TIMESTAMP 10
    INSERT INTO $t (k, c, v) VALUES ($k, 1, 1) USING TIMESTAMP 10
input
DELETE s1 FROM $t USING TIMESTAMP 11 WHERE k = 0
DELETE s1, s2 FROM $t USING TIMESTAMP 11 WHERE k = 1
UPDATE $t USING TIMESTAMP 11 AND TTL 500 SET s3 = 'expired' WHERE k = 2
UPDATE $t USING TIMESTAMP 11 AND TTL 5000 SET s1 = 'lives' WHERE k = 3
DELETE FROM $t USING TIMESTAMP 11 WHERE k = 4
UPDATE $t USING TIMESTAMP 9 SET s1 = 'older', s3 = 'new' WHERE k = 5

static_only: partitions that are only a static row, and static columns never written
CREATE TABLE $t (k int, c int, s text static, v int, PRIMARY KEY (k, c))
input
INSERT INTO $t (k, s) VALUES (1, 'only') USING TIMESTAMP 10
INSERT INTO $t (k, s) VALUES (2, 'gone') USING TIMESTAMP 10
INSERT INTO $t (k, c, v) VALUES (3, 1, 1) USING TIMESTAMP 10
input
INSERT INTO $t (k, c, v) VALUES (4, 1, 1) USING TIMESTAMP 10
DELETE s FROM $t USING TIMESTAMP 11 WHERE k = 2
INSERT INTO $t (k, c, v) VALUES (3, 2, 2) USING TIMESTAMP 10

column_names: names that do not begin with an ASCII character precede the others
CREATE TABLE $t (k int, c int, a int, "é" int, "aé" int, "Z" int, "ÿm" map<int, int>, "日本" int, m map<int, int>, "éa" int static, s int static, PRIMARY KEY (k, c))
input
for c in 0..5: INSERT INTO $t (k, c, a, "é", "aé", "Z", "ÿm", "日本", m) VALUES (1, $c, 1, 2, 3, 4, {5: 5}, 6, {7: 7}) USING TIMESTAMP 10
INSERT INTO $t (k, "éa", s) VALUES (1, 8, 9) USING TIMESTAMP 10
input
for c in 2..7: INSERT INTO $t (k, c, a, "é") VALUES (1, $c, 21, 22) USING TIMESTAMP 11
for c in 3..9: INSERT INTO $t (k, c, "é", m) VALUES (1, $c, 32, {37: 37}) USING TIMESTAMP 12
INSERT INTO $t (k, s) VALUES (1, 19) USING TIMESTAMP 11

column_added: ALTER TABLE ADD between flushes: headers differ
CREATE TABLE $t (k int, c int, m text, PRIMARY KEY (k, c))
input
for c in 0..5: INSERT INTO $t (k, c, m) VALUES (1, $c, 'm') USING TIMESTAMP 10
input
ALTER TABLE $t ADD (a int, z int, s text static)
for c in 2..8: INSERT INTO $t (k, c, a, z, s) VALUES (1, $c, $c, $c, 's') USING TIMESTAMP 11
INSERT INTO $t (k, c, m) VALUES (2, 1, 'later') USING TIMESTAMP 12
input
ALTER TABLE $t ADD n map<int, int>
INSERT INTO $t (k, c, n, m) VALUES (1, 3, {1: 1}, 'third') USING TIMESTAMP 13

column_dropped: a dropped column whose cells are newer than the drop: they stay
# 6.0-alpha2 fails with a NullPointerException in Row.Merger when the last complex column was dropped and its cells are
# kept, hence the second one.
CREATE TABLE $t (k int, c int, a text, b text, d map<int, int>, e set<int>, PRIMARY KEY (k, c))
input
for c in 0..5: INSERT INTO $t (k, c, a, b, d) VALUES (1, $c, 'a', 'b', {1: $c}) USING TIMESTAMP 10
input
ALTER TABLE $t DROP b USING TIMESTAMP 1
ALTER TABLE $t DROP d USING TIMESTAMP 1
for c in 3..8: INSERT INTO $t (k, c, a) VALUES (1, $c, 'new') USING TIMESTAMP 11

columns_disjoint: inputs that wrote different columns of one table
CREATE TABLE $t (k int, c int, a text, b text, d int, e set<int>, PRIMARY KEY (k, c))
input
for c in 0..5: UPDATE $t USING TIMESTAMP 10 SET b = 'b' WHERE k = 1 AND c = $c
input
for c in 0..5: UPDATE $t USING TIMESTAMP 10 SET a = 'a', e = e + {1} WHERE k = 1 AND c = $c
input
for c in 2..7: UPDATE $t USING TIMESTAMP 9 SET d = 1 WHERE k = 1 AND c = $c

complex_added: one input without, one with complex columns; deletion bases far apart
CREATE TABLE $t (k int, c int, v int, m map<int, int>, PRIMARY KEY (k, c))
input
for c in 0..5: INSERT INTO $t (k, c, v) VALUES (1, $c, $c) USING TIMESTAMP 1600000000000000
input
for c in 0..5: INSERT INTO $t (k, c, m) VALUES (1, $c, {1: 2}) USING TIMESTAMP 1700000000000000
"#;
