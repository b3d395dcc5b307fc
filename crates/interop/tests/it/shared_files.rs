//! Foreign SSTables of versions `mc`, `md` and `me`, some written by Cassandra 3, some by ScyllaDB, some damaged on
//! purpose. They are not part of this repository: the directory is `../shared/sstables` next to it, or the one that
//! `COMPACTOR_SHARED_SSTABLES` names.
//!
//! Each file is dumped, and merged alone, with others of its table, and with Cassandra's own compaction of it;
//! Cassandra does the same. The expected results are in [`shared_list`].

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use compactor_sstable::compression::info::CompressionInfo;
use compactor_sstable::statistics::{CompactionMetadata, HyperLogLogPlus, Statistics};
use compactor_testkit::{Need, campaign, skip};
use interop::cases::Case;
use interop::files::{component, copy, data_files, version};
use interop::parity::Exception;
use interop::pool::Shared;
use interop::{Mode, Table, compare, ours};

use crate::shared_list::{Known, Outcome, files, pairs};
use crate::support::{self, Expected, Failures, Output, last_use_of_server};

/// Later than everything in the files.
const NOW_S: i64 = 1_900_000_000;

#[test]
fn read_as_cassandra_reads_them() {
    if !campaign::is_full() {
        return;
    }
    let root = match std::env::var_os("COMPACTOR_SHARED_SSTABLES") {
        Some(named) => PathBuf::from(named),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/sstables"),
    };
    if !root.is_dir() {
        skip(
            Need::SharedSstables,
            format!("no directory {}", root.display()),
        );
        return;
    }
    let Some(cassandra) = last_use_of_server(Mode::Pa) else {
        return;
    };
    let place = tempfile::tempdir().expect("a temporary directory");
    let mut run = Run {
        cassandra,
        place: place.path().to_owned(),
        tables: 0,
    };
    let mut failures = Failures::default();
    run.files(&root, &mut failures)
        .expect("the pairs are merged");
    for (first, second) in pairs() {
        let found = run.pair(&root, [first, second]);
        failures.add(format_args!("{first} and {second}"), found);
    }
    failures.check();
}

struct Run {
    cassandra: Shared,
    place: PathBuf,
    tables: u32,
}

/// Data.db of two copies of an SSTable, for us and for Cassandra, which differ only by [`rewrite`].
struct Both {
    ours: PathBuf,
    theirs: PathBuf,
}

impl Run {
    fn files(&mut self, root: &Path, failures: &mut Failures) -> Result<()> {
        let mut names: BTreeMap<String, PathBuf> = BTreeMap::new();
        for path in data_files(root)? {
            let name = path.strip_prefix(root)?.display().to_string();
            names.insert(name, path);
        }
        for known in files() {
            if !names.contains_key(known.file) {
                failures.add(known.file, Err(anyhow!("no such file")));
            }
        }
        println!("| file | `dump` | `merge` | `verify` | remark |\n|---|---|---|---|---|");
        for (name, path) in &names {
            match known(name) {
                Ok(known) => {
                    failures.add(name, self.file(&known, path));
                    println!("{known}");
                }
                Err(error) => failures.add(name, Err(error)),
            }
        }
        Ok(())
    }

    /// Copies an SSTable, once for us and once for Cassandra.
    fn stage(&mut self, path: &Path) -> Result<Both> {
        self.tables += 1;
        let ours = copy(path, &self.place.join(format!("{}/ours", self.tables)))?;
        let theirs = copy(path, &self.place.join(format!("{}/theirs", self.tables)))?;
        Ok(Both { ours, theirs })
    }

    fn adopt(&mut self, data: &[PathBuf]) -> Result<Table> {
        let table = Table::new("shared", &format!("t{}", self.tables));
        self.cassandra.adopt(&table, data)?;
        Ok(table)
    }

    fn file(&mut self, known: &Known, path: &Path) -> Result<Vec<String>> {
        let both = self.stage(path)?;
        let mut failures = Vec::new();
        let adopted = self.adopt(std::slice::from_ref(&both.theirs));
        let table = match (adopted, known.dump) {
            (Ok(table), outcome) if outcome != Outcome::SameRewritten => Ok(table),
            (Ok(_), _) => bail!("Cassandra reads Statistics.db without a rewrite"),
            (Err(_), Outcome::SameRewritten) => {
                rewrite(&both.theirs)?;
                self.tables += 1;
                self.adopt(std::slice::from_ref(&both.theirs))
            }
            (Err(error), _) => Err(error),
        };
        self.cassandra.set_now(NOW_S)?;
        let theirs = match &table {
            Ok(table) => self.cassandra.sstabledump(table, &both.theirs),
            Err(error) => Err(anyhow!("{error:#}")),
        };
        let found = ours::dump(&both.ours, NOW_S);
        failures.extend(
            judge(known.dump, theirs, found, |expected, found| {
                // Our last line ends in a newline, the tool's does not.
                let is_equal = *found == format!("{}\n", expected.trim_start());
                (!is_equal).then(|| format!("{:?}", compare::lines(expected, found)))
            })
            .map(|text| format!("dump: {text}")),
        );
        // First without purging into the oldest version, then with everything purged into the newest.
        let mut newer = None;
        for (gc_before_s, version) in [(None, Mode::Nb), (Some(NOW_S), Mode::Pa)] {
            let inputs = [&both];
            let merged = self.merge(table.as_ref().ok(), &inputs, gc_before_s, version)?;
            if gc_before_s.is_none() {
                newer = merged.theirs.as_ref().ok().cloned().flatten();
            }
            failures.extend(
                judge(known.merge, merged.theirs, merged.ours, |_, found| {
                    (!found.is_empty()).then(|| found.join("; "))
                })
                .map(|text| format!("merge (gc_before {gc_before_s:?}): {text}")),
            );
        }
        if let (Some(newer), Ok(table)) = (newer, &table)
            && known.merge.is_same()
        {
            let newer = Both {
                ours: newer.clone(),
                theirs: newer,
            };
            let merged = self.merge(Some(table), &[&both, &newer], None, Mode::Oa)?;
            failures.extend(
                merged
                    .differences()?
                    .map(|text| format!("with a newer version: {text}")),
            );
        }
        let mut damage = ours::damage(&both.ours)?;
        damage.dedup();
        if damage != known.damage {
            failures.push(format!(
                "verify: expected {:?}, found {damage:?}",
                known.damage
            ));
        }
        Ok(failures)
    }

    fn pair(&mut self, root: &Path, names: [&str; 2]) -> Result<Vec<String>> {
        self.tables += 1;
        let place = self.place.join(format!("{}", self.tables));
        let mut inputs = Vec::new();
        for name in names {
            let path = root.join(name);
            let both = Both {
                ours: copy(&path, &place.join("ours"))?,
                theirs: copy(&path, &place.join("theirs"))?,
            };
            if known(name)?.dump == Outcome::SameRewritten {
                rewrite(&both.theirs)?;
            }
            inputs.push(both);
        }
        let table = self.adopt(
            &inputs
                .iter()
                .map(|both| both.theirs.clone())
                .collect::<Vec<_>>(),
        )?;
        let inputs: Vec<&Both> = inputs.iter().collect();
        let mut failures = Vec::new();
        for (gc_before_s, version) in [(None, Mode::Oa), (Some(NOW_S), Mode::Nb)] {
            let merged = self.merge(Some(&table), &inputs, gc_before_s, version)?;
            failures.extend(merged.differences()?);
        }
        Ok(failures)
    }

    /// Cassandra's compaction and our merge of the same SSTables.
    fn merge(
        &mut self,
        table: Option<&Table>,
        inputs: &[&Both],
        gc_before_s: Option<i64>,
        version: Mode,
    ) -> Result<Merged> {
        self.tables += 1;
        let place = self.place.join(format!("{}", self.tables));
        let case = |table: &Table, inputs: Vec<PathBuf>| Case {
            table: table.clone(),
            inputs,
            others: Vec::new(),
            now_s: NOW_S,
            gc_before_s,
            schema: None,
        };
        let our_inputs: Vec<PathBuf> = inputs.iter().map(|both| both.ours.clone()).collect();
        let their_inputs = inputs.iter().map(|both| both.theirs.clone()).collect();
        let compacted = match table {
            None => Err(anyhow!("the table could not be created")),
            Some(table) => {
                case(table, their_inputs).compact(&mut self.cassandra, &place.join("theirs"))
            }
        };
        let (table, compacted) = match (table, compacted) {
            (Some(table), Ok(compacted)) => (table, compacted),
            (_, refused) => {
                // Without Cassandra's rows, only whether our merge refuses too can be checked.
                let request = ours::MergeRequest {
                    version: version.version().to_owned(),
                    now_s: NOW_S,
                    gc_before_s,
                    complete: true,
                    ..ours::MergeRequest::default()
                };
                let merged = ours::merge(&our_inputs, &place.join("ours"), &request);
                return Ok(Merged {
                    theirs: refused.map(|_| None),
                    ours: merged.map(|_| Vec::new()),
                });
            }
        };
        let granted = &[Exception::ForeignInputs, Exception::OwnCompression];
        let expected = Expected::of(&mut self.cassandra, table, &compacted, granted)?;
        let found = support::ours(
            &mut self.cassandra,
            &case(table, our_inputs),
            Output::of(version),
            &place.join("ours"),
            expected.as_ref(),
        )?;
        let refused = found
            .iter()
            .find_map(|text| text.strip_prefix("ours: merge failed: "));
        Ok(Merged {
            theirs: Ok(expected.map(|expected| expected.data)),
            ours: match refused {
                Some(text) => Err(anyhow!("{text}")),
                None => Ok(found),
            },
        })
    }
}

struct Merged {
    /// Cassandra's output, if there is one.
    theirs: Result<Option<PathBuf>>,
    /// Differences of our output from it.
    ours: Result<Vec<String>>,
}

impl Merged {
    /// Differences of a merge that must succeed on both sides.
    fn differences(self) -> Result<impl Iterator<Item = String>> {
        self.theirs.context("Cassandra's compaction")?;
        Ok(self.ours?.into_iter())
    }
}

/// Returns how the outcome differs from the expected one, if it does.
fn judge<T, O>(
    outcome: Outcome,
    theirs: Result<T>,
    ours: Result<O>,
    differ: impl FnOnce(&T, &O) -> Option<String>,
) -> Option<String> {
    let refusal = |error: &anyhow::Error| format!("{error:#}");
    match (outcome, theirs, ours) {
        (Outcome::Same | Outcome::SameRewritten, Ok(theirs), Ok(ours)) => differ(&theirs, &ours),
        (Outcome::Refused(text), Err(_), Err(ours))
        | (Outcome::OnlyCassandra(text), Ok(_), Err(ours)) => {
            let ours = refusal(&ours);
            (!ours.contains(text)).then(|| format!("refused, but without {text:?}: {ours}"))
        }
        (outcome, theirs, ours) => Some(format!(
            "expected {outcome:?}, found Cassandra: {}, ours: {}",
            theirs.map_or_else(|e| refusal(&e), |_| "read".to_owned()),
            ours.map_or_else(|e| refusal(&e), |_| "read".to_owned())
        )),
    }
}

/// Rewrites, with the same content, components that Cassandra 6 refuses: a Statistics.db with components in another
/// order or wider numbers than it accepts, an empty estimate of the number of keys, and options in CompressionInfo.db
/// that it does not know. Also creates a missing Filter.db, which Cassandra fails to build in the old form.
fn rewrite(data: &Path) -> Result<()> {
    let path = |name: &str| component(data, name);
    let version = version(data)?;
    let mut statistics = Statistics::parse(&fs::read(path("Statistics.db"))?, version)?;
    if let Some(compaction) = &mut statistics.compaction
        && compaction.cardinality_bytes.is_empty()
    {
        *compaction = CompactionMetadata::of(&HyperLogLogPlus::new());
    }
    let mut bytes = Vec::new();
    statistics.write(&mut bytes, version)?;
    fs::write(path("Statistics.db"), bytes)?;
    if path("CompressionInfo.db").exists() {
        let length = fs::metadata(data)?.len();
        let bytes = fs::read(path("CompressionInfo.db"))?;
        let mut info = CompressionInfo::parse(&bytes, version, length)?;
        info.params.options.clear();
        let mut bytes = Vec::new();
        info.write(&mut bytes, version)?;
        fs::write(path("CompressionInfo.db"), bytes)?;
    }
    if !path("Filter.db").exists() {
        fs::write(path("Filter.db"), [])?;
    }
    Ok(())
}

/// Expected results of a file.
fn known(name: &str) -> Result<Known> {
    let found = files().into_iter().find(|known| known.file == name);
    found.context("not in the list of expected results")
}
