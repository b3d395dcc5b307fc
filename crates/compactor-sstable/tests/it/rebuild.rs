//! Rebuilds every component from Data.db and compares it to the byte with the one written by Cassandra.
//!
//! The SSTables are those of `testdata/` and, if `COMPACTOR_GOLDEN_DIR` is set, all below that directory. If
//! a directory contains `inputs/` next to `compacted/`, the output's Bloom filter is sized from the inputs as
//! in Cassandra.

use std::path::{Path, PathBuf};

use compactor_sstable::big::index_info::DEFAULT_COLUMN_INDEX_SIZE;
use compactor_sstable::big::summary::DEFAULT_MIN_INDEX_INTERVAL;
use compactor_sstable::big::{
    IndexReader, PromotedIndex, PromotedIndexBuilder, Summary, SummaryBuilder, write_entry,
};
use compactor_sstable::bloom_filter::BloomFilter;
use compactor_sstable::compression::{
    ChunkCompressor, ChunkDecompressor, CompressionInfo, CrcFile, CrcFileWriter, crc32,
};
use compactor_sstable::data::clustering::{ClusteringComparator, Kind, Prefix};
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::data::layout::{ColumnLayout, Layout, TimestampDeltas};
use compactor_sstable::data::partition::PartitionHead;
use compactor_sstable::data::row::RowRef;
use compactor_sstable::data::stated_extremes::StatedExtremes;
use compactor_sstable::data::unfiltered::{RowHead, UnfilteredHead, parse_head, parse_static_head};
use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::partitioner::Partitioner;
use compactor_sstable::statistics::{
    CollectorSettings, Finish, HeaderColumn, HyperLogLogPlus, MetadataCollector,
    SerializationHeader, Statistics,
};
use compactor_sstable::toc::Toc;
use compactor_sstable::types::CqlType;
use compactor_sstable::{Component, Version, digest};

fn find_tables(directory: &Path, found: &mut Vec<Descriptor>) {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            find_tables(&path, found);
        } else if let Ok(file) = Descriptor::parse(&path)
            && file.component == Some(Component::Data)
        {
            found.push(file.descriptor);
        }
    }
}

fn tables() -> Vec<Descriptor> {
    let mut found = Vec::new();
    find_tables(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata"),
        &mut found,
    );
    assert!(!found.is_empty(), "testdata holds no SSTable");
    if let Some(more) = std::env::var_os("COMPACTOR_GOLDEN_DIR").filter(|dir| !dir.is_empty()) {
        find_tables(Path::new(&more), &mut found);
    }
    found
}

/// An SSTable in memory.
struct Table {
    descriptor: Descriptor,
    statistics: Statistics,
    stored: Vec<u8>,
    data: Vec<u8>,
    compression: Option<CompressionInfo>,
}

impl Table {
    fn open(descriptor: Descriptor) -> Table {
        let read = |component| std::fs::read(descriptor.path(component)).ok();
        let stored = read(Component::Data).unwrap();
        let statistics = read(Component::Statistics).unwrap();
        let statistics = Statistics::parse(&statistics, descriptor.version).unwrap();
        let compression = read(Component::CompressionInfo).map(|bytes| {
            CompressionInfo::parse(&bytes, descriptor.version, stored.len() as u64).unwrap()
        });
        let data = match &compression {
            None => stored.clone(),
            Some(info) => decompress(info, &stored),
        };
        Table {
            descriptor,
            statistics,
            stored,
            data,
            compression,
        }
    }

    fn version(&self) -> Version {
        self.descriptor.version
    }

    fn file(&self, component: Component) -> Option<Vec<u8>> {
        std::fs::read(self.descriptor.path(component)).ok()
    }

    /// Fails with the first difference unless `written` equals the component's file.
    fn expect(&self, component: Component, written: &[u8]) {
        let path = self.descriptor.path(component);
        let bytes = std::fs::read(&path).unwrap();
        if bytes != written {
            let at = bytes.iter().zip(written).position(|(a, b)| a != b);
            let at = at.unwrap_or(bytes.len().min(written.len()));
            let part = |all: &[u8]| all[at.min(all.len())..all.len().min(at + 24)].to_vec();
            panic!(
                "{}: {} bytes, rebuilt {}; at {at} {:02x?}, rebuilt {:02x?}",
                path.display(),
                bytes.len(),
                written.len(),
                part(&bytes),
                part(written)
            );
        }
    }

    fn layout(&self) -> Layout {
        let header = &self.statistics.header;
        let columns = |columns: &[HeaderColumn]| {
            let layout = |column: &HeaderColumn| {
                ColumnLayout::new(column.name.clone(), column.column_type.cql_type.clone()).unwrap()
            };
            columns.iter().map(layout).collect()
        };
        Layout {
            version: self.version(),
            min_timestamp: header.encoding_stats.min_timestamp,
            timestamp_deltas: TimestampDeltas::ANY,
            stated: StatedExtremes::ANY,
            min_local_deletion_time: header.encoding_stats.min_local_deletion_time,
            min_ttl: header.encoding_stats.min_ttl,
            clustering: comparator(header),
            static_columns: columns(&header.static_columns),
            regular_columns: columns(&header.regular_columns),
        }
    }
}

fn comparator(header: &SerializationHeader) -> ClusteringComparator {
    let types: Vec<CqlType> = header
        .clustering_types
        .iter()
        .map(|clustering| clustering.cql_type.clone())
        .collect();
    ClusteringComparator::new(&types).unwrap()
}

fn decompress(info: &CompressionInfo, stored: &[u8]) -> Vec<u8> {
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
    assert_eq!(data.len() as u64, info.data_len);
    data
}

/// State that a writer collects along with Data.db.
struct Rebuilt {
    index: Vec<u8>,
    summary: SummaryBuilder,
    collector: MetadataCollector,
    keys: Vec<Vec<u8>>,
}

fn collect_row(collector: &mut MetadataCollector, bytes: &[u8], head: &RowHead, layout: &Layout) {
    let row = RowRef {
        bytes,
        head,
        layout,
    };
    let content = row.read().unwrap();
    let liveness = content.start.liveness;
    if !liveness.is_empty() {
        collector.update_liveness(
            liveness.timestamp,
            liveness.ttl,
            liveness.local_expiration_time,
        );
    }
    collector.update_deletion_time(&content.start.deletion);
    let mut columns_set = 0;
    for column in content.columns() {
        collector.update_deletion_time(&column.deletion);
        for cell in column.cells {
            collector.update_cell(cell.timestamp, cell.ttl, cell.local_deletion_time);
        }
        columns_set += u64::from(!column.cells.is_empty());
    }
    if !content.start.is_empty() {
        collector.add_row(columns_set);
    }
}

fn rebuild(table: &Table, settings: CollectorSettings) -> Rebuilt {
    let layout = table.layout();
    let mut collector = MetadataCollector::new(settings);
    let mut promoted = PromotedIndexBuilder::new(table.version(), DEFAULT_COLUMN_INDEX_SIZE);
    let mut summary = SummaryBuilder::new(DEFAULT_MIN_INDEX_INTERVAL);
    let (mut index, mut keys, mut spans) = (Vec::new(), Vec::new(), Vec::new());
    let mut start = 0;
    while start < table.data.len() {
        let bytes = &table.data[start..];
        let head = PartitionHead::parse(bytes, table.version()).unwrap();
        collector.update_partition_deletion(&head.deletion);
        let mut pos = head.len;
        if layout.has_static() {
            let row =
                parse_static_head(&bytes[pos..], &layout, (bytes.len() - pos) as u64).unwrap();
            collect_row(&mut collector, &bytes[pos..], &row, &layout);
            pos += row.len;
        }
        let header_len = pos as u64;
        let mut open = DeletionTime::LIVE;
        loop {
            let at = &bytes[pos..];
            let (kind, body, len) =
                match parse_head(at, &layout, at.len() as u64, &mut spans).unwrap() {
                    UnfilteredHead::EndOfPartition => break,
                    UnfilteredHead::Row(row) => {
                        collect_row(&mut collector, at, &row, &layout);
                        let body = &at[row.clustering_start..row.clustering_end];
                        (Kind::Clustering, body.to_vec(), row.len)
                    }
                    UnfilteredHead::Marker(marker) => {
                        collector.update_deletion_time(&marker.close);
                        collector.update_deletion_time(&marker.open);
                        open = marker.open;
                        let values = spans.iter().map(|span| span.of(at));
                        let mut name = Vec::new();
                        layout
                            .clustering
                            .write_prefix(&mut name, marker.kind, values);
                        (marker.kind, name.split_off(1), marker.len)
                    }
                };
            let prefix = Prefix {
                kind,
                base: at,
                spans: &spans,
            };
            collector.update_clustering(&layout.clustering, prefix);
            let range = (pos as u64, (pos + len) as u64);
            promoted.add_unfiltered(range.0, range.1, kind, &body, &open);
            pos += len;
        }
        pos += 1;
        let key = head.key(bytes);
        collector.add_key(key);
        collector.add_partition(pos as u64);
        summary.add(key, index.len() as u64);
        let rows = promoted.finish(header_len, &head.deletion).unwrap();
        write_entry(&mut index, key, start as u64, rows);
        keys.push(key.to_vec());
        start += pos;
    }
    Rebuilt {
        index,
        summary,
        collector,
        keys,
    }
}

/// Settings that a rebuilt Statistics.db copies, since Data.db does not contain them.
fn settings(statistics: &Statistics) -> CollectorSettings {
    let stats = &statistics.stats;
    CollectorSettings {
        level: stats.level,
        repaired_at: stats.repaired_at,
        pending_repair: stats.pending_repair,
        is_transient: stats.is_transient,
        originating_host_id: stats.originating_host_id,
        commit_log_intervals: stats.commit_log_intervals.clone(),
    }
}

#[test]
fn statistics() {
    for descriptor in tables() {
        let table = Table::open(descriptor);
        let bytes = table.file(Component::Statistics).unwrap();
        let mut again = Vec::new();
        table.statistics.write(&mut again, table.version()).unwrap();
        table.expect(Component::Statistics, &again);
        for len in (0..bytes.len()).step_by(7) {
            assert!(Statistics::parse(&bytes[..len], table.version()).is_err());
        }

        let rebuilt = rebuild(&table, settings(&table.statistics));
        let statistics = rebuilt.collector.finish(Finish {
            partitioner: Partitioner::Murmur3,
            bloom_filter_fp_chance: table.statistics.validation.bloom_filter_fp_chance,
            compression_ratio: table
                .compression
                .as_ref()
                .map(CompressionInfo::compression_ratio),
            first_key: rebuilt.keys[0].clone(),
            last_key: rebuilt.keys[rebuilt.keys.len() - 1].clone(),
            header: table.statistics.header.clone(),
        });
        let mut written = Vec::new();
        statistics.write(&mut written, table.version()).unwrap();
        table.expect(Component::Statistics, &written);
    }
}

#[test]
fn index_and_summary() {
    for descriptor in tables() {
        let table = Table::open(descriptor);
        let rebuilt = rebuild(&table, CollectorSettings::default());
        table.expect(Component::Index, &rebuilt.index);
        let (first, last) = (&rebuilt.keys[0], &rebuilt.keys[rebuilt.keys.len() - 1]);
        let mut written = Vec::new();
        rebuilt.summary.finish(first, last).write(&mut written);
        table.expect(Component::Summary, &written);

        let summary = Summary::parse(&written, table.descriptor.version).unwrap();
        for (key, position) in summary.entries() {
            let mut entries = IndexReader::with_base(&rebuilt.index[position as usize..], position);
            assert_eq!(entries.next().unwrap().unwrap().key, key);
        }
        let clustering = comparator(&table.statistics.header);
        let mut spans = Vec::new();
        for entry in IndexReader::new(&rebuilt.index).map(Result::unwrap) {
            if entry.promoted.is_empty() {
                continue;
            }
            let rows = PromotedIndex::parse(entry.promoted, table.version(), 0).unwrap();
            let mut next = rows.header_len;
            for block in 0..rows.block_count() {
                let block = rows.block(block, &clustering, &mut spans).unwrap();
                assert_eq!(block.offset, next);
                next += block.width;
            }
            for len in 0..entry.promoted.len() {
                let cut = PromotedIndex::parse(&entry.promoted[..len], table.version(), 0);
                let whole = cut.and_then(|rows| {
                    (0..rows.block_count())
                        .try_for_each(|at| rows.block(at, &clustering, &mut spans).map(drop))
                });
                assert!(whole.is_err(), "{len}");
            }
        }
    }
}

#[test]
fn filter() {
    let mut sized = 0;
    for descriptor in tables() {
        let table = Table::open(descriptor);
        let chance = table.statistics.validation.bloom_filter_fp_chance;
        let Some(bytes) = table.file(Component::Filter) else {
            assert_eq!(chance, 1.0);
            continue;
        };
        let hash = |key: &Vec<u8>| Partitioner::Murmur3.hash_key(key);
        let keys = rebuild(&table, CollectorSettings::default()).keys;
        let parsed = BloomFilter::parse(&bytes, table.version()).unwrap();
        assert!(keys.iter().all(|key| parsed.may_contain_key(&hash(key))));

        let inputs = table.descriptor.directory.with_file_name("inputs");
        if table
            .descriptor
            .directory
            .file_name()
            .is_none_or(|name| name != "compacted")
            || !inputs.is_dir()
        {
            continue;
        }
        let mut found = Vec::new();
        find_tables(&inputs, &mut found);
        let estimators: Vec<HyperLogLogPlus> = found
            .into_iter()
            .map(|input| {
                Table::open(input)
                    .statistics
                    .compaction
                    .unwrap()
                    .cardinality()
                    .unwrap()
            })
            .collect();
        let expected = HyperLogLogPlus::estimate_union(&estimators).unwrap();
        let mut filter = BloomFilter::for_keys(expected as u64, chance)
            .unwrap()
            .unwrap();
        keys.iter().for_each(|key| filter.add_key(&hash(key)));
        let mut written = Vec::new();
        filter.write(&mut written);
        table.expect(Component::Filter, &written);
        sized += 1;
    }
    assert!(sized > 0, "no output next to its inputs");
}

#[test]
fn chunks_checksums_and_lists() {
    for descriptor in tables() {
        let table = Table::open(descriptor);
        let digest = table.file(Component::Digest).unwrap();
        assert_eq!(digest::parse(&digest).unwrap(), crc32(&table.stored));
        let mut written = Vec::new();
        digest::write(&mut written, crc32(&table.stored));
        table.expect(Component::Digest, &written);

        let toc = Toc::parse(&table.file(Component::Toc).unwrap()).unwrap();
        let mut written = Vec::new();
        Toc::of(toc.components()).write(&mut written);
        table.expect(Component::Toc, &written);
        assert_eq!(
            toc.contains(Component::CompressionInfo),
            table.compression.is_some()
        );

        let Some(info) = &table.compression else {
            let bytes = table.file(Component::Crc).unwrap();
            let file = CrcFile::parse(&bytes, table.data.len() as u64).unwrap();
            let mut writer = CrcFileWriter::new(file.chunk_len);
            writer.update(&table.data);
            let mut written = Vec::new();
            writer.finish().write(&mut written);
            table.expect(Component::Crc, &written);
            continue;
        };
        let mut written = Vec::new();
        info.write(&mut written, table.version()).unwrap();
        table.expect(Component::CompressionInfo, &written);
        for len in 0..written.len() {
            let cut = CompressionInfo::parse(&written[..len], table.version(), info.file_len);
            assert!(cut.is_err());
        }
        // The encoders differ, so that only the decoded bytes must be equal.
        let mut compressor = ChunkCompressor::new(&info.params).unwrap();
        let mut own = CompressionInfo::new(info.params.clone());
        let mut stored = Vec::new();
        for chunk in table.data.chunks(info.params.chunk_len as usize) {
            let lengths = compressor.compress(chunk, &mut stored).unwrap();
            own.push_chunk(chunk.len() as u32, lengths.stored_len);
        }
        assert_eq!(
            (own.file_len, own.data_len),
            (stored.len() as u64, info.data_len)
        );
        assert_eq!(decompress(&own, &stored), table.data);
    }
}
