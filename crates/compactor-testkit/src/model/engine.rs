//! The engine's merge, from bytes in memory to bytes in memory.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use compactor_engine::input::{HeaderSource, column_map, layout_of, union};
use compactor_engine::merge::{InputFacts, MergeCounts, MergeInput, Observer, PartitionMerger};
use compactor_engine::read::{Batch, Block, BlockSource, Cursor, HEADROOM};
use compactor_engine::row::{PurgeLimit, PurgeLimits};
use compactor_engine::write::{IndexBuilder, IndexPart, PartitionSink, PartitionWriter};
use compactor_sstable::Version;
use compactor_sstable::data::layout::Layout;
use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::partitioner::{KeyHash, Partitioner};
use compactor_sstable::sstable_id::SstableId;
use compactor_sstable::statistics::HeaderType;
use compactor_sstable::statistics::header::HeaderColumn;
use compactor_sstable::statistics::{
    CollectorSettings, EncodingStats, Finish, MetadataCollector, SerializationHeader, Statistics,
};
use compactor_sstable::types::{CqlType, UserType};

use super::choices::Choices;
use super::generate::NOW_S;
use super::table::{Base, ColumnType, Header, Schema};

/// Bytes of an input, its header, and its statistics.
#[derive(Clone, Debug)]
pub struct Input {
    pub header: SerializationHeader,
    pub version: Version,
    pub bytes: Vec<u8>,
    pub block_len: usize,
    pub min_local_deletion_time: i64,
    pub may_have_ttl: bool,
}

/// The output of a merge in memory.
#[derive(Debug)]
pub struct Output {
    pub bytes: Vec<u8>,
    pub index: Vec<IndexEntry>,
    pub statistics: Statistics,
    pub counts: MergeCounts,
    pub rows: u64,
    pub partitions: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexEntry {
    pub key: Vec<u8>,
    pub position: u64,
    pub promoted: Vec<u8>,
}

/// Purge limits of partitions, by key.
pub struct Limits<F>(pub F);

impl<F: Fn(&[u8]) -> PurgeLimit> PurgeLimits for Limits<F> {
    fn limit(&self, key: &[u8], _hash: KeyHash) -> PurgeLimit {
        (self.0)(key)
    }
}

/// Settings of a merge other than its inputs.
#[derive(Clone, Debug)]
pub struct Settings {
    pub output: Header,
    pub now_s: i64,
    pub gc_before_s: i64,
    /// Whether cells and rows lose their TTL.
    pub strips_ttl: bool,
    pub output_block_len: usize,
    pub column_index_size: u64,
}

/// Merges `inputs`, ordered newest first. The output's columns are the union of theirs.
pub fn merge(
    schema: &Schema,
    inputs: &[Input],
    settings: &Settings,
    limits: impl Fn(&[u8]) -> PurgeLimit,
) -> Result<Output, compactor_engine::Error> {
    let header = output_header(schema, inputs, &settings.output)?;
    let layout = Arc::new(layout_of(&header, settings.output.version)?);
    let writer = PartitionWriter::new(
        Arc::clone(&layout),
        MemoryOutput::new(settings.output_block_len),
        MetadataCollector::new(CollectorSettings::default()),
        IndexBuilder::big(settings.output.version, settings.column_index_size),
    )?;
    let (writer, counts) = merge_into(inputs, settings, limits, writer, layout)?;
    let (rows, partitions, len) = (writer.rows(), writer.partitions(), writer.position());
    let (output, mut collector) = writer.finish();
    for entry in &output.entries {
        collector.add_key(&entry.key);
    }
    assert_eq!(output.bytes.len() as u64, len);
    let key_of = |entry: Option<&IndexEntry>| entry.map(|entry| entry.key.clone());
    let statistics = collector.finish(Finish {
        partitioner: Partitioner::Murmur3,
        bloom_filter_fp_chance: 0.01,
        compression_ratio: None,
        first_key: key_of(output.entries.first()).unwrap_or_default(),
        last_key: key_of(output.entries.last()).unwrap_or_default(),
        header,
    });
    Ok(Output {
        bytes: output.bytes,
        index: output.entries,
        statistics,
        counts,
        rows,
        partitions,
    })
}

/// Computes the union of the inputs' headers and compares it with the expected one.
fn output_header(
    schema: &Schema,
    inputs: &[Input],
    output: &Header,
) -> Result<SerializationHeader, compactor_engine::Error> {
    let descriptor = Descriptor::new("", output.version, SstableId::Sequence(1));
    let sources: Vec<HeaderSource<'_>> = inputs
        .iter()
        .map(|input| HeaderSource {
            descriptor: &descriptor,
            header: &input.header,
        })
        .collect();
    let header = union(&sources, encoding_stats(output))?;
    assert_eq!(
        header,
        serialization_header(schema, output),
        "union of the headers"
    );
    Ok(header)
}

/// Merges into any kind of writer.
pub fn merge_into<O: PartitionSink>(
    inputs: &[Input],
    settings: &Settings,
    limits: impl Fn(&[u8]) -> PurgeLimit,
    writer: PartitionWriter<O>,
    layout: Arc<Layout>,
) -> Result<(PartitionWriter<O>, MergeCounts), compactor_engine::Error> {
    let inputs = merge_inputs(inputs, settings.strips_ttl, &layout)?;
    let (now_s, gc_before_s) = (settings.now_s, settings.gc_before_s);
    PartitionMerger::new(inputs, writer, layout, now_s, gc_before_s)
        .stripping_ttl(settings.strips_ttl)
        .run(&Limits(limits), &mut Unobserved)
}

fn merge_inputs(
    inputs: &[Input],
    strips_ttl: bool,
    output: &Layout,
) -> Result<Vec<MergeInput<TinyBlocks>>, compactor_engine::Error> {
    let merge_input = |input: &Input| {
        let layout = layout_of(&input.header, input.version)?;
        let map = column_map(&layout, output)?;
        let facts = InputFacts {
            has_ttl_to_strip: strips_ttl && input.may_have_ttl,
            ..InputFacts::new(map, input.min_local_deletion_time)
        };
        Ok(MergeInput::new(cursor(input, layout), facts, output))
    };
    inputs.iter().map(merge_input).collect()
}

/// Merges inputs of one version to the bytes of a file with this header.
pub fn merge_raw(
    inputs: &[Input],
    header: &SerializationHeader,
    gc_before_s: i64,
    limit: PurgeLimit,
    observer: &mut dyn Observer,
) -> Result<Vec<u8>, compactor_engine::Error> {
    let version = inputs[0].version;
    let layout = Arc::new(layout_of(header, version)?);
    let writer = PartitionWriter::new(
        Arc::clone(&layout),
        MemoryOutput::new(4096),
        MetadataCollector::new(CollectorSettings::default()),
        IndexBuilder::big(version, 300),
    )?;
    let inputs = merge_inputs(inputs, false, &layout)?;
    let merger = PartitionMerger::new(inputs, writer, layout, NOW_S, gc_before_s);
    let (writer, _) = merger.run(&Limits(|_: &[u8]| limit), observer)?;
    Ok(writer.finish().0.bytes)
}

/// A cursor over an input's bytes.
pub fn cursor(input: &Input, layout: Layout) -> Cursor<TinyBlocks> {
    let source = TinyBlocks {
        bytes: input.bytes.clone(),
        at: 0,
        block_len: input.block_len,
        lengths: Choices::from_seed(input.bytes.len() as u64),
        spare: Vec::new(),
    };
    let path = PathBuf::from("Data.db");
    Cursor::new(source, Arc::new(layout), Partitioner::Murmur3, path)
}

/// Source of blocks with random lengths up to a limit, so that structures are split at any byte.
#[derive(Debug)]
pub struct TinyBlocks {
    bytes: Vec<u8>,
    at: usize,
    block_len: usize,
    lengths: Choices,
    spare: Vec<Block>,
}

impl BlockSource for TinyBlocks {
    fn next_block(&mut self) -> compactor_engine::Result<Option<Block>> {
        let len = 1 + self.lengths.below(self.block_len);
        let end = (self.at + len).min(self.bytes.len());
        if self.at == end {
            return Ok(None);
        }
        let mut block = self.spare.pop().unwrap_or_default();
        block.clear(HEADROOM);
        // The content of the headroom is undefined and must not matter.
        block.bytes.fill(0xee);
        block.bytes.extend_from_slice(&self.bytes[self.at..end]);
        self.at = end;
        Ok(Some(block))
    }

    fn recycle(&mut self, block: Block) {
        self.spare.push(block);
    }

    fn total_len(&self) -> u64 {
        self.bytes.len() as u64
    }
}

/// Observer that does nothing.
pub struct Unobserved;

impl Observer for Unobserved {
    fn is_cancelled(&self) -> bool {
        false
    }

    fn progress(&mut self, _read_bytes: u64, _rows: u64, _partitions: u64) {}

    fn before_publish(&mut self, _data_path: &Path) -> compactor_engine::Result<()> {
        Ok(())
    }
}

/// Blocks, and entries of a BIG index.
pub struct MemoryOutput {
    pub bytes: Vec<u8>,
    block_len: usize,
    entries: Vec<IndexEntry>,
}

impl MemoryOutput {
    pub fn new(block_len: usize) -> MemoryOutput {
        MemoryOutput {
            bytes: Vec::new(),
            block_len,
            entries: Vec::new(),
        }
    }
}

impl PartitionSink for MemoryOutput {
    fn block_len(&self) -> usize {
        self.block_len
    }

    fn take_buffer(&mut self) -> compactor_engine::Result<Vec<u8>> {
        Ok(Vec::new())
    }

    fn put_block(
        &mut self,
        block: Vec<u8>,
        index: Batch<IndexPart>,
        _collector: &mut MetadataCollector,
    ) {
        // Whole blocks, except for the last.
        assert_eq!(self.bytes.len() % self.block_len, 0);
        assert!(block.len() <= self.block_len, "{} bytes", block.len());
        self.bytes.extend_from_slice(&block);
        for (bytes, part) in index.events() {
            let IndexPart::Partition {
                hash,
                position,
                promoted_len,
                ..
            } = *part
            else {
                panic!("{part:?} in a BIG index");
            };
            let (promoted, key) = bytes.split_at(promoted_len);
            assert_eq!(hash, Partitioner::Murmur3.hash_key(key));
            self.entries.push(IndexEntry {
                key: key.to_vec(),
                position,
                promoted: promoted.to_vec(),
            });
        }
    }
}

pub fn encoding_stats(header: &Header) -> EncodingStats {
    EncodingStats {
        min_timestamp: header.min_timestamp,
        min_local_deletion_time: header.min_local_deletion_time,
        min_ttl: header.min_ttl,
    }
}

pub fn serialization_header(schema: &Schema, header: &Header) -> SerializationHeader {
    let columns = |is_static| {
        let of_kind = header.of_kind(schema, is_static);
        let column = |index: &usize| HeaderColumn {
            name: schema.columns[*index].name.clone(),
            column_type: HeaderType::new(cql_type(schema.columns[*index].column_type)),
        };
        of_kind.iter().map(column).collect()
    };
    SerializationHeader {
        encoding_stats: encoding_stats(header),
        key_type: HeaderType::new(CqlType::Int32),
        clustering_types: schema
            .clustering
            .iter()
            .map(|column| {
                let base = base_type(column.base);
                HeaderType::new(if column.is_reversed {
                    CqlType::Reversed(Arc::new(base))
                } else {
                    base
                })
            })
            .collect(),
        static_columns: columns(true),
        regular_columns: columns(false),
    }
}

fn base_type(base: Base) -> CqlType {
    match base {
        Base::Int => CqlType::Int32,
        Base::Text => CqlType::Utf8,
        Base::Blob => CqlType::Bytes,
        Base::Long => CqlType::Long,
        Base::Varint => CqlType::Integer,
        Base::Decimal => CqlType::Decimal,
        Base::Boolean => CqlType::Boolean,
        Base::Counter => CqlType::CounterColumn,
    }
}

fn cql_type(column_type: ColumnType) -> CqlType {
    let shared = |base| Arc::new(base_type(base));
    match column_type {
        ColumnType::Simple(base) => base_type(base),
        ColumnType::List(element) => CqlType::List {
            element: shared(element),
            multi_cell: true,
        },
        ColumnType::Set(element) => CqlType::Set {
            element: shared(element),
            multi_cell: true,
        },
        ColumnType::Map(key, value) => CqlType::Map {
            key: shared(key),
            value: shared(value),
            multi_cell: true,
        },
        ColumnType::Udt => CqlType::Udt(Arc::new(UserType {
            keyspace: "ks".to_owned(),
            name: b"person".to_vec(),
            fields: [("a", Base::Int), ("b", Base::Text), ("c", Base::Long)]
                .map(|(name, base)| (name.as_bytes().to_vec(), base_type(base)))
                .to_vec(),
            multi_cell: true,
        })),
    }
}
