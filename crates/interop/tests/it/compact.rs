//! A table compacted by our size-tiered strategy, several compactions at once: Cassandra reads what is left, and finds
//! in it the rows that its own compaction of all inputs leaves.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use compactor::compact::{CompactRequest, Compacted, Compaction, Plan};
use compactor::{InputCheck, MergeRequest, NoObserver, Scope};
use compactor_io::{Io, IoOptions};
use compactor_sstable::schema::Schema;
use compactor_strategy::options::Thresholds;
use compactor_strategy::size_tiered::{BucketOptions, SizeTieredOptions};
use interop::cases::Case;
use interop::scenarios::Scenario;
use interop::{Cassandra, CompactRequest as Theirs, Mode, Pipeline};

use crate::support::server;

/// SSTables of very different sizes, each of which deletes what others hold and holds what others delete.
fn scenario() -> Scenario {
    let mut scenario = Scenario::new("compact_size_tiered", "SSTables of many sizes").schema(
        "CREATE TABLE $t (k int, c int, v text, m map<int, int>, s int static, PRIMARY KEY (k, c))",
    );
    for n in 0..14_i32 {
        scenario = scenario.input(|i| {
            let ts = 100 + n * 10;
            for k in 0..(if n % 3 == 0 { 40 } else { 8 }) {
                let other = (k + n) % 6;
                match (k + n) % 7 {
                    0 => i.cql(format!("DELETE FROM $t USING TIMESTAMP {ts} WHERE k = {k}")),
                    1 => i.cql(format!("DELETE FROM $t USING TIMESTAMP {} WHERE k = {k} AND c = {other}", 240 - ts)),
                    2 => i.cql(format!("DELETE FROM $t USING TIMESTAMP {ts} WHERE k = {k} AND c > 1 AND c < 4")),
                    3 => i.cql(format!("DELETE v FROM $t USING TIMESTAMP {ts} WHERE k = {k} AND c = {other}")),
                    4 => i.cql(format!("DELETE m, s FROM $t USING TIMESTAMP {ts} WHERE k = {k} AND c = {other}")),
                    5 => i.cql(format!("INSERT INTO $t (k, c, v) VALUES ({k}, {other}, 'x{n}') USING TIMESTAMP {ts} AND TTL 10")),
                    _ => i.cql(format!("INSERT INTO $t (k, c, v, m, s) VALUES ({k}, {other}, '{n}', {{1: {n}}}, {n}) USING TIMESTAMP {ts}")),
                };
            }
        });
    }
    scenario
}

#[test]
fn what_is_left_is_cassandras() {
    for mode in Mode::ALL {
        let Some(mut cassandra) = server(mode) else {
            return;
        };
        for purge in [false, true] {
            run(&mut cassandra, purge).unwrap_or_else(|e| panic!("{mode}, purging {purge}: {e:#}"));
        }
    }
}

fn run(cassandra: &mut Cassandra, purge: bool) -> Result<()> {
    let place = tempfile::tempdir()?;
    let mut scenario = scenario();
    scenario.name = format!("compact_size_tiered_{purge}");
    let scenario = if purge {
        scenario.purge_all()
    } else {
        scenario.no_purge()
    };
    let case = Case::prepare(cassandra, &scenario, &place.path().join("inputs"))?;
    let mut merges = MergeRequest::new(case.inputs.clone(), place.path().join("ours"));
    merges.now_s = case.now_s;
    merges.gc_before_s = case.gc_before_s;
    merges.scope = Scope::Complete;
    let schema = case.schema.as_ref().context("a schema")?;
    let schema = Schema::parse(&std::fs::read_to_string(schema)?)?;
    merges.table = Some(schema.only_table()?.clone());
    let request = CompactRequest {
        merges,
        plan: Plan::SizeTiered(SizeTieredOptions {
            thresholds: Thresholds { min: 2, max: 3 },
            buckets: BucketOptions {
                min_sstable_size: 0,
                ..BucketOptions::default()
            },
            ..SizeTieredOptions::default()
        }),
        concurrent: 3,
        check: InputCheck::AllComponents,
        verify_outputs: false,
        recorder: None,
    };
    let compaction = Compaction::open(Io::new(IoOptions::default())?, request)?;
    let Compacted { report, error } = compaction.run(&mut NoObserver)?;
    ensure!(error.is_none(), "{error:?}");
    ensure!(report.compactions > 4 && report.rounds > 1, "{report:?}");
    let mut left: Vec<PathBuf> = report.untouched.clone();
    for output in &report.outputs {
        let findings = cassandra.verify(&case.table, &output.sstable.data_path)?;
        ensure!(findings.is_empty(), "{findings:?}");
        left.push(output.sstable.data_path.clone());
    }
    ensure!(left.len() < 6, "{} SSTables are left", left.len());
    // What is left, merged by Cassandra, against what it makes of the inputs.
    let mut dumps = Vec::new();
    for (name, inputs) in [("all", &case.inputs), ("left", &left)] {
        let directory = place.path().join(name);
        let compacted = cassandra.compact(
            &case.table,
            &Theirs {
                inputs,
                others: &[],
                output: Some(&directory),
                generation: 1,
                now_s: case.now_s,
                gc_before_s: case.gc_before_s,
                pipeline: Pipeline::Iterator,
                access: None,
                max_sstable_size: None,
            },
        )?;
        let data = compacted.outputs.first().context("an output")?;
        dumps.push(cassandra.dump(&case.table, data)?);
    }
    ensure!(
        dumps[0] == dumps[1],
        "rows differ: {}\n---\n{}",
        dumps[0],
        dumps[1]
    );
    Ok(())
}
