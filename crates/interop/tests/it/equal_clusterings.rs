//! Clusterings, bounds and cell paths that compare equal but differ in their bytes: which of them Cassandra's
//! compaction keeps depends on the names of the inputs and on the previous position of each, and our merge must keep
//! the same.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use compactor_testkit::{Random, campaign};
use interop::cases::Case;
use interop::ours::Compression;
use interop::scenarios::{Input, Scenario};
use interop::{Cassandra, Mode};

use crate::support::{self, Expected, Failures, Output, five, has_five, servers};

/// Decimals, each in several forms that compare equal.
const FORMS: [[&str; 3]; 6] = [
    ["0", "0.0", "0.000"],
    ["1.5", "1.50", "1.500"],
    ["-2", "-2.0", "-2.00"],
    ["7", "7.0", "7.000"],
    ["10", "1E+1", "10.00"],
    [
        "123456789012345678901234567890",
        "123456789012345678901234567890.0",
        "1.23456789012345678901234567890E+29",
    ],
];

/// A value in one of its forms.
fn form(random: &mut Random) -> &'static str {
    let forms = random.pick(&FORMS);
    random.pick::<&str>(forms)
}

fn scenario(name: &str, order: &str, inputs: usize, seed: u64) -> Scenario {
    let mut scenario = Scenario::new(name, "equal decimals of several scales").schema(format!(
        "CREATE TABLE $t (k int, c decimal, d text, b int, v int, w int, f map<decimal, int>, m map<decimal, int>, \
         s set<decimal> static, PRIMARY KEY (k, c, d)) WITH CLUSTERING ORDER BY (c {order}, d ASC)"
    ));
    let mut random = Random::new(seed);
    for n in 0..inputs {
        scenario = scenario.input(|input| fill(input, &mut random, n));
    }
    if seed % 2 == 1 {
        // Cassandra does not visit cells of dropped columns: the next column is then the first of its input.
        scenario = scenario.input(|input| {
            input.cql("ALTER TABLE $t DROP w USING TIMESTAMP 10");
            input.cql("ALTER TABLE $t DROP b USING TIMESTAMP 10");
            // After the drops, each of which may flush the table.
            input.cql("INSERT INTO $t (k, c, d) VALUES (0, 1.5, 'last') USING TIMESTAMP 5");
        });
    }
    scenario.no_purge()
}

/// Fills an input with some of the partitions and rows.
fn fill(input: &mut Input, random: &mut Random, n: usize) {
    // Every input has at least one row.
    input.cql(format!(
        "INSERT INTO $t (k, c, d) VALUES (0, 1.5, 'in {n}') USING TIMESTAMP 5"
    ));
    for _ in 0..40 {
        let (k, c, d) = (random.index(12), form(random), ["a", "b"][random.index(2)]);
        // Few timestamps, so that many cells differ only in their paths.
        let ts = 10 + random.index(2);
        let (a, b) = (form(random), form(random));
        input.cql(match random.index(8) {
            0 | 1 => format!("INSERT INTO $t (k, c, d, v, w) VALUES ({k}, {c}, '{d}', 1, 2) USING TIMESTAMP {ts}"),
            2 => format!("UPDATE $t USING TIMESTAMP {ts} SET v = 3 WHERE k = {k} AND c = {c} AND d = '{d}'"),
            3 => format!("UPDATE $t USING TIMESTAMP {ts} SET m[{a}] = 1, f[{b}] = 1 WHERE k = {k} AND c = {c} AND d = '{d}'"),
            4 => format!("UPDATE $t USING TIMESTAMP {ts} SET f[{a}] = 1, b = 1 WHERE k = {k} AND c = {c} AND d = '{d}'"),
            5 => format!("UPDATE $t USING TIMESTAMP {ts} SET s = s + {{{a}, 99}} WHERE k = {k}"),
            6 => format!("DELETE FROM $t USING TIMESTAMP {} WHERE k = {k} AND c >= {a} AND c < {b}", ts - 5),
            _ => format!("DELETE FROM $t USING TIMESTAMP {} WHERE k = {k} AND c = {c}", ts - 5),
        });
    }
}

/// Some inputs hold rows with cells only of a column that was dropped and added again. Cassandra skips those versions of
/// the rows, and merges those of the other inputs, whose clusterings have other bytes.
fn emptied_versions(name: &str, inputs: usize) -> Scenario {
    let mut scenario = Scenario::new(name, "versions with cells of a dropped column only").schema(
        "CREATE TABLE $t (k int, c decimal, m map<decimal, int>, n map<decimal, int>, v int, PRIMARY KEY (k, c))",
    );
    let mut random = Random::new(inputs as u64);
    for n in 0..inputs {
        scenario = scenario.input(|input| {
            input.cql(format!(
                "INSERT INTO $t (k, c) VALUES (0, {n}) USING TIMESTAMP 5"
            ));
            for (k, c) in (1..5).flat_map(|k| (0..30).map(move |c| (k, c))) {
                let scale = random.pick(&["", ".0", ".00"]);
                let place = format!("WHERE k = {k} AND c = {c}{scale}");
                let (a, b) = (random.pick(&FORMS[1]), random.pick(&FORMS[1]));
                let of_m = [None, Some(9), Some(9), Some(20), Some(20)][random.index(5)];
                if let Some(ts) = of_m {
                    input.cql(format!(
                        "UPDATE $t USING TIMESTAMP {ts} SET m[{a}] = 1 {place}"
                    ));
                }
                let others = [format!("n[{b}] = 1"), "v = 1".to_owned()];
                if let Some(other) = others.get(random.index(4)) {
                    input.cql(format!("UPDATE $t USING TIMESTAMP 20 SET {other} {place}"));
                }
            }
        });
    }
    let scenario = scenario.input(|input| {
        input.cql("ALTER TABLE $t DROP m USING TIMESTAMP 10");
        input.cql("ALTER TABLE $t ADD m map<decimal, int>");
        input.cql("INSERT INTO $t (k, c) VALUES (0, -1) USING TIMESTAMP 5");
    });
    scenario.no_purge()
}

/// Compacts with Cassandra, merges the inputs under the names that it gave them, and compares the outputs byte for
/// byte. Returns the rows.
fn compare(cassandra: &mut Cassandra, case: &Case) -> Result<String> {
    let place = tempfile::tempdir()?;
    let compacted = case.compact(cassandra, &place.path().join("cassandra"))?;
    let expected = Expected::of(cassandra, &case.table, &compacted, &[])?;
    let expected = expected.context("an output")?;
    let case = case.named_as(&compacted, &place.path().join("named"))?;
    let output = Output {
        version: cassandra.mode(),
        compression: Some(Compression::Lz4 { chunk_kib: 16 }),
    };
    let directory = place.path().join("ours");
    let found = support::ours(cassandra, &case, output, &directory, Some(&expected))?;
    ensure!(found.is_empty(), "{}", found.join("\n"));
    Ok(expected.rows)
}

fn kept_bytes_match_cassandra(cassandra: &mut Cassandra) {
    let mode = cassandra.mode();
    let mut failures = Failures::default();
    let mut run = |scenario: &Scenario| {
        let place = tempfile::tempdir()?;
        let case = Case::prepare(cassandra, scenario, place.path())?;
        compare(cassandra, &case).map(|_rows| Vec::new())
    };
    for (number, inputs) in campaign::some_of([2, 3, 4, 5, 6, 9, 13, 20].into_iter().enumerate()) {
        let order = ["ASC", "DESC"][number % 2];
        let name = format!("equal_clusterings_{inputs}_{mode}");
        let scenario = scenario(&name, order, inputs, 100 + number as u64);
        failures.add(&name, run(&scenario));
    }
    for inputs in [3, 6] {
        let name = format!("emptied_versions_{inputs}_{mode}");
        failures.add(&name, run(&emptied_versions(&name, inputs)));
    }
    failures.check();
}

#[test]
fn kept_bytes_match_cassandra_6() {
    for mut cassandra in servers([Mode::Oa, Mode::Ea]) {
        let mode = cassandra.mode();
        kept_bytes_match_cassandra(&mut cassandra);
        kept_bytes_depend_on_ids(&mut cassandra).unwrap_or_else(|e| panic!("{mode}: {e:#}"));
    }
}

#[test]
fn kept_bytes_match_cassandra_5() {
    if !campaign::is_full() || !has_five() {
        return;
    }
    let mut cassandra = five(Mode::Da);
    kept_bytes_match_cassandra(&mut cassandra);
}

/// Merges the same two SSTables under different ids: whose bytes Cassandra keeps depends on the ids, and our merge
/// keeps the same.
fn kept_bytes_depend_on_ids(cassandra: &mut Cassandra) -> Result<()> {
    let scenario = Scenario::new("equal_clusterings_by_id", "one row in two forms")
        .schema("CREATE TABLE $t (k int, c decimal, v int, PRIMARY KEY (k, c))")
        .input(|input| {
            input.cql("INSERT INTO $t (k, c, v) VALUES (1, 1.5, 1) USING TIMESTAMP 1");
        })
        .input(|input| {
            input.cql("INSERT INTO $t (k, c, v) VALUES (1, 1.50, 1) USING TIMESTAMP 2");
        });
    let place = tempfile::tempdir()?;
    let case = Case::prepare(cassandra, &scenario, place.path())?;
    // Ids ascend, and so do the buckets of a hash set of sixteen, until they wrap around.
    let mut seen = BTreeSet::new();
    for turn in 0..17 {
        seen.insert(compare(cassandra, &case).with_context(|| format!("turn {turn}"))?);
        // Takes one more id: otherwise each round would take eight, and only two of the buckets would be used.
        cassandra.dump(&case.table, &case.inputs[0])?;
    }
    ensure!(seen.len() == 2, "{seen:?}");
    Ok(())
}
