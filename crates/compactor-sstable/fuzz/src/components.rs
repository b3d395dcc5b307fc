//! Components other than data and statistics.

use compactor_sstable::big::index::{IndexEntry, IndexReader};
use compactor_sstable::big::index_info::PromotedIndex;
use compactor_sstable::big::summary::Summary;
use compactor_sstable::bloom_filter::BloomFilter;
use compactor_sstable::compression::chunk::{ChunkCompressor, ChunkDecompressor};
use compactor_sstable::compression::codec::Codec;
use compactor_sstable::compression::crc_file::CrcFile;
use compactor_sstable::compression::info::{CompressionInfo, CompressionParams};
use compactor_sstable::data::clustering::ClusteringComparator;
use compactor_sstable::toc::Toc;
use compactor_sstable::types::CqlType;
use compactor_sstable::{Version, digest};

use crate::{take, version};

/// Input: version, length of Data.db, and CompressionInfo.db.
///
/// # Panics
/// If a chunk is outside of the file, or the file differs after being written and parsed again.
pub fn compression_info(mut data: &[u8]) {
    let Some([selector]) = take(&mut data) else {
        return;
    };
    let Some(file_len) = take(&mut data).map(u32::from_be_bytes) else {
        return;
    };
    let version = version(selector);
    let Ok(info) = CompressionInfo::parse(data, version, file_len.into()) else {
        return;
    };
    let mut end = 0;
    for index in 0..info.chunk_count() {
        let Some(chunk) = info.chunk(index) else {
            panic!("no chunk {index}")
        };
        assert!(chunk.offset >= end && chunk.raw_len <= info.params.chunk_len);
        end = chunk.offset + chunk.stored_len;
        assert!(
            end <= u64::from(file_len),
            "chunk {index} ends at {end} of {file_len}"
        );
    }
    let _ = (info.compression_ratio(), info.params.codec());
    let _ = info.chunk_index_of(info.data_len / 2);
    let mut written = Vec::new();
    if info.write(&mut written, version).is_ok() {
        match CompressionInfo::parse(&written, version, file_len.into()) {
            // Unread bytes are not written.
            Ok(mut again) => {
                again.unread_len = info.unread_len;
                assert_eq!(again, info);
            }
            Err(error) => panic!("what was written does not parse: {error}"),
        }
    }
}

/// Input: codec, shape, length of the content, and a chunk's payload, whose checksum is corrected.
///
/// # Panics
/// If bytes differ after compression and decompression.
pub fn chunk(mut data: &[u8]) {
    let Some([codec, shape]) = take(&mut data) else {
        return;
    };
    let Some(raw_len) = take(&mut data).map(u16::from_be_bytes) else {
        return;
    };
    let codec = match codec % 5 {
        0 => Codec::Lz4,
        1 => Codec::Snappy,
        2 => Codec::Deflate,
        3 => Codec::Zstd { level: 1 },
        _ => Codec::Noop,
    };
    // 1 to 64 KiB.
    let mut params = CompressionParams::new(codec, 1024 << (shape % 7));
    if shape & 0x80 != 0 {
        params.max_compressed_len = params.chunk_len * 9 / 10;
    }
    let chunk_len = params.chunk_len as usize;
    let Ok(mut decompressor) = ChunkDecompressor::new(&params) else {
        return;
    };
    let mut out = vec![0; usize::from(raw_len).min(chunk_len)];
    let _ = decompressor.decompress(data, 0, &mut out);
    let mut stored = data.to_vec();
    stored.extend_from_slice(&crc32fast::hash(data).to_be_bytes());
    let _ = decompressor.decompress(&stored, 0, &mut out);

    let raw = &data[..data.len().min(chunk_len)];
    let Ok(mut compressor) = ChunkCompressor::new(&params) else {
        return;
    };
    stored.clear();
    let lengths = compressor
        .compress(raw, &mut stored)
        .expect("a chunk of legal length");
    assert_eq!(lengths.stored_len as usize, stored.len());
    let mut out = vec![0; raw.len()];
    match decompressor.decompress(&stored, 0, &mut out) {
        Ok(_) => assert_eq!(out, raw),
        Err(error) => panic!("a compressed chunk cannot be decompressed: {error}"),
    }
}

/// Input: version, clustering types, and Index.db with its promoted indexes.
///
/// # Panics
/// If the two ways of reading entries differ.
pub fn index(mut data: &[u8]) {
    let Some([selector, types]) = take(&mut data) else {
        return;
    };
    let version = version(selector);
    let comparator = ClusteringComparator::new(&clustering_types(types)).expect("ordered types");
    let mut spans = Vec::new();
    let mut reader = IndexReader::new(data);
    let mut at = 0;
    loop {
        let entry = match reader.next() {
            Some(Ok(entry)) => entry,
            Some(Err(_)) => {
                let parsed = IndexEntry::try_parse(&data[at..], at as u64);
                assert!(
                    !matches!(parsed, Ok(Some(_))),
                    "only one of two readers found damage"
                );
                return;
            }
            None => return,
        };
        match IndexEntry::try_parse(&data[at..], at as u64) {
            Ok(Some((again, len))) => {
                assert_eq!(again, entry);
                at += len;
            }
            other => panic!("{other:?}, but the reader found {entry:?}"),
        }
        assert_eq!(at as u64, reader.offset());
        let Ok(promoted) = PromotedIndex::parse(entry.promoted, version, 0) else {
            continue;
        };
        for index in 0..promoted.block_count() {
            let _ = promoted.block(index, &comparator, &mut spans);
        }
        assert!(
            promoted
                .block(promoted.block_count(), &comparator, &mut spans)
                .is_err()
        );
    }
}

/// Clustering columns selected by a byte.
pub fn clustering_types(selector: u8) -> Vec<CqlType> {
    let reversed = |t: CqlType| CqlType::Reversed(t.into());
    match selector % 8 {
        0 => vec![],
        1 => vec![CqlType::Int32],
        2 => vec![CqlType::Utf8],
        3 => vec![CqlType::Long, CqlType::Utf8],
        4 => vec![reversed(CqlType::Timestamp)],
        5 => vec![CqlType::Int32, CqlType::Int32, CqlType::Int32],
        6 => vec![CqlType::TimeUuid, reversed(CqlType::Utf8), CqlType::Decimal],
        // More than one block of value headers.
        _ => vec![CqlType::Bytes; 40],
    }
}

/// Input: Summary.db.
///
/// # Panics
/// If the file differs after being written and parsed again.
pub fn summary(data: &[u8]) {
    let Ok(summary) = Summary::parse(data, Version::Me) else {
        return;
    };
    assert_eq!(summary.entries().count(), summary.len());
    assert!(summary.entry(summary.len()).is_none());
    let mut written = Vec::new();
    summary.write(&mut written);
    match Summary::parse(&written, Version::Me) {
        Ok(again) => assert!(again.entries().eq(summary.entries())),
        Err(error) => panic!("what was written does not parse: {error}"),
    }
}

/// Input: version and Filter.db.
///
/// # Panics
/// If the file differs after being written and parsed again, or lacks a key.
pub fn filter(mut data: &[u8]) {
    let Some([selector]) = take(&mut data) else {
        return;
    };
    let Ok(mut filter) = BloomFilter::parse(data, version(selector)) else {
        return;
    };
    let mut written = Vec::new();
    filter.write(&mut written);
    let again = match BloomFilter::parse(&written, Version::Oa) {
        Ok(again) => again,
        Err(error) => panic!("what was written does not parse: {error}"),
    };
    let hashes = [0u64, 1, u64::MAX, 0x9e37_79b9_7f4a_7c15];
    let hashes = hashes.map(|seed| (seed.wrapping_mul(31), seed.rotate_left(17)));
    for (h1, h2) in hashes {
        assert_eq!(filter.may_contain(h1, h2), again.may_contain(h1, h2));
    }
    for (h1, h2) in hashes {
        filter.add(h1, h2);
        assert!(filter.may_contain(h1, h2));
    }
}

/// Input: TOC.txt, Digest.crc32 and CRC.db, preceded by its length of Data.db.
///
/// # Panics
/// If one differs after being written and parsed again.
pub fn small_components(mut data: &[u8]) {
    if let Ok(toc) = Toc::parse(data) {
        let mut written = Vec::new();
        toc.write(&mut written);
        let again = Toc::parse(&written).expect("what was written");
        // Written in order, once each, and including TOC.txt itself.
        assert!(toc.components().all(|component| again.contains(component)));
    }
    if let Ok(crc) = digest::parse(data) {
        let mut written = Vec::new();
        digest::write(&mut written, crc);
        assert_eq!(digest::parse(&written).ok(), Some(crc));
    }
    let Some(data_len) = take(&mut data).map(u32::from_be_bytes) else {
        return;
    };
    let Ok(crcs) = CrcFile::parse(data, data_len.into()) else {
        return;
    };
    for index in [0, crcs.crcs.len() / 2, crcs.crcs.len()] {
        let _ = crcs.check(index, b"some chunk");
    }
    let mut written = Vec::new();
    crcs.write(&mut written);
    let again = CrcFile::parse(&written, data_len.into()).expect("what was written");
    assert_eq!((again.chunk_len, again.crcs), (crcs.chunk_len, crcs.crcs));
}
