//! Reads the merged rows of a table's SSTables, as JSON: prints the first ones and counts the others.
//!
//! `cargo run -p compactor-examples --example scan_rows [-- DIRECTORY_OR_DATA_DB]`
//!
//! Without an argument it makes a small table.

use std::error::Error;
use std::path::PathBuf;

use compactor::{Resources, Table};
use compactor_examples::{directory_on_disk, sample_table};

/// Rows that are printed.
const SHOWN: usize = 12;

fn main() -> Result<(), Box<dyn Error>> {
    // Removed when it is dropped, at the end.
    let scratch = directory_on_disk()?;
    let path = match std::env::args_os().nth(1) {
        Some(path) => PathBuf::from(path),
        None => sample_table(scratch.path(), 1 << 20)?,
    };
    let table = Table::open(path)?;
    let mut count = 0;
    for row in table.rows(&Resources::default())? {
        let row = row?;
        if count < SHOWN {
            println!("{}", row.to_json()?);
        }
        count += 1;
    }
    println!("{count} rows in {} SSTables", table.sstables().len());
    Ok(())
}
