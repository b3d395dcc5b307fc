//! First pass: reads all readable data and determines what is kept.
//!
//! `Data.db` is read in stretches, each from a partition or a block of one up to the end or to damage. Data before
//! the damage is kept, and open range tombstones are closed there: a deletion must not cover more than it did. After a
//! stretch, [`super::resume`] finds the start of the next.
//!
//! Source: `SortedTableScrubber`, `BigTableScrubber.scrubInternal`, which drop the whole partition.

use std::sync::Arc;

use compactor_engine::merge::Observer;
use compactor_engine::read::{Cursor, RowRef};

use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::data::layout::Layout;
use compactor_sstable::statistics::{CollectorSettings, MetadataCollector, SerializationHeader};
use compactor_sstable::{Corruption, Error as FormatError};

use super::PARTITIONER;
use super::current::Current;
use super::index_walk::IndexWalk;
use super::loss::{LossKind, Losses};
use super::runs::Runs;
use super::search::Search;
use super::splice::{Piece, Spliced};
use super::stored::Stored;
use super::synthesis::{self, Name};
use crate::cancellation::check_cancelled;
use crate::verify::chunks::CheckedData;
use crate::verify::finding::Findings;
use crate::verify::rows::RowCheck;
use crate::{Error, Result};

/// Unfiltereds between two checks for cancellation.
const UNFILTEREDS_PER_CHECK: u64 = 1 << 14;
/// One in this many partitions is preceded by a check for cancellation.
const PARTITIONS_PER_CHECK: u64 = 32;
/// Maximum number of stretches, each of which may read a part of the file again: the rest is lost.
const MAX_STRETCHES: u64 = 20_000;

/// Result of the scan.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Counts {
    /// Partitions read from their first to their last byte.
    pub(super) whole: u64,
    /// Partitions that are partly kept.
    pub(super) cut: u64,
    /// Number of partitions out of order.
    pub(super) out_of_order: u64,
    /// Number of partitions with rows out of order.
    pub(super) with_rows_out_of_order: u64,
    /// Rows kept.
    pub(super) rows: u64,
}

/// Start of a stretch.
#[derive(Debug)]
pub(super) struct Start {
    /// Bytes prepended to the data read.
    pub(super) prefix: Vec<u8>,
    /// Start of reading.
    pub(super) position: u64,
    /// The prefix is already in the run: the current partition continues.
    pub(super) continues: bool,
    /// Key in the index.
    pub(super) key: Option<Vec<u8>>,
}

impl Start {
    pub(super) fn at(position: u64, key: Option<Vec<u8>>) -> Start {
        Start {
            prefix: Vec::new(),
            position,
            continues: false,
            key,
        }
    }

    /// Position in the data of a position in the stretch.
    fn absolute(&self, position: u64) -> u64 {
        self.position
            .wrapping_add(position)
            .wrapping_sub(self.prefix.len() as u64)
    }
}

/// Damage.
#[derive(Debug)]
pub(super) struct Stop {
    /// Start of the loss.
    pub(super) position: u64,
    /// Nothing before this can be read.
    pub(super) from: u64,
    pub(super) by_chunk: bool,
    pub(super) reason: String,
    /// A key that only the index confirms could not be read.
    pub(super) is_key_unreadable: bool,
}

/// Reason why a partition, or the stretch that contains it, ended.
enum Flow {
    Next,
    End,
    Stopped(Stop),
}

/// Reads the data once.
#[derive(Debug)]
pub(super) struct Scan<'a> {
    pub(super) stored: &'a Stored,
    pub(super) layout: &'a Arc<Layout>,
    pub(super) header: &'a SerializationHeader,
    /// Whether values are validated against their types.
    validate: bool,
    pub(super) index: Option<IndexWalk<'a>>,
    pub(super) runs: Runs,
    pub(super) losses: Losses,
    pub(super) counts: Counts,
    pub(super) current: Option<Current>,
    pub(super) search: Search<'a>,
    /// Findings of the checks of one row.
    scratch: Findings,
    pub(super) collector: MetadataCollector,
    unfiltereds: u64,
    /// End of what was read: after damage, reading may resume before it.
    read_bytes: u64,
}

type DataCursor<'s, 'a> = Cursor<Spliced<'a, &'s mut CheckedData<'a>>>;

impl<'a> Scan<'a> {
    pub(super) fn new(
        stored: &'a Stored,
        index: Option<IndexWalk<'a>>,
        losses: Losses,
        validate: bool,
    ) -> Scan<'a> {
        Scan {
            stored,
            layout: &stored.layout,
            header: stored.input.header(),
            validate,
            index,
            runs: Runs::default(),
            losses,
            counts: Counts::default(),
            current: None,
            search: Search::new(stored),
            scratch: Findings::new(stored.input.descriptor.clone(), 1),
            collector: MetadataCollector::new(CollectorSettings::default()),
            unfiltereds: 0,
            read_bytes: 0,
        }
    }

    /// Reads everything that can be read.
    pub(super) fn run(
        &mut self,
        data: &mut CheckedData<'a>,
        observer: &mut dyn Observer,
    ) -> Result<()> {
        let mut start = Start::at(0, None);
        let mut stretches = 0;
        loop {
            stretches += 1;
            match self.stretch(data, &start, observer)? {
                Flow::Next | Flow::End => return Ok(()),
                Flow::Stopped(mut stop) => {
                    if stop.by_chunk {
                        let damaged = data.take_damaged().unwrap_or(stop.from..stop.from);
                        stop.from = stop.from.max(damaged.end);
                        let offset = self.losses.file_offset(damaged.start).unwrap_or_default();
                        stop.reason = format!("the chunk at offset {offset} of Data.db is damaged");
                        if offset >= self.stored.file.len() {
                            stop.from = data.data_len();
                            stop.reason = "Data.db ends before".to_owned();
                        }
                    }
                    if stretches >= MAX_STRETCHES {
                        stop.from = data.data_len();
                        stop.reason += ", and there are too many damaged places to go on";
                    }
                    match self.resume(data, &stop, observer)? {
                        Some(next) => start = next,
                        None => return Ok(()),
                    }
                    // The digest includes chunks that are skipped.
                    while data.is_before(start.position) && data.skip_chunk()? {
                        check_cancelled(observer)?;
                    }
                }
            }
        }
    }

    fn stretch(
        &mut self,
        data: &mut CheckedData<'a>,
        start: &Start,
        observer: &mut dyn Observer,
    ) -> Result<Flow> {
        let pieces = [
            Piece::New(start.prefix.clone()),
            Piece::Old(start.position..data.data_len()),
        ];
        let path = self.stored.data_path();
        let source = Spliced::new(data, pieces);
        let mut cursor = Cursor::new(source, Arc::clone(self.layout), PARTITIONER, path);
        let mut is_first = true;
        loop {
            match self.partition(&mut cursor, start, is_first, observer)? {
                Flow::Next => is_first = false,
                flow => return Ok(flow),
            }
        }
    }

    fn partition(
        &mut self,
        cursor: &mut DataCursor<'_, 'a>,
        start: &Start,
        is_first: bool,
        observer: &mut dyn Observer,
    ) -> Result<Flow> {
        // Not for each: several scrubs share the lock of the observer.
        if (self.counts.whole + self.counts.cut).is_multiple_of(PARTITIONS_PER_CHECK) {
            check_cancelled(observer)?;
        }
        let head_before = cursor.places();
        // After a partition the cursor is positioned at its end byte.
        let begin = cursor.position() + u64::from(cursor.has_partition());
        let mut found = damage(cursor.next_partition())?;
        if let Err(c) = &found
            && c.structure == "partition.key"
        {
            cursor.allow_any_order();
            found = damage(cursor.next_partition())?;
        }
        if let Ok(false) = found {
            return Ok(Flow::End);
        }
        let position = start.absolute(begin);
        let is_retried = is_first && !start.prefix.is_empty();
        let in_head = |reason: String, by_chunk: bool, is_key_unreadable: bool| {
            Ok(Flow::Stopped(Stop {
                position,
                from: position + 1,
                by_chunk,
                reason,
                is_key_unreadable: is_key_unreadable && !is_retried,
            }))
        };
        let is_unchecked = !self.stored.is_checksummed();
        if let Err(c) = &found
            && cursor.places() == head_before
        {
            return in_head(describe(c), c.structure == "chunk", is_unchecked);
        }
        let key = cursor.key();
        if let Some(promised) = start.key.as_deref().filter(|_| is_first)
            && promised != key
            && !is_unchecked
        {
            return in_head(
                "another partition than Index.db has there".to_owned(),
                false,
                false,
            );
        }
        if let Err(error) = self.header.key_type.cql_type.validate(key) {
            let reason = format!("the partition key is invalid: {error}");
            return in_head(reason, false, is_unchecked);
        }
        if is_unchecked && !is_retried && self.is_denied_by_index(key, position)? {
            return in_head(
                "another key than Index.db has there".to_owned(),
                false,
                true,
            );
        }
        let head_end = cursor.position();
        if !(is_first && start.continues) {
            self.begin_partition(cursor.key(), cursor.key_hash(), false);
            let deletion = cursor.partition_deletion();
            let checked = self.check_values(|check| {
                check.deletion("partition.deletion", &deletion, position);
            });
            match checked {
                Ok(()) => self.keep_stretch(start, begin..head_end),
                Err(reason) => {
                    let live = DeletionTime::LIVE;
                    self.insert(synthesis::key_and_deletion(
                        self.layout,
                        cursor.key(),
                        &live,
                    ));
                    let reason = format!("{reason}; what it deleted may come back");
                    self.lose(LossKind::PartitionDeletion, position..position, &reason);
                }
            }
        }
        match found {
            Ok(_) => self.static_row(cursor, start, is_first && start.continues),
            Err(c) => {
                // Only the static row comes between the head and the first row.
                self.insert_empty_static_row();
                return Ok(Flow::Stopped(Stop {
                    position: start.absolute(head_end),
                    from: start.absolute(head_end) + 1,
                    by_chunk: c.structure == "chunk",
                    reason: describe(&c),
                    is_key_unreadable: false,
                }));
            }
        }
        self.unfiltereds(cursor, start, observer)
    }

    /// Keeps bytes of a stretch; those in its prefix are synthesized.
    fn keep_stretch(&mut self, start: &Start, range: std::ops::Range<u64>) {
        let prefix_len = start.prefix.len() as u64;
        let made = range.start.min(prefix_len)..range.end.min(prefix_len);
        if let Some(bytes) = start.prefix.get(made.start as usize..made.end as usize) {
            self.insert(bytes.to_vec());
        }
        let from = range.start.max(prefix_len);
        if from < range.end {
            self.keep(start.absolute(from)..start.absolute(range.end));
        }
    }

    fn static_row(&mut self, cursor: &DataCursor<'_, 'a>, start: &Start, is_kept: bool) {
        let Some(row) = cursor.static_row() else {
            return;
        };
        let len = row.head.len as u64;
        if is_kept {
            return;
        }
        let range = cursor.position()..cursor.position() + len;
        match self.check_row(&row, start.absolute(range.start)) {
            Ok(holds_something) => {
                self.counts.rows += u64::from(holds_something);
                self.keep_stretch(start, range);
            }
            Err(reason) => {
                self.insert_empty_static_row();
                let range = start.absolute(range.start)..start.absolute(range.end);
                self.lose(LossKind::StaticRow, range, &reason);
            }
        }
    }

    /// Rows and markers up to the end of the partition.
    fn unfiltereds(
        &mut self,
        cursor: &mut DataCursor<'_, 'a>,
        start: &Start,
        observer: &mut dyn Observer,
    ) -> Result<Flow> {
        let prefix_len = start.prefix.len() as u64;
        let mut name = Name::default();
        // The order of rows before and after damage has not been checked.
        let mut is_checked = !start.continues;
        loop {
            if let Err(c) = damage(cursor.next_unfiltered())? {
                match c.structure {
                    // The row before may be the one out of order, and it was not kept.
                    "unfiltered.clustering" => is_checked = false,
                    // The open deletion is known here as well, and more reliably after damage.
                    "marker" | "marker.close_deletion" | "partition.end" => {}
                    structure => {
                        let position = start.absolute(cursor.position());
                        return Ok(Flow::Stopped(Stop {
                            position,
                            from: position + 1,
                            by_chunk: structure == "chunk",
                            reason: describe(&c),
                            is_key_unreadable: false,
                        }));
                    }
                }
            }
            if cursor.position() < prefix_len {
                // The marker that was put before the block.
                continue;
            }
            let at = start.absolute(cursor.position());
            let Some(prefix) = cursor.clustering() else {
                self.end_partition(at);
                return Ok(Flow::Next);
            };
            let bytes = prefix.base;
            if let Some(row) = cursor.row() {
                let end = at + row.head.len as u64;
                name.set(prefix.kind, row.clustering_bytes());
                let checked = self
                    .check_row(&row, at)
                    .and_then(|_| self.check_values(|check| check.clustering(&prefix, at)));
                match checked {
                    Ok(()) => {
                        if !is_checked && !self.sorts_after_last(&name) {
                            self.break_order(Some(&name));
                        }
                        is_checked = true;
                        self.keep_row(at..end, &name);
                    }
                    Err(reason) => self.lose(LossKind::Row, at..end, &reason),
                }
            } else if let Some(marker) = cursor.marker() {
                let end = at + marker.len as u64;
                name.set(prefix.kind, &bytes[marker.bound_start..marker.bound_end]);
                if !is_checked && !self.sorts_after_last(&name) {
                    self.break_order(None);
                }
                is_checked = true;
                let checked = self.check_values(|check| {
                    for deletion in [&marker.close, &marker.open] {
                        check.deletion("marker.deletion", deletion, at);
                    }
                });
                self.keep_marker(at..end, &name, &marker.close, &marker.open, checked);
            }
            self.unfiltereds += 1;
            if self.unfiltereds.is_multiple_of(UNFILTEREDS_PER_CHECK) {
                check_cancelled(observer)?;
                self.read_bytes = self.read_bytes.max(at);
                observer.progress(self.read_bytes, self.counts.rows, self.counts.whole);
            }
        }
    }

    /// Reads a row to its end; true if it is not empty. The error is the reason why it is invalid.
    fn check_row(&mut self, row: &RowRef<'_>, at: u64) -> Result<bool, String> {
        let mut check = RowCheck::new(&self.scratch, &self.header.clustering_types);
        let read = check.row(row, at, &mut self.collector);
        let holds_something = read.map_err(|error| match error {
            FormatError::Corrupt(c) => describe(&c),
            other => other.to_string(),
        });
        self.take_found()?;
        holds_something
    }

    fn check_values(&mut self, check: impl FnOnce(&RowCheck<'_>)) -> Result<(), String> {
        check(&RowCheck::new(&self.scratch, &self.header.clustering_types));
        self.take_found()
    }

    /// Findings of the validation of values, if it is enabled.
    fn take_found(&mut self) -> Result<(), String> {
        if self.scratch.damages() == 0 {
            return Ok(());
        }
        let scratch = Findings::new(self.stored.input.descriptor.clone(), 1);
        let (found, _, _) = std::mem::replace(&mut self.scratch, scratch).finish();
        match found.first() {
            Some(f) if self.validate => Err(format!(
                "{}: expected {}, found {}",
                f.structure, f.expected, f.found
            )),
            _ => Ok(()),
        }
    }

    /// True if the index has another key at `position`.
    fn is_denied_by_index(&mut self, key: &[u8], position: u64) -> Result<bool> {
        let Some(index) = &mut self.index else {
            return Ok(false);
        };
        index.seek(position)?;
        let here = index.here().filter(|here| here.position == position);
        Ok(here.is_some_and(|here| here.key != key))
    }
}

pub(super) fn describe(c: &Corruption) -> String {
    format!(
        "{}: expected {}, found {}",
        c.structure, c.expected, c.found
    )
}

/// Separates damage from errors that end the scrub.
fn damage<T>(result: Result<T>) -> Result<Result<T, Box<Corruption>>> {
    match result {
        Ok(value) => Ok(Ok(value)),
        Err(Error::Format(FormatError::Corrupt(c))) => Ok(Err(c)),
        Err(other) => Err(other),
    }
}
