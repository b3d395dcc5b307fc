//! A bounds-checked cursor over a component's bytes.

use std::fmt::Display;

use crate::error::{Error, Result};
use crate::vint;

/// Reader of big-endian primitives from a slice that knows its offset in the file.
#[derive(Clone, Debug)]
pub struct ByteReader<'a> {
    bytes: &'a [u8],
    pos: usize,
    base: u64,
}

macro_rules! fixed {
    ($($name:ident -> $type:ty;)*) => {$(
        /// Reads one big-endian value; `structure` names it in an error.
        #[inline]
        pub fn $name(&mut self, structure: &'static str) -> Result<$type> {
            Ok(<$type>::from_be_bytes(self.array(structure)?))
        }
    )*};
}

impl<'a> ByteReader<'a> {
    /// Creates a reader at the first byte of `bytes`, which is offset 0 of the file.
    pub fn new(bytes: &'a [u8]) -> Self {
        ByteReader::with_base(bytes, 0)
    }

    /// Creates a reader at the first byte of `bytes`, which is offset `base` of the file.
    pub fn with_base(bytes: &'a [u8], base: u64) -> Self {
        ByteReader {
            bytes,
            pos: 0,
            base,
        }
    }

    /// Offset in the file of the next byte.
    #[inline]
    pub fn offset(&self) -> u64 {
        self.base + self.pos as u64
    }

    /// Index in the slice of the next byte.
    #[inline]
    pub fn position(&self) -> usize {
        self.pos
    }

    /// Bytes not yet read.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.pos
    }

    /// Whether all bytes have been read.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.remaining() == 0
    }

    /// Returns a corruption error at the next byte.
    #[cold]
    pub fn corrupt(
        &self,
        structure: &'static str,
        expected: impl Display,
        found: impl Display,
    ) -> Error {
        Error::corrupt(structure, self.offset(), expected, found)
    }

    /// Checks that all bytes have been read; `expected` names what the next ones would have to be.
    ///
    /// # Errors
    /// Corruption if bytes are left.
    pub fn expect_end(&self, structure: &'static str, expected: &str) -> Result<()> {
        match self.remaining() {
            0 => Ok(()),
            left => Err(self.corrupt(structure, expected, format!("{left} more bytes"))),
        }
    }

    #[cold]
    fn short(&self, structure: &'static str, wanted: u64) -> Error {
        self.corrupt(
            structure,
            format!("{wanted} bytes"),
            format!("{} bytes left", self.remaining()),
        )
    }

    /// Reads `len` bytes.
    #[inline]
    pub fn bytes(&mut self, len: usize, structure: &'static str) -> Result<&'a [u8]> {
        match self.bytes.get(self.pos..).and_then(|rest| rest.get(..len)) {
            Some(taken) => {
                self.pos += len;
                Ok(taken)
            }
            None => Err(self.short(structure, len as u64)),
        }
    }

    /// Reads `N` bytes.
    #[inline]
    pub fn array<const N: usize>(&mut self, structure: &'static str) -> Result<[u8; N]> {
        let mut out = [0u8; N];
        out.copy_from_slice(self.bytes(N, structure)?);
        Ok(out)
    }

    fixed! {
        u8 -> u8;
        u16 -> u16;
        i16 -> i16;
        u32 -> u32;
        i32 -> i32;
        u64 -> u64;
        i64 -> i64;
        f64 -> f64;
    }

    /// Reads a byte that must be 0 or 1.
    pub fn bool(&mut self, structure: &'static str) -> Result<bool> {
        let at = self.offset();
        match self.u8(structure)? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(Error::corrupt(structure, at, "0 or 1", other)),
        }
    }

    /// Reads an unsigned vint.
    #[inline]
    pub fn uvint(&mut self, structure: &'static str) -> Result<u64> {
        match vint::read_unsigned(self.bytes, &mut self.pos) {
            Some(value) => Ok(value),
            None => Err(self.short(structure, 1)),
        }
    }

    /// Reads a zig-zag vint.
    #[inline]
    pub fn svint(&mut self, structure: &'static str) -> Result<i64> {
        self.uvint(structure).map(vint::decode_zigzag)
    }

    /// Reads an unsigned vint that must fit a signed 32-bit integer (`readUnsignedVInt32`).
    #[inline]
    pub fn vint32(&mut self, structure: &'static str) -> Result<i32> {
        let at = self.offset();
        let raw = self.uvint(structure)? as i64;
        i32::try_from(raw).map_err(|_| Error::corrupt(structure, at, "a value of 32 bits", raw))
    }

    /// Reads an `i32` of at least `least`.
    pub fn i32_from(&mut self, least: u32, structure: &'static str) -> Result<u32> {
        let at = self.offset();
        let raw = self.i32(structure)?;
        match u32::try_from(raw) {
            Ok(number) if number >= least => Ok(number),
            _ => Err(Error::corrupt(
                structure,
                at,
                format!("{least} or more"),
                raw,
            )),
        }
    }

    /// Reads a count or length as vint and checks that `count * min_item_len` bytes can follow.
    pub fn uvint_count(&mut self, min_item_len: usize, structure: &'static str) -> Result<usize> {
        let at = self.offset();
        let raw = self.uvint(structure)?;
        self.check_count(raw, min_item_len, at, structure)
    }

    /// Reads an `i32` count and checks that `count * min_item_len` bytes can follow.
    pub fn i32_count(&mut self, min_item_len: usize, structure: &'static str) -> Result<usize> {
        let at = self.offset();
        let raw = self.i32(structure)?;
        let raw = u64::try_from(raw)
            .map_err(|_| Error::corrupt(structure, at, "a count of 0 or more", raw))?;
        self.check_count(raw, min_item_len, at, structure)
    }

    fn check_count(
        &self,
        count: u64,
        min_item_len: usize,
        at: u64,
        structure: &'static str,
    ) -> Result<usize> {
        let limit = self.remaining() / min_item_len.max(1);
        match usize::try_from(count) {
            Ok(count) if count <= limit => Ok(count),
            _ => Err(Error::corrupt(
                structure,
                at,
                format!("at most {limit} (bytes left: {})", self.remaining()),
                count,
            )),
        }
    }

    /// Reads a `u16` length and that many bytes.
    pub fn bytes16(&mut self, structure: &'static str) -> Result<&'a [u8]> {
        let len = self.u16(structure)?;
        self.bytes(usize::from(len), structure)
    }

    /// Reads an `i32` length and that many bytes.
    pub fn bytes32(&mut self, structure: &'static str) -> Result<&'a [u8]> {
        let len = self.i32_count(1, structure)?;
        self.bytes(len, structure)
    }

    /// Reads a vint length and that many bytes.
    pub fn bytes_v(&mut self, structure: &'static str) -> Result<&'a [u8]> {
        let len = self.uvint_count(1, structure)?;
        self.bytes(len, structure)
    }

    /// Reads a `u16` length and modified UTF-8 (`DataInput.readUTF`).
    pub fn utf16_string(&mut self, structure: &'static str) -> Result<String> {
        let at = self.offset();
        let raw = self.bytes16(structure)?;
        decode_modified_utf8(raw)
            .ok_or_else(|| Error::corrupt(structure, at, "modified UTF-8", format!("{raw:02x?}")))
    }
}

/// Decodes Java's modified UTF-8: U+0000 as `C0 80`, surrogates as three bytes each. A zero byte, which Java never
/// writes, is refused: a text with many could be read and not written again, as it would become longer.
pub fn decode_modified_utf8(raw: &[u8]) -> Option<String> {
    let mut units = Vec::with_capacity(raw.len());
    let mut rest = raw.iter().copied();
    while let Some(a) = rest.next() {
        let unit = match a {
            0x01..=0x7f => u16::from(a),
            0xc0..=0xdf => (u16::from(a & 0x1f) << 6) | continuation(rest.next()?)?,
            0xe0..=0xef => {
                let b = continuation(rest.next()?)?;
                let c = continuation(rest.next()?)?;
                (u16::from(a & 0x0f) << 12) | (b << 6) | c
            }
            _ => return None,
        };
        units.push(unit);
    }
    String::from_utf16(&units).ok()
}

fn continuation(byte: u8) -> Option<u16> {
    (byte & 0xc0 == 0x80).then_some(u16::from(byte & 0x3f))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_input_names_offset() {
        let mut reader = ByteReader::with_base(&[0, 1, 2], 40);
        assert_eq!(reader.u16("x").unwrap(), 1);
        let error = reader.i32("stats.level").unwrap_err().to_string();
        assert_eq!(
            error,
            "corrupt stats.level at offset 42: expected 4 bytes, found 1 bytes left"
        );
    }

    #[test]
    fn absurd_counts_are_refused_before_use() {
        let bytes = [0x7f, 0xff, 0xff, 0xff, 1, 2, 3];
        assert!(ByteReader::new(&bytes).i32_count(8, "n").is_err());
        assert!(ByteReader::new(&[0xff; 9]).uvint_count(1, "n").is_err());
        assert!(ByteReader::new(&[0xff; 4]).i32_count(1, "n").is_err());
        assert!(
            ByteReader::new(&[0xff; 9])
                .vint32("n")
                .is_ok_and(|v| v == -1)
        );
    }

    #[test]
    fn modified_utf8() {
        assert_eq!(
            decode_modified_utf8(b"LZ4Compressor").unwrap(),
            "LZ4Compressor"
        );
        assert_eq!(decode_modified_utf8(&[0xc0, 0x80]).unwrap(), "\0");
        // U+1F600 as two surrogates of three bytes.
        assert_eq!(
            decode_modified_utf8(&[0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80]).unwrap(),
            "\u{1f600}"
        );
        assert!(decode_modified_utf8(&[0xff]).is_none());
        assert!(decode_modified_utf8(&[b'a', 0]).is_none());
        assert!(decode_modified_utf8(&[0xe0, 0x80]).is_none());
    }
}
