//! Collections and user-defined types, frozen and not, overwritten, extended and partly deleted.

use super::{Scenario, list, text};

pub(super) fn scenarios() -> Vec<Scenario> {
    let mut every = text::scenarios(COLLECTIONS);
    every.push(many_elements());
    every
}

const COLLECTIONS: &str = "
sets_and_maps: elements added and removed in different inputs
CREATE TABLE $t (k int, c int, s set<text>, m map<int, text>, PRIMARY KEY (k, c))
input
INSERT INTO $t (k, c, s, m) VALUES (1, 1, {'a', 'b', 'c'}, {1: 'x', 2: 'y'}) USING TIMESTAMP 10
UPDATE $t USING TIMESTAMP 10 SET s = s + {'a', 'q'}, m = m + {5: 'five'} WHERE k = 1 AND c = 2
UPDATE $t USING TIMESTAMP 10 SET m[7] = 'seven', m[8] = '' WHERE k = 1 AND c = 3
input
UPDATE $t USING TIMESTAMP 11 SET s = s - {'b'}, m = m - {1} WHERE k = 1 AND c = 1
UPDATE $t USING TIMESTAMP 9 SET s = s - {'a'}, m[5] = 'older' WHERE k = 1 AND c = 2
DELETE m[7] FROM $t USING TIMESTAMP 11 WHERE k = 1 AND c = 3
UPDATE $t USING TIMESTAMP 10 SET m[8] = 'tie' WHERE k = 1 AND c = 3
input
UPDATE $t USING TIMESTAMP 12 SET s = s + {'b', 'z'}, m = m + {0: 'zero', 9: 'nine'} WHERE k = 1 AND c = 1

lists: appended, prepended, set and removed by index and by value
CREATE TABLE $t (k int PRIMARY KEY, l list<text>, fl frozen<list<text>>)
input
INSERT INTO $t (k, l, fl) VALUES (1, ['a', 'b', 'c'], ['x']) USING TIMESTAMP 10
UPDATE $t USING TIMESTAMP 11 SET l = l + ['d'] WHERE k = 1
UPDATE $t USING TIMESTAMP 11 SET l = ['z'] + l WHERE k = 1
UPDATE $t USING TIMESTAMP 12 SET l[1] = 'B' WHERE k = 1
DELETE l[0] FROM $t USING TIMESTAMP 12 WHERE k = 1
INSERT INTO $t (k, l) VALUES (2, ['one']) USING TIMESTAMP 10
input
at 1
UPDATE $t USING TIMESTAMP 12 SET l = l + ['e', 'f'] WHERE k = 1
UPDATE $t USING TIMESTAMP 13 SET l = l - ['e'] WHERE k = 1
INSERT INTO $t (k, l) VALUES (2, ['two']) USING TIMESTAMP 11
UPDATE $t USING TIMESTAMP 10 SET l = l + ['lost'], fl = ['y', ''] WHERE k = 2

collections_overwritten: an assignment is a complex deletion one microsecond before its elements
CREATE TABLE $t (k int, c int, m map<int, int>, PRIMARY KEY (k, c))
input
for c in 1..4: INSERT INTO $t (k, c, m) VALUES (1, $c, {1: 1, 2: 2}) USING TIMESTAMP 10
INSERT INTO $t (k, c, m) VALUES (1, 4, {1: 1}) USING TIMESTAMP 10
input
INSERT INTO $t (k, c, m) VALUES (1, 1, {3: 3}) USING TIMESTAMP 11
INSERT INTO $t (k, c, m) VALUES (1, 2, {3: 3}) USING TIMESTAMP 10
INSERT INTO $t (k, c, m) VALUES (1, 3, {}) USING TIMESTAMP 12
DELETE m FROM $t USING TIMESTAMP 10 WHERE k = 1 AND c = 4

two_complex: a complex deletion on one of two complex columns makes the other write LIVE
CREATE TABLE $t (k int, c int, a map<int, int>, b set<int>, v int, PRIMARY KEY (k, c))
input
UPDATE $t USING TIMESTAMP 10 SET a = {1: 1}, b = b + {1} WHERE k = 1 AND c = 1
UPDATE $t USING TIMESTAMP 10 SET a = a + {1: 1}, b = {2}, v = 3 WHERE k = 1 AND c = 2
UPDATE $t USING TIMESTAMP 10 SET a = a + {1: 1}, b = b + {2} WHERE k = 1 AND c = 3
input
UPDATE $t USING TIMESTAMP 11 SET a = a + {2: 2} WHERE k = 1 AND c = 1
UPDATE $t USING TIMESTAMP 11 SET b = b + {5}, a = null WHERE k = 1 AND c = 2
DELETE b FROM $t USING TIMESTAMP 9 WHERE k = 1 AND c = 3

complex_ties: equal complex deletions, equal elements, and a row deletion of the same time
CREATE TABLE $t (k int, c int, m map<int, int>, PRIMARY KEY (k, c))
input
INSERT INTO $t (k, c, m) VALUES (1, 1, {1: 1, 2: 5}) USING TIMESTAMP 10
DELETE m FROM $t USING TIMESTAMP 20 WHERE k = 1 AND c = 2
UPDATE $t USING TIMESTAMP 20 SET m = m + {1: 1} WHERE k = 1 AND c = 3
input
at 5
INSERT INTO $t (k, c, m) VALUES (1, 1, {1: 2, 2: 4}) USING TIMESTAMP 10
DELETE FROM $t USING TIMESTAMP 20 WHERE k = 1 AND c = 2
DELETE m[1] FROM $t USING TIMESTAMP 20 WHERE k = 1 AND c = 3
input
DELETE FROM $t USING TIMESTAMP 20 WHERE k = 1 AND c = 2
UPDATE $t USING TIMESTAMP 21 SET m = m + {8: 8} WHERE k = 1 AND c = 2

complex_under_deletions: complex deletions below, between and above row, range and partition deletions
CREATE TABLE $t (k int, c int, m map<int, int>, s set<int> , PRIMARY KEY (k, c))
input
for k in 0..4 for c in 0..6:
    INSERT INTO $t (k, c, m, s) VALUES ($k, $c, {1: 1, 2: 2}, {1, 2}) USING TIMESTAMP $(10 + c)
input
DELETE FROM $t USING TIMESTAMP 12 WHERE k = 1
DELETE FROM $t USING TIMESTAMP 12 WHERE k = 2 AND c >= 1 AND c < 5
for c in 0..6: DELETE FROM $t USING TIMESTAMP 12 WHERE k = 3 AND c = $c
input
for k in 0..4:
    UPDATE $t USING TIMESTAMP 13 SET m = {9: 9}, s = s + {7} WHERE k = $k AND c = 2
    DELETE m FROM $t USING TIMESTAMP 12 WHERE k = $k AND c = 3
    DELETE m FROM $t USING TIMESTAMP 14 WHERE k = $k AND c = 4

complex_purge: complex deletions and element tombstones old enough to be purged
CREATE TABLE $t (k int, c int, m map<int, int>, s set<int>, PRIMARY KEY (k, c))
input
INSERT INTO $t (k, c, m, s) VALUES (1, 1, {1: 1, 2: 2}, {1}) USING TIMESTAMP 10
INSERT INTO $t (k, c, m) VALUES (1, 2, {1: 1}) USING TIMESTAMP 10
UPDATE $t USING TIMESTAMP 10 SET m = m + {1: 1} WHERE k = 2 AND c = 2
input
at 2000
UPDATE $t USING TIMESTAMP 11 SET m = {3: 3}, s = s - {1} WHERE k = 1 AND c = 1
DELETE m FROM $t USING TIMESTAMP 11 WHERE k = 1 AND c = 2
DELETE m FROM $t USING TIMESTAMP 11 WHERE k = 2 AND c = 2
merge at 3000 with grace 1500

collection_ttl: elements with their own TTLs, some expired
CREATE TABLE $t (k int PRIMARY KEY, m map<int, int>, s set<int>)
input
INSERT INTO $t (k, m) VALUES (1, {1: 1, 2: 2}) USING TIMESTAMP 10 AND TTL 500
UPDATE $t USING TIMESTAMP 11 AND TTL 5000 SET m = m + {3: 3}, s = s + {1} WHERE k = 1
UPDATE $t USING TIMESTAMP 11 AND TTL 600 SET s = s + {2} WHERE k = 1
input
UPDATE $t USING TIMESTAMP 12 SET m = m + {2: 22} WHERE k = 1
UPDATE $t USING TIMESTAMP 11 AND TTL 700 SET s = s + {1, 2} WHERE k = 1

static_collections: complex static columns
CREATE TABLE $t (k int, c int, sm map<int, text> static, ss set<int> static, si int static, v int, PRIMARY KEY (k, c))
input
INSERT INTO $t (k, sm, si) VALUES (1, {1: 'a'}, 5) USING TIMESTAMP 10
UPDATE $t USING TIMESTAMP 10 SET ss = ss + {1, 2} WHERE k = 2
INSERT INTO $t (k, c, v) VALUES (3, 1, 1) USING TIMESTAMP 10
input
UPDATE $t USING TIMESTAMP 11 SET sm = sm + {2: 'b'}, ss = {9} WHERE k = 1
DELETE ss FROM $t USING TIMESTAMP 9 WHERE k = 2
DELETE sm[1] FROM $t USING TIMESTAMP 12 WHERE k = 3

udt: non-frozen UDT: fields are cells, set and deleted one by one
CREATE TYPE $ks.person (name text, age int, emails frozen<list<text>>)
CREATE TABLE $t (k int, c int, p $ks.person, f frozen<$ks.person>, sp $ks.person static, PRIMARY KEY (k, c))
input
INSERT INTO $t (k, c, p, f) VALUES (1, 1, {name: 'n', age: 3, emails: ['a@b']}, {name: 'f'}) USING TIMESTAMP 10
UPDATE $t USING TIMESTAMP 10 SET p.age = 5 WHERE k = 1 AND c = 2
UPDATE $t USING TIMESTAMP 10 SET sp.name = 'static' WHERE k = 1
input
UPDATE $t USING TIMESTAMP 11 SET p.name = null, p.emails = [] WHERE k = 1 AND c = 1
UPDATE $t USING TIMESTAMP 9 SET p = {name: 'older', age: 4} WHERE k = 1 AND c = 2
UPDATE $t USING TIMESTAMP 11 SET sp = {age: 1} WHERE k = 1
input
DELETE p.age FROM $t USING TIMESTAMP 12 WHERE k = 1 AND c = 1
UPDATE $t USING TIMESTAMP 12 AND TTL 300 SET p.name = 'brief' WHERE k = 1 AND c = 2

udt_nested: UDTs in collections in UDTs
CREATE TYPE $ks.inner_t (a int, b text)
CREATE TYPE $ks.outer_t (i frozen<$ks.inner_t>, l frozen<list<frozen<$ks.inner_t>>>, m frozen<map<text, frozen<$ks.inner_t>>>)
CREATE TABLE $t (k int PRIMARY KEY, o $ks.outer_t, lo list<frozen<$ks.outer_t>>, mo map<frozen<$ks.inner_t>, frozen<$ks.outer_t>>)
input
INSERT INTO $t (k, o, lo) VALUES (1, {i: {a: 1, b: 'x'}, l: [{a: 2}, {b: 'y'}]}, [{m: {'k': {a: 1}}}]) USING TIMESTAMP 10
UPDATE $t USING TIMESTAMP 10 SET mo = mo + {{a: 1, b: 'k'}: {i: {a: 5}}} WHERE k = 1
input
UPDATE $t USING TIMESTAMP 11 SET o.l = null, o.m = {'z': {a: 9, b: ''}} WHERE k = 1
UPDATE $t USING TIMESTAMP 11 SET mo[{a: 1, b: 'k'}] = {i: {b: 'new'}}, mo[{a: null, b: 'q'}] = {i: null} WHERE k = 1
";

fn many_elements() -> Scenario {
    let map = |from: u32, to: u32, add: u32| {
        let items = list((from..to).map(|n| format!("{n}: {}", n + add)));
        format!("{{{items}}}")
    };
    Scenario::new(
        "many_elements",
        "a row with thousands of cells, longer than a chunk",
    )
    .schema("CREATE TABLE $t (k int, c int, m map<int, bigint>, PRIMARY KEY (k, c))")
    .input(|i| {
        i.cql(format!(
            "INSERT INTO $t (k, c, m) VALUES (1, 1, {}) USING TIMESTAMP 10",
            map(0, 3000, 0)
        ));
        i.cql(format!(
            "INSERT INTO $t (k, c, m) VALUES (1, 2, {}) USING TIMESTAMP 10",
            map(0, 10, 0)
        ));
    })
    .input(|i| {
        i.cql(format!(
            "UPDATE $t USING TIMESTAMP 11 SET m = m + {} WHERE k = 1 AND c = 1",
            map(1500, 4500, 7)
        ));
    })
}
