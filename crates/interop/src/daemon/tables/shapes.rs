//! Shapes of partitions: narrow, wide, static, counted, expiring, deleted.

use super::{Table, WIDE, noise, text, time};

pub(super) fn tables() -> Vec<Table> {
    vec![
        kv(),
        wide(),
        key_only(),
        statics(),
        static_only(),
        counters(),
        ttl(),
        deletions(),
        gone(),
        mixed_case(),
    ]
}

/// Half of the keys of a round are those of the one before.
fn kv() -> Table {
    Table::new(
        "kv",
        "CREATE TABLE $t (k text PRIMARY KEY, v text)",
        |round, writes| {
            for n in 0..240 {
                let key = round * 120 + n;
                let (value, time) = (text(round * 1000 + n, 300), time(round, n));
                writes.push(format!(
                    "INSERT INTO $t (k, v) VALUES ('key {key}', '{value}') USING TIMESTAMP {time}"
                ));
            }
        },
    )
}

/// Partitions beyond the column index, with ranges deleted inside of them, in both directions.
fn wide() -> Table {
    let create =
        "CREATE TABLE $t (k int, a int, b text, v blob, s text STATIC, PRIMARY KEY (k, a, b))
        WITH CLUSTERING ORDER BY (a DESC, b ASC)";
    Table::new(WIDE, create, |round, writes| {
        for n in 0..120 {
            let (key, a, time) = (n % 2, n / 2 + round * 20, time(round, n));
            let (b, value) = (text(n, 20), noise(round * 500 + n, 900));
            writes.push(format!(
                "INSERT INTO $t (k, a, b, v) VALUES ({key}, {a}, '{b}', {value}) USING TIMESTAMP {time}"
            ));
        }
        let (from, time) = (round * 17, time(round, 500));
        writes.push(format!(
            "DELETE FROM $t USING TIMESTAMP {time} WHERE k = 0 AND a > {from} AND a <= {}",
            from + 9
        ));
        writes.push(format!("UPDATE $t USING TIMESTAMP {time} SET s = 'round {round}' WHERE k = 1"));
    })
    .query("SELECT a, b FROM $t WHERE k = 0 AND a > 10 AND a < 60")
    .query("SELECT a, b, WRITETIME(v) FROM $t WHERE k = 1 ORDER BY a ASC, b DESC")
}

fn key_only() -> Table {
    let create = "CREATE TABLE $t (k int, c timeuuid, PRIMARY KEY (k, c))";
    Table::rows("key_only", create, 60, |round, n| {
        let time = time(round, n);
        format!(
            "INSERT INTO $t (k, c) VALUES ({}, {:08x}-0000-1000-8000-0123456789ab) USING TIMESTAMP {time}",
            n % 7,
            n + round * 30
        )
    })
}

fn statics() -> Table {
    let create = "CREATE TABLE $t (k int, c int, s text STATIC, m map<int, text> STATIC, v int, PRIMARY KEY (k, c))";
    Table::new("statics", create, |round, writes| {
        for n in 0..40 {
            let (key, time) = (n % 8, time(round, n));
            writes.push(format!(
                "INSERT INTO $t (k, c, v, s) VALUES ({key}, {n}, {round}, 'static {round}') USING TIMESTAMP {time}"
            ));
            writes.push(format!(
                "UPDATE $t USING TIMESTAMP {time} SET m[{n}] = 'round {round}' WHERE k = {key}"
            ));
        }
        let time = time(round, 100);
        writes.push(format!("DELETE s FROM $t USING TIMESTAMP {time} WHERE k = {round}"));
        writes.push(format!("DELETE m[{round}] FROM $t USING TIMESTAMP {time} WHERE k = {round}"));
    })
    .query("SELECT DISTINCT k, s, m FROM $t")
}

/// Partitions with nothing but a static row.
fn static_only() -> Table {
    let create = "CREATE TABLE $t (k int, c int, s text STATIC, v int, PRIMARY KEY (k, c))";
    Table::rows("static_only", create, 30, |round, n| {
        let time = time(round, n);
        format!(
            "INSERT INTO $t (k, s) VALUES ({}, 'static {round}') USING TIMESTAMP {time}",
            n + round * 15
        )
    })
}

fn counters() -> Table {
    let create = "CREATE TABLE $t (k text, c int, up counter, down counter, PRIMARY KEY (k, c))";
    Table::rows("counters", create, 80, |round, n| {
        let key = n % 16;
        format!(
            "UPDATE $t SET up = up + {}, down = down - {n} WHERE k = 'key {key}' AND c = {}",
            round + 1,
            n / 16
        )
    })
}

/// Expired long ago, expired lately, and alive for months; what has expired may go at once.
fn ttl() -> Table {
    let create = "CREATE TABLE $t (k int, c int, v text, w text, l list<int>, PRIMARY KEY (k, c))
        WITH default_time_to_live = 8640000 AND gc_grace_seconds = 0";
    Table::new("ttl", create, |round, writes| {
        for n in 0..60 {
            let (key, time) = (n % 6, time(round, n));
            let ttl = [1, 4_320_000, 0, 17_280_000][(n % 4) as usize];
            writes.push(format!(
                "INSERT INTO $t (k, c, v, w) VALUES ({key}, {}, 'v {round}', 'w {n}') USING TIMESTAMP {time} AND TTL {ttl}",
                n + round * 20
            ));
            writes.push(format!(
                "UPDATE $t USING TIMESTAMP {time} AND TTL {} SET l = [{round}, {n}], w = 'updated' WHERE k = {key} AND c = {n}",
                if n % 3 == 0 { 1 } else { 12_960_000 }
            ));
        }
    })
}

/// Deletions of partitions, rows, ranges and cells, some of which may be purged and some not.
fn deletions() -> Table {
    let create = "CREATE TABLE $t (k int, a int, b int, v text, m set<int>, PRIMARY KEY (k, a, b))
        WITH gc_grace_seconds = 0";
    Table::new("deletions", create, |round, writes| {
        for n in 0..120 {
            let (key, time) = (n % 12, time(round, n));
            writes.push(format!(
                "INSERT INTO $t (k, a, b, v, m) VALUES ({key}, {}, {n}, '{}', {{{round}, {n}}}) USING TIMESTAMP {time}",
                n / 12,
                text(n, 40)
            ));
        }
        let time = time(round, 200);
        let condition = [
            format!("k = {round}"),
            format!("k = {} AND a = 3", round + 4),
            format!("k = 8 AND a >= {round} AND a < {}", round + 2),
            format!("k = 9 AND a = {round} AND b > 10"),
            format!("k = 10 AND a = {round} AND b = {}", round * 12 + 10),
        ];
        for condition in condition {
            writes.push(format!(
                "DELETE FROM $t USING TIMESTAMP {time} WHERE {condition}"
            ));
        }
        writes.push(format!(
            "DELETE v, m FROM $t USING TIMESTAMP {time} WHERE k = 11 AND a = {round} AND b = {}",
            round * 12 + 11
        ));
        // A deletion of everything, older than half of what it meets.
        writes.push(format!(
            "DELETE FROM $t USING TIMESTAMP {} WHERE k = 7",
            time - 140
        ));
    })
}

/// Everything is deleted in the end, and may be purged.
fn gone() -> Table {
    let create = "CREATE TABLE $t (k int PRIMARY KEY, v text) WITH gc_grace_seconds = 0";
    Table::rows("gone", create, 40, |round, n| {
        let time = time(round, n);
        match round {
            3 => format!("DELETE FROM $t USING TIMESTAMP {time} WHERE k = {n}"),
            _ => format!("INSERT INTO $t (k, v) VALUES ({n}, 'v {round}') USING TIMESTAMP {time}"),
        }
    })
}

fn mixed_case() -> Table {
    let create = r#"CREATE TABLE $t ("Key" int, "Order" text, "Value With Space" text, "v" text, PRIMARY KEY ("Key", "Order"))"#;
    Table::rows("MixedCase", create, 40, |round, n| {
        let time = time(round, n);
        format!(
            r#"INSERT INTO $t ("Key", "Order", "Value With Space", "v") VALUES ({n}, 'o {round}', 'v', '{}')
                USING TIMESTAMP {time}"#,
            text(n, 60)
        )
    })
}
