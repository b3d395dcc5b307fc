//! Encoding of values of constant width.

use crate::error::{Error, Result};

/// Returns the value as an array.
pub(super) fn exactly<const N: usize>(value: &[u8], name: &'static str) -> Result<[u8; N]> {
    <[u8; N]>::try_from(value).map_err(|_| {
        Error::corrupt(
            "clustering.value",
            0,
            format!("{N} bytes of a {name}"),
            format!("{} bytes", value.len()),
        )
    })
}

/// Two's complement with the sign bit inverted (`ByteSource.SignedFixedLengthNumber`).
pub(super) fn signed<const N: usize>(
    value: &[u8],
    name: &'static str,
    out: &mut Vec<u8>,
) -> Result<()> {
    let at = out.len();
    out.extend_from_slice(&exactly::<N>(value, name)?);
    out[at] ^= 0x80;
    Ok(())
}

/// Unchanged bytes.
pub(super) fn unsigned<const N: usize>(
    value: &[u8],
    name: &'static str,
    out: &mut Vec<u8>,
) -> Result<()> {
    out.extend_from_slice(&exactly::<N>(value, name)?);
    Ok(())
}

/// IEEE 754: negative numbers inverted, others with the sign bit set (`ByteSource.SignedFixedLengthFloat`).
pub(super) fn float<const N: usize>(
    value: &[u8],
    name: &'static str,
    out: &mut Vec<u8>,
) -> Result<()> {
    let mut raw = exactly::<N>(value, name)?;
    if raw[0] & 0x80 != 0 {
        for byte in &mut raw {
            *byte ^= 0xff;
        }
    } else {
        raw[0] |= 0x80;
    }
    out.extend_from_slice(&raw);
    Ok(())
}

fn halves(value: &[u8]) -> Result<(u64, u64)> {
    let raw = u128::from_be_bytes(exactly::<16>(value, "uuid")?);
    Ok(((raw >> 64) as u64, raw as u64))
}

fn append_halves(high: u64, low: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(&high.to_be_bytes());
    out.extend_from_slice(&low.to_be_bytes());
}

/// High, middle and low part of the timestamp (`TimeUUIDType.reorderTimestampBytes`).
fn reorder(msb: u64) -> u64 {
    (msb << 48) | ((msb << 16) & 0xffff_0000_0000) | (msb >> 32)
}

/// The version first; version 1 as its timestamp, which begins with the version.
pub(super) fn uuid(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let (msb, lsb) = halves(value)?;
    let version = (msb >> 12) & 0xf;
    let high = if version == 1 {
        reorder(msb)
    } else {
        (version << 60) | ((msb >> 4) & 0x0fff_ffff_ffff_f000) | (msb & 0xfff)
    };
    append_halves(high, lsb, out);
    Ok(())
}

/// The timestamp, then signed bytes (`AbstractTimeUUIDType`).
pub(super) fn time_uuid(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let (msb, lsb) = halves(value)?;
    append_halves(reorder(msb), lsb ^ 0x8080_8080_8080_8080, out);
    Ok(())
}

/// Two signed halves.
pub(super) fn lexical_uuid(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let (msb, lsb) = halves(value)?;
    append_halves(msb ^ (1 << 63), lsb ^ (1 << 63), out);
    Ok(())
}
