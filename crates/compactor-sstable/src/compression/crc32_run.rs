//! CRC32 of a file computed from the CRC32s of its parts, without reading them again.
//!
//! A chunk has a checksum of its own, and the file has one over everything, including those checksums.
//! Appending `len` bytes to a message multiplies its CRC, a polynomial over GF(2), by x^(8 * `len`) modulo
//! the CRC's polynomial; the CRC of the appended bytes is then added. The powers of x are tabulated, so that
//! a chunk takes as many multiplications as its length has bytes.

use crate::compression::{CRC_LEN, crc32};

/// Polynomial of CRC32 (IEEE), bits reflected: the most significant bit is the coefficient of x^0.
const POLYNOMIAL: u32 = 0xedb8_8320;
const ONE: u32 = 1 << 31;

/// x^(8 * digit * 256^level) modulo the polynomial, by level and digit.
static POWERS: [[u32; 256]; 8] = powers();

/// CRC32 of a growing run of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Crc32Run {
    crc: u32,
    len: u64,
}

impl Crc32Run {
    /// Appends `len` bytes whose CRC32 is `crc`.
    #[inline]
    pub fn append(&mut self, crc: u32, len: u64) {
        self.crc = shift(self.crc, len) ^ crc;
        self.len = self.len.wrapping_add(len);
    }

    /// Appends the bytes of another run.
    #[inline]
    pub fn append_run(&mut self, run: &Crc32Run) {
        self.append(run.crc, run.len);
    }

    /// Appends a chunk as stored in Data.db: a payload of `payload_len` bytes whose CRC32 is `crc`, and that
    /// checksum itself.
    #[inline]
    pub fn append_chunk(&mut self, crc: u32, payload_len: u64) {
        self.append(crc, payload_len);
        self.append(crc32(&crc.to_be_bytes()), CRC_LEN as u64);
    }

    /// CRC32 of all bytes.
    #[inline]
    pub fn value(&self) -> u32 {
        self.crc
    }

    /// Number of bytes appended.
    #[inline]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether nothing was appended.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// `crc` times x^(8 * `len`).
#[inline]
fn shift(mut crc: u32, mut len: u64) -> u32 {
    if crc == 0 {
        return 0;
    }
    for powers in &POWERS {
        if len == 0 {
            break;
        }
        let digit = (len & 0xff) as usize;
        if digit > 0 {
            crc = multiply(crc, powers[digit]);
        }
        len >>= 8;
    }
    crc
}

/// Product modulo the polynomial.
#[inline]
const fn multiply(a: u32, mut b: u32) -> u32 {
    let mut product = 0;
    let mut bit = 0;
    while bit < 32 {
        // All ones if `a` contains x^bit, so that there is no branch on data.
        product ^= b & (0u32.wrapping_sub((a >> (31 - bit)) & 1));
        b = times_x(b);
        bit += 1;
    }
    product
}

#[inline]
const fn times_x(a: u32) -> u32 {
    (a >> 1) ^ (POLYNOMIAL & 0u32.wrapping_sub(a & 1))
}

const fn powers() -> [[u32; 256]; 8] {
    let mut powers = [[ONE; 256]; 8];
    // x^8 at first, then its 256th power, and so on.
    let mut base = ONE;
    let mut bit = 0;
    while bit < 8 {
        base = times_x(base);
        bit += 1;
    }
    let mut level = 0;
    while level < 8 {
        let mut digit = 1;
        while digit < 256 {
            powers[level][digit] = multiply(powers[level][digit - 1], base);
            digit += 1;
        }
        base = multiply(powers[level][255], base);
        level += 1;
    }
    powers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_of_any_length() {
        // Lengths with one digit at each level that a test can afford.
        for len in [0usize, 1, 255, 256, 257, 65_535, 65_536, (1 << 24) + 3] {
            let zeros = vec![0u8; len];
            let mut run = Crc32Run::default();
            run.append(crc32(b"before"), 6);
            run.append(crc32(&zeros), len as u64);
            let whole = [b"before".as_slice(), &zeros].concat();
            assert_eq!(run.value(), crc32(&whole), "{len}");
            assert_eq!(run.len(), whole.len() as u64);
        }
    }

    #[test]
    fn agrees_with_crc32fast_beyond_what_fits_memory() {
        for len in [u64::from(u32::MAX), 1 << 40, (1 << 56) + 12_345] {
            let mut run = Crc32Run::default();
            run.append(0x1234_5678, 9);
            run.append(0x9abc_def0, len);
            let mut expected = crc32fast::Hasher::new_with_initial_len(0x1234_5678, 9);
            expected.combine(&crc32fast::Hasher::new_with_initial_len(0x9abc_def0, len));
            assert_eq!(run.value(), expected.finalize(), "{len}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_pieces(pieces in proptest::collection::vec(proptest::collection::vec(0u8.., 0..700), 0..12)) {
            let mut run = Crc32Run::default();
            let mut runs = Crc32Run::default();
            for pair in pieces.chunks(2) {
                let mut inner = Crc32Run::default();
                for piece in pair {
                    run.append(crc32(piece), piece.len() as u64);
                    inner.append(crc32(piece), piece.len() as u64);
                }
                runs.append_run(&inner);
            }
            proptest::prop_assert_eq!(run.value(), crc32(&pieces.concat()));
            proptest::prop_assert_eq!(runs, run);
            proptest::prop_assert_eq!(run.is_empty(), pieces.concat().is_empty());
        }

        #[test]
        fn chunks(payloads in proptest::collection::vec(proptest::collection::vec(0u8.., 0..300), 0..6)) {
            let mut run = Crc32Run::default();
            let mut file = Vec::new();
            for payload in &payloads {
                run.append_chunk(crc32(payload), payload.len() as u64);
                file.extend_from_slice(payload);
                file.extend_from_slice(&crc32(payload).to_be_bytes());
            }
            proptest::prop_assert_eq!(run.value(), crc32(&file));
        }
    }
}
