//! Row, cell, range and partition deletions.

use super::{Scenario, text};

pub(super) fn scenarios() -> Vec<Scenario> {
    text::scenarios(DELETIONS)
}

const DELETIONS: &str = "
row_deletions: row deletions older, equal and newer than the cells; rows written again
CREATE TABLE $t (k int, c int, v text, w text, PRIMARY KEY (k, c))
input
for c in 0..8: INSERT INTO $t (k, c, v, w) VALUES (1, $c, 'v$c', 'w') USING TIMESTAMP 10
input
for c in 0..6: DELETE FROM $t USING TIMESTAMP $(8 + c) WHERE k = 1 AND c = $c
DELETE FROM $t USING TIMESTAMP 12 WHERE k = 1 AND c = 20
input
UPDATE $t USING TIMESTAMP 13 SET v = 'again' WHERE k = 1 AND c = 3
INSERT INTO $t (k, c, w) VALUES (1, 4, 'again') USING TIMESTAMP 12
at 50
DELETE FROM $t USING TIMESTAMP 12 WHERE k = 1 AND c = 20

partition_deletions: partition deletions over everything, in either input
CREATE TABLE $t (k int, c int, v text, w text, s text static, PRIMARY KEY (k, c))
input
for k in 0..6:
    for c in 0..4: INSERT INTO $t (k, c, v, w) VALUES ($k, $c, 'v$c', 'w') USING TIMESTAMP 10
    INSERT INTO $t (k, s) VALUES ($k, 'static') USING TIMESTAMP 11
DELETE FROM $t USING TIMESTAMP 5 WHERE k = 5
input
for k in 0..4: DELETE FROM $t USING TIMESTAMP $(9 + k) WHERE k = $k
INSERT INTO $t (k, c, v) VALUES (3, 1, 'again') USING TIMESTAMP 13
at 7
DELETE FROM $t USING TIMESTAMP 5 WHERE k = 5
DELETE FROM $t USING TIMESTAMP 5 WHERE k = 99

cell_deletions: single cells deleted, with ties of deletion times
CREATE TABLE $t (k int, c int, v text, w text, PRIMARY KEY (k, c))
input
for c in 0..6: INSERT INTO $t (k, c, v, w) VALUES (1, $c, 'v$c', 'w') USING TIMESTAMP 10
DELETE v FROM $t USING TIMESTAMP 20 WHERE k = 1 AND c = 5
input
at 3
for c in 0..5: DELETE v FROM $t USING TIMESTAMP $(8 + c) WHERE k = 1 AND c = $c
DELETE v, w FROM $t USING TIMESTAMP 20 WHERE k = 1 AND c = 5
input
UPDATE $t USING TIMESTAMP 12 SET v = 'back' WHERE k = 1 AND c = 4

range_nested: range tombstones inside each other, newer inside older and the reverse
CREATE TABLE $t (k int, c int, v text, w text, PRIMARY KEY (k, c))
input
for k in 1..3 for c in 0..40: INSERT INTO $t (k, c, v, w) VALUES ($k, $c, 'v$c', 'w') USING TIMESTAMP 10
DELETE FROM $t USING TIMESTAMP 9 WHERE k = 1 AND c >= 0 AND c < 40
DELETE FROM $t USING TIMESTAMP 30 WHERE k = 2 AND c > 15 AND c <= 20
input
DELETE FROM $t USING TIMESTAMP 12 WHERE k = 1 AND c > 5 AND c < 30
DELETE FROM $t USING TIMESTAMP 12 WHERE k = 2 AND c > 5 AND c <= 30
input
DELETE FROM $t USING TIMESTAMP 15 WHERE k = 1 AND c >= 10 AND c <= 20
DELETE FROM $t USING TIMESTAMP 20 WHERE k = 2 AND c >= 10 AND c < 25
for c in 12..14: INSERT INTO $t (k, c, v, w) VALUES (1, $c, 'v$c', 'w') USING TIMESTAMP 16
for c in 12..18: INSERT INTO $t (k, c, v, w) VALUES (2, $c, 'v$c', 'w') USING TIMESTAMP 21

range_touching: inclusive and exclusive ends that meet, with and without a row at the boundary
CREATE TABLE $t (k int, c int, v text, w text, PRIMARY KEY (k, c))
input
for k in 0..8 for c in 0..12: INSERT INTO $t (k, c, v, w) VALUES ($k, $c, 'v$c', 'w') USING TIMESTAMP 10
DELETE FROM $t USING TIMESTAMP 11 WHERE k = 0 AND c >= 2 AND c < 5
DELETE FROM $t USING TIMESTAMP 11 WHERE k = 1 AND c >= 2 AND c <= 5
DELETE FROM $t USING TIMESTAMP 11 WHERE k = 2 AND c > 2 AND c < 5
DELETE FROM $t USING TIMESTAMP 11 WHERE k = 3 AND c >= 2 AND c <= 5
DELETE FROM $t USING TIMESTAMP 11 WHERE k = 4 AND c >= 2 AND c < 5
DELETE FROM $t USING TIMESTAMP 13 WHERE k = 5 AND c >= 2 AND c <= 5
DELETE FROM $t USING TIMESTAMP 11 WHERE k = 6 AND c <= 5
DELETE FROM $t USING TIMESTAMP 11 WHERE k = 7 AND c < 5
input
at 1
DELETE FROM $t USING TIMESTAMP 12 WHERE k = 0 AND c >= 5 AND c < 9
DELETE FROM $t USING TIMESTAMP 12 WHERE k = 1 AND c > 5 AND c < 9
DELETE FROM $t USING TIMESTAMP 12 WHERE k = 2 AND c > 5 AND c < 9
DELETE FROM $t USING TIMESTAMP 12 WHERE k = 3 AND c >= 5 AND c <= 9
DELETE FROM $t USING TIMESTAMP 11 WHERE k = 4 AND c >= 5 AND c < 9
DELETE FROM $t USING TIMESTAMP 12 WHERE k = 5 AND c >= 5 AND c <= 9
DELETE FROM $t USING TIMESTAMP 11 WHERE k = 6 AND c > 5
DELETE FROM $t USING TIMESTAMP 12 WHERE k = 7 AND c > 5

range_overlapping: chains of overlapping ranges in four inputs
CREATE TABLE $t (k int, c int, v text, w text, PRIMARY KEY (k, c))
input
for c in 0..60: INSERT INTO $t (k, c, v, w) VALUES (1, $c, 'v$c', 'w') USING TIMESTAMP 20
DELETE FROM $t USING TIMESTAMP 15 WHERE k = 1 AND c > 0 AND c < 20
DELETE FROM $t USING TIMESTAMP 25 WHERE k = 1 AND c > 40
input
DELETE FROM $t USING TIMESTAMP 21 WHERE k = 1 AND c >= 10 AND c <= 30
DELETE FROM $t USING TIMESTAMP 19 WHERE k = 1 AND c >= 35 AND c < 45
input
DELETE FROM $t USING TIMESTAMP 18 WHERE k = 1 AND c > 25 AND c <= 50
DELETE FROM $t USING TIMESTAMP 22 WHERE k = 1 AND c < 12
input
DELETE FROM $t USING TIMESTAMP 30 WHERE k = 1 AND c >= 28 AND c < 29
for c in 5..50: INSERT INTO $t (k, c, v, w) VALUES (1, $c, 'v$c', 'w') USING TIMESTAMP 23

range_equal_timestamps: ranges of equal timestamp but different deletion time, and with a partition deletion
CREATE TABLE $t (k int, c int, v text, w text, PRIMARY KEY (k, c))
input
for c in 0..20: INSERT INTO $t (k, c, v, w) VALUES (1, $c, 'v$c', 'w') USING TIMESTAMP 10
DELETE FROM $t USING TIMESTAMP 15 WHERE k = 1 AND c > 2 AND c < 10
DELETE FROM $t USING TIMESTAMP 15 WHERE k = 2 AND c > 2 AND c < 10
DELETE FROM $t USING TIMESTAMP 15 WHERE k = 3
input
at 100
DELETE FROM $t USING TIMESTAMP 15 WHERE k = 1 AND c >= 5 AND c <= 15
DELETE FROM $t USING TIMESTAMP 15 WHERE k = 3 AND c > 2 AND c < 10
at 0
DELETE FROM $t USING TIMESTAMP 15 WHERE k = 2 AND c >= 5 AND c <= 15
input
DELETE FROM $t USING TIMESTAMP 15 WHERE k = 1 AND c >= 12
DELETE FROM $t USING TIMESTAMP 16 WHERE k = 3 AND c > 4 AND c < 6

range_prefix: bounds that are prefixes of a three-column clustering with mixed directions
CREATE TABLE $t (k int, a int, b text, d int, v text, PRIMARY KEY (k, a, b, d)) WITH CLUSTERING ORDER BY (a ASC, b DESC, d ASC)
input
for a in 0..4 for b in 0..4 for d in 0..4:
    INSERT INTO $t (k, a, b, d, v) VALUES (1, $a, 'b$b', $d, 'v') USING TIMESTAMP $(10 + (a + b + d) % 3)
input
DELETE FROM $t USING TIMESTAMP 11 WHERE k = 1 AND a = 1
DELETE FROM $t USING TIMESTAMP 11 WHERE k = 1 AND a = 2 AND b = 'b2'
DELETE FROM $t USING TIMESTAMP 11 WHERE k = 1 AND a = 3 AND b >= 'b1' AND b < 'b3'
DELETE FROM $t USING TIMESTAMP 12 WHERE k = 1 AND a = 0 AND b = 'b1' AND d > 0 AND d <= 2
input
DELETE FROM $t USING TIMESTAMP 12 WHERE k = 1 AND a >= 1 AND a < 3
DELETE FROM $t USING TIMESTAMP 10 WHERE k = 1 AND (a, b) > (1, 'b2') AND (a, b) <= (1, 'b3')
DELETE FROM $t USING TIMESTAMP 13 WHERE k = 1 AND a = 1 AND b = 'b1' AND d = 1
INSERT INTO $t (k, a, b, d, v) VALUES (1, 1, 'b1', 2, 'v') USING TIMESTAMP 13
INSERT INTO $t (k, a, b, d, v) VALUES (1, 2, 'b2', 2, 'v') USING TIMESTAMP 12

range_whole_partition: open-ended ranges: empty bounds at top and bottom
CREATE TABLE $t (k int, c int, v text, w text, PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY (c DESC)
input
for k in 0..4 for c in 0..6: INSERT INTO $t (k, c, v, w) VALUES ($k, $c, 'v$c', 'w') USING TIMESTAMP 10
DELETE FROM $t USING TIMESTAMP 11 WHERE k = 0 AND c > 3
DELETE FROM $t USING TIMESTAMP 11 WHERE k = 1 AND c < 3
DELETE FROM $t USING TIMESTAMP 9 WHERE k = 2 AND c >= 3
input
DELETE FROM $t USING TIMESTAMP 11 WHERE k = 0 AND c <= 3
DELETE FROM $t USING TIMESTAMP 12 WHERE k = 1 AND c >= 2
DELETE FROM $t USING TIMESTAMP 9 WHERE k = 2 AND c < 3
DELETE FROM $t USING TIMESTAMP 12 WHERE k = 3 AND c < 100

range_over_rows: row deletions and liveness inside, below and above ranges
CREATE TABLE $t (k int, c int, v text, w text, PRIMARY KEY (k, c))
input
for c in 0..10: INSERT INTO $t (k, c, v, w) VALUES (1, $c, 'v$c', 'w') USING TIMESTAMP 10
DELETE FROM $t USING TIMESTAMP 12 WHERE k = 1 AND c >= 2 AND c <= 7
input
for c in 0..10: DELETE FROM $t USING TIMESTAMP $(9 + c) WHERE k = 1 AND c = $c
input
INSERT INTO $t (k, c) VALUES (1, 3) USING TIMESTAMP 13
UPDATE $t USING TIMESTAMP 14 SET w = 'u' WHERE k = 1 AND c = 4
INSERT INTO $t (k, c, v) VALUES (1, 5, 'shadowed') USING TIMESTAMP 12

boundary_purge: boundaries of which one, the other or both sides are old enough to be purged
CREATE TABLE $t (k int, c int, v text, w text, PRIMARY KEY (k, c))
input
for k in 0..4 for c in 0..20: INSERT INTO $t (k, c, v, w) VALUES ($k, $c, 'v$c', 'w') USING TIMESTAMP 10
DELETE FROM $t USING TIMESTAMP 11 WHERE k = 0 AND c > 2 AND c < 8
DELETE FROM $t USING TIMESTAMP 12 WHERE k = 1 AND c > 2 AND c < 8
DELETE FROM $t USING TIMESTAMP 11 WHERE k = 2 AND c > 2 AND c < 8
at 5000
DELETE FROM $t USING TIMESTAMP 11 WHERE k = 3 AND c > 2 AND c < 8
input
at 5000
DELETE FROM $t USING TIMESTAMP 12 WHERE k = 0 AND c >= 6 AND c < 12
DELETE FROM $t USING TIMESTAMP 11 WHERE k = 1 AND c >= 6 AND c < 12
at 0
DELETE FROM $t USING TIMESTAMP 12 WHERE k = 2 AND c >= 6 AND c < 12
at 5000
DELETE FROM $t USING TIMESTAMP 12 WHERE k = 3 AND c >= 6 AND c < 12
input
DELETE FROM $t USING TIMESTAMP 13 WHERE k = 0 AND c > 10 AND c < 15
DELETE FROM $t USING TIMESTAMP 20 WHERE k = 3 AND c > 7 AND c < 10
merge at 6000 with grace 3000

range_single_source: partitions with ranges that exist in one input only
CREATE TABLE $t (k int, c int, v text, w text, PRIMARY KEY (k, c))
input
for c in 0..10: INSERT INTO $t (k, c, v, w) VALUES (1, $c, 'v$c', 'w') USING TIMESTAMP 10
DELETE FROM $t USING TIMESTAMP 9 WHERE k = 1 AND c > 2 AND c < 5
DELETE FROM $t USING TIMESTAMP 11 WHERE k = 1 AND c >= 5 AND c <= 7
input
for c in 0..10: INSERT INTO $t (k, c, v, w) VALUES (2, $c, 'v$c', 'w') USING TIMESTAMP 10
DELETE FROM $t USING TIMESTAMP 11 WHERE k = 2 AND c > 2 AND c < 5
DELETE FROM $t USING TIMESTAMP 11 WHERE k = 2 AND c >= 5 AND c <= 7

all_purged: everything is purged: there must be no output
CREATE TABLE $t (k int, c int, v text, w text, PRIMARY KEY (k, c))
input
for k in 1..3 for c in 0..5: INSERT INTO $t (k, c, v, w) VALUES ($k, $c, 'v$c', 'w') USING TIMESTAMP 10
for c in 0..2: INSERT INTO $t (k, c, v, w) VALUES (3, $c, 'v$c', 'w') USING TIMESTAMP 10
INSERT INTO $t (k, c, v) VALUES (4, 1, 'brief') USING TIMESTAMP 10 AND TTL 60
input
DELETE FROM $t USING TIMESTAMP 20 WHERE k = 1
DELETE FROM $t USING TIMESTAMP 20 WHERE k = 2 AND c >= 0
DELETE FROM $t USING TIMESTAMP 20 WHERE k = 3 AND c = 0
DELETE FROM $t USING TIMESTAMP 20 WHERE k = 3 AND c = 1
purge all
leaves nothing

fully_expired_input: an input that is wholly expired may be dropped unread
CREATE TABLE $t (k int, c int, v text, w text, PRIMARY KEY (k, c))
input
for c in 0..5: INSERT INTO $t (k, c, v) VALUES (1, $c, 'brief') USING TIMESTAMP 10 AND TTL 60
input
for c in 3..8: INSERT INTO $t (k, c, v, w) VALUES (1, $c, 'v$c', 'w') USING TIMESTAMP 20
merge at 5000 with grace 1000

purge_held_back: an SSTable outside the merge holds back tombstones newer than its data
CREATE TABLE $t (k int, c int, v text, w text, PRIMARY KEY (k, c))
input
for k in 0..4 for c in 0..4: INSERT INTO $t (k, c, v, w) VALUES ($k, $c, 'v$c', 'w') USING TIMESTAMP 10
input
DELETE FROM $t USING TIMESTAMP 40 WHERE k = 0
DELETE FROM $t USING TIMESTAMP 60 WHERE k = 1 AND c >= 0
DELETE FROM $t USING TIMESTAMP 60 WHERE k = 2 AND c = 1
DELETE FROM $t USING TIMESTAMP 60 WHERE k = 3
input
for k in 0..2 for c in 0..2: INSERT INTO $t (k, c, v, w) VALUES ($k, $c, 'v$c', 'w') USING TIMESTAMP 50
INSERT INTO $t (k, c, v, w) VALUES (2, 1, 'v1', 'w') USING TIMESTAMP 50
purge all
others 1

gc_boundary: deletion times just before, at and after gc_before: the comparison is strict
CREATE TABLE $t (k int, c int, v text, w text, PRIMARY KEY (k, c))
input
for c in 0..10: INSERT INTO $t (k, c, v, w) VALUES (1, $c, 'v$c', 'w') USING TIMESTAMP 10
for k in 2..5 for c in 0..3: INSERT INTO $t (k, c, v, w) VALUES ($k, $c, 'v$c', 'w') USING TIMESTAMP 10
input
for k in 2..5:
    at $(97 + k)
    DELETE FROM $t USING TIMESTAMP 20 WHERE k = $k
    DELETE FROM $t USING TIMESTAMP 20 WHERE k = 1 AND c = $k
    DELETE v FROM $t USING TIMESTAMP 20 WHERE k = 1 AND c = $(k + 3)
    DELETE FROM $t USING TIMESTAMP 20 WHERE k = 5 AND c > $(k * 10) AND c < $(k * 10 + 5)
merge at 1000 with grace 900

no_purge: purging off: every deletion stays, expired cells become tombstones
CREATE TABLE $t (k int, c int, v text, w text, PRIMARY KEY (k, c))
input
for k in 1..3 for c in 0..5: INSERT INTO $t (k, c, v, w) VALUES ($k, $c, 'v$c', 'w') USING TIMESTAMP 10
INSERT INTO $t (k, c, v) VALUES (3, 1, 'brief') USING TIMESTAMP 10 AND TTL 60
input
DELETE FROM $t USING TIMESTAMP 20 WHERE k = 1
DELETE FROM $t USING TIMESTAMP 20 WHERE k = 2 AND c > 1 AND c < 3
DELETE FROM $t USING TIMESTAMP 20 WHERE k = 2 AND c = 4
merge at 50000000 with grace 0
purge nothing

deletions_only: no live data at all, nothing old enough to purge
CREATE TABLE $t (k int, c int, v text, w text, PRIMARY KEY (k, c))
input
DELETE FROM $t USING TIMESTAMP 20 WHERE k = 1
DELETE FROM $t USING TIMESTAMP 20 WHERE k = 2 AND c > 1 AND c < 3
input
DELETE FROM $t USING TIMESTAMP 21 WHERE k = 3 AND c = 4
DELETE FROM $t USING TIMESTAMP 19 WHERE k = 2 AND c >= 2
DELETE v FROM $t USING TIMESTAMP 21 WHERE k = 4 AND c = 4
";
