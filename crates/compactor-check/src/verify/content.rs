//! Checks of the content of `Data.db`, partition by partition, in lockstep with `Index.db`.
//!
//! After damage, reading continues at the next partition listed in the index, so that every damaged range is found.

use std::sync::Arc;

use compactor_engine::merge::Observer;
use compactor_engine::read::Cursor;
use compactor_io::IoError;
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::data::layout::Layout;
use compactor_sstable::partitioner::KeyHash;
use compactor_sstable::partitioner::{Partitioner, Position};
use compactor_sstable::statistics::{CollectorSettings, MetadataCollector, SerializationHeader};
use compactor_sstable::{Component, Error as FormatError, vint};

use super::chunks::{CheckedData, Segment};
use super::finding::{Findings, Location};
use super::lockstep::Lockstep;
use super::partition_scan::{PartitionScan, RowBlocks};
use super::rows::RowCheck;
use super::{short_class, short_hex};
use crate::cancellation::check_cancelled;
use crate::{Error, Result};

/// Maximum number of restarts after damage; then only checksums are checked. Each restart may read part of the file
/// again.
const MAX_RESTARTS: u64 = 1000;
/// Number of unfiltereds between two checks for cancellation.
const UNFILTEREDS_PER_CHECK: u64 = 1 << 14;

/// Facts collected from the content.
pub(super) struct Content {
    pub(super) collector: MetadataCollector,
    pub(super) partitions: u64,
    pub(super) rows: u64,
    pub(super) markers: u64,
    pub(super) cells: u64,
    /// Minimum TTL of expiring cells and rows.
    pub(super) least_ttl: Option<i32>,
    /// Rows with neither liveness nor deletion nor columns.
    pub(super) empty_rows: u64,
    /// Partitions of a table with static columns whose static row is empty.
    pub(super) empty_static_rows: u64,
    /// Number of partitions in the index that were not read because of damage.
    pub(super) partitions_skipped: u64,
    /// Whether every partition was read to its end.
    pub(super) is_complete: bool,
    pub(super) first_key: Vec<u8>,
    pub(super) last_key: Vec<u8>,
}

/// Reads the content once.
pub(super) struct ContentCheck<'a> {
    findings: &'a Findings,
    layout: Arc<Layout>,
    header: &'a SerializationHeader,
    step: Lockstep<'a>,
    rows: RowCheck<'a>,
    content: Content,
    partitioner: Partitioner,
    previous_position: Position,
    unfiltereds: u64,
    /// Whether some partitions were not read to their end.
    is_interrupted: bool,
}

/// Reason why a cursor was abandoned.
enum Stop {
    /// The content is damaged, and a finding was reported.
    Damaged {
        /// Start of the partition.
        start: u64,
        /// A chunk could not be decoded.
        by_chunk: bool,
    },
    Failed(crate::Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Failed(error)
    }
}

impl From<IoError> for Stop {
    fn from(error: IoError) -> Stop {
        Stop::Failed(error.into())
    }
}

type DataCursor<'s, 'a> = Cursor<Segment<'s, 'a>>;

impl<'a> ContentCheck<'a> {
    pub(super) fn new(
        findings: &'a Findings,
        layout: Arc<Layout>,
        partitioner: Partitioner,
        header: &'a SerializationHeader,
        step: Lockstep<'a>,
    ) -> ContentCheck<'a> {
        ContentCheck {
            findings,
            layout,
            header,
            step,
            rows: RowCheck::new(findings, &header.clustering_types),
            content: Content {
                collector: MetadataCollector::new(CollectorSettings::default()),
                partitions: 0,
                rows: 0,
                markers: 0,
                cells: 0,
                least_ttl: None,
                empty_rows: 0,
                empty_static_rows: 0,
                partitions_skipped: 0,
                is_complete: true,
                first_key: Vec::new(),
                last_key: Vec::new(),
            },
            partitioner,
            previous_position: Position::default(),
            unfiltereds: 0,
            is_interrupted: false,
        }
    }

    /// Reads all content that is readable. The caller checks the remaining chunks.
    pub(super) fn run(
        mut self,
        data: &mut CheckedData<'a>,
        observer: &mut dyn Observer,
    ) -> Result<(Content, Lockstep<'a>)> {
        self.step.advance()?;
        let path = self.findings.path(Component::Data);
        let mut base = 0;
        let mut restarts = 0;
        loop {
            let segment = data.segment(base);
            let layout = Arc::clone(&self.layout);
            let mut cursor = Cursor::new(segment, layout, self.partitioner, path.clone());
            let stopped = loop {
                match self.partition(&mut cursor, base, observer) {
                    Ok(true) => {}
                    Ok(false) => break None,
                    Err(Stop::Damaged { start, by_chunk }) => break Some((start, by_chunk)),
                    Err(Stop::Failed(error)) => return Err(error),
                }
            };
            drop(cursor);
            let Some((start, by_chunk)) = stopped else {
                break;
            };
            self.content.is_complete = false;
            self.is_interrupted = true;
            restarts += 1;
            let chunk_end = data
                .take_damaged()
                .filter(|_| by_chunk)
                .map_or(0, |range| range.end);
            let from = chunk_end.max(start + 1);
            match self.step.skip_to(from, data.data_len(), observer)? {
                Some(next) if restarts <= MAX_RESTARTS => base = next,
                _ => {
                    let rest = data.data_len().saturating_sub(from);
                    if rest > 0 {
                        self.findings.note(
                            Location::position(from),
                            "data.rest",
                            "an entry in Index.db from which to continue after the damage",
                            format!("none: up to {rest} bytes were checked by checksum only"),
                        );
                    }
                    break;
                }
            }
            while data.is_before(base) && data.skip_chunk()? {
                check_cancelled(observer)?;
            }
        }
        self.step.finish(self.is_interrupted, observer)?;
        self.content.cells = self.rows.cells;
        self.content.least_ttl = self.rows.least_ttl;
        self.content.partitions_skipped = self.step.skipped;
        Ok((self.content, self.step))
    }

    /// Reads one partition; false at the end of the data.
    fn partition(
        &mut self,
        cursor: &mut DataCursor<'_, '_>,
        base: u64,
        observer: &mut dyn Observer,
    ) -> Result<bool, Stop> {
        check_cancelled(observer)?;
        // After a partition the cursor is positioned at its end byte.
        let start = base + cursor.position() + u64::from(cursor.has_partition());
        self.rows.partition.clear();
        match cursor.next_partition() {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(error) => return Err(self.stop(error, base, start)),
        }
        let start = base + cursor.partition_position();
        let (key, hash) = (cursor.key().to_vec(), cursor.key_hash());
        let key_type = &self.header.key_type.cql_type;
        self.rows.partition = key_type.describe_key(&key);
        self.key(&key, &hash, start);
        let partition = &self.rows.partition;
        let is_indexed = self.step.find(&key, &hash, start, partition, observer)?;
        let deletion = cursor.partition_deletion();
        self.rows.deletion("partition.deletion", &deletion, start);
        let mut rows = 0;
        if let Some(row) = cursor.static_row() {
            let at = base + cursor.position();
            match self.rows.row(&row, at, &mut self.content.collector) {
                Ok(true) => rows += 1,
                Ok(false) => self.content.empty_static_rows += 1,
                Err(error) => self.report(cursor.locate_error(error), base, start)?,
            }
            self.previous_size(row.bytes, row.head.clustering_end, 0, at);
        }
        let index = self.step.index.take();
        let end = self.unfiltereds(
            cursor,
            base,
            start,
            index.as_ref().filter(|_| is_indexed),
            observer,
        );
        self.step.index = index;
        let (more_rows, end) = end?;
        rows += more_rows;
        let content = &mut self.content;
        content.rows += rows;
        content.partitions += 1;
        content.collector.update_partition_deletion(&deletion);
        content.collector.add_key(&key);
        content.collector.add_partition(end + 1 - start);
        if is_indexed {
            self.step.advance()?;
        }
        observer.progress(end + 1, self.content.rows, self.content.partitions);
        Ok(true)
    }

    /// Reads the rows and markers of the partition. Returns the number of rows and the position of the end byte.
    fn unfiltereds(
        &mut self,
        cursor: &mut DataCursor<'_, '_>,
        base: u64,
        start: u64,
        mut index: Option<&PartitionScan<'a>>,
        observer: &mut dyn Observer,
    ) -> Result<(u64, u64), Stop> {
        let layout = Arc::clone(&self.layout);
        let comparator = &layout.clustering;
        let deletion = cursor.partition_deletion();
        let mut blocks: Option<RowBlocks<'_>> = None;
        let mut open = DeletionTime::LIVE;
        let mut rows = 0;
        // Offset of the previous unfiltered; the first one counts from the partition's start.
        let mut previous = 0;
        loop {
            if let Err(error) = cursor.next_unfiltered() {
                return Err(self.stop(error, base, start));
            }
            let at = base + cursor.position();
            if let Some(index) = index.take() {
                let (findings, version) = (self.findings, layout.version);
                let header_len = at - start;
                blocks = index.row_blocks(findings, version, comparator, header_len, &deletion);
            }
            let Some(prefix) = cursor.clustering() else {
                if let Some(blocks) = blocks {
                    blocks.finish(at - start);
                }
                return Ok((rows, at));
            };
            self.rows.clustering(&prefix, at);
            self.content.collector.update_clustering(comparator, prefix);
            let bytes = prefix.base;
            let (name, len) = if let Some(row) = cursor.row() {
                match self.rows.row(&row, at, &mut self.content.collector) {
                    Ok(true) => rows += 1,
                    Ok(false) => {
                        self.content.empty_rows += 1;
                        self.findings.note(
                            Location::position(at).in_partition(self.rows.partition.clone()),
                            "row",
                            "something in the row",
                            "neither liveness nor deletion nor columns",
                        );
                    }
                    Err(error) => self.report(cursor.locate_error(error), base, start)?,
                }
                self.previous_size(bytes, row.head.clustering_end, at - start - previous, at);
                (
                    row.head.clustering_start..row.head.clustering_end,
                    row.head.len,
                )
            } else if let Some(marker) = cursor.marker() {
                self.content.markers += 1;
                for deletion in [&marker.close, &marker.open] {
                    self.rows.deletion("marker.deletion", deletion, at);
                    self.content.collector.update_deletion_time(deletion);
                }
                open = marker.open;
                self.previous_size(bytes, marker.bound_end, at - start - previous, at);
                (marker.bound_start..marker.bound_end, marker.len)
            } else {
                return Ok((rows, at));
            };
            if let (Some(blocks), Some(name)) = (&mut blocks, bytes.get(name)) {
                let at = at - start;
                blocks.unfiltered(at..at + len as u64, prefix.kind, name, &open);
            }
            previous = at - start;
            self.unfiltereds += 1;
            if self.unfiltereds.is_multiple_of(UNFILTEREDS_PER_CHECK) {
                check_cancelled(observer)?;
                observer.progress(at, self.content.rows + rows, self.content.partitions);
            }
        }
    }

    /// Checks the size of the previous unfiltered, which no reader uses: the cursor compaction of 6.0-alpha2 writes
    /// 0.
    fn previous_size(&self, bytes: &[u8], sizes_at: usize, wanted: u64, position: u64) {
        let mut pos = sizes_at;
        let size = vint::read_unsigned(bytes, &mut pos);
        if let (Some(_), Some(found)) = (size, vint::read_unsigned(bytes, &mut pos))
            && found != wanted
            && found != 0
        {
            self.findings.note(
                Location::position(position).in_partition(self.rows.partition.clone()),
                "unfiltered.previous_size",
                format!("{wanted} or 0"),
                found.to_string(),
            );
        }
    }

    /// Checks a key, its order after the previous one, and the filter.
    fn key(&mut self, key: &[u8], hash: &KeyHash, start: u64) {
        let place = || Location::position(start).in_partition(self.rows.partition.clone());
        let key_type = &self.header.key_type.cql_type;
        if let Err(error) = key_type.validate(key) {
            self.findings.ignored_by_merge(
                place(),
                "partition.key",
                format!("a {}", short_class(key_type)),
                format!("{}: {error}", short_hex(key)),
            );
        }
        let content = &mut self.content;
        if content.partitions == 0 {
            content.first_key = key.to_vec();
        } else if (hash.position(), key) <= (self.previous_position, &content.last_key) {
            // Within a stretch without damage the cursor has checked this.
            self.findings.damage(
                place(),
                "partition.key",
                format!("a partition after {}", short_hex(&content.last_key)),
                format!(
                    "token {} key {}",
                    self.partitioner.token_text(key),
                    short_hex(key)
                ),
            );
        }
        self.previous_position = hash.position();
        content.last_key.clear();
        content.last_key.extend_from_slice(key);
        self.step.key(hash, &self.rows.partition);
    }

    /// Classifies the error that stopped the cursor.
    fn stop(&mut self, error: Error, base: u64, start: u64) -> Stop {
        match error {
            // A finding about the chunk has been made by the reader.
            Error::Format(FormatError::Corrupt(c)) if c.structure == "chunk" => Stop::Damaged {
                start,
                by_chunk: true,
            },
            error => match self.report(error, base, start) {
                Ok(()) => Stop::Damaged {
                    start,
                    by_chunk: false,
                },
                Err(stop) => stop,
            },
        }
    }

    /// Records an error of the cursor or row parser as a finding.
    fn report(&mut self, error: Error, base: u64, start: u64) -> Result<(), Stop> {
        let Error::Format(FormatError::Corrupt(c)) = error else {
            return Err(Stop::Failed(error));
        };
        self.content.is_complete = false;
        let mut place = Location::position(base.saturating_add(c.offset));
        if !self.rows.partition.is_empty() {
            place = place.in_partition(self.rows.partition.clone());
        }
        let expected = format!("{} (partition at {start})", c.expected);
        self.findings.damage(place, c.structure, expected, c.found);
        Ok(())
    }
}
