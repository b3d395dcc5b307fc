//! Cassandra's variable-length integers.
//!
//! The number of leading one bits of the first byte is the number of bytes that follow it (0 to 8);
//! the bits after the terminating zero, then the extra bytes, are the value, big-endian. Writers use
//! the shortest form; readers accept any. Signed values are zig-zag encoded first.
//!
//! Source: `VIntCoding`.

/// Maximum encoded length, bytes.
pub const MAX_LEN: usize = 9;

/// Encoded length of `value`, bytes.
#[inline]
pub fn unsigned_len(value: u64) -> usize {
    // 7 payload bits per byte up to 8 bytes; the ninth byte contains the rest.
    let magnitude = (value | 1).leading_zeros() as usize;
    9 - (magnitude.saturating_sub(1)) / 7
}

/// Returns the shortest form of `value` and its length.
#[inline]
pub fn encode(value: u64) -> ([u8; MAX_LEN], usize) {
    let len = unsigned_len(value);
    let mut out = [0u8; MAX_LEN];
    if len == MAX_LEN {
        out[0] = 0xff;
        out[1..].copy_from_slice(&value.to_be_bytes());
        return (out, len);
    }
    // The prefix of ones is in the most significant of the `len` low bytes; shifting the value up makes that
    // byte the first.
    let prefix = prefix(len);
    let word = (value << (8 * (8 - len))) | (u64::from(prefix) << 56);
    out[..8].copy_from_slice(&word.to_be_bytes());
    (out, len)
}

/// Prefix of ones in the first byte of a vint of up to 8 bytes.
#[inline]
fn prefix(len: usize) -> u8 {
    !(0xff >> (len - 1))
}

/// Writes `value`, which takes up to 8 bytes, over `out`, which has its encoded length.
#[inline]
pub(crate) fn overwrite(out: &mut [u8], value: u64) {
    debug_assert!(out.len() == unsigned_len(value) && out.len() < MAX_LEN);
    // Byte by byte: copying a part of an array that was just stored in other parts would stall (store forwarding).
    let mut rest = value;
    for byte in out.iter_mut().rev() {
        *byte = rest as u8;
        rest >>= 8;
    }
    let prefix = prefix(out.len());
    if let Some(first) = out.first_mut() {
        *first |= prefix;
    }
}

/// Appends `value` in its shortest form.
#[inline]
pub fn write_unsigned(out: &mut Vec<u8>, value: u64) {
    if value < 0x80 {
        out.push(value as u8);
        return;
    }
    let (encoded, len) = encode(value);
    let end = out.len() + len;
    // A copy of constant length compiles to a few instructions, one of variable length to a call.
    out.extend_from_slice(&encoded);
    out.truncate(end);
}

/// Appends `value` zig-zag encoded.
#[inline]
pub fn write_signed(out: &mut Vec<u8>, value: i64) {
    write_unsigned(out, encode_zigzag(value));
}

/// Encodes a value by zig-zag.
#[inline]
pub fn encode_zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// Decodes a zig-zag value.
#[inline]
pub fn decode_zigzag(raw: u64) -> i64 {
    ((raw >> 1) as i64) ^ -((raw & 1) as i64)
}

/// Reads an unsigned vint at `*pos` and advances `*pos` past it; `None` if the bytes end first.
#[inline(always)]
pub fn read_unsigned(bytes: &[u8], pos: &mut usize) -> Option<u64> {
    let first = *bytes.get(*pos)?;
    if first < 0x80 {
        *pos += 1;
        return Some(u64::from(first));
    }
    read_unsigned_long(bytes, pos, first)
}

#[inline]
fn read_unsigned_long(bytes: &[u8], pos: &mut usize, first: u8) -> Option<u64> {
    let extra = first.leading_ones() as usize;
    let end = *pos + 1 + extra;
    if end > bytes.len() {
        return None;
    }
    // One unaligned load instead of a loop over bytes: of the eight bytes up to the end, or of the first eight if
    // there are fewer up to it. The first byte of the vint is among them unless it has no bits of the value.
    let start = end.saturating_sub(8);
    let mut word = match bytes.get(start..start + 8) {
        Some(eight) => {
            let mut word = [0; 8];
            word.copy_from_slice(eight);
            u64::from_be_bytes(word)
        }
        None => word_of_few(bytes),
    };
    word >>= 8 * (start + 8 - end);
    // The zero bit that ends the count of bytes may stay: a value has seven bits per byte, with nine bytes all 64.
    let before = 56 - 7 * extra;
    *pos = end;
    Some(word & (u64::MAX >> before))
}

/// Fewer than eight bytes as a big-endian word, padded with zeros at the end.
#[cold]
#[inline(never)]
fn word_of_few(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word.iter_mut()
        .zip(bytes)
        .for_each(|(to, from)| *to = *from);
    u64::from_be_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Definition, bit by bit.
    fn naive(bytes: &[u8]) -> Option<(u64, usize)> {
        let first = *bytes.first()?;
        let extra = (0..8).take_while(|bit| first & (0x80 >> bit) != 0).count();
        let mut value = if extra < 7 {
            u64::from(first) & ((1u64 << (7 - extra)) - 1)
        } else {
            0
        };
        for index in 0..extra {
            value = (value << 8) | u64::from(*bytes.get(1 + index)?);
        }
        Some((value, 1 + extra))
    }

    #[test]
    fn known_encodings() {
        for (value, bytes) in [
            (0u64, vec![0u8]),
            (127, vec![0x7f]),
            (128, vec![0x80, 0x80]),
            (16383, vec![0xbf, 0xff]),
            (16384, vec![0xc0, 0x40, 0x00]),
            (
                (1 << 49) - 1,
                vec![0xfd, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            ),
            (1 << 49, vec![0xfe, 0x02, 0, 0, 0, 0, 0, 0]),
            (1 << 56, vec![0xff, 0x01, 0, 0, 0, 0, 0, 0, 0]),
            (u64::MAX, vec![0xff; 9]),
            (
                257_120_000_000_000,
                vec![0xfc, 0xe9, 0xd9, 0x6a, 0x43, 0xc0, 0x00],
            ),
        ] {
            let mut out = Vec::new();
            write_unsigned(&mut out, value);
            assert_eq!(out, bytes, "{value}");
            assert_eq!(unsigned_len(value), out.len(), "{value}");
            if out.len() < MAX_LEN {
                let mut over = vec![0x55; out.len()];
                overwrite(&mut over, value);
                assert_eq!(over, bytes, "{value}");
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn round_trip(value: u64, shift in 0u32..64, before in 0usize..10, after in 0usize..10) {
            let value = value >> shift;
            let mut out = vec![0x55; before];
            write_unsigned(&mut out, value);
            proptest::prop_assert_eq!(out.len() - before, unsigned_len(value));
            let end = out.len();
            out.resize(end + after, 0xaa);
            let mut pos = before;
            proptest::prop_assert_eq!(read_unsigned(&out, &mut pos), Some(value));
            proptest::prop_assert_eq!(pos, end);
        }

        #[test]
        fn agrees_with_the_definition(bytes in proptest::collection::vec(0u8.., 0..30), start in 0usize..12) {
            let start = start.min(bytes.len());
            let mut pos = start;
            let got = read_unsigned(&bytes, &mut pos);
            let expected = naive(&bytes[start..]);
            proptest::prop_assert_eq!(got, expected.map(|(value, _)| value));
            proptest::prop_assert_eq!(pos - start, expected.map_or(0, |(_, len)| len));
        }

        #[test]
        fn zigzag(value: i64) {
            let mut out = Vec::new();
            write_signed(&mut out, value);
            let mut pos = 0;
            let raw = read_unsigned(&out, &mut pos).unwrap();
            proptest::prop_assert_eq!(decode_zigzag(raw), value);
        }
    }
}
