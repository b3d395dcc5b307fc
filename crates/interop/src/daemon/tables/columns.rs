//! Types of columns, and columns that are added and dropped.

use super::{Table, time};

pub(super) fn tables() -> Vec<Table> {
    let mut tables = super::from_text(COLUMNS);
    tables.push(all_types());
    tables
}

/// Columns of each native type, and a value of the `n`th row.
fn native(n: u32) -> Vec<(&'static str, String)> {
    vec![
        ("ascii", format!("'ascii {n}'")),
        ("bigint", format!("{}", i64::from(n) * 10_000_000_000 - 7)),
        ("blob", format!("0x{n:08x}00ff")),
        ("boolean", format!("{}", n.is_multiple_of(2))),
        ("date", format!("'20{:02}-02-28'", n % 100)),
        ("decimal", format!("-{n}.{:03}", n % 1000)),
        ("double", format!("{n}.5e-10")),
        ("duration", format!("{n}mo2d3h4ns")),
        ("float", format!("-{n}.25")),
        ("inet", format!("'2001:db8::{:x}'", n + 1)),
        ("int", format!("-{n}")),
        ("smallint", format!("{}", n % 30_000)),
        ("text", format!("'Größe {n} 漢字'")),
        ("time", format!("'{:02}:59:59.123456789'", n % 24)),
        (
            "timestamp",
            format!("'20{:02}-12-31T23:59:59.999Z'", n % 38),
        ),
        ("timeuuid", format!("{n:08x}-1dd2-11b2-8000-0123456789ab")),
        ("tinyint", format!("-{}", n % 128)),
        ("uuid", format!("{n:08x}-5f2b-4c31-9d52-0123456789ab")),
        (
            "varint",
            format!("-{n}00000000000000000000000000000000000001"),
        ),
    ]
}

/// Each type as clustering, static and regular column.
fn all_types() -> Table {
    let types: Vec<&str> = native(0).into_iter().map(|(name, _)| name).collect();
    let clusterings: Vec<&&str> = types.iter().filter(|name| **name != "duration").collect();
    let mut columns = vec!["k int".to_owned()];
    columns.extend(clusterings.iter().map(|name| format!("c_{name} {name}")));
    columns.extend(types.iter().map(|name| format!("s_{name} {name} STATIC")));
    columns.extend(types.iter().map(|name| format!("v_{name} {name}")));
    let keys: Vec<String> = clusterings.iter().map(|name| format!("c_{name}")).collect();
    let create = format!(
        "CREATE TABLE $t ({}, PRIMARY KEY (k, {}))",
        columns.join(", "),
        keys.join(", ")
    );
    Table::rows("all_types", create, 24, |round, n| {
        let row = n + round * 12;
        let mut names = vec!["k".to_owned()];
        let mut values = vec![format!("{}", row % 5)];
        for (name, value) in native(row) {
            if name != "duration" {
                names.push(format!("c_{name}"));
                values.push(value);
            }
        }
        for (name, value) in native(row + round) {
            names.push(format!("v_{name}"));
            values.push(if row % 7 == 3 {
                "null".to_owned()
            } else {
                value.clone()
            });
            names.push(format!("s_{name}"));
            values.push(value);
        }
        format!(
            "INSERT INTO $t ({}) VALUES ({}) USING TIMESTAMP {}",
            names.join(", "),
            values.join(", "),
            time(round, n)
        )
    })
}

const COLUMNS: &str = "
vectors
since 5
CREATE TABLE $t (k int, c vector<int, 2>, f vector<float, 3>, t vector<text, 2>, n vector<frozen<list<int>>, 2>, PRIMARY KEY (k, c))
rounds 0 1 2 3
for n in 0..40:
    INSERT INTO $t (k, c, f, t, n) VALUES ($(n % 4), [$n, $round], [0.$n, 1, -2.5], ['$words(n, 30)', ''], [[1, $n], []]) USING TIMESTAMP $(time + n)

# Elements of sets, lists and maps are cells.
collections
CREATE TABLE $t (k int PRIMARY KEY, s set<text>, l list<int>, m map<text, int>, n map<int, frozen<list<text>>>)
rounds 0 2
for n in 0..30:
    INSERT INTO $t (k, s, l, m, n) VALUES ($n, {'a$round', 'b'}, [1, $round], {'x': $n, 'y$round': 2}, {$n: ['p', 'q']}) USING TIMESTAMP $(time + n)
rounds 0 1 2 3
for n in 0..30:
    UPDATE $t USING TIMESTAMP $(time + n + 100) SET s = s + {'more $round'}, l = l + [$round], m['z$round'] = $n, n[$round] = ['$words(n, 50)'] WHERE k = $n
for n in 0..10:
    DELETE m['x'], s['b'] FROM $t USING TIMESTAMP $(time + n + 200) WHERE k = $n
    DELETE l FROM $t USING TIMESTAMP $(time + n + 200) WHERE k = $(n + 10)
    UPDATE $t USING TIMESTAMP $(time + n + 200) AND TTL 8640000 SET m['ttl'] = $n WHERE k = $(n + 20)

frozen
CREATE TABLE $t (k frozen<tuple<int, text>>, c frozen<set<int>>, t tuple<int, text, double>, m frozen<map<text, frozen<list<int>>>>, PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY (c DESC)
rounds 0 1 2 3
for n in 0..40:
    INSERT INTO $t (k, c, t, m) VALUES (($(n % 5), 'k'), {$n, $round}, ($n, null, 1.5), {'a': [1, $n], 'b': []}) USING TIMESTAMP $(time + n)

# Fields that are cells of their own, and types in types.
user_types
CREATE TYPE $ks.rig_address (street text, number int, tags frozen<set<text>>)
CREATE TYPE $ks.rig_person (name text, home frozen<rig_address>)
CREATE TABLE $t (k int PRIMARY KEY, a rig_address, f frozen<rig_address>, l list<frozen<rig_address>>, p rig_person)
rounds 0
for n in 0..30:
    let address = {street: '$words(n, 25)', number: $n, tags: {'t$round'}}
    INSERT INTO $t (k, a, f, l, p) VALUES ($n, $address, $address, [$address], {name: 'n', home: $address}) USING TIMESTAMP $(time + n)
rounds 1
for n in 0..30: UPDATE $t USING TIMESTAMP $(time + n) SET a.number = $(n * 2), p.name = 'p' WHERE k = $n
rounds 2
for n in 0..30: UPDATE $t USING TIMESTAMP $(time + n) SET a.street = null, p.home = null WHERE k = $n
rounds 3
ALTER TYPE $ks.rig_person ADD age int
for n in 0..30: UPDATE $t USING TIMESTAMP $(time + n) SET a.tags = {'last'}, p.age = $n WHERE k = $n

# Columns that have been dropped, one of which was added again.
dropped
CREATE TABLE $t (k int, c int, v text, w text, m map<int, int>, s int STATIC, PRIMARY KEY (k, c))
rounds 0
for n in 0..40: INSERT INTO $t (k, c, w, m, s) VALUES ($(n % 5), $n, 'w', {1: $n}, $n) USING TIMESTAMP $(time + n)
rounds 1
ALTER TABLE $t DROP w
for n in 0..40: INSERT INTO $t (k, c, m, s) VALUES ($(n % 5), $n, {2: $n}, $n) USING TIMESTAMP $(time + n)
rounds 2
ALTER TABLE $t DROP m
ALTER TABLE $t DROP s
rounds 3
ALTER TABLE $t ADD w text
rounds 2 3
for n in 0..40: INSERT INTO $t (k, c, v) VALUES ($(n % 5), $n, '$words(n, 30)') USING TIMESTAMP $(time + n)

# Columns that were added later, and one that was renamed.
altered
CREATE TABLE $t (k int, c int, v text, PRIMARY KEY (k, c))
rounds 0
for n in 0..40: INSERT INTO $t (k, c, v) VALUES ($(n % 5), $n, 'v') USING TIMESTAMP $(time + n)
rounds 1
ALTER TABLE $t ADD added int
for n in 0..40: INSERT INTO $t (k, c, v, added) VALUES ($(n % 5), $n, 'v', $n) USING TIMESTAMP $(time + n)
rounds 2
ALTER TABLE $t ADD more set<int>
for n in 0..40: INSERT INTO $t (k, c, added, more) VALUES ($(n % 5), $n, $n, {$n, $round}) USING TIMESTAMP $(time + n)
rounds 3
ALTER TABLE $t RENAME c TO renamed
ALTER TABLE $t ADD s int STATIC
for n in 0..40: INSERT INTO $t (k, renamed, v, more, s) VALUES ($(n % 5), $n, 'v', {$round}, $n) USING TIMESTAMP $(time + n)

masked
since 5
CREATE TABLE $t (k int PRIMARY KEY, name text MASKED WITH mask_inner(1, null), born date MASKED WITH DEFAULT, n int)
rounds 0 1 2 3
for n in 0..40:
    INSERT INTO $t (k, name, born, n) VALUES ($(n + round * 20), '$words(n, 20)', '2000-01-0$(n % 9 + 1)', $n) USING TIMESTAMP $(time + n)
";
