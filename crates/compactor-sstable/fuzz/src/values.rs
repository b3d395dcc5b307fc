//! Integers, types and values.

use compactor_sstable::bti::byte_comparable;
use compactor_sstable::byte_reader::{ByteReader, decode_modified_utf8};
use compactor_sstable::data::counter::{Context, merge};
use compactor_sstable::types::CqlType;
use compactor_sstable::vint;

/// Input: integers and framings that use them.
///
/// # Panics
/// If an integer differs after being written and parsed again.
pub fn vint(data: &[u8]) {
    let mut pos = 0;
    while let Some(value) = {
        let before = pos;
        let value = vint::read_unsigned(data, &mut pos);
        assert!(value.is_none() || (pos > before && pos <= data.len()));
        value
    } {
        let mut written = Vec::new();
        vint::write_unsigned(&mut written, value);
        assert_eq!(written.len(), vint::unsigned_len(value));
        assert_eq!(vint::read_unsigned(&written, &mut 0), Some(value));
        written.clear();
        vint::write_signed(&mut written, vint::decode_zigzag(value));
        assert_eq!(vint::read_unsigned(&written, &mut 0), Some(value));
    }
    type Read = fn(&mut ByteReader<'_>) -> bool;
    let reads: [Read; 8] = [
        |r| r.svint("x").is_ok(),
        |r| r.vint32("x").is_ok(),
        |r| {
            r.uvint_count(3, "x")
                .is_ok_and(|count| count * 3 <= r.remaining())
        },
        |r| {
            r.i32_count(2, "x")
                .is_ok_and(|count| count * 2 <= r.remaining())
        },
        |r| r.bytes16("x").is_ok(),
        |r| r.bytes32("x").is_ok(),
        |r| r.bytes_v("x").is_ok(),
        |r| r.utf16_string("x").is_ok(),
    ];
    for read in reads {
        let mut reader = ByteReader::new(data);
        // Each takes at least a byte.
        while read(&mut reader) {}
        assert!(reader.position() <= data.len());
    }
    let _ = decode_modified_utf8(data);
}

/// Input: a type's name, a zero byte, and two values of the type of equal length.
///
/// # Panics
/// If a type differs after being written and parsed again, or valid values cannot be compared.
pub fn types(data: &[u8]) {
    let end = data.iter().position(|byte| *byte == 0);
    let (text, values) = match end {
        Some(end) => (&data[..end], &data[end + 1..]),
        None => (data, &[][..]),
    };
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    let Ok(cql_type) = CqlType::parse(text) else {
        return;
    };
    let written = cql_type.class_string();
    match CqlType::parse(&written) {
        Ok(again) => assert_eq!(again, cql_type, "{written}"),
        Err(error) => panic!("{written}: {error}"),
    }
    let _ = (
        cql_type.cql_name(),
        cql_type.fixed_len(),
        cql_type.path_type().is_some(),
    );
    let (a, b) = values.split_at(values.len() / 2);
    value(&cql_type, a);
    value(&cql_type, b);
    let forth = cql_type.compare(a, b);
    if cql_type.validate(a).is_ok() && cql_type.validate(b).is_ok() {
        assert_eq!(
            forth,
            cql_type.compare(b, a).reverse(),
            "{written}: {a:?} {b:?}"
        );
        assert!(cql_type.compare(a, a).is_eq(), "{written}: {a:?}");
    }
    let _ = cql_type.compare_paths(a, b);
    let _ = cql_type.key_values(a);
    let _ = cql_type.describe_key(b);
    let mut comparable = Vec::new();
    let _ = byte_comparable::append_value(&cql_type, a, &mut comparable);
}

/// Runs all operations on one value.
pub(crate) fn value(cql_type: &CqlType, bytes: &[u8]) {
    let _ = cql_type.validate(bytes);
    let _ = cql_type.to_json(bytes, &mut String::new());
    let _ = cql_type.to_text(bytes);
    let _ = cql_type.describe(bytes);
}

/// Input: two counter contexts.
pub fn counter(data: &[u8]) {
    let (a, b) = data.split_at(data.len() / 2);
    let Ok(left) = Context::parse(a) else { return };
    let _ = (left.should_clear_local(), left.has_legacy_shards());
    left.clear_local(&mut Vec::new());
    let Ok(right) = Context::parse(b) else { return };
    let mut merged = Vec::new();
    let _ = merge(&left, &right, &mut merged);
    assert!(merged.len() <= data.len(), "a merge longer than both");
    let _ = merge(&left, &left, &mut Vec::new());
}
