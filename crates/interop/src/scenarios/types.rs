//! Every CQL type, in every place where the language allows it.

use super::{Scenario, list};

/// A type with some of its literals, edge cases first.
struct Sample {
    name: &'static str,
    cql: &'static str,
    values: Vec<&'static str>,
}

impl Sample {
    /// Whether it may be (part of) a primary key, a set element and a map key.
    fn is_key(&self) -> bool {
        self.name != "duration"
    }
}

/// Name, type where that is not its name, and literals, separated by semicolons.
const SAMPLES: &str = "\
ascii; 'a'; '~'; 'aa'; ' '
bigint; -9223372036854775808; -1; 0; 1; 9223372036854775807
blob; 0x00; 0x80; 0x7fff; 0xff; 0xdeadbeef00
boolean; false; true
date; '1970-01-01'; '1969-12-31'; '2023-11-14'; '-0001-01-01'; 0; 4294967295
decimal; 0; -1.5; 1.5; 123456789012345678901234567890.12345; -1E-30; 1E+30
double; -Infinity; -1.5; -0.0; 0.0; 1e-300; Infinity; NaN
float; -Infinity; -1.5; -0.0; 0.0; 3.25; NaN
duration; 1mo2d3ns; -1y2mo; 12h30m; 0s; -2147483647mo2147483647d
inet; '0.0.0.0'; '127.0.0.1'; '255.255.255.255'; '::1'; '2001:db8::ff00:42:8329'
int; -2147483648; -1; 0; 1; 2147483647
smallint; -32768; -1; 0; 32767
text; 'a'; 'ab'; 'é'; '日本語'; '😀'; 'b''q'
time; '00:00:00'; '08:12:54.123456789'; '23:59:59.999999999'
timestamp; 0; -1; 1700000000123; '2011-02-03T04:05:06.789Z'; 253402300799000
timeuuid; 13814000-1dd2-11b2-8080-808080808080; 50554d6e-29bb-11e5-b345-feff819cdc9f; 50554d6e-29bb-11e5-7f45-feff819cdc9f; d2177dd0-eaa2-11de-a572-001b779c76e3; ffffffff-ffff-1fff-bfff-ffffffffffff
tinyint; -128; -1; 0; 127
uuid; 00000000-0000-0000-0000-000000000000; 50554d6e-29bb-11e5-b345-feff819cdc9f; d2177dd0-eaa2-11de-a572-001b779c76e3; 123e4567-e89b-42d3-a456-426614174000; ffffffff-ffff-ffff-ffff-ffffffffffff
varint; 0; -1; 127; 128; -129; 123456789012345678901234567890; -340282366920938463463374607431768211456
vector_fixed = vector<float, 3>; [0.0, 1.5, -2.0]; [1, 2, 3]; [-1.0, 0, 0]
vector_variable = vector<text, 2>; ['a', 'bc']; ['', '']; ['ab', 'c']
vector_varint = vector<varint, 2>; [0, 1]; [-1, 12345678901234567890]
tuple = frozen<tuple<int, text, blob>>; (1, 'a', 0x00); (1, 'a', null); (null, null, null); (-1, 'z', 0xff); (1, 'b', null)
frozen_list = frozen<list<int>>; [1, 2]; [1]; [-1, 5]; [2, 1, 0]; []
frozen_set = frozen<set<text>>; {'a', 'b'}; {'a'}; {'c'}; {}
frozen_map = frozen<map<int, text>>; {1: 'a'}; {1: 'b'}; {-1: 'a', 2: 'x'}; {5: ''}
frozen_udt = frozen<$ks.address>; {street: 'x', number: 1}; {street: 'x', number: 2, tags: {'a'}}; {street: null, number: null}; {number: -5}
nested = frozen<map<text, frozen<list<frozen<tuple<int, frozen<$ks.address>>>>>>>; {'a': [(1, {street: 's', number: 1})]}; {'a': [(1, {street: 's', number: 1}), (2, null)], 'b': []}; {'b': [(null, {street: null, number: 4, tags: {'x', 'y'}})]}";

fn samples() -> Vec<Sample> {
    let sample = |line: &'static str| {
        let mut parts = line.split("; ");
        let named = parts.next().unwrap_or_default();
        let (name, cql) = named.split_once(" = ").unwrap_or((named, named));
        let values = parts.collect();
        Sample { name, cql, values }
    };
    SAMPLES.lines().map(sample).collect()
}

const ADDRESS: &str = "CREATE TYPE $ks.address (street text, number int, tags frozen<set<text>>)";

pub(super) fn scenarios() -> Vec<Scenario> {
    let mut every: Vec<Scenario> = samples().iter().map(everywhere).collect();
    every.push(all_regular("types_regular", ""));
    every.push(all_regular("types_static", " static"));
    every
}

/// The type as partition key, clustering in both directions, static, regular and inside collections.
fn everywhere(sample: &Sample) -> Scenario {
    let t = sample.cql;
    let (keys, order) = if sample.is_key() {
        (
            format!("k {t}, c {t}, d {t}"),
            "WITH CLUSTERING ORDER BY (c ASC, d DESC)",
        )
    } else {
        ("k int, c int, d int".to_owned(), "")
    };
    let collections = if sample.is_key() {
        format!(", m map<{t}, {t}>, st set<{t}>, fs frozen<set<{t}>>, fm frozen<map<{t}, {t}>>")
    } else {
        format!(", m map<int, {t}>, fm frozen<map<int, {t}>>")
    };
    let table = format!(
        "CREATE TABLE $t ({keys}, s {t} static, v {t}, l list<{t}>, fl frozen<list<{t}>>, tu frozen<tuple<{t}, int>>, \
         ve vector<{t}, 2>{collections}, PRIMARY KEY (k, c, d)) {order}"
    );
    let value = |n: usize| sample.values[n % sample.values.len()];
    let key_value = |n: usize| {
        if sample.is_key() {
            value(n).to_owned()
        } else {
            format!("{}", n % sample.values.len())
        }
    };
    let count = sample.values.len();
    let insert = |k: usize, c: usize, d: usize, salt: usize, ts: usize| {
        let (x, y) = (value(c + salt), value(d + salt + 1));
        let more = if sample.is_key() {
            (
                ", m, st, fs, fm".to_owned(),
                format!(", {{{x}: {y}}}, {{{x}, {y}}}, {{{y}}}, {{{y}: {x}}}"),
            )
        } else {
            (
                ", m, fm".to_owned(),
                format!(", {{1: {x}, 2: {y}}}, {{3: {y}}}"),
            )
        };
        format!(
            "INSERT INTO $t (k, c, d, s, v, l, fl, tu, ve{}) VALUES ({}, {}, {}, {y}, {x}, [{x}, {y}], [{y}], ({x}, {salt}), \
             [{x}, {y}]{}) USING TIMESTAMP {ts}",
            more.0,
            key_value(k),
            key_value(c),
            key_value(d),
            more.1
        )
    };
    Scenario::new(format!("type_{}", sample.name), format!("{t} as key, clustering, static, regular and element"))
        .schema(ADDRESS)
        .schema(table)
        .input(|i| {
            for k in 0..count {
                for c in 0..count {
                    i.cql(insert(k, c, (k + c) % count, 0, 100 + c));
                }
            }
        })
        .input(|i| {
            for k in 0..count {
                if k % 3 == 1 {
                    i.cql(format!("DELETE FROM $t USING TIMESTAMP 99 WHERE k = {}", key_value(k)));
                }
                for c in 0..count {
                    if (k + c) % 2 == 0 {
                        i.cql(insert(k, c, (k + c) % count, 1, 102));
                    } else {
                        i.cql(format!(
                            "UPDATE $t USING TIMESTAMP 103 SET v = {}, l = l + [{}] WHERE k = {} AND c = {} AND d = {}",
                            value(c + 2),
                            value(c + 1),
                            key_value(k),
                            key_value(c),
                            key_value((k + c) % count)
                        ));
                    }
                }
                i.cql(format!(
                    "DELETE FROM $t USING TIMESTAMP 101 WHERE k = {} AND c >= {}",
                    key_value(k),
                    key_value(k + 1)
                ));
            }
        })
}

/// All types side by side in one row, so that fixed and variable lengths follow each other.
fn all_regular(name: &str, kind: &str) -> Scenario {
    let samples = samples();
    let column = |sample: &Sample| format!("v_{} {}{kind}", sample.name, sample.cql);
    let columns = list(samples.iter().map(column));
    let names = list(samples.iter().map(|sample| format!("v_{}", sample.name)));
    let row_key = if kind.is_empty() {
        ("k, c, ", "1, ")
    } else {
        ("k, ", "")
    };
    let insert = move |k: usize, salt: usize, ts: usize, skip: usize| {
        let value = |(n, sample): (usize, &Sample)| {
            if skip > 0 && (n + salt).is_multiple_of(skip) {
                "null"
            } else {
                sample.values[(salt + n) % sample.values.len()]
            }
        };
        let values = list(samples.iter().enumerate().map(value));
        format!(
            "INSERT INTO $t ({}{names}) VALUES ({k}, {}{values}) USING TIMESTAMP {ts}",
            row_key.0, row_key.1
        )
    };
    Scenario::new(name, "all types in one row, overwritten and nulled")
        .schema(ADDRESS)
        .schema(format!(
            "CREATE TABLE $t (k int, c int, {columns}, PRIMARY KEY (k, c))"
        ))
        .input(|i| {
            i.all((0..6).map(|k| insert(k, k, 100, 0)));
        })
        .input(|i| {
            i.all((0..6).map(|k| insert(k, k + 1, 98 + k, 3)));
        })
        .input(|i| {
            i.all((3..9).map(|k| insert(k, k + 2, 96 + k, 5)));
        })
}
