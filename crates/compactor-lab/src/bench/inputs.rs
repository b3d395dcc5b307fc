//! The SSTables that all arms work on.

use std::fs::File;
use std::path::{Path, PathBuf};

use compactor::generate::{Amount, GenerateOptions, generate};
use compactor::input::InputSstable;
use compactor::io::{Io, IoOptions, ReadMode, drop_clean_pages};
use compactor::{Error, Observer, Result};

use super::BenchOptions;
use crate::outcome::DataRecord;
use crate::table::{components, disk_len, len_of};

/// Rows per partition of shapes with a sequence of rows: enough for a promoted index of some blocks.
const WIDE_ROWS: u32 = 4000;

#[derive(Debug)]
pub(super) struct Inputs {
    pub(super) data_paths: Vec<PathBuf>,
    pub(super) record: DataRecord,
    /// Stored bytes of their `Data.db`.
    pub(super) data_file_bytes: u64,
    /// Every component of every one.
    files: Vec<PathBuf>,
}

/// The most bytes that will lie below the directory at a time: generated inputs, the output of one run,
/// and a second one where somebody else's is handed over.
pub(super) fn needed_bytes(options: &BenchOptions) -> u64 {
    let outputs = if options.external.is_empty() { 1 } else { 2 };
    match options.given.is_empty() {
        true => options.generated.bytes.saturating_mul(1 + outputs),
        false => {
            let descriptors = options.given.iter().filter_map(|path| {
                let file = compactor::sstable::descriptor::Descriptor::parse(path).ok()?;
                Some(file.descriptor)
            });
            let bytes: u64 = descriptors.map(|descriptor| disk_len(&descriptor)).sum();
            bytes.saturating_mul(outputs)
        }
    }
}

impl Inputs {
    /// Generates them below `directory`, or takes what was given.
    ///
    /// # Errors
    /// A failed write, damage in what was given, or cancellation.
    pub(super) fn prepare(
        options: &BenchOptions,
        directory: &Path,
        observer: &mut dyn Observer,
    ) -> Result<Inputs> {
        let (shape, data_paths) = if options.given.is_empty() {
            let asked = &options.generated;
            let mut wanted = GenerateOptions::new(asked.shape, directory.join("inputs"));
            wanted.keyspace = "bench".to_owned();
            wanted.sstables = asked.sstables.max(1);
            wanted.amount = Amount::Bytes(asked.bytes / u64::from(wanted.sstables));
            wanted.version = asked.version;
            wanted.compression.clone_from(&asked.compression);
            wanted.seed = options.seed;
            wanted.now_s = options.now_s;
            if asked.shape.has_sequence() {
                wanted.rows_per_partition = WIDE_ROWS;
            }
            let report = generate(IoOptions::default(), wanted, observer)?;
            let paths = report.sstables.iter().map(|s| s.data_path.clone());
            (asked.shape.name().to_owned(), paths.collect())
        } else {
            ("given".to_owned(), absolute(&options.given)?)
        };
        let io = Io::new(IoOptions::default())?;
        let sstables = InputSstable::open_all(&io, &data_paths, ReadMode::Auto)
            .into_iter()
            .collect::<Result<Vec<_>, _>>()?;
        let Some(first) = sstables.first() else {
            return Err(Error::invalid("there are no SSTables to merge"));
        };
        let compression = first.compression_info().map(|info| &info.params);
        let partitions = sstables.iter().map(|sstable| {
            let sizes = &sstable.statistics.stats.partition_sizes;
            u64::try_from(sizes.count()).unwrap_or_default()
        });
        let record = DataRecord {
            shape,
            version: first.descriptor.version.to_string(),
            compressor: compression.map(|params| params.compressor.clone()),
            chunk_length_bytes: compression.map(|params| params.chunk_len),
            sstables: u32::try_from(sstables.len()).unwrap_or(u32::MAX),
            bytes: sstables.iter().map(InputSstable::disk_len).sum(),
            uncompressed_bytes: sstables.iter().map(InputSstable::data_len).sum(),
            partitions: partitions.sum(),
        };
        Ok(Inputs {
            record,
            data_file_bytes: data_paths.iter().map(|path| len_of(path)).sum(),
            files: (sstables.iter())
                .flat_map(|sstable| components(&sstable.descriptor))
                .collect(),
            data_paths,
        })
    }

    /// Drops the inputs from the page cache, or reads them into it.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn make_ready(&self, warm: bool) -> Result<()> {
        for path in &self.files {
            if warm {
                let read = File::open(path)
                    .and_then(|mut file| std::io::copy(&mut file, &mut std::io::sink()));
                read.map_err(Error::file("read", path))?;
            } else {
                drop_clean_pages(path)?;
            }
        }
        Ok(())
    }
}

/// Arms run elsewhere than this process.
fn absolute(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let absolute = |path: &PathBuf| std::path::absolute(path).map_err(Error::file("find", path));
    paths.iter().map(absolute).collect()
}
