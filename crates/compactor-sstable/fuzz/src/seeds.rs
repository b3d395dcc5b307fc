//! Seeds: real SSTables split into inputs of the harnesses, and some handmade inputs.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use compactor_sstable::bti::partitions::{PartitionIndexWriter, PartitionPosition};
use compactor_sstable::bti::rows::{RowBlocks, RowTries, SeparatedBlock};
use compactor_sstable::compression::chunk::ChunkDecompressor;
use compactor_sstable::compression::codec::Codec;
use compactor_sstable::compression::info::CompressionInfo;
use compactor_sstable::data::clustering::Kind;
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::partitioner::KeyHash;
use compactor_sstable::statistics::Statistics;
use compactor_sstable::transaction_log::Record;
use compactor_sstable::types::CqlType;
use compactor_sstable::{Component, Version};

/// Maximum length of a seed: longer ones slow libFuzzer down without better coverage.
const MAX_LEN: usize = 48 << 10;

/// Inputs, each with the name of its harness. A set, since many files are equal.
pub type Seeds = BTreeSet<(&'static str, Vec<u8>)>;

/// Adds seeds from every SSTable and schema below `directory`.
///
/// # Errors
/// A failed system call.
pub fn add_directory(seeds: &mut Seeds, directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            add_directory(seeds, &path)?;
        } else if path.ends_with("schema.cql") {
            add(seeds, "schema", &[&fs::read(&path)?]);
        } else if let Ok(file) = Descriptor::parse(&path) {
            add(seeds, "names", &[path.to_string_lossy().as_bytes()]);
            let record = Record::add(&path.to_string_lossy(), 8).line();
            let log = [&record, &Record::commit().line()];
            add(seeds, "transaction_log", &log.map(|line| line.as_bytes()));
            if file.component == Some(Component::Data) {
                add_sstable(seeds, &file.descriptor);
            }
        }
    }
    Ok(())
}

fn add(seeds: &mut Seeds, harness: &'static str, parts: &[&[u8]]) {
    let bytes = parts.concat();
    if bytes.len() <= MAX_LEN {
        seeds.insert((harness, bytes));
    }
}

fn selector(version: Version) -> u8 {
    Version::ALL
        .iter()
        .position(|v| *v == version)
        .unwrap_or_default() as u8
}

fn add_sstable(seeds: &mut Seeds, descriptor: &Descriptor) {
    let read = |component| fs::read(descriptor.path(component)).ok();
    let version = selector(descriptor.version);
    for (component, harness) in [
        (Component::Summary, "summary"),
        (Component::Toc, "small_components"),
        (Component::Digest, "small_components"),
    ] {
        if let Some(bytes) = read(component) {
            add(seeds, harness, &[&bytes]);
        }
    }
    if let Some(bytes) = read(Component::Filter) {
        add(seeds, "filter", &[&[version], &bytes]);
    }
    let (Some(data), Some(statistics)) = (read(Component::Data), read(Component::Statistics))
    else {
        return;
    };
    add(seeds, "statistics", &[&[version], &statistics]);
    let Ok(parsed) = Statistics::parse(&statistics, descriptor.version) else {
        return;
    };
    let header = &parsed.header;
    let columns = header.static_columns.iter().chain(&header.regular_columns);
    let types = columns
        .map(|c| &c.column_type)
        .chain(&header.clustering_types)
        .chain([&header.key_type]);
    for column_type in types {
        add(seeds, "types", &[column_type.text.as_bytes(), &[0; 17]]);
    }
    if let Some(bytes) = read(Component::Index) {
        for types in 0..8 {
            let selected = crate::components::clustering_types(types);
            let wanted = header.clustering_types.iter().map(|t| &t.cql_type);
            if types == 7 || wanted.eq(&selected) {
                add(seeds, "index", &[&[version, types], &bytes]);
                break;
            }
        }
    }
    let len = data.len() as u32;
    if let Some(bytes) = read(Component::Crc) {
        add(seeds, "small_components", &[&len.to_be_bytes(), &bytes]);
    }
    let plain = match read(Component::CompressionInfo) {
        None => data,
        Some(bytes) => {
            add(
                seeds,
                "compression_info",
                &[&[version], &len.to_be_bytes(), &bytes],
            );
            decompress(seeds, &bytes, descriptor.version, &data)
        }
    };
    if let Ok(len) = u16::try_from(statistics.len()) {
        let room = MAX_LEN.saturating_sub(3 + statistics.len());
        let plain = &plain[..plain.len().min(room)];
        add(
            seeds,
            "data",
            &[&[version], &len.to_be_bytes(), &statistics, plain],
        );
    }
}

/// Decompresses Data.db; its first chunks become seeds.
fn decompress(seeds: &mut Seeds, info: &[u8], version: Version, data: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    let Ok(info) = CompressionInfo::parse(info, version, data.len() as u64) else {
        return plain;
    };
    let Ok(mut decompressor) = ChunkDecompressor::new(&info.params) else {
        return plain;
    };
    for index in 0..info.chunk_count().min(8) {
        let Some(chunk) = info.chunk(index) else {
            break;
        };
        let Some(stored) =
            data.get(chunk.offset as usize..(chunk.offset + chunk.stored_len) as usize)
        else {
            break;
        };
        let start = plain.len();
        plain.resize(start + chunk.raw_len as usize, 0);
        if decompressor
            .decompress(stored, chunk.offset, &mut plain[start..])
            .is_err()
        {
            break;
        }
        let codec = match info.params.codec() {
            Ok(Codec::Lz4) => 0,
            Ok(Codec::Snappy) => 1,
            Ok(Codec::Deflate) => 2,
            Ok(Codec::Zstd { .. }) => 3,
            _ => 4,
        };
        let shape = (info.params.chunk_len / 1024).trailing_zeros() as u8;
        let raw_len = u16::try_from(chunk.raw_len)
            .unwrap_or(u16::MAX)
            .to_be_bytes();
        let payload = &stored[..stored.len().saturating_sub(4)];
        if index < 2 {
            add(seeds, "chunk", &[&[codec, shape], &raw_len, payload]);
        }
    }
    plain
}

/// Adds inputs for features that no file here has.
pub fn add_handmade(seeds: &mut Seeds) {
    add(
        seeds,
        "vint",
        &[
            &[0x00, 0x7f, 0x80, 0x80, 0xbf, 0xff, 0xc0, 1, 2, 0xff],
            &[0xff; 8],
        ],
    );
    add(seeds, "vint", &[b"\x00\x05hello\x00\x00\x00\x02hi\x02hi"]);
    const MARSHAL: &str = "org.apache.cassandra.db.marshal.";
    for text in [
        "AsciiType",
        "BooleanType",
        "ByteType",
        "BytesType",
        "DateType",
        "DecimalType",
        "DoubleType",
        "DurationType",
        "EmptyType",
        "FloatType",
        "InetAddressType",
        "Int32Type",
        "IntegerType",
        "LexicalUUIDType",
        "LongType",
        "ShortType",
        "SimpleDateType",
        "TimeType",
        "TimeUUIDType",
        "TimestampType",
        "UTF8Type",
        "UUIDType",
        "CounterColumnType",
        "PartitionerDefinedOrder",
        "ListType(Int32Type)",
        "FrozenType(MapType(UTF8Type,SetType(LongType)))",
        "TupleType(Int32Type,UTF8Type)",
        "CompositeType(Int32Type,ReversedType(UTF8Type))",
        "VectorType(FloatType , 3)",
        "DynamicCompositeType(a=>AsciiType,b=>BytesType)",
        "UserType(ks,6e616d65,61:Int32Type,62:FrozenType(ListType(UTF8Type)))",
    ] {
        for values in [
            &[][..],
            &[0],
            &[1; 8],
            &[0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 2],
            &[0xff; 32],
        ] {
            add(
                seeds,
                "types",
                &[MARSHAL.as_bytes(), text.as_bytes(), &[0], values],
            );
            add(seeds, "types", &[text.as_bytes(), &[0], values]);
        }
    }
    let shard = |id: u8, clock: u8, count: u8| {
        [
            [id; 16].to_vec(),
            vec![0, 0, 0, 0, 0, 0, 0, clock],
            vec![0, 0, 0, 0, 0, 0, 0, count],
        ]
        .concat()
    };
    for (a, b) in [
        ([0u8, 1, 0x80, 0], [0u8, 1, 0x80, 0]),
        ([0, 1, 0, 0], [0, 0, 0, 0]),
    ] {
        add(
            seeds,
            "counter",
            &[
                &a[..2],
                &a[2..],
                &shard(1, 1, 5),
                &shard(2, 3, 4),
                &b[..2],
                &b[2..],
                &shard(1, 2, 7),
                &shard(3, 1, 1),
            ],
        );
    }
    for text in [
        "CREATE TABLE ks.t (a int, b text, c frozen<map<text, list<int>>>, s int static, \
         PRIMARY KEY ((a, b), c)) WITH CLUSTERING ORDER BY (c DESC) AND comment = 'it''s' \
         AND compression = {'class': 'LZ4Compressor', 'chunk_length_in_kb': '16'} \
         AND gc_grace_seconds = 864000;",
        "CREATE TYPE ks.u (a int, b frozen<u2>);\nALTER TABLE ks.t DROP x USING TIMESTAMP 17;",
        "CREATE INDEX i ON ks.t (b); /* c */ -- c\n",
    ] {
        add(seeds, "schema", &[text.as_bytes()]);
    }
    for text in [
        "/d/ks/t-0123456789abcdef0123456789abcdef/nb-1-big-Data.db",
        "ks/t-0123456789abcdef0123456789abcdef/snapshots/x/.i/da-3gii_0s2v_4dcls2cqc9mpgqkvlr-bti-Rows.db",
        "ks/t/backups/me-7-big-SI_i.db.tmp",
        "3gii_0s2v_4dcls2cqc9mpgqkvlr",
    ] {
        add(seeds, "names", &[text.as_bytes()]);
    }
    // Failures here are found by the tests of the writers; a missing seed is harmless.
    let _ = add_tries(seeds);
}

fn add_tries(seeds: &mut Seeds) -> Result<(), compactor_sstable::Error> {
    for count in [1i64, 3, 400] {
        let mut writer = PartitionIndexWriter::new();
        for number in 0..count {
            let hash = KeyHash {
                token: number * 77_777_777_777 - 1_000_000,
                h2: number as u64,
                ..KeyHash::default()
            };
            let key = format!("key{number}");
            let position = match number % 3 {
                0 => PartitionPosition::Rows(number as u64 * 100),
                _ => PartitionPosition::Data(number as u64 * 100_000),
            };
            writer.add(&hash, key.as_bytes(), position)?;
        }
        writer.finish()?;
        add(seeds, "bti", &[&[0, 1], writer.output().bytes()]);
    }
    let mut rows = RowBlocks::new(&[CqlType::Int32], 64)?;
    let mut writer = RowTries::default();
    for number in 0..200u64 {
        let body = [&[0][..], &(number as i32).to_be_bytes()].concat();
        let open = match number % 7 {
            3 => DeletionTime {
                marked_for_delete_at: 5,
                local_deletion_time: 6,
            },
            _ => DeletionTime::LIVE,
        };
        let start = 10 + number * 20;
        let emit = |block: SeparatedBlock<'_>| writer.add(block);
        rows.add_unfiltered(start, start + 20, Kind::Clustering, &body, &open, emit)?;
    }
    let blocks = rows.finish(|block| writer.add(block))?;
    if let Some(entry) = writer.finish(b"key", 1234, &DeletionTime::LIVE, blocks) {
        let bytes = writer.output().bytes();
        let number = (bytes.len() as u64 - entry) as u8;
        add(seeds, "bti", &[&[1, number], bytes]);
    }
    Ok(())
}
