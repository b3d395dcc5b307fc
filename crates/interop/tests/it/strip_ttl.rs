//! Merges with TTLs removed: the output equals, byte for byte, Cassandra's compaction of the same data written without
//! TTLs. Tombstones that Cassandra has made of expired cells stay, and so does the expired liveness of view rows.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use compactor::NoObserver;
use compactor_testkit::{Random, campaign};
use interop::cases::Case;
use interop::parity::Exception;
use interop::scenarios::{Input, Scenario, Step, T0, ViewRow, ViewRowKind};
use interop::{Cassandra, CompactRequest, Mode, compare, ours};

use crate::support::{self, Expected, Output, five, has_five, server, servers};

const TABLE: &str = "CREATE TABLE $t (k int, c int, a int, b text, m map<int, int>, s set<text>, st text static, \
     sm map<int, int> static, PRIMARY KEY (k, c))";

/// Input of both sides of a comparison.
#[derive(Debug, Clone, Copy)]
struct Plan {
    seed: u64,
    /// Option by which an SSTable outside the merge removes data from it; `None` if there is no such SSTable.
    provided: Option<&'static str>,
}

/// Random mutations. Timestamps are distinct within an input, since in its memtable an expiring cell would win over a
/// live one with the same timestamp, and equal across inputs.
fn scenario(plan: Plan, with_ttl: bool) -> Scenario {
    let mut rng = Random::new(9000 + plan.seed);
    let side = if with_ttl { "with" } else { "without" };
    let schema = match plan.provided {
        None => TABLE.to_owned(),
        Some(option) => format!(
            "{TABLE} WITH compaction = {{'class': 'SizeTieredCompactionStrategy', \
             'provide_overlapping_tombstones': '{option}'}}"
        ),
    };
    let name = format!("strip_{side}_{}", plan.seed);
    let mut scenario = Scenario::new(name, "data with TTLs and without").schema(schema);
    for _ in 0..2 + rng.below(3) {
        scenario = scenario.input(|input| mutations(&mut rng, input, with_ttl));
    }
    if plan.provided.is_some() {
        scenario.others = 1;
    }
    scenario.merge_at(T0 + 1000, [500, 5000][plan.seed as usize % 2])
}

fn mutations(rng: &mut Random, input: &mut Input, with_ttl: bool) {
    // Both sides have the same least local deletion time: expirations are later.
    input.cql("DELETE FROM $t USING TIMESTAMP 1 WHERE k = 100");
    input.cql("INSERT INTO $t (k, c, a, m, st, sm) VALUES (0, 0, 0, {1: 1}, 's', {1: 1}) USING TIMESTAMP 3");
    for number in 0..60 {
        if rng.one_in(8) {
            let second = rng.below(10) as i64 * 100;
            input.at(T0 + second);
        }
        let seconds = 100 * (1 + rng.below(15));
        let ttl = match rng.below(3) {
            0 => String::new(),
            _ if !with_ttl => String::new(),
            _ => format!(" AND TTL {seconds}"),
        };
        let timestamp = 100 + 2 * number;
        if rng.one_in(20) {
            let (key, clustering) = (rng.below(4) as i32, rng.below(5) as i32);
            input.steps.push(Step::View(ViewRow {
                kind: ViewRowKind::Expired,
                key,
                clustering,
                timestamp: timestamp + 1,
            }));
        }
        input.cql(mutation(rng, timestamp, &ttl));
    }
}

fn mutation(rng: &mut Random, timestamp: i64, ttl: &str) -> String {
    let (k, c, n) = (rng.below(4), rng.below(5), rng.below(4));
    let using = format!("USING TIMESTAMP {timestamp}");
    let row = format!("k = {k} AND c = {c}");
    match rng.below(16) {
        0..=3 => {
            let value = rng.below(3);
            format!("INSERT INTO $t (k, c, a, b) VALUES ({k}, {c}, {n}, 'b{value}') {using}{ttl}")
        }
        4 | 5 => format!(
            "INSERT INTO $t (k, c, m, s) VALUES ({k}, {c}, {{{n}: {c}}}, {{'e{n}', 'f'}}) {using}{ttl}"
        ),
        6 | 7 => format!(
            "UPDATE $t {using}{ttl} SET m[{n}] = {}, s = s + {{'e{n}'}} WHERE {row}",
            rng.below(9)
        ),
        8 => format!("UPDATE $t {using}{ttl} SET a = {n}, b = null WHERE {row}"),
        9 => format!("DELETE m[{n}], s['e{n}'] FROM $t {using} WHERE {row}"),
        10 => format!("DELETE m, a FROM $t {using} WHERE {row}"),
        11 if rng.one_in(2) => format!("DELETE FROM $t {using} WHERE {row}"),
        11 => format!(
            "DELETE FROM $t {using} WHERE k = {k} AND c >= {c} AND c < {}",
            c + 2
        ),
        12 | 13 => {
            format!("UPDATE $t {using}{ttl} SET st = 'st{n}', sm[{n}] = 1 WHERE k = {k}")
        }
        14 => format!("DELETE st, sm[{n}] FROM $t {using} WHERE k = {k}"),
        _ => format!("INSERT INTO $t (k, c) VALUES ({k}, {c}) {using}{ttl}"),
    }
}

/// Merges a case with TTLs removed.
fn strip(
    cassandra: &Cassandra,
    case: &Case,
    directory: &Path,
    change: impl FnOnce(&mut compactor::MergeRequest),
) -> Result<(Option<PathBuf>, compactor::report::TtlRemovedReport)> {
    let request = support::request(case, Output::of(cassandra.mode()));
    let mut options = ours::options(&case.inputs, directory, &request)?;
    options.strip_ttl = true;
    change(&mut options);
    let report = compactor::merge::merge(options, &mut NoObserver)?;
    let removed = report.ttl_removed.context("no count of TTLs")?;
    let outputs = report.outputs.into_iter();
    let mut outputs = outputs.map(|output| output.data_path);
    Ok((outputs.next(), removed))
}

/// Returns the differences between our merge of data with TTLs and Cassandra's compaction of the same data without.
fn differences(
    cassandra: &mut Cassandra,
    with_ttl: &Case,
    without: &Case,
    place: &Path,
) -> Result<Vec<String>> {
    let compacted = without.compact(cassandra, &place.join("cassandra"))?;
    let granted = &[Exception::ForeignInputs];
    let expected = Expected::of(cassandra, &without.table, &compacted, granted)?;
    let expected = expected.context("no output")?;
    let rows = &expected.rows;
    // Expired liveness of view rows.
    let expired = rows.matches("\"ttl\":2147483647").count();
    ensure!(rows.matches("\"ttl\"").count() == expired, "TTLs: {rows}");
    let (output, removed) = strip(cassandra, with_ttl, &place.join("ours"), |_| ())?;
    ensure!(removed.cells > 0 && removed.rows > 0, "{removed:?}");
    let mut failures =
        support::compare_output(cassandra, with_ttl, output.clone(), Some(&expected))?;
    let content = |data: &Option<PathBuf>| -> Result<Vec<u8>> {
        Ok(std::fs::read(data.as_ref().context("no output")?)?)
    };
    let mut again = |name: &str, change: &dyn Fn(&mut compactor::MergeRequest)| -> Result<()> {
        let (again, removed_again) = strip(cassandra, with_ttl, &place.join(name), change)?;
        if content(&again)? != content(&output)? || removed_again != removed {
            failures.push(format!(
                "{name}: the output differs: removed {removed_again:?}, expected {removed:?}"
            ));
        }
        Ok(())
    };
    for threads in [1, 2, 3, 8] {
        again(&format!("threads-{threads}"), &|options| {
            options.threads = threads;
            options.range_bytes = Some(1);
        })?;
    }
    if with_ttl.others.is_empty() {
        again("passes", &|options| options.open_files = Some(0))?;
    }
    Ok(failures)
}

#[test]
fn equals_compaction_of_data_without_ttls() {
    for mut cassandra in servers(Mode::ALL) {
        compare_random_data(&mut cassandra);
    }
    if has_five() {
        compare_random_data(&mut five(Mode::Da));
    }
}

fn compare_random_data(cassandra: &mut Cassandra) {
    let mode = cassandra.mode();
    for seed in 1..=campaign::cases(4) as u64 {
        let provided = [None, None, Some("cell"), Some("row")][seed as usize % 4];
        let plan = Plan { seed, provided };
        support::check(format_args!("{mode}, {plan:?}"), random(cassandra, plan));
    }
}

fn random(cassandra: &mut Cassandra, plan: Plan) -> Result<Vec<String>> {
    let place = tempfile::tempdir()?;
    let mut prepare = |with_ttl: bool| {
        let scenario = scenario(plan, with_ttl);
        Case::prepare(cassandra, &scenario, &place.path().join(&scenario.name))
    };
    let (with_ttl, without) = (prepare(true)?, prepare(false)?);
    differences(cassandra, &with_ttl, &without, place.path())
}

/// An earlier compaction has made tombstones of expired cells, and left the expiring liveness of their rows.
#[test]
fn tombstones_of_expired_cells_stay() {
    let Some(mut cassandra) = server(Mode::Pa) else {
        return;
    };
    support::check("converted", converted(&mut cassandra));
}

fn converted(cassandra: &mut Cassandra) -> Result<Vec<String>> {
    const SCHEMA: &str =
        "CREATE TABLE $t (k int, c int, v text, m map<int, int>, PRIMARY KEY (k, c))";
    let place = tempfile::tempdir()?;
    let both = |name: &str, fill: fn(&mut Input)| {
        Scenario::new(name, "expired cells that have become tombstones")
            .schema(SCHEMA)
            .input(fill)
            .input(|i| {
                i.cql("DELETE FROM $t USING TIMESTAMP 1 WHERE k = 100");
                i.cql("INSERT INTO $t (k, c, v) VALUES (1, 9, 'stays') USING TIMESTAMP 10");
                // Hidden by the tombstones.
                i.cql("UPDATE $t USING TIMESTAMP 9 SET v = 'older' WHERE k = 1 AND c = 1");
            })
            .merge_at(T0 + 2000, 100_000)
    };
    let with_ttl = both("strip_converted_with", |i| {
        i.cql("INSERT INTO $t (k, c, v) VALUES (1, 1, 'a') USING TIMESTAMP 10 AND TTL 100");
        i.cql(
            "UPDATE $t USING TIMESTAMP 10 AND TTL 100 SET v = 'a', m[1] = 1 WHERE k = 1 AND c = 2",
        );
        i.cql("INSERT INTO $t (k, c, v) VALUES (1, 3, 'later') USING TIMESTAMP 10 AND TTL 1500");
    });
    let without = both("strip_converted_without", |i| {
        i.cql("INSERT INTO $t (k, c) VALUES (1, 1) USING TIMESTAMP 10");
        i.cql("DELETE v FROM $t USING TIMESTAMP 10 WHERE k = 1 AND c = 1");
        i.cql("DELETE v, m[1] FROM $t USING TIMESTAMP 10 WHERE k = 1 AND c = 2");
        i.cql("INSERT INTO $t (k, c, v) VALUES (1, 3, 'later') USING TIMESTAMP 10");
    });
    let mut with_ttl = Case::prepare(cassandra, &with_ttl, &place.path().join("with"))?;
    let without = Case::prepare(cassandra, &without, &place.path().join("without"))?;
    let flushed = cassandra.dump(&with_ttl.table, &with_ttl.inputs[0])?;
    let directory = place.path().join("converted");
    let request = CompactRequest::new(&with_ttl.inputs[..1], &directory, T0 + 1000);
    let compacted = cassandra.compact(&with_ttl.table, &request)?;
    with_ttl.inputs[0] = compacted.outputs.first().context("no output")?.clone();
    let converted = cassandra.dump(&with_ttl.table, &with_ttl.inputs[0])?;
    let difference = compare::lines(&flushed, &converted);
    ensure!(difference.is_some(), "nothing has expired: {converted}");
    differences(cassandra, &with_ttl, &without, place.path())
}
