//! Encoding of integers of variable length: bigint and varint.

/// Number of digits, without sign bytes, from which a varint's length is encoded separately.
const FULL_FORM_THRESHOLD: usize = 7;

/// Appends a signed integer in one to nine bytes: the inverted sign, a sign bit for each byte that follows,
/// the opposite bit, and the number in two's complement (`ByteSource.VariableLengthInteger`).
pub fn variable_length_integer(value: i64, out: &mut Vec<u8>) {
    let negative = (value >> 63) as u64;
    let magnitude = value as u64 ^ negative;
    let bits = 64 - (magnitude | 1).leading_zeros() as usize;
    let len = bits / 7 + 1;
    if len >= 9 {
        out.push(0xff ^ (negative as u8));
        out.extend_from_slice(&((magnitude | (1 << 63)) ^ negative).to_be_bytes());
        return;
    }
    // The top `len` bits of the first byte, which is the first of the `len` low bytes.
    let mask = u64::from(!(0xffu32 >> len) as u8);
    let encoded = (magnitude | (mask << (8 * (len - 1)))) ^ negative;
    out.extend_from_slice(&encoded.to_be_bytes()[8 - len..]);
}

/// Appends a length, each byte XORed with `flip` (`ByteSource.VariableLengthUnsignedInteger`).
fn variable_length_unsigned(value: u64, flip: u8, out: &mut Vec<u8>) {
    // No length has more than 49 bits.
    let more = ((63 - (value | 1).leading_zeros() as usize) / 7).min(7);
    let mask = !(0xffu32 >> more) as u8;
    let raw = value.to_be_bytes();
    let start = 7 - more;
    out.push((raw[start] | mask) ^ flip);
    out.extend(raw[start + 1..].iter().map(|byte| byte ^ flip));
}

/// Appends the encoding of a varint that is not empty (`IntegerType`).
pub(super) fn append(value: &[u8], out: &mut Vec<u8>) {
    let Some(&sign_byte) = value.first() else {
        return;
    };
    // All leading bytes that contain only the sign are removed, including one that separates the sign bit.
    let skipped = match sign_byte {
        0x00 | 0xff => {
            let run = value.iter().take_while(|byte| **byte == sign_byte).count();
            run.min(value.len() - 1)
        }
        _ => 0,
    };
    let digits = &value[skipped..];
    let negative = sign_byte & 0x80 != 0;
    if digits.len() < FULL_FORM_THRESHOLD {
        let start = if negative { -1i64 } else { 0 };
        let number = digits
            .iter()
            .fold(start, |n, byte| (n << 8) | i64::from(*byte));
        variable_length_integer(number, out);
        return;
    }
    let flip = if negative { 0xff } else { 0x00 };
    out.push(0xff ^ flip);
    variable_length_unsigned((digits.len() - FULL_FORM_THRESHOLD) as u64, flip, out);
    out.extend_from_slice(digits);
}
