//! Shapes of partitions: narrow, wide, static, counted, expiring, deleted.

use super::{Table, time};

pub(super) fn tables() -> Vec<Table> {
    let mut tables = super::from_text(SHAPES);
    // Among the first tables, on which sstableverify runs.
    tables.insert(2, key_only());
    tables
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

const SHAPES: &str = r#"
# Half of the keys of a round are those of the one before.
kv
CREATE TABLE $t (k text PRIMARY KEY, v text)
rounds 0 1 2 3
for n in 0..240:
    INSERT INTO $t (k, v) VALUES ('key $(round * 120 + n)', '$words(round * 1000 + n, 300)') USING TIMESTAMP $(time + n)

# Partitions beyond the column index, with ranges deleted inside of them, in both directions.
wide
CREATE TABLE $t (k int, a int, b text, v blob, s text STATIC, PRIMARY KEY (k, a, b)) WITH CLUSTERING ORDER BY (a DESC, b ASC)
query SELECT a, b FROM $t WHERE k = 0 AND a > 10 AND a < 60
query SELECT a, b, WRITETIME(v) FROM $t WHERE k = 1 ORDER BY a ASC, b DESC
rounds 0 1 2 3
for n in 0..120:
    INSERT INTO $t (k, a, b, v) VALUES ($(n % 2), $(n / 2 + round * 20), '$words(n, 20)', 0x$hex(round * 500 + n, 900)) USING TIMESTAMP $(time + n)
DELETE FROM $t USING TIMESTAMP $(time + 500) WHERE k = 0 AND a > $(round * 17) AND a <= $(round * 17 + 9)
UPDATE $t USING TIMESTAMP $(time + 500) SET s = 'round $round' WHERE k = 1

statics
CREATE TABLE $t (k int, c int, s text STATIC, m map<int, text> STATIC, v int, PRIMARY KEY (k, c))
query SELECT DISTINCT k, s, m FROM $t
rounds 0 1 2 3
for n in 0..40:
    INSERT INTO $t (k, c, v, s) VALUES ($(n % 8), $n, $round, 'static $round') USING TIMESTAMP $(time + n)
    UPDATE $t USING TIMESTAMP $(time + n) SET m[$n] = 'round $round' WHERE k = $(n % 8)
DELETE s FROM $t USING TIMESTAMP $(time + 100) WHERE k = $round
DELETE m[$round] FROM $t USING TIMESTAMP $(time + 100) WHERE k = $round

# Partitions with nothing but a static row.
static_only
CREATE TABLE $t (k int, c int, s text STATIC, v int, PRIMARY KEY (k, c))
rounds 0 1 2 3
for n in 0..30: INSERT INTO $t (k, s) VALUES ($(n + round * 15), 'static $round') USING TIMESTAMP $(time + n)

counters
CREATE TABLE $t (k text, c int, up counter, down counter, PRIMARY KEY (k, c))
rounds 0 1 2 3
for n in 0..80: UPDATE $t SET up = up + $(round + 1), down = down - $n WHERE k = 'key $(n % 16)' AND c = $(n / 16)

# Expired long ago, expired recently, and live for months; expired data may be purged at once.
ttl
CREATE TABLE $t (k int, c int, v text, w text, l list<int>, PRIMARY KEY (k, c)) WITH default_time_to_live = 8640000 AND gc_grace_seconds = 0
rounds 0 1 2 3
for m in 0..15 for i, ttl in [1 4320000 0 17280000]:
    let n = $(m * 4 + i)
    INSERT INTO $t (k, c, v, w) VALUES ($(n % 6), $(n + round * 20), 'v $round', 'w $n') USING TIMESTAMP $(time + n) AND TTL $ttl
for m in 0..20 for i, ttl in [1 12960000 12960000]:
    let n = $(m * 3 + i)
    UPDATE $t USING TIMESTAMP $(time + n) AND TTL $ttl SET l = [$round, $n], w = 'updated' WHERE k = $(n % 6) AND c = $n

# Deletions of partitions, rows, ranges and cells, some of which may be purged and some not.
deletions
CREATE TABLE $t (k int, a int, b int, v text, m set<int>, PRIMARY KEY (k, a, b)) WITH gc_grace_seconds = 0
rounds 0 1 2 3
for n in 0..120:
    INSERT INTO $t (k, a, b, v, m) VALUES ($(n % 12), $(n / 12), $n, '$words(n, 40)', {$round, $n}) USING TIMESTAMP $(time + n)
DELETE FROM $t USING TIMESTAMP $(time + 200) WHERE k = $round
DELETE FROM $t USING TIMESTAMP $(time + 200) WHERE k = $(round + 4) AND a = 3
DELETE FROM $t USING TIMESTAMP $(time + 200) WHERE k = 8 AND a >= $round AND a < $(round + 2)
DELETE FROM $t USING TIMESTAMP $(time + 200) WHERE k = 9 AND a = $round AND b > 10
DELETE FROM $t USING TIMESTAMP $(time + 200) WHERE k = 10 AND a = $round AND b = $(round * 12 + 10)
DELETE v, m FROM $t USING TIMESTAMP $(time + 200) WHERE k = 11 AND a = $round AND b = $(round * 12 + 11)
# A deletion of everything, older than half of the data that it covers.
DELETE FROM $t USING TIMESTAMP $(time + 60) WHERE k = 7

# Everything is deleted in the end, and may be purged.
gone
CREATE TABLE $t (k int PRIMARY KEY, v text) WITH gc_grace_seconds = 0
rounds 0 1 2
for n in 0..40: INSERT INTO $t (k, v) VALUES ($n, 'v $round') USING TIMESTAMP $(time + n)
rounds 3
for n in 0..40: DELETE FROM $t USING TIMESTAMP $(time + n) WHERE k = $n

MixedCase
CREATE TABLE $t ("Key" int, "Order" text, "Value With Space" text, "v" text, PRIMARY KEY ("Key", "Order"))
rounds 0 1 2 3
for n in 0..40:
    INSERT INTO $t ("Key", "Order", "Value With Space", "v") VALUES ($n, 'o $round', 'v', '$words(n, 60)') USING TIMESTAMP $(time + n)

# Columns whose names do not begin with an ASCII character precede the others.
names
CREATE TABLE $t (k int PRIMARY KEY, a int, "é" int, "日本" int, z int)
rounds 0 1 2 3
for n in 0..40:
    INSERT INTO $t (k, a, "é", "日本", z) VALUES ($(n + round * 10), $round, $(100 + n), $(200 + n), $(300 + n)) USING TIMESTAMP $(time + n)
"#;
