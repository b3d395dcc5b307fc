//! Seeded random mutations of everything at once, with few distinct timestamps so that ties are common.

use super::{Input, Scenario, T0};
use compactor_testkit::Random;

pub(super) fn scenarios() -> Vec<Scenario> {
    let mut every: Vec<Scenario> = (1..=6).map(mixed).collect();
    every.extend((1..=4).map(ranges));
    every
}

/// Rows, cells, collections, statics, TTLs and all deletions.
fn mixed(seed: u64) -> Scenario {
    let mut rng = Random::new(seed);
    let order = *rng.pick(&["ASC", "DESC"]);
    let mut scenario = Scenario::new(
        format!("random_mixed_{seed}"),
        "random mutations of every kind, with many ties",
    )
    .schema(format!(
        "{MIXED} WITH CLUSTERING ORDER BY (c {order}, d ASC)"
    ));
    for _ in 0..2 + rng.below(3) {
        scenario.inputs.push(mutations(&mut rng, 120));
    }
    scenario.merge_at(T0 + 1000, 500)
}

/// The table of [`mutations`].
pub(super) const MIXED: &str = "CREATE TABLE $t (k int, c int, d text, a int, b text, m map<int, int>, s set<text>, \
     st text static, sm map<int, int> static, PRIMARY KEY (k, c, d))";

/// `count` mutations of every kind.
pub(super) fn mutations(rng: &mut Random, count: u32) -> Input {
    let mut input = Input::new();
    for _ in 0..count {
        if rng.one_in(10) {
            let second = i64::try_from(rng.below(10)).unwrap_or(0) * 100;
            input.at(T0 + second);
        }
        input.cql(mutation(rng));
    }
    // A flush of an empty memtable is an error, so every input has at least one row.
    input.cql("INSERT INTO $t (k, c, d, a) VALUES (0, 0, 'x', 0) USING TIMESTAMP 100");
    input
}

fn mutation(rng: &mut Random) -> String {
    let ts = 100 + rng.below(8);
    let k = rng.below(4);
    let c = rng.below(5);
    let d = *rng.pick(&["", "x", "y", "yy"]);
    let ttl = if rng.one_in(4) {
        format!(" AND TTL {}", 100 * (1 + rng.below(15)))
    } else {
        String::new()
    };
    let row = format!("k = {k} AND c = {c} AND d = '{d}'");
    let n = rng.below(4);
    match rng.below(18) {
        0..=3 => format!(
            "INSERT INTO $t (k, c, d, a, b) VALUES ({k}, {c}, '{d}', {n}, 'b{}') USING TIMESTAMP {ts}{ttl}",
            rng.below(3)
        ),
        4 => format!(
            "INSERT INTO $t (k, c, d, m) VALUES ({k}, {c}, '{d}', {{{n}: {ts}}}) USING TIMESTAMP {ts}{ttl}"
        ),
        5 | 6 => format!(
            "UPDATE $t USING TIMESTAMP {ts}{ttl} SET m[{n}] = {}, s = s + {{'e{n}'}} WHERE {row}",
            rng.below(9)
        ),
        7 => format!("UPDATE $t USING TIMESTAMP {ts}{ttl} SET a = {n}, b = null WHERE {row}"),
        8 => format!(
            "DELETE m[{n}], s['e{}'] FROM $t USING TIMESTAMP {ts} WHERE {row}",
            rng.below(4)
        ),
        9 => format!("DELETE m, a FROM $t USING TIMESTAMP {ts} WHERE {row}"),
        10 => format!("DELETE FROM $t USING TIMESTAMP {ts} WHERE {row}"),
        11 => format!("DELETE FROM $t USING TIMESTAMP {ts} WHERE k = {k} AND c = {c}"),
        12 => {
            let (from, to) = (c, c + rng.below(3));
            let open = *rng.pick(&[">", ">="]);
            let close = *rng.pick(&["<", "<="]);
            format!(
                "DELETE FROM $t USING TIMESTAMP {ts} WHERE k = {k} AND c {open} {from} AND c {close} {}",
                to + 1
            )
        }
        13 => {
            format!("DELETE FROM $t USING TIMESTAMP {ts} WHERE k = {k} AND c = {c} AND d > '{d}'")
        }
        14 if rng.one_in(4) => format!("DELETE FROM $t USING TIMESTAMP {} WHERE k = {k}", ts - 3),
        14 | 15 => format!(
            "UPDATE $t USING TIMESTAMP {ts}{ttl} SET st = 'st{n}', sm[{n}] = 1 WHERE k = {k}"
        ),
        16 => format!("DELETE st, sm FROM $t USING TIMESTAMP {ts} WHERE k = {k}"),
        _ => format!("INSERT INTO $t (k, c, d) VALUES ({k}, {c}, '{d}') USING TIMESTAMP {ts}{ttl}"),
    }
}

/// Mostly range deletions of different ages, in four inputs, so that boundaries of all kinds meet and are purged.
fn ranges(seed: u64) -> Scenario {
    let mut rng = Random::new(1000 + seed);
    let mut scenario = Scenario::new(
        format!("random_ranges_{seed}"),
        "random range deletions over a few rows",
    )
    .schema(RANGES);
    for _ in 0..4 {
        scenario.inputs.push(range_deletions(&mut rng, 60));
    }
    scenario.merge_at(T0 + 5000, 3500)
}

/// The table of [`range_deletions`].
pub(super) const RANGES: &str = "CREATE TABLE $t (k int, c int, d int, v int, PRIMARY KEY (k, c, d)) \
     WITH CLUSTERING ORDER BY (c ASC, d DESC)";

/// `count` mutations, mostly range deletions.
pub(super) fn range_deletions(rng: &mut Random, count: u32) -> Input {
    let mut input = Input::default();
    for _ in 0..count {
        input.at(T0 + i64::try_from(rng.below(3)).unwrap_or(0) * 1000);
        input.cql(range(rng));
    }
    input.cql("INSERT INTO $t (k, c, d, v) VALUES (0, 0, 0, 0) USING TIMESTAMP 100");
    input
}

fn range(rng: &mut Random) -> String {
    let ts = 100 + rng.below(6);
    let k = rng.below(3);
    let c = rng.below(12);
    let d = rng.below(6);
    let open = *rng.pick(&[">", ">="]);
    let close = *rng.pick(&["<", "<="]);
    match rng.below(8) {
        0 | 1 => {
            format!("INSERT INTO $t (k, c, d, v) VALUES ({k}, {c}, {d}, 1) USING TIMESTAMP {ts}")
        }
        2 => format!("DELETE FROM $t USING TIMESTAMP {ts} WHERE k = {k} AND c {open} {c}"),
        3 => format!("DELETE FROM $t USING TIMESTAMP {ts} WHERE k = {k} AND c {close} {c}"),
        4 | 5 => {
            let to = c + 1 + rng.below(5);
            format!(
                "DELETE FROM $t USING TIMESTAMP {ts} WHERE k = {k} AND c {open} {c} AND c {close} {to}"
            )
        }
        6 => {
            let to = d + 1 + rng.below(3);
            format!(
                "DELETE FROM $t USING TIMESTAMP {ts} WHERE k = {k} AND c = {c} AND d {open} {d} AND d {close} {to}"
            )
        }
        _ => format!("DELETE FROM $t USING TIMESTAMP {ts} WHERE k = {k} AND c = {c}"),
    }
}
