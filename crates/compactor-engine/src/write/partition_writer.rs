//! Serialization of partitions: appends rows and markers to blocks, and collects index entries and
//! statistics.
//!
//! Positions are uncompressed, so nothing here waits for compression.
//!
//! Source: `SortedTablePartitionWriter`, `BigFormatPartitionWriter`, `MetadataCollector`.

use std::sync::Arc;

use compactor_sstable::data::clustering::{Kind, ValueSpan};
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::data::flags;
use compactor_sstable::data::layout::Layout;
use compactor_sstable::partitioner::KeyHash;
use compactor_sstable::statistics::collector::MetadataCollector;

use crate::error::{Error, Result};
use crate::write::index_builder::IndexBuilder;
use crate::write::partition_sink::PartitionSink;

mod rows;

/// Writer of partitions.
#[derive(Debug)]
pub struct PartitionWriter<O> {
    layout: Arc<Layout>,
    output: O,
    collector: MetadataCollector,
    index: IndexBuilder,

    /// Bytes that have not been submitted, and the position of the first of them.
    out: Vec<u8>,
    out_position: u64,

    key: Vec<u8>,
    hash: KeyHash,
    deletion: DeletionTime,
    start: u64,
    header_len: u64,
    previous: u64,
    unfiltered_count: u64,
    static_is_empty: bool,

    open_marker: DeletionTime,
    /// Whether a range tombstone of the partition has a timestamp before 1970.
    has_early_range: bool,
    /// The last clustering, in `IndexInfo` form.
    last: Vec<u8>,
    /// Position of the last clustering in `out`, until it is copied to `last`.
    last_in_out: Option<Name>,
    /// Position in the partition up to which unfiltereds need not be added to the index.
    indexed_from: u64,
    /// Whether the last unfiltered was added to the index.
    last_is_indexed: bool,
    partition_first: Vec<u8>,
    spans: Vec<ValueSpan>,

    /// Whether partitions without content are written.
    keeps_empty: bool,
    /// Whether the collector has recorded a row of a table without clustering columns.
    has_noted_row: bool,
    partitions: u64,
}

impl<O: PartitionSink> PartitionWriter<O> {
    /// Creates a writer of partitions with this layout. Their keys are not added to the `collector`.
    ///
    /// # Errors
    /// Those of the first block's buffer.
    pub fn new(
        layout: Arc<Layout>,
        mut output: O,
        collector: MetadataCollector,
        index: IndexBuilder,
    ) -> Result<PartitionWriter<O>> {
        let out = output.take_buffer()?;
        Ok(PartitionWriter {
            layout,
            output,
            collector,
            index,
            out,
            out_position: 0,
            key: Vec::new(),
            hash: KeyHash::default(),
            deletion: DeletionTime::LIVE,
            start: 0,
            header_len: 0,
            previous: 0,
            unfiltered_count: 0,
            static_is_empty: true,
            open_marker: DeletionTime::LIVE,
            has_early_range: false,
            last: Vec::new(),
            last_in_out: None,
            indexed_from: 0,
            last_is_indexed: true,
            partition_first: Vec::new(),
            spans: Vec::new(),
            keeps_empty: false,
            has_noted_row: false,
            partitions: 0,
        })
    }

    /// Sets whether partitions without content are written: key, live deletion and end.
    #[must_use]
    pub fn keeping_empty_partitions(mut self, keeps_empty: bool) -> Self {
        self.keeps_empty = keeps_empty;
        self
    }

    /// Number of rows that the collector has counted, including non-empty static rows.
    pub fn rows(&self) -> u64 {
        self.collector.total_rows() as u64
    }

    /// Number of partitions written.
    pub fn partitions(&self) -> u64 {
        self.partitions
    }

    /// Uncompressed bytes written.
    pub fn position(&self) -> u64 {
        self.out_position + self.out.len() as u64
    }

    /// Starts a partition. If the header has static columns, the static row must follow:
    /// [`PartitionWriter::add_row`] or [`PartitionWriter::add_empty_static_row`].
    pub fn start_partition(&mut self, key: &[u8], hash: KeyHash, deletion: DeletionTime) {
        self.start = self.position();
        self.key.clear();
        self.key.extend_from_slice(key);
        self.hash = hash;
        self.deletion = deletion;
        // Before those of the rows, as in Cassandra: a full histogram depends on the order. A partition that is not
        // written has none.
        self.collector.update_partition_deletion(&deletion);
        self.out
            .extend_from_slice(&(key.len() as u16).to_be_bytes());
        self.out.extend_from_slice(key);
        deletion.write(&mut self.out, self.layout.version);
        self.header_len = self.position() - self.start;
        self.previous = 0;
        self.unfiltered_count = 0;
        self.static_is_empty = true;
        self.open_marker = DeletionTime::LIVE;
        self.has_early_range = false;
        self.last_in_out = None;
        self.indexed_from = 0;
        self.last_is_indexed = true;
    }

    /// Writes an empty static row.
    pub fn add_empty_static_row(&mut self) {
        self.layout.put_empty_static_row(&mut self.out);
        self.header_len = self.position() - self.start;
    }

    /// Writes a range tombstone marker; `bound` is its serialized kind, count and values.
    ///
    /// # Errors
    /// Those of a full block.
    pub fn add_marker(
        &mut self,
        kind: Kind,
        bound: &[u8],
        close: &DeletionTime,
        open: &DeletionTime,
    ) -> Result<()> {
        let begin = self.out.len();
        let previous_size = self.position() - self.start - self.previous;
        let out = &mut self.out;
        self.layout
            .put_marker(out, kind, bound, close, open, previous_size);
        self.collector.update_deletion_time(close);
        self.collector.update_deletion_time(open);
        self.open_marker = *open;
        self.has_early_range |= !open.is_live() && open.marked_for_delete_at < 0;
        // The kind is the first byte of the bound.
        self.end_unfiltered(
            begin,
            Name {
                kind,
                start: begin + 2,
                end: begin + 1 + bound.len(),
            },
        )
    }

    /// Ends the partition. Returns false, with nothing written, if it was empty and such partitions are not kept.
    ///
    /// # Errors
    /// Those of a full block or of the index; refused if the version's index cannot represent the partition.
    pub fn end_partition(&mut self) -> Result<bool> {
        let has_content =
            !self.deletion.is_live() || !self.static_is_empty || self.unfiltered_count > 0;
        if !has_content && !self.keeps_empty {
            // No block can have been submitted since the partition began.
            let len = (self.start - self.out_position) as usize;
            self.out.truncate(len);
            return Ok(false);
        }
        let end = self.position() - self.start;
        self.out.push(flags::END_OF_PARTITION);
        if self.unfiltered_count > 0 {
            self.save_last();
            if !self.last_is_indexed
                && let Some((&kind, body)) = self.last.split_first()
                && let Some(kind) = Kind::from_ordinal(kind)
            {
                self.index
                    .add_unfiltered(self.previous, end, kind, body, &self.open_marker)?;
            }
            self.note_clustering(true);
            if self.unfiltered_count > 1 {
                self.note_clustering(false);
            }
        }
        let rows_are_indexed = self.index.end_partition(
            (&self.key, self.hash),
            (self.start, end + 1),
            self.header_len,
            self.deletion,
        )?;
        let version = self.layout.version;
        if self.has_early_range && rows_are_indexed && version.has_uint_deletion_time() {
            // A range tombstone may be open at the boundary of two index blocks, where the sign of its
            // timestamp would mean that there is none: Cassandra writes that and cannot read it.
            return Err(Error::Refused(format!(
                "wide partition {} has a range tombstone with a timestamp before 1970, which the \
                 index of SSTables of version {version} cannot hold: write version nb",
                crate::read::hex::hex(&self.key)
            )));
        }
        self.collector.add_partition(end + 1);
        self.partitions += 1;
        self.flush_full_blocks()?;
        Ok(true)
    }

    /// Submits the last block and returns output and statistics.
    pub fn finish(mut self) -> (O, MetadataCollector) {
        let last = std::mem::take(&mut self.out);
        self.put_block(last);
        (self.output, self.collector)
    }

    /// Ends the unfiltered that begins at `begin` in `out`; `name` is the position of its clustering.
    // Inlined, so that `name` is passed in registers: passing it through memory would stall.
    #[inline(always)]
    fn end_unfiltered(&mut self, begin: usize, name: Name) -> Result<()> {
        let start = self.out_position + begin as u64 - self.start;
        let end = self.position() - self.start;
        self.previous = start;
        self.unfiltered_count += 1;
        self.last_is_indexed = end >= self.indexed_from;
        if self.last_is_indexed {
            let body = &self.out[name.start..name.end];
            self.indexed_from =
                self.index
                    .add_unfiltered(start, end, name.kind, body, &self.open_marker)?;
        }
        if self.unfiltered_count == 1 {
            name.copy(&self.out, &mut self.partition_first);
        }
        self.last_in_out = Some(name);
        self.flush_full_blocks()
    }

    fn save_last(&mut self) {
        if let Some(name) = self.last_in_out.take() {
            name.copy(&self.out, &mut self.last);
        }
    }

    #[inline]
    fn flush_full_blocks(&mut self) -> Result<()> {
        if self.out.len() > self.output.block_len() {
            self.flush()
        } else {
            Ok(())
        }
    }

    fn flush(&mut self) -> Result<()> {
        self.save_last();
        let block_len = self.output.block_len();
        let mut from = 0;
        // A row longer than a block: copy whole blocks out of it.
        while self.out.len() - from > 2 * block_len {
            let mut block = self.output.take_buffer()?;
            block.extend_from_slice(&self.out[from..from + block_len]);
            self.put_block(block);
            from += block_len;
        }
        self.submit(from, from + block_len)
    }

    /// Submits a block with the bytes `start..end` of `out`; all bytes before `start` have been submitted.
    fn submit(&mut self, start: usize, end: usize) -> Result<()> {
        let mut next = self.output.take_buffer()?;
        next.extend_from_slice(&self.out[end..]);
        // The bytes are in one of the blocks' own buffers, which is submitted with them.
        let mut block = std::mem::replace(&mut self.out, next);
        self.out_position += end as u64;
        if start > 0 {
            block.copy_within(start..end, 0);
        }
        block.truncate(end - start);
        self.put_block(block);
        Ok(())
    }

    fn put_block(&mut self, block: Vec<u8>) {
        let index = self.index.take();
        self.output.put_block(block, index, &mut self.collector);
    }

    /// Records the clustering if it is the first or last of a partition; these two determine the covered
    /// slice.
    fn note_clustering(&mut self, is_first: bool) {
        let clustering = &self.layout.clustering;
        let bytes = if is_first {
            &self.partition_first
        } else {
            &self.last
        };
        // Without clustering columns all rows have the same clustering.
        if clustering.is_empty() && bytes[..] == [Kind::Clustering as u8] {
            if self.has_noted_row {
                return;
            }
            self.has_noted_row = true;
        }
        // These bytes were serialized from a parsed clustering.
        if let Ok(prefix) = clustering.parse_name(bytes, &mut self.spans) {
            self.collector.update_clustering(clustering, prefix);
        }
    }
}

/// Position of an unfiltered's clustering in the bytes that have not been submitted.
#[derive(Clone, Copy, Debug)]
struct Name {
    kind: Kind,
    /// After the kind, which a row in Data.db does not have.
    start: usize,
    end: usize,
}

impl Name {
    fn of_row(start: usize, len: usize) -> Name {
        Name {
            kind: Kind::Clustering,
            start,
            end: start + len,
        }
    }

    /// Appends it in `IndexInfo` form: kind first.
    fn copy(&self, out: &[u8], target: &mut Vec<u8>) {
        target.clear();
        target.push(self.kind as u8);
        target.extend_from_slice(&out[self.start..self.end]);
    }
}
