//! Compacts a table with each of our strategies, several compactions at once. Cassandra's verifier accepts the
//! resulting SSTables, they hold the rows that its own compaction of all inputs leaves, and a Cassandra that starts
//! with them selects no further compaction.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use compactor::compact::{CompactRequest, Compacted, Compaction, Plan};
use compactor::{InputCheck, MergeRequest, NoObserver, Scope};
use compactor_io::{Io, IoOptions};
use compactor_sstable::schema::Schema;
use compactor_strategy::CompactionParams;
use compactor_strategy::release::Release;
use compactor_testkit::campaign;
use interop::cases::Case;
use interop::scenarios::Scenario;
use interop::{Cassandra, CompactRequest as Theirs, Mode};

use crate::support::servers;

/// Microseconds between timestamps that differ by one.
const HOUR: i64 = 3_600_000_000;

/// A strategy of ours, and the strategy with which Cassandra starts on the resulting SSTables.
struct Strategy {
    class: &'static str,
    options: &'static [(&'static str, &'static str)],
    theirs: (&'static str, &'static [(&'static str, &'static str)]),
    /// Minimum number of outputs.
    outputs: usize,
}

impl Strategy {
    const fn same(
        class: &'static str,
        options: &'static [(&'static str, &'static str)],
        outputs: usize,
    ) -> Strategy {
        Strategy {
            class,
            options,
            theirs: (class, options),
            outputs,
        }
    }
}

const LEVELED: &str = "LeveledCompactionStrategy";

const STRATEGIES: [Strategy; 5] = [
    Strategy::same(
        "SizeTieredCompactionStrategy",
        &[
            ("min_threshold", "2"),
            ("max_threshold", "3"),
            ("min_sstable_size", "0"),
        ],
        1,
    ),
    Strategy::same(
        LEVELED,
        &[("sstable_size_in_mb", "1"), ("fanout_size", "2")],
        3,
    ),
    Strategy::same(
        "TimeWindowCompactionStrategy",
        &[
            ("compaction_window_unit", "DAYS"),
            ("compaction_window_size", "2"),
        ],
        3,
    ),
    Strategy::same(
        "UnifiedCompactionStrategy",
        &[
            ("scaling_parameters", "T2"),
            ("base_shard_count", "4"),
            ("min_sstable_size", "0B"),
        ],
        4,
    ),
    Strategy {
        class: "LevelCountCompactionStrategy",
        options: &[
            ("level_count", "2"),
            ("min_sstable_size_in_mb", "1"),
            ("max_sstable_size_in_mb", "1"),
            ("fanout_size", "2"),
        ],
        theirs: (
            LEVELED,
            &[("sstable_size_in_mb", "1"), ("fanout_size", "2")],
        ),
        outputs: 3,
    },
];

fn options_of(options: &[(&str, &str)]) -> BTreeMap<String, String> {
    let options = options.iter();
    options
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

/// SSTables of very different sizes, each with deletions of data in the others.
fn scenario() -> Scenario {
    let mut scenario = Scenario::new("compact", "SSTables of many sizes").schema(
        "CREATE TABLE $t (k int, c int, v text, m map<int, int>, s int static, PRIMARY KEY (k, c)) \
         WITH compression = {'enabled': false}",
    );
    let filler = "0123456789abcdef".repeat(256);
    for n in 0..14_i64 {
        let filler = &filler;
        scenario = scenario.input(|i| {
            let (ts, back) = ((100 + n * 10) * HOUR, (140 - n * 10) * HOUR);
            for k in 0..(if n % 3 == 0 { 240 } else { 40 }) {
                let other = if k < 40 { (k + n) % 6 } else { n };
                match if k < 40 { (k + n) % 7 } else { 6 } {
                    0 => i.cql(format!("DELETE FROM $t USING TIMESTAMP {ts} WHERE k = {k}")),
                    1 => i.cql(format!("DELETE FROM $t USING TIMESTAMP {back} WHERE k = {k} AND c = {other}")),
                    2 => i.cql(format!("DELETE FROM $t USING TIMESTAMP {ts} WHERE k = {k} AND c > 1 AND c < 4")),
                    3 => i.cql(format!("DELETE v FROM $t USING TIMESTAMP {ts} WHERE k = {k} AND c = {other}")),
                    4 => i.cql(format!("DELETE m, s FROM $t USING TIMESTAMP {ts} WHERE k = {k} AND c = {other}")),
                    5 => i.cql(format!("INSERT INTO $t (k, c, v) VALUES ({k}, {other}, 'x{n}{filler}') USING TIMESTAMP {ts} AND TTL 10")),
                    _ => i.cql(format!("INSERT INTO $t (k, c, v, m, s) VALUES ({k}, {other}, '{n}{filler}', {{1: {n}}}, {n}) USING TIMESTAMP {ts}")),
                };
            }
        });
    }
    scenario
}

#[test]
fn results_match_cassandra() {
    for (number, mut cassandra) in servers(Mode::ALL).enumerate() {
        let mode = cassandra.mode();
        run(&mut cassandra, number).unwrap_or_else(|e| panic!("{mode}: {e:#}"));
    }
}

/// Runs every strategy; each purges in every other mode.
fn run(cassandra: &mut Cassandra, turn: usize) -> Result<()> {
    let place = tempfile::tempdir()?;
    let scenario = scenario().purge_all();
    let mut case = Case::prepare(cassandra, &scenario, &place.path().join("inputs"))?;
    let gc_before_s = case.gc_before_s;
    let strategies = campaign::some_of(STRATEGIES.iter().enumerate());
    for purge in [false, true] {
        let is_selected = |number: usize| (turn + number).is_multiple_of(2) == purge;
        let strategies = strategies.iter().filter(|(number, _)| is_selected(*number));
        let strategies: Vec<&Strategy> = strategies.map(|(_, strategy)| *strategy).collect();
        if strategies.is_empty() {
            continue;
        }
        case.gc_before_s = gc_before_s.filter(|_| purge);
        let place = place.path().join(format!("purging-{purge}"));
        let expected = merged(cassandra, &case, &case.inputs, &place.join("all"))?;
        for strategy in strategies {
            let directory = place.join(strategy.class);
            compare(cassandra, &case, strategy, &directory, &expected)
                .with_context(|| format!("{}, purging {purge}", strategy.class))?;
        }
    }
    Ok(())
}

fn compare(
    cassandra: &mut Cassandra,
    case: &Case,
    strategy: &Strategy,
    directory: &Path,
    expected: &str,
) -> Result<()> {
    let mut merges = MergeRequest::new(case.inputs.clone(), directory.join("ours"));
    merges.now_s = case.now_s;
    merges.gc_before_s = case.gc_before_s;
    merges.scope = Scope::Complete;
    let schema = case.schema.as_ref().context("a schema")?;
    let schema = Schema::parse(&std::fs::read_to_string(schema)?)?;
    merges.table = Some(schema.only_table()?.clone());
    let request = CompactRequest {
        merges,
        plan: Plan::Strategy(CompactionParams::from_options(
            strategy.class,
            &options_of(strategy.options),
            Release::V6_0,
        )?),
        max_compactions: None,
        concurrent: 3,
        check: InputCheck::AllComponents,
        verify_outputs: false,
        recorder: None,
    };
    let compaction = Compaction::open(Io::new(IoOptions::default())?, request)?;
    let Compacted { report, error } = compaction.run(&mut NoObserver)?;
    ensure!(error.is_none(), "{error:?}");
    ensure!(report.compactions > 0, "{report:?}");
    ensure!(report.outputs.len() >= strategy.outputs, "{report:?}");
    let mut left: Vec<PathBuf> = report.untouched.clone();
    let mut levels: BTreeMap<i32, usize> = BTreeMap::new();
    for output in &report.outputs {
        let findings = cassandra.verify(&case.table, &output.sstable.data_path)?;
        ensure!(findings.is_empty(), "{findings:?}");
        left.push(output.sstable.data_path.clone());
        *levels.entry(output.level).or_default() += 1;
    }
    let found = merged(cassandra, case, &left, &directory.join("left"))?;
    ensure!(found == expected, "rows differ: {found}\n---\n{expected}");
    let (class, options) = strategy.theirs;
    let gc_before_s = case.gc_before_s.unwrap_or(i64::MIN);
    let started = interop::strategy::start(
        cassandra,
        &case.table,
        &left,
        (class, &options_of(options)),
        (case.now_s, gc_before_s),
    )?;
    ensure!(
        started.selected.is_empty(),
        "Cassandra would next compact {:?}, {report:?}",
        started.selected
    );
    if class == LEVELED {
        // Cassandra moves SSTables that overlap others of their level to level 0.
        *levels.entry(0).or_default() += report.untouched.len();
        let theirs = started.levels.iter().enumerate();
        let theirs = theirs.filter(|(_, sstables)| **sstables > 0);
        let theirs: BTreeMap<i32, usize> = theirs
            .map(|(level, sstables)| (level as i32, *sstables))
            .collect();
        levels.retain(|_, sstables| *sstables > 0);
        ensure!(theirs == levels, "levels {theirs:?}, ours {levels:?}");
        ensure!(levels.keys().any(|level| *level > 1), "{levels:?}");
    }
    Ok(())
}

/// Rows of these SSTables, merged by Cassandra.
fn merged(
    cassandra: &mut Cassandra,
    case: &Case,
    inputs: &[PathBuf],
    directory: &Path,
) -> Result<String> {
    let request = Theirs {
        gc_before_s: case.gc_before_s,
        ..Theirs::new(inputs, directory, case.now_s)
    };
    let compacted = cassandra.compact(&case.table, &request)?;
    let data = compacted.outputs.first().context("an output")?;
    cassandra.dump(&case.table, data)
}
