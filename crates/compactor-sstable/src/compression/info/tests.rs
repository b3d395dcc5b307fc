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
        assert_eq!(parsed.max_stored_len(), 4100);
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

/// Message of the error that comes from changing the sample's bytes from `at` on.
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
        (19, &0u32.to_be_bytes(), "a positive number, found 0"),
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
        (47, &[0], "found 1 more bytes"),
    ] {
        let error = damaged(at, bytes, Version::Oa);
        assert!(error.contains(message), "{at}: {error}");
    }
    let sample = sample();
    assert!(CompressionInfo::parse(&sample, Version::Oa, 4).is_err());
    assert!(CompressionInfo::parse(&sample, Version::Oa, 1 << 40).is_err());
}

/// Cassandra 3.x wrote such files.
#[test]
fn an_empty_last_chunk_before_4_0() {
    let mut info = CompressionInfo::new(CompressionParams::new(Codec::Lz4, 65536));
    info.push_chunk(3247, 1281);
    info.push_chunk(0, 9);
    let mut out = Vec::new();
    info.write(&mut out, Version::Md).unwrap();
    assert_eq!(
        CompressionInfo::parse(&out, Version::Md, 1290)
            .unwrap()
            .chunk(1)
            .unwrap()
            .raw_len,
        0
    );
    let mut out = Vec::new();
    info.write(&mut out, Version::Nb).unwrap();
    assert!(CompressionInfo::parse(&out, Version::Nb, 1290).is_err());
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
    assert!(matches!(
        CompressionInfo::parse(&bytes, Version::Oa, 600),
        Err(Error::Corrupt(_))
    ));
}

#[test]
fn what_a_version_cannot_say_is_not_written() {
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
