//! Tables with `provide_overlapping_tombstones`: overlapping SSTables remove data of the merge.

use super::random::{self, MIXED, RANGES};
use super::{Scenario, T0, text};
use compactor_testkit::Random;

pub(super) fn scenarios() -> Vec<Scenario> {
    let mut every = Vec::new();
    for option in ["row", "cell"] {
        for seed in 1..=6 {
            every.push(mixed(option, seed));
            every.push(ranges(option, seed));
        }
        every.push(levels(option));
        every.push(counters(option));
        let few = FEW.replace("$compaction", &compaction(option));
        every.extend(text::scenarios(&few.replace("$option", option)));
    }
    every
}

fn with_option(schema: &str, option: &str) -> String {
    let with = if schema.contains(" WITH ") {
        "AND"
    } else {
        "WITH"
    };
    format!("{schema} {with} {}", compaction(option))
}

fn compaction(option: &str) -> String {
    format!(
        "compaction = {{'class': 'SizeTieredCompactionStrategy', 'provide_overlapping_tombstones': '{option}'}}"
    )
}

/// The mutations of the random scenarios, with some inputs outside the merge.
fn mixed(option: &str, seed: u64) -> Scenario {
    let mut rng = Random::new(7000 + seed);
    let mut scenario = Scenario::new(
        format!("provided_{option}_mixed_{seed}"),
        "random mutations, some of them outside the merge",
    )
    .schema(with_option(MIXED, option));
    let outside = 1 + rng.below(2);
    let inside = 1 + seed % 3;
    for _ in 0..inside + outside {
        scenario.inputs.push(random::mutations(&mut rng, 60));
    }
    scenario = scenario.others(outside as usize);
    if seed == 6 {
        return scenario.no_purge();
    }
    scenario.merge_at(T0 + 1000, if seed.is_multiple_of(2) { 500 } else { 5000 })
}

/// Range tombstones that begin and end under others.
fn ranges(option: &str, seed: u64) -> Scenario {
    let mut rng = Random::new(8000 + seed);
    let mut scenario = Scenario::new(
        format!("provided_{option}_ranges_{seed}"),
        "random range deletions, some of them outside the merge",
    )
    .schema(with_option(RANGES, option));
    let outside = 1 + rng.below(3);
    let inside = 1 + seed % 3;
    for _ in 0..inside + outside {
        scenario.inputs.push(random::range_deletions(&mut rng, 30));
    }
    scenario = scenario.others(outside as usize);
    if seed.is_multiple_of(2) {
        return scenario.no_purge();
    }
    scenario.merge_at(T0 + 5000, 3500)
}

/// One kind of deletion per partition, at, below and above the timestamp of the data that it covers.
fn levels(option: &str) -> Scenario {
    let schema = "CREATE TABLE $t (k int, c int, v int, w text, m map<int, int>, s int static, PRIMARY KEY (k, c))";
    let fill = |ts: i32| {
        let mut lines = Vec::new();
        for k in 0..40 {
            for c in 0..4 {
                lines.push(format!(
                    "INSERT INTO $t (k, c, v, w, m, s) VALUES ({k}, {c}, {k}, 'w{ts}', {{1: 1, 2: {c}}}, {k}) \
                     USING TIMESTAMP {ts}"
                ));
            }
            lines.push(format!(
                "DELETE FROM $t USING TIMESTAMP {} WHERE k = {k} AND c = 7",
                ts + 1
            ));
            lines.push(format!(
                "DELETE FROM $t USING TIMESTAMP {} WHERE k = {k} AND c > 8 AND c < 12",
                ts - 1
            ));
        }
        lines
    };
    let mut scenario = Scenario::new(
        format!("provided_{option}_levels"),
        "each deletion at three timestamps",
    )
    .schema(with_option(schema, option))
    .input(|i| {
        i.all(fill(100));
    })
    .input(|i| {
        i.cql("INSERT INTO $t (k, c, v) VALUES (1, 3, 5) USING TIMESTAMP 101");
        i.cql("DELETE m FROM $t USING TIMESTAMP 101 WHERE k = 2 AND c = 1");
        i.cql("DELETE FROM $t USING TIMESTAMP 98 WHERE k = 39");
    });
    for n in 0..2 {
        scenario = scenario.input(|i| {
            for k in 0..40 {
                let ts = 99 + (k + n) % 3;
                match (k / 3 + n) % 10 {
                    0 => i.cql(format!("DELETE FROM $t USING TIMESTAMP {ts} WHERE k = {k}")),
                    1 => i.cql(format!("DELETE FROM $t USING TIMESTAMP {ts} WHERE k = {k} AND c = 1")),
                    2 => i.cql(format!("DELETE FROM $t USING TIMESTAMP {ts} WHERE k = {k} AND c > 0 AND c <= 10")),
                    3 => i.cql(format!("DELETE v, m FROM $t USING TIMESTAMP {ts} WHERE k = {k} AND c = 2")),
                    4 => i.cql(format!("DELETE m[1] FROM $t USING TIMESTAMP {ts} WHERE k = {k} AND c = 2")),
                    5 => i.cql(format!(
                        "INSERT INTO $t (k, c, v, w, m) VALUES ({k}, 3, 9, 'a', {{1: 0, 3: 3}}) USING TIMESTAMP {ts}"
                    )),
                    6 => i.cql(format!("UPDATE $t USING TIMESTAMP {ts} SET s = 3 WHERE k = {k}")),
                    7 => i.cql(format!("DELETE s FROM $t USING TIMESTAMP {ts} WHERE k = {k}")),
                    8 => i.cql(format!("UPDATE $t USING TIMESTAMP {ts} AND TTL 10 SET v = 1 WHERE k = {k} AND c = 0")),
                    _ => i.cql(format!("DELETE FROM $t USING TIMESTAMP {ts} WHERE k = {k} AND c >= 9")),
                };
            }
        });
    }
    scenario.others(2)
}

fn counters(option: &str) -> Scenario {
    let schema = "CREATE TABLE $t (k int, c int, n counter, PRIMARY KEY (k, c))";
    let mut scenario = Scenario::new(
        format!("provided_{option}_counters"),
        "counters outside the merge",
    )
    .schema(with_option(schema, option));
    for n in 0..3 {
        scenario = scenario.input(|i| {
            for k in 0..12 {
                for c in 0..3 {
                    if (k + c + n) % 5 == 4 {
                        i.cql(format!("DELETE n FROM $t WHERE k = {k} AND c = {c}"));
                    } else if (k + n) % 3 < 2 {
                        i.cql(format!(
                            "UPDATE $t SET n = n + {} WHERE k = {k} AND c = {c}",
                            k + 1
                        ));
                    }
                }
            }
        });
    }
    scenario.others(1)
}

const FEW: &str = "
provided_$option_columns: other columns outside the merge
CREATE TABLE $t (k int, c int, b int, m map<int, int>, z int, PRIMARY KEY (k, c)) WITH $compaction
input
for k in 0..10:
    INSERT INTO $t (k, c, b, z) VALUES ($k, 1, 1, 1) USING TIMESTAMP 100
    INSERT INTO $t (k, c, z) VALUES ($k, 2, 1) USING TIMESTAMP 100
input
ALTER TABLE $t ADD a int
ALTER TABLE $t ADD y int
for k in 0..10:
    INSERT INTO $t (k, c, a, b, m, y, z) VALUES ($k, 1, 2, $(k % 3), {1: 1}, 2, $(k % 2)) USING TIMESTAMP $(99 + k % 3)
    DELETE z, a FROM $t USING TIMESTAMP $(99 + k % 3) WHERE k = $k AND c = 2
after ALTER TABLE $t DROP b USING TIMESTAMP 100
others 1
hides cells

provided_$option_older: the outside SSTable is not newer
# Such an SSTable is not read.
CREATE TABLE $t (k int, c int, v int, PRIMARY KEY (k, c)) WITH $compaction
input
for k in 0..10: INSERT INTO $t (k, c, v) VALUES ($k, 1, 1) USING TIMESTAMP 100
input
for k in 0..10: DELETE FROM $t USING TIMESTAMP 100 WHERE k = $k AND c = 1
others 1

provided_$option_hidden: an outside SSTable hides all of a partition
# Data that the outside SSTable itself deletes must already be removed from it: nothing else removes it.
CREATE TABLE $t (k int, c int, v int, s int static, PRIMARY KEY (k, c)) WITH $compaction
input
for k in 0..12 step 4:
    DELETE FROM $t USING TIMESTAMP 100 WHERE k = $k AND c < 5
    DELETE FROM $t USING TIMESTAMP 100 WHERE k = $(k + 1) AND c = 3
    DELETE FROM $t USING TIMESTAMP 100 WHERE k = $(k + 2)
    UPDATE $t USING TIMESTAMP 100 SET s = 1 WHERE k = $(k + 3)
INSERT INTO $t (k, c, v) VALUES (99, 1, 1) USING TIMESTAMP 300
input
for k in 0..12:
    INSERT INTO $t (k, c, v, s) VALUES ($k, 1, 1, 1) USING TIMESTAMP 150
    INSERT INTO $t (k, c, v) VALUES ($k, 2, 1) USING TIMESTAMP 250
    DELETE FROM $t USING TIMESTAMP 200 WHERE k = $k
others 1

provided_$option_gone: cells newer than the drop of their column
# Only the comparison with rows of the outside SSTable removes them.
CREATE TABLE $t (k int, c int, a int, b int, m map<int, int>, s int static, t int static, PRIMARY KEY (k, c)) WITH $compaction
input
for k in 0..12:
    for c in 0..3: INSERT INTO $t (k, c, a, b, m, s, t) VALUES ($k, $c, 1, 1, {1: 1}, 1, 1) USING TIMESTAMP $(100 + k % 2)
    INSERT INTO $t (k, c, b, m) VALUES ($k, 7, 1, {1: 1}) USING TIMESTAMP 100
input
for k in 0..12 step 6:
    INSERT INTO $t (k, c, a) VALUES ($k, 1, 2) USING TIMESTAMP 200
    DELETE FROM $t USING TIMESTAMP 200 WHERE k = $(k + 1) AND c = 9
    DELETE FROM $t USING TIMESTAMP 100 WHERE k = $(k + 2)
    DELETE FROM $t USING TIMESTAMP 99 WHERE k = $(k + 3) AND c > 0 AND c < 2
    UPDATE $t USING TIMESTAMP 200 SET s = 2 WHERE k = $(k + 4)
    INSERT INTO $t (k, c, a) VALUES (77$(k + 5), 1, 2) USING TIMESTAMP 200
after ALTER TABLE $t DROP b USING TIMESTAMP 50
after ALTER TABLE $t DROP m USING TIMESTAMP 50
after ALTER TABLE $t DROP t USING TIMESTAMP 50
others 1
hides cells
";
