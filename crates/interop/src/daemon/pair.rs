//! Two daemons: SSTables that streaming, repair and anticompaction leave.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::campaign::{create_tables, write_round};
use super::commands::Compactor;
use super::configuration::Ports;
use super::kind::Kind;
use super::node::Node;
use super::tables::{self, KEYSPACE, Table};
use super::view::View;
use super::workflows::{By, Workflows, live};

/// Tables that are streamed: with and without compression, counters, statics, deletions and TTLs among them.
const TABLES: [&str; 9] = [
    "kv",
    "wide",
    "statics",
    "counters",
    "ttl",
    "deletions",
    "collections",
    "uncompressed",
    "zstd",
];

/// Longest time until the node has compacted pending SSTables: it checks once a minute.
const FINISH: Duration = Duration::from_secs(150);

/// Two daemons of a kind.
#[derive(Debug, Clone, Copy)]
pub struct Pair {
    /// Kind of both.
    pub kind: Kind,
}

impl Pair {
    /// Lets a second daemon join a first one, repairs both, and examines the SSTables of each after every step. Returns
    /// the failures.
    ///
    /// # Errors
    /// A daemon that does not start, for example.
    pub fn run(&self) -> Result<Vec<String>> {
        let compactor = Compactor::find()?;
        let tables: Vec<Table> = tables::of(self.kind);
        let tables: Vec<&Table> = tables
            .iter()
            .filter(|table| TABLES.contains(&table.name))
            .collect();
        let scratch = tempfile::Builder::new()
            .prefix("compactor-pair-")
            .tempdir()?;
        let mut run = Run {
            kind: self.kind,
            workflows: Workflows {
                compactor: &compactor,
                scratch: scratch.path(),
            },
            tables,
            failures: Vec::new(),
            begin: Instant::now(),
        };
        run.all()?;
        Ok(run.failures)
    }
}

struct Run<'a> {
    kind: Kind,
    workflows: Workflows<'a>,
    tables: Vec<&'a Table>,
    failures: Vec<String>,
    begin: Instant,
}

impl Run<'_> {
    fn all(&mut self) -> Result<()> {
        let mut first = Node::start(self.kind)?;
        create_tables(&mut first, &self.tables)?;
        self.write(&mut first, 0)?;
        self.write(&mut first, 1)?;
        // Tables are compacted, as on a node that has run for a while.
        first.nodetool(&["compact", KEYSPACE])?;
        self.write(&mut first, 2)?;

        let mut second = Node::join(self.kind, Ports::free()?, first.storage_port())?;
        self.examine(&mut second, "bootstrap")?;
        first.nodetool(&["cleanup", KEYSPACE])?;
        self.examine(&mut first, "cleanup")?;

        let replication = format!(
            "ALTER KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 2}}"
        );
        first.client()?.run(&[replication])?;
        second.nodetool(&["repair", "-full", KEYSPACE])?;
        self.examine(&mut second, "repair -full")?;
        self.examine(&mut first, "repair -full")?;

        self.write(&mut first, 3)?;
        second.nodetool(&["flush", KEYSPACE])?;
        first.nodetool(&["repair", KEYSPACE])?;
        for node in [&mut first, &mut second] {
            self.examine(node, "incremental repair")?;
            self.finish_repair(node)?;
            self.examine(node, "the repair has finished")?;
        }

        // Both nodes must have the same data, also after all of it is merged.
        let expected = View::of(&mut first, &self.tables)?;
        self.compare(&expected, &mut second, "on the second node")?;
        let workflows = self.workflows;
        for table in self.tables.clone() {
            workflows.describe(&mut second, table)?;
        }
        second.stop()?;
        for table in self.tables.clone() {
            for stored in table.stored() {
                if let Err(error) = workflows.swap(&second, stored, By::Merge) {
                    self.failures
                        .push(format!("{}: swap: {error:#}", stored.name));
                }
            }
        }
        // With the first node down, the second answers from its own data.
        first.stop()?;
        second.start_alone()?;
        self.compare(
            &expected,
            &mut second,
            "on the second node, swapped in place",
        )
    }

    fn write(&mut self, node: &mut Node, round: usize) -> Result<()> {
        write_round(node, &self.tables, round)?;
        // Data with TTLs of a second has expired after this.
        std::thread::sleep(Duration::from_secs(3));
        Ok(())
    }

    /// Runs our commands on all SSTables of a node.
    fn examine(&mut self, node: &mut Node, what: &str) -> Result<()> {
        let tag = what.replace([' ', '-'], "_");
        let examined = self.workflows.examine_snapshot(node, &self.tables, &tag);
        let (count, failures) = examined?;
        self.failures.extend(failures);
        ensure!(count > 0, "{what} left no SSTables");
        self.log(&format!("{count} SSTables after {what}"));
        Ok(())
    }

    /// Lets a compaction of the node's own mark pending SSTables as repaired (PendingRepairManager).
    fn finish_repair(&mut self, node: &mut Node) -> Result<()> {
        node.nodetool(&["enableautocompaction", KEYSPACE])?;
        let begin = Instant::now();
        let repaired = loop {
            // Files may be deleted while they are read.
            let repaired = self.count_repaired(node).unwrap_or(0);
            if repaired > 0 || begin.elapsed() > FINISH {
                break repaired;
            }
            std::thread::sleep(Duration::from_secs(1));
        };
        node.nodetool(&["disableautocompaction", KEYSPACE])?;
        ensure!(repaired > 0, "nothing is repaired after {FINISH:?}");
        self.log(&format!("{repaired} SSTables are repaired"));
        Ok(())
    }

    fn count_repaired(&self, node: &Node) -> Result<usize> {
        let mut repaired = 0;
        for table in &self.tables {
            for data in live(&node.table_directory(KEYSPACE, table.name)?)? {
                let path = data.display().to_string();
                let metadata = self.workflows.compactor.run(&["metadata", &path])?;
                let line = metadata
                    .lines()
                    .find_map(|line| line.strip_prefix("Repaired at: "));
                repaired += usize::from(line.is_some_and(|at| !at.starts_with('0')));
            }
        }
        Ok(repaired)
    }

    fn compare(&mut self, expected: &View, node: &mut Node, when: &str) -> Result<()> {
        let found = View::of(node, &self.tables)?;
        for difference in expected.differences(&found) {
            self.failures.push(format!("{when}: {difference}"));
        }
        self.log(when);
        Ok(())
    }

    fn log(&self, what: &str) {
        println!(
            "{:6.1} s  {} twice: {what}",
            self.begin.elapsed().as_secs_f64(),
            self.kind
        );
    }
}
