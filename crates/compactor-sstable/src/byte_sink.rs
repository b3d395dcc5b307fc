//! Big-endian primitives appended to a byte vector: the counterpart of `byte_reader`.

use crate::vint;

/// Sink for Cassandra's primitive encodings.
pub trait ByteSink {
    /// Appends one byte.
    fn put_u8(&mut self, value: u8);
    /// Appends bytes unchanged.
    fn put_slice(&mut self, bytes: &[u8]);
    /// Appends an unsigned vint.
    fn put_uvint(&mut self, value: u64);

    /// Appends a `u16`.
    fn put_u16(&mut self, value: u16) {
        self.put_slice(&value.to_be_bytes());
    }
    /// Appends a `u32`.
    fn put_u32(&mut self, value: u32) {
        self.put_slice(&value.to_be_bytes());
    }
    /// Appends an `i32`.
    fn put_i32(&mut self, value: i32) {
        self.put_slice(&value.to_be_bytes());
    }
    /// Appends an `i64`.
    fn put_i64(&mut self, value: i64) {
        self.put_slice(&value.to_be_bytes());
    }
    /// Appends an `f64`.
    fn put_f64(&mut self, value: f64) {
        self.put_slice(&value.to_be_bytes());
    }
    /// Appends 0 or 1.
    fn put_bool(&mut self, value: bool) {
        self.put_u8(u8::from(value));
    }
    /// Appends a zig-zag vint.
    fn put_svint(&mut self, value: i64) {
        self.put_uvint(vint::encode_zigzag(value));
    }
    /// Appends a Java `int` as `writeUnsignedVInt32` does (sign-extended).
    fn put_vint32(&mut self, value: i32) {
        self.put_uvint(i64::from(value) as u64);
    }
    /// Appends a vint length and the bytes.
    fn put_bytes_v(&mut self, bytes: &[u8]) {
        self.put_uvint(bytes.len() as u64);
        self.put_slice(bytes);
    }
    /// Appends an `i32` length and the bytes.
    ///
    /// # Panics
    /// If `bytes` is longer than an `i32` can represent.
    fn put_bytes32(&mut self, bytes: &[u8]) {
        assert!(
            i32::try_from(bytes.len()).is_ok(),
            "bytes32 of {} bytes",
            bytes.len()
        );
        self.put_i32(bytes.len() as i32);
        self.put_slice(bytes);
    }
    /// Appends a `u16` length and the bytes.
    ///
    /// # Panics
    /// If `bytes` is longer than 65,535: callers check values from files.
    fn put_bytes16(&mut self, bytes: &[u8]) {
        assert!(
            bytes.len() <= usize::from(u16::MAX),
            "bytes16 of {} bytes",
            bytes.len()
        );
        self.put_u16(bytes.len() as u16);
        self.put_slice(bytes);
    }
    /// Appends a `u16` length and modified UTF-8 (`DataOutput.writeUTF`).
    fn put_utf16_string(&mut self, text: &str) {
        let mut raw = Vec::with_capacity(text.len());
        for unit in text.encode_utf16() {
            match unit {
                0x0001..=0x007f => raw.push(unit as u8),
                0x0000 | 0x0080..=0x07ff => {
                    raw.push(0xc0 | (unit >> 6) as u8);
                    raw.push(0x80 | (unit & 0x3f) as u8);
                }
                _ => {
                    raw.push(0xe0 | (unit >> 12) as u8);
                    raw.push(0x80 | ((unit >> 6) & 0x3f) as u8);
                    raw.push(0x80 | (unit & 0x3f) as u8);
                }
            }
        }
        self.put_bytes16(&raw);
    }
}

impl ByteSink for Vec<u8> {
    #[inline]
    fn put_u8(&mut self, value: u8) {
        self.push(value);
    }
    #[inline]
    fn put_slice(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
    #[inline]
    fn put_uvint(&mut self, value: u64) {
        vint::write_unsigned(self, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::byte_reader::ByteReader;

    #[test]
    fn modified_utf8_round_trip() {
        for text in ["", "LZ4Compressor", "a\0b", "é€\u{1f600}"] {
            let mut out = Vec::new();
            out.put_utf16_string(text);
            assert_eq!(ByteReader::new(&out).utf16_string("t").unwrap(), text);
        }
    }
}
