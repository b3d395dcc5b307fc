//! Columns that were dropped, and types that have changed, since the inputs were written.

use super::{Scenario, text};

/// Scenarios in which the current schema hides some cells of the inputs.
pub(super) fn scenarios() -> Vec<Scenario> {
    let mut every = text::scenarios(DROPPED);
    for scenario in &mut every {
        scenario.hides_cells = true;
    }
    every
}

const DROPPED: &str = r#"
dropped_simple: cells up to the exact microsecond of the drop are dropped, later ones stay
CREATE TABLE $t (k int, c int, a text, b text, d int, PRIMARY KEY (k, c))
input
for c in 1..5: INSERT INTO $t (k, c, a, b, d) VALUES (1, $c, 'a', 'b', $c) USING TIMESTAMP $(8 + c)
input
ALTER TABLE $t DROP b USING TIMESTAMP 10
ALTER TABLE $t DROP d USING TIMESTAMP 11
for c in 2..7: INSERT INTO $t (k, c, a) VALUES (1, $c, 'later') USING TIMESTAMP 13

dropped_readded: a column that is dropped twice and added again keeps what is newer than the last drop
CREATE TABLE $t (k int, c int, a text, b text, PRIMARY KEY (k, c))
input
for c in 0..4: INSERT INTO $t (k, c, b) VALUES (1, $c, 'at 10') USING TIMESTAMP 10
input
ALTER TABLE $t DROP b USING TIMESTAMP 10
ALTER TABLE $t ADD b text
for c in 1..5: INSERT INTO $t (k, c, b) VALUES (1, $c, 'at 20') USING TIMESTAMP 20
for c in 5..7: INSERT INTO $t (k, c, b) VALUES (1, $c, 'at 31') USING TIMESTAMP 31
input
ALTER TABLE $t DROP b USING TIMESTAMP 30
ALTER TABLE $t ADD b text
for c in 2..4: INSERT INTO $t (k, c, b) VALUES (1, $c, 'at 31') USING TIMESTAMP 31
INSERT INTO $t (k, c, b) VALUES (1, 4, 'at 29') USING TIMESTAMP 29

dropped_emptied: rows and partitions that held nothing but a dropped column
CREATE TABLE $t (k int, c int, a text, b text, s text static, r text static, PRIMARY KEY (k, c))
input
for k in 0..4:
    UPDATE $t USING TIMESTAMP 10 SET b = 'b' WHERE k = $k AND c = 1
    UPDATE $t USING TIMESTAMP 10 SET s = 's' WHERE k = $k
UPDATE $t USING TIMESTAMP 10 SET r = 'r' WHERE k = 1
INSERT INTO $t (k, c, b) VALUES (2, 2, 'alive') USING TIMESTAMP 10
DELETE FROM $t USING TIMESTAMP 8 WHERE k = 3 AND c > 3 AND c < 9
input
ALTER TABLE $t DROP b USING TIMESTAMP 10
ALTER TABLE $t DROP s USING TIMESTAMP 10
UPDATE $t USING TIMESTAMP 11 SET a = 'a' WHERE k = 1 AND c = 1
UPDATE $t USING TIMESTAMP 11 SET a = 'a' WHERE k = 9 AND c = 1

dropped_complex: collections are dropped with their deletions, some of which are newer than the drop
CREATE TABLE $t (k int, c int, a text, m map<int, text>, n set<int>, z list<int>, PRIMARY KEY (k, c))
input
for c in 1..5:
    INSERT INTO $t (k, c, m, n, z) VALUES (1, $c, {1: 'x', 2: 'y'}, {1, 2}, [1]) USING TIMESTAMP $(8 + c)
    UPDATE $t USING TIMESTAMP $(8 + c) SET n = n + {7} WHERE k = 2 AND c = $c
    DELETE m FROM $t USING TIMESTAMP $(8 + c) WHERE k = 3 AND c = $c
input
ALTER TABLE $t DROP m USING TIMESTAMP 10
ALTER TABLE $t DROP n USING TIMESTAMP 10
for c in 1..5: INSERT INTO $t (k, c, a, z) VALUES (1, $c, 'a', [2]) USING TIMESTAMP 20

dropped_complex_readded: cells of a collection older and newer than the drop in one row
CREATE TABLE $t (k int, c int, a text, m map<int, text>, PRIMARY KEY (k, c))
input
for c in 1..4: UPDATE $t USING TIMESTAMP 10 SET m = m + {1: 'old', 2: 'old'} WHERE k = 1 AND c = $c
UPDATE $t USING TIMESTAMP 10 SET m = {5: 'old'} WHERE k = 1 AND c = 4
input
ALTER TABLE $t DROP m USING TIMESTAMP 10
ALTER TABLE $t ADD m map<int, text>
UPDATE $t USING TIMESTAMP 11 SET m = m + {2: 'new', 3: 'new'} WHERE k = 1 AND c = 2
UPDATE $t USING TIMESTAMP 11 SET m = {9: 'whole'} WHERE k = 1 AND c = 3
UPDATE $t USING TIMESTAMP 12 SET m = {9: 'whole'} WHERE k = 1 AND c = 4

dropped_statics: static columns, simple and complex
CREATE TABLE $t (k int, c int, a text, s text static, m map<int, int> static, n set<int> static, PRIMARY KEY (k, c))
input
for k in 0..4: INSERT INTO $t (k, s, m, n) VALUES ($k, 's', {1: 1}, {1}) USING TIMESTAMP $(9 + k)
INSERT INTO $t (k, c, a) VALUES (1, 1, 'a') USING TIMESTAMP 10
input
ALTER TABLE $t DROP s USING TIMESTAMP 10
ALTER TABLE $t DROP m USING TIMESTAMP 11
ALTER TABLE $t ADD m map<int, int> static
UPDATE $t USING TIMESTAMP 12 SET m = m + {2: 2} WHERE k = 0
UPDATE $t USING TIMESTAMP 12 SET n = n + {2} WHERE k = 3

dropped_all_statics: the last static columns are dropped: even cells newer than the drop are dropped
CREATE TABLE $t (k int, c int, a text, s text static, m map<int, int> static, PRIMARY KEY (k, c))
input
for k in 0..5: INSERT INTO $t (k, s, m) VALUES ($k, 's', {1: 1}) USING TIMESTAMP $(9 + k)
INSERT INTO $t (k, c, a) VALUES (1, 1, 'a') USING TIMESTAMP 10
INSERT INTO $t (k, c, a) VALUES (3, 1, 'a') USING TIMESTAMP 10
input
DELETE s FROM $t USING TIMESTAMP 13 WHERE k = 2
INSERT INTO $t (k, c, a) VALUES (3, 2, 'a') USING TIMESTAMP 10
input
ALTER TABLE $t DROP s USING TIMESTAMP 10
ALTER TABLE $t DROP m USING TIMESTAMP 10
INSERT INTO $t (k, c, a) VALUES (1, 2, 'a') USING TIMESTAMP 12

dropped_dying: tombstones and expiring cells of dropped columns
CREATE TABLE $t (k int, c int, a text, b text, m map<int, text>, n set<int>, PRIMARY KEY (k, c))
input
DELETE b FROM $t USING TIMESTAMP 10 WHERE k = 1 AND c = 1
DELETE b FROM $t USING TIMESTAMP 11 WHERE k = 1 AND c = 2
DELETE m[1] FROM $t USING TIMESTAMP 10 WHERE k = 1 AND c = 3
UPDATE $t USING TIMESTAMP 10 AND TTL 500 SET b = 'expired' WHERE k = 1 AND c = 4
UPDATE $t USING TIMESTAMP 10 AND TTL 5000 SET b = 'lives' WHERE k = 1 AND c = 5
UPDATE $t USING TIMESTAMP 11 AND TTL 5000 SET b = 'lives' WHERE k = 1 AND c = 6
INSERT INTO $t (k, c, b) VALUES (1, 7, 'b') USING TIMESTAMP 10 AND TTL 500
input
ALTER TABLE $t DROP b USING TIMESTAMP 10
ALTER TABLE $t DROP m USING TIMESTAMP 10
INSERT INTO $t (k, c, a, n) VALUES (1, 9, 'a', {1}) USING TIMESTAMP 12
purge all

dropped_types: dropped columns whose types hold UDTs, which the schema has as tuples
CREATE TYPE $ks.u (x int, y text)
CREATE TABLE $t (k int, c int, keep text, "Quoted ""col" int, f frozen<u>, l list<frozen<u>>, uu u, m map<text, frozen<list<frozen<u>>>>, t tuple<int, frozen<u>>, v vector<float, 2>, zz set<int>, PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY (c DESC)
input
for c in 0..3:
    INSERT INTO $t (k, c, keep, "Quoted ""col", f, uu, m, t, v) VALUES (1, $c, 'keep', 1, {x: 1, y: 'y'}, {x: 4, y: 'u'}, {'k': [{x: 2, y: 'z'}]}, (1, {x: 3, y: ''}), [1, 2]) USING TIMESTAMP $(9 + c)
input
ALTER TABLE $t DROP "Quoted ""col" USING TIMESTAMP 10
for column in [f l m t v]: ALTER TABLE $t DROP $column USING TIMESTAMP 10
INSERT INTO $t (k, c, keep) VALUES (1, 1, 'later') USING TIMESTAMP 12

dropped_readded_wider: columns that are added again with a type that reads the bytes of the old one and others
CREATE TABLE $t (k int, c int, b tuple<int, text>, i tuple<int, int>, m map<int, frozen<tuple<int, text>>>, PRIMARY KEY (k, c))
input
for c in 0..3: INSERT INTO $t (k, c, b, i, m) VALUES (1, $c, (1, 'x'), (1, 2), {1: (1, 'x')}) USING TIMESTAMP $(9 + c)
input
for column in [b i m]: ALTER TABLE $t DROP $column USING TIMESTAMP 10
ALTER TABLE $t ADD b blob
ALTER TABLE $t ADD i tuple<varint, blob>
ALTER TABLE $t ADD m map<int, blob>
for c in 1..4: INSERT INTO $t (k, c, b, i, m) VALUES (1, $c, 0xff, (300000000000, 0xff), {1: 0xff}) USING TIMESTAMP 20

dropped_counters: a dropped counter, and one that stays
CREATE TABLE $t (k int, c int, a counter, b counter, PRIMARY KEY (k, c))
input
UPDATE $t SET a = a + 1, b = b + 1 WHERE k = 1 AND c = 1
UPDATE $t SET b = b + 1 WHERE k = 1 AND c = 2
input
ALTER TABLE $t DROP b USING TIMESTAMP 4000000000000000
UPDATE $t SET a = a + 1 WHERE k = 1 AND c = 1

dropped_one_input: a single input, nothing to merge with
CREATE TABLE $t (k int, c int, a text, b text, m set<int>, n set<int>, PRIMARY KEY (k, c))
input
for c in 0..5:
    INSERT INTO $t (k, c, a, b, m) VALUES (1, $c, 'a', 'b', {1}) USING TIMESTAMP $(8 + c)
    UPDATE $t USING TIMESTAMP 10 SET b = 'only' WHERE k = 2 AND c = $c
INSERT INTO $t (k, c, a) VALUES (3, 1, 'untouched') USING TIMESTAMP 1
after ALTER TABLE $t DROP b USING TIMESTAMP 10
after ALTER TABLE $t DROP m USING TIMESTAMP 10

udt_grown: UDTs that have got a field between flushes
CREATE TYPE $ks.u (x int)
CREATE TABLE $t (k int, c int, f frozen<u>, u u, l list<frozen<u>>, PRIMARY KEY (k, c))
input
INSERT INTO $t (k, c, f, u) VALUES (1, 1, {x: 1}, {x: 1}) USING TIMESTAMP 10
INSERT INTO $t (k, c, f, u) VALUES (1, 2, {x: 1}, {x: 1}) USING TIMESTAMP 10
input
ALTER TYPE $ks.u ADD y text
INSERT INTO $t (k, c, f) VALUES (1, 1, {x: 1, y: 'y'}) USING TIMESTAMP 11
UPDATE $t USING TIMESTAMP 11 SET u.y = 'y' WHERE k = 1 AND c = 1
after ALTER TYPE $ks.u ADD z text
"#;
