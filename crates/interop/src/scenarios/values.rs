//! Values and timestamps at the edges, and rows that are only liveness or have none.

use super::{Scenario, text};

pub(super) fn scenarios() -> Vec<Scenario> {
    let mut every = text::scenarios(VALUES);
    for start in [
        "view_rows: shadowable deletions and expired liveness, as views write them",
        "view_rows_purged: the same, old enough to be purged\npurge all",
    ] {
        every.push(text::scenario(&format!("{start}\n{VIEW_ROWS}")));
    }
    let about = "rows of views whose liveness expired, was purged, or never existed";
    let base = "k int PRIMARY KEY, v int, w int, m map<int, int>";
    let other = "k int, v int, w int, m map<int, int>, PRIMARY KEY (k, v)";
    for (name, base, purge) in [
        ("strict_liveness", base, "purge all\n"),
        ("strict_liveness_kept", base, ""),
        ("strict_liveness_of_another_view", other, "purge all\n"),
    ] {
        let rows = STRICT_LIVENESS.replace("$base", base);
        every.push(text::scenario(&format!("{name}: {about}\n{purge}{rows}")));
    }
    every
}

const VALUES: &str = "\
extreme_timestamps: deltas that wrap, negative timestamps, the largest timestamp
CREATE TABLE $t (k int, c int, a text, b text, PRIMARY KEY (k, c))
input
for n, ts in [-9223372036854775807 -1 0 1442880000000000 1700000000000000 9223372036854775807]:
    INSERT INTO $t (k, c, a, b) VALUES (1, $(n + 1), 'a', 'b') USING TIMESTAMP $ts
input
for n, ts in [-9223372036854775807 -1 0 1442880000000000 1700000000000000 9223372036854775807]:
    INSERT INTO $t (k, c, a) VALUES (1, $(6 - n), 'z') USING TIMESTAMP $ts
DELETE FROM $t USING TIMESTAMP -5 WHERE k = 1 AND c = 1

liveness_only: rows that are nothing but a primary key, expiring ones too
CREATE TABLE $t (k int, c int, v text, PRIMARY KEY (k, c))
input
for c in 0..6: INSERT INTO $t (k, c) VALUES (1, $c) USING TIMESTAMP 10
INSERT INTO $t (k, c) VALUES (1, 10) USING TIMESTAMP 10 AND TTL 5000
input
INSERT INTO $t (k, c) VALUES (1, 0) USING TIMESTAMP 10 AND TTL 5000
INSERT INTO $t (k, c) VALUES (1, 1) USING TIMESTAMP 9 AND TTL 5000
INSERT INTO $t (k, c) VALUES (1, 2) USING TIMESTAMP 11 AND TTL 500
INSERT INTO $t (k, c) VALUES (1, 10) USING TIMESTAMP 10 AND TTL 6000
at 10
INSERT INTO $t (k, c) VALUES (1, 10) USING TIMESTAMP 10 AND TTL 5990

updates_without_liveness: UPDATE writes cells without row liveness
CREATE TABLE $t (k int, c int, a text, b text, PRIMARY KEY (k, c))
input
UPDATE $t USING TIMESTAMP 10 SET a = 'x' WHERE k = 1 AND c = 1
UPDATE $t USING TIMESTAMP 10 SET a = 'x', b = 'y' WHERE k = 1 AND c = 2
INSERT INTO $t (k, c, a) VALUES (1, 3, 'i') USING TIMESTAMP 10
input
UPDATE $t USING TIMESTAMP 11 SET b = 'z' WHERE k = 1 AND c = 1
UPDATE $t USING TIMESTAMP 9 SET b = 'older' WHERE k = 1 AND c = 2
UPDATE $t USING TIMESTAMP 11 SET a = null WHERE k = 1 AND c = 3

value_ties: equal timestamps: larger bytes win, a tombstone beats data, expiring beats live
CREATE TABLE $t (k int, c int, v blob, PRIMARY KEY (k, c))
input
for c, v in [0x61 0x7a 0x00ff 0x 0xff]: INSERT INTO $t (k, c, v) VALUES (1, $c, $v) USING TIMESTAMP 10
INSERT INTO $t (k, c, v) VALUES (1, 10, 0x01) USING TIMESTAMP 10 AND TTL 5000
DELETE v FROM $t USING TIMESTAMP 10 WHERE k = 1 AND c = 11
INSERT INTO $t (k, c, v) VALUES (1, 12, 0x05) USING TIMESTAMP 10 AND TTL 5000
INSERT INTO $t (k, c, v) VALUES (1, 13, 0x01) USING TIMESTAMP 10 AND TTL 5000
INSERT INTO $t (k, c, v) VALUES (1, 14, 0x01) USING TIMESTAMP 10
input
for c, v in [0x7a 0x61 0xff 0x00 0x7f]: INSERT INTO $t (k, c, v) VALUES (1, $c, $v) USING TIMESTAMP 10
INSERT INTO $t (k, c, v) VALUES (1, 10, 0x02) USING TIMESTAMP 10
INSERT INTO $t (k, c, v) VALUES (1, 11, 0x02) USING TIMESTAMP 10 AND TTL 5000
at 10
INSERT INTO $t (k, c, v) VALUES (1, 12, 0x04) USING TIMESTAMP 10 AND TTL 4990
at 20
INSERT INTO $t (k, c, v) VALUES (1, 13, 0x02) USING TIMESTAMP 10 AND TTL 4981
DELETE v FROM $t USING TIMESTAMP 10 WHERE k = 1 AND c = 14

null_clusterings: compact tables leave trailing clusterings null, which is not empty
CREATE TABLE $t (k int, a text, b text, v int, PRIMARY KEY (k, a, b)) WITH COMPACT STORAGE
input
INSERT INTO $t (k, a, v) VALUES (1, 'a', 1) USING TIMESTAMP 10
INSERT INTO $t (k, a, b, v) VALUES (1, 'a', '', 2) USING TIMESTAMP 10
INSERT INTO $t (k, a, b, v) VALUES (1, 'a', 'b', 3) USING TIMESTAMP 10
input
INSERT INTO $t (k, a, v) VALUES (1, 'a', 4) USING TIMESTAMP 11
INSERT INTO $t (k, a, v) VALUES (1, 'b', 5) USING TIMESTAMP 11
DELETE FROM $t USING TIMESTAMP 11 WHERE k = 1 AND a = 'a' AND b = ''

decimal_spellings: 1.5 and 1.50 are one clustering and one element, whose bytes either input may supply
CREATE TABLE $t (k int, c decimal, v int, m map<decimal, int>, PRIMARY KEY (k, c))
input
for n, c in [1.5 2 -3.0 0.0]:
    INSERT INTO $t (k, c, v, m) VALUES (1, $c, $n, {$c: 1}) USING TIMESTAMP 10
input
for n, c in [1.50 2.000 -3 0]:
    INSERT INTO $t (k, c, v) VALUES (1, $c, $(n + 1)) USING TIMESTAMP 10
    UPDATE $t USING TIMESTAMP 11 SET m[$c] = 2 WHERE k = 1 AND c = $c
DELETE FROM $t USING TIMESTAMP 9 WHERE k = 1 AND c > 1.5 AND c <= 2.00

empty_values: zero-length values of every kind of type, as clustering and as cells
CREATE TABLE $t (k int, c int, t text, b blob, n int, u uuid, d decimal, v varint, x text, PRIMARY KEY (k, c))
input
for c in [blob_as_int(0x) 1]:
    INSERT INTO $t (k, c, t, b, n, u, d, v, x) VALUES (1, $c, '', 0x, blob_as_int(0x), blob_as_uuid(0x), blob_as_decimal(0x), blob_as_varint(0x), 'first') USING TIMESTAMP 5
INSERT INTO $t (k, c, t, b, n, u, d, v, x) VALUES (1, -1, '', 0x, blob_as_int(0x), blob_as_uuid(0x), blob_as_decimal(0x), blob_as_varint(0x), 'first') USING TIMESTAMP 7
input
for c in [blob_as_int(0x) 2 -1]:
    INSERT INTO $t (k, c, t, b, n, u, d, v, x) VALUES (1, $c, '', 0x, blob_as_int(0x), blob_as_uuid(0x), blob_as_decimal(0x), blob_as_varint(0x), 'second') USING TIMESTAMP 6
INSERT INTO $t (k, c, t, n, d) VALUES (1, 1, 'x', 1, 1.5) USING TIMESTAMP 5
";

const VIEW_ROWS: &str = "\
CREATE TABLE $t (k int, c int, v text, PRIMARY KEY (k, c))
input
for c in 0..8: INSERT INTO $t (k, c, v) VALUES (1, $c, 'v') USING TIMESTAMP 10
shadowable 2 1 10
expired 2 2 10
input
shadowable 1 0 9
shadowable 1 1 10
shadowable 1 2 11
expired 1 3 9
expired 1 4 10
expired 1 5 11
INSERT INTO $t (k, c, v) VALUES (2, 1, 'lifts it') USING TIMESTAMP 11
INSERT INTO $t (k, c, v) VALUES (2, 2, 'lives') USING TIMESTAMP 10
input
INSERT INTO $t (k, c) VALUES (1, 2) USING TIMESTAMP 12
# Not at the time of a shadowable one: of equal deletions the first read is kept, and Cassandra reads inputs in the order
# of a hash set.
DELETE FROM $t USING TIMESTAMP 8 WHERE k = 1 AND c = 2
DELETE FROM $t USING TIMESTAMP 9 WHERE k = 1 AND c = 1
DELETE FROM $t USING TIMESTAMP 13 WHERE k = 1 AND c = 7
INSERT INTO $t (k, c) VALUES (1, 7) USING TIMESTAMP 14
shadowable 1 6 12
expired 1 6 12
";

/// Entries of a view, as its base table's updates leave them. If `v` is no key column of that table, a row is dropped with
/// its liveness.
const STRICT_LIVENESS: &str = "\
CREATE TABLE $t (v int, k int, w int, m map<int, int>, PRIMARY KEY (v, k))
input
for k in 1..5: INSERT INTO $t (v, k, w, m) VALUES (1, $k, 70, {1: 1}) USING TIMESTAMP 10
INSERT INTO $t (v, k, w) VALUES (2, 1, 1) USING TIMESTAMP 10 AND TTL 10
UPDATE $t USING TIMESTAMP 11 SET w = 5 WHERE v = 2 AND k = 1
UPDATE $t USING TIMESTAMP 10 SET w = 5 WHERE v = 3 AND k = 1
UPDATE $t USING TIMESTAMP 10 SET w = 5 WHERE v = 3 AND k = 2
DELETE m FROM $t USING TIMESTAMP 10 WHERE v = 3 AND k = 2
UPDATE $t USING TIMESTAMP 10 AND TTL 5 SET w = 5 WHERE v = 3 AND k = 3
UPDATE $t USING TIMESTAMP 10 SET m[1] = 5 WHERE v = 3 AND k = 3
input
# The base rows moved to another v.
expired 1 1 10
expired 1 2 20
DELETE w FROM $t USING TIMESTAMP 11 WHERE v = 1 AND k = 3
DELETE FROM $t USING TIMESTAMP 11 WHERE v = 1 AND k = 4
UPDATE $t USING TIMESTAMP 12 SET w = 6 WHERE v = 1 AND k = 4
UPDATE $t USING TIMESTAMP 12 SET w = 6 WHERE v = 1 AND k = 2
after CREATE TABLE $ks.base ($base)
after CREATE MATERIALIZED VIEW $ks.mv AS SELECT * FROM $ks.base WHERE v IS NOT NULL AND k IS NOT NULL PRIMARY KEY (v, k)
view mv
";
