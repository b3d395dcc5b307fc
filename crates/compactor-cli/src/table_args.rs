//! The table that a command rewrites: its SSTables and its schema.

use std::path::PathBuf;

use compactor::{Error, Table};

use crate::output::say_notes;

/// SSTables and schema.
#[derive(Debug, clap::Args)]
pub struct TableArgs {
    /// A table or snapshot directory, or Data.db files.
    #[arg(required = true, value_name = "TABLE_DIR|SNAPSHOT_DIR|Data.db")]
    inputs: Vec<PathBuf>,

    /// The table's schema as CQL, as a snapshot's schema.cql or `DESCRIBE TABLE ks.t WITH INTERNALS` of
    /// cqlsh has it; without WITH INTERNALS dropped columns are missing. Default: schema.cql next to the
    /// inputs.
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
}

impl TableArgs {
    /// Opens the table, and prints the notes on its files.
    ///
    /// # Errors
    /// Those of [`Table::open_all`].
    pub fn open(&self) -> Result<Table, Error> {
        let table = Table::open_all(&self.inputs, self.schema.as_deref())?;
        say_notes(table.notes());
        Ok(table)
    }
}
