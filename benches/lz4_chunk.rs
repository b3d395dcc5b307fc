//! Chunks of a compressed Data.db: LZ4, its length header and the trailing CRC.

use std::hint::black_box;

use compactor_benches::shape::Shape;
use compactor_benches::table::Table;
use compactor_sstable::compression::chunk::{ChunkCompressor, ChunkDecompressor};
use compactor_sstable::compression::codec::Codec;
use compactor_sstable::compression::info::CompressionParams;
use compactor_testkit::Random;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

/// Uncompressed bytes that each bench goes through.
const LEN: usize = 1 << 20;

/// Throughput: uncompressed bytes.
fn lz4(c: &mut Criterion) {
    let mut rows = Table::of_size(Shape::KeyValue, LEN + LEN / 4).data;
    assert!(rows.len() >= LEN);
    rows.truncate(LEN);
    // What does not compress is stored as it is only where min_compress_ratio asks for it; here it
    // goes through LZ4 as with Cassandra's defaults.
    for (case, bytes) in [("rows", rows), ("random", Random::new(4).bytes(LEN))] {
        for chunk_len in [16 << 10, 64 << 10] {
            let params = CompressionParams::new(Codec::Lz4, chunk_len);
            let mut compressor = ChunkCompressor::new(&params).expect("a codec we have");
            let mut decompressor = ChunkDecompressor::new(&params).expect("a codec we have");
            let mut stored = Vec::new();
            let lens = compress(&mut compressor, chunk_len, &bytes, &mut stored);
            let mut out = vec![0; LEN];
            decompress(&mut decompressor, chunk_len, &stored, &lens, &mut out);
            assert_eq!(out, bytes, "{case} in chunks of {chunk_len}");

            let mut group = c.benchmark_group("lz4_chunk");
            group.throughput(Throughput::Bytes(LEN as u64));
            let parameter = format!("{case}/{}KiB", chunk_len >> 10);
            let mut stored_again = Vec::with_capacity(stored.len());
            group.bench_function(format!("compress/{parameter}"), |b| {
                b.iter(|| {
                    stored_again.clear();
                    compress(
                        &mut compressor,
                        chunk_len,
                        black_box(&bytes),
                        &mut stored_again,
                    )
                });
            });
            group.bench_function(format!("decompress/{parameter}"), |b| {
                b.iter(|| {
                    let stored = black_box(&stored);
                    decompress(&mut decompressor, chunk_len, stored, &lens, &mut out);
                });
            });
            group.finish();
        }
    }
}

/// Appends chunks to `out`; returns the stored length of each.
fn compress(
    compressor: &mut ChunkCompressor,
    chunk_len: u32,
    bytes: &[u8],
    out: &mut Vec<u8>,
) -> Vec<usize> {
    bytes
        .chunks(chunk_len as usize)
        .map(|chunk| compressor.compress(chunk, out).expect("a chunk").stored_len as usize)
        .collect()
}

fn decompress(
    decompressor: &mut ChunkDecompressor,
    chunk_len: u32,
    stored: &[u8],
    lens: &[usize],
    out: &mut [u8],
) {
    let mut at = 0;
    for (raw, len) in out.chunks_mut(chunk_len as usize).zip(lens) {
        let chunk = &stored[at..at + len];
        decompressor
            .decompress(chunk, at as u64, raw)
            .expect("what was compressed");
        at += len;
    }
}

criterion_group!(name = benches; config = compactor_benches::criterion(); targets = lz4);
criterion_main!(benches);
