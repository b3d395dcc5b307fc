//! A scenario turned into files: its inputs, and Cassandra's own compaction of them.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::cassandra::{Cassandra, CompactRequest, Compacted, Pipeline, Table};
use crate::scenarios::{Scenario, Step};

/// A scenario whose inputs exist on disk. Its table stays in the server, empty: dropping a keyspace takes Cassandra most
/// of a second, a hundred idle tables cost nothing.
#[derive(Debug)]
pub struct Case {
    /// Its table.
    pub table: Table,
    /// Data.db of the SSTables to merge, oldest first.
    pub inputs: Vec<PathBuf>,
    /// Data.db of the SSTables that stay outside.
    pub others: Vec<PathBuf>,
    /// The table's `schema.cql` at the time of the merge, as Cassandra puts it into snapshots.
    pub schema: PathBuf,
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
        cassandra
            .cql(&scenario.ddl())
            .with_context(|| format!("{}: schema", scenario.name))?;
        let table = scenario.table();
        let mut flushed = Vec::new();
        for (n, input) in (1_u32..).zip(&scenario.inputs) {
            let mut batch = Vec::new();
            for step in &input.steps {
                match step {
                    Step::Now(second) => {
                        run(cassandra, &mut batch)
                            .with_context(|| format!("{}: input {n}", scenario.name))?;
                        cassandra.set_now(*second)?;
                    }
                    Step::Cql(statement) => batch.push(scenario.fill(statement)),
                    Step::View {
                        row,
                        key,
                        clustering,
                        timestamp,
                    } => {
                        run(cassandra, &mut batch)
                            .with_context(|| format!("{}: input {n}", scenario.name))?;
                        cassandra.view_row(&table, *row, *key, *clustering, *timestamp)?;
                    }
                }
            }
            run(cassandra, &mut batch).with_context(|| format!("{}: input {n}", scenario.name))?;
            let place = directory.join(n.to_string());
            flushed.push(
                cassandra
                    .flush(&table, &place, n)
                    .with_context(|| format!("{}: input {n}", scenario.name))?,
            );
        }
        let after: Vec<String> = scenario.after.iter().map(|s| scenario.fill(s)).collect();
        cassandra.cql(&after)?;
        let schema = directory.join("schema.cql");
        cassandra.schema(&table, &schema)?;
        let others = flushed.split_off(flushed.len() - scenario.others);
        Ok(Self {
            table,
            inputs: flushed,
            others,
            schema,
            now_s: scenario.now_s,
            gc_before_s: scenario.gc_before_s,
        })
    }

    /// The case's schema alone, for a server that only reads what another one wrote.
    pub fn schema_only(cassandra: &mut Cassandra, scenario: &Scenario) -> Result<Table> {
        cassandra.cql(&scenario.ddl())?;
        for step in scenario.inputs.iter().flat_map(|input| &input.steps) {
            if let Step::Cql(statement) = step
                && statement.starts_with("ALTER ")
            {
                cassandra.cql(&[scenario.fill(statement)])?;
            }
        }
        let after: Vec<String> = scenario.after.iter().map(|s| scenario.fill(s)).collect();
        cassandra.cql(&after)?;
        Ok(scenario.table())
    }

    /// Compacts the inputs into `output` with the iterator pipeline.
    pub fn compact(&self, cassandra: &mut Cassandra, output: &Path) -> Result<Compacted> {
        cassandra.compact(
            &self.table,
            &CompactRequest {
                inputs: &self.inputs,
                others: &self.others,
                output: Some(output),
                generation: 1,
                now_s: self.now_s,
                gc_before_s: self.gc_before_s,
                pipeline: Pipeline::Iterator,
                access: None,
            },
        )
    }
}

fn run(cassandra: &mut Cassandra, batch: &mut Vec<String>) -> Result<()> {
    if !batch.is_empty() {
        cassandra.cql(batch)?;
        batch.clear();
    }
    Ok(())
}
