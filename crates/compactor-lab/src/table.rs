//! The table that is read and compacted.

use std::path::{Path, PathBuf};

use compactor::generate::{Amount, GenerateOptions, generate};
use compactor::{Error, Observer, Result};
use compactor_engine::input::InputSstable;
use compactor_io::{Io, IoOptions, ReadMode, drop_clean_pages};
use compactor_sstable::Component;
use compactor_sstable::descriptor::Descriptor;

use crate::options::Data;
use crate::outcome::DataRecord;

/// Name of the generation of a table.
pub(crate) const GENERATING: &str = "generating data";
/// Rows per partition of shapes with a sequence of rows: enough for a promoted index of some blocks.
const WIDE_ROWS: u32 = 4000;
/// Outputs on the disk at a time: one that was published, until the next is.
const OUTPUTS: u64 = 2;
/// Directory of a generated table.
pub(crate) const TABLE_DIRECTORY: &str = "table";

/// SSTables that are compacted in each run, always the same.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) data_paths: Vec<PathBuf>,
    pub(crate) record: DataRecord,
}

impl Table {
    /// Generates `bytes` uncompressed bytes of it below `directory`, where `needed_bytes` may be needed in all,
    /// or takes what was given.
    ///
    /// # Errors
    /// No room, a failed write, damage in what was given, or cancellation.
    pub(crate) fn prepare(
        data: &Data,
        (bytes, needed_bytes): (u64, u64),
        seed: u64,
        directory: &Path,
        observer: &mut dyn Observer,
    ) -> Result<Table> {
        match data {
            Data::Given(paths) => {
                let table = Table::open("given".to_owned(), paths.clone())?;
                require_room(directory, OUTPUTS * table.record.bytes)?;
                Ok(table)
            }
            Data::Generated {
                shape,
                version,
                sstables,
                ..
            } => {
                require_room(directory, needed_bytes)?;
                let mut generated = GenerateOptions::new(*shape, directory.join(TABLE_DIRECTORY));
                generated.keyspace = "lab".to_owned();
                generated.sstables = (*sstables).max(1);
                generated.amount = Amount::Bytes(bytes / u64::from(generated.sstables));
                generated.version = *version;
                generated.seed = seed;
                Table::generate(generated, observer)
            }
        }
    }

    /// Generates SSTables.
    ///
    /// # Errors
    /// A failed write, or cancellation.
    pub(crate) fn generate(
        mut options: GenerateOptions,
        observer: &mut dyn Observer,
    ) -> Result<Table> {
        let shape = options.shape.name().to_owned();
        if options.shape.has_sequence() {
            options.rows_per_partition = WIDE_ROWS;
        }
        let report = generate(IoOptions::default(), options, observer)?;
        let paths = report.sstables.into_iter().map(|s| s.data_path);
        Table::open(shape, paths.collect())
    }

    /// SSTables that are there already.
    ///
    /// # Errors
    /// Damage, or none at all.
    pub(crate) fn open(shape: String, data_paths: Vec<PathBuf>) -> Result<Table> {
        let io = Io::new(IoOptions::default())?;
        let sstables = InputSstable::open_all(&io, &data_paths, ReadMode::Auto, |input| input)
            .into_iter()
            .collect::<Result<Vec<_>, _>>()?;
        let Some(first) = sstables.first() else {
            return Err(Error::invalid("there are no SSTables to compact"));
        };
        let params = first.compression_info().map(|info| &info.params);
        let partitions = sstables.iter().map(|sstable| {
            let sizes = &sstable.statistics.stats.partition_sizes;
            u64::try_from(sizes.count()).unwrap_or_default()
        });
        let record = DataRecord {
            shape,
            version: first.descriptor.version.to_string(),
            compressor: params.map(|params| params.compressor.clone()),
            chunk_length_bytes: params.map(|params| params.chunk_len),
            sstables: u32::try_from(sstables.len()).unwrap_or(u32::MAX),
            bytes: sstables.iter().map(InputSstable::disk_len).sum(),
            uncompressed_bytes: sstables.iter().map(InputSstable::data_len).sum(),
            partitions: partitions.sum(),
        };
        Ok(Table { data_paths, record })
    }

    /// Every component of every SSTable.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        components(&self.data_paths)
    }

    /// Stored bytes of `Data.db`, which is what a limit on throughput counts.
    pub(crate) fn data_file_bytes(&self) -> u64 {
        self.data_paths.iter().map(|path| len_of(path)).sum()
    }

    /// Drops all pages of the SSTables from the page cache. Nobody may have them mapped.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn drop_pages(&self) -> Result<()> {
        for path in self.files() {
            drop_clean_pages(&path)?;
        }
        Ok(())
    }
}

/// Every component of some SSTables.
pub(crate) fn components(data_paths: &[PathBuf]) -> Vec<PathBuf> {
    let files = data_paths
        .iter()
        .filter_map(|path| Descriptor::parse(path).ok());
    let paths = files.flat_map(|file| Component::ALL.map(|c| file.descriptor.path(c)));
    paths.filter(|path| path.is_file()).collect()
}

pub(crate) fn len_of(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |found| found.len())
}

/// Free space of a file system; `None` if it is not known.
pub(crate) fn free_bytes(directory: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(directory).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

/// Refuses to fill a disk.
pub(crate) fn require_room(directory: &Path, bytes: u64) -> Result<()> {
    match free_bytes(directory) {
        Some(free) if free < bytes => Err(Error::invalid(format!(
            "{} has {} MiB of free space, and the experiment may need {} MiB; name a directory on a \
             larger disk, or ask for less data",
            directory.display(),
            free >> 20,
            bytes >> 20
        ))),
        _ => Ok(()),
    }
}
