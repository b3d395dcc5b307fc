//! Types of columns, and columns that come and go.

use super::{Table, text, time};

pub(super) fn tables() -> Vec<Table> {
    vec![
        all_types(),
        vectors(),
        collections(),
        frozen(),
        user_types(),
        dropped(),
        altered(),
        masked(),
    ]
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

fn vectors() -> Table {
    let create = "CREATE TABLE $t (k int, c vector<int, 2>, f vector<float, 3>, t vector<text, 2>,
        n vector<frozen<list<int>>, 2>, PRIMARY KEY (k, c))";
    Table::rows("vectors", create, 40, |round, n| {
            format!(
                "INSERT INTO $t (k, c, f, t, n) VALUES ({}, [{n}, {round}], [0.{n}, 1, -2.5], ['{}', ''], [[1, {n}], []])
                USING TIMESTAMP {}",
                n % 4,
                text(n, 30),
                time(round, n)
            )
    })
    .since(5)
}

/// Sets, lists and maps whose elements are cells.
fn collections() -> Table {
    let create = "CREATE TABLE $t (k int PRIMARY KEY, s set<text>, l list<int>, m map<text, int>,
        n map<int, frozen<list<text>>>)";
    Table::new("collections", create, |round, writes| {
        for n in 0..30 {
            let (now, later) = (time(round, n), time(round, n + 100));
            if round % 2 == 0 {
                writes.push(format!(
                    "INSERT INTO $t (k, s, l, m, n) VALUES ({n}, {{'a{round}', 'b'}}, [1, {round}], {{'x': {n}, 'y{round}': 2}},
                    {{{n}: ['p', 'q']}}) USING TIMESTAMP {now}"
                ));
            }
            writes.push(format!(
                "UPDATE $t USING TIMESTAMP {later} SET s = s + {{'more {round}'}}, l = l + [{round}], m['z{round}'] = {n},
                n[{round}] = ['{}'] WHERE k = {n}",
                text(n, 50)
            ));
        }
        for n in 0..10 {
            let time = time(round, n + 200);
            writes.push(format!(
                "DELETE m['x'], s['b'] FROM $t USING TIMESTAMP {time} WHERE k = {n}"
            ));
            writes.push(format!(
                "DELETE l FROM $t USING TIMESTAMP {time} WHERE k = {}",
                n + 10
            ));
            writes.push(format!(
                "UPDATE $t USING TIMESTAMP {time} AND TTL 8640000 SET m['ttl'] = {n} WHERE k = {}",
                n + 20
            ));
        }
    })
}

fn frozen() -> Table {
    let create = "CREATE TABLE $t (k frozen<tuple<int, text>>, c frozen<set<int>>, t tuple<int, text, double>,
        m frozen<map<text, frozen<list<int>>>>, PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY (c DESC)";
    Table::rows("frozen", create, 40, |round, n| {
        format!(
                "INSERT INTO $t (k, c, t, m) VALUES (({}, 'k'), {{{n}, {round}}}, ({n}, null, 1.5), {{'a': [1, {n}], 'b': []}})
                USING TIMESTAMP {}",
                n % 5,
                time(round, n)
            )
    })
}

/// Fields that are cells of their own, and types in types.
fn user_types() -> Table {
    let create = "CREATE TABLE $t (k int PRIMARY KEY, a rig_address, f frozen<rig_address>,
        l list<frozen<rig_address>>, p rig_person)";
    Table::rows("user_types", create, 30, |round, n| {
            let time = time(round, n);
            let address = format!("{{street: '{}', number: {n}, tags: {{'t{round}'}}}}", text(n, 25));
            match round {
                0 => format!(
                    "INSERT INTO $t (k, a, f, l, p) VALUES ({n}, {address}, {address}, [{address}],
                    {{name: 'n', home: {address}}}) USING TIMESTAMP {time}"
                ),
                1 => format!("UPDATE $t USING TIMESTAMP {time} SET a.number = {}, p.name = 'p' WHERE k = {n}", n * 2),
                2 => format!("UPDATE $t USING TIMESTAMP {time} SET a.street = null, p.home = null WHERE k = {n}"),
                _ => format!("UPDATE $t USING TIMESTAMP {time} SET a.tags = {{'last'}}, p.age = {n} WHERE k = {n}"),
            }
    })
    .before("CREATE TYPE $ks.rig_address (street text, number int, tags frozen<set<text>>)")
    .before("CREATE TYPE $ks.rig_person (name text, home frozen<rig_address>)")
    .change(3, "ALTER TYPE $ks.rig_person ADD age int")
}

/// Columns that have been dropped, one of which came back.
fn dropped() -> Table {
    let create = "CREATE TABLE $t (k int, c int, v text, w text, m map<int, int>, s int STATIC, PRIMARY KEY (k, c))";
    Table::rows("dropped", create, 40, |round, n| {
        let time = time(round, n);
        let (names, values) = match round {
            0 => ("w, m, s", format!("'w', {{1: {n}}}, {n}")),
            1 => ("m, s", format!("{{2: {n}}}, {n}")),
            _ => ("v", format!("'{}'", text(n, 30))),
        };
        format!(
            "INSERT INTO $t (k, c, {names}) VALUES ({}, {n}, {values}) USING TIMESTAMP {time}",
            n % 5
        )
    })
    .change(1, "ALTER TABLE $t DROP w")
    .change(2, "ALTER TABLE $t DROP m")
    .change(2, "ALTER TABLE $t DROP s")
    .change(3, "ALTER TABLE $t ADD w text")
}

/// Columns that came later, and a name that changed.
fn altered() -> Table {
    let create = "CREATE TABLE $t (k int, c int, v text, PRIMARY KEY (k, c))";
    Table::rows("altered", create, 40, |round, n| {
            let time = time(round, n);
            let (clustering, names, values) = match round {
                0 => ("c", "v", "'v'".to_owned()),
                1 => ("c", "v, added", format!("'v', {n}")),
                2 => ("c", "added, more", format!("{n}, {{{n}, {round}}}")),
                _ => ("renamed", "v, more, s", format!("'v', {{{round}}}, {n}")),
            };
            format!(
                "INSERT INTO $t (k, {clustering}, {names}) VALUES ({}, {n}, {values}) USING TIMESTAMP {time}",
                n % 5
            )
    })
    .change(1, "ALTER TABLE $t ADD added int")
    .change(2, "ALTER TABLE $t ADD more set<int>")
    .change(3, "ALTER TABLE $t RENAME c TO renamed")
    .change(3, "ALTER TABLE $t ADD s int STATIC")
}

fn masked() -> Table {
    let create = "CREATE TABLE $t (k int PRIMARY KEY, name text MASKED WITH mask_inner(1, null),
        born date MASKED WITH DEFAULT, n int)";
    Table::rows("masked", create, 40, |round, n| {
            format!(
                "INSERT INTO $t (k, name, born, n) VALUES ({}, '{}', '2000-01-0{}', {n}) USING TIMESTAMP {}",
                n + round * 20,
                text(n, 20),
                n % 9 + 1,
                time(round, n)
            )
    })
    .since(5)
}
