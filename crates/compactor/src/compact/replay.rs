//! A table's SSTables compacted one after the other as they were written, at times that the caller names.
//!
//! A node compacts whenever an SSTable is flushed, and its clock decides what has expired by then. A replay does the same
//! with SSTables that are there already: each is added at a time of its own, and all that the strategy selects is
//! merged at that time, one compaction after the other, before the next is added. So the compactions of days take as
//! long as their merges, and depend on nothing but the SSTables and the times.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use compactor_engine::merge::Observer;
use compactor_engine::publish::{OutputClaim, Replaceable, Staging};
use compactor_io::Io;
use compactor_sstable::sstable_id::SstableId;

use super::{CompactReport, CompactRequest, Compaction};
use crate::concurrent::SharedObserver;
use crate::{Error, Result};

/// A table to which SSTables are added over time.
#[derive(Debug)]
pub struct Replay {
    compaction: Compaction,
    output: PathBuf,
    claim: Arc<OutputClaim>,
    /// Directory of the SSTables that compactions made. Those that are left at the end are published.
    staging: Staging,
    inside: Arc<OutputClaim>,
    first: Option<SstableId>,
    next: Option<SstableId>,
    gc_grace_s: Option<i64>,
    written_by_level: BTreeMap<u32, u64>,
    started: Instant,
}

/// An SSTable that the table has at present.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReplayedSstable {
    /// Its `Data.db`.
    pub data_path: PathBuf,
    /// Bytes of that.
    pub data_bytes: u64,
    /// Its level, which its statistics may not have yet.
    pub level: u32,
}

impl Replay {
    /// Starts with the SSTables of the request, usually none. The distance between its `now_s` and `gc_before_s`
    /// stays constant as the clock advances. Merges run one after the other, whatever `concurrent` is.
    ///
    /// # Errors
    /// As [`Compaction::open`], a limit of compactions or a recorder, which a replay does not have, or an output
    /// directory that is refused.
    pub fn open(io: Io, mut request: CompactRequest) -> Result<Replay> {
        if request.max_compactions.is_some() || request.recorder.is_some() {
            return Err(Error::invalid(
                "a replay has neither a limit of compactions nor a record",
            ));
        }
        request.concurrent = 1;
        let merges = &mut request.merges;
        let output = merges.output_directory.clone();
        let claim = match merges.claim.take() {
            Some(claim) => claim,
            None => OutputClaim::take(&output, merges.existing_output, Replaceable::default())?,
        };
        let gc_grace_s = merges.gc_before_s.map(|before| merges.now_s - before);
        let compaction = Compaction::open(io, request)?;
        let staging = Staging::create(&claim)?;
        let first = compaction.first_id()?;
        Ok(Replay {
            inside: staging.as_output_directory(),
            staging,
            compaction,
            output,
            claim,
            first,
            next: first,
            gc_grace_s,
            written_by_level: BTreeMap::new(),
            started: Instant::now(),
        })
    }

    /// Adds an SSTable that was written at this time, in seconds since 1970. It stays where it is.
    ///
    /// # Errors
    /// An SSTable that cannot be read, or that the table has already.
    pub fn add(&mut self, data_path: &Path, now_s: i64) -> Result<()> {
        self.set_time(now_s);
        let Compaction {
            io, request, table, ..
        } = &mut self.compaction;
        table.add((io, request.merges.read_mode), data_path)
    }

    /// Compacts all that the strategy selects at this time, until it selects nothing.
    ///
    /// # Errors
    /// The first failed merge, or cancellation.
    pub fn compact(&mut self, now_s: i64, observer: &mut dyn Observer) -> Result<()> {
        self.set_time(now_s);
        let observer = &SharedObserver::new(observer);
        loop {
            // A node that runs one compaction at a time selects the next when it has ended.
            let jobs = self.compaction.table.next_round(1)?;
            let Some(job) = jobs.first() else {
                return Ok(());
            };
            let before = self.report().data_bytes_written;
            let level = job.level.and_then(|level| u32::try_from(level).ok());
            let mut error = None;
            let (inside, next) = (&self.inside, &mut self.next);
            self.compaction
                .round(inside, &jobs, next, observer, &mut error)?;
            self.compaction.table.report.rounds += 1;
            if let Some(error) = error {
                return Err(error);
            }
            if observer.is_cancelled() {
                return Err(Error::Cancelled);
            }
            let written = self.report().data_bytes_written - before;
            *self.written_by_level.entry(level.unwrap_or(0)).or_default() += written;
        }
    }

    /// SSTables of the table at present.
    pub fn sstables(&self) -> Vec<ReplayedSstable> {
        self.compaction.table.present()
    }

    /// Report of the merges so far. It does not name the SSTables.
    pub fn report(&self) -> &CompactReport {
        &self.compaction.table.report
    }

    /// Bytes of `Data.db` that merges wrote to each level.
    pub fn written_by_level(&self) -> &BTreeMap<u32, u64> {
        &self.written_by_level
    }

    /// Publishes the SSTables that merges have left, all or none. Those that were added and not merged stay where they
    /// are: `untouched` in the report.
    ///
    /// # Errors
    /// A failed write, sync or rename. Nothing is published then.
    pub fn finish(mut self) -> Result<CompactReport> {
        self.compaction.at_open.recheck()?;
        self.compaction
            .publish(&self.claim, &self.output, self.first)?;
        let report = self.compaction.table.report(self.started.elapsed());
        drop(self.staging);
        Ok(report)
    }

    fn set_time(&mut self, now_s: i64) {
        let merges = &mut self.compaction.request.merges;
        merges.now_s = now_s;
        merges.gc_before_s = self.gc_grace_s.map(|grace_s| now_s - grace_s);
        self.compaction.table.set_time(now_s);
    }
}
