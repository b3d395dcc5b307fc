//! A scenario turned into files: its inputs, and Cassandra's own compaction of them.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::cassandra::{Cassandra, CompactRequest, Compacted, Table};
use crate::files::{self, component};
use crate::scenarios::{Scenario, Step, ViewRow};

/// A scenario whose inputs exist on disk. Its table stays in the server, empty: dropping a keyspace takes Cassandra most
/// of a second, a hundred idle tables cost nothing.
#[derive(Debug, Clone)]
pub struct Case {
    /// Its table.
    pub table: Table,
    /// Data.db of the SSTables to merge, oldest first.
    pub inputs: Vec<PathBuf>,
    /// Data.db of overlapping SSTables, which are not merged.
    pub others: Vec<PathBuf>,
    /// The table's `schema.cql` at the time of the merge, as Cassandra puts it into snapshots; `None` if it is unknown.
    pub schema: Option<PathBuf>,
    /// The merge's clock.
    pub now_s: i64,
    /// The merge's gc_before; `None` purges nothing.
    pub gc_before_s: Option<i64>,
}

impl Case {
    /// Creates the schema, runs the statements, and writes each input to `directory/<n>/`, n from 1.
    pub fn prepare(
        cassandra: &mut Cassandra,
        scenario: &Scenario,
        directory: &Path,
    ) -> Result<Self> {
        let mut scenario = scenario.clone();
        scenario.name = cassandra.unused_keyspace(&scenario.name);
        let scenario = &scenario;
        let mut flushed = write_inputs(cassandra, scenario, directory)?;
        let after: Vec<String> = scenario.after.iter().map(|s| scenario.fill(s)).collect();
        cassandra.cql(&after)?;
        let schema = directory.join("schema.cql");
        let mut table = scenario.table();
        if let Some(view) = &scenario.view {
            table = Table::new(&table.keyspace, view);
            let base = directory.join("base.cql");
            cassandra.schema(&Table::new(&table.keyspace, "base"), &base)?;
            cassandra.schema(&table, &schema)?;
            let text = std::fs::read_to_string(&schema)? + &std::fs::read_to_string(base)?;
            std::fs::write(&schema, text)?;
        } else {
            cassandra.schema(&table, &schema)?;
        }
        // A table that CQL cannot create has its description in a comment.
        let is_omitted = std::fs::read_to_string(&schema)?.contains("omitted because");
        let others = flushed.split_off(flushed.len() - scenario.others);
        Ok(Self {
            table,
            inputs: flushed,
            others,
            schema: (!is_omitted).then_some(schema),
            now_s: scenario.now_s,
            gc_before_s: scenario.gc_before_s,
        })
    }

    /// The case with its inputs under the names that Cassandra gave them to compact them, as hard links in `directory`:
    /// whose bytes of equal clusterings it keeps depends on the ids.
    ///
    /// # Errors
    /// Files that cannot be linked.
    pub fn named_as(&self, compacted: &Compacted, directory: &Path) -> Result<Self> {
        std::fs::create_dir_all(directory)?;
        let mut inputs = Vec::with_capacity(self.inputs.len());
        for (input, staged) in self.inputs.iter().zip(&compacted.staged) {
            for name in files::components(input)? {
                let link = directory.join(format!("{staged}-{name}"));
                std::fs::hard_link(component(input, &name), link)?;
            }
            inputs.push(directory.join(format!("{staged}-Data.db")));
        }
        Ok(Self {
            inputs,
            ..self.clone()
        })
    }

    /// Compacts the inputs into `output` with the iterator pipeline.
    pub fn compact(&self, cassandra: &mut Cassandra, output: &Path) -> Result<Compacted> {
        self.compact_to_size(cassandra, output, None)
    }

    /// As [`compact`](Case::compact), into outputs of a maximum size.
    pub fn compact_to_size(
        &self,
        cassandra: &mut Cassandra,
        output: &Path,
        max_sstable_size: Option<u64>,
    ) -> Result<Compacted> {
        let request = CompactRequest {
            others: &self.others,
            gc_before_s: self.gc_before_s,
            max_sstable_size,
            ..CompactRequest::new(&self.inputs, output, self.now_s)
        };
        cassandra.compact(&self.table, &request)
    }
}

/// A Cassandra that writes a scenario's inputs.
pub trait Writer {
    /// Executes statements.
    fn execute(&mut self, statements: &[String]) -> Result<()>;
    /// Sets the clock, where it can be set.
    fn clock(&mut self, now_s: i64) -> Result<()>;
    /// Writes a row as only materialized views do.
    fn view_row(&mut self, table: &Table, row: ViewRow) -> Result<()>;
    /// Flushes the table into one SSTable.
    fn flush(&mut self, table: &Table, directory: &Path, generation: u32) -> Result<PathBuf>;
}

impl Writer for Cassandra {
    fn execute(&mut self, statements: &[String]) -> Result<()> {
        self.cql(statements)
    }

    fn clock(&mut self, now_s: i64) -> Result<()> {
        self.set_now(now_s)
    }

    fn view_row(&mut self, table: &Table, row: ViewRow) -> Result<()> {
        self.view_row(table, row)
    }

    fn flush(&mut self, table: &Table, directory: &Path, generation: u32) -> Result<PathBuf> {
        self.flush(table, directory, generation)
    }
}

/// Creates the schema, runs the statements, and writes each input to `directory/<n>/`, n from 1; returns each Data.db.
pub fn write_inputs(
    writer: &mut impl Writer,
    scenario: &Scenario,
    directory: &Path,
) -> Result<Vec<PathBuf>> {
    writer
        .execute(&scenario.ddl())
        .with_context(|| format!("{}: schema", scenario.name))?;
    let table = scenario.table();
    let mut flushed = Vec::new();
    for (n, input) in (1_u32..).zip(&scenario.inputs) {
        let place = directory.join(n.to_string());
        let written = steps(writer, scenario, &table, &input.steps)
            .and_then(|()| writer.flush(&table, &place, n))
            .with_context(|| format!("{}: input {n}", scenario.name))?;
        flushed.push(written);
    }
    Ok(flushed)
}

fn steps(
    writer: &mut impl Writer,
    scenario: &Scenario,
    table: &Table,
    steps: &[Step],
) -> Result<()> {
    let mut batch = Vec::new();
    for step in steps {
        match step {
            Step::Cql(statement) => batch.push(scenario.fill(statement)),
            Step::Now(second) => {
                run(writer, &mut batch)?;
                writer.clock(*second)?;
            }
            Step::View(row) => {
                run(writer, &mut batch)?;
                writer.view_row(table, *row)?;
            }
        }
    }
    run(writer, &mut batch)
}

fn run(writer: &mut impl Writer, batch: &mut Vec<String>) -> Result<()> {
    if !batch.is_empty() {
        writer.execute(batch)?;
        batch.clear();
    }
    Ok(())
}
