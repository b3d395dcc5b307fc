//! A whole campaign on one daemon: tables, flushes, the node's compaction, our commands, and every way of bringing
//! outputs back into the node.

use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::commands::Compactor;
use super::kind::Kind;
use super::node::Node;
use super::tables::{self, CHUNK_END, DICTIONARY, KEYSPACE, Stored, Table};
use super::view::View;
use super::workflows::{By, Workflows, live};
use super::{parity, snapshot, tools, written};
use crate::files::data_files;

/// Steps of a campaign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// All steps.
    Whole,
    /// All steps but the node's maintenance commands, one after the other, on SSTables that it was given.
    Short,
}

/// Options of a campaign.
#[derive(Debug, Clone)]
pub struct Campaign {
    /// The daemon.
    pub kind: Kind,
    /// Tables by name, with a trailing `*` for any rest; empty for all.
    pub tables: Vec<String>,
    /// Steps to run.
    pub part: Part,
}

/// Result of a campaign.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Number of tables.
    pub tables: usize,
    /// Number of rows in a client's view of all tables.
    pub rows: usize,
    /// Number of times that the client's view was read.
    pub views: usize,
    /// Number of SSTables of the node on which our commands were run.
    pub sstables: usize,
    /// Number of these SSTables that end in an empty chunk, as a node's own compaction leaves them.
    pub empty_ends: usize,
    /// Number of these SSTables whose content ends where a chunk does.
    pub chunk_ends: usize,
    /// Number of these SSTables that are compressed with a dictionary.
    pub dictionaries: usize,
    /// Number of tables whose merge equals the node's compaction byte for byte.
    pub equal: usize,
    /// Peak resident memory of the daemon, in bytes.
    pub peak_memory: u64,
    /// Failures, a line each.
    pub failures: Vec<String>,
    elapsed: Duration,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} tables, {} rows seen {} times, commands on {} SSTables ({} end in an empty chunk, {} have a dictionary), {} merges equal to the byte, {} MiB, {} failures, {:.0} s",
            self.tables,
            self.rows,
            self.views,
            self.sstables,
            self.empty_ends,
            self.dictionaries,
            self.equal,
            self.peak_memory >> 20,
            self.failures.len(),
            self.elapsed.as_secs_f64()
        )
    }
}

/// State of a running campaign.
struct Run<'a> {
    node: Node,
    workflows: Workflows<'a>,
    part: Part,
    tables: Vec<&'a Table>,
    outcome: Outcome,
    first: Option<View>,
    begin: Instant,
}

impl Campaign {
    /// Runs the campaign. Only what prevents it from continuing is an error; other failures are in the outcome.
    ///
    /// # Errors
    /// A daemon that does not start, for example.
    pub fn run(&self) -> Result<Outcome> {
        let begin = Instant::now();
        let compactor = Compactor::find()?;
        let scratch = tempfile::Builder::new()
            .prefix("compactor-rig-")
            .tempdir()?;
        // The node runs as another user.
        fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755))?;
        let tables: Vec<Table> = tables::of(self.kind);
        let wanted = |table: &&Table| {
            let mut patterns = self.tables.iter();
            self.tables.is_empty() || patterns.any(|p| crate::scenarios::matches(p, table.name))
        };
        let mut run = Run {
            node: Node::start(self.kind)?,
            workflows: Workflows {
                compactor: &compactor,
                scratch: scratch.path(),
            },
            part: self.part,
            tables: tables.iter().filter(wanted).collect(),
            outcome: Outcome::default(),
            first: None,
            begin,
        };
        anyhow::ensure!(!run.tables.is_empty(), "no table of that name");
        run.log("is up");
        if let Err(error) = run.all() {
            let journal = run.node.journal()?;
            return Err(error.context(journal.complaints(0, KEYSPACE).join("\n")));
        }
        run.outcome.elapsed = begin.elapsed();
        Ok(run.outcome)
    }
}

impl Run<'_> {
    fn all(&mut self) -> Result<()> {
        self.outcome.tables = self.tables.len();
        let seen = self.node.journal()?.len();
        self.write()?;
        snapshot::take(&mut self.node, "flushed")?;
        self.check_view("after flushes")?;
        self.node.nodetool(&["compact", KEYSPACE])?;
        snapshot::take(&mut self.node, "compacted")?;
        self.check_view("after the node's compaction")?;

        for table in self.tables.clone() {
            for stored in table.stored() {
                self.commands(stored)
                    .with_context(|| stored.name.to_owned())?;
            }
        }
        self.log("commands");
        self.check_marks();
        if self.part == Part::Whole {
            self.offline_writer()?;
        }
        if self.node.kind().opens_ours() {
            self.bring_back()?;
        } else {
            self.maintain()?;
            self.stop()?;
            self.tools();
            self.node.start_again()?;
            self.check_view("after a restart")?;
        }
        let peak = self.node.peak_memory()?;
        self.outcome.peak_memory = self.outcome.peak_memory.max(peak);

        let journal = self.node.journal()?;
        for complaint in journal.complaints(seen, KEYSPACE) {
            self.fail(format!("the node's log: {complaint}"));
        }
        Ok(())
    }

    /// Brings our outputs back into the node in every way.
    fn bring_back(&mut self) -> Result<()> {
        let workflows = self.workflows;
        if let Err(error) = written::round_trip(&mut self.node, workflows.scratch) {
            self.fail(format!("SstableWriter: {error:#}"));
        }
        self.log("import of SstableWriter's rows");
        self.each("import alongside", |node, table| {
            workflows.import_alongside(node, table, "flushed", "beside")
        });
        self.check_view("after an import alongside the inputs")?;
        self.each("replace by strategy", |node, table| {
            workflows.replace_by_strategy(node, table, "flushed")
        });
        self.check_view("after truncation and import of a strategy's outputs")?;
        self.each("replace by major", |node, table| {
            workflows.replace_by_major(node, table, "compacted")
        });
        self.check_view("after truncation and import of a major compaction's")?;
        self.maintain()?;

        // Several SSTables are swapped, some of which a tool marks as repaired.
        self.each("second import alongside", |node, table| {
            workflows.import_alongside(node, table, "flushed", "again")
        });
        self.each("describe", |node, table| workflows.describe(node, table));
        self.stop()?;
        self.tools();
        self.each("swap of a strategy's outputs", |node, table| {
            table
                .stored()
                .try_for_each(|stored| workflows.swap(node, stored, By::Strategy))
        });
        self.node.start_again()?;
        self.check_view("after a swap in place of a strategy's outputs")?;
        self.each("third import alongside", |node, table| {
            workflows.import_alongside(node, table, "flushed", "once-more")
        });
        self.stop()?;
        self.each("swap", |node, table| {
            table
                .stored()
                .try_for_each(|stored| workflows.swap(node, stored, By::Merge))
        });
        self.each("swap of an upgrade's outputs", |node, table| {
            table
                .stored()
                .try_for_each(|stored| workflows.swap(node, stored, By::Upgrade))
        });
        self.verify_offline();
        self.node.start_again()?;
        self.check_view("after a swap in place")?;
        for table in self.tables.clone() {
            for index in &table.indexes {
                self.node
                    .nodetool(&["rebuild_index", KEYSPACE, table.name, index])?;
            }
        }
        self.node.nodetool(&["compact", KEYSPACE])?;
        self.check_view("after the node's compaction of the swapped SSTables")
    }

    /// Stops the daemon.
    fn stop(&mut self) -> Result<()> {
        let peak = self.node.peak_memory()?;
        self.outcome.peak_memory = self.outcome.peak_memory.max(peak);
        self.node.stop()
    }

    /// Makes the tables, and writes their rounds with a flush of all after each.
    fn write(&mut self) -> Result<()> {
        create_tables(&mut self.node, &self.tables)?;
        self.log("schema");
        for round in 0..tables::ROUNDS as usize {
            write_round(&mut self.node, &self.tables, round)?;
            if round == 1 {
                let with_command = self
                    .tables
                    .iter()
                    .filter(|table| !table.nodetool.is_empty());
                for table in with_command {
                    self.node.nodetool(&table.nodetool)?;
                }
            }
        }
        // Data with TTLs of a second has expired after this.
        std::thread::sleep(Duration::from_secs(3));
        self.log("written");
        Ok(())
    }

    /// Runs our commands on both snapshots of a table or view, and compares our merge with the node's compaction.
    fn commands(&mut self, stored: Stored<'_>) -> Result<()> {
        let Workflows { compactor, scratch } = self.workflows;
        let mut merged = Vec::new();
        for tag in ["flushed", "compacted"] {
            let directory = snapshot::directory(&self.node, stored.name, tag)?;
            let sstables = data_files(&directory)?;
            if sstables.is_empty() {
                continue;
            }
            for data in &sstables {
                let marks = parity::marks(data)?;
                self.outcome.sstables += 1;
                self.outcome.dictionaries += usize::from(marks.dictionary);
                self.outcome.empty_ends += usize::from(marks.empty_end);
                self.outcome.chunk_ends += usize::from(marks.empty_end && marks.chunk_end);
            }
            let place = scratch.join("commands").join(tag).join(stored.name);
            let schema = stored
                .base
                .map(|base| snapshot::schema_with_base(&self.node, stored.name, base, tag, scratch))
                .transpose()?;
            for failure in compactor.try_everything(&directory, schema.as_deref(), &place)? {
                self.fail(format!("{}, {tag}: {failure}", stored.name));
            }
            merged.push((sstables, data_files(&place.join("0"))?));
        }
        let Some((_, ours)) = merged.first() else {
            self.fail(format!("{}: nothing was flushed", stored.name));
            return Ok(());
        };
        if self.node.kind().has_cursors() {
            return Ok(());
        }
        // SSTables that the node's compaction left, and our merge of them.
        let (theirs, again) = match merged.get(1) {
            Some((sstables, again)) => (&sstables[..], &again[..]),
            None => (&[][..], &[][..]),
        };
        let differences = match (&ours[..], theirs, again) {
            ([], [], _) => Vec::new(),
            ([ours], [theirs], _) if self.node.kind().opens_ours() => {
                parity::differences(self.node.kind(), theirs, ours)?
            }
            // Several outputs, by ranges, windows or shards, or a version that we do not write: the rows must be equal.
            ([ours], _, [again]) if self.has_same_rows(ours, again)? => {
                self.log(&format!(
                    "{}: {} SSTables of the node's",
                    stored.name,
                    theirs.len()
                ));
                return Ok(());
            }
            _ => vec![format!(
                "rows differ between {} SSTables of ours and {} of the node's",
                ours.len(),
                theirs.len()
            )],
        };
        if differences.is_empty() {
            self.outcome.equal += 1;
        }
        for difference in differences {
            self.fail(format!(
                "{}: merge and compaction: {difference}",
                stored.name
            ));
        }
        Ok(())
    }

    /// Compares the content byte for byte. If we do not write the node's version, both SSTables are ours and differ in
    /// the minima of timestamps, so that rows are compared as `dump` prints them.
    fn has_same_rows(&self, one: &Path, other: &Path) -> Result<bool> {
        if self.node.kind().opens_ours() {
            parity::is_same_content(one, other)
        } else {
            self.workflows.compactor.has_same_rows(one, other)
        }
    }

    /// Fails if no SSTable has the special cases that only real nodes write: without them the test proves nothing.
    fn check_marks(&mut self) {
        if self.outcome.empty_ends == 0 {
            self.fail("no SSTable ends in an empty chunk".to_owned());
        }
        let has = |name| self.tables.iter().any(|table| table.name == name);
        let (trained, exact) = (has(DICTIONARY), has(CHUNK_END));
        if trained && self.outcome.dictionaries == 0 {
            self.fail("no SSTable is compressed with a dictionary".to_owned());
        }
        if exact && self.outcome.chunk_ends == 0 {
            self.fail("no content ends where a chunk does".to_owned());
        }
    }

    /// Loads SSTables of CQLSSTableWriter into the node with sstableloader.
    fn offline_writer(&mut self) -> Result<()> {
        let written = tools::write_offline(&self.node)?;
        for failure in self.workflows.examine(&written) {
            self.fail(format!("CQLSSTableWriter: {failure}"));
        }
        self.log("CQLSSTableWriter");
        // Later releases lack it in their jars.
        if self.node.kind().major() < 6 {
            self.node.client()?.run(&[tools::loaded_table()])?;
            for data in &written {
                self.node.load(data.parent().context("a directory")?)?;
            }
            let directory = self.node.table_directory(KEYSPACE, tools::LOADED)?;
            snapshot::take(&mut self.node, "loaded")?;
            let loaded = data_files(&directory.join("snapshots/loaded"))?;
            anyhow::ensure!(!loaded.is_empty(), "sstableloader loaded nothing");
            for failure in self.workflows.examine(&loaded) {
                self.fail(format!("sstableloader: {failure}"));
            }
            self.log("sstableloader");
        }
        Ok(())
    }

    /// Each offline tool on one table, and our commands on what it leaves.
    fn tools(&mut self) {
        let table = self.tables.first().filter(|_| self.part == Part::Whole);
        let Some(table) = table.map(|table| table.name) else {
            return;
        };
        let is_sound = self.node.kind().scrubs_soundly(table);
        let scrub = is_sound.then_some(tools::SCRUB);
        for tool in scrub.into_iter().chain(tools::TOOLS) {
            let left = tool.run(&self.node, table).and_then(|()| {
                let sstables = live(&self.node.table_directory(KEYSPACE, table)?)?;
                Ok(self.workflows.examine(&sstables))
            });
            match left {
                Ok(failures) => {
                    for failure in failures {
                        self.fail(format!("{}: {failure}", tool.name));
                    }
                }
                Err(error) => self.fail(format!("{}: {error:#}", tool.name)),
            }
            self.log(tool.name);
        }
    }

    /// Runs the node's maintenance commands, and our commands on the SSTables that they leave.
    fn maintain(&mut self) -> Result<()> {
        let mut commands: Vec<&[&str]> = vec![
            if self.node.kind().major() < 4 {
                &["verify", "-e", KEYSPACE]
            } else {
                &["verify", "-e", "-f", KEYSPACE]
            },
            &["compact", KEYSPACE],
            &["repair", "-full", KEYSPACE],
            &["garbagecollect", "-g", "CELL", KEYSPACE],
            &["relocatesstables", KEYSPACE],
            &["upgradesstables", "-a", KEYSPACE],
        ];
        let kind = self.node.kind();
        let scrubbed = self.tables.iter().map(|table| table.name);
        let scrubbed = scrubbed.filter(|table| kind.scrubs_soundly(table));
        let scrub: Vec<&str> = ["scrub", "-ns", KEYSPACE]
            .into_iter()
            .chain(scrubbed)
            .collect();
        // Without table names, nodetool would scrub all tables.
        if scrub.len() > 3 {
            commands.push(&scrub);
        }
        for command in commands {
            if let Err(error) = self.node.nodetool(command) {
                self.fail(format!("{error:#}"));
            }
            if self.part == Part::Whole {
                self.check_view(&format!("after nodetool {}", command[0]))?;
                let examined =
                    self.workflows
                        .examine_snapshot(&mut self.node, &self.tables, command[0]);
                let (count, failures) = examined?;
                self.outcome.sstables += count;
                for failure in failures {
                    self.fail(failure);
                }
            }
        }
        self.check_view("after the node's maintenance")
    }

    /// Runs sstableverify on some of the swapped tables; each takes a JVM.
    fn verify_offline(&mut self) {
        let count = if self.part == Part::Whole { 4 } else { 1 };
        for table in self.tables.clone().into_iter().take(count) {
            let arguments = ["-e", "-f", KEYSPACE, table.name];
            if let Err(error) = self.node.tool("StandaloneVerifier", &arguments) {
                self.fail(format!("{}: {error:#}", table.name));
            }
        }
        self.log("sstableverify");
    }

    /// Runs an action on every table.
    fn each(&mut self, what: &str, mut act: impl FnMut(&mut Node, &Table) -> Result<()>) {
        for table in self.tables.clone() {
            if let Err(error) = act(&mut self.node, table) {
                self.fail(format!("{}: {what}: {error:#}", table.name));
            }
        }
    }

    /// Compares a client's view of all tables with its first view.
    fn check_view(&mut self, when: &str) -> Result<()> {
        let view = View::of(&mut self.node, &self.tables)?;
        self.outcome.views += 1;
        self.log(when);
        let Some(first) = &self.first else {
            self.outcome.rows = view.rows();
            for name in view.empty() {
                if name != "gone" {
                    self.outcome
                        .failures
                        .push(format!("{name}: no rows: the test proves nothing"));
                }
            }
            self.first = Some(view);
            return Ok(());
        };
        for difference in first.differences(&view) {
            self.fail(format!("{when}: {difference}"));
        }
        Ok(())
    }

    fn fail(&mut self, text: String) {
        eprintln!("FAILED {} {text}", self.node.kind());
        self.outcome.failures.push(text);
    }

    fn log(&self, what: &str) {
        let kind = self.node.kind();
        println!(
            "{:6.1} s  {kind}: {what}",
            self.begin.elapsed().as_secs_f64()
        );
    }
}

/// Creates the tables, without automatic compaction.
pub(super) fn create_tables(node: &mut Node, tables: &[&Table]) -> Result<()> {
    let mut schema = vec![format!(
        "CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    )];
    for table in tables {
        schema.extend(table.schema.iter().map(|statement| table.fill(statement)));
    }
    node.client()?.run(&schema)?;
    node.nodetool(&["disableautocompaction", KEYSPACE])?;
    Ok(())
}

/// Writes a round to each table, and flushes all.
pub(super) fn write_round(node: &mut Node, tables: &[&Table], round: usize) -> Result<()> {
    for table in tables {
        let fill = |list: &[String]| list.iter().map(|s| table.fill(s)).collect::<Vec<_>>();
        let round = &table.rounds[round];
        let client = node.client()?;
        client
            .run(&fill(&round.changes))
            .and_then(|()| client.run_concurrently(&fill(&round.writes)))
            .with_context(|| table.name)?;
    }
    node.nodetool(&["flush", KEYSPACE])?;
    Ok(())
}
