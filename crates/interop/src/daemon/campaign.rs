//! All of it on one daemon: tables, flushes, the node's compaction, our commands, and the ways back.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::commands::Compactor;
use super::kind::Kind;
use super::node::Node;
use super::tables::{self, KEYSPACE, Table};
use super::view::View;
use super::workflows::{Workflows, live};
use super::{parity, snapshot};

/// Steps that can be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// All of them.
    Whole,
    /// Without the node's own maintenance of what it was given, one command after the other.
    Short,
}

/// What is to be run.
#[derive(Debug, Clone)]
pub struct Campaign {
    /// The daemon.
    pub kind: Kind,
    /// Tables by name, with a trailing `*` for any rest; empty for all.
    pub tables: Vec<String>,
    /// How much.
    pub part: Part,
}

/// What came of it.
#[derive(Debug)]
pub struct Outcome {
    /// Tables that were made.
    pub tables: usize,
    /// Rows that a client saw each time.
    pub rows: usize,
    /// Times that it looked.
    pub views: usize,
    /// SSTables of the node that our commands were run on.
    pub sstables: usize,
    /// Tables whose merge is the node's compaction to the byte.
    pub equal: usize,
    /// Resident memory of the daemon at its greatest, in bytes.
    pub peak_memory: u64,
    /// What is not as it should be.
    pub failures: Vec<String>,
    elapsed: Duration,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} tables, {} rows seen {} times, commands on {} SSTables, {} merges equal to the byte, {} MiB, {} failures, {:.0} s",
            self.tables,
            self.rows,
            self.views,
            self.sstables,
            self.equal,
            self.peak_memory >> 20,
            self.failures.len(),
            self.elapsed.as_secs_f64()
        )
    }
}

/// A campaign under way.
struct Run<'a> {
    node: Node,
    tables: Vec<&'a Table>,
    outcome: Outcome,
    first: Option<View>,
    begin: Instant,
}

impl Campaign {
    /// Runs it. Only what keeps it from going on is an error; all else is in the outcome.
    ///
    /// # Errors
    /// A daemon that does not start, say.
    pub fn run(&self) -> Result<Outcome> {
        let begin = Instant::now();
        let compactor = Compactor::find()?;
        let tables: Vec<Table> = tables::of(self.kind);
        let wanted = |table: &&Table| {
            let mut patterns = self.tables.iter();
            self.tables.is_empty() || patterns.any(|p| crate::scenarios::matches(p, table.name))
        };
        let mut run = Run {
            node: Node::start(self.kind)?,
            tables: tables.iter().filter(wanted).collect(),
            outcome: Outcome {
                tables: 0,
                rows: 0,
                views: 0,
                sstables: 0,
                equal: 0,
                peak_memory: 0,
                failures: Vec::new(),
                elapsed: Duration::ZERO,
            },
            first: None,
            begin,
        };
        anyhow::ensure!(!run.tables.is_empty(), "no table of that name");
        run.log("is up");
        run.all(&compactor, self.part)?;
        run.outcome.elapsed = begin.elapsed();
        Ok(run.outcome)
    }
}

impl Run<'_> {
    fn all(&mut self, compactor: &Compactor, part: Part) -> Result<()> {
        self.outcome.tables = self.tables.len();
        let seen = self.node.journal()?.len();
        self.write()?;
        snapshot::take(&mut self.node, "flushed")?;
        self.look("after flushes")?;
        self.node.nodetool(&["compact", KEYSPACE])?;
        snapshot::take(&mut self.node, "compacted")?;
        self.look("after the node's compaction")?;

        let scratch = tempfile::Builder::new()
            .prefix("compactor-rig-")
            .tempdir()?;
        let workflows = Workflows {
            compactor,
            scratch: scratch.path(),
        };
        for table in self.tables.clone() {
            self.commands(compactor, table, scratch.path())
                .with_context(|| table.name)?;
        }
        self.log("commands");

        self.each("import beside", |node, table| {
            workflows.import_beside(node, table, "flushed")
        });
        self.look("after an import beside")?;
        self.each("replace by strategy", |node, table| {
            workflows.replace_by_strategy(node, table, "flushed")
        });
        self.look("after truncation and import of a strategy's outputs")?;
        self.each("replace by major", |node, table| {
            workflows.replace_by_major(node, table, "compacted")
        });
        self.look("after truncation and import of a major compaction's")?;
        self.maintain(part)?;

        self.outcome.peak_memory = self.node.peak_memory()?;
        self.node.stop()?;
        self.each("swap", |node, table| workflows.swap(node, table));
        self.verify_offline(part);
        self.node.start_again()?;
        self.look("after a swap in place and a restart")?;
        self.node.nodetool(&["compact", KEYSPACE])?;
        self.look("after the node's compaction of what was swapped in")?;
        let peak = self.node.peak_memory()?;
        self.outcome.peak_memory = self.outcome.peak_memory.max(peak);

        let journal = self.node.journal()?;
        for complaint in journal.complaints(seen, KEYSPACE) {
            self.outcome
                .failures
                .push(format!("the node's log: {complaint}"));
        }
        Ok(())
    }

    /// Makes the tables, and writes their rounds with a flush of all after each.
    fn write(&mut self) -> Result<()> {
        let mut schema = vec![format!(
            "CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
        )];
        for table in &self.tables {
            schema.extend(table.schema.iter().map(|statement| table.fill(statement)));
        }
        self.node.client()?.run(&schema)?;
        // Nothing is compacted but what is told.
        self.node.nodetool(&["disableautocompaction", KEYSPACE])?;
        self.log("schema");
        for round in 0..tables::ROUNDS as usize {
            for table in &self.tables {
                let fill = |list: &[String]| list.iter().map(|s| table.fill(s)).collect::<Vec<_>>();
                let round = &table.rounds[round];
                let client = self.node.client()?;
                client
                    .run(&fill(&round.changes))
                    .and_then(|()| client.run_concurrently(&fill(&round.writes)))
                    .with_context(|| table.name)?;
            }
            self.node.nodetool(&["flush", KEYSPACE])?;
        }
        // What is to be over in a second is over.
        std::thread::sleep(Duration::from_secs(3));
        self.log("written");
        Ok(())
    }

    /// Runs our commands on both snapshots of a table, and compares our merge with the node's.
    fn commands(
        &mut self,
        compactor: &Compactor,
        table: &Table,
        scratch: &std::path::Path,
    ) -> Result<()> {
        let mut merged = Vec::new();
        for tag in ["flushed", "compacted"] {
            let directory = snapshot::directory(&self.node, table, tag)?;
            let sstables = snapshot::data_files(&directory)?;
            self.outcome.sstables += sstables.len();
            if sstables.is_empty() {
                continue;
            }
            let place = scratch.join("commands").join(tag).join(table.name);
            for failure in compactor.try_everything(&directory, &place)? {
                self.fail(format!("{}, {tag}: {failure}", table.name));
            }
            merged.push((sstables, snapshot::data_files(&place.join("0"))?));
        }
        let Some((_, ours)) = merged.first() else {
            self.fail(format!("{}: nothing was flushed", table.name));
            return Ok(());
        };
        let theirs = merged.get(1).map_or(&[][..], |(sstables, _)| sstables);
        match (ours.as_slice(), theirs) {
            ([], []) => self.outcome.equal += 1,
            ([ours], [theirs]) => {
                let differences = parity::differences(theirs, ours)?;
                if differences.is_empty() {
                    self.outcome.equal += 1;
                }
                for difference in differences {
                    self.fail(format!(
                        "{}: merge and compaction: {difference}",
                        table.name
                    ));
                }
            }
            (ours, theirs) => self.log(&format!(
                "{}: {} SSTables of ours and {} of the node's",
                table.name,
                ours.len(),
                theirs.len()
            )),
        }
        Ok(())
    }

    /// What operators let a node do to its SSTables.
    fn maintain(&mut self, part: Part) -> Result<()> {
        let mut commands: Vec<&[&str]> = vec![
            &["verify", "-e", "-f", KEYSPACE],
            &["compact", KEYSPACE],
            &["repair", "-full", KEYSPACE],
            &["garbagecollect", "-g", "CELL", KEYSPACE],
            &["upgradesstables", "-a", KEYSPACE],
        ];
        if self.node.kind().scrubs_soundly() {
            commands.push(&["scrub", "-ns", KEYSPACE]);
        }
        for command in commands {
            match self.node.nodetool(command) {
                Ok(_) if part == Part::Whole => {
                    self.look(&format!("after nodetool {command:?}"))?
                }
                Ok(_) => {}
                Err(error) => self.fail(format!("{error:#}")),
            }
        }
        self.look("after the node's maintenance")
    }

    /// What sstableverify says of tables that were swapped in; of some, since each takes a JVM.
    fn verify_offline(&mut self, part: Part) {
        let count = if part == Part::Whole { 4 } else { 1 };
        for table in self.tables.clone().into_iter().take(count) {
            let arguments = ["-e", "-f", KEYSPACE, table.name];
            if let Err(error) = self.node.tool("StandaloneVerifier", &arguments) {
                self.fail(format!("{}: {error:#}", table.name));
            }
        }
        self.log("sstableverify");
    }

    /// Does the same to every table.
    fn each(&mut self, what: &str, mut act: impl FnMut(&mut Node, &Table) -> Result<()>) {
        for table in self.tables.clone() {
            if let Err(error) = act(&mut self.node, table) {
                self.fail(format!("{}: {what}: {error:#}", table.name));
            }
        }
    }

    /// A client looks at everything, and it must be what it was the first time.
    fn look(&mut self, when: &str) -> Result<()> {
        let view = View::of(&mut self.node, &self.tables)?;
        self.outcome.views += 1;
        self.log(when);
        let Some(first) = &self.first else {
            self.outcome.rows = view.rows();
            for name in view.empty() {
                if name != "gone" {
                    self.outcome
                        .failures
                        .push(format!("{name}: no rows, which proves nothing"));
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

/// Data.db files that a node has of a table now.
#[expect(dead_code, reason = "tools.rs will")]
fn sstables(node: &Node, table: &Table) -> Result<usize> {
    Ok(live(&node.table_directory(KEYSPACE, table.name)?)?.len())
}
