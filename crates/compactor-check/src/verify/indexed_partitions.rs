//! Checks of the promoted indexes of BIG inputs against the rows that a merge reads.
//!
//! Names, deletions and positions in a promoted index can only be validated against the rows, which a merge reads
//! once. A thread reads ahead of it in each `Index.db` and queues the entries that have a promoted index; the merge
//! takes them when it reaches their partitions. Any other partition costs one comparison.
//!
//! They cannot deadlock: the thread waits only while the queues of all inputs are full, and the merge only for an
//! input whose queue is empty.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use compactor_engine::input::parse_data_name;
use compactor_engine::read::{DataTrace, InputTrace, TraceBatch};
use compactor_io::{Io, ReadMode, ReadaheadOptions};
use compactor_sstable::Component;
use compactor_sstable::data::clustering::Kind;
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::data::layout::Layout;
use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::partitioner::{KeyHash, Partitioner};

use super::finding::{Finding, Findings, Location};
use super::index::{Entry, IndexScan};
use super::lockstep::leads_nowhere;
use super::promoted::{BlockCheck, Promoted};
use super::short_hex;
use super::sidecar_components::first_damage;
use super::stream::ByteStream;
use crate::{Error, Result};

/// Number of entries read of one input before switching to another.
const ENTRIES_PER_TURN: usize = 1024;
/// Concurrent read requests per `Index.db`: all inputs are read at once, and the index of wide partitions is short.
const REQUESTS: usize = 2;
/// Readahead of an input in requests: some in flight, others waiting for the merge.
const PARTS_AHEAD: usize = 6;
/// Page size to which requests are rounded.
const PAGE_BYTES: usize = 4096;
/// Interval at which the waiting thread checks for cancellation.
const PATIENCE: Duration = Duration::from_millis(20);

/// An input whose partitions may have promoted indexes.
#[derive(Clone, Debug)]
pub(crate) struct IndexedInput {
    /// Its `Data.db`.
    pub(crate) data_path: PathBuf,
    /// Uncompressed bytes of its content.
    pub(crate) data_len: u64,
    pub(crate) layout: Arc<Layout>,
    pub(crate) partitioner: Partitioner,
}

/// Entries read ahead of the merge, for every input.
#[derive(Debug)]
struct Ahead {
    state: Mutex<State>,
    /// Bytes of a request.
    request_bytes: usize,
    /// Signalled when entries were read.
    read: Condvar,
    /// Signalled when entries were taken, or the merge has ended.
    taken: Condvar,
}

#[derive(Debug)]
struct State {
    inputs: Vec<Waiting>,
    /// Damage found by the merge that stops it.
    damage: Option<crate::Error>,
    /// Damage found by the merge that does not stop it.
    ignored: Vec<Finding>,
    is_reader_gone: bool,
}

#[derive(Debug, Default)]
struct Waiting {
    entries: VecDeque<Entry>,
    bytes: usize,
    /// Entries with a promoted index have been queued for all partitions that begin before this position.
    known_below: u64,
    merge: MergeState,
    /// Partitions that begin before this have been merged, and so have later parts: their ends by their starts.
    merged_below: u64,
    merged: BTreeMap<u64, u64>,
}

impl Waiting {
    /// Removes the entries of a part of the data.
    fn take(&mut self, part: &Range<u64>) -> VecDeque<Entry> {
        let first = self
            .entries
            .partition_point(|entry| entry.position < part.start);
        let end = self
            .entries
            .partition_point(|entry| entry.position < part.end);
        let taken: VecDeque<Entry> = self.entries.drain(first..end.max(first)).collect();
        self.bytes -= taken
            .iter()
            .map(Entry::held_bytes)
            .sum::<usize>()
            .min(self.bytes);
        taken
    }

    /// Marks a part as merged and drops its entries. Those without a partition are detected by the hash over all
    /// entries.
    fn end_part(&mut self, part: &Range<u64>) {
        self.merged.insert(part.start, part.end);
        while let Some(end) = self.merged.remove(&self.merged_below) {
            self.merged_below = end;
        }
        let merged = 0..self.merged_below;
        drop(self.take(&merged));
    }
}

/// Progress of the merge in an input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum MergeState {
    #[default]
    Going,
    AtEnd,
    /// The merge ended early.
    Gone,
}

impl Ahead {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_merge(&self, input: usize, merge: MergeState) {
        if let Some(waiting) = self.lock().inputs.get_mut(input)
            && waiting.merge == MergeState::Going
        {
            waiting.merge = merge;
            waiting.entries.clear();
        }
        self.taken.notify_all();
    }
}

/// Side of the merge.
#[derive(Debug)]
pub(crate) struct IndexedFeed {
    ahead: Arc<Ahead>,
    inputs: Vec<(IndexedInput, bool)>,
}

/// Side of the thread that reads ahead.
#[derive(Debug)]
pub(crate) struct IndexReader {
    ahead: Arc<Ahead>,
}

/// Connects both sides for these inputs. `ahead_bytes` is the readahead of each; a single index may be longer.
pub(crate) fn connect(inputs: &[IndexedInput], ahead_bytes: usize) -> (IndexedFeed, IndexReader) {
    let ahead = Arc::new(Ahead {
        state: Mutex::new(State {
            inputs: inputs.iter().map(|_| Waiting::default()).collect(),
            damage: None,
            ignored: Vec::new(),
            is_reader_gone: false,
        }),
        request_bytes: (ahead_bytes / PARTS_AHEAD / PAGE_BYTES).max(1) * PAGE_BYTES,
        read: Condvar::new(),
        taken: Condvar::new(),
    });
    let feed = IndexedFeed {
        ahead: Arc::clone(&ahead),
        inputs: inputs.iter().map(|input| (input.clone(), false)).collect(),
    };
    (feed, IndexReader { ahead })
}

impl IndexedFeed {
    /// Returns the trace of the partitions of an input; `None` for an input that is not checked.
    pub(crate) fn trace(&mut self, data_path: &Path) -> Option<Box<dyn InputTrace>> {
        let mut inputs = self.inputs.iter_mut().enumerate();
        let (number, (input, is_traced)) = inputs.find(|(_, (i, _))| i.data_path == data_path)?;
        let descriptor = parse_data_name(data_path).ok()?;
        *is_traced = true;
        Some(Box::new(IndexedTrace {
            ahead: Arc::clone(&self.ahead),
            input: number,
            layout: Arc::clone(&input.layout),
            descriptor,
        }))
    }
}

impl Drop for IndexedFeed {
    fn drop(&mut self) {
        for (input, (_, is_traced)) in self.inputs.iter().enumerate() {
            if !is_traced {
                self.ahead.set_merge(input, MergeState::Gone);
            }
        }
    }
}

/// Validates the promoted indexes of one input against its rows, in parts.
#[derive(Debug)]
struct IndexedTrace {
    ahead: Arc<Ahead>,
    input: usize,
    layout: Arc<Layout>,
    descriptor: Descriptor,
}

/// Validates those of the partitions that begin in a part of the input.
#[derive(Debug)]
struct IndexedPart {
    ahead: Arc<Ahead>,
    input: usize,
    layout: Arc<Layout>,
    descriptor: Descriptor,
    findings: Findings,
    entries: VecDeque<Entry>,
    known_below: u64,
    current: Option<Current>,
    positions: Range<u64>,
}

/// Partition that the merge is reading.
#[derive(Debug)]
struct Current {
    entry: Entry,
    deletion: DeletionTime,
    /// Created at the first row.
    check: Option<BlockCheck>,
}

impl IndexedPart {
    /// Returns the next queued entry if its partition begins at or before `position`.
    fn entry_up_to(&mut self, position: u64) -> Option<Entry> {
        loop {
            match self.entries.front() {
                Some(entry) if entry.position > position => return None,
                Some(_) => return self.entries.pop_front(),
                None if position < self.known_below => return None,
                None => self.take(position),
            }
        }
    }

    /// Takes the queued entries, and waits until the index has been read up to the partition at `position`.
    fn take(&mut self, position: u64) {
        let mut state = self.ahead.lock();
        loop {
            let is_reader_gone = state.is_reader_gone;
            let Some(waiting) = state.inputs.get_mut(self.input) else {
                return;
            };
            if is_reader_gone {
                waiting.known_below = u64::MAX;
            }
            let entries = waiting.take(&self.positions);
            if !entries.is_empty() || position < waiting.known_below {
                self.entries = entries;
                self.known_below = waiting.known_below;
                drop(state);
                return self.ahead.taken.notify_all();
            }
            let waited = self.ahead.read.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Reports the first damage, whether it stops the merge or not.
    fn report(&mut self) {
        if self.findings.damages() == 0 {
            return;
        }
        let next = Findings::new(self.descriptor.clone(), 100);
        let findings = std::mem::replace(&mut self.findings, next);
        let mut state = self.ahead.lock();
        match first_damage(findings) {
            Ok(ignored) => state.ignored.extend(ignored),
            Err(error) => {
                state.damage.get_or_insert(error);
            }
        }
        drop(state);
        self.ahead.taken.notify_all();
        self.current = None;
        self.entries.clear();
        self.known_below = u64::MAX;
    }
}

impl Current {
    fn promoted<'a>(&'a self, findings: &'a Findings, layout: &'a Layout) -> Promoted<'a> {
        Promoted {
            findings,
            entry: &self.entry,
            version: layout.version,
            comparator: &layout.clustering,
        }
    }
}

impl DataTrace for IndexedPart {
    fn partition(
        &mut self,
        key: &[u8],
        _hash: KeyHash,
        position: u64,
        deletion: DeletionTime,
    ) -> bool {
        self.current = None;
        if let Some(entry) = self.entry_up_to(position) {
            let place = Location::offset(Component::Index, entry.offset);
            if entry.position != position {
                leads_nowhere(&self.findings, place, entry.position);
            } else if entry.key != key {
                let expected = format!("{}, the key at position {position}", short_hex(key));
                let found = short_hex(&entry.key);
                self.findings.damage(place, "index.key", expected, found);
            }
            self.current = Some(Current {
                entry,
                deletion,
                check: None,
            });
            self.report();
        }
        self.current.is_some()
    }

    fn unfiltered(&mut self, at: Range<u64>, kind: Kind, name: &[u8], open: DeletionTime) -> u64 {
        let Some(current) = &mut self.current else {
            return u64::MAX;
        };
        let mut check = current.check.take();
        let promoted = current.promoted(&self.findings, &self.layout);
        let next_at = check
            .get_or_insert_with(|| BlockCheck::open(promoted, at.start, &current.deletion))
            .unfiltered(promoted, at, kind, name, &open);
        current.check = check;
        self.report();
        next_at
    }

    fn end_partition(&mut self, end: u64) {
        if let Some(mut current) = self.current.take() {
            let check = current.check.take();
            let promoted = current.promoted(&self.findings, &self.layout);
            check
                .unwrap_or_else(|| BlockCheck::open(promoted, end, &current.deletion))
                .finish(promoted, end);
            self.report();
        }
    }

    fn end(&mut self) {
        if let Some(waiting) = self.ahead.lock().inputs.get_mut(self.input) {
            waiting.end_part(&self.positions);
        }
        self.ahead.taken.notify_all();
    }
}

impl InputTrace for IndexedTrace {
    fn of_part(&mut self, positions: Range<u64>) -> Option<Box<dyn DataTrace>> {
        Some(Box::new(IndexedPart {
            ahead: Arc::clone(&self.ahead),
            input: self.input,
            layout: Arc::clone(&self.layout),
            findings: Findings::new(self.descriptor.clone(), 100),
            descriptor: self.descriptor.clone(),
            entries: VecDeque::new(),
            known_below: 0,
            current: None,
            positions,
        }))
    }

    /// Each part has its own listener.
    fn batch(&mut self, _batch: TraceBatch) {}

    fn end(&mut self) {
        // Entries without a partition are detected by the hash over all of them.
        self.ahead.set_merge(self.input, MergeState::AtEnd);
    }
}

impl Drop for IndexedTrace {
    fn drop(&mut self) {
        self.ahead.set_merge(self.input, MergeState::Gone);
    }
}

impl Drop for IndexReader {
    fn drop(&mut self) {
        self.ahead.lock().is_reader_gone = true;
        self.ahead.read.notify_all();
    }
}

impl IndexReader {
    /// Reads the `Index.db` of all these inputs ahead of the merge, within its limit, until the merge is done.
    ///
    /// Returns the damage that does not stop the merge.
    ///
    /// # Errors
    /// The first damage found here or by the merge that stops it, a failed read, or cancellation, also if the merge
    /// ended early.
    pub(crate) fn run(
        self,
        io: &Io,
        inputs: &[IndexedInput],
        mode: ReadMode,
        cancelled: &AtomicBool,
    ) -> Result<Vec<Finding>> {
        let mut findings = Vec::with_capacity(inputs.len());
        for input in inputs {
            findings.push(Findings::new(parse_data_name(&input.data_path)?, 100));
        }
        let read = self.read(io, inputs, &findings, mode, cancelled);
        let mut ignored = Vec::new();
        for findings in findings {
            ignored.extend(first_damage(findings)?);
        }
        read?;
        ignored.append(&mut self.ahead.lock().ignored);
        Ok(ignored)
    }

    fn read(
        &self,
        io: &Io,
        inputs: &[IndexedInput],
        findings: &[Findings],
        mode: ReadMode,
        cancelled: &AtomicBool,
    ) -> Result<()> {
        let mut scans = Vec::with_capacity(inputs.len());
        for (input, findings) in inputs.iter().zip(findings) {
            let file = io.open(&findings.path(Component::Index), mode)?;
            let readahead = ReadaheadOptions {
                request_bytes: self.ahead.request_bytes,
                depth: REQUESTS,
            };
            let stream = ByteStream::with_readahead(&file, 0, readahead);
            let data_len = Some(input.data_len);
            let scan = IndexScan::over(findings, &file, stream, data_len, input.partitioner, None);
            scans.push(Some((scan, file)));
        }
        while self.has_more(&scans, cancelled)? {
            for (number, slot) in scans.iter_mut().enumerate() {
                let Some((scan, file)) = slot else { continue };
                if cancelled.load(Ordering::Relaxed) {
                    return Err(Error::Cancelled);
                }
                if !self.has_room(number) {
                    continue;
                }
                let is_at_end = self.turn(number, scan)?;
                if findings.get(number).is_some_and(Findings::stop_merge) {
                    return Ok(());
                }
                if is_at_end {
                    file.evict();
                    *slot = None;
                }
            }
        }
        Ok(())
    }

    /// Waits until some input may be read further; false once the merge has reached the end of all.
    fn has_more<T>(&self, scans: &[Option<T>], cancelled: &AtomicBool) -> Result<bool> {
        let mut state = self.ahead.lock();
        loop {
            if let Some(damage) = state.damage.take() {
                return Err(damage);
            }
            let is_gone = state.inputs.iter().any(|w| w.merge == MergeState::Gone);
            if is_gone || cancelled.load(Ordering::Relaxed) {
                return Err(Error::Cancelled);
            }
            let mut inputs = state.inputs.iter().zip(scans);
            if inputs.any(|(waiting, scan)| scan.is_some() && self.has_room_in(waiting)) {
                return Ok(true);
            }
            // Remaining entries belong to no partition; the check of the whole index reports them.
            if state.inputs.iter().all(|w| w.merge == MergeState::AtEnd) {
                return Ok(false);
            }
            let waited = self.ahead.taken.wait_timeout(state, PATIENCE);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn has_room(&self, input: usize) -> bool {
        let state = self.ahead.lock();
        let waiting = state.inputs.get(input);
        waiting.is_some_and(|waiting| self.has_room_in(waiting))
    }

    fn has_room_in(&self, waiting: &Waiting) -> bool {
        waiting.merge == MergeState::Going && waiting.bytes < self.waiting_bytes()
    }

    /// Returns the maximum bytes of promoted indexes of an input that may wait for the merge.
    fn waiting_bytes(&self) -> usize {
        self.ahead.request_bytes * (PARTS_AHEAD - REQUESTS)
    }

    /// Reads some entries of one input; true at the end.
    fn turn(&self, input: usize, scan: &mut IndexScan<'_>) -> Result<bool> {
        let mut entries = VecDeque::new();
        let (mut bytes, mut known_below) = (0, 0);
        for _ in 0..ENTRIES_PER_TURN {
            if bytes >= self.waiting_bytes() {
                break;
            }
            if !scan.advance()? {
                known_below = u64::MAX;
                break;
            }
            let Some(entry) = scan.entry() else { break };
            known_below = entry.position.saturating_add(1);
            if !entry.promoted.is_empty() {
                bytes += entry.held_bytes();
                entries.push_back(scan.take_entry());
            }
        }
        if let Some(waiting) = self.ahead.lock().inputs.get_mut(input)
            && waiting.merge == MergeState::Going
        {
            waiting.entries.append(&mut entries);
            waiting.bytes += bytes;
            waiting.known_below = known_below;
            let merged = 0..waiting.merged_below;
            drop(waiting.take(&merged));
        }
        self.ahead.read.notify_all();
        Ok(known_below == u64::MAX)
    }
}
