//! One table of each compressor.

use super::{Table, noise, text, time};

pub(super) fn tables() -> Vec<Table> {
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
        table("zstd", zstd),
        table("noop", "'class': 'NoopCompressor', 'chunk_length_in_kb': 4"),
        table("uncompressed", "'enabled': false"),
        // Chunks that do not shrink enough are stored as they are.
        table(
            "ratio",
            "'class': 'LZ4Compressor', 'min_compress_ratio': 1.5, 'chunk_length_in_kb': 4",
        ),
    ];
    let dictionary = "'class': 'ZstdDictionaryCompressor', 'chunk_length_in_kb': 4";
    tables.push(table("dictionary", dictionary).since(6));
    tables
}

fn table(name: &'static str, compression: &str) -> Table {
    let create = format!(
        "CREATE TABLE $t (k int, c int, v text, b blob, PRIMARY KEY (k, c)) WITH compression = {{{compression}}}"
    );
    Table::new(name, create, |round, writes| {
        for n in 0..160 {
            let seed = round * 1000 + n;
            let value = text(seed, 250);
            // Some of it does not compress.
            let blob = noise(seed, if n % 4 == 0 { 300 } else { 8 });
            writes.push(format!(
                "INSERT INTO $t (k, c, v, b) VALUES ({}, {}, '{value}', {blob}) USING TIMESTAMP {}",
                n % 40,
                n / 40 + round,
                time(round, n)
            ));
        }
    })
}
