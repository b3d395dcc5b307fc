//! Checks of `Partitions.db`, `Rows.db` and `Filter.db` of BTI inputs against the partitions that a merge reads.
//!
//! The tries do not hold complete keys, so little can be checked without the data. The merge sends the keys and rows
//! it reads in batches to a concurrent thread, which looks up each key and validates each block of rows.

use std::cell::OnceCell;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use compactor_engine::input::{SharedTries, SidecarFacts, TrieFiles, parse_data_name};
use compactor_engine::read::{DataTrace, InputTrace, TraceBatch, TraceEvent};
use compactor_io::{Io, ReadMode};
use compactor_sstable::Component;
use compactor_sstable::data::clustering::ClusteringComparator;
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::partitioner::{KeyHash, Partitioner};
use compactor_sstable::statistics::{EstimatedHistogram, Statistics};
use compactor_sstable::types::CqlType;

use super::bti_index::{TrieBlockCheck, TrieScan};
use super::files::{Files, fp_chance};
use super::finding::{Finding, Findings, Location};
use super::keys::FilterCheck;
use super::lockstep::leads_nowhere;
use super::short_hex;
use super::sidecar_components::{first_damage, same_ends, same_sizes, stop_at_damage};
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
    findings: Findings,
    tries: Arc<TrieFiles>,
    types: Vec<CqlType>,
    comparator: ClusteringComparator,
    statistics: Option<Statistics>,
    partitioner: Option<Partitioner>,
    digest: Option<u32>,
}

impl Opened {
    /// Also returns the filter, which the keys that are read are added to.
    fn open(io: &Io, input: &TrieInput, mode: ReadMode) -> Result<(Opened, Option<FilterCheck>)> {
        let descriptor = parse_data_name(&input.data_path)?;
        let findings = Findings::new(descriptor.clone(), 100);
        let files = Files::new(io, mode, &descriptor, &findings)?;
        let statistics = files.statistics()?;
        let filter = files.filter(fp_chance(statistics.as_ref()))?;
        let digest = files.digest()?;
        let tries = files.tries(&input.tries)?;
        drop(files);
        let partitioner = statistics.as_ref().map(|statistics| &statistics.validation);
        let partitioner = partitioner.map(|v| Partitioner::from_class_name(&v.partitioner));
        let types = super::clustering_types(statistics.as_ref());
        let comparator = ClusteringComparator::new(&types)?;
        let opened = Opened {
            findings,
            tries: tries.unwrap_or_default(),
            types,
            comparator,
            partitioner: partitioner.transpose()?,
            statistics,
            digest,
        };
        Ok((opened, filter.map(FilterCheck::new)))
    }

    /// Returns the facts, and the damage that does not stop a merge.
    ///
    /// # Errors
    /// Damage that does.
    fn close(self) -> Result<CheckedTries> {
        let facts = SidecarFacts {
            places: None,
            digest: self.digest,
        };
        Ok((facts, first_damage(self.findings)?))
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
    /// # Errors
    /// Damage that stops a merge.
    fn take(&mut self, events: &TraceBatch) -> Result<()> {
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
        stop_at_damage(&self.opened.findings)
    }

    fn begin_rows(&mut self, header_len: u64) {
        if let Some(deletion) = self.begun.take() {
            self.blocks = self
                .scan
                .row_blocks(&self.opened.comparator, header_len, &deletion);
        }
    }

    /// Checks the tries against one another, without the data, and the filter against the keys that they have: those
    /// of partitions with a row index, the first and the last.
    fn walk(&mut self, cancelled: &AtomicBool) -> Result<()> {
        while self.scan.advance() {
            if cancelled.load(Ordering::Relaxed) {
                return Err(Error::Cancelled);
            }
            self.scan.walk_blocks();
            let Some(entry) = self.scan.entry() else {
                continue;
            };
            if let Some(key) = entry.key() {
                filter_key(self.opened, &mut self.filter, key);
            }
            let position = entry.position;
            self.add_size(position);
            self.previous = Some(position);
        }
        self.add_size(self.data_len);
        if let Some((first, last)) = self.scan.ends() {
            filter_key(self.opened, &mut self.filter, first);
            filter_key(self.opened, &mut self.filter, last);
            if let Some(filter) = &mut self.filter {
                filter.density(&self.opened.findings, self.scan.count());
            }
        }
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
                same_sizes(findings, statistics, sizes);
            }
        }
        statistics_consistency::consistent(findings, &statistics.stats, &self.opened.comparator);
    }
}

fn filter_key(opened: &Opened, filter: &mut Option<FilterCheck>, key: &[u8]) {
    if let (Some(filter), Some(partitioner)) = (filter, opened.partitioner) {
        let hash = partitioner.hash_key(key);
        filter.key(&opened.findings, &hash, || short_hex(key));
    }
}

/// Facts of an input's sidecar components, and the damage that does not stop a merge.
type CheckedTries = (SidecarFacts, Vec<Finding>);

/// Time at which files of inputs that are merged are read into memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// All at the start, when the merge uses the same tries to find where it can be split.
    AtOnce,
    /// Files of an input at its first partition, kept until no input is being read: a pass reads only some of
    /// thousands of inputs.
    WithFirstPartition,
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
    opening: Opening,
    cancelled: &AtomicBool,
) -> Result<Vec<CheckedTries>> {
    let mut following = Following {
        io,
        inputs,
        mode,
        checked: vec![None; inputs.len()],
    };
    let (read, unread): (Vec<_>, Vec<_>) =
        (0..inputs.len()).partition(|&index| inputs[index].is_read);
    for index in unread {
        following.unread(index, cancelled)?;
    }
    let mut opened_first = match opening {
        Opening::AtOnce => read,
        Opening::WithFirstPartition => Vec::new(),
    };
    while following.some(std::mem::take(&mut opened_first), batches)? {}
    let checked: Option<Vec<_>> = following.checked.into_iter().collect();
    // The merge may have ended before it had read everything.
    checked.ok_or(Error::Cancelled)
}

/// The check of inputs, of which some are open at a time.
struct Following<'a> {
    io: &'a Io,
    inputs: &'a [TrieInput],
    mode: ReadMode,
    /// `None` until the input has been read to its end.
    checked: Vec<Option<CheckedTries>>,
}

impl Following<'_> {
    /// Checks the files of an input that is not read against one another.
    fn unread(&mut self, index: usize, cancelled: &AtomicBool) -> Result<()> {
        let files = OnceCell::new();
        let mut check = self.open(index, &files)?;
        check.walk(cancelled)?;
        check.finish();
        drop(check);
        let opened = files.into_inner();
        self.checked[index] = opened.map(|opened| opened.close()).transpose()?;
        Ok(())
    }

    /// Opens these inputs, and others as their first partitions arrive, until all that are open have ended. Returns
    /// false if no more partitions will arrive.
    fn some(&mut self, opened_first: Vec<usize>, batches: &TrieBatches) -> Result<bool> {
        let mut files: Vec<_> = self.inputs.iter().map(|_| OnceCell::new()).collect();
        let mut checks = BTreeMap::new();
        for index in opened_first {
            checks.insert(index, self.open(index, &files[index])?);
        }
        let mut ended = Vec::new();
        let mut is_closed = false;
        while ended.is_empty() || ended.len() < checks.len() {
            let Ok(Batch { input, events }) = batches.0.recv() else {
                is_closed = true;
                break;
            };
            let check = match checks.entry(input) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(unknown) => unknown.insert(self.open(input, &files[input])?),
            };
            match events {
                Some(events) => check.take(&events)?,
                None => {
                    check.end();
                    ended.push(input);
                }
            }
        }
        for check in checks.values_mut() {
            check.finish();
            stop_at_damage(&check.opened.findings)?;
        }
        drop(checks);
        for index in ended {
            let opened = files[index].take();
            self.checked[index] = opened.map(|opened| opened.close()).transpose()?;
        }
        Ok(!is_closed)
    }

    /// Opens an input; its files remain in `files`, which are empty.
    fn open<'o>(&self, index: usize, files: &'o OnceCell<Box<Opened>>) -> Result<TrieCheck<'o>> {
        let input = &self.inputs[index];
        let (opened, filter) = Opened::open(self.io, input, self.mode)?;
        let opened = files.get_or_init(|| Box::new(opened));
        let findings = &opened.findings;
        let check = TrieCheck {
            opened,
            scan: TrieScan::open(findings, &opened.tries, &opened.types, Some(input.data_len)),
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
        stop_at_damage(findings)?;
        Ok(check)
    }
}
