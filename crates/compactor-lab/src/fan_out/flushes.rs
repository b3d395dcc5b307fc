//! The SSTables that are flushed, the same for all strategies.

use std::path::{Path, PathBuf};

use compactor::writer::{RowTimes, SstableWriterOptions};
use compactor::{Compression, Error, ExistingOutput, OutputForm, Result, SstableWriter, Value};

use super::options::{FanOutOptions, ROW_BYTES};
use super::outcome::FlushRecord;
use crate::random::Random;
use crate::table::len_of;
use crate::watcher::{Event, Watcher, check_cancelled};

/// Cells of a row, of 64 bytes as in the issue. It has 512 of them; with fewer, an SSTable of this scale has as
/// many rows as one of the issue's.
const CELLS: usize = 16;
const CELL_BYTES: usize = 64;
/// Bytes of the values of a row: what a client inserts.
pub(super) const INSERTED_ROW_BYTES: u64 = (CELLS * CELL_BYTES) as u64;
/// Time at which the virtual clock starts: 2025-01-01, seconds since 1970.
const START_S: i64 = 1_735_689_600;
const US: f64 = 1e6;
/// Stream of random numbers of the seed, for values.
const STREAM: u64 = 0x666c_7573;

/// A flushed SSTable.
#[derive(Debug)]
pub(super) struct Flush {
    pub(super) data_path: PathBuf,
    /// Time of the flush, seconds since 1970.
    pub(super) at_s: i64,
}

/// All flushed SSTables: rows are numbered, and each SSTable has the same number of them.
#[derive(Debug)]
pub(super) struct Flushes {
    pub(super) flushes: Vec<Flush>,
    pub(super) record: FlushRecord,
}

impl Flushes {
    /// Writes them to a directory.
    ///
    /// # Errors
    /// A failed write, or cancellation.
    pub(super) fn write(
        options: &FanOutOptions,
        directory: &Path,
        watcher: &dyn Watcher,
    ) -> Result<Flushes> {
        let mut random = Random::new(options.seed, STREAM);
        let rows = (options.flush_bytes / ROW_BYTES).max(1);
        let mut all = Flushes {
            flushes: Vec::new(),
            record: FlushRecord {
                interval_s: options.flush_interval_s(),
                rows_per_flush: rows,
                inserted_row_bytes: INSERTED_ROW_BYTES,
                ..FlushRecord::default()
            },
        };
        for number in 0..options.flushes() {
            check_cancelled(watcher.is_cancelled())?;
            watcher.event(&Event::Progress {
                work: "flushing SSTables",
                done_bytes: number * options.flush_bytes,
                total_bytes: options.flushes() * options.flush_bytes,
            });
            all.flush(options, directory, &mut random)?;
        }
        Ok(all)
    }

    fn flush(
        &mut self,
        options: &FanOutOptions,
        directory: &Path,
        random: &mut Random,
    ) -> Result<()> {
        let mut writer = writer(options)?.open(directory)?;
        let first = self.flushes.len() as u64 * self.record.rows_per_flush;
        for row in first..first + self.record.rows_per_flush {
            let written_us = self.record.written_us(row);
            let times = RowTimes::at(written_us).written_s((written_us as f64 / US) as i64);
            writer.add_row_with(values(row, random), times)?;
        }
        let written = writer.finish()?.sstables;
        let [sstable] = &written[..] else {
            return Err(Error::Internal("a flush of several SSTables".to_owned()));
        };
        self.record.flushes += 1;
        self.record.data_bytes += len_of(&sstable.data_path);
        self.record.bytes += sstable.bytes;
        self.flushes.push(Flush {
            data_path: sstable.data_path.clone(),
            at_s: self.record.flushed_s(self.record.flushes),
        });
        Ok(())
    }
}

impl FlushRecord {
    /// Timestamp of a row: at even distances, and before its flush.
    pub(super) fn written_us(&self, row: u64) -> i64 {
        let intervals = (row as f64 + 0.5) / self.rows_per_flush as f64;
        START_S * US as i64 + (intervals * self.interval_s * US) as i64
    }

    /// Time of the n-th flush, from 1, seconds since 1970.
    fn flushed_s(&self, number: u64) -> i64 {
        START_S + (number as f64 * self.interval_s).ceil() as i64
    }

    /// Number of rows that have expired at a time.
    pub(super) fn expired_rows(&self, now_s: i64, ttl_s: u32) -> u64 {
        let since_start_s = (now_s - START_S - i64::from(ttl_s)) as f64;
        (since_start_s / self.interval_s * self.rows_per_flush as f64).max(0.0) as u64
    }
}

/// Partition key of a row: one for each, whose tokens are all over the ring.
pub(super) fn key(row: u64) -> i64 {
    row as i64
}

fn values(row: u64, random: &mut Random) -> impl Iterator<Item = (String, Value)> {
    let cells = (0..CELLS).map(|cell| {
        let words = std::iter::repeat_with(|| random.next().to_be_bytes());
        let value = words.take(CELL_BYTES / 8).flatten().collect();
        (format!("c{cell}"), Value::Blob(value))
    });
    std::iter::once(("id".to_owned(), Value::BigInt(key(row)))).chain(cells)
}

fn writer(options: &FanOutOptions) -> Result<SstableWriterOptions> {
    let columns: String = (0..CELLS).map(|cell| format!(", c{cell} blob")).collect();
    let schema = format!(
        "CREATE TABLE lab.fan_out (id bigint PRIMARY KEY{columns}) WITH gc_grace_seconds = {} \
         AND default_time_to_live = {} AND compaction = {{'class': 'LeveledCompactionStrategy'}}",
        options.gc_grace_s, options.ttl_s
    );
    let mut form = OutputForm::default();
    form.compression = Some(Compression::None);
    let writer = SstableWriter::new(&schema)?.form(form).flat(true);
    Ok(writer.existing_output(ExistingOutput::Keep))
}
