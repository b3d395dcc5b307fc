//! Merges a table's SSTables into one, watching its progress; first with an observer that stops it
//! half-way, to show that nothing of a cancelled merge stays.
//!
//! `cargo run -p compactor-examples --example merge [-- TABLE_DIR OUTPUT_DIR]`
//!
//! Without arguments it makes a table of three SSTables and removes everything at the end.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use compactor::{ErrorKind, Observer, Table};
use compactor_examples::{directory_on_disk, sample_table};

/// Prints progress and passes on that somebody wants the merge to end: a signal handler, another
/// thread, or, here, the observer itself.
struct Watcher {
    total_bytes: u64,
    printed_percent: u64,
    stop: Arc<AtomicBool>,
    stop_at_percent: u64,
}

impl Observer for Watcher {
    fn is_cancelled(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn progress(&mut self, read_bytes: u64, rows: u64, partitions: u64) {
        let percent = 100 * read_bytes / self.total_bytes.max(1);
        if percent >= self.printed_percent + 10 {
            self.printed_percent = percent;
            println!("  {percent:3} %: {rows} rows, {partitions} partitions written");
        }
        if percent >= self.stop_at_percent {
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    // Removed when it is dropped, at the end.
    let scratch = directory_on_disk()?;
    let (table, output) = match (arguments.next(), arguments.next()) {
        (Some(table), Some(output)) => (table, output),
        (None, _) => (
            sample_table(scratch.path(), 8 << 20)?,
            scratch.path().join("merged"),
        ),
        (Some(_), None) => return Err("give TABLE_DIR and OUTPUT_DIR, or nothing".into()),
    };
    // Its schema specifies how long tombstones must live.
    let table = Table::open(table)?;

    for stop_at_percent in [50, u64::MAX] {
        // All that the table has on this node: tombstones past their grace can be purged.
        let merge = table.merge().complete().flat(true).open(&output)?;
        let mut watcher = Watcher {
            total_bytes: merge.uncompressed_bytes(),
            printed_percent: 0,
            stop: Arc::default(),
            stop_at_percent,
        };
        println!("merging {} SSTables", table.sstables().len());
        match merge.run(&mut watcher) {
            Ok(merged) => {
                let report = &merged.reports[0];
                println!(
                    "{} rows of {} stay, {} tombstones purged, {:.0} MB/s, pages left in the cache: {:?}",
                    report.rows_written,
                    report.rows_read,
                    report.purged.total,
                    report.input_uncompressed_bytes_per_s / 1e6,
                    report.page_cache.pages_resident()
                );
                for sstable in merged.outputs() {
                    println!("{}", sstable.data_path.display());
                }
            }
            Err(error) if error.kind() == ErrorKind::Cancelled => {
                println!("{error}; {} exists: {}", output.display(), output.exists());
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
