//! Order of types of constant width.

use std::cmp::Ordering;

use crate::types::compare::by_validity;

/// tinyint: Cassandra compares only the first byte; empty is not valid and sorts first.
pub(in crate::types) fn byte(a: &[u8], b: &[u8]) -> Ordering {
    a.first()
        .map(|byte| *byte as i8)
        .cmp(&b.first().map(|byte| *byte as i8))
}

/// Empty first, then the first byte signed, the rest unsigned: numeric for values of equal width.
///
/// Source: `ShortType`, `Int32Type`, `LongType.compareLongs`.
#[inline]
pub(in crate::types) fn signed_first_byte(a: &[u8], b: &[u8]) -> Ordering {
    match (a.split_first(), b.split_first()) {
        (Some((head_a, rest_a)), Some((head_b, rest_b))) => (*head_a as i8)
            .cmp(&(*head_b as i8))
            .then_with(|| rest_a.cmp(rest_b)),
        _ => a.len().cmp(&b.len()),
    }
}

/// int.
#[inline]
pub(in crate::types) fn int32(a: &[u8], b: &[u8]) -> Ordering {
    match (<[u8; 4]>::try_from(a), <[u8; 4]>::try_from(b)) {
        (Ok(a), Ok(b)) => i32::from_be_bytes(a).cmp(&i32::from_be_bytes(b)),
        _ => signed_first_byte(a, b),
    }
}

/// bigint and timestamp.
#[inline]
pub(in crate::types) fn int64(a: &[u8], b: &[u8]) -> Ordering {
    match (<[u8; 8]>::try_from(a), <[u8; 8]>::try_from(b)) {
        (Ok(a), Ok(b)) => i64::from_be_bytes(a).cmp(&i64::from_be_bytes(b)),
        _ => signed_first_byte(a, b),
    }
}

/// Empty, false, true; any byte but 0 is true.
#[inline]
pub(in crate::types) fn boolean(a: &[u8], b: &[u8]) -> Ordering {
    a.first()
        .map(|byte| *byte != 0)
        .cmp(&b.first().map(|byte| *byte != 0))
}

/// `Float.compareTo`: -0.0 before 0.0, all NaN equal and last.
#[inline]
pub(in crate::types) fn float(a: &[u8], b: &[u8]) -> Ordering {
    match (<[u8; 4]>::try_from(a), <[u8; 4]>::try_from(b)) {
        (Ok(a), Ok(b)) => {
            let canonical = |raw: [u8; 4]| {
                let value = f32::from_be_bytes(raw);
                if value.is_nan() {
                    f32::NAN.abs()
                } else {
                    value
                }
            };
            canonical(a).total_cmp(&canonical(b))
        }
        _ => malformed(a, b, 4),
    }
}

/// `Double.compareTo`: as [`float`].
#[inline]
pub(in crate::types) fn double(a: &[u8], b: &[u8]) -> Ordering {
    match (<[u8; 8]>::try_from(a), <[u8; 8]>::try_from(b)) {
        (Ok(a), Ok(b)) => {
            let canonical = |raw: [u8; 8]| {
                let value = f64::from_be_bytes(raw);
                if value.is_nan() {
                    f64::NAN.abs()
                } else {
                    value
                }
            };
            canonical(a).total_cmp(&canonical(b))
        }
        _ => malformed(a, b, 8),
    }
}

/// The most and least significant half.
#[inline]
fn halves(bytes: &[u8]) -> Option<(u64, u64)> {
    let raw = u128::from_be_bytes(<[u8; 16]>::try_from(bytes).ok()?);
    Some(((raw >> 64) as u64, raw as u64))
}

/// Reorders the timestamp of a version 1 UUID: high, middle, low part.
///
/// Source: `AbstractTimeUUIDType.reorderTimestampBytes`.
#[inline]
fn reorder(msb: u64) -> i64 {
    ((msb << 48) | ((msb << 16) & 0xffff_0000_0000) | (msb >> 32)) as i64
}

/// Version, then timestamp (version 1) or unsigned high half, then unsigned low half.
#[inline]
pub(in crate::types) fn uuid(a: &[u8], b: &[u8]) -> Ordering {
    let (Some((msb_a, lsb_a)), Some((msb_b, lsb_b))) = (halves(a), halves(b)) else {
        return malformed(a, b, 16);
    };
    let version = |msb: u64| (msb >> 12) & 0xf;
    version(msb_a)
        .cmp(&version(msb_b))
        .then_with(|| {
            if version(msb_a) == 1 {
                reorder(msb_a).cmp(&reorder(msb_b))
            } else {
                msb_a.cmp(&msb_b)
            }
        })
        .then_with(|| lsb_a.cmp(&lsb_b))
}

/// Timestamp, then the low half with each byte signed (CASSANDRA-8730).
#[inline]
pub(in crate::types) fn time_uuid(a: &[u8], b: &[u8]) -> Ordering {
    let (Some((msb_a, lsb_a)), Some((msb_b, lsb_b))) = (halves(a), halves(b)) else {
        return malformed(a, b, 16);
    };
    // After flipping all signs but the top one, a signed comparison of 64 bits is equivalent to eight signed
    // ones.
    let signed_bytes = |lsb: u64| (lsb ^ 0x0080_8080_8080_8080) as i64;
    reorder(msb_a)
        .cmp(&reorder(msb_b))
        .then_with(|| signed_bytes(lsb_a).cmp(&signed_bytes(lsb_b)))
}

/// Timestamp of a [`time_uuid`], as a number that sorts as it does.
#[inline]
pub(in crate::types) fn time_uuid_prefix(value: &[u8]) -> Option<u64> {
    let (msb, _) = halves(value)?;
    Some(reorder(msb) as u64 ^ (1 << 63))
}

/// `java.util.UUID.compareTo`: both halves signed.
pub(in crate::types) fn lexical_uuid(a: &[u8], b: &[u8]) -> Ordering {
    let (Some((msb_a, lsb_a)), Some((msb_b, lsb_b))) = (halves(a), halves(b)) else {
        return malformed(a, b, 16);
    };
    (msb_a as i64, lsb_a as i64).cmp(&(msb_b as i64, lsb_b as i64))
}

#[cold]
fn malformed(a: &[u8], b: &[u8], len: usize) -> Ordering {
    by_validity(a, b, |bytes| bytes.len() == len).unwrap_or(Ordering::Equal)
}
