//! One table of each compressor.

use super::super::kind::Kind;
use super::{CHUNK_END, DICTIONARY, KEYSPACE, Table, noise, time};
use crate::template::words;

pub(super) fn tables(kind: Kind) -> Vec<Table> {
    let lz4 = "'class': 'LZ4Compressor', 'lz4_compressor_type': 'high', 'chunk_length_in_kb': 4";
    let zstd = "'class': 'ZstdCompressor', 'compression_level': 5, 'chunk_length_in_kb': 16";
    let mut tables = vec![
        table("lz4_high", lz4),
        table(
            "snappy",
            "'class': 'SnappyCompressor', 'chunk_length_in_kb': 64",
        ),
        table(
            "deflate",
            "'class': 'DeflateCompressor', 'chunk_length_in_kb': 8",
        ),
        table("zstd", zstd).since(4),
        table("noop", "'class': 'NoopCompressor', 'chunk_length_in_kb': 4").since(4),
        table("uncompressed", "'enabled': false"),
        // Chunks that do not shrink enough are stored uncompressed.
        table(
            "ratio",
            "'class': 'LZ4Compressor', 'min_compress_ratio': 1.5, 'chunk_length_in_kb': 4",
        )
        .since(4),
    ];
    let dictionary = "'class': 'ZstdDictionaryCompressor', 'chunk_length_in_kb': 4";
    // Until there is a dictionary, chunks are compressed without one.
    let train = [
        "compressiondictionary",
        "train",
        "--force",
        "--max-dict-size",
        "4KiB",
        "--max-total-sample-size",
        "400KiB",
        KEYSPACE,
        DICTIONARY,
    ];
    if kind.supports_exact_chunks() {
        tables.push(chunk_end(kind));
    }
    tables.push(table(DICTIONARY, dictionary).nodetool(&train).since(6));
    tables
}

/// Table with a partition of one row, whose content fills two chunks exactly.
fn chunk_end(kind: Kind) -> Table {
    const CHUNK: usize = 4096;
    let create = "CREATE TABLE $t (k int PRIMARY KEY, v blob) WITH compression =
        {'class': 'LZ4Compressor', 'chunk_length_in_kb': 4}";
    // The key with its length, and the deletion time; flags, two sizes and timestamp of the row; flags and length of
    // the cell; end of the partition.
    let deletion = if kind.version == "nb" { 12 } else { 1 };
    let rest = 2 + 4 + deletion + (1 + 2 + 1 + 1) + (1 + 2) + 1;
    Table::new(CHUNK_END, create, |round, writes| {
        writes.push(format!(
            "INSERT INTO $t (k, v) VALUES (1, {}) USING TIMESTAMP {}",
            noise(round, 2 * CHUNK - rest),
            // Timestamps are written as differences to the least one of all inputs: an equal one takes a byte.
            time(0, 0)
        ));
    })
}

fn table(name: &'static str, compression: &str) -> Table {
    let create = format!(
        "CREATE TABLE $t (k int, c int, v text, b blob, PRIMARY KEY (k, c)) WITH compression = {{{compression}}}"
    );
    Table::rows(name, create, 160, |round, n| {
        let seed = round * 1000 + n;
        let value = words(seed, 250);
        // Some values do not compress.
        let blob = noise(seed, if n % 4 == 0 { 300 } else { 8 });
        format!(
            "INSERT INTO $t (k, c, v, b) VALUES ({}, {}, '{value}', {blob}) USING TIMESTAMP {}",
            n % 40,
            n / 40 + round,
            time(round, n)
        )
    })
}
