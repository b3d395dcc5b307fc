//! Reads an SSTable from its first partition to its last and prints the first rows.
//!
//! `cargo run -p compactor-examples --example scan_rows [-- DATA_DB]`
//!
//! Without an argument it makes a small table.

use std::error::Error;
use std::path::PathBuf;

use compactor_io::{Io, IoOptions, ReadMode};
use compactor_engine::read::RowRef;
use compactor::{Scan, Table};
use compactor_examples::{directory_on_disk, sample_table};

/// Rows that are printed; the others are only counted.
const SHOWN: u64 = 12;

fn main() -> Result<(), Box<dyn Error>> {
    // Removed when it is dropped, at the end.
    let scratch = directory_on_disk()?;
    let data = match std::env::args_os().nth(1) {
        Some(path) => PathBuf::from(path),
        None => {
            let table = sample_table(scratch.path(), 1 << 20)?;
            Table::open(table)?.sstables()[0].clone()
        }
    };
    println!("{}", data.display());

    let io = Io::new(IoOptions::default())?;
    let mut scan = Scan::open(&io, &data, ReadMode::Auto)?;
    let header = scan.sstable().header().clone();
    let key_type = &header.key_type.cql_type;
    let (mut partitions, mut rows, mut markers) = (0u64, 0u64, 0u64);
    let cursor = scan.cursor();
    while cursor.next_partition()? {
        partitions += 1;
        if rows < SHOWN {
            let key = key_type.describe_key(cursor.key());
            println!("partition {key}, token {}", cursor.token());
            if let Some(row) = cursor.static_row() {
                println!("  static: {}", cells(&row, true)?);
            }
        }
        loop {
            // A row, a bound of a range tombstone, or the partition's end. What it borrows from the
            // cursor is valid until the next step.
            cursor.next_unfiltered()?;
            let Some(clustering) = cursor.clustering() else {
                break;
            };
            if let Some(row) = cursor.row() {
                rows += 1;
                if rows <= SHOWN {
                    let types = header.clustering_types.iter().enumerate();
                    let values: Vec<String> = types
                        .map(|(index, t)| match clustering.value(index) {
                            Some(value) => t.cql_type.describe(value),
                            None => "null".to_owned(),
                        })
                        .collect();
                    println!("  {}: {}", values.join(", "), cells(&row, false)?);
                }
            } else {
                markers += 1;
            }
        }
    }
    println!("{partitions} partitions, {rows} rows, {markers} range tombstone bounds");
    Ok(())
}

/// The cells of a row, which are decoded one after the other, in the order of the header's columns.
fn cells(row: &RowRef<'_>, is_static: bool) -> Result<String, compactor_sstable::Error> {
    let mut out = Vec::new();
    let content = row.read()?;
    let deletion = content.start.deletion;
    if !deletion.is_live() {
        out.push(format!("deleted at {}", deletion.marked_for_delete_at));
    }
    let columns = row.layout.columns(is_static);
    for found in content.columns() {
        let column = &columns[found.index];
        let name = String::from_utf8_lossy(&column.name);
        if column.is_complex {
            out.push(format!("{name}: {} cells", found.cells.len()));
        } else if let [cell] = found.cells {
            let value = column.cql_type.describe(cell.value.of(row.bytes));
            out.push(format!("{name} = {value:.32} @ {}", cell.timestamp));
        }
    }
    Ok(out.join("; "))
}
