//! Tables with `COMPACT STORAGE`, which every release still creates, and those that have lost it.

use super::{Scenario, text};

pub(super) fn scenarios() -> Vec<Scenario> {
    let mut every = text::scenarios(STORED);
    for mut scenario in text::scenarios(LOST) {
        scenario.hides_cells = true;
        every.push(scenario);
    }
    every
}

const STORED: &str = "
storage_dense: a value column, and clusterings whose last value is absent
# sstabledump of 5.0.5 fails with a NullPointerException on them.
hides cells
CREATE TABLE $t (k int, a int, b text, v text, PRIMARY KEY (k, a, b)) WITH COMPACT STORAGE AND CLUSTERING ORDER BY (a DESC, b DESC)
input
for a in 0..6:
    INSERT INTO $t (k, a, v) VALUES (1, $a, 'a$a') USING TIMESTAMP 10
    INSERT INTO $t (k, a, b, v) VALUES (1, $a, '', 'a$a') USING TIMESTAMP 10
    INSERT INTO $t (k, a, b, v) VALUES (1, $a, 'q', 'a$a') USING TIMESTAMP 10
DELETE FROM $t USING TIMESTAMP 6 WHERE k = 2 AND a = 1
input
DELETE FROM $t USING TIMESTAMP 11 WHERE k = 1 AND a = 2
for a in 3..9:
    INSERT INTO $t (k, a, v) VALUES (1, $a, 'b$a') USING TIMESTAMP $(8 + a)
    INSERT INTO $t (k, a, b, v) VALUES (1, $a, '', 'b$a') USING TIMESTAMP $(8 + a)

storage_no_value: only a primary key: the value column is of type empty
CREATE TABLE $t (k int, c int, PRIMARY KEY (k, c)) WITH COMPACT STORAGE
input
for c in 0..6: INSERT INTO $t (k, c) VALUES (1, $c) USING TIMESTAMP 10
input
for c in 3..9: INSERT INTO $t (k, c) VALUES (1, $c) USING TIMESTAMP $(8 + c)
DELETE FROM $t USING TIMESTAMP 11 WHERE k = 1 AND c = 2

storage_fixed: without clusterings: rows are static
CREATE TABLE $t (k int PRIMARY KEY, a int, b text) WITH COMPACT STORAGE
input
for k in 0..6: INSERT INTO $t (k, a, b) VALUES ($k, $k, 'b') USING TIMESTAMP 10
input
for k in 3..9: INSERT INTO $t (k, b) VALUES ($k, 'c') USING TIMESTAMP $(8 + k)
DELETE a FROM $t USING TIMESTAMP 11 WHERE k = 1
DELETE FROM $t USING TIMESTAMP 11 WHERE k = 2

storage_counters: counters
CREATE TABLE $t (k int, c int, v counter, PRIMARY KEY (k, c)) WITH COMPACT STORAGE
input
for c in 0..6: UPDATE $t SET v = v + 3 WHERE k = 1 AND c = $c
input
for c in 3..9: UPDATE $t SET v = v + 4 WHERE k = 1 AND c = $c
DELETE FROM $t WHERE k = 1 AND c = 1
";

const LOST: &str = "
storage_lost_dense: columns are added once the storage is not compact any more
CREATE TABLE $t (k int, a int, b text, v text, PRIMARY KEY (k, a, b)) WITH COMPACT STORAGE AND CLUSTERING ORDER BY (a DESC, b ASC)
input
for a in 0..6:
    INSERT INTO $t (k, a, v) VALUES (1, $a, 'a$a') USING TIMESTAMP 10
    INSERT INTO $t (k, a, b, v) VALUES (1, $a, '', 'a$a') USING TIMESTAMP 10
input
ALTER TABLE $t DROP COMPACT STORAGE
ALTER TABLE $t ADD m map<int, text>
ALTER TABLE $t ADD s int static
DELETE FROM $t USING TIMESTAMP 12 WHERE k = 1 AND a = 1
for a in 3..9: INSERT INTO $t (k, a, b, m) VALUES (1, $a, '', {1: 'b$a'}) USING TIMESTAMP $(8 + a)
INSERT INTO $t (k, s) VALUES (1, 5) USING TIMESTAMP 12

storage_lost_no_value: the column of type empty becomes visible
CREATE TABLE $t (k int, c int, PRIMARY KEY (k, c)) WITH COMPACT STORAGE
input
for c in 0..6: INSERT INTO $t (k, c) VALUES (1, $c) USING TIMESTAMP 10
input
ALTER TABLE $t DROP COMPACT STORAGE
ALTER TABLE $t ADD x text
for c in 3..9: INSERT INTO $t (k, c, x) VALUES (1, $c, 'x') USING TIMESTAMP $(8 + c)
DELETE FROM $t USING TIMESTAMP 11 WHERE k = 1 AND c = 2

storage_lost_fixed: columns become static, and one of them is dropped
CREATE TABLE $t (k int PRIMARY KEY, a int, b text) WITH COMPACT STORAGE
input
for k in 0..6: INSERT INTO $t (k, a, b) VALUES ($k, $k, 'b') USING TIMESTAMP 10
input
ALTER TABLE $t DROP COMPACT STORAGE
ALTER TABLE $t DROP a USING TIMESTAMP 10
for k in 3..9:
    INSERT INTO $t (k, b) VALUES ($k, 'c') USING TIMESTAMP $(8 + k)
    INSERT INTO $t (k, column1, value) VALUES ($k, 'col', 0xff) USING TIMESTAMP $(8 + k)
DELETE b FROM $t USING TIMESTAMP 11 WHERE k = 1

storage_lost_fixed_all: columns become static, and all are dropped, with cells that are newer
CREATE TABLE $t (k int PRIMARY KEY, a int, b text) WITH COMPACT STORAGE
input
for k in 0..6: INSERT INTO $t (k, a, b) VALUES ($k, $k, 'b') USING TIMESTAMP $(6 + k)
input
ALTER TABLE $t DROP COMPACT STORAGE
ALTER TABLE $t DROP a USING TIMESTAMP 8
ALTER TABLE $t DROP b USING TIMESTAMP 8
for k in 3..9: INSERT INTO $t (k, column1, value) VALUES ($k, 'col', 0xff) USING TIMESTAMP $(8 + k)
";
