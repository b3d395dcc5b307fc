//! TTLs, live and expired.

use super::{Scenario, text};

pub(super) fn scenarios() -> Vec<Scenario> {
    let mixed = [
        ("ttl_live: nothing has expired yet", "at 60 with grace 0"),
        (
            "ttl_expired: expired but within gc_grace: cells turn into tombstones, liveness stays",
            "at 1000 with grace 5000",
        ),
        (
            "ttl_purged: expired at different distances from gc_before",
            "at 1500 with grace 600",
        ),
    ];
    let mixed = mixed.map(|(title, merge)| format!("{title}\n{MIXED}merge {merge}\n\n"));
    text::scenarios(&(mixed.concat() + EXPIRY))
}

const MIXED: &str = "\
CREATE TABLE $t (k int, c int, v text, w text, s text static, PRIMARY KEY (k, c))
input
for c in 0..10: INSERT INTO $t (k, c, v, w) VALUES (1, $c, 'v', 'w') USING TIMESTAMP 10 AND TTL $(100 * (c + 1))
INSERT INTO $t (k, s) VALUES (1, 'static') USING TIMESTAMP 10 AND TTL 300
INSERT INTO $t (k, c, v) VALUES (2, 1, 'v') USING TIMESTAMP 10 AND TTL 100
input
at 50
for c in 0..10: UPDATE $t USING TIMESTAMP $(9 + c % 3) AND TTL $(200 * (c + 1)) SET v = 'x' WHERE k = 1 AND c = $c
INSERT INTO $t (k, c, w) VALUES (1, 20, 'stays') USING TIMESTAMP 10
";

const EXPIRY: &str = "\
ttl_edges: expiration one second before, at and after now and gc_before
CREATE TABLE $t (k int, c int, v text, PRIMARY KEY (k, c))
input
for c, ttl in [99 100 101 499 500 501 599 600 601]:
    INSERT INTO $t (k, c, v) VALUES (1, $c, 'v') USING TIMESTAMP 10 AND TTL $ttl
    UPDATE $t USING TIMESTAMP 10 AND TTL $ttl SET v = 'u' WHERE k = 2 AND c = $c
input
INSERT INTO $t (k, c, v) VALUES (3, 1, 'v') USING TIMESTAMP 10
merge at 600 with grace 500

default_ttl: default_time_to_live, overridden with TTL 0 and another TTL
CREATE TABLE $t (k int, c int, v text, PRIMARY KEY (k, c)) WITH default_time_to_live = 3600
input
for c in 0..6: INSERT INTO $t (k, c, v) VALUES (1, $c, 'v') USING TIMESTAMP 10
INSERT INTO $t (k, c, v) VALUES (1, 7, 'for ever') USING TIMESTAMP 10 AND TTL 0
input
at 500
for c in 3..9: INSERT INTO $t (k, c, v) VALUES (1, $c, 'w') USING TIMESTAMP 11 AND TTL $(100 * c)

ttl_per_cell: each cell of a row with its own timestamp and TTL
CREATE TABLE $t (k int, c int, a text, b text, d text, e text, PRIMARY KEY (k, c))
input
for c in 0..4:
    INSERT INTO $t (k, c) VALUES (1, $c) USING TIMESTAMP 10 AND TTL 700
    UPDATE $t USING TIMESTAMP 11 AND TTL 500 SET a = 'a' WHERE k = 1 AND c = $c
    UPDATE $t USING TIMESTAMP 12 SET b = 'b' WHERE k = 1 AND c = $c
    UPDATE $t USING TIMESTAMP 10 AND TTL 700 SET d = 'row' WHERE k = 1 AND c = $c
input
UPDATE $t USING TIMESTAMP 13 AND TTL 9000 SET a = 'long' WHERE k = 1 AND c = 0
UPDATE $t USING TIMESTAMP 13 SET d = null WHERE k = 1 AND c = 1
INSERT INTO $t (k, c, e) VALUES (1, 2, 'e') USING TIMESTAMP 10 AND TTL 650
INSERT INTO $t (k, c, e) VALUES (1, 3, 'e') USING TIMESTAMP 10
merge at 600 with grace 300

ttl_ties: equal timestamps: tombstone, expiring and live meet; later expiry, then lower TTL
CREATE TABLE $t (k int, c int, v text, PRIMARY KEY (k, c))
input
UPDATE $t USING TIMESTAMP 10 AND TTL 1000 SET v = 'a' WHERE k = 1 AND c = 1
UPDATE $t USING TIMESTAMP 10 AND TTL 1000 SET v = 'a' WHERE k = 1 AND c = 2
UPDATE $t USING TIMESTAMP 10 AND TTL 1000 SET v = 'same' WHERE k = 1 AND c = 3
UPDATE $t USING TIMESTAMP 10 AND TTL 5 SET v = 'expired' WHERE k = 1 AND c = 4
INSERT INTO $t (k, c) VALUES (2, 1) USING TIMESTAMP 10 AND TTL 1000
INSERT INTO $t (k, c) VALUES (2, 2) USING TIMESTAMP 10 AND TTL 1000
INSERT INTO $t (k, c) VALUES (2, 3) USING TIMESTAMP 10 AND TTL 5
input
DELETE v FROM $t USING TIMESTAMP 10 WHERE k = 1 AND c = 1
UPDATE $t USING TIMESTAMP 10 AND TTL 2000 SET v = 'a' WHERE k = 1 AND c = 2
at 10
UPDATE $t USING TIMESTAMP 10 AND TTL 990 SET v = 'same' WHERE k = 1 AND c = 3
UPDATE $t USING TIMESTAMP 10 SET v = 'live' WHERE k = 1 AND c = 4
INSERT INTO $t (k, c) VALUES (2, 1) USING TIMESTAMP 10
INSERT INTO $t (k, c) VALUES (2, 2) USING TIMESTAMP 10 AND TTL 990
INSERT INTO $t (k, c) VALUES (2, 3) USING TIMESTAMP 10
merge at 500 with grace 100

ttl_far_future: the longest TTL: deletion times beyond 2^31
# nb cannot hold such a time, and Cassandra refuses the statement in that mode.
modes oa pa ea
CREATE TABLE $t (k int, c int, v text, PRIMARY KEY (k, c))
input
for c in 0..4: INSERT INTO $t (k, c, v) VALUES (1, $c, 'v') USING TIMESTAMP 10 AND TTL 630720000
input
INSERT INTO $t (k, c, v) VALUES (1, 1, 'w') USING TIMESTAMP 11 AND TTL 100
DELETE FROM $t USING TIMESTAMP 11 WHERE k = 1 AND c = 2
";
