//! Digest.crc32: CRC32 of the whole stored Data.db, in ASCII decimal.
//!
//! For a compressed file the digest also covers the inline chunk checksums.
//!
//! Source: `ChecksumWriter.writeFullChecksum`, `FileDigestValidator`.

use crate::error::{Error, Result};

/// Parses a digest. It may have a sign, and be followed by a line end and arbitrary text, as `readLine` and
/// `parseLong` allow.
///
/// # Errors
/// Corruption if it is not a number of 32 bits.
pub fn parse(bytes: &[u8]) -> Result<u32> {
    let line = bytes.split(|b| b"\r\n".contains(b)).next();
    let line = line.unwrap_or_default();
    let digits = line.strip_prefix(b"+").unwrap_or(line);
    std::str::from_utf8(digits)
        .ok()
        .filter(|text| text.bytes().all(|b| b.is_ascii_digit()))
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| {
            let shown = &bytes[..bytes.len().min(24)];
            Error::corrupt(
                "digest",
                0,
                "a decimal number of 32 bits",
                String::from_utf8_lossy(shown),
            )
        })
}

/// Appends a digest: digits only, no newline.
pub fn write(out: &mut Vec<u8>, crc: u32) {
    out.extend_from_slice(crc.to_string().as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_and_refusals() {
        for crc in [0, 7, u32::MAX] {
            let mut out = Vec::new();
            write(&mut out, crc);
            assert_eq!(parse(&out).unwrap(), crc);
            out.extend_from_slice(b"\r\nrest");
            assert_eq!(parse(&out).unwrap(), crc);
            out.insert(0, b'+');
            assert_eq!(parse(&out).unwrap(), crc);
        }
        for bad in ["", "4294967296", "-1", "++1", "+", "1 ", "0x1", "\n1"] {
            assert!(parse(bad.as_bytes()).is_err(), "{bad:?}");
        }
    }
}
