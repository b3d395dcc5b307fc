//! Builds `Partitions.db` and `Rows.db` from Data.db, and compares them with Cassandra's to the byte; then
//! looks up every partition and row in them.

use std::path::{Path, PathBuf};

use compactor_sstable::Version;
use compactor_sstable::bti::partitions::{PartitionIndex, PartitionIndexWriter, PartitionPosition};
use compactor_sstable::bti::rows::{Block, RowBlocks, RowIndex, RowTries, SeparatedBlock};
use compactor_sstable::compression::{ChunkDecompressor, CompressionInfo};
use compactor_sstable::data::clustering::{ClusteringComparator, Kind};
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::data::layout::{ColumnLayout, Layout, TimestampDeltas};
use compactor_sstable::data::partition::PartitionHead;
use compactor_sstable::data::stated_extremes::StatedExtremes;
use compactor_sstable::data::unfiltered::{UnfilteredHead, parse_head, parse_static_head};
use compactor_sstable::partitioner::{KeyHash, Partitioner};
use compactor_sstable::statistics::{HeaderColumn, Statistics};
use compactor_sstable::types::CqlType;

/// SSTables by the prefix of their file names, with the `column_index_size` of the Cassandra that wrote them.
const TABLES: [(&str, Version, u64); 7] = [
    ("text", Version::Ea, 1024),
    ("deep", Version::Ea, 1024),
    ("reversed", Version::Ea, 1024),
    ("inet_uuid_time", Version::Ea, 1024),
    ("decimal_double", Version::Ea, 1024),
    ("keys", Version::Ea, 1024),
    ("release5", Version::Da, 1024),
];

pub fn directory(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("testdata/bti")
        .join(name)
}

pub fn names() -> impl Iterator<Item = &'static str> {
    TABLES.iter().map(|(name, _, _)| *name)
}

pub fn read(name: &str, component: &str) -> Vec<u8> {
    let path = directory(name).join(component);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

struct Unfiltered {
    start: u64,
    end: u64,
    /// Kind, then the bytes that follow it in Data.db.
    name: Vec<u8>,
    open_marker: DeletionTime,
}

struct Partition {
    key: Vec<u8>,
    hash: KeyHash,
    position: u64,
    deletion: DeletionTime,
    unfiltereds: Vec<Unfiltered>,
    /// Without the end byte.
    len: u64,
}

struct Table {
    types: Vec<CqlType>,
    partitions: Vec<Partition>,
}

fn open(name: &str, version: Version) -> Table {
    let statistics = Statistics::parse(&read(name, "Statistics.db"), version).unwrap();
    let stored = read(name, "Data.db");
    let info = read(name, "CompressionInfo.db");
    let info = CompressionInfo::parse(&info, version, stored.len() as u64).unwrap();
    let mut data = Vec::new();
    let mut decompressor = ChunkDecompressor::new(&info.params).unwrap();
    for index in 0..info.chunk_count() {
        let chunk = info.chunk(index).unwrap();
        let range = chunk.offset as usize..(chunk.offset + chunk.stored_len) as usize;
        let start = data.len();
        data.resize(start + chunk.raw_len as usize, 0);
        decompressor
            .decompress(&stored[range], chunk.offset, &mut data[start..])
            .unwrap();
    }
    let header = &statistics.header;
    let types: Vec<CqlType> = header
        .clustering_types
        .iter()
        .map(|clustering| clustering.cql_type.clone())
        .collect();
    let columns = |columns: &[HeaderColumn]| {
        let layout = |column: &HeaderColumn| {
            ColumnLayout::new(column.name.clone(), column.column_type.cql_type.clone()).unwrap()
        };
        columns.iter().map(layout).collect()
    };
    let layout = Layout {
        version,
        min_timestamp: header.encoding_stats.min_timestamp,
        timestamp_deltas: TimestampDeltas::ANY,
        stated: StatedExtremes::ANY,
        min_local_deletion_time: header.encoding_stats.min_local_deletion_time,
        min_ttl: header.encoding_stats.min_ttl,
        clustering: ClusteringComparator::new(&types).unwrap(),
        static_columns: columns(&header.static_columns),
        regular_columns: columns(&header.regular_columns),
    };
    let partitions = partitions(&data, &layout);
    Table { types, partitions }
}

fn partitions(data: &[u8], layout: &Layout) -> Vec<Partition> {
    let mut partitions = Vec::new();
    let mut position = 0;
    while position < data.len() {
        let start = position;
        let head = PartitionHead::parse(&data[position..], layout.version).unwrap();
        let key = head.key(&data[position..]).to_vec();
        position += head.len;
        if layout.has_static() {
            let rest = &data[position..];
            position += parse_static_head(rest, layout, rest.len() as u64)
                .unwrap()
                .len;
        }
        let mut partition = Partition {
            hash: Partitioner::Murmur3.hash_key(&key),
            key,
            position: start as u64,
            deletion: head.deletion,
            unfiltereds: Vec::new(),
            len: 0,
        };
        let mut spans = Vec::new();
        let mut open_marker = DeletionTime::LIVE;
        loop {
            let rest = &data[position..];
            let (kind, len) = match parse_head(rest, layout, rest.len() as u64, &mut spans).unwrap()
            {
                UnfilteredHead::Row(row) => (Kind::Clustering, row.len),
                UnfilteredHead::Marker(marker) => {
                    open_marker = marker.open;
                    (marker.kind, marker.len)
                }
                UnfilteredHead::EndOfPartition => break,
            };
            let mut name = Vec::new();
            layout
                .clustering
                .write_prefix(&mut name, kind, spans.iter().map(|span| span.of(rest)));
            let start = (position - start) as u64;
            partition.unfiltereds.push(Unfiltered {
                start,
                end: start + len as u64,
                name,
                open_marker,
            });
            position += len;
        }
        partition.len = (position - start) as u64;
        position += 1;
        partitions.push(partition);
    }
    partitions
}

fn write(table: &Table, column_index_size: u64) -> (Vec<u8>, Vec<u8>) {
    let mut blocks = RowBlocks::new(&table.types, column_index_size).unwrap();
    let mut rows = RowTries::default();
    let mut partitions = PartitionIndexWriter::new();
    for partition in &table.partitions {
        for Unfiltered {
            start,
            end,
            name,
            open_marker,
        } in &partition.unfiltereds
        {
            let kind = Kind::from_ordinal(name[0]).unwrap();
            let emit = |block: SeparatedBlock<'_>| rows.add(block);
            blocks
                .add_unfiltered(*start, *end, kind, &name[1..], open_marker, emit)
                .unwrap();
        }
        let Partition {
            key,
            hash,
            position,
            deletion,
            ..
        } = partition;
        let count = blocks.finish(|block| rows.add(block)).unwrap();
        let place = match rows.finish(key, *position, deletion, count) {
            Some(entry) => PartitionPosition::Rows(entry),
            None => PartitionPosition::Data(*position),
        };
        partitions.add(hash, key, place).unwrap();
    }
    partitions.finish().unwrap();
    (
        partitions.output().bytes().to_vec(),
        rows.output().bytes().to_vec(),
    )
}

fn expect(name: &str, component: &str, written: &[u8]) {
    let theirs = read(name, component);
    let at = theirs.iter().zip(written).position(|(a, b)| a != b);
    assert!(
        theirs == written,
        "{name}/{component}: {} bytes, written {}; first difference at {at:?}",
        theirs.len(),
        written.len()
    );
}

#[test]
fn written_bytes_are_cassandras() {
    for (name, version, column_index_size) in TABLES {
        let table = open(name, version);
        let (partitions, rows) = write(&table, column_index_size);
        expect(name, "Rows.db", &rows);
        expect(name, "Partitions.db", &partitions);
    }
}

#[test]
fn every_partition_and_row_is_found() {
    for (name, version, _) in TABLES {
        let table = open(name, version);
        let bytes = read(name, "Partitions.db");
        let rows = read(name, "Rows.db");
        let index = PartitionIndex::parse(&bytes).unwrap();
        let mut entries = index.iter();
        for partition in &table.partitions {
            let entry = entries.next_entry().unwrap().unwrap();
            let found = index.candidate(&partition.hash, &partition.key).unwrap();
            assert_eq!(found, Some(entry.position), "{name}");
            match entry.position {
                PartitionPosition::Data(position) => assert_eq!(position, partition.position),
                PartitionPosition::Rows(position) => {
                    let index = RowIndex::parse(&rows, position).unwrap();
                    assert_eq!(index.key, partition.key);
                    assert_eq!(index.data_position, partition.position);
                    assert_eq!(index.deletion, partition.deletion);
                    check_rows(name, &table.types, partition, &index);
                }
            }
        }
        assert_eq!(entries.next_entry().unwrap(), None);
    }
}

fn check_rows(name: &str, types: &[CqlType], partition: &Partition, index: &RowIndex<'_>) {
    let mut blocks = Vec::new();
    let mut walk = index.blocks();
    while let Some(block) = walk.next_block().unwrap() {
        blocks.push(block);
    }
    let end = blocks.pop().unwrap();
    assert_eq!(
        end,
        Block {
            offset: partition.len,
            open_deletion: None
        },
        "{name}"
    );
    let comparator = ClusteringComparator::new(types).unwrap();
    let mut open = DeletionTime::LIVE;
    let mut spans = Vec::new();
    let mut starts = blocks.iter();
    for unfiltered in &partition.unfiltereds {
        let at = blocks.partition_point(|block| block.offset <= unfiltered.start) - 1;
        if blocks[at].offset == unfiltered.start {
            assert_eq!(starts.next(), Some(&blocks[at]), "{name}");
            assert_eq!(
                blocks[at].open_deletion.unwrap_or(DeletionTime::LIVE),
                open,
                "{name}"
            );
        }
        let prefix = comparator.parse_name(&unfiltered.name, &mut spans).unwrap();
        assert_eq!(index.floor(types, prefix).unwrap(), blocks[at], "{name}");
        open = unfiltered.open_marker;
    }
    assert_eq!(
        starts.next(),
        None,
        "{name}: a block that begins between rows"
    );
}
