//! Inputs of several repair states in one merge: the output of each state equals Cassandra's compaction of the inputs
//! of that state, with the others as overlapping SSTables.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use interop::cases::Case;
use interop::ours;
use interop::scenarios::Scenario;
use interop::{Cassandra, Mode, Repair};

use crate::support::{self, Expected, Output, servers};

const SESSION_A: &str = "5b925f90-a4c0-11ef-8b25-0123456789ab";
const SESSION_B: &str = "6c036ea0-a4c0-11ef-8b25-0123456789ab";

/// Repair state of each input, and its name in our report.
fn states() -> Vec<(&'static str, Repair)> {
    let pending = |session: &str, transient| Repair {
        pending: Some(session.to_owned()),
        transient,
        ..Repair::default()
    };
    let repaired = |repaired_at| Repair {
        repaired_at,
        ..Repair::default()
    };
    vec![
        ("unrepaired", Repair::default()),
        ("repaired", repaired(1_700_000_000_123)),
        (
            "in pending repair 5b925f90-a4c0-11ef-8b25-0123456789ab",
            pending(SESSION_A, false),
        ),
        (
            "in pending repair 6c036ea0-a4c0-11ef-8b25-0123456789ab",
            pending(SESSION_B, false),
        ),
        (
            "transient, in pending repair 6c036ea0-a4c0-11ef-8b25-0123456789ab",
            pending(SESSION_B, true),
        ),
        ("unrepaired", Repair::default()),
        ("repaired", repaired(1_600_000_000_456)),
        (
            "in pending repair 5b925f90-a4c0-11ef-8b25-0123456789ab",
            pending(SESSION_A, false),
        ),
    ]
}

/// Each input has deletions of every kind of data in the others, at timestamps that ascend or descend with the inputs.
fn scenario(only_purge_repaired: bool) -> Scenario {
    let mut scenario = Scenario::new(
        format!("repair_groups_{only_purge_repaired}"),
        "inputs of several repair states",
    )
    .schema(format!(
        "CREATE TABLE $t (k int, c int, v int, m map<int, int>, s int static, PRIMARY KEY (k, c)) \
         WITH compaction = {{'class': 'SizeTieredCompactionStrategy', \
         'only_purge_repaired_tombstones': '{only_purge_repaired}'}}"
    ))
    .purge_all();
    let count = states().len() as i32;
    for n in 0..count {
        scenario = scenario.input(|i| {
            let ts = 100 + n * 10;
            for k in 0..12 {
                let other = (k + n) % 6;
                match (k + n) % 7 {
                    0 => i.cql(format!("DELETE FROM $t USING TIMESTAMP {ts} WHERE k = {k}")),
                    1 => i.cql(format!("DELETE FROM $t USING TIMESTAMP {} WHERE k = {k} AND c = {other}", 185 - ts)),
                    2 => i.cql(format!("DELETE FROM $t USING TIMESTAMP {ts} WHERE k = {k} AND c > 1 AND c < 4")),
                    3 => i.cql(format!("DELETE v FROM $t USING TIMESTAMP {ts} WHERE k = {k} AND c = {other}")),
                    4 => i.cql(format!("DELETE m, s FROM $t USING TIMESTAMP {ts} WHERE k = {k} AND c = {other}")),
                    5 => i.cql(format!("INSERT INTO $t (k, c, v) VALUES ({k}, {other}, {n}) USING TIMESTAMP {ts} AND TTL 10")),
                    _ => i.cql(format!("INSERT INTO $t (k, c, v, m, s) VALUES ({k}, {other}, {n}, {{1: {n}}}, {n}) USING TIMESTAMP {ts}")),
                };
            }
            // Partitions that only one state has: everything in them may be purged.
            i.cql(format!("DELETE FROM $t USING TIMESTAMP {ts} WHERE k = {}", 100 + n));
        });
    }
    scenario
}

#[test]
fn each_state_gets_its_own_output() {
    for mut cassandra in servers(Mode::ALL) {
        let mode = cassandra.mode();
        for only_purge_repaired in [false, true] {
            support::check(
                format_args!("{mode}, only_purge_repaired_tombstones {only_purge_repaired}"),
                run(&mut cassandra, only_purge_repaired),
            );
        }
    }
}

/// An input that is dropped unread, since everything in it has expired, does not determine when the output was
/// repaired.
#[test]
fn repaired_like_the_inputs_that_are_read() {
    for mut cassandra in servers(Mode::ALL) {
        let mode = cassandra.mode();
        support::check(format_args!("{mode}"), with_expired_input(&mut cassandra));
    }
}

fn with_expired_input(cassandra: &mut Cassandra) -> Result<Vec<String>> {
    let place = tempfile::tempdir()?;
    let scenario = Scenario::new(
        "repaired_and_expired",
        "the input repaired first has expired",
    )
    .schema("CREATE TABLE $t (k int, c int, v int, PRIMARY KEY (k, c))")
    .input(|i| {
        i.cql("INSERT INTO $t (k, c, v) VALUES (1, 1, 1) USING TIMESTAMP 10 AND TTL 5");
    })
    .input(|i| {
        i.cql("INSERT INTO $t (k, c, v) VALUES (1, 2, 1) USING TIMESTAMP 20");
    })
    .purge_all();
    let case = Case::prepare(cassandra, &scenario, &place.path().join("inputs"))?;
    for (input, repaired_at) in case
        .inputs
        .iter()
        .zip([1_600_000_000_456, 1_700_000_000_123])
    {
        let repair = Repair {
            repaired_at,
            ..Repair::default()
        };
        cassandra.set_repair(&case.table, input, &repair)?;
    }
    let compacted = case.compact(cassandra, &place.path().join("cassandra"))?;
    let expected = Expected::of(cassandra, &case.table, &compacted, &[])?;
    let output = Output::of(cassandra.mode());
    support::ours(
        cassandra,
        &case,
        output,
        &place.path().join("ours"),
        expected.as_ref(),
    )
}

fn run(cassandra: &mut Cassandra, only_purge_repaired: bool) -> Result<Vec<String>> {
    let place = tempfile::tempdir()?;
    let scenario = scenario(only_purge_repaired);
    let case = Case::prepare(cassandra, &scenario, &place.path().join("inputs"))?;
    let mut groups: BTreeMap<&str, Vec<PathBuf>> = BTreeMap::new();
    for (input, (name, repair)) in case.inputs.iter().cloned().zip(states()) {
        cassandra.set_repair(&case.table, &input, &repair)?;
        groups.entry(name).or_default().push(input);
    }
    let request = support::request(&case, Output::of(cassandra.mode()));
    let ours = ours::merge_groups(&case.inputs, &place.path().join("ours"), &request)?;
    ensure!(
        ours.len() == groups.len(),
        "{} outputs of {} groups",
        ours.len(),
        groups.len()
    );
    let mut failures = Vec::new();
    for (number, (state, output)) in ours.into_iter().enumerate() {
        let inputs = groups.get(&*state).with_context(|| state.clone())?;
        let group = Case {
            inputs: inputs.clone(),
            others: case
                .inputs
                .iter()
                .filter(|i| !inputs.contains(i))
                .cloned()
                .collect(),
            table: case.table.clone(),
            schema: case.schema.clone(),
            ..case
        };
        let directory = place.path().join(format!("cassandra-{number}"));
        let compacted = group.compact(cassandra, &directory)?;
        let expected = Expected::of(cassandra, &case.table, &compacted, &[])?;
        let expected = expected.context("no output")?;
        let found = support::compare_output(cassandra, &group, output, Some(&expected))?;
        failures.extend(found.into_iter().map(|line| format!("{state}: {line}")));
    }
    Ok(failures)
}
