//! Writing SSTables of one's own rows: bulk load without a JVM or a node (`CQLSSTableWriter`).
//!
//! ```no_run
//! use compactor::{SstableWriter, Value};
//!
//! # fn main() -> Result<(), compactor::Error> {
//! let schema = "CREATE TABLE ks.users (id text PRIMARY KEY, age int, mails set<text>)";
//! let mut writer = SstableWriter::new(schema)?.open("out")?;
//! writer.add_row([
//!     ("id", Value::from("ann")),
//!     ("age", 41.into()),
//!     ("mails", Value::Set(vec!["ann@example.com".into()])),
//! ])?;
//! let written = writer.finish()?;
//! println!("{} rows in {} SSTables", written.rows, written.sstables.len());
//! # Ok(())
//! # }
//! ```
//!
//! Rows are sorted in memory. Whenever the memory is full, and at the end, they become an SSTable; all of
//! them appear when [`SstableWriter::finish`] returns, or none.

mod buffer;
mod columns;
mod output;

use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use compactor_engine::publish::{OutputClaim, Replaceable, Staging, new_time_uuid};
use compactor_engine::read::Workers;
use compactor_engine::write::{StagedSstable, publish_together};
use compactor_io::Io;
use compactor_sstable::Version;
use compactor_sstable::schema::Schema;
use compactor_sstable::types::Value;

use self::buffer::RowBuffer;
use self::columns::Columns;
use self::output::OutputSettings;
use crate::partition_output::PartitionOutput;
use crate::report::SstableReport;
use crate::table::{
    ExistingOutput, Levels, NextSteps, OutputForm, OutputLayout, Resources, TableName,
};
use crate::time_uuid::{ticks_of, time_uuid};
use crate::{Error, Result};

/// Options of an [`SstableWriter`].
#[derive(Clone, Debug)]
#[must_use]
pub struct SstableWriterOptions {
    schema: compactor_sstable::schema::Table,
    form: OutputForm,
    resources: Resources,
    existing_output: ExistingOutput,
    is_flat: bool,
    now_s: Option<i64>,
}

/// Timestamp and TTL of a row: by default the clock's, with a greater timestamp for each row, and the
/// table's `default_time_to_live`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowTimes {
    timestamp_us: Option<i64>,
    ttl_s: Option<u32>,
    written_s: Option<i64>,
}

impl RowTimes {
    /// Times with this timestamp, microseconds since 1970.
    pub fn at(timestamp_us: i64) -> RowTimes {
        RowTimes {
            timestamp_us: Some(timestamp_us),
            ..RowTimes::default()
        }
    }

    /// Sets the TTL in seconds; 0 for none.
    #[must_use]
    pub fn with_ttl(self, ttl_s: u32) -> RowTimes {
        RowTimes {
            ttl_s: Some(ttl_s),
            ..self
        }
    }

    /// Sets the time of the write, seconds since 1970, from which the TTL counts. Default: the writer's.
    #[must_use]
    pub fn written_s(self, written_s: i64) -> RowTimes {
        RowTimes {
            written_s: Some(written_s),
            ..self
        }
    }
}

/// Writes SSTables of rows in any order.
///
/// Rows are sorted in memory, [`Resources::memory_bytes`] at a time, each of which becomes an SSTable. They are
/// published by [`finish`](SstableWriter::finish), all or none: a writer that is dropped before writes nothing. Of the
/// resources, those for reading have no effect.
#[derive(Debug)]
#[must_use = "rows are published by `finish`"]
pub struct SstableWriter {
    columns: Columns,
    default_ttl_s: u32,
    memory_bytes: usize,
    buffer: RowBuffer,
    last_timestamp_us: i64,
    /// Ticks of the last path of a list element.
    last_ticks: i64,
    /// Clock sequence and node of the paths of list elements.
    list_node: i64,
    /// The given time of writing; `None` for the clock.
    fixed_now_s: Option<i64>,
    io: Io,
    workers: Workers,
    claim: Arc<OutputClaim>,
    staging: Arc<Staging>,
    layout: OutputLayout,
    settings: OutputSettings,
    staged: Vec<StagedSstable>,
    rows: u64,
    /// A write has failed, whose rows are lost.
    has_failed: bool,
}

/// The SSTables that were written.
#[derive(Debug)]
#[non_exhaustive]
pub struct WrittenTable {
    /// Each SSTable; none if no row was added.
    pub sstables: Vec<SstableReport>,
    /// Number of rows in them, static rows included.
    pub rows: u64,
    /// Commands that bring them to a node.
    pub next_steps: NextSteps,
}

/// Longest TTL that Cassandra accepts, 20 years in seconds (`Attributes.MAX_TTL`).
const MAX_TTL_S: u32 = 20 * 365 * 24 * 3600;

impl SstableWriter {
    /// Options for a table whose `CREATE TABLE` is in `schema`, with the types that it uses.
    ///
    /// # Errors
    /// A text that is not the schema of one table, or a table of counters, which only nodes can write.
    #[expect(
        clippy::new_ret_no_self,
        reason = "the options come first, and are mostly the defaults"
    )]
    pub fn new(schema: &str) -> Result<SstableWriterOptions> {
        let schema = Schema::parse(schema).and_then(|schema| schema.only_table().cloned());
        // The caller's text, not a damaged file.
        let schema = schema.map_err(|error| {
            let error = Error::from(error);
            Error::invalid(match error.corruption() {
                // What was found includes line and column.
                Some(c) => format!("schema: expected {}, found {}", c.expected, c.found),
                None => error.to_string(),
            })
        })?;
        // Reports an unsupported table here, before anything is opened.
        Columns::of(&schema)?;
        Ok(SstableWriterOptions {
            schema,
            form: OutputForm::default(),
            resources: Resources::default(),
            existing_output: ExistingOutput::Refuse,
            is_flat: false,
            now_s: None,
        })
    }

    /// Adds a row as `INSERT` does: values by column name, with all of the primary key. Columns that are
    /// not named are not set. Without clustering, the row sets static columns only.
    ///
    /// # Errors
    /// An unknown column, a value that is not of its type or has more than 256 MiB, an incomplete primary
    /// key. In these cases the row is not added, and the writer stays usable. After a failed write every later
    /// call fails.
    pub fn add_row<N: AsRef<str>>(
        &mut self,
        values: impl IntoIterator<Item = (N, Value)>,
    ) -> Result<()> {
        self.add_row_with(values, RowTimes::default())
    }

    /// Adds a row as `INSERT ... USING TIMESTAMP ... AND TTL ...` does; see [`SstableWriter::add_row`]. If two
    /// rows set the same column of one primary key, the value with the greater timestamp wins.
    ///
    /// # Errors
    /// As [`SstableWriter::add_row`], or a TTL of more than 20 years or with an expiration beyond what the
    /// version of the SSTables can store.
    pub fn add_row_with<N: AsRef<str>>(
        &mut self,
        values: impl IntoIterator<Item = (N, Value)>,
        times: RowTimes,
    ) -> Result<()> {
        self.refuse_after_failure()?;
        let ttl_s = times.ttl_s.unwrap_or(self.default_ttl_s);
        if ttl_s > MAX_TTL_S {
            return Err(Error::invalid(format!(
                "a TTL of {ttl_s} s: the maximum is {MAX_TTL_S} s, 20 years"
            )));
        }
        let (now_s, clock_us) = match self.fixed_now_s {
            Some(now_s) => (now_s, None),
            None => {
                let now_us = now_us();
                (now_us / 1_000_000, Some(now_us))
            }
        };
        let now_s = times.written_s.unwrap_or(now_s);
        let max_time_s = self.settings.max_local_time_s();
        refuse_time(now_s, self.settings.version(), max_time_s)?;
        if ttl_s > 0 && now_s + i64::from(ttl_s) > max_time_s {
            // As Cassandra does by default (`ExpirationDateOverflowHandling`).
            return Err(Error::invalid(format!(
                "a TTL of {ttl_s} s: it would end after {max_time_s} s since 1970, the latest expiration of \
                 version {}",
                self.settings.version()
            )));
        }
        let timestamp_us = match times.timestamp_us {
            Some(timestamp_us) => timestamp_us,
            None => {
                let next = self.last_timestamp_us + 1;
                self.last_timestamp_us = clock_us.map_or(next, |clock_us| next.max(clock_us));
                self.last_timestamp_us
            }
        };
        if timestamp_us == i64::MIN {
            // It means that there is no timestamp (`LivenessInfo.NO_TIMESTAMP`).
            return Err(Error::invalid("the timestamp -2^63 µs is reserved"));
        }
        let times = buffer::Times::new(timestamp_us, ttl_s, now_s);
        let (ticks, node) = (&mut self.last_ticks, self.list_node);
        let list_path = || {
            *ticks += 1;
            time_uuid(*ticks, node)
        };
        self.buffer.add(&self.columns, values, times, list_path)?;
        if self.buffer.len_in_memory() >= self.memory_bytes {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes what is buffered, and publishes all SSTables.
    ///
    /// # Errors
    /// A failed write, sync or rename. Nothing stays then.
    pub fn finish(mut self) -> Result<WrittenTable> {
        self.refuse_after_failure()?;
        self.flush()?;
        let written = publish_together(std::mem::take(&mut self.staged))?;
        self.claim.commit()?;
        Ok(WrittenTable {
            next_steps: NextSteps::new(&self.layout, (!written.is_empty()).then_some(Levels::Zero)),
            sstables: written.iter().map(SstableReport::of_output).collect(),
            rows: self.rows,
        })
    }

    /// Refuses to go on after a failed write: its rows are lost, so the output would be incomplete.
    fn refuse_after_failure(&self) -> Result<()> {
        if !self.has_failed {
            Ok(())
        } else {
            Err(Error::refused(
                "a write has failed, and rows are lost: begin again with another writer",
            ))
        }
    }

    fn flush(&mut self) -> Result<()> {
        let flushed = self.try_flush();
        self.has_failed |= flushed.is_err();
        flushed
    }

    fn try_flush(&mut self) -> Result<()> {
        self.buffer.sort(&self.columns);
        if !self.buffer.is_empty() {
            let settings = self.settings.next(&self.columns, &self.buffer)?;
            let new = PartitionOutput {
                io: &self.io,
                staging: &self.staging,
                workers: &self.workers,
                threads: self.settings.threads,
                write_mode: self.settings.write_mode,
            };
            let staged = output::write(new, settings, &self.columns, &mut self.buffer)?;
            self.rows += staged.iter().map(StagedSstable::rows).sum::<u64>();
            self.staged.extend(staged);
        }
        Ok(())
    }
}

impl SstableWriterOptions {
    /// Version, format and compression. Default: `nb`, which every node since 4.0 imports, and the
    /// compression of the schema, or LZ4 in chunks of 16 KiB if it has none. Newer versions store expirations
    /// after 2038, but a node of 5.0 with `storage_compatibility_mode: CASSANDRA_4`, its default, ignores
    /// their SSTables without an error.
    pub fn form(mut self, form: OutputForm) -> SstableWriterOptions {
        self.form = form;
        self
    }

    /// I/O mode of writes, threads that compress, and memory for rows.
    pub fn resources(mut self, resources: Resources) -> SstableWriterOptions {
        self.resources = resources;
        self
    }

    /// Keeps, replaces or refuses SSTables that are in the output directory. Default: refuses.
    /// SSTables whose key or columns do not fit the schema are not replaced; all others are, even if no row is
    /// added. A column that was removed since must be in the schema as dropped.
    pub fn existing_output(mut self, existing: ExistingOutput) -> SstableWriterOptions {
        self.existing_output = existing;
        self
    }

    /// Writes into the output directory itself, not into `KEYSPACE/TABLE` below it, from where a node
    /// imports.
    pub fn flat(mut self, is_flat: bool) -> SstableWriterOptions {
        self.is_flat = is_flat;
        self
    }

    /// Time at which rows are written, seconds since 1970: TTLs count from it. Default: the clock, when
    /// each is added. With a given time the same rows become the same bytes. Then list elements of equal
    /// timestamps that two writers add to the same row may replace one another, instead of being joined.
    pub fn now_s(mut self, now_s: i64) -> SstableWriterOptions {
        self.now_s = Some(now_s);
        self
    }

    /// Claims the output directory, which is made if it does not exist.
    ///
    /// # Errors
    /// A directory that holds SSTables or belongs to another run; settings that contradict one another; a version that is
    /// not written.
    pub fn open(self, output: impl AsRef<Path>) -> Result<SstableWriter> {
        let columns = Columns::of(&self.schema)?;
        let table = TableName::of_schema(&self.schema);
        let layout = OutputLayout::new(output.as_ref(), table, self.is_flat);
        let replaceable = Replaceable {
            table: Some(&self.schema),
            ..Replaceable::default()
        };
        // Before the settings, which choose the next free id.
        let directory = layout.directory();
        let claim = OutputClaim::take(directory, self.existing_output, replaceable)?;
        let settings = OutputSettings::new(&self.schema, &self.form, &self.resources, &layout)?;
        let max_now_s = settings.max_local_time_s();
        if let Some(now_s) = self.now_s {
            refuse_time(now_s, settings.version(), max_now_s)?;
        }
        let io = self.resources.io()?;
        let workers = Workers::start(self.resources.threads())?;
        let staging = Arc::new(Staging::create(&claim)?);
        let fixed_us = self.now_s.map(|seconds| seconds.saturating_mul(1_000_000));
        let now_us = fixed_us.unwrap_or_else(now_us);
        Ok(SstableWriter {
            columns,
            default_ttl_s: self.schema.options.default_time_to_live.unwrap_or(0),
            memory_bytes: self.resources.memory_bytes,
            buffer: RowBuffer::default(),
            last_timestamp_us: now_us - 1,
            last_ticks: ticks_of(now_us),
            list_node: match self.now_s {
                Some(_) => FIXED_NODE,
                // A random one: another writer may count the same ticks.
                None => new_time_uuid().1,
            },
            fixed_now_s: self.now_s,
            io,
            workers,
            claim,
            staging,
            layout,
            settings,
            staged: Vec::new(),
            rows: 0,
            has_failed: false,
        })
    }
}

/// Refuses a time of writing that a version cannot store.
fn refuse_time(now_s: i64, version: Version, max_now_s: i64) -> Result<()> {
    if (0..=max_now_s).contains(&now_s) {
        Ok(())
    } else {
        Err(Error::invalid(format!(
            "time of writing {now_s} s: version {version} can store 0 to {max_now_s} s since 1970"
        )))
    }
}

fn now_us() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_micros() as i64)
}

/// Clock sequence and node of writers with a given time of writing.
const FIXED_NODE: i64 = 0x8000_0163_6f6d_7061_u64 as i64;

#[cfg(test)]
mod tests;
