//! Writes a million rows as SSTables that Cassandra imports.
//!
//! `cargo run --release -p compactor-examples --example write_rows [-- OUTPUT_DIR]`

use std::error::Error;
use std::path::PathBuf;

use compactor::{SstableWriter, Value};
use compactor_examples::directory_on_disk;

const SCHEMA: &str = "CREATE TABLE demo.readings (sensor text, at timestamp, celsius double,
    tags set<text>, PRIMARY KEY (sensor, at)) WITH CLUSTERING ORDER BY (at DESC)";

fn main() -> Result<(), Box<dyn Error>> {
    // Removed when it is dropped, at the end.
    let scratch = directory_on_disk()?;
    let output = std::env::args_os().nth(1).map(PathBuf::from);
    let output = output.unwrap_or_else(|| scratch.path().join("written"));
    let mut writer = SstableWriter::new(SCHEMA)?.open(&output)?;
    for number in 0..1_000_000i64 {
        writer.add_row([
            ("sensor", format!("sensor-{}", number % 1000).into()),
            ("at", Value::Timestamp(1_700_000_000_000 + number * 60_000)),
            ("celsius", (20.0 + (number % 77) as f64 / 10.0).into()),
            ("tags", Value::Set(vec!["roof".into(), "north".into()])),
        ])?;
    }
    let written = writer.finish()?;
    println!("{} rows", written.rows);
    for sstable in &written.sstables {
        println!("{}, {} bytes", sstable.data_path.display(), sstable.bytes);
    }
    for command in &written.next_steps.commands {
        println!("{}", command.shell_line());
    }
    Ok(())
}
