//! The SSTables that all arms work on.

use std::fs::File;
use std::path::{Path, PathBuf};

use compactor::{Error, Observer, Result};

use super::{ArmKind, BenchOptions};
use crate::table::{Table, WIDE_ROWS, disk_len};

/// The most bytes below the directory at a time: generated inputs, the output of one run, and a second one
/// where an external command copies its own, or a compaction merges outputs again.
pub(super) fn needed_bytes(options: &BenchOptions) -> u64 {
    let merges_again = options.kinds.contains(&ArmKind::Compact);
    let outputs = if options.external.is_empty() && !merges_again {
        1
    } else {
        2
    };
    match options.given.is_empty() {
        true => options.generated_bytes().saturating_mul(1 + outputs),
        false => {
            let descriptors = options.given.iter().filter_map(|path| {
                let file = compactor_sstable::descriptor::Descriptor::parse(path).ok()?;
                Some(file.descriptor)
            });
            let bytes: u64 = descriptors.map(|descriptor| disk_len(&descriptor)).sum();
            bytes.saturating_mul(outputs)
        }
    }
}

/// Generates them below `directory`, or takes what was given.
///
/// # Errors
/// A failed write, damage in what was given, or cancellation.
pub(super) fn prepare(
    options: &BenchOptions,
    directory: &Path,
    observer: &mut dyn Observer,
) -> Result<Table> {
    if !options.given.is_empty() {
        // Arms run elsewhere than this process.
        let absolute =
            |path: &PathBuf| std::path::absolute(path).map_err(Error::file("find", path));
        let paths = options.given.iter().map(absolute);
        return Table::open("given".to_owned(), paths.collect::<Result<_, _>>()?);
    }
    let mut generated = options.generated.clone();
    generated.output_directory = directory.join("inputs");
    generated.keyspace = "bench".to_owned();
    generated.seed = options.seed;
    generated.now_s = options.now_s;
    if generated.shape.has_sequence() {
        generated.rows_per_partition = WIDE_ROWS;
    }
    Table::generate(generated, observer)
}

/// Drops the inputs from the page cache, or reads them into it.
///
/// # Errors
/// The system's.
pub(super) fn make_ready(table: &Table, warm: bool) -> Result<()> {
    if !warm {
        return table.drop_pages();
    }
    for path in table.files() {
        let mut file = File::open(&path).map_err(Error::file("open", &path))?;
        let read = std::io::copy(&mut file, &mut std::io::sink());
        read.map_err(Error::file("read", &path))?;
    }
    Ok(())
}
