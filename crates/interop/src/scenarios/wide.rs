//! Partitions of several column index blocks (64 KiB each), so that outputs have promoted indexes.

use super::{Scenario, text};

pub(super) fn scenarios() -> Vec<Scenario> {
    text::scenarios(WIDE)
}

const WIDE: &str = "
wide: two wide partitions and small ones between, rows interleaved
CREATE TABLE $t (k int, c int, v text, PRIMARY KEY (k, c))
input
for c in 0..400 step 2: INSERT INTO $t (k, c, v) VALUES (1, $c, '$hex(c * 31 + 1, 750)') USING TIMESTAMP 10
for c in 0..100: INSERT INTO $t (k, c, v) VALUES (2, $c, '$hex(c * 31 + 2, 750)') USING TIMESTAMP 10
for c in 0..2: INSERT INTO $t (k, c, v) VALUES (3, $c, '$hex(c * 31 + 3, 5)') USING TIMESTAMP 10
input
for c in 1..400 step 2: INSERT INTO $t (k, c, v) VALUES (1, $c, '$hex(c * 31 + 1, 750)') USING TIMESTAMP 11
for c in 50..150: INSERT INTO $t (k, c, v) VALUES (2, $c, '$hex(c * 31 + 2, 750)') USING TIMESTAMP 11
for c in 0..2: INSERT INTO $t (k, c, v) VALUES (4, $c, '$hex(c * 31 + 4, 5)') USING TIMESTAMP 11

wide_reversed: a wide partition with descending clusterings and row deletions
CREATE TABLE $t (k int, c int, v text, PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY (c DESC)
input
for c in 0..200: INSERT INTO $t (k, c, v) VALUES (1, $c, '$hex(c * 31 + 1, 750)') USING TIMESTAMP 10
input
for c in 150..300: INSERT INTO $t (k, c, v) VALUES (1, $c, '$hex(c * 31 + 1, 750)') USING TIMESTAMP 11
for c in 0..300 step 7: DELETE FROM $t USING TIMESTAMP 12 WHERE k = 1 AND c = $c

wide_ranges: range tombstones open across block boundaries, nested and touching there
CREATE TABLE $t (k int, c int, v text, PRIMARY KEY (k, c))
input
for c in 0..300: INSERT INTO $t (k, c, v) VALUES (1, $c, '$hex(c * 31 + 1, 750)') USING TIMESTAMP 10
input
DELETE FROM $t USING TIMESTAMP 5 WHERE k = 1 AND c >= 10 AND c < 250
DELETE FROM $t USING TIMESTAMP 7 WHERE k = 1 AND c > 40 AND c <= 200
DELETE FROM $t USING TIMESTAMP 15 WHERE k = 1 AND c > 100 AND c < 110
input
at 9
DELETE FROM $t USING TIMESTAMP 6 WHERE k = 1 AND c >= 200
DELETE FROM $t USING TIMESTAMP 8 WHERE k = 1 AND c < 42
for c in 290..400: INSERT INTO $t (k, c, v) VALUES (1, $c, '$hex(c * 31 + 1, 750)') USING TIMESTAMP 12

wide_block_edges: one block exactly, one and a little, almost two: where an index appears
CREATE TABLE $t (k int, c int, v text, PRIMARY KEY (k, c))
input
for k in 1..5 for c in 0..$(41 + k):
    INSERT INTO $t (k, c, v) VALUES ($k, $c, '$hex(c * 31 + k, 750)') USING TIMESTAMP 10
for k in 5..9 for c in 0..$(80 + k):
    INSERT INTO $t (k, c, v) VALUES ($k, $c, '$hex(c * 31 + k, 750)') USING TIMESTAMP 10
input
INSERT INTO $t (k, c, v) VALUES (1, 0, '$hex(1, 750)') USING TIMESTAMP 11
INSERT INTO $t (k, c, v) VALUES (9, 0, '$hex(9, 40000)') USING TIMESTAMP 11
for c in 0..2: INSERT INTO $t (k, c, v) VALUES (10, $c, '$hex(c * 31 + 10, 35000)') USING TIMESTAMP 11

wide_prefix_ranges: promoted index over two-column clusterings with prefix bounds
CREATE TABLE $t (k text, a text, b int, v text, PRIMARY KEY (k, a, b)) WITH CLUSTERING ORDER BY (a DESC, b ASC)
input
for a in 0..10 for b in 0..20:
    INSERT INTO $t (k, a, b, v) VALUES ('key', 'a$a', $b, '$hex(a * 100 + b, 700)') USING TIMESTAMP 10
input
DELETE FROM $t USING TIMESTAMP 9 WHERE k = 'key' AND a > 'a1' AND a <= 'a7'
DELETE FROM $t USING TIMESTAMP 11 WHERE k = 'key' AND a = 'a5' AND b > 5 AND b < 15
DELETE FROM $t USING TIMESTAMP 8 WHERE k = 'key' AND a = 'a9'
for b in 0..20: INSERT INTO $t (k, a, b, v) VALUES ('key', 'a55', $b, '$hex(b, 700)') USING TIMESTAMP 12

wide_static: wide partition with partition deletion and static row before the first block
CREATE TABLE $t (k int, c int, s text static, v text, PRIMARY KEY (k, c))
input
INSERT INTO $t (k, s) VALUES (1, '$hex(9, 3000)') USING TIMESTAMP 10
for c in 0..150: INSERT INTO $t (k, c, v) VALUES (1, $c, '$hex(c * 31 + 1, 750)') USING TIMESTAMP 10
input
DELETE FROM $t USING TIMESTAMP 5 WHERE k = 1
for c in 100..200: INSERT INTO $t (k, c, v) VALUES (1, $c, '$hex(c * 31 + 1, 750)') USING TIMESTAMP 11

wide_many_rows: thousands of small rows in one partition
CREATE TABLE $t (k int, c bigint, a int, b int, PRIMARY KEY (k, c))
input
for c in 0..4000: INSERT INTO $t (k, c, a, b) VALUES (1, $c, 1, 2) USING TIMESTAMP $(100 + c)
input
for c in 2000..6000 step 2: UPDATE $t USING TIMESTAMP $(90 + c) SET b = 3 WHERE k = 1 AND c = $c
DELETE FROM $t USING TIMESTAMP 3500 WHERE k = 1 AND c > 2500 AND c < 3500

wide_uncompressed: wide partitions without compression
CREATE TABLE $t (k int, c int, v text, PRIMARY KEY (k, c)) WITH compression = {'enabled': false}
input
for c in 0..150: INSERT INTO $t (k, c, v) VALUES (1, $c, '$hex(c * 31 + 1, 750)') USING TIMESTAMP 10
input
for c in 100..200: INSERT INTO $t (k, c, v) VALUES (1, $c, '$hex(c * 31 + 1, 750)') USING TIMESTAMP 9
DELETE FROM $t USING TIMESTAMP 10 WHERE k = 1 AND c > 20 AND c < 160

wide_purge: deletions purged out of a wide partition; it shrinks below two blocks or vanishes
CREATE TABLE $t (k int, c int, v text, PRIMARY KEY (k, c))
input
for k in 1..3 for c in 0..200: INSERT INTO $t (k, c, v) VALUES ($k, $c, '$hex(c * 31 + k, 750)') USING TIMESTAMP 10
for c in 0..100: INSERT INTO $t (k, c, v) VALUES (3, $c, '$hex(c * 31 + 3, 750)') USING TIMESTAMP 10
input
DELETE FROM $t USING TIMESTAMP 11 WHERE k = 1 AND c > 20
DELETE FROM $t USING TIMESTAMP 11 WHERE k = 2
DELETE FROM $t USING TIMESTAMP 9 WHERE k = 3 AND c > 20 AND c < 60
purge all
";
