//! Checks of `Partitions.db`, `Rows.db` and `Filter.db` of BTI inputs against the partitions that a merge reads.
//!
//! The tries do not hold complete keys, so little can be checked without the data. The merge sends the keys and rows
//! it reads in batches to a concurrent thread, which looks up each key and validates each block of rows.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use compactor_engine::input::{
    ComponentList, SharedTries, SidecarFacts, TrieFiles, parse_data_name,
};
use compactor_engine::read::{DataTrace, InputTrace, TraceBatch, TraceEvent};
use compactor_io::{Io, ReadMode};
use compactor_sstable::data::clustering::ClusteringComparator;
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::partitioner::KeyHash;
use compactor_sstable::statistics::{EstimatedHistogram, Statistics};
use compactor_sstable::types::CqlType;
use compactor_sstable::{Component, Version};

use super::bti_index::{TrieBlockCheck, TrieScan};
use super::files::{Files, fp_chance};
use super::finding::{Finding, Findings, Location};
use super::keys::FilterCheck;
use super::lockstep::leads_nowhere;
use super::short_hex;
use super::sidecar_components::{first_damage, same_ends, same_sizes};
use super::statistics_consistency;
use crate::{Error, Result};

/// Capacity of the channel between the merge and the check, batches.
const BATCHES: usize = 64;

/// An input to check.
#[derive(Clone, Debug)]
pub(crate) struct TrieInput {
    /// Its `Data.db`.
    pub(crate) data_path: PathBuf,
    /// Uncompressed bytes of its content.
    pub(crate) data_len: u64,
    /// Whether the merge reads it; otherwise its files are only checked against one another.
    pub(crate) is_read: bool,
    /// Tries shared with the merge.
    pub(crate) tries: SharedTries,
}

/// Consecutive events in the data of one input.
#[derive(Debug)]
struct Batch {
    input: usize,
    /// `None` at the end.
    events: Option<TraceBatch>,
}

/// Sending side, used by the merge.
#[derive(Debug)]
pub(crate) struct TrieFeed {
    /// Indices of the inputs by `Data.db` path.
    inputs: HashMap<PathBuf, usize>,
    sender: SyncSender<Batch>,
}

/// Receiving side, used by the check.
#[derive(Debug)]
pub(crate) struct TrieBatches(Receiver<Batch>);

/// Creates the channel for these inputs.
pub(crate) fn channel(inputs: &[TrieInput]) -> (TrieFeed, TrieBatches) {
    let (sender, receiver) = sync_channel(BATCHES);
    let paths = inputs.iter().map(|input| input.data_path.clone());
    let inputs = paths.zip(0..).collect();
    (TrieFeed { inputs, sender }, TrieBatches(receiver))
}

impl TrieFeed {
    /// Returns the trace that sends the partitions of an input; `None` for an input that is not checked.
    pub(crate) fn trace(&self, data_path: &Path) -> Option<Box<dyn InputTrace>> {
        Some(Box::new(FedTrace {
            input: *self.inputs.get(data_path)?,
            sender: self.sender.clone(),
        }))
    }
}

/// Trace that sends the partitions of an input.
#[derive(Debug)]
struct FedTrace {
    input: usize,
    sender: SyncSender<Batch>,
}

impl FedTrace {
    fn send(&self, events: Option<TraceBatch>) {
        let input = self.input;
        // Sending fails only if the check has failed, which stops the merge.
        let _ = self.sender.send(Batch { input, events });
    }
}

impl InputTrace for FedTrace {
    fn of_part(&mut self, _positions: Range<u64>) -> Option<Box<dyn DataTrace>> {
        None
    }

    fn batch(&mut self, batch: TraceBatch) {
        self.send(Some(batch));
    }

    fn end(&mut self) {
        self.send(None);
    }
}

/// The files of one input.
struct Opened {
    version: Version,
    findings: Findings,
    tries: Arc<TrieFiles>,
    types: Vec<CqlType>,
    comparator: ClusteringComparator,
    statistics: Option<Statistics>,
    filter: Option<FilterCheck>,
    digest: Option<u32>,
}

impl Opened {
    fn open(io: &Io, input: &TrieInput, mode: ReadMode) -> Result<Opened> {
        let descriptor = parse_data_name(&input.data_path)?;
        let findings = Findings::new(descriptor.clone(), 100);
        let list = ComponentList::known(&descriptor)?;
        let files = Files::new(io, mode, &descriptor, &findings, list)?;
        let statistics = files.statistics()?;
        let filter = files.filter(fp_chance(statistics.as_ref()))?;
        let filter = filter.map(FilterCheck::new);
        let digest = files.digest()?;
        let tries = files.tries(&input.tries)?;
        drop(files);
        let types = super::clustering_types(statistics.as_ref());
        let comparator = ClusteringComparator::new(&types)?;
        Ok(Opened {
            version: descriptor.version,
            findings,
            tries: tries.unwrap_or_default(),
            types,
            comparator,
            statistics,
            filter,
            digest,
        })
    }
}

/// One input being checked.
struct TrieCheck<'a> {
    opened: &'a Opened,
    scan: TrieScan<'a>,
    filter: Option<FilterCheck>,
    first_key: Option<Vec<u8>>,
    last_key: Vec<u8>,
    /// Deletion of the current partition if it has a row index and none of its rows has arrived yet.
    begun: Option<DeletionTime>,
    data_len: u64,
    /// Start of the previous partition, and sizes of those before it.
    previous: Option<u64>,
    sizes: Option<EstimatedHistogram>,
    blocks: Option<TrieBlockCheck<'a>>,
    is_whole: bool,
}

impl TrieCheck<'_> {
    fn take(&mut self, batch: &Batch) {
        let Some(events) = &batch.events else {
            return self.end();
        };
        // A key or a clustering prefix.
        for (bytes, event) in events.events() {
            match *event {
                TraceEvent::Partition {
                    hash,
                    position,
                    deletion,
                } => {
                    let is_indexed = self.partition(bytes, &hash, position);
                    self.begun = is_indexed.then_some(deletion);
                    self.last_key.clear();
                    self.last_key.extend_from_slice(bytes);
                }
                TraceEvent::Unfiltered { ref at, kind, open } => {
                    self.begin_rows(at.start);
                    if let Some(blocks) = &mut self.blocks {
                        blocks.unfiltered(at.start, kind, bytes, &open);
                    }
                }
                TraceEvent::EndOfPartition(end) => {
                    self.begin_rows(end);
                    if let Some(blocks) = self.blocks.take() {
                        blocks.finish(end);
                    }
                }
            }
        }
    }

    fn begin_rows(&mut self, header_len: u64) {
        if let Some(deletion) = self.begun.take() {
            self.blocks = self
                .scan
                .row_blocks(&self.opened.comparator, header_len, &deletion);
        }
    }

    /// Checks the tries against one another, without the data.
    fn walk(&mut self, cancelled: &AtomicBool) -> Result<()> {
        while self.scan.advance() {
            if cancelled.load(Ordering::Relaxed) {
                return Err(Error::Cancelled);
            }
            self.scan.walk_blocks();
            if let Some(position) = self.scan.entry().map(|entry| entry.position) {
                self.add_size(position);
                self.previous = Some(position);
            }
        }
        self.add_size(self.data_len);
        Ok(())
    }

    /// Adds the size of the previous partition, which ends at position `end` of the data.
    fn add_size(&mut self, end: u64) {
        if let (Some(start), Some(sizes)) = (self.previous, &mut self.sizes) {
            let len = end.saturating_sub(start);
            sizes.add(i64::try_from(len).unwrap_or(i64::MAX));
        }
    }

    fn end(&mut self) {
        self.is_whole = true;
        self.add_size(self.data_len);
        if self.scan.advance()
            && let Some(entry) = self.scan.entry()
        {
            leads_nowhere(&self.opened.findings, entry.place(), entry.position);
        }
    }

    /// Checks the entry of a partition; returns true if it has a row index.
    fn partition(&mut self, key: &[u8], hash: &KeyHash, position: u64) -> bool {
        self.add_size(position);
        self.previous = Some(position);
        if self.first_key.is_none() {
            self.first_key = Some(key.to_vec());
        }
        if let Some(filter) = &mut self.filter {
            filter.key_unnamed(hash);
        }
        if !self.scan.advance() && !self.scan.is_complete() {
            // The damage was reported before.
            return false;
        }
        let found = match self.scan.entry() {
            Some(entry) if entry.position != position => format!("one for {}", entry.position),
            Some(entry) if self.scan.leads_here(key, hash) => return entry.key().is_some(),
            Some(_) => {
                let (place, found) = self.scan.other_key(key);
                self.opened.findings.damage(
                    place,
                    "index.key",
                    format!("{}, the key at position {position}", short_hex(key)),
                    found,
                );
                return false;
            }
            None => format!("{} entries, none for it", self.scan.count()),
        };
        let place = match self.scan.entry() {
            Some(entry) => entry.place(),
            None => Location::of(Component::Partitions),
        };
        self.opened.findings.damage(
            place.in_partition(short_hex(key)),
            "index.entry",
            format!("an entry for the partition at position {position}"),
            found,
        );
        false
    }

    fn finish(&mut self) {
        let Opened {
            findings,
            statistics,
            ..
        } = self.opened;
        if self.is_whole {
            if let Some(first) = &self.first_key {
                self.scan.check_ends(first, &self.last_key);
            }
            if let Some(filter) = &mut self.filter {
                filter.finish(findings, true, fp_chance(statistics.as_ref()));
            }
        }
        let Some(statistics) = statistics else {
            return;
        };
        // The keys in the footer have no reader, and were compared with these.
        let ends = match (self.is_whole, &self.first_key) {
            (true, Some(first)) => Some((&first[..], &self.last_key[..])),
            _ => self.scan.ends(),
        };
        if let Some(ends) = ends {
            same_ends(findings, statistics, Component::Partitions, ends);
            if let Some(sizes) = &self.sizes {
                same_sizes(findings, self.opened.version, statistics, sizes);
            }
        }
        statistics_consistency::consistent(findings, &statistics.stats, &self.opened.comparator);
    }
}

/// Checks the sidecar components of all these inputs while their partitions arrive. Also returns the damage that does
/// not stop a merge.
///
/// # Errors
/// The first damage found that stops a merge, a failed read, or cancellation.
pub(crate) fn check(
    io: &Io,
    inputs: &[TrieInput],
    batches: &TrieBatches,
    mode: ReadMode,
    cancelled: &AtomicBool,
) -> Result<Vec<(SidecarFacts, Vec<Finding>)>> {
    let mut opened = inputs
        .iter()
        .map(|input| Opened::open(io, input, mode))
        .collect::<Result<Vec<_>>>()?;
    let filters: Vec<_> = opened.iter_mut().map(|o| o.filter.take()).collect();
    let result = follow(inputs, &opened, filters, batches, cancelled);
    let mut checked = Vec::with_capacity(inputs.len());
    for opened in opened {
        let ignored = first_damage(opened.findings)?;
        let facts = SidecarFacts {
            places: None,
            digest: opened.digest,
        };
        checked.push((facts, ignored));
    }
    result.map(|()| checked)
}

fn follow(
    inputs: &[TrieInput],
    opened: &[Opened],
    filters: Vec<Option<FilterCheck>>,
    batches: &TrieBatches,
    cancelled: &AtomicBool,
) -> Result<()> {
    let mut checks = Vec::with_capacity(inputs.len());
    for ((input, opened), filter) in inputs.iter().zip(opened).zip(filters) {
        let findings = &opened.findings;
        if findings.stop_merge() {
            return Ok(());
        }
        let data_len = Some(input.data_len);
        let mut check = TrieCheck {
            opened,
            scan: TrieScan::open(findings, &opened.tries, &opened.types, data_len),
            filter,
            first_key: None,
            last_key: Vec::new(),
            begun: None,
            data_len: input.data_len,
            previous: None,
            sizes: opened
                .statistics
                .as_ref()
                .map(|s| s.stats.partition_sizes.empty_like()),
            blocks: None,
            is_whole: false,
        };
        if !input.is_read {
            check.walk(cancelled)?;
        }
        checks.push(check);
    }
    while let Ok(batch) = batches.0.recv() {
        if let Some(check) = checks.get_mut(batch.input) {
            check.take(&batch);
            if check.opened.findings.stop_merge() {
                return Ok(());
            }
        }
    }
    let mut is_whole = true;
    for (check, input) in checks.iter_mut().zip(inputs) {
        check.finish();
        is_whole &= check.is_whole || !input.is_read;
    }
    // The merge ended before it had read everything.
    if !is_whole {
        return Err(Error::Cancelled);
    }
    Ok(())
}
