//! Statistics.db.

use compactor_sstable::Version;
use compactor_sstable::statistics::Statistics;

use crate::{take, version};

/// Input: version and file.
///
/// # Panics
/// If the file differs after being written and parsed again.
pub fn statistics(mut data: &[u8]) {
    let Some([selector]) = take(&mut data) else {
        return;
    };
    let version = version(selector);
    let _ = Statistics::parse(data, version);
    let mut bytes = data.to_vec();
    repair_checksums(&mut bytes, version);
    let Ok(statistics) = Statistics::parse(&bytes, version) else {
        return;
    };
    if let Some(compaction) = &statistics.compaction {
        let _ = compaction.cardinality().map(|c| c.cardinality());
    }
    let mut written = Vec::new();
    if statistics.write(&mut written, version).is_err() {
        return;
    }
    let again = match Statistics::parse(&written, version) {
        Ok(again) => again,
        Err(error) => panic!("what was written does not parse: {error}"),
    };
    // Compared as bytes, not as values: a NaN is not equal to itself.
    let mut written_again = Vec::new();
    again.write(&mut written_again, version).expect("as before");
    assert_eq!(written, written_again);
}

/// Corrects the checksums at the positions given in the table of contents. A file that is too damaged for
/// this is not changed.
pub(crate) fn repair_checksums(bytes: &mut [u8], version: Version) {
    if !version.has_metadata_checksum() {
        return;
    }
    let number = |bytes: &[u8], at: usize| {
        let number = bytes.get(at..)?.first_chunk::<4>()?;
        usize::try_from(i32::from_be_bytes(*number)).ok()
    };
    let put = |bytes: &mut [u8], at: usize, crc: u32| {
        if let Some(place) = bytes.get_mut(at..at + 4) {
            place.copy_from_slice(&crc.to_be_bytes());
        }
    };
    let Some(count) = number(bytes, 0).filter(|count| *count < 64) else {
        return;
    };
    let mut crc = crc32fast::Hasher::new();
    crc.update(&bytes[..4]);
    put(bytes, 4, crc.clone().finalize());
    let Some(toc) = bytes.get(8..8 + 8 * count) else {
        return;
    };
    crc.update(toc);
    put(bytes, 8 + 8 * count, crc.finalize());
    for index in 0..count {
        let start = number(bytes, 12 + 8 * index);
        let end = match index + 1 {
            next if next < count => number(bytes, 12 + 8 * next),
            _ => Some(bytes.len()),
        };
        let (Some(start), Some(end)) = (start, end.and_then(|end| end.checked_sub(4))) else {
            continue;
        };
        if let Some(body) = bytes.get(start..end) {
            let crc = crc32fast::hash(body);
            put(bytes, end, crc);
        }
    }
}
