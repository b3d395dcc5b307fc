use super::*;

fn sample() -> Vec<u8> {
    let mut out = vec![0, 0x0d];
    out.extend_from_slice(b"LZ4Compressor");
    for word in [0u32, 0x4000, 0x7fff_ffff] {
        out.extend_from_slice(&word.to_be_bytes());
    }
    out.extend_from_slice(&1023u64.to_be_bytes());
    out.extend_from_slice(&1u32.to_be_bytes());
    out.extend_from_slice(&0u64.to_be_bytes());
    out
}

#[test]
fn vector_of_one_chunk() {
    let bytes = sample();
    let info = CompressionInfo::parse(&bytes, Version::Pa, 600).unwrap();
    assert_eq!(info.params, CompressionParams::new(Codec::Lz4, 16384));
    assert_eq!(
        info.chunk(0),
        Some(StoredChunk {
            offset: 0,
            stored_len: 600,
            raw_len: 1023
        })
    );
    assert_eq!(info.chunk(1), None);
    let mut out = Vec::new();
    info.write(&mut out, Version::Pa).unwrap();
    assert_eq!(out, bytes);
}

#[test]
fn round_trip_of_every_version() {
    for version in Version::ALL {
        let mut params = CompressionParams::new(Codec::Lz4, 4096);
        params.options = vec![
            ("a".to_owned(), "\0é".to_owned()),
            ("b".to_owned(), String::new()),
        ];
        if version.has_max_compressed_length() {
            params.max_compressed_len = 3414;
        }
        let mut info = CompressionInfo::new(params);
        info.push_chunk(4096, 100);
        info.push_chunk(4096, 4100);
        info.push_chunk(1, 10);
        let mut out = Vec::new();
        info.write(&mut out, version).unwrap();
        let parsed = CompressionInfo::parse(&out, version, 4210).unwrap();
        assert_eq!(parsed, info);
        assert_eq!(parsed.chunk(1).unwrap().stored_len, 4100);
        assert_eq!(parsed.chunk(2).unwrap().raw_len, 1);
        assert_eq!(parsed.chunk_index_of(8191), 1);
        for len in 0..out.len() {
            assert!(
                CompressionInfo::parse(&out[..len], version, 4210).is_err(),
                "{version} {len}"
            );
        }
    }
}

#[test]
fn ratio_counts_no_checksums() {
    let mut info = CompressionInfo::new(CompressionParams::new(Codec::Lz4, 4096));
    info.push_chunk(4096, 1028);
    assert_eq!(info.compression_ratio(), 0.25);
}

#[test]
fn ratio_to_maximum() {
    let of = CompressionParams::max_compressed_len_for_ratio;
    assert_eq!(of(4096, 1.2), 3414);
    assert_eq!(of(16384, 0.0), NO_MAX_COMPRESSED_LEN);
    assert_eq!(of(16384, 1.0), 16384);
}

/// Message of the error caused by changing the sample's bytes from `at` on.
fn damaged(at: usize, bytes: &[u8], version: Version) -> String {
    let mut sample = sample();
    sample.splice(
        at..(at + bytes.len()).min(sample.len()),
        bytes.iter().copied(),
    );
    CompressionInfo::parse(&sample, version, 600)
        .unwrap_err()
        .to_string()
}

#[test]
fn contradictions_are_named() {
    for (at, bytes, message) in [
        (15, 0x7fff_ffffu32.to_be_bytes().as_slice(), "option_count"),
        (
            19,
            &0x3000u32.to_be_bytes(),
            "a power of two up to 134217728, found 12288",
        ),
        (19, &0u32.to_be_bytes(), "1 or more, found 0"),
        (19, &0x4000_0000u32.to_be_bytes(), "a power of two"),
        (23, &0u32.to_be_bytes(), "max_compressed_length"),
        (27, &0u64.to_be_bytes(), "a positive number, found 0"),
        (27, &u64::MAX.to_be_bytes(), "a positive number, found -1"),
        (
            27,
            &16385u64.to_be_bytes(),
            "2 chunks of 16384 bytes for a data length of 16385, found 1",
        ),
        (35, &0x7fff_ffffu32.to_be_bytes(), "chunk_count"),
        (35, &0u32.to_be_bytes(), "found 0"),
        (39, &1u64.to_be_bytes(), "chunk 0 at 0"),
        (39, &u64::MAX.to_be_bytes(), "chunk 0 at 0"),
    ] {
        let error = damaged(at, bytes, Version::Oa);
        assert!(error.contains(message), "{at}: {error}");
    }
    let mut sample = sample();
    assert!(CompressionInfo::parse(&sample, Version::Oa, 4).is_err());
    assert!(CompressionInfo::parse(&sample, Version::Oa, 1 << 40).is_err());
    // Cassandra reads no further before 6.0, in which a dictionary may follow.
    let parsed = CompressionInfo::parse(&sample, Version::Oa, 600).unwrap();
    sample.push(0);
    let unread = CompressionInfo::parse(&sample, Version::Oa, 600).unwrap();
    assert_eq!((parsed.unread_len, unread.unread_len), (0, 1));
    assert_eq!(parsed.chunk_offsets, unread.chunk_offsets);
    assert!(CompressionInfo::parse(&sample, Version::Pa, 600).is_err());
}

/// Bytes of a file that was opened early: two chunks with content, and empty ones of these lengths.
fn opened_early(version: Version, empty: &[u32]) -> Vec<u8> {
    let mut info = CompressionInfo::new(CompressionParams::new(Codec::Lz4, 4096));
    for (raw_len, stored_len) in [(4096, 1281), (1, 10)] {
        info.push_chunk(raw_len, stored_len);
    }
    empty.iter().for_each(|len| info.push_chunk(0, *len));
    let mut bytes = Vec::new();
    info.write(&mut bytes, version).unwrap();
    bytes
}

#[test]
fn empty_chunks_after_the_content() {
    for version in Version::ALL {
        // One of LZ4, one of Noop, several.
        for empty in [[9].as_slice(), &[4], &[9, 9, 9]] {
            let bytes = opened_early(version, empty);
            let file_len = 1291 + u64::from(empty.iter().sum::<u32>());
            let info = CompressionInfo::parse(&bytes, version, file_len).unwrap();
            assert_eq!(info.chunk_count(), 2);
            assert_eq!(info.empty_chunk_count(), empty.len());
            assert_eq!(info.content_end(), 1291);
            let last = info.chunk(1).unwrap();
            assert_eq!((last.offset, last.stored_len, last.raw_len), (1281, 10, 1));
            assert_eq!(info.chunk(2), None);
            // Cassandra counts the bytes of an empty chunk other than its checksum.
            let stored = file_len - 4 * (2 + empty.len() as u64);
            assert_eq!(info.compression_ratio(), stored as f64 / 4097.0);
        }
        for (empty, file_len, message) in [
            ([9].as_slice(), 1294, "chunk 2 at between 1286 and 1290"),
            (&[3, 9], 1300, "chunk 3 at between 1295"),
            (&[9], 1 << 20, "empty chunks after the content"),
        ] {
            let bytes = opened_early(version, empty);
            let error = CompressionInfo::parse(&bytes, version, file_len).unwrap_err();
            assert!(error.to_string().contains(message), "{error}");
        }
    }
}

#[test]
fn a_dictionary_is_read_where_the_version_has_one() {
    let mut bytes = sample();
    let without = CompressionInfo::parse(&bytes, Version::Pa, 600).unwrap();
    assert_eq!(without.dictionary, None);
    bytes.push(0);
    bytes.extend_from_slice(&42u64.to_be_bytes());
    bytes.extend_from_slice(&[0, 0, 0, 1, 9]);
    // A wrong CRC32C.
    let damaged = [&bytes[..], &[1, 2, 3, 4]].concat();
    let error = CompressionInfo::parse(&damaged, Version::Pa, 600).unwrap_err();
    assert!(error.to_string().contains("dictionary_crc32c"), "{error}");
    let crc = crc32c::crc32c(&[&[0][..], &42u64.to_le_bytes(), &[9]].concat());
    bytes.extend_from_slice(&crc.to_be_bytes());
    let parsed = CompressionInfo::parse(&bytes, Version::Pa, 600).unwrap();
    let dictionary = parsed.dictionary.unwrap();
    assert_eq!((dictionary.id, &dictionary.bytes[..]), (42, &[9][..]));
    let unread = CompressionInfo::parse(&bytes, Version::Oa, 600).unwrap();
    assert_eq!((unread.dictionary, unread.unread_len), (None, 18));
}

#[test]
fn unsupported_values_are_not_written() {
    let mut info = CompressionInfo::new(CompressionParams::new(Codec::Lz4, 4096));
    assert!(info.write(&mut Vec::new(), Version::Nb).is_err());
    info.push_chunk(1, 10);
    info.params.max_compressed_len = 4096;
    assert!(info.write(&mut Vec::new(), Version::Me).is_err());
    assert!(info.write(&mut Vec::new(), Version::Nb).is_ok());
}

proptest::proptest! {
    #[test]
    fn damage_never_panics(at in 0usize..47, byte: u8, len in 0u64..2000) {
        let mut bytes = sample();
        bytes[at] = byte;
        for version in Version::ALL {
            let _ = CompressionInfo::parse(&bytes, version, len);
        }
    }
}

/// A class that only 6.0 has is written only in 6.0 versions, together with its own options.
#[test]
fn older_versions_name_no_dictionary_compressor() {
    let mut params = CompressionParams::new(Codec::Zstd { level: 5 }, 16 << 10);
    params.compressor = "ZstdDictionaryCompressor".to_owned();
    let training = (
        "training_max_total_sample_size".to_owned(),
        "10MiB".to_owned(),
    );
    params.options.push(training);
    for version in [Version::Pa, Version::Ea] {
        assert_eq!(params.clone().for_version(version), params);
    }
    for version in [Version::Nb, Version::Oa, Version::Da] {
        let older = params.clone().for_version(version);
        assert_eq!(
            older,
            CompressionParams::new(Codec::Zstd { level: 5 }, 16 << 10)
        );
    }
}

#[test]
fn the_longest_run_of_chunks() {
    let info = CompressionInfo {
        data_len: 5 * 16384,
        file_len: 10_000,
        chunk_offsets: vec![0, 100, 200, 3_000, 7_000],
        ..CompressionInfo::parse(&sample(), Version::Pa, 600).unwrap()
    };
    for (chunks, longest) in [(0, 4_000), (1, 4_000), (2, 6_800), (4, 7_000), (9, 10_000)] {
        assert_eq!(info.longest_run(chunks), longest, "{chunks}");
    }
}

#[test]
fn another_chunk_length_keeps_the_ratio() {
    let ratio = CompressionParams {
        max_compressed_len: CompressionParams::max_compressed_len_for_ratio(65_536, 1.1),
        ..CompressionParams::new(Codec::Lz4, 65_536)
    };
    let same = ratio.clone().with_chunk_len(65_536);
    assert_eq!(same, ratio);
    let smaller = ratio.with_chunk_len(4096);
    assert_eq!(
        (smaller.chunk_len, smaller.max_compressed_len),
        (4096, 3724)
    );
    let never = CompressionParams::new(Codec::Lz4, 4096).with_chunk_len(1 << 20);
    assert_eq!(never.max_compressed_len, NO_MAX_COMPRESSED_LEN);
}
