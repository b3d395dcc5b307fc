//! Cursor over one input: partition by partition and unfiltered by unfiltered, as views over its window.
//!
//! The bytes of the current unfiltered stay in the window until the cursor moves. Data that must outlive the
//! window (the partition key, the previous clustering) is copied into reused buffers. Order and pairing that
//! a merge relies on are checked here, where the position of a violation is known.

use std::path::PathBuf;
use std::sync::Arc;

use compactor_sstable::Component;
use compactor_sstable::Error as FormatError;
use compactor_sstable::data::clustering::{Kind, Prefix, ValueSpan};
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::data::flags;
use compactor_sstable::data::layout::Layout;
use compactor_sstable::data::parse::{Parse, Stop};
use compactor_sstable::data::partition::PartitionHead;
use compactor_sstable::data::row::RowRef;
use compactor_sstable::data::unfiltered::{
    MarkerHead, RowHead, UnfilteredHead, parse_head, parse_static_head,
};
use compactor_sstable::partitioner::{KeyHash, Partitioner};

use crate::error::{Error, Result};
use crate::read::data_trace::DataTrace;
use crate::read::expected_partitions::{CursorRange, ExpectedPartitions};
use crate::read::hex::hex;
use crate::read::key_position_checksum::KeyPositionChecksum;
use crate::read::row_counts::RowCounts;
use crate::read::window::{BlockSource, Window};

mod checks;
mod current;
mod found_rows;
mod previous;
mod trace;

use found_rows::{FoundRow, FoundRows, Wanted};
use previous::PreviousClustering;

/// Element of the partition that the cursor is positioned on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CursorState {
    /// Before the first partition, or after the last byte of one.
    BetweenPartitions,
    /// The static row of the current partition.
    StaticRow(RowHead),
    /// After the partition's header, before its first unfiltered.
    PartitionStart,
    /// A row of the current [`FoundRows`].
    Row,
    /// A range tombstone marker.
    Marker(MarkerHead),
    /// The end byte of the partition.
    PartitionEnd,
}

/// Reads the `Data.db` of one input.
#[derive(Debug)]
pub struct Cursor<S> {
    window: Window<S>,
    layout: Arc<Layout>,
    path: PathBuf,
    state: CursorState,
    key: Vec<u8>,
    partitioner: Partitioner,
    hash: KeyHash,
    deletion: DeletionTime,
    partition_position: u64,
    has_partition: bool,
    spans: Vec<ValueSpan>,
    /// Memcomparable prefix of the current clustering, if it has one.
    memcomparable_prefix: Option<u64>,
    found: FoundRows,
    wanted: Wanted,
    previous: PreviousClustering,
    open: DeletionTime,
    rows: RowCounts,
    static_is_empty: bool,
    places: KeyPositionChecksum,
    expected: Option<ExpectedPartitions>,
    range: Option<CursorRange>,
    first_key: Vec<u8>,
    trace: Option<Box<dyn DataTrace>>,
    /// Whether the trace listens to the rows of the current partition.
    is_traced: bool,
    /// Position in the partition up to which unfiltereds need not be reported to the trace.
    traced_from: u64,
}

impl<S: BlockSource> Cursor<S> {
    /// Returns a cursor before the first partition. `path` names `Data.db` in errors.
    pub fn new(
        source: S,
        layout: Arc<Layout>,
        partitioner: Partitioner,
        path: PathBuf,
    ) -> Cursor<S> {
        Cursor {
            window: Window::new(source),
            layout,
            path,
            state: CursorState::BetweenPartitions,
            key: Vec::new(),
            partitioner,
            hash: KeyHash::default(),
            deletion: DeletionTime::LIVE,
            partition_position: 0,
            has_partition: false,
            spans: Vec::new(),
            memcomparable_prefix: None,
            found: FoundRows::default(),
            wanted: Wanted {
                memcomparable_prefixes: true,
                plain: false,
            },
            previous: PreviousClustering::default(),
            open: DeletionTime::LIVE,
            rows: RowCounts::default(),
            static_is_empty: false,
            places: KeyPositionChecksum::default(),
            expected: None,
            range: None,
            first_key: Vec::new(),
            trace: None,
            is_traced: false,
            traced_from: 0,
        }
    }

    /// Returns a cursor before the first partition of a range, which begins `lead_len` bytes after the start
    /// of the source's first block. The cursor ends where the source ends. Consecutive ranges together read
    /// exactly the partitions that one cursor over the file would read, or one of them fails: each range must
    /// begin where the previous one ends, and a partition outside the range's bounds is refused.
    #[must_use]
    pub fn in_range(mut self, lead_len: usize, range: CursorRange) -> Cursor<S> {
        self.window.start_at(range.start, lead_len);
        self.range = Some(range);
        self
    }

    /// Notifies `trace` of every partition and unfiltered from now on.
    pub fn set_trace(&mut self, trace: Box<dyn DataTrace>) {
        self.trace = Some(trace);
    }

    /// Checksum over keys and positions of the partitions read so far.
    pub fn places(&self) -> KeyPositionChecksum {
        self.places
    }

    /// Counts of the rows read so far.
    pub fn rows(&self) -> RowCounts {
        self.rows
    }

    /// Validates the partitions against `expected`; a mismatch is an error.
    pub fn expect(&mut self, expected: ExpectedPartitions) {
        self.expected = Some(expected);
    }

    /// Layout of the input.
    #[inline]
    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// Key of the first partition read.
    pub(crate) fn first_key(&self) -> &[u8] {
        &self.first_key
    }

    /// Moves from the end of the current partition to the next. Returns false at the end of the file.
    ///
    /// # Errors
    /// Damage, or a partition that does not sort after the previous one.
    pub fn next_partition(&mut self) -> Result<bool> {
        if self.state == CursorState::PartitionEnd {
            self.window.consume(1);
            self.state = CursorState::BetweenPartitions;
        }
        debug_assert_eq!(self.state, CursorState::BetweenPartitions);
        if self.window.bytes().is_empty() && !self.window.refill()? {
            self.check_end()?;
            if let Some(trace) = &mut self.trace {
                trace.end();
            }
            self.has_partition = false;
            return Ok(false);
        }
        self.partition_position = self.window.position();
        let version = self.layout.version;
        let head = self.parse("partition.head", |bytes, _, _, _| {
            PartitionHead::parse(bytes, version)
        })?;
        let bytes = self.window.bytes();
        let key = head.key(bytes);
        let hash = self.partitioner.hash_key(key);
        self.check_partition_deletion(&head.deletion)?;
        if self.has_partition && (self.hash.position(), &self.key[..]) >= (hash.position(), key) {
            return Err(self.out_of_order_partition(key));
        }
        self.key.clear();
        self.key.extend_from_slice(key);
        self.hash = hash;
        self.deletion = head.deletion;
        self.has_partition = true;
        self.places.add(hash, self.partition_position);
        if let Some(trace) = &mut self.trace {
            let position = self.partition_position;
            self.is_traced = trace.partition(&self.key, hash, position, self.deletion);
            self.traced_from = 0;
        }
        if self.places.partitions() == 1 {
            self.check_key("first", |e| e.first_key.as_deref())?;
            self.first_key.clone_from(&self.key);
            let from = self.range.as_ref().and_then(|range| range.from);
            if from.is_some_and(|from| hash.position() < from) {
                return Err(self.outside_range("after", "before"));
            }
        }
        self.previous.kind = None;
        self.previous.memcomparable_prefix = None;
        self.open = DeletionTime::LIVE;
        self.window.consume(head.len);
        self.state = CursorState::PartitionStart;
        if self.layout.has_static() {
            let head = self.parse("static_row", |bytes, layout, remaining, _| {
                parse_static_head(bytes, layout, remaining)
            })?;
            self.state = CursorState::StaticRow(head);
            // A static row that cannot be parsed is reported when it is read.
            let is_empty = |row: RowRef<'_>| row.start().is_ok_and(|start| start.is_empty());
            self.static_is_empty = self.static_row().is_some_and(is_empty);
            if self.static_is_empty {
                self.rows.empty_static_rows += 1
            } else {
                self.rows.rows += 1
            }
        }
        Ok(true)
    }

    /// Accepts the next partition whatever its order, including the one that was just refused.
    pub fn allow_any_order(&mut self) {
        self.has_partition = false;
    }

    /// Moves to the next unfiltered, or to the end of the partition and stays there.
    #[inline(always)]
    pub fn next_unfiltered(&mut self) -> Result<()> {
        if self.is_on_row()
            && let Some((len, next)) = self.found.advance()
        {
            self.memcomparable_prefix = next.memcomparable_prefix;
            let next_len = next.head.len;
            self.window.consume(len);
            self.rows.rows += 1;
            self.notify_trace(next_len);
            return Ok(());
        }
        self.pass_unfiltered()
    }

    /// Moves to the next unfiltered, which has not been parsed yet.
    fn pass_unfiltered(&mut self) -> Result<()> {
        match &self.state {
            CursorState::StaticRow(head) => self.window.consume(head.len),
            CursorState::Row => {
                // The following bytes may be damaged: until they are parsed there is no current unfiltered.
                self.state = CursorState::PartitionStart;
                if let Some(&FoundRow { head, .. }) = self.found.current() {
                    let spans = self.found.spans(self.layout.clustering.len());
                    self.spans.clear();
                    self.spans.extend_from_slice(spans);
                    self.remember(Kind::Clustering, head.clustering_end);
                    self.window.consume(head.len);
                }
            }
            CursorState::Marker(head) => {
                let (kind, len) = (head.kind, head.len);
                self.remember(kind, len);
                self.window.consume(len);
            }
            CursorState::PartitionStart => {}
            CursorState::PartitionEnd | CursorState::BetweenPartitions => return Ok(()),
        }
        if self.move_to_found_row()? {
            return Ok(());
        }
        match self.window.bytes().first() {
            Some(first) if first & flags::END_OF_PARTITION != 0 => self.move_to_end(),
            _ => self.move_to_next(),
        }
    }

    /// Copies the clustering of the current unfiltered, which ends at `end`, before the cursor moves on.
    #[inline(always)]
    fn remember(&mut self, kind: Kind, end: usize) {
        let bytes = self.window.bytes();
        self.previous
            .keep(kind, self.memcomparable_prefix, &mut self.spans, bytes, end);
    }

    /// Moves to the next row. Returns false if there is none, or it is not entirely in the window.
    fn move_to_found_row(&mut self) -> Result<bool> {
        let bytes = self.window.bytes();
        let found = self.found.find(bytes, &self.layout, self.wanted);
        let Some(&FoundRow {
            head,
            memcomparable_prefix,
            ..
        }) = found
        else {
            return Ok(false);
        };
        self.rows.rows += 1;
        self.state = CursorState::Row;
        self.memcomparable_prefix = memcomparable_prefix;
        self.check_order(Kind::Clustering)?;
        self.notify_trace(head.len);
        Ok(true)
    }

    /// Moves to the next unfiltered where it is a marker, or a row that is not entirely in the window yet.
    fn move_to_next(&mut self) -> Result<()> {
        let head = self.parse("unfiltered", parse_head)?;
        match head {
            // It is entirely in the window now.
            UnfilteredHead::Row(_) => {
                if self.move_to_found_row()? {
                    Ok(())
                } else {
                    Err(Error::internal("a row that was found is not in the window"))
                }
            }
            UnfilteredHead::Marker(head) => {
                self.state = CursorState::Marker(head);
                self.memcomparable_prefix = self.prefix_of_marker(head.kind);
                self.check_order(head.kind)?;
                self.check_pairing(&head)?;
                self.notify_trace(head.len);
                Ok(())
            }
            UnfilteredHead::EndOfPartition => self.move_to_end(),
        }
    }

    fn prefix_of_marker(&self, kind: Kind) -> Option<u64> {
        if !self.wanted.memcomparable_prefixes {
            return None;
        }
        self.layout.clustering.memcomparable_prefix(Prefix {
            kind,
            base: self.window.bytes(),
            spans: &self.spans,
        })
    }

    fn move_to_end(&mut self) -> Result<()> {
        self.state = CursorState::PartitionEnd;
        self.memcomparable_prefix = None;
        if !self.open.is_live() {
            return Err(self.corrupt(
                "partition.end",
                "a bound that closes the open range tombstone",
                "the end of the partition",
            ));
        }
        if let Some(trace) = &mut self.trace
            && self.is_traced
        {
            trace.end_partition(self.window.position() - self.partition_position);
        }
        Ok(())
    }

    /// Sets whether each row is checked for being a
    /// [`PlainRow`](compactor_sstable::data::plain_row::PlainRow).
    pub(crate) fn detect_plain_rows(&mut self, is_wanted: bool) {
        self.wanted.plain = is_wanted;
    }

    /// Disables memcomparable prefixes: clusterings are compared with those of another order.
    pub(crate) fn without_memcomparable_prefixes(&mut self) {
        self.wanted.memcomparable_prefixes = false;
    }

    /// Adds file, position and partition to an error that the parser of the current row reported.
    #[cold]
    pub fn locate_error(&self, error: FormatError) -> Error {
        Error::Format(
            error
                .at_base(self.window.position())
                .with_file(&self.path, Component::Data)
                .with_partition(|| hex(&self.key)),
        )
    }

    /// Returns the memory of the window to its source, after the last partition.
    pub(crate) fn release(&mut self) {
        self.found = FoundRows::default();
        self.window.release();
    }

    /// Source of the window, for its counters.
    pub fn source(&self) -> &S {
        self.window.source()
    }

    #[inline]
    fn parse<T>(
        &mut self,
        structure: &'static str,
        parser: impl Fn(&[u8], &Layout, u64, &mut Vec<ValueSpan>) -> Parse<T>,
    ) -> Result<T> {
        loop {
            let remaining = self.window.file_remaining();
            match parser(
                self.window.bytes(),
                &self.layout,
                remaining,
                &mut self.spans,
            ) {
                Ok(value) => return Ok(value),
                Err(Stop::Corrupt(error)) => return Err(self.locate_error(error)),
                Err(Stop::Incomplete) => {
                    if !self.window.refill()? {
                        let left = self.window.bytes().len();
                        let end = match &self.range {
                            Some(CursorRange { below: Some(_), .. }) => {
                                "another partition, according to the partition index,"
                            }
                            _ => "the end of the file",
                        };
                        return Err(self.corrupt(
                            structure,
                            "more bytes",
                            &format!("{end} after {left} bytes"),
                        ));
                    }
                }
            }
        }
    }
}
