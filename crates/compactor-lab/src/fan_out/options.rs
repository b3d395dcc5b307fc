//! Options of the fan-out experiment, and the strategies that it compares.

use std::path::{Path, PathBuf};

use compactor::{Error, Result};
use compactor_strategy::CompactionParams;
use compactor_strategy::options::Options;
use compactor_strategy::release::Release;
use procfs::{Current, Meminfo};
use serde::{Deserialize, Serialize};
use strum::VariantArray;

use crate::cgroup;
use crate::options::MIB;
use crate::outcome::Warning;
use crate::table::free_bytes;

/// Stored bytes of a row in all components, about.
pub(super) const ROW_BYTES: u64 = 1110;

const KIB: u64 = 1 << 10;
const HOUR_S: u64 = 3600;
/// Most SSTables to flush: all of them are on the disk to the end.
const MAX_FLUSHES: u64 = 100_000;

/// A file system in memory, on most systems.
const IN_MEMORY: &str = "/dev/shm";
/// Required free space and memory, as a multiple of the need: other programs use some too.
const SPARE: u64 = 2;

/// A directory in memory, if there is one with room to spare. Thousands of small SSTables are written, each with the
/// syncs of its files, which take longer on a disk than everything else, and are not measured.
pub fn directory_in_memory(needed_bytes: u64) -> Option<&'static Path> {
    let directory = Path::new(IN_MEMORY);
    let available = Meminfo::current().ok()?.mem_available?;
    let room = free_bytes(directory)?.min(available);
    let room = cgroup::room().map_or(room, |left| room.min(left));
    (room >= needed_bytes.saturating_mul(SPARE)).then_some(directory)
}

/// Options of a comparison of fan-outs, and their record in its outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FanOutOptions {
    /// Directory for all files.
    pub directory: PathBuf,
    /// Strategies, each of which compacts the same flushed SSTables.
    pub arms: Vec<FanOutArm>,
    /// Size of an SSTable, MiB.
    pub sstable_mib: u32,
    /// Approximate stored bytes of a flushed SSTable.
    pub flush_bytes: u64,
    /// Approximate stored bytes of the rows that are inserted within a time to live, which is the size of the
    /// live data.
    pub dataset_bytes: u64,
    /// Time to live of rows, seconds of the virtual clock.
    pub ttl_s: u32,
    /// `gc_grace_seconds` of the table.
    pub gc_grace_s: u32,
    /// Time during which rows are inserted, seconds of the virtual clock.
    pub duration_s: u64,
    /// Random seed of values and of the rows that are looked up.
    pub seed: u64,
    /// The command line, for the record.
    pub command: Option<Vec<String>>,
}

impl FanOutOptions {
    /// The times, and its sizes divided by 160: 88 hours, a time to live of two days, SSTables of 1 MiB;
    /// an eighth as much data.
    pub fn new(directory: impl Into<PathBuf>) -> FanOutOptions {
        FanOutOptions {
            directory: directory.into(),
            arms: FanOutArm::ALL.to_vec(),
            sstable_mib: 1,
            flush_bytes: 1280 * KIB,
            dataset_bytes: 128 * MIB,
            ttl_s: 2 * 86_400,
            gc_grace_s: 60,
            duration_s: 88 * HOUR_S,
            seed: 1,
            command: None,
        }
    }

    /// The short one, of seconds: too little data for as many levels.
    pub fn quick(directory: impl Into<PathBuf>) -> FanOutOptions {
        FanOutOptions {
            dataset_bytes: 32 * MIB,
            ..FanOutOptions::new(directory)
        }
    }

    /// Virtual seconds between two flushes.
    pub fn flush_interval_s(&self) -> f64 {
        f64::from(self.ttl_s) * self.flush_bytes as f64 / self.dataset_bytes as f64
    }

    /// Number of SSTables that are flushed.
    pub fn flushes(&self) -> u64 {
        (self.duration_s as f64 / self.flush_interval_s()) as u64
    }

    /// Most bytes of all files: the flushes, and a table with what has expired and the outputs of a merge.
    pub fn needed_bytes(&self) -> u64 {
        const TABLE: u64 = 3;
        let flushed = self.flushes().saturating_mul(self.flush_bytes);
        flushed.saturating_add(TABLE.saturating_mul(self.dataset_bytes))
    }

    /// Reasons for which the figures are not those of a table of full size with several levels.
    pub(super) fn caveats(&self) -> Vec<Warning> {
        let mut caveats = Vec::new();
        if self.duration_s <= u64::from(self.ttl_s) {
            let text = "--duration is no longer than --ttl: nothing expires, and the table is smaller than --dataset, for \
                        which the formula and the issue's figures are";
            caveats.push(Warning::new("growing", text));
        }
        if u64::from(self.sstable_mib) * MIB * 10 > self.dataset_bytes {
            let text = "--sstable-size is more than a tenth of --dataset: one level holds all of it, whatever the fan-out";
            caveats.push(Warning::new("one_level", text));
        }
        caveats
    }

    /// Checks that the options make sense.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`](compactor::ErrorKind::InvalidInput), with a sentence.
    pub(super) fn check(&self) -> Result<()> {
        let refuse = |text: String| Err(Error::invalid(text));
        let flushes = self.flushes();
        match () {
            () if self.arms.is_empty() => refuse("name at least one strategy".to_owned()),
            () if self.sstable_mib == 0 || self.ttl_s == 0 => {
                refuse("--sstable-size and --ttl must be greater than 0".to_owned())
            }
            () if self.flush_bytes < 16 * ROW_BYTES => refuse(format!(
                "--flush-size must be at least {} bytes, sixteen rows",
                16 * ROW_BYTES
            )),
            () if self.dataset_bytes < 4 * self.flush_bytes => refuse(format!(
                "--dataset ({} bytes) must be at least four times --flush-size ({} bytes)",
                self.dataset_bytes, self.flush_bytes
            )),
            () if self.ttl_s <= self.gc_grace_s => refuse(format!(
                "--ttl must be longer than gc_grace_seconds of the table, {} s",
                self.gc_grace_s
            )),
            () if flushes < 4 => refuse(format!(
                "--duration of {} s has {flushes} flushes, one each {:.0} s: it must have at least four",
                self.duration_s,
                self.flush_interval_s()
            )),
            () if flushes > MAX_FLUSHES => refuse(format!(
                "{flushes} flushes are more than {MAX_FLUSHES}: take a larger --flush-size, or a shorter --duration"
            )),
            () => Ok(()),
        }
    }
}

/// Number of times that the SSTables of [`FanOutArm::M4Large`] are larger: 1024 MB to 160 MB in the issue.
const LARGER: f64 = 6.4;

/// A strategy with its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, VariantArray)]
#[serde(rename_all = "snake_case")]
pub enum FanOutArm {
    /// Leveled compaction with a fan-out of 10, Cassandra's default.
    M10,
    /// With a fan-out of 4.
    M4,
    /// With a fan-out of 4 and SSTables 6.4 times as large.
    M4Large,
    /// Level count compaction, for which the issue asks: of four levels, with sizes that follow the data.
    LevelCount,
}

/// Figures of the issue for 1 MB/s of inserts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Published {
    /// MB written per second.
    pub write_mb_per_s: f64,
    /// Levels, L0 included.
    pub levels: f64,
}

impl FanOutArm {
    /// All, in the order of tables.
    pub const ALL: &[FanOutArm] = FanOutArm::VARIANTS;

    /// Name in tables.
    pub fn name(self, options: &FanOutOptions) -> String {
        let mib = self.sstable_mib(options);
        match self {
            FanOutArm::M10 => format!("m=10, {mib} MiB"),
            FanOutArm::M4 | FanOutArm::M4Large => format!("m=4, {mib} MiB"),
            FanOutArm::LevelCount => "level count".to_owned(),
        }
    }

    /// Size of an SSTable; of level count compaction the smallest.
    pub fn sstable_mib(self, options: &FanOutOptions) -> u32 {
        match self {
            FanOutArm::M4Large => (f64::from(options.sstable_mib) * LARGER).round() as u32,
            _ => options.sstable_mib,
        }
    }

    /// Figures of the issue; it has none of level count compaction.
    pub fn published(self) -> Option<Published> {
        let (write_mb_per_s, levels) = match self {
            FanOutArm::M10 => (32.0, 4.1),
            FanOutArm::M4 => (28.0, 6.1),
            FanOutArm::M4Large => (20.4, 4.8),
            FanOutArm::LevelCount => return None,
        };
        Some(Published {
            write_mb_per_s,
            levels,
        })
    }

    /// The strategy, with the rules of Cassandra 5.0.
    ///
    /// # Errors
    /// Options that Cassandra refuses.
    pub(super) fn strategy(self, options: &FanOutOptions) -> Result<CompactionParams> {
        let mib = self.sstable_mib(options).to_string();
        let (class, named) = match self {
            FanOutArm::M10 => (LEVELED, [("fanout_size", "10"), (SIZE, &mib)]),
            FanOutArm::M4 | FanOutArm::M4Large => (LEVELED, [("fanout_size", "4"), (SIZE, &mib)]),
            FanOutArm::LevelCount => (
                "LevelCountCompactionStrategy",
                [("level_count", "4"), ("min_sstable_size_in_mb", &mib)],
            ),
        };
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let named: Options = named.into_iter().map(owned).collect();
        CompactionParams::from_options(class, &named, Release::V5_0)
            .map_err(|error| Error::invalid(error.to_string()))
    }
}

const LEVELED: &str = "LeveledCompactionStrategy";
const SIZE: &str = "sstable_size_in_mb";
