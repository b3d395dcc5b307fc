//! Merges into outputs of a maximum size: each output equals that of Cassandra's `MaxSSTableSizeWriter` for the same
//! partitions, and together they hold the rows of the inputs.

use anyhow::{Result, ensure};
use interop::cases::Case;
use interop::ours;
use interop::scenarios::Scenario;
use interop::{Cassandra, Mode};

use crate::support::{self, Expected, Output, servers};

/// Maximum sizes: a seventh of the uncompressed data, and a quarter of the data compressed with LZ4.
const SIZE: u64 = 30_000;
const COMPRESSED_SIZE: u64 = 5_000;

/// Finding on a filter with too few bits for its keys: Cassandra sizes each output's filter for an equal share of all
/// keys (`MaxSSTableSizeWriter.sstableKeyCount`), but these partitions are of very different lengths. The bytes of the
/// filter differ too: ours is sized for at least as many keys as the output before had.
const FEW_KEYS: &str = "filter: too few bits";

/// Partitions of every kind, some larger than the maximum size; `inputs` SSTables that overlap.
fn scenario(name: &str, compression: &str, inputs: i32) -> Scenario {
    let mut scenario = Scenario::new(format!("split_{name}_{inputs}"), "outputs of a greatest size").schema(format!(
        "CREATE TABLE $t (k int, c int, v text, m map<int, text>, s text static, PRIMARY KEY (k, c)) \
         WITH compression = {compression}"
    ));
    for n in 0..inputs {
        scenario = scenario.input(|i| {
            for k in 0..120 {
                let ts = 1000 + (k * 7 + n * 13) % 50;
                let word = |length: i32| -> String {
                    (0..length).map(|at| char::from(b'a' + ((at * at + k * 31 + n) % 26) as u8)).collect()
                };
                let rows = match k % 40 {
                    7 => 120,
                    _ => k % 5,
                };
                for c in 0..rows {
                    i.cql(format!(
                        "INSERT INTO $t (k, c, v, m) VALUES ({k}, {c}, '{}', {{1: '{}'}}) USING TIMESTAMP {ts}",
                        word(200 + (k + c) % 300),
                        word(40)
                    ));
                }
                match k % 6 {
                    0 => i.cql(format!("DELETE FROM $t USING TIMESTAMP {} WHERE k = {k}", ts - 3)),
                    1 => i.cql(format!("DELETE FROM $t USING TIMESTAMP {ts} WHERE k = {k} AND c > 1 AND c < 4")),
                    2 => i.cql(format!("DELETE FROM $t USING TIMESTAMP {ts} WHERE k = {k} AND c = {}", k % 7)),
                    3 => i.cql(format!("UPDATE $t USING TIMESTAMP {ts} SET s = '{}' WHERE k = {k}", word(300))),
                    4 => i.cql(format!("DELETE m FROM $t USING TIMESTAMP {ts} WHERE k = {k} AND c = 2")),
                    _ => i.cql(format!("INSERT INTO $t (k, c, v) VALUES ({k}, 9, 'x') USING TIMESTAMP {ts} AND TTL 100")),
                };
            }
        });
    }
    scenario
}

#[test]
fn outputs_match_cassandra() {
    for mut cassandra in servers(Mode::ALL) {
        let mode = cassandra.mode();
        for (name, compression, inputs) in [
            ("plain", "{'enabled': false}", 1),
            (
                "noop",
                "{'class': 'NoopCompressor', 'chunk_length_in_kb': 4}",
                1,
            ),
            (
                "noop",
                "{'class': 'NoopCompressor', 'chunk_length_in_kb': 16}",
                3,
            ),
            (
                "lz4",
                "{'class': 'LZ4Compressor', 'chunk_length_in_kb': 4}",
                2,
            ),
        ] {
            let scenario = scenario(name, compression, inputs);
            let found = run(&mut cassandra, &scenario, name != "lz4");
            support::check(format_args!("{mode}, {}", scenario.name), found);
        }
    }
}

/// Compares our outputs with Cassandra's. With `same_sizes`, our compressed chunks are as long as Cassandra's, so that
/// outputs begin at the same partitions.
fn run(cassandra: &mut Cassandra, scenario: &Scenario, same_sizes: bool) -> Result<Vec<String>> {
    let size = if same_sizes { SIZE } else { COMPRESSED_SIZE };
    let place = tempfile::tempdir()?;
    let mut case = Case::prepare(cassandra, scenario, &place.path().join("inputs"))?;
    // As in Cassandra's splitter: nothing is purged, and expired cells become tombstones.
    case.gc_before_s = None;
    let directory = place.path().join("cassandra");
    let compacted = case.compact_to_size(cassandra, &directory, Some(size))?;
    ensure!(
        compacted.outputs.len() > 2,
        "oracle: {} outputs",
        compacted.outputs.len()
    );
    let request = support::request(&case, Output::of(cassandra.mode()));
    let ours = ours::merge_to_size(
        &case.inputs,
        &place.path().join("ours"),
        &request,
        Some(size),
    )?;
    let mut failures = Vec::new();
    if same_sizes {
        ensure!(
            ours.len() == compacted.outputs.len(),
            "{} outputs where Cassandra makes {}",
            ours.len(),
            compacted.outputs.len()
        );
        for (number, (theirs, ours)) in compacted.outputs.iter().zip(&ours).enumerate() {
            let expected = Expected::of_output(cassandra, &case.table, theirs, &[])?;
            let mut found =
                support::compare_output(cassandra, &case, Some(ours.clone()), Some(&expected))?;
            found.retain(|f| !f.contains(FEW_KEYS) && !f.contains("Filter.db"));
            failures.extend(
                found
                    .into_iter()
                    .map(|line| format!("output {number}: {line}")),
            );
        }
        return Ok(failures);
    }
    ensure!(ours.len() > 2, "{} outputs", ours.len());
    let (mut expected, mut found) = (String::new(), String::new());
    for data in &compacted.outputs {
        expected.push_str(&cassandra.dump(&case.table, data)?);
    }
    for data in &ours {
        let findings = cassandra.verify(&case.table, data)?;
        let findings = findings.iter().map(ToString::to_string);
        failures.extend(findings.filter(|finding| !finding.contains(FEW_KEYS)));
        found.push_str(&cassandra.dump(&case.table, data)?);
    }
    failures.extend(
        interop::compare::lines(&expected, &found).map(|text| format!("rows differ, {text}")),
    );
    Ok(failures)
}
